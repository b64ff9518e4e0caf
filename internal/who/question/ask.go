package question

import (
	"context"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"sallyport/internal/base/id"
	"sallyport/internal/base/problem"
)

// Limits of what is asked and answered, in bytes.
const (
	CardBytesMax  = 32 << 10
	LabelBytesMax = 1 << 10
	OptionsMax    = 20
	TextBytesMax  = 16 << 10
)

// Put asks q: from here on it waits, also through restarts.
func Put(ctx context.Context, tx Tx, q Question) error {
	if err := q.good(); err != nil {
		return fmt.Errorf("ask %s: %w", q.ID, err)
	}
	if err := tx.AddQuestion(ctx, q); err != nil {
		return fmt.Errorf("ask %s: %w", q.ID, err)
	}
	return nil
}

// good returns why q cannot be asked: what is shown is bounded, and every answer can be given and told from the others.
func (q Question) good() error {
	bad := func(format string, args ...any) error {
		return problem.Errorf(problem.Refused, "", format, args...)
	}
	shown := len(q.Card.Title)
	texts := append([]string{q.Card.Title}, q.Card.Lines...)
	for _, line := range q.Card.Lines {
		shown += len(line)
	}
	switch {
	case q.Outcome != Waiting || q.Ended != nil || q.Answer != nil:
		return bad("the question has ended before it was asked")
	case q.Need < 1:
		return bad("the question needs nobody's answer")
	case shown > CardBytesMax:
		return bad("the card has %d bytes; %d is the limit", shown, CardBytesMax)
	case len(q.Options) > OptionsMax:
		return bad("the question has %d options; %d is the limit", len(q.Options), OptionsMax)
	case len(q.Options) == 0 && !q.Words:
		return bad("the question has no answer")
	}
	for _, o := range q.Options {
		if o.Key == "" || o.Key == string(Said) || o.Key == string(Void) {
			return bad("no option can have the key %q", o.Key)
		}
		if strings.TrimSpace(o.Label) == "" || len(o.Label) > LabelBytesMax {
			return bad("option %s has %d bytes; 1 to %d are good", o.Key, len(o.Label), LabelBytesMax)
		}
		texts = append(texts, o.Key, o.Label)
	}
	if err := q.distinct(); err != nil {
		return err
	}
	for _, text := range texts {
		if !utf8.ValidString(text) {
			return bad("the question has a text that is not UTF-8")
		}
	}
	return nil
}

// distinct refuses options of which one answer may mean two. It says what to do to who asked, an agent most of all.
func (q Question) distinct() error {
	for i, o := range q.Options {
		for _, said := range []string{fmt.Sprint(i + 1), o.Key, o.Label} {
			key, _, err := q.Read(said)
			switch {
			case err == nil && key == o.Key:
			case said == o.Label:
				return problem.Errorf(problem.Refused, "",
					"option %d, %q, cannot be told from another: its label is the number or the label of one. Ask again with labels that differ, and that say more than a number, such as \"%s of them\"", i+1, o.Label, o.Label)
			default:
				return problem.Errorf(problem.Refused, "",
					"option %d, %q, cannot be told from another by its number: a label is that number. Ask again with labels that say more than a number", i+1, o.Label)
			}
		}
	}
	return nil
}

// Withdraw ends a question that nobody needs to answer any more; nothing happens if it has ended.
func Withdraw(ctx context.Context, tx Tx, ref id.Question, why string, at time.Time) error {
	q, err := tx.Question(ctx, ref)
	if err != nil || q.Outcome != Waiting {
		return err
	}
	if err := tx.EndQuestion(ctx, ref, Void, why, at); err != nil {
		return fmt.Errorf("withdraw %s: %w", ref, err)
	}
	return nil
}

// WithdrawAll ends the questions of a kind that wait for an answer about subject.
func WithdrawAll(ctx context.Context, tx Tx, subject id.Subject, kind Kind, why string, at time.Time) error {
	open, err := tx.OpenQuestions(ctx, subject)
	if err != nil {
		return err
	}
	for _, q := range open {
		if q.Kind != kind {
			continue
		}
		if err := tx.EndQuestion(ctx, q.ID, Void, why, at); err != nil {
			return fmt.Errorf("withdraw %s: %w", q.ID, err)
		}
	}
	return nil
}
