// Package decide says what a person's words do to the cards of a conversation. It is pure: words and cards in, one verdict out.
//
// Nothing but a whole message decides: an option of a card by its number or its words, or a word of the table for that kind of card, in any
// case. Some words take more behind a colon: why somebody refuses, what they want different. It may carry the card's two digits, before or
// behind; with more behind a colon, before it alone. It counts for a card that was delivered in this conversation before it was said, as far
// as its platform tells, and else before it was received; and if without digits the same words would have fitted another one too that is
// open, or that has ended or opened within a minute, it is asked back and never guessed: who wrote it may not have seen yet which of them
// still stood. So it is while an agent's question is open that takes words of any kind, and with a number alone once an agent has said or
// asked something since the card was written: who wrote it may have answered that. So may two numbers while such a question is open. Words
// that answer to a card where it stands are about that card alone. Words that decide nothing else are the name that a card has just asked its
// reader for. From somebody who is not entitled, and in any other quote, forwarded, edited or from a bot, the same words are talk.
package decide

import (
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"sallyport/internal/base/code"
	"sallyport/internal/base/id"
	"sallyport/internal/rule/policy"
)

const (
	// Beside is how long another card that has ended or opened makes bare words ambiguous.
	Beside = time.Minute
	// Told is how long words that the host alone understands are answered with how their card ended.
	Told = 10 * time.Minute
	// AskedFor is how long the next words of who was asked for a name are that name.
	AskedFor = 10 * time.Minute
	// WordsFor is how long the next words answer a question that takes words.
	WordsFor = 10 * time.Minute
	// NoName are the words of who was asked for a name and gives none after all.
	NoName = "cancel"
)

// Word is what somebody said, and how it came.
type Word struct {
	Text      string
	Received  time.Time // by our clock: when it was received, or where it came late and that is known, when it was said
	Quoted    bool      // it stands in a quote
	Forwarded bool
	Edited    bool   // it is another text than when it came
	Bot       bool   // a program said it
	To        id.Out // the card that it answers to where that stands; "" = none
}

// own reports whether they are somebody's own words, said now.
func (w Word) own() bool { return !w.Quoted && !w.Forwarded && !w.Edited && !w.Bot }

// Asks is what a card wants to know.
type Asks string

const (
	Approval Asks = "approval" // may a proposal land
	Trial    Asks = "trial"    // does what landed stay
	Promote  Asks = "promote"  // is the template to have it too
	Mount    Asks = "mount"    // may an agent write in a folder

	Admission Asks = "admission" // may a stranger talk, or which group is a place for
	Question  Asks = "question"  // what an agent wants to know
)

// Card is one that stands in the conversation.
type Card struct {
	ID        id.Out
	Digits    int  // two of them, its name in this conversation
	Entitled  bool // who speaks may decide about it, now
	Asks      Asks
	Options   []Option   // of a promotion, a folder or a question; the others have their own
	Words     bool       // of a question: it has no options, and any words answer it
	Talked    bool       // an agent has said what words for it may answer (Verdict.Echo), since it was written, or a word within Beside before
	Names     string     // key of the option that takes a name behind it, such as "create kitchen"; "" = none does
	Asked     *time.Time // who speaks was asked for that name alone, and has not said it; nil = they were not
	Host      bool       // of an approval: a yes is CONFIRM HOST (SM-084); of a trial: it is confirmed with its code (SM-923)
	Elsewhere bool       // of an approval: it cannot be approved in a conversation (SM-909)
	Reworks   bool       // of an approval: an agent goes on with what somebody wants different
	Opened    time.Time  // it was written
	Delivered *time.Time // nil = nobody has been shown it here
	Ended     *time.Time // nil = it waits
}

// Option is an answer to choose, by its number from 1, its key or its label.
type Option struct{ Key, Label string }

// Does is what words do to a card.
type Does string

const (
	Approve  Does = "approve"
	Refuse   Does = "refuse" // Answer.Option is why, if that was said
	Rework   Does = "rework" // Answer.Option is what is to be different
	Confirm  Does = "confirm"
	RollBack Does = "rollback"
	Choose   Does = "choose" // Answer.Option
	Name     Does = "name"   // Answer.Option is the name that was said
	Leave    Does = "leave"  // no name is said after all
	Reply    Does = "reply"  // Answer.Option is what was said, to a question that takes words
)

// Kind is what becomes of words.
type Kind string

