package sqlite

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"sallyport/internal/base/audit"
	"sallyport/internal/base/id"
	"sallyport/internal/base/problem"
	"sallyport/internal/who/question"
)

// questions are what people are asked and what they answered.
type questions struct{ *queries }

const answerColumns = `question, actor, option, text, edit, via, at`

// questionRows are questions with the answer that ended them.
const questionRows = `SELECT ` + questionColumns + ` FROM question AS q LEFT JOIN answer AS a ON a.seq = q.answer`

const questionColumns = `q.id, q.kind, q.subject, q.card, q.digest, q.options, q.words, q.need, q.asked_at, q.outcome, q.ended_at, q.reason,
	a.question, a.actor, a.option, a.text, a.edit, a.via, a.at`

const openQuestions = ` WHERE q.subject = ? AND q.outcome IS NULL ORDER BY q.seq`

// AddQuestion stores one that waits.
func (t questions) AddQuestion(ctx context.Context, q question.Question) error {
	what := fmt.Sprintf("store question %q", q.ID)
	if q.Outcome != question.Waiting || q.Answer != nil {
		return problem.Errorf(problem.Internal, "", "%s: it begins as %q", what, q.Outcome)
	}
	if err := exact(what, q); err != nil {
		return err
	}
	card, err := encode(q.Card)
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	options, err := encode(q.Options)
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	_, err = t.write(ctx, "ask", `INSERT INTO question (id, kind, subject, card, digest, options, words, need, asked_at, reason)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, '')`, q.ID, q.Kind, q.Subject, card, q.Digest, options, q.Words, q.Need, ms(q.Asked))
	switch {
	case duplicate(err):
		return problem.Errorf(problem.Conflict, "sallyport approval list", "%s: a person has been asked about %q already: %w", what, q.Subject, err)
	case orphan(err):
		return problem.Errorf(problem.NotFound, "sallyport change list", "%s: there is no %q to ask about", what, q.Subject)
	case err != nil:
		return fmt.Errorf("%s: %w", what, err)
	}
	return nil
}

// Question returns one.
func (t questions) Question(ctx context.Context, id id.Question) (question.Question, error) {
	one, ok, err := firstOf(t.list(ctx, ` WHERE q.id = ?`, id))
	if err == nil && !ok {
		return one, problem.Errorf(problem.NotFound, "sallyport approval list", "there is no question %q in this home", id)
	}
	return one, doing(err, "read question %q", id)
}

// OpenQuestions returns those of a subject that wait, oldest first.
func (t questions) OpenQuestions(ctx context.Context, subject id.Subject) ([]question.Question, error) {
	all, err := t.list(ctx, openQuestions, subject)
	return all, doing(err, "list the open questions of %q", subject)
}

// EndedQuestions returns those of some kinds that have their outcome, newest first.
func (t questions) EndedQuestions(ctx context.Context, limit int, kinds ...question.Kind) ([]question.Question, error) {
	of, err := encode(kinds)
	if err != nil {
		return nil, fmt.Errorf("list the questions that have ended: %w", err)
	}
	all, err := t.list(ctx, ` WHERE q.outcome IS NOT NULL AND q.kind IN (SELECT value FROM json_each(?)) ORDER BY q.seq DESC LIMIT +?`, of, limit)
	return all, doing(err, "list the questions that have ended")
}

func (t questions) list(ctx context.Context, where string, args ...any) ([]question.Question, error) {
	return rows(ctx, t.queries, scanQuestion, questionRows+where, args...)
}

func scanQuestion(row scanner, q *question.Question) error {
	var card, options string
	var asked, ended, at sql.NullInt64
	var outcome, of, actor, option, text, edit, via sql.NullString
	err := row.Scan(&q.ID, &q.Kind, &q.Subject, &card, &q.Digest, &options, &q.Words, &q.Need, &asked, &outcome, &ended, &q.Reason,
		&of, &actor, &option, &text, &edit, &via, &at)
	if err != nil {
		return err
	}
	q.Asked, q.Outcome, q.Ended = clock(asked), question.Outcome(outcome.String), maybe(ended)
	if q.Card, err = decode[question.Card](card); err != nil {
		return err
	}
	if q.Options, err = decode[[]question.Option](options); err != nil || !of.Valid {
		return err
	}
	q.Answer = &question.Answer{Question: id.Question(of.String), Option: option.String, Text: text.String, Edit: edit.String, Via: via.String, At: clock(at)}
	q.Answer.By, err = decode[audit.Actor](actor.String)
	return err
}

// Answers returns what people said to one, in the order in which it came.
func (t questions) Answers(ctx context.Context, id id.Question) ([]question.Answer, error) {
	all, err := rows(ctx, t.queries, func(row scanner, a *question.Answer) error {
		var actor string
		var at sql.NullInt64
		err := row.Scan(&a.Question, &actor, &a.Option, &a.Text, &a.Edit, &a.Via, &at)
		if err == nil {
			a.By, err = decode[audit.Actor](actor)
		}
		a.At = clock(at)
		return err
	}, `SELECT `+answerColumns+` FROM answer WHERE question = ? ORDER BY seq`, id)
	return all, doing(err, "read the answers to %q", id)
}

// AddAnswer adds one to a question that waits.
func (t questions) AddAnswer(ctx context.Context, a question.Answer) error {
	what := fmt.Sprintf("add an answer to %q", a.Question)
	if err := exact(what, a); err != nil {
		return err
	}
	actor, err := encode(a.By)
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	n, err := t.write(ctx, "answer", `INSERT INTO answer (`+answerColumns+`, person, identity)
		SELECT id, ?, ?, ?, ?, ?, ?, ?, ? FROM question WHERE id = ? AND outcome IS NULL`,
		actor, a.Option, a.Text, a.Edit, a.Via, ms(a.At), a.By.Person, a.By.Identity, a.Question)
	switch {
	case duplicate(err):
		return problem.Case(question.ErrAnswered, "", "%s: %s has answered already", what, a.By.Name)
	case orphan(err):
		return problem.Errorf(problem.NotFound, "sallyport status", "%s: this home knows no person %q", what, a.By.Person)
	case err != nil:
		return fmt.Errorf("%s: %w", what, err)
	case n == 0:
		return t.ended(ctx, what, a.Question)
	}
	return nil
}

// EndQuestion writes the outcome, once.
func (t questions) EndQuestion(ctx context.Context, id id.Question, o question.Outcome, reason string, at time.Time) error {
	what := fmt.Sprintf("end question %q", id)
	if o == question.Waiting {
		return problem.Errorf(problem.Internal, "", "%s: %q is no outcome", what, o)
	}
	n, err := t.write(ctx, "end-question", `UPDATE question SET outcome = ?1, ended_at = ?2, reason = ?3,
		answer = CASE WHEN ?1 = 'void' THEN NULL ELSE (SELECT max(seq) FROM answer WHERE answer.question = question.id) END
		WHERE id = ?4 AND outcome IS NULL`, o, ms(at), plain(reason), id)
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	if n == 0 {
		return t.ended(ctx, what, id)
	}
	return nil
}

// ended says that a question waits no more, or that there is none.
func (t questions) ended(ctx context.Context, what string, id id.Question) error {
	q, err := t.Question(ctx, id)
	if err != nil {
		return err
	}
	return problem.Case(question.ErrEnded, "", "%s: %s", what, q.Told())
}
