package ledger

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"sallyport/internal/base/id"
	"sallyport/internal/base/inert"
	"sallyport/internal/chat/conversation"
	"sallyport/internal/chat/message"
	"sallyport/internal/path/change"
	"sallyport/internal/path/proposal"
	"sallyport/internal/store"
	"sallyport/internal/who/person"
)

// Tell tells of a change where it was asked for, and wherever else it is asked about.
func (n *Origin) Tell(ctx context.Context, tx store.Tx, row change.Row, text string) error {
	first, there, err := n.chat(ctx, tx, row)
	if err != nil || !there {
		return err
	}
	cards, err := tx.CardsAbout(ctx, row.ID)
	if err != nil {
		return err
	}
	all := []id.Chat{first.ID}
	for _, o := range cards {
		if o.Card.Host() && !slices.Contains(all, o.Chat) {
			all = append(all, o.Chat)
		}
	}
	for _, of := range all {
		chat, err := tx.Chat(ctx, of)
		if err != nil {
			return err
		}
		if err := n.tellIn(ctx, tx, row, chat, message.Out{Lane: message.Notice, Text: text}); err != nil {
			return err
		}
	}
	return nil
}

// TellOnce is Tell, unless these words are what was told of the change last: a step that is tried again says once what it does.
func (n *Origin) TellOnce(ctx context.Context, tx store.Tx, row change.Row, text string) error {
	first, there, err := n.chat(ctx, tx, row)
	if err != nil || !there {
		return err
	}
	said, err := tx.NewestOuts(ctx, first.ID, lately)
	if err != nil {
		return err
	}
	for _, o := range slices.Backward(said) {
		if o.Change == row.ID {
			if o.Text == n.secrets.Redact(text) {
				return nil
			}
			break
		}
	}
	return n.Tell(ctx, tx, row, text)
}

// What opens a card where it stands beside the conversation that it is of: a group, the conversation and its platform.
const (
	asksFor = "The group %s asks for this in %s on %s.\n"
	isAbout = "This is about the group %s, in %s on %s.\n"
)

// ask shows what is to be approved where a change was asked for, and to each who is asked where they are alone with the assistant.
func (n *Origin) ask(ctx context.Context, tx store.Tx, row change.Row, p proposal.Proposal, card []message.Out) error {
	_, there, err := n.chat(ctx, tx, row)
	if err != nil || !there {
		return err
	}
	var who []id.Person
	if n.Asks != nil {
		if who, err = n.Asks(ctx, tx, row, p); err != nil {
			return err
		}
	}
	return n.show(ctx, tx, row, who, asksFor, card...)
}

// show shows a card where a change was asked for, and to these persons where they are alone with the assistant: one question, however many
// messages show it. The first is the one that they are opened by there.
func (n *Origin) show(ctx context.Context, tx store.Tx, row change.Row, who []id.Person, opening string, card ...message.Out) error {
	first, there, err := n.chat(ctx, tx, row)
	if err != nil || !there {
		return err
	}
	if err := n.tellIn(ctx, tx, row, first, card...); err != nil {
		return err
	}
	where, err := tx.Conversation(ctx, first.Conversation)
	if err != nil {
		return err
	}
	others, err := directs(ctx, tx, where, who)
	if err != nil {
		return err
	}
	told := slices.Clone(card)
	told[0].Text = fmt.Sprintf(opening, row.Request.Group, inert.Quoted(n.secrets.Redact(where.Name), 80), where.Platform) + told[0].Text
	for i := range told {
		told[i].Lane = message.Notice // it is the host that speaks there
	}
	for _, chat := range others {
		if err := n.tellIn(ctx, tx, row, chat, told...); err != nil {
			return err
		}
	}
	return nil
}

// TellAlone tells somebody something that is about no change, wherever the host itself speaks with them alone. Where exactly these words
// stand already among the latest, they are not said again: who is not sure whether they were said may say them once more.
func (n *Origin) TellAlone(ctx context.Context, tx store.Tx, who id.Person, text string) error {
	people, err := tx.People(ctx)
	if err != nil {
		return err
	}
	text = n.secrets.Redact(text)
	for _, k := range people {
		if k.ID != who {
			continue
		}
		for _, a := range k.Accounts {
			chat, ok, err := DirectChat(ctx, tx, a)
			if err != nil {
				return err
			}
			if !ok {
				continue
			}
			said, err := tx.NewestOuts(ctx, chat.ID, lately)
			if err != nil {
				return err
			}
			if slices.ContainsFunc(said, func(o message.Out) bool { return o.Text == text }) {
				continue
			}
			if _, err := tx.PutOut(ctx, message.Out{ID: id.NewOut(), Chat: chat.ID, Turn: chat.Turn, Lane: message.Notice, At: Now(), Text: text}); err != nil {
				return fmt.Errorf("tell %s in a conversation: %w", who, err)
			}
		}
	}
	return nil
}

// lately is how many messages of a chat are the latest.
const lately = 50

// directs are the chats in which these persons are alone with the assistant, in other conversations than one. Who is at a terminal there is
// at no other.
func directs(ctx context.Context, tx store.Tx, but conversation.Conversation, who []id.Person) (all []conversation.Chat, err error) {
	people, err := tx.People(ctx)
	if err != nil {
		return nil, err
	}
	for _, k := range people {
		if !slices.Contains(who, k.ID) {
			continue
		}
		for _, a := range k.Accounts {
			if but.ID == a.Direct || but.Platform == conversation.Terminal && a.Identity.Platform == person.Terminal &&
				strings.HasPrefix(but.Address, a.Account+"/") {
				continue
			}
			chat, ok, err := DirectChat(ctx, tx, a)
			if err != nil {
				return nil, err
			}
			if ok {
				all = append(all, chat)
			}
		}
	}
	return all, nil
}