const (
	Talk      Kind = "talk"      // they decide nothing
	Decided   Kind = "decided"   // Answer does it to Card
	Which     Kind = "which"     // one of Fits is meant: it is asked back
	Unseen    Kind = "unseen"    // the only ones that fit were not shown here before: they are asked about again
	Typed     Kind = "typed"     // a yes to Card takes CONFIRM HOST, or the code of its trial, and this is none
	Wordless  Kind = "wordless"  // it is not said what is to be different
	Elsewhere Kind = "elsewhere" // Card cannot be approved here
	Over      Kind = "over"      // Card has its outcome
)

// Answer is what words would do to one card.
type Answer struct {
	Card   Card
	Does   Does
	Option string // key; of Name, the name; of Refuse and Rework, what was said with it
	typed  bool   // they are not the words that this card takes for it, or not all of them
}

// Verdict is what becomes of words.
type Verdict struct {
	Kind   Kind
	Answer Answer
	Fits   []Answer // of Which and Unseen, oldest card first
	Missed *Answer  // of Which: to a card that has just ended; nil = none has
}

// Decide says what w does to cards, which come oldest first. One that who speaks may not decide about is not there for them.
func Decide(w Word, cards []Card) Verdict {
	if !w.own() {
		return Verdict{Kind: Talk}
	}
	cards = slices.DeleteFunc(slices.Clone(cards), func(c Card) bool { return !c.Entitled })
	text := strings.TrimSpace(w.Text)
	if v := among(w, text, cards); v.Kind != Talk {
		return v
	}
	return named(w, text, cards)
}

// Nearly is what words that decide nothing would do to a card of the host's without what stands around them: a full stop, an exclamation
// mark, quotes, or the digits of a card that is not there. Of one word with the digits of a card that does not take it, it is all that the card
// takes. They stay talk; who said them may have meant it. None if they are no such words.
func Nearly(w Word, cards []Card) []Answer {
	if !w.own() {
		return nil
	}
	text := strings.TrimSpace(w.Text)
	for _, c := range cards {
		rest, named := c.unnamed(text)
		if named && c.Asks != Question && c.Entitled && c.open(w) && c.shown(w.Received) && len(strings.Fields(rest)) == 1 {
			return c.answers()
		}
	}
	bare := strings.TrimSpace(strings.Trim(text, "`'\"*_.!,? "))
	if len(bare) > 3 && bare[2] == ' ' && IsNumber(bare[:2]) {
		bare = strings.TrimSpace(bare[3:])
	}
	if bare == text || IsNumber(bare) {
		return nil
	}
	w.Text, w.To = bare, ""
	v := Decide(w, cards)
	if v.Kind != Decided && v.Kind != Typed || v.Answer.Card.Asks == Question || v.Answer.Does == Name {
		return nil
	}
	return []Answer{v.Answer}
}

// answers are all that a card takes in words without more behind them.
func (c Card) answers() (all []Answer) {
	words := []string{Say(Approve, c.Host), Say(Refuse, c.Host), Say(Confirm, c.Host), Say(RollBack, c.Host)}
	for _, o := range c.Options {
		words = append(words, o.Key)
	}
	for _, text := range words {
		if a, ok := c.read(text); ok && !(a.Does == Approve && c.Elsewhere) {
			all = append(all, a)
		}
	}
	return all
}

// among says what words do that are an answer to one of the cards, or to more.
func among(w Word, text string, cards []Card) Verdict {
	if w.To != "" {
		return onCard(w, text, cards)
	}
	if v, named := byName(w, text, cards); named {
		return v
	}

	var open, unseen, over []Answer
	for _, c := range cards {
		a, ok := c.read(text)
		switch {
		case !ok || c.Opened.After(w.Received):
		case c.Ended != nil && !c.Ended.After(w.Received):
			over = append(over, a)
		case c.shown(w.Received):
			open = append(open, a)
		default:
			unseen = append(unseen, a)
		}
	}
	switch {
	case len(open) == 0 && len(unseen) > 0:
		return Verdict{Kind: Unseen, Fits: unseen}
	case len(open) == 0:
		return ended(w, text, over)
	}
	missed, asked := missed(w, open[0], over), asked(w, text, cards)
	if len(open) > 1 || missed != nil || opening(w, unseen) || open[0].doubted(text, asked) {
		return Verdict{Kind: Which, Fits: inOrder(cards, open, unseen, asked), Missed: missed}
	}
	return open[0].verdict()
}

