package submit

import (
	"context"

	"sallyport/internal/base/problem"
	"sallyport/internal/drive/grounds"
	"sallyport/internal/path/change"
	"sallyport/internal/store"
)

// endIdle ends a change that has nothing to land by what the checks say of its base: that is no success of the agent's.
func (s *Submissions) endIdle(ctx context.Context, row change.Row, o grounds.Offer) error {
	results, why, err := s.Checks.Check(ctx, row, o)
	if err != nil {
		return err
	}
	if why != nil {
		return s.fail(ctx, row, o, results, problem.Errorf(problem.Refused, "sallyport change show "+string(row.ID),
			"the agent changed nothing, and the base fails its own checks: %w", why), "refused by a check")
	}
	row, err = s.InTx(ctx, row, func(tx store.Tx, row *change.Row) error { return s.Move(ctx, tx, row, grounds.Idled(*row, *o.From)) })
	if err == nil {
		s.Tidy(s.Lasting(), row)
	}
	return err
}
