package dispatch

import (
	"context"
	"strings"

	"sallyport/internal/base/audit"
	"sallyport/internal/base/id"
	"sallyport/internal/base/problem"
	"sallyport/internal/chat/conversation"
	"sallyport/internal/chat/decide"
	"sallyport/internal/chat/message"
	"sallyport/internal/port/channel"
	"sallyport/internal/store"
	"sallyport/internal/who/question"
)

// Voices takes what people say by a channel, once it is known whom it reaches.
type Voices struct{ *Dispatcher }

// Decide has words, or the button of a card, decide in a conversation; false if they are talk.
func (v Voices) Decide(ctx context.Context, tx store.Tx, where id.Conversation, in message.Intake, s Said) (message.In, bool, error) {
	return decider(v).words(ctx, tx, where, in, s)
}

// Hear puts words before the agent of a chat. What has no words, such as a picture, is talk. Words that are no answer to its question are
// asked back.
func (v Voices) Hear(ctx context.Context, tx store.Tx, chat conversation.Chat, in message.Intake, s Said) (message.In, error) {
	d := decider(v)
	if strings.TrimSpace(s.Text) == "" {
		return d.told(ctx, tx, chat, in, s)
	}
	heard, err := d.talk(ctx, tx, chat, in, s)
	if problem.KindOf(err) == problem.Usage {
		return heard, d.unanswered(ctx, tx, chat.ID, err)
	}
	return heard, err
}

// Hush returns words as they are kept: while somebody may know the code of a change of the host, without it.
func (v Voices) Hush(text string) string { return v.hush(text) }

// CarryOut does what words have decided, as they were said.
func (v Voices) CarryOut(ctx context.Context, in message.In, words string) error {
	_, err := decider(v).carryOut(ctx, in, words)
	return err
}

// NoteDelivery says that a card has arrived.
func (v Voices) NoteDelivery(ctx context.Context, card message.Out) {
	decider(v).delivered(ctx, card)(true)
}

// Show returns what a card asks where it stands, what it can be answered by in a press, and what it shows once it has its answer; "" while
// it waits.
func (v Voices) Show(ctx context.Context, tx store.Tx, card message.Out) (text string, options []channel.Option, outcome string, err error) {
	c, ok, err := decider(v).read(ctx, tx, card, audit.Actor{})
	if err != nil || !ok {
		return card.Text, nil, "", err
	}
	if c.Ended != nil {
		outcome, err = decider(v).outcome(ctx, tx, card)
		return card.Text, nil, outcome, err
	}
	for _, o := range c.Buttons() {
		options = append(options, channel.Option{Key: o.Key, Label: o.Label})
	}
	if !c.Elsewhere {
		return card.Text, options, "", nil
	}

	p, ok, err := tx.Proposal(ctx, card.Change)
	if err != nil || !ok {
		return card.Text, options, "", err
	}
	why, err := decider(v).unspoken(ctx, tx, p, card)
	return p.Ask(why), options, "", err
}

// Admissions does what people have answered about strangers and new places.
type Admissions interface {
	// May reports whether somebody may answer, at this moment.
	May(ctx context.Context, tx store.Tx, q question.Question, by audit.Actor) (bool, error)
	// Prepare makes what an answer needs of the world, before its transaction.
	Prepare(ctx context.Context, what message.Decision) (Admit, error)
}

// CreateNew is the key of the answer that a place is for a group which is not there yet. It decides with a name behind it.
const CreateNew = "create"

// asksForName reports whether what was decided is that a group is to be made whose name was not said (CH-067).
func asksForName(what message.Decision) bool {
	return what.Asks == message.CardAdmission && what.Does == decide.Choose && what.Option == CreateNew
}

// Admit does what an answer says, in the transaction of the answer.
type Admit func(ctx context.Context, tx store.Tx, q question.Question, by audit.Actor) error
