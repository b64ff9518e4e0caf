package dispatch

import (
	"context"
	"errors"

	"sallyport/internal/base/audit"
	"sallyport/internal/base/id"
	"sallyport/internal/base/problem"
	"sallyport/internal/chat/decide"
	"sallyport/internal/chat/message"
	"sallyport/internal/drive/ledger"
	"sallyport/internal/store"
	"sallyport/internal/who/question"
)

// admits reports whether a question is about a stranger or a place. An answer to it does something, so it ends by admit and by nothing else.
func admits(q question.Question) bool { return q.Kind == question.Sender || q.Kind == question.Channel }

// Admit answers a question about a stranger or a place by its name, in words that its card takes, and says what came of it.
//
// Errors: problem.NotFound; problem.Usage for words that are no answer; problem.Denied; problem.Conflict if it was answered otherwise.
func (v Voices) Admit(ctx context.Context, of id.Question, words string, by audit.Actor) (told string, err error) {
	d := decider(v)
	what := message.Decision{Kind: decide.Decided, Asks: message.CardAdmission, Question: of, By: by}
	err = d.DB.Read(ctx, func(tx store.Tx) error {
		q, err := tx.Question(ctx, of)
		if err != nil {
			return err
		}
		next := "sallyport approval show " + string(of)
		if !admits(q) {
			return problem.Errorf(problem.Usage, "sallyport approval list", "%s is about no stranger and no place", of)
		}
		card := decide.Card{Asks: decide.Admission}
		if err := d.asks(ctx, tx, &card, message.Out{Card: message.CardAdmission}, q); err != nil {
			return err
		}
		answer, ok := card.Read(words)
		switch {
		case !ok:
			return problem.Errorf(problem.Usage, next, "%q is no answer to %s", short(words), of)
		case answer.Does == decide.Choose && answer.Option == CreateNew:
			return problem.Errorf(problem.Usage, next, "a new group has a name: answer %s with %q and the name", of, CreateNew)
		}
		what.Does, what.Option = answer.Does, answer.Option
		return nil
	})
	if err != nil {
		return "", err
	}
	if err := d.admit(ctx, what); err != nil {
		return "", err
	}
	told, _ = done(what)
	return told, nil
}

// admit records an answer about a stranger or a place, and does what it says. The same answer of the same person does nothing again.
func (d decider) admit(ctx context.Context, what message.Decision) error {
	if err := d.unlessQuiet(what); err != nil {
		return err
	}
	if d.Admissions == nil {
		return problem.Errorf(problem.Unavailable, "sallyport channel list", "this daemon speaks with no platform")
	}
	admit, err := d.Admissions.Prepare(ctx, what)
	if err != nil {
		return err
	}
	key := what.Option
	if what.Does == decide.Name {
		key = CreateNew
	}
	err = d.DB.InTx(ctx, func(tx store.Tx) error {
		q, err := tx.Question(ctx, what.Question)
		if err != nil {
			return err
		}
		if q.Outcome != question.Waiting {
			return answered(q, key, what.By)
		}
		may, err := d.Admissions.May(ctx, tx, q, what.By)
		if err != nil {
			return err
		}
		q, err = d.decideAs(ctx, tx, what.Question, key, Said{By: what.By}, may)
		if err != nil || q.Outcome == question.Waiting {
			return err
		}
		return admit(ctx, tx, q, what.By)
	})
	if errors.Is(err, question.ErrSaid) {
		return nil
	}
	return err
}

// unlessQuiet refuses an answer that would write what a quiet host may not: who may speak, where, and another change. The question waits.
func (d decider) unlessQuiet(what message.Decision) error {
	means := ""
	switch {
	case what.Asks == message.CardAdmission:
		means = "nobody is let in or turned away meanwhile"
	case what.Asks == message.CardPromote && what.Option == ledger.ApplyToTemplate:
		means = "no other change begins meanwhile"
	}
	if d.Quiet == nil || means == "" {
		return nil
	}
	if why := d.Quiet(); why != "" {
		return problem.Errorf(problem.Unavailable, "", "%s, and %s; answer again after that", why, means)
	}
	return nil
}

// answered says to who answers a question that has its answer what that is: question.ErrSaid to who gave it.
func answered(q question.Question, key string, by audit.Actor) error {
	if a := q.Answer; a != nil && a.By.Person == by.Person && a.Option == key {
		return question.ErrSaid
	}
	return problem.Case(question.ErrEnded, "sallyport approval show "+string(q.ID), "%s", q.Told())
}