// doubted reports whether words that fit this card of the host's alone may have answered an agent. A no in words is taken at once: nobody is
// harmed by one that was not meant (SM-123). Nobody answers an agent with the code of a trial.
func (a Answer) doubted(text string, asked []Answer) bool {
	_, coded := Code(text)
	switch {
	case a.Card.Asks == Question || coded:
		return false
	case IsNumber(text):
		return len(asked) > 0 || a.Card.Talked
	}
	return (len(asked) > 0 || a.Card.Talked) && a.Does != Refuse && a.Does != RollBack
}

// Echo is what an agent has to have said for words that decide about the host's card to be, maybe, an answer to the agent.
type Echo struct {
	words  string // as they look
	number bool   // they are one number
}

// Number reports whether the words are one number: anything that an agent says once a card is there may be answered by it.
func (e Echo) Number() bool { return e.number }

// In reports whether a text of an agent's has the words, whatever letters it writes them with; a number as one of its own.
func (e Echo) In(said string) bool {
	said = policy.Looks(unstyled.Replace(said))
	for at := 0; ; {
		i := strings.Index(said[at:], e.words)
		if i < 0 {
			return false
		}
		at += i + len(e.words)
		before, _ := utf8.DecodeLastRuneInString(said[:at-len(e.words)])
		after, _ := utf8.DecodeRuneInString(said[at:])
		if !e.number || !inWord(before) && !inWord(after) {
			return true
		}
	}
}

// inWord reports whether a number beside it would be a part of something, such as an id.
func inWord(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }

// unstyled takes away what a platform shows as style, and the frame of a number.
var unstyled = strings.NewReplacer("*", "", "_", "", "~", "", "`", "", "\u20e3", "")

// Echo is false where words answer no agent: nobody types CONFIRM HOST to one.
func (v Verdict) Echo(text string) (e Echo, may bool) {
	a := v.Answer
	words := strings.ToLower(strings.TrimSpace(text))
	switch {
	case v.Kind != Decided || a.Card.Asks == Question || a.Card.Host:
		return e, false
	case a.Does == Approve && !counts(text), a.Does == Confirm && !counts(text):
		return Echo{words: Say(a.Does, false)}, true
	case a.Does != Refuse && a.Does != RollBack, counts(text):
		return Echo{words, IsNumber(text)}, true
	}
	return e, false
}

// counts reports whether words are numbers and nothing else.
func counts(text string) bool {
	text = strings.TrimSpace(text)
	return text != "" && strings.Trim(text, "0123456789 ") == ""
}

// IsNumber reports whether words are a number and nothing else.
func IsNumber(text string) bool {
	text = strings.TrimSpace(text)
	return text != "" && strings.Trim(text, "0123456789") == ""
}

// asked is what words are to the newest question that takes any; none if none is open that was asked of late.
func asked(w Word, text string, cards []Card) []Answer {
	for _, c := range slices.Backward(cards) {
		if c.Words && c.open(w) && w.Received.Sub(c.Opened) < WordsFor {
			return []Answer{c.reply(text)}
		}
	}
	return nil
}

// open reports whether a card was there and waited when words came.
func (c Card) open(w Word) bool {
	return !c.Opened.After(w.Received) && (c.Ended == nil || c.Ended.After(w.Received))
}

// reply is what words are to a question that takes any.
func (c Card) reply(text string) Answer { return Answer{Card: c, Does: Reply, Option: text} }

// named says what words do that answer no card: the name that who speaks was asked for last (CH-067).
func named(w Word, text string, cards []Card) Verdict {
	var of *Card
	for i, c := range cards {
		asked := c.Asked != nil && c.Ended == nil && !c.Asked.After(w.Received) && w.Received.Sub(*c.Asked) < AskedFor
		if asked && (w.To == "" || w.To == c.ID) && (of == nil || of.Asked.Before(*c.Asked)) {
			of = &cards[i]
		}
	}
	_, coded := Code(text)
	switch {
	case of == nil || text == "" || coded:
		return Verdict{Kind: Talk}
	case lower(text) == NoName:
		return Verdict{Kind: Decided, Answer: Answer{Card: *of, Does: Leave}}
	}
	return Verdict{Kind: Decided, Answer: Answer{Card: *of, Does: Name, Option: text}}
}

// Press says what the button of a card does that has w as its words. Who presses it has been shown the card. Words that no button of it has
// are none, also if they would be an answer were they typed.
func Press(w Word, of id.Out, cards []Card) Verdict {
	for _, c := range cards {
		a, ok := c.read(w.Text)
		switch {
		case c.ID != of:
		case !ok || !c.Entitled || w.Bot:
			return Verdict{Kind: Talk}
		case c.Ended != nil && !c.Ended.After(w.Received):
			return Verdict{Kind: Over, Answer: a}
		case !slices.ContainsFunc(c.Buttons(), func(o Option) bool { return o.Key == w.Text }):
			return Verdict{Kind: Talk}
		default:
			return a.verdict()
		}
	}
	return Verdict{Kind: Talk}
}

