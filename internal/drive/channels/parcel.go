package channels

import (
	"context"

	"sallyport/internal/base/id"
	"sallyport/internal/base/problem"
	"sallyport/internal/chat/conversation"
	"sallyport/internal/chat/message"
	"sallyport/internal/port/channel"
	"sallyport/internal/store"
	"sallyport/internal/who/group"
	"sallyport/internal/who/question"
)

// parcel is a message on its way out.
type parcel struct {
	message.Out
	where   conversation.Conversation
	chat    conversation.Chat
	account string // who alone is meant
	options []channel.Option
	outcome string
	press   string // what its buttons name
}

// open reads what is sent.
func (c carrier) open(ctx context.Context, tx store.Tx, of id.Out) (p parcel, err error) {
	if p.Out, err = tx.Out(ctx, of); err != nil {
		return p, err
	}
	if p.chat, err = tx.Chat(ctx, p.Chat); err != nil {
		return p, err
	}
	if p.where, err = tx.Conversation(ctx, p.chat.Conversation); err != nil {
		return p, err
	}
	if p.where.Kind == conversation.Direct || p.chat.Group == group.Host { // others may have come to where somebody was alone
		if p.account, err = c.reader(ctx, tx, p.where); err != nil {
			return p, err
		}
	}
	if p.Card.Asks() {
		if p.press, err = pressed(ctx, tx, p.Out); err != nil {
			return p, err
		}
		p.Text, p.options, p.outcome, err = c.Voices.Show(ctx, tx, p.Out)
	}
	if p.Card != "" {
		p.Text = channel.Rows(p.Text)
	}
	return p, err
}

// pressed is what the buttons of a card name: a question by its kind, or else the card.
func pressed(ctx context.Context, tx store.Tx, card message.Out) (string, error) {
	kind := ""
	switch card.Card {
	case message.CardQuestion:
		kind = channel.AboutQuestion
	case message.CardAdmission:
		q, err := tx.Question(ctx, card.Question)
		if problem.KindOf(err) == problem.NotFound { // it is not known any more, and has no buttons
			return string(card.ID), nil
		}
		if err != nil {
			return "", err
		}
		if kind = channel.AboutSender; q.Kind == question.Channel {
			kind = channel.AboutPlace
		}
	default:
		return string(card.ID), nil
	}
	return kind + string(card.Question), nil
}

// reader is the account that a conversation is there for alone; "" if nobody has it.
func (c carrier) reader(ctx context.Context, tx store.Tx, where conversation.Conversation) (string, error) {
	all, err := tx.People(ctx)
	for _, k := range all {
		for _, a := range k.Accounts {
			if a.Platform == where.Platform && a.Direct == where.ID && a.Account[0] != '~' {
				return a.Account, nil
			}
		}
	}
	return "", err
}

// piece is one piece of a message. A card's buttons stand below its last.
func (p parcel) piece(pieces []string, n int) channel.Message {
	m := channel.Message{Place: p.where.Address, Thread: p.chat.Thread, Nonce: string(p.ID), Text: pieces[n]}
	if len(pieces) > 1 {
		m.Nonce += "." + string(rune('a'+n%26)) + string(rune('a'+n/26%26))
	}
	if p.Card != "" {
		m.Account = p.account
	}
	if n == len(pieces)-1 && len(p.options) > 0 {
		m.Card = &channel.Card{Question: p.press, Options: p.options}
	}
	return m
}
