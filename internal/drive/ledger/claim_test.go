package ledger_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"sallyport/internal/base/lock"
	"sallyport/internal/base/problem"
	"sallyport/internal/drive/ledger"
	"sallyport/internal/path/change"
	"sallyport/internal/path/landing"
	"sallyport/internal/store"
)

func TestAStepWhoseLeaseWentToAnotherWritesNothingMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := open(t)
		b.add(change.Requested)
		mine, ok, err := b.Claim(t.Context(), "")
		if err != nil || !ok {
			t.Fatal(ok, err)
		}
		if _, ok, err := b.Claim(t.Context(), ""); ok || err != nil {
			t.Fatalf("two hold one change: %v", err)
		}
		if err := b.StillOurs(t.Context(), &mine); err != nil {
			t.Error(err)
		}

		other := on(t, b, b.DB)
		time.Sleep(ledger.LeaseTTL + time.Second)
		theirs, ok, err := other.Claim(t.Context(), "")
		if err != nil || !ok || theirs.ID != mine.ID || theirs.Fence <= mine.Fence {
			t.Fatalf("%+v, %v, %v", theirs, ok, err)
		}
		for name, step := range map[string]func(tx store.Tx) error{
			"moves": func(tx store.Tx) error {
				row := mine
				return b.Move(t.Context(), tx, &row, ledger.Move{Event: change.Accepted})
			},
			"waits":    func(tx store.Tx) error { row := mine; return b.Postpone(t.Context(), tx, &row, errors.New("busy")) },
			"goes on":  func(store.Tx) error { return b.StillOurs(t.Context(), &mine) },
			"looks":    func(tx store.Tx) error { row := mine; return ledger.Refresh(t.Context(), tx, &row) },
			"is alive": func(tx store.Tx) error { return tx.RenewClaim(t.Context(), mine, ledger.Now(), ledger.LeaseTTL) },
		} {
			if err := b.DB.InTx(t.Context(), step); !errors.Is(err, change.ErrMoved) && !errors.Is(err, lock.ErrLost) {
				t.Errorf("who lost the lease %s: %v", name, err)
			}
		}
		if at := b.row(mine.ID); at.State != change.Requested || at.Fence != theirs.Fence || at.Attempts != 0 || len(b.entries()) > 0 {
			t.Errorf("it is %+v, and the log has %q", at, b.entries())
		}
		b.do(func(tx store.Tx) error {
			row := theirs
			row.Reason = "not as it is stored"
			err := ledger.Refresh(t.Context(), tx, &row)
			if row.Reason != "" {
				t.Errorf("who holds it reads %q", row.Reason)
			}
			return err
		})
	})
}

// TestAWishToCancelThatComesBeforeItsStepBeginsIsHeard holds that nobody waits for a step to stop that does not know.
func TestAWishToCancelThatComesBeforeItsStepBeginsIsHeard(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := open(t)
		b.add(change.Working)
		mine, ok, err := b.Claim(t.Context(), "")
		if err != nil || !ok || mine.Cancel {
			t.Fatalf("%+v, %v, %v", mine, ok, err)
		}
		b.do(func(tx store.Tx) error { return tx.RequestCancel(t.Context(), mine.ID) })
		if err := b.StillOurs(t.Context(), &mine); err != nil || !mine.Cancel {
			t.Errorf("the step does not know of the wish: %+v, %v", mine, err)
		}
	})
}

func TestALeaseThatIsRenewedStaysAndOneThatIsLostEndsTheStep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := open(t)
		b.add(change.Requested)
		mine, _, err := b.Claim(t.Context(), "")
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancelCause(t.Context())
		ended := make(chan struct{})
		go func() { b.Renew(ctx, cancel, mine); close(ended) }()
		time.Sleep(3 * ledger.LeaseTTL)
		other := on(t, b, b.DB)
		if _, ok, err := other.Claim(t.Context(), ""); ok || err != nil || ctx.Err() != nil {
			t.Fatalf("a lease that is renewed went to another: %v, %v", err, context.Cause(ctx))
		}
		if err := other.TakeOver(t.Context()); err != nil {
			t.Fatal(err)
		}
		if _, ok, err := other.Claim(t.Context(), ""); !ok || err != nil {
			t.Fatal("a daemon that starts does not take the work of the one before", err)
		}
		<-ended
		if cause := context.Cause(ctx); !errors.Is(cause, lock.ErrLost) || !strings.Contains(cause.Error(), string(mine.ID)) {
			t.Errorf("the step ended because of %v", cause)
		}
	})
}

