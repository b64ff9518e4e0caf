package question

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
	"unicode/utf8"

	"sallyport/internal/base/audit"
	"sallyport/internal/base/id"
	"sallyport/internal/base/problem"
	"sallyport/internal/rule/right"
	"sallyport/internal/who/person"
)

// Saying is a person's answer on its way.
type Saying struct {
	ID   id.Question
	Need right.Need  // who may answer, and how many it takes, at the moment of use
	By   audit.Actor // as a door recognized them

	Option string // key; "" = in words
	Text   string // words, or the reason for what was chosen
	Edit   string // digest of what they changed
	Via    string
	At     time.Time
}

// Say adds an answer, and ends the question if that fulfils its need. It returns the question as it stands then.
//
// Errors, with nothing changed: person.ErrNotOwner; ErrSaid if the same person said the same before, which a door may report
// as success; ErrEnded, which names who was first; ErrAnswered; a usage error if it is no answer to this question.
func Say(ctx context.Context, tx Tx, s Saying) (Question, error) {
	q, err := tx.Question(ctx, s.ID)
	if err != nil {
		return q, err
	}
	if s.By.Kind != "person" || s.By.Person == "" || !slices.Contains(s.Need.May, s.By.Person) {
		return q, problem.Case(person.ErrNotOwner, "", "%q may not answer %s", s.By.Name, s.ID)
	}
	before, err := tx.Answers(ctx, s.ID)
	if err != nil {
		return q, err
	}
	a := Answer{Question: q.ID, By: s.By, Option: s.Option, Text: s.Text, Edit: s.Edit, Via: s.Via, At: s.At}
	err = q.takes(a, before)
	switch {
	case errors.Is(err, ErrSaid) && q.Outcome == Waiting && q.lateFor(a, before, s.Need):
		a = before[len(before)-1]
	case err != nil:
		return q, err
	default:
		if err := tx.AddAnswer(ctx, a); err != nil {
			return q, fmt.Errorf("answer %s: %w", q.ID, err)
		}
		before = append(before, a)
	}
	if !q.fulfilled(before, s.Need) {
		return q, nil
	}
	if err := tx.EndQuestion(ctx, q.ID, a.outcome(), "", s.At); err != nil {
		return q, fmt.Errorf("answer %s: %w", q.ID, err)
	}
	q.Outcome, q.Answer, q.Ended = a.outcome(), &a, &s.At
	return q, nil
}

// lateFor reports whether what was answered would end q by now: fewer are needed than when they said so.
func (q Question) lateFor(a Answer, before []Answer, need right.Need) bool {
	return before[len(before)-1].outcome() == a.outcome() && q.fulfilled(before, need)
}

// takes returns why a is no answer to q, which people have answered as before says.
func (q Question) takes(a Answer, before []Answer) error {
	for _, old := range before {
		if old.By.Person != a.By.Person {
			continue
		}
		if old.Option == a.Option && old.Text == a.Text && old.Edit == a.Edit {
			return fmt.Errorf("answer %s: %w", q.ID, ErrSaid)
		}
		if q.Outcome == Waiting {
			return problem.Case(ErrAnswered, "", "%s has answered already, and others are waited for", a.By.Name)
		}
	}
	if q.Outcome != Waiting {
		return problem.Case(ErrEnded, "", "%s", q.Told())
	}
	_, known := q.Option(a.Option)
	switch {
	case a.Option != "" && !known:
		return problem.Errorf(problem.Usage, "", "%q is none of the answers to %s", a.Option, q.ID)
	case a.Option == "" && !q.Words:
		return problem.Errorf(problem.Usage, "", "%s takes one of its %d options, and no words", q.ID, len(q.Options))
	case a.Option == "" && a.Text == "":
		return problem.Errorf(problem.Usage, "", "an answer to %s says something", q.ID)
	case len(a.Text) > TextBytesMax || !utf8.ValidString(a.Text):
		return problem.Errorf(problem.Usage, "", "an answer to %s has more than %d bytes, or is not UTF-8", q.ID, TextBytesMax)
	}
	return nil
}

// fulfilled reports whether the newest of all answers ends q: as many people as are needed have chosen the same, of those who may at this
// moment.
func (q Question) fulfilled(all []Answer, need right.Need) bool {
	last := all[len(all)-1].outcome()
	if o, _ := q.Option(string(last)); o.Alone {
		return true
	}
	must := len(need.Must) == 0 || slices.ContainsFunc(all, func(a Answer) bool { return a.outcome() == last && slices.Contains(need.Must, a.By.Person) })
	return must && q.Given(all, need) >= cmp.Or(need.Yeses, q.Need)
}

// Given is how many have chosen what the newest of all answers chose, of those who may at this moment.
func (q Question) Given(all []Answer, need right.Need) (n int) {
	for _, a := range all {
		if a.outcome() == all[len(all)-1].outcome() && slices.Contains(need.May, a.By.Person) {
			n++
		}
	}
	return n
}
