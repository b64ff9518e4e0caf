package storetest

import (
	"context"
	"testing"
	"time"

	"sallyport/internal/base/disk"
	"sallyport/internal/base/id"
	"sallyport/internal/base/problem"
	"sallyport/internal/rule/budget"
	"sallyport/internal/store"
)

func testUsage(t *testing.T, s *suite) {
	c, other := s.addChange(), s.addChange()
	minute := func(n int) time.Time { return budget.At(at(0)).Add(time.Duration(n) * time.Minute) }
	use := func(change id.Change, session id.Session, model string, at, input int) budget.Use {
		return budget.Use{Subject: change.Subject(), Session: session, Model: model, Minute: minute(at), Requests: 1,
			Tokens: budget.Tokens{Input: int64(input), Cached: 10, Output: 1}, Cost: budget.Money(input * 2)}
	}
	add := func(uses ...budget.Use) {
		t.Helper()
		s.do(func(ctx context.Context, tx store.Tx) error {
			for _, u := range uses {
				if err := tx.AddUse(ctx, u); err != nil {
					return err
				}
			}
			return nil
		})
	}
	guessed := use(c.ID, "ses-1", "a", 5, 300)
	guessed.Estimated, guessed.Unpriced, guessed.Cost = 1, 1, 0
	add(use(c.ID, "ses-1", "b", 0, 100), use(c.ID, "ses-1", "a", 5, 200), guessed, use(c.ID, "ses-2", "a", 5, 50), use(other.ID, "ses-3", "a", 5, 7))
	add(use("", "", "a", 6, 1000), use("", "", "a", 6, 1000)) // tried
	if err := s.db.Close(); err != nil {
		t.Fatal(err)
	}
	s.reopen(disk.Ops{})

	var uses []budget.Use
	s.do(func(ctx context.Context, tx store.Tx) (err error) {
		uses, err = tx.Uses(ctx, c.ID.Subject())
		return err
	})
	s.same(uses, []budget.Use{
		{Subject: c.ID.Subject(), Model: "b", Requests: 1, Tokens: budget.Tokens{Input: 100, Cached: 10, Output: 1}, Cost: 200},
		{Subject: c.ID.Subject(), Model: "a", Requests: 3, Estimated: 1, Unpriced: 1, Tokens: budget.Tokens{Input: 550, Cached: 30, Output: 3}, Cost: 500},
	})
	spent := func(of func(ctx context.Context, tx store.Tx) (budget.Spent, error)) (out budget.Spent) {
		t.Helper()
		s.do(func(ctx context.Context, tx store.Tx) (err error) { out, err = of(ctx, tx); return err })
		return out
	}
	of := func(change id.Change) budget.Spent {
		return spent(func(ctx context.Context, tx store.Tx) (budget.Spent, error) { return tx.SpentOf(ctx, change.Subject()) })
	}
	s.same(of(c.ID), budget.Spent{Tokens: 694, Cost: 700})
	s.same(of(other.ID), budget.Spent{Tokens: 18, Cost: 14})
	s.same(of("chg-nowhere0"), budget.Spent{})
	for from, want := range map[int]budget.Spent{
		0: {Tokens: 694 + 18 + 2022, Cost: 700 + 14 + 4000}, 1: {Tokens: 583 + 18 + 2022, Cost: 500 + 14 + 4000},
		5: {Tokens: 583 + 18 + 2022, Cost: 500 + 14 + 4000}, 6: {Tokens: 2022, Cost: 4000}, 7: {},
	} {
		s.same(spent(func(ctx context.Context, tx store.Tx) (budget.Spent, error) { return tx.SpentSince(ctx, minute(from)) }), want)
	}

	// The most that rows hold can be summed, and what is more is not wrapped around.
	most := use(other.ID, "ses-3", "huge", 7, 1)
	most.Input, most.Cost = 1<<62, 1<<62
	for n := range 5 {
		most.Minute = minute(7 + n)
		add(most)
	}
	s.same(of(other.ID), budget.Spent{Tokens: 18 + 5*(1e12+11), Cost: 14 + 5e15})

	s.fails(problem.NotFound, func(ctx context.Context, tx store.Tx) error {
		return tx.AddUse(ctx, use("chg-nowhere0", "ses-1", "a", 1, 1))
	})
	s.fails(problem.Refused, func(ctx context.Context, tx store.Tx) error {
		return tx.AddUse(ctx, use(c.ID, "ses-1", "a\xff", 1, 1))
	})
	crooked, none := use(c.ID, "ses-1", "a", 1, 1), use(c.ID, "ses-1", "a", 1, 1)
	crooked.Minute = crooked.Minute.Add(time.Second)
	none.Requests = 0
	for _, bad := range []budget.Use{crooked, none, use(c.ID, "ses-1", "a", 1, -1)} {
		if err := s.db.InTx(context.Background(), func(tx store.Tx) error { return tx.AddUse(context.Background(), bad) }); err == nil {
			t.Errorf("stored: %+v", bad)
		}
	}
}
