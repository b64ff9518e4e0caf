package prompt

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"sallyport/internal/base/zone"
)

// Batch is what one wake puts before an agent.
type Batch struct {
	Location *time.Location // the user's; nil is UTC
	Messages []Message      // those of Select that are shown
	Folded   int            // how many are not, for good
	FoldedAt string         // where in the sandbox the agent can read them; "" for nowhere
	Later    int            // how many come with the next turn
	Sent     []Sent         // what a failed try of this turn had already sent
}

// String returns the batch as the agent sees it.
func (b Batch) String() string {
	b.Location = cmp.Or(b.Location, time.UTC)
	var w strings.Builder
	fmt.Fprintf(&w, "<context timezone=%s />\n<messages>\n", quoted(b.Location.String(), NameMax))
	for i, m := range b.Messages {
		if i > 0 {
			w.WriteByte('\n')
		}
		m.write(&w, b.Location)
	}
	w.WriteString("\n</messages>")

	b.writeFolded(&w)
	if b.Later > 0 {
		fmt.Fprintf(&w, "\n<later count=\"%d\">%s, with your next turn.</later>", b.Later, counted(b.Later, "more comes", "more come"))
	}
	b.writeSent(&w)
	return w.String()
}

// write writes one element; none of its parts may be believed.
func (m Message) write(w *strings.Builder, loc *time.Location) {
	element := "message"
	if !m.chat() {
		element = string(m.Kind)
	}
	w.WriteString("<" + element)
	if m.chat() || m.Kind == Answer {
		w.WriteString(" sender=" + quoted(m.Sender, NameMax))
	}
	w.WriteString(" time=" + quoted(zone.Format(m.At, loc), NameMax))
	if m.chat() && m.ReplyTo != "" {
		w.WriteString(" reply_to=" + quoted(m.ReplyTo, NameMax))
	}
	if (m.chat() || m.Kind == Answer) && m.ID != "" {
		w.WriteString(" id=" + quoted(m.ID, NameMax))
	}
	if m.Kind == Answer {
		w.WriteString(" question=" + quoted(m.Question, QuoteMax))
	}

	open(w, m.Text, TextMax)
	if m.chat() && m.Quote.From != "" && m.Quote.Text != "" {
		w.WriteString("<quoted_message from=" + quoted(m.Quote.From, NameMax))
		open(w, m.Quote.Text, QuoteMax)
		w.WriteString(text(m.Quote.Text, QuoteMax) + "</quoted_message>")
	}
	w.WriteString(text(m.Text, TextMax) + "</" + element + ">")
}

// open ends a start tag, and says there how much of what follows is cut.
func open(w *strings.Builder, s string, limit int) {
	if _, left := cut(s, limit); left > 0 {
		fmt.Fprintf(w, " cut_bytes=\"%d\"", left)
	}
	w.WriteByte('>')
}

func (b Batch) writeFolded(w *strings.Builder) {
	if b.Folded == 0 {
		return
	}
	fmt.Fprintf(w, "\n<folded count=\"%d\">%s not shown, and will not wake you again.", b.Folded, counted(b.Folded, "older message is", "older messages are"))
	if b.FoldedAt != "" {
		w.WriteString(" Read what you need of them in " + text(b.FoldedAt, QuoteMax) + ".")
	}
	w.WriteString("</folded>")
}

func (b Batch) writeSent(w *strings.Builder) {
	if len(b.Sent) == 0 {
		return
	}
	fmt.Fprintf(w, "\n<already_sent count=\"%d\">Your last turn on these messages failed before its end. It had already sent this: do not say it again.", len(b.Sent))
	sent := b.Sent
	if left := len(sent) - SentMax; left > 0 {
		fmt.Fprintf(w, " %s not shown.", counted(left, "earlier one is", "earlier ones are"))
		sent = sent[left:]
	}
	for _, s := range sent {
		w.WriteString("\n<sent time=" + quoted(zone.Format(s.At, b.Location), NameMax))
		open(w, s.Text, QuoteMax)
		w.WriteString(text(s.Text, QuoteMax) + "</sent>")
	}
	w.WriteString("\n</already_sent>")
}

// Older returns messages that a prompt does not show as an agent reads them where it likes to: the newest, in the order of time, as many
// as have room in FoldedMax bytes, and how many there are before those, with the ones before rows.
func Older(rows []Message, before int, loc *time.Location) string {
	loc = cmp.Or(loc, time.UTC)
	from, size := len(rows), 0
	for i, m := range slices.Backward(rows) {
		var w strings.Builder
		m.write(&w, loc)
		if size += w.Len() + 1; size > FoldedMax {
			break
		}
		from = i
	}
	return Batch{Location: loc, Messages: rows[from:], Folded: before + from}.String() + "\n"
}

func counted(n int, one, more string) string {
	if n == 1 {
		return "1 " + one
	}
	return strconv.Itoa(n) + " " + more
}
