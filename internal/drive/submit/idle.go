package submit

import (
	"context"
	"fmt"

	"sallyport/internal/base/audit"
	"sallyport/internal/base/problem"
	"sallyport/internal/drive/judge"
	"sallyport/internal/drive/ledger"
	"sallyport/internal/path/change"
	"sallyport/internal/path/checkpoint"
	"sallyport/internal/store"
)

// Idled ends a change whose agent changed nothing.
func Idled(row change.Row, cp checkpoint.Checkpoint) ledger.Move {
	return ledger.Move{
		Event: change.Unchanged, By: audit.Host, Subject: string(cp.ID), Verb: "checked", Outcome: change.NothingToDo,
		Reason: unchanged(cp), Next: "sallyport change log " + string(row.ID), Digests: map[string]string{"tree": string(cp.Tree)},
	}
}

// endIdle ends a change that has nothing to land by what the checks say of its base: that is no success of the agent's.
func (s *Submissions) endIdle(ctx context.Context, row change.Row, o judge.Offer) error {
	results, why, err := s.Checks.Check(ctx, row, o)
	if err != nil {
		return err
	}
	if why != nil {
		return s.fail(ctx, row, o, results, problem.Errorf(problem.Refused, "sallyport change show "+string(row.ID),
			"the agent changed nothing, and the base fails its own checks: %w", why), "refused by a check")
	}
	row, err = s.InTx(ctx, row, func(tx store.Tx, row *change.Row) error { return s.Move(ctx, tx, row, Idled(*row, *o.From)) })
	if err == nil {
		s.Tidy(s.Lasting(), row)
	}
	return err
}

// unchanged says what an agent did that changed nothing.
func unchanged(cp checkpoint.Checkpoint) string {
	files := 0
	for _, l := range cp.LeftOver {
		files += l.Files
	}
	if files == 0 {
		return "nothing to do: the agent changed nothing"
	}
	return fmt.Sprintf("nothing to do: the agent wrote only files that the repository ignores (%d of them; --include-ignored GLOB takes such files along)", files)
}
