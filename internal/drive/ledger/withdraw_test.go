package ledger_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"sallyport/internal/base/audit"
	"sallyport/internal/base/problem"
	"sallyport/internal/drive/ledger"
	"sallyport/internal/path/change"
	"sallyport/internal/path/landing"
	"sallyport/internal/path/request"
	"sallyport/internal/rule/metric"
	"sallyport/internal/store"
)

// reverting stores a change that was landed, and rollbacks of it.
func (b *book) reverting(n int) (undone change.Row, by []change.Row) {
	undone = b.add(change.Finalized, func(c *change.Row) { c.Due = time.Time{} })
	for range n {
		by = append(by, b.add(change.AwaitingApproval, func(c *change.Row) {
			c.Request.Kind, c.Request.Reverts, c.Request.Reason = request.Revert, undone.ID, "it breaks"
			c.Due = time.Time{}
		}))
	}
	return undone, by
}

func TestWhatACancelMeansDependsOnWhereAChangeStands(t *testing.T) {
	b := open(t)
	for _, state := range change.States() {
		row := b.add(state)
		var event change.Event
		err := b.DB.Read(t.Context(), func(tx store.Tx) (err error) { event, err = b.Withdrawal(t.Context(), tx, row); return err })
		want := change.Cancel
		if state == change.RollbackFailed {
			want = change.GivenUp
		}
		if _, can := state.Next(want); (can == nil) != (err == nil) || err == nil && event != want || err != nil && problem.KindOf(err) != problem.Conflict {
			t.Errorf("%s: %q, %v", state, event, err)
		}
	}
}

func TestWhoGivesUpARollbackIsInTheLogAndItIsNotTriedAgain(t *testing.T) {
	for _, c := range []struct {
		reason, says string
		kind         request.Kind
		landing      landing.State
	}{
		{"", "alice stopped the rollback, and the new files remain", request.Edit, landing.Landed},
		{"I need it", "alice stopped the rollback (I need it), and the new files remain", request.Edit, landing.Landed},
		{"", "alice stopped the rollback, and the old files, which are back, remain", request.Revert, landing.Landed},
		{"", "alice stopped the rollback, and the files stay as they stand, perhaps some old and some new", request.Edit, landing.Stranded},
		{"", "alice stopped the rollback, and the files stay as they stand, perhaps some old and some new", request.Revert, landing.Stranded},
	} {
		b := open(t)
		row := b.add(change.RollbackFailed, func(r *change.Row) { r.Request.Kind = c.kind })
		last := landing.Landing{ID: "lnd-00000001", Change: row.ID, State: landing.Journaled, Project: row.Request.Project, Branch: "main", Started: ledger.Now()}
		b.do(func(tx store.Tx) error {
			if err := tx.AddLanding(t.Context(), last); err != nil {
				return err
			}
			last.State = c.landing
			if last.State == landing.Landed {
				last.Ended = &last.Started
			}
			return tx.CloseLanding(t.Context(), last)
		})
		b.do(func(tx store.Tx) error {
			return b.Withdraw(t.Context(), tx, &row, change.GivenUp, ledger.Withdrawn{By: alice, Reason: c.reason})
		})
		if at := b.row(row.ID); at.State != change.Failed || at.Reason != c.says {
			t.Errorf("it is %s: %q", at.State, at.Reason)
		}
		if l, ok, err := b.Landing(t.Context(), row.ID); err != nil || !ok || l.Unfinished() || l.State != c.landing {
			t.Errorf("the landing is %+v, %v", l, err)
		}
		if got := b.entries(); len(got) != 1 || !strings.HasPrefix(got[0], "alice|"+string(row.ID)+"|"+string(row.ID)+"|stopped the rollback|") {
			t.Errorf("the log has %q", got)
		}
	}
}