// Buttons are what a card can be answered by without typing: none that takes words of its own.
func (c Card) Buttons() (all []Option) {
	switch c.Asks {
	case Approval:
		if !c.Host && !c.Elsewhere {
			all = append(all, Option{string(Approve), string(Approve)})
		}
		all = append(all, Option{string(Refuse), string(Refuse)})
	case Trial:
		if !c.Host {
			all = append(all, Option{string(Confirm), string(Confirm)})
		}
		all = append(all, Option{string(RollBack), string(RollBack)})
	default:
		all = c.Options
	}
	return all
}

// byName reads words that carry the digits of a card; false if they name none, or do not fit the one that they name.
func byName(w Word, text string, cards []Card) (Verdict, bool) {
	for _, c := range slices.Backward(cards) { // digits come again after long: the newest has them
		rest, named := c.unnamed(text)
		if !named {
			continue
		}
		if c.Words && c.open(w) && decides(rest, cards) { // other words with two digits before them are an answer whole
			return c.reply(rest).verdict(), true
		}
		if v, doubted := c.counted(w, text, rest, cards); doubted {
			return v, true
		}
		return c.take(w, rest)
	}
	return Verdict{}, false
}

// counted asks back two numbers that fit a card of the host's and may answer an agent, too, such as a day and a month.
func (c Card) counted(w Word, text, rest string, cards []Card) (Verdict, bool) {
	a, ok := c.read(rest)
	asked := asked(w, text, cards)
	if !ok || c.Asks == Question || !IsNumber(rest) || len(asked) == 0 && !c.Talked || !c.open(w) || !c.shown(w.Received) {
		return Verdict{}, false
	}
	return Verdict{Kind: Which, Fits: inOrder(cards, []Answer{a}, asked)}, true
}

// decides reports whether words fit a card of the host's.
func decides(text string, cards []Card) bool {
	return slices.ContainsFunc(cards, func(c Card) bool { _, ok := c.read(text); return ok && c.Asks != Question })
}

// onCard reads words that answer to a card where it stands, with its digits or without.
func onCard(w Word, text string, cards []Card) Verdict {
	for _, c := range cards {
		if c.ID != w.To {
			continue
		}
		rest, named := c.unnamed(text)
		if named && (!c.Words || decides(rest, cards)) {
			text = rest
		}
		if c.Words && c.open(w) && text != "" {
			return c.reply(text).verdict()
		}
		if v, ok := c.take(w, text); ok {
			return v
		}
	}
	return Verdict{Kind: Talk}
}

// take reads words that are about this card alone; false if they do nothing to it.
func (c Card) take(w Word, text string) (Verdict, bool) {
	a, ok := c.read(text)
	switch {
	case !ok || c.Opened.After(w.Received):
		return Verdict{}, false
	case c.Ended != nil && !c.Ended.After(w.Received):
		return Verdict{Kind: Over, Answer: a}, true
	case !c.shown(w.Received):
		return Verdict{Kind: Unseen, Fits: []Answer{a}}, true
	}
	return a.verdict(), true
}

// unnamed returns words without the card's digits, which stand before them, or behind words that are no number.
func (c Card) unnamed(text string) (string, bool) {
	if c.Digits < 10 || c.Digits > 99 {
		return "", false
	}
	name := string([]byte{byte('0' + c.Digits/10), byte('0' + c.Digits%10)})
	if rest, ok := strings.CutPrefix(text, name+" "); ok {
		return strings.TrimSpace(rest), true
	}
	if goesOn(text) {
		return "", false
	}
	rest, ok := strings.CutSuffix(text, " "+name)
	rest = strings.TrimSpace(rest)
	return rest, ok && strings.Trim(rest, "0123456789 ") != ""
}

