// Package question is what people are asked and what they answered.
//
// A question is about a subject and stands as it was asked. An answer is only ever added, one for each person. The answer that
// fulfils the need ends the question in its own transaction, by compare-and-set; who comes later reads who was first. A card that
// somebody still sees is a view of this record: it shows the outcome, and cannot act twice.
//
// The entry in the audit is the caller's, in the same transaction: it knows what the answer is about.
package question

import (
	"fmt"
	"strings"
	"time"

	"sallyport/internal/base/audit"
	"sallyport/internal/base/id"
	"sallyport/internal/base/inert"
	"sallyport/internal/base/problem"
)

// Kind is what a question is for.
type Kind string

const (
	Swap  Kind = "swap"  // may a change land; an approval binds it to a proposal
	Mount Kind = "mount" // may an agent change what is in a folder that it is to be shown
	// MountOther is Mount of an agent of another group than the one whose change shows it the folder.
	MountOther Kind = "mount_other"
	Ask        Kind = "ask" // an agent wants to know something

	Promote Kind = "promote" // is the template to have what a group has landed

	Sender  Kind = "sender"  // may a stranger talk with a group
	Channel Kind = "channel" // which group is a conversation for
)

// Outcome is how a question ended: the key of the option that was chosen, or one of these.
type Outcome string

const (
	Waiting Outcome = ""     // nobody has answered as is needed
	Said    Outcome = "said" // answered in words
	Void    Outcome = "void" // nobody can answer it any more
)

// Card is what a person is shown, in no form of any channel; plain data, escaped where it is rendered.
type Card struct {
	Title string   `json:"title"`
	Lines []string `json:"lines,omitempty"`
}

// Option is an answer to choose.
type Option struct {
	Key   string `json:"key"`   // what is stored
	Label string `json:"label"` // what is shown

	// One answer with it ends the question, however many the need asks for: a no is a no.
	Alone bool `json:"alone,omitempty"`
}

// Question is one thing that people are asked.
type Question struct {
	ID      id.Question `json:"id"`
	Kind    Kind        `json:"kind"`
	Subject id.Subject  `json:"subject"`
	Card    Card        `json:"card"`
	Digest  string      `json:"digest"`  // of what the card shows, where that lies elsewhere; "" = the card is all
	Options []Option    `json:"options"` // in the order of their numbers
	Words   bool        `json:"words"`   // words of a person's own are an answer too
	Need    int         `json:"need"`    // how many people have to choose the same
	Asked   time.Time   `json:"asked"`

	Outcome Outcome    `json:"outcome,omitempty"`
	Ended   *time.Time `json:"ended,omitempty"`
	Answer  *Answer    `json:"answer,omitempty"` // that ended it; nil while it waits, or if it is void
	Reason  string     `json:"reason,omitempty"` // why it is void
}

// Answer is what one person said to one question.
type Answer struct {
	Question id.Question `json:"question"`
	By       audit.Actor `json:"by"`               // as they were then, with person and identity
	Option   string      `json:"option,omitempty"` // key; "" = in words
	Text     string      `json:"text,omitempty"`   // their words, or the reason for what they chose
	Edit     string      `json:"edit,omitempty"`   // digest of what they changed of what was asked; "" = nothing
	Via      string      `json:"via"`              // how it reached us: "command line", "terminal" …
	At       time.Time   `json:"at"`
}

// outcome is how a question ends that an answer ends.
func (a Answer) outcome() Outcome {
	if a.Option == "" {
		return Said
	}
	return Outcome(a.Option)
}

var (
	// ErrEnded refuses an answer to a question that has its outcome.
	ErrEnded = problem.New(problem.Conflict, "the question was answered already")

	// ErrAnswered refuses a second answer of one person.
	ErrAnswered = problem.New(problem.Conflict, "one person answers a question once")

	// ErrSaid answers somebody who repeats their answer: it holds, and nothing happens again. A door may report it as success.
	ErrSaid = problem.New(problem.Conflict, "the same was answered already")
)

// New returns an agent's question about what it does for subject. Each label is an option, numbered from 1; words are an answer too.
func New(subject id.Subject, title string, labels []string, at time.Time) Question {
	q := Question{ID: id.NewQuestion(), Kind: Ask, Subject: subject, Card: Card{Title: title}, Options: []Option{}, Words: true, Need: 1, Asked: at}
	for i, label := range labels {
		q.Options = append(q.Options, Option{Key: fmt.Sprint(i + 1), Label: label})
	}
	return q
}

// Text is what is asked, with its options numbered.
func (q Question) Text() string {
	var b strings.Builder
	b.WriteString(q.Card.Title)
	for _, line := range q.Card.Lines {
		b.WriteString("\n" + line)
	}
	for i, o := range q.Options {
		fmt.Fprintf(&b, "\n%d. %s", i+1, o.Label)
	}
	return b.String()
}

// Option returns the option that a key names; false if there is none.
func (q Question) Option(key string) (Option, bool) {
	for _, o := range q.Options {
		if o.Key == key {
			return o, true
		}
	}
	return Option{}, false
}

// Read says what a person's line answers: the key of the option whose number, key or label it is, in any case; or words,
// where words are an answer. A line that fits two options is asked back, never guessed.
func (q Question) Read(line string) (key, words string, err error) {
	line = strings.TrimSpace(line)
	for i, o := range q.Options {
		if line != fmt.Sprint(i+1) && !strings.EqualFold(line, o.Key) && !strings.EqualFold(line, strings.TrimSpace(o.Label)) {
			continue
		}
		if key != "" {
			return "", "", problem.Errorf(problem.Usage, "",
				"%q fits two of the %d options: say the words of the one that is meant, or something more", line, len(q.Options))
		}
		key = o.Key
	}
	if key != "" {
		return key, "", nil
	}
	if line == "" || !q.Words {
		return "", "", problem.Errorf(problem.Usage, "", "%q is none of the answers: say a number from 1 to %d", line, len(q.Options))
	}
	return "", line, nil
}

// Told is what an old card shows in the place of its options: how the question ended. It is empty while the question waits.
func (q Question) Told() string {
	switch {
	case q.Outcome == Waiting:
		return ""
	case q.Answer == nil:
		return "nobody can answer this any more: " + q.Reason
	}
	a := q.Answer
	said := fmt.Sprintf("%q", a.Text)
	if o, ok := q.Option(a.Option); ok {
		said = inert.Line(o.Label) // an agent may have written it
	}
	return fmt.Sprintf("%s answered already, at %s: %s", a.By.Name, a.At.Local().Format(time.DateTime), said) // as a chat shows its other times
}
