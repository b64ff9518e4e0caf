// Package questiontest is a table of questions in memory.
package questiontest

import (
	"context"
	"slices"
	"time"

	"sallyport/internal/base/id"
	"sallyport/internal/base/problem"
	"sallyport/internal/who/question"
)

// Table is what question.Tx asks, for one user at a time.
type Table struct {
	Asked []question.Question
	Said  []question.Answer // in the order in which they came
}

var _ question.Tx = (*Table)(nil)

func (t *Table) at(ref id.Question) int {
	return slices.IndexFunc(t.Asked, func(q question.Question) bool { return q.ID == ref })
}

// AddQuestion stores one that waits.
func (t *Table) AddQuestion(_ context.Context, q question.Question) error {
	if t.at(q.ID) >= 0 {
		return problem.Errorf(problem.Conflict, "", "there is a question %s", q.ID)
	}
	t.Asked = append(t.Asked, q)
	return nil
}

// Question returns one.
func (t *Table) Question(_ context.Context, ref id.Question) (question.Question, error) {
	i := t.at(ref)
	if i < 0 {
		return question.Question{}, problem.Errorf(problem.NotFound, "", "there is no question %s", ref)
	}
	return t.Asked[i], nil
}

// OpenQuestions returns those of a subject that wait.
func (t *Table) OpenQuestions(_ context.Context, subject id.Subject) (open []question.Question, err error) {
	for _, q := range t.Asked {
		if q.Subject == subject && q.Outcome == question.Waiting {
			open = append(open, q)
		}
	}
	return open, nil
}

// Answers returns what people said to one.
func (t *Table) Answers(_ context.Context, ref id.Question) (all []question.Answer, err error) {
	for _, a := range t.Said {
		if a.Question == ref {
			all = append(all, a)
		}
	}
	return all, nil
}

// AddAnswer adds one to a question that waits.
func (t *Table) AddAnswer(ctx context.Context, a question.Answer) error {
	q, err := t.Question(ctx, a.Question)
	if err != nil {
		return err
	}
	if q.Outcome != question.Waiting {
		return question.ErrEnded
	}
	if slices.ContainsFunc(t.Said, func(old question.Answer) bool { return old.Question == a.Question && old.By.Person == a.By.Person }) {
		return question.ErrAnswered
	}
	t.Said = append(t.Said, a)
	return nil
}

// EndQuestion writes the outcome, once.
func (t *Table) EndQuestion(ctx context.Context, ref id.Question, o question.Outcome, reason string, at time.Time) error {
	q, err := t.Question(ctx, ref)
	if err != nil {
		return err
	}
	if q.Outcome != question.Waiting {
		return question.ErrEnded
	}
	q.Outcome, q.Ended, q.Reason = o, &at, reason
	if all, _ := t.Answers(ctx, ref); o != question.Void {
		q.Answer = &all[len(all)-1]
	}
	t.Asked[t.at(ref)] = q
	return nil
}
