package question

import (
	"context"
	"time"

	"sallyport/internal/base/id"
)

// Tx is what questions ask of a transaction.
type Tx interface {
	// AddQuestion stores one that waits. problem.Conflict if there is one of this id, or another swap of the subject waits.
	AddQuestion(ctx context.Context, q Question) error
	// Question returns one; a problem.NotFound error naming it if there is none.
	Question(ctx context.Context, id id.Question) (Question, error)
	// OpenQuestions returns those of a subject that wait, oldest first.
	OpenQuestions(ctx context.Context, subject id.Subject) ([]Question, error)
	// Answers returns what people said to one, in the order in which it came.
	Answers(ctx context.Context, id id.Question) ([]Answer, error)
	// AddAnswer adds one to a question that waits; ErrEnded if it waits no more, ErrAnswered if the person has answered it.
	AddAnswer(ctx context.Context, a Answer) error
	// EndQuestion moves one from waiting to its outcome, compare and set; ErrEnded if it has one. The newest answer ended it,
	// unless the outcome is Void.
	EndQuestion(ctx context.Context, id id.Question, o Outcome, reason string, at time.Time) error
}
