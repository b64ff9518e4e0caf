package channels

import (
	"context"
	"slices"

	"sallyport/internal/base/id"
	"sallyport/internal/chat/message"
	"sallyport/internal/chat/wiring"
	"sallyport/internal/drive/ledger"
	"sallyport/internal/rule/right"
	"sallyport/internal/store"
	"sallyport/internal/who/group"
	"sallyport/internal/who/person"
	"sallyport/internal/who/question"
)

// asker puts cards before people.
type asker struct{ *Channels }

// show puts a question's card before each of those who are asked, where they are alone with the assistant.
func (k asker) show(ctx context.Context, tx store.Tx, q question.Question, asked []person.Known) error {
	for _, a := range accounts(asked) {
		chat, ok, err := ledger.DirectChat(ctx, tx, a)
		if err != nil {
			return err
		}
		if !ok {
			continue
		}
		_, err = tx.PutOut(ctx, message.Out{
			ID: id.NewOut(), Chat: chat.ID, Lane: message.Notice, Card: message.CardAdmission, Question: q.ID,
			Text: q.Text(), At: ledger.Now(),
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// cardsLooked is how many cards of a chat are looked at beside those that wait.
const cardsLooked = 30

// anew shows a question that waits to who may be asked by now, once all whom it was shown are gone.
func (k asker) anew(ctx context.Context, tx store.Tx, there wiring.Pending) error {
	asked, err := k.approvers(ctx, tx, there.Group)
	if err != nil {
		return err
	}
	for _, a := range accounts(asked) {
		chat, ok, err := ledger.DirectChat(ctx, tx, a)
		if err != nil {
			return err
		}
		if !ok {
			continue
		}
		cards, err := tx.Cards(ctx, chat.Conversation, cardsLooked)
		if err != nil || slices.ContainsFunc(cards, func(o message.Out) bool { return o.Question == there.Question }) {
			return err
		}
	}
	q, err := tx.Question(ctx, there.Question)
	if err != nil || q.Outcome != question.Waiting {
		return err
	}
	return k.show(ctx, tx, q, asked)
}

// accounts are those of some people.
func accounts(of []person.Known) (all []person.Account) {
	for _, k := range of {
		all = append(all, k.Accounts...)
	}
	return all
}

// approvers are who may decide about who talks with a group, or of "" about a place, and can be asked.
func (c *Channels) approvers(ctx context.Context, tx store.Tx, of group.Folder) ([]person.Known, error) {
	people, err := ledger.Entitled(ctx, tx)
	if err != nil {
		return nil, err
	}
	all, err := tx.People(ctx)
	need := right.Admission(string(of), people)
	return slices.DeleteFunc(all, func(k person.Known) bool { return !slices.Contains(need.Ask, k.ID) }), err
}
