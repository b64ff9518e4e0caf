package storetest

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"sallyport/internal/base/audit"
	"sallyport/internal/base/deadman"
	"sallyport/internal/base/problem"
	"sallyport/internal/path/change"
	"sallyport/internal/path/landing"
	"sallyport/internal/path/trial"
	"sallyport/internal/rule/trust"
	"sallyport/internal/store"
)

// addTrial stores a trial of a new change that has landed.
func (s *suite) addTrial(dir string) trial.Trial {
	s.t.Helper()
	c := s.addChange(func(c *change.Row) { c.State = "in_trial" })
	l := s.aLanding(c.ID, dir)
	r := trial.Begin(c.ID, l.ID, trust.Target{Restart: "make restart <\"it\">", Probe: trust.Probe{HTTP: "http://127.0.0.1:1/"}}, time.Minute,
		deadman.Moment{Wall: at(20), Boot: "boot", Up: 7 * time.Hour})
	s.do(func(ctx context.Context, tx store.Tx) error {
		end := at(12)
		closed := l
		closed.State, closed.Ended = landing.Landed, &end
		return errors.Join(tx.AddLanding(ctx, l), tx.CloseLanding(ctx, closed), tx.AddTrial(ctx, r))
	})
	return r
}

func testTrials(t *testing.T, s *suite) {
	read := func(want trial.Trial) {
		t.Helper()
		s.do(func(ctx context.Context, tx store.Tx) error {
			got, ok, err := tx.Trial(ctx, want.Change)
			if s.same(got, want); !ok {
				t.Error("no trial")
			}
			return err
		})
	}
	r := s.addTrial("/src/a")
	read(r)
	s.do(func(ctx context.Context, tx store.Tx) error {
		if _, ok, err := tx.Trial(ctx, "chg-nowhere0"); ok || err != nil {
			t.Errorf("a trial of no change: %v, %v", ok, err)
		}
		return nil
	})
	s.fails(problem.Conflict, func(ctx context.Context, tx store.Tx) error { return tx.AddTrial(ctx, r) })
	orphan := r
	orphan.Change, orphan.Landing = s.addChange().ID, "lnd-nowhere0"
	s.fails(problem.NotFound, func(ctx context.Context, tx store.Tx) error { return tx.AddTrial(ctx, orphan) })
	decided := r
	decided.Handshake = trial.Confirmed
	s.fails(problem.Internal, func(ctx context.Context, tx store.Tx) error { return tx.AddTrial(ctx, decided) })

	// What the step knows, by compare and set.
	asked := r.Asked(deadman.Moment{Wall: at(30), Boot: "boot", Up: 7*time.Hour + time.Minute})
	asked.Restarts = 2
	s.do(func(ctx context.Context, tx store.Tx) error { return tx.MoveTrial(ctx, trial.PendingRestart, asked) })
	read(asked)
	s.fails(change.ErrMoved, func(ctx context.Context, tx store.Tx) error { return tx.MoveTrial(ctx, trial.PendingRestart, r) })
	s.fails(problem.Internal, func(ctx context.Context, tx store.Tx) error {
		return tx.MoveTrial(ctx, trial.Message1Sent, decided)
	})
	// The cap is the database's, too.
	s.fails(problem.Internal, func(ctx context.Context, tx store.Tx) error {
		late := asked
		late.Expires.In = trust.TrialMax + time.Millisecond
		return tx.MoveTrial(ctx, trial.Message1Sent, late)
	})

	// One decision, and it stays.
	s.fails(problem.Internal, func(ctx context.Context, tx store.Tx) error {
		return tx.DecideTrial(ctx, r.Change, trial.Decision{To: trial.Message1Sent, By: alice, At: at(40)})
	})
	decision := trial.Decision{To: trial.RolledBack, By: alice, At: at(40), Reason: "it looks <odd>\n", TimedOut: true}
	s.do(func(ctx context.Context, tx store.Tx) error {
		return tx.DecideTrial(ctx, r.Change, decision)
	})
	back := asked.Decide(decision)
	read(back)
	for _, to := range []trial.Handshake{trial.Confirmed, trial.RolledBack} {
		s.fails(change.ErrMoved, func(ctx context.Context, tx store.Tx) error {
			return tx.DecideTrial(ctx, r.Change, trial.Decision{To: to, By: audit.Host, At: at(41), Reason: "late"})
		})
	}
	restored := back
	restored.Restored, restored.Undoing, restored.Reason, restored.TimedOut = true, "lnd-other000", "another", false
	s.do(func(ctx context.Context, tx store.Tx) error { return tx.MoveTrial(ctx, trial.RolledBack, restored) })
	restored.Reason, restored.TimedOut = back.Reason, true
	read(restored)

	other := s.addTrial("/src/b")
	s.do(func(ctx context.Context, tx store.Tx) error {
		open, err := tx.OpenTrials(ctx)
		s.same(open, []trial.Trial{restored, other})
		if err != nil {
			return err
		}
		c, err := tx.Change(ctx, r.Change)
		if err != nil {
			return err
		}
		c.State = "rolled_back"
		return tx.MoveChange(ctx, "in_trial", c)
	})
	s.do(func(ctx context.Context, tx store.Tx) error {
		open, err := tx.OpenTrials(ctx)
		s.same(open, []trial.Trial{other})
		return err
	})
}

// testTrialRace has confirm, rollback and the end of the time decide at once: exactly one wins.
func testTrialRace(t *testing.T, s *suite) {
	ctx := context.Background()
	for range 20 {
		r := s.addTrial("/src/a")
		var all sync.WaitGroup
		var mu sync.Mutex
		won := []trial.Handshake{}
		for _, to := range []trial.Handshake{trial.Confirmed, trial.RolledBack, trial.RolledBack, trial.Confirmed} {
			all.Go(func() {
				err := s.db.InTx(ctx, func(tx store.Tx) error {
					return tx.DecideTrial(ctx, r.Change, trial.Decision{To: to, By: alice, At: at(50), Reason: "race"})
				})
				mu.Lock()
				defer mu.Unlock()
				if err == nil {
					won = append(won, to)
				} else if !errors.Is(err, change.ErrMoved) {
					t.Error(err)
				}
			})
		}
		all.Wait()
		s.do(func(ctx context.Context, tx store.Tx) error {
			got, _, err := tx.Trial(ctx, r.Change)
			if len(won) != 1 || got.Handshake != won[0] {
				t.Errorf("%q won, the row says %s", won, got.Handshake)
			}
			return err
		})
	}
}
