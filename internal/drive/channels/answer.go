package channels

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"

	"sallyport/internal/base/audit"
	"sallyport/internal/base/id"
	"sallyport/internal/base/problem"
	"sallyport/internal/chat/message"
	"sallyport/internal/chat/wiring"
	"sallyport/internal/port/channel"
	"sallyport/internal/store"
	"sallyport/internal/who/question"
)

// Question returns one about a stranger or a place, whether it waits or not. Errors: problem.NotFound.
func (p Places) Question(ctx context.Context, of id.Question) (q question.Question, err error) {
	err = p.DB.Read(ctx, func(tx store.Tx) error {
		q, err = tx.Question(ctx, of)
		if err == nil && q.Kind != question.Sender && q.Kind != question.Channel {
			err = problem.Errorf(problem.NotFound, "sallyport approval list", "%s is about no stranger and no place", of)
		}
		return err
	})
	return q, err
}

// answeredShown is how many questions that were answered are listed unless somebody asks for another number.
const answeredShown = 100

// Answered returns the questions about strangers and places that have ended, the newest first; limit 0 = 100.
func (p Places) Answered(ctx context.Context, limit int) (all []question.Question, err error) {
	err = p.DB.Read(ctx, func(tx store.Tx) error {
		all, err = tx.EndedQuestions(ctx, cmp.Or(limit, answeredShown), question.Sender, question.Channel)
		return err
	})
	return all, err
}

// Answer answers such a question, in words that its card takes, and says what came of it: whoever else was asked.
func (p Places) Answer(ctx context.Context, of id.Question, words string, by audit.Actor) (told string, err error) {
	return p.Voices.Admit(ctx, of, words, by)
}

// forget drops what waits for a question, if that has ended.
func forget(ctx context.Context, tx store.Tx, of id.Question) error {
	q, err := tx.Question(ctx, of)
	if err != nil || q.Outcome == question.Waiting {
		return err
	}
	p, ok, err := tx.Pending(ctx, of)
	if err != nil || !ok {
		return err
	}
	if k, err := keptBy(p); err == nil { // what cannot be read is forgotten, too
		if err := tx.DropIntake(ctx, k.Intake.Seq, "the question about it has ended"); err != nil {
			return err
		}
	}
	return tx.DropPending(ctx, of)
}

// keptBy reads what a row keeps.
func keptBy(p wiring.Pending) (k kept, err error) {
	if err = json.Unmarshal(p.Event, &k); err != nil {
		err = fmt.Errorf("read what waited for %s: %w", p.Question, err)
	}
	return k, err
}

// kept is what was said, as it waits for a decision.
type kept struct {
	Event  channel.Event  `json:"event"`
	Intake message.Intake `json:"intake"`
	First  channel.Sender `json:"first"` // whom the card names: nobody else becomes a member by it
}
