// Package prompt writes what a wake shows to an agent: which of the waiting messages, in which order, whose they are, and when, by
// the user's clock. What the agent says in turn loses its <internal> parts here.
//
// A batch looks like this, to the byte:
//
//	<context timezone="America/New_York" />
//	<messages>
//	<message sender="Ann" time="Jan 1, 2024, 1:30 PM" reply_to="41" id="msg-5k2m9a0b"><quoted_message from="Bob">no?</quoted_message>yes</message>
//	<task time="Jan 2, 2024, 9:00 AM">water the plants</task>
//	<system time="Jan 2, 2024, 9:01 AM">The change chg-0f3k2m1a has landed.</system>
//	<answer sender="Ann" time="Jan 2, 2024, 9:02 AM" id="msg-7c1d4e9f" question="Which one?">the red one</answer>
//	</messages>
//	<folded count="12">12 older messages are not shown. …</folded>
//	<already_sent>…</already_sent>
//
// A message is a person's words. The other three are not chat, and are shown as what they are, between the messages, in the order
// of time: a task is a schedule's text, system is the host's word, an answer is a person's, to a question that the agent asked.
// What the host says of the batch itself follows it, and only where there is something to say.
//
// All of it is written by others but the elements themselves. Four characters are escaped, which is enough that no text can end
// an element or begin one; control characters, bidirectional controls, and what no reader sees are shown as escapes (see inert);
// sizes are bounded, and what is cut says so in an attribute (cut_bytes), where no text can.
package prompt