func TestWhoStopsKeepsItsOwnLeases(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := open(t)
		b.add(change.Requested)
		mine, _, err := b.Claim(t.Context(), "")
		if err != nil {
			t.Fatal(err)
		}
		if err := b.TakeOver(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := b.StillOurs(t.Context(), &mine); err != nil || b.row(mine.ID).Until.IsZero() {
			t.Errorf("%v", err)
		}
		ctx, cancel := context.WithCancelCause(t.Context())
		ended := make(chan struct{})
		go func() { b.Renew(ctx, cancel, mine); close(ended) }()
		stopped := errors.New("stopped")
		cancel(stopped)
		<-ended
		if cause := context.Cause(ctx); cause != stopped {
			t.Error(cause)
		}
	})
}

func TestAStepThatCannotGoOnWaitsLongerEachTime(t *testing.T) {
	for name, c := range map[string]struct {
		state    change.State
		because  error
		attempts int
		wait     time.Duration
		counts   bool
		next     string
	}{
		"at first":                {change.Working, errors.New("busy"), 0, time.Second, true, ""},
		"the third time":          {change.Working, errors.New("busy"), 2, 4 * time.Second, true, ""},
		"and no longer than that": {change.Working, errors.New("busy"), 50, 64 * time.Second, true, ""},
		"on trial":                {change.InTrial, errors.New("busy"), 50, 4 * time.Second, true, ""},
		"behind a trial":          {change.Landing, problem.Case(ledger.ErrOnTrial, "wait", "it waits"), 3, time.Second, false, "wait"},
		"behind a landing":        {change.Landing, landing.ErrBusy, 3, time.Second, false, ""},
		"behind a lock":           {change.Landing, landing.ErrLocked, 3, 8 * time.Second, true, problem.Of(landing.ErrLocked).Next},
		"where nobody reads it":   {change.Working, problem.Case(landing.ErrLocked, "wait", "it waits"), 0, time.Second, true, ""},
		"a way back":              {change.RollbackFailed, problem.Errorf(problem.Unavailable, "cat "+planted, "it holds %s", planted), 0, time.Second, true, "cat [secret"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := open(t)
				row := b.add(c.state, func(r *change.Row) {
					r.Attempts, r.Holder, r.Until = c.attempts, "d", ledger.Now().Add(time.Hour)
				})
				before := ledger.Now()
				b.do(func(tx store.Tx) error { return b.Postpone(t.Context(), tx, &row, c.because) })
				at := b.row(row.ID)
				if wait := at.Due.Sub(before); wait != c.wait {
					t.Errorf("it waits %s, want %s", wait, c.wait)
				}
				if (at.Attempts > c.attempts) != c.counts || at.Holder != "" || !at.Until.IsZero() || at.State != c.state || strings.Contains(at.Reason+at.Next, planted) || at.Reason == "" {
					t.Errorf("it is %+v", at)
				}
				if !strings.HasPrefix(at.Next, c.next) || c.next == "" && at.Next != "" {
					t.Errorf("next is %q, want %q", at.Next, c.next)
				}
			})
		})
	}
}

func TestTheReconcilerSleepsUntilSomethingIsDueOrPoked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := open(t)
		slept := func() time.Duration {
			begin := time.Now()
			if err := b.Sleep(t.Context()); err != nil {
				t.Error(err)
			}
			return time.Since(begin)
		}
		if b.Owes(t.Context()) {
			t.Error("an empty home owes something")
		}
		b.Poke()
		b.Poke() // for nothing, which does no harm
		if took := slept(); took != 0 {
			t.Errorf("poked, it slept %s", took)
		}
		b.add(change.Requested, func(c *change.Row) { c.Due = ledger.Now().Add(time.Minute) })
		if _, ok, err := b.Claim(t.Context(), ""); ok || err != nil || !b.Owes(t.Context()) {
			t.Errorf("what is not due was claimed: %v, %v", ok, err)
		}
		if took := slept(); took < 59*time.Second || took > 61*time.Second {
			t.Errorf("it slept %s", took)
		}
		if _, ok, err := b.Claim(t.Context(), ""); !ok || err != nil {
			t.Errorf("what is due was not claimed: %v", err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := b.Sleep(ctx); err != nil {
			t.Errorf("a daemon that ends: %v", err)
		}
	})
}

func TestNothingBeginsBesideTheStepsOnceTheDaemonEnds(t *testing.T) {
	b := open(t)
	life, end := context.WithCancel(t.Context())
	b.Begin(life)
	if b.Lasting() != life {
		t.Error("what lasts is not the daemon's life")
	}
	running, let := make(chan struct{}), make(chan struct{})
	b.Aside(func(ctx context.Context) { close(running); <-ctx.Done(); close(let) })
	<-running
	end()
	b.Aside(func(context.Context) { t.Error("it began after the end") })
	b.EndAsides()
	select {
	case <-let:
	default:
		t.Error("what ran beside the steps was not waited for")
	}
}