// read says what whole words do to a card, whatever its state; false if they do nothing to it. Words that fit two of its options do
// nothing.
func (c Card) read(text string) (a Answer, ok bool) {
	a.Card = c
	if plain, like := Code(text); like && c.Asks == Trial && c.Host {
		a.Does, a.typed = Confirm, !code.Is(plain)
		return a, true
	}
	for _, row := range table {
		if row.asks != c.Asks || row.host && !c.Host || row.does == Rework && !c.Reworks {
			continue
		}
		if word, more, ok := row.cut(text); ok {
			text, a.Option = word, more
		}
		if !slices.Contains(row.words, lower(text)) {
			continue
		}
		a.Does, a.typed = row.does, c.Host && (row.does == Approve && !row.host || row.does == Confirm)
		return a, true
	}
	for i, o := range c.Options {
		if text != number(i+1) && !strings.EqualFold(text, o.Key) && !strings.EqualFold(text, strings.TrimSpace(o.Label)) {
			continue
		}
		if a.Does != "" && a.Option != o.Key {
			return a, false
		}
		a.Does, a.Option = Choose, o.Key
	}
	if word, name, ok := strings.Cut(text, " "); ok && c.Names != "" && strings.EqualFold(word, c.Names) && a.Does == "" {
		a.Does, a.Option = Name, strings.TrimSpace(name)
	}
	return a, a.Does != ""
}

// Read says what whole words do to a card that was named, whatever its state; false if they do nothing to it.
func (c Card) Read(words string) (Answer, bool) { return c.read(strings.TrimSpace(words)) }

// lower is a text with the letters of ASCII in lower case: no other letter stands for one of them.
func lower(text string) string {
	return strings.Map(func(r rune) rune {
		if 'A' <= r && r <= 'Z' {
			r += 'a' - 'A'
		}
		return r
	}, text)
}

// number is how an option is numbered.
func number(n int) string {
	if n < 10 {
		return string(byte('0' + n))
	}
	return number(n/10) + string(byte('0'+n%10))
}

// shown reports whether a card was delivered before words were received.
func (c Card) shown(received time.Time) bool {
	return c.Delivered != nil && !c.Delivered.After(received)
}

// verdict is that of words which fit this card alone.
func (a Answer) verdict() Verdict {
	switch {
	case a.Does == Rework && a.Option == "":
		return Verdict{Kind: Wordless, Answer: a}
	case a.Does == Approve && a.Card.Elsewhere:
		return Verdict{Kind: Elsewhere, Answer: a}
	case a.typed:
		return Verdict{Kind: Typed, Answer: a}
	}
	return Verdict{Kind: Decided, Answer: a}
}

// opening reports whether words may have been meant for a card that opened a moment before.
func opening(w Word, unseen []Answer) bool {
	return slices.ContainsFunc(unseen, func(a Answer) bool { return w.Received.Sub(a.Card.Opened) < Beside })
}

// missed is what words that fit one card would have been to the newest other that was shown and has ended a moment before; nil if there is
// none. Of questions of an agent who answers sees for themselves which was answered.
func missed(w Word, one Answer, over []Answer) *Answer {
	for i, a := range slices.Backward(over) {
		if a.Card.Delivered != nil && a.Card.Delivered.Before(*a.Card.Ended) && w.Received.Sub(*a.Card.Ended) < Beside &&
			(one.Card.Asks != Question || a.Card.Asks != Question) {
			return &over[i]
		}
	}
	return nil
}

// ended says how the newest card that words fit has ended, if it has just now, or if only the host understands them. What fits an agent's
// question that was answered is talk.
func ended(w Word, text string, over []Answer) Verdict {
	for _, a := range slices.Backward(over) {
		since := w.Received.Sub(*a.Card.Ended)
		if a.Card.Asks != Question && (since < Beside || since < Told && !IsNumber(text)) {
			return Verdict{Kind: Over, Answer: a}
		}
	}
	return Verdict{Kind: Talk}
}

// inOrder are answers in the order of their cards.
func inOrder(cards []Card, some ...[]Answer) (all []Answer) {
	for _, c := range cards {
		for _, as := range some {
			for _, a := range as {
				if a.Card.ID == c.ID {
					all = append(all, a)
				}
			}
		}
	}
	return all
}

// Words are what whoever means this answer says for it: with the card's digits, it fits no other.
func (a Answer) Words() string {
	word := Say(a.Does, a.Card.Host)
	for i, o := range a.Card.Options {
		if a.Does == Choose && o.Key == a.Option {
			word = number(i + 1)
		}
	}
	switch {
	case a.Does == Confirm && a.Card.Host:
		word += " CODE"
	case a.Does == Name:
		word = a.Card.Names + " " + a.Option
	case a.Does == Reply:
		word = a.Option
	case a.Does == Rework, a.Does == Refuse && a.Option != "":
		word += ": …"
	}
	return number(a.Card.Digits) + " " + word
}