func TestTheRollbackThatCameFirstIsTheOneThatCounts(t *testing.T) {
	b := open(t)
	undone, by := b.reverting(4)
	_, others := b.reverting(1)
	unlike := others[0]
	watch := b.Feed.Subscribe(by[1].ID)
	kept := landing.Landing{NewCommit: "c1", NewTree: "t1"}
	if err := b.Needed(t.Context(), by[0]); err != nil {
		t.Fatal(err)
	}
	held := by[2]
	b.do(func(tx store.Tx) error { // a step has it
		held.Holder, held.Until = "d", ledger.Now().Add(time.Hour)
		stuck := by[3] // what has landed and cannot be taken back needs a person
		stuck.State = change.RollbackFailed
		return errors.Join(tx.MoveChange(t.Context(), held.State, held), tx.MoveChange(t.Context(), by[3].State, stuck))
	})
	first, err := b.InTx(t.Context(), by[0], func(tx store.Tx, row *change.Row) error {
		return errors.Join(
			b.Move(t.Context(), tx, row, ledger.Move{Event: change.Approved, By: alice}),
			b.KeepLanding(t.Context(), tx, row, kept, ledger.Move{Event: change.Landed, By: audit.Host}))
	})
	if err != nil || first.State != change.Finalized || first.Next != "sallyport rollback "+string(first.ID) {
		t.Fatalf("%+v, %v", first, err)
	}
	if at := b.row(undone.ID); at.State != change.RolledBack || at.RevertedBy != by[0].ID || at.Reason != "it breaks" {
		t.Errorf("what was undone is %s by %q: %q", at.State, at.RevertedBy, at.Reason)
	}
	if at := b.row(by[1].ID); at.State != change.Cancelled || !strings.Contains(at.Reason, "rolled back already, by "+string(by[0].ID)) || at.Next != "sallyport change show "+string(by[0].ID) {
		t.Fatalf("the other rollback is %s: %q, next %q", at.State, at.Reason, at.Next)
	}
	if at := b.row(unlike.ID); at.State != change.AwaitingApproval {
		t.Errorf("a rollback of another change is %s", at.State)
	}
	if notices := b.Feed.Next(t.Context(), watch); len(notices) != 1 || notices[0].State != change.Cancelled {
		t.Errorf("who watches the other rollback hears %+v", notices)
	}
	if at, stuck := b.row(held.ID), b.row(by[3].ID); at.State != change.AwaitingApproval || stuck.State != change.RollbackFailed || b.said.Len() > 0 {
		t.Errorf("a rollback that a step holds is %s, and one that is stuck %s; the daemon's log has %q", at.State, stuck.State, b.said.String())
	}
	if n := b.Meter.Report().Counts; !slices.Contains(n, metric.Count{Name: "rollbacks", Count: 1}) || !slices.Contains(n, metric.Count{Name: "landings", Count: 1}) {
		t.Errorf("counted are %v", n)
	}
	entries := b.entries()
	if !slices.Contains(entries, audit.Host.Name+"|"+string(by[0].ID)+"|"+string(by[0].ID)+"|landed||t1") {
		t.Errorf("the log has %q", entries)
	}
	if !slices.ContainsFunc(entries, func(e string) bool {
		return e == audit.Host.Name+"|"+string(undone.ID)+"|"+string(by[0].ID)+"|rolled back|it breaks|t1"
	}) {
		t.Errorf("the log has %q", entries)
	}

	var withdrawn *ledger.Withdrawn
	if err := b.Needed(t.Context(), held); !errors.As(err, &withdrawn) || !errors.Is(err, ledger.ErrCancelled) {
		t.Errorf("one that is not needed any more: %v", err)
	}
	b.do(func(tx store.Tx) error { return b.MarkReverted(t.Context(), tx, &held, kept) })
	if at := b.row(held.ID); !strings.HasPrefix(at.Reason, string(undone.ID)+" was rolled back already") || b.row(undone.ID).RevertedBy != by[0].ID {
		t.Errorf("the second says %q, and the change was undone by %s", at.Reason, b.row(undone.ID).RevertedBy)
	}
	plain := b.add(change.Landing)
	if err := b.Needed(t.Context(), plain); err != nil {
		t.Error(err)
	}
}

func TestALandingThatCameToItsEndIsNoReasonAgainstACancel(t *testing.T) {
	b := open(t)
	row, at := b.add(change.Landing), ledger.Now()
	journal := landing.Landing{ID: "lnd-00000001", Change: row.ID, State: landing.Journaled, Project: row.Request.Project, Branch: "main", Started: at}
	b.do(func(tx store.Tx) error {
		closed := journal
		closed.State, closed.Ended, closed.Reason = landing.Undone, &at, "as it was"
		return errors.Join(tx.AddLanding(t.Context(), journal), tx.CloseLanding(t.Context(), closed))
	})
	if err := b.Withdrawable(t.Context(), row); err != nil {
		t.Error(err)
	}
	b.do(func(tx store.Tx) error {
		return b.Withdraw(t.Context(), tx, &row, change.Cancel, ledger.Withdrawn{By: alice, Reason: "no need"})
	})
	if l, _, err := b.Landing(t.Context(), row.ID); err != nil || l.State != landing.Undone {
		t.Errorf("the landing is %s, %v", l.State, err)
	}
	if at := b.row(row.ID); at.State != change.Cancelled || at.Reason != "no need" || at.Next != "sallyport change diff "+string(row.ID) {
		t.Errorf("it is %s: %q, next %q", at.State, at.Reason, at.Next)
	}
}

// A rollback that has ended is no reason against another while what they roll back stands, and what cannot be ended then is told.
func TestAnotherRollbackGoesOnUnlessItsChangeIsRolledBack(t *testing.T) {
	b := open(t)
	undone, by := b.reverting(2)
	first := by[0]
	first.State = change.Finalized
	b.Moved(first)
	if at := b.row(by[1].ID); b.row(undone.ID).State != change.Finalized || at.State != change.AwaitingApproval || b.said.Len() > 0 {
		t.Errorf("it is %s, and the daemon's log has %q", at.State, b.said.String())
	}
	first.Request.Reverts = "chg-missing0"
	b.Moved(first)
	if !strings.Contains(b.said.String(), "other rollbacks of the same change still wait") {
		t.Errorf("the daemon's log has %q", b.said.String())
	}
}
