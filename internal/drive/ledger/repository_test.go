package ledger_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"sallyport/internal/base/audit"
	"sallyport/internal/base/deadman"
	"sallyport/internal/base/git"
	"sallyport/internal/base/id"
	"sallyport/internal/base/problem"
	"sallyport/internal/drive/ledger"
	"sallyport/internal/path/change"
	"sallyport/internal/path/landing"
	"sallyport/internal/path/proposal"
	"sallyport/internal/path/request"
	"sallyport/internal/path/trial"
	"sallyport/internal/rule/trust"
	"sallyport/internal/store"
)

func TestOneLandsAtATimeInARepositoryAndNoneBesideATrial(t *testing.T) {
	b := open(t)
	elsewhere := func(c *change.Row) { c.Request.Project.CommonDir = "/src/b/.git" }
	mine, next, far := b.add(change.Landing), b.add(change.Landing), b.add(change.Landing, elsewhere)
	lease, err := b.TakeRepository(t.Context(), mine)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.TakeRepository(t.Context(), next); !errors.Is(err, landing.ErrBusy) || !strings.Contains(err.Error(), string(mine.ID)) {
		t.Errorf("two land in one repository: %v", err)
	}
	if _, err := b.TakeRepository(t.Context(), far); err != nil {
		t.Errorf("in another repository: %v", err)
	}
	if _, err := b.TakeRepository(t.Context(), mine); err != nil {
		t.Errorf("who has it takes it again: %v", err)
	}
	b.DropRepository(t.Context(), lease)
	if _, err := b.TakeRepository(t.Context(), next); err != nil || b.said.Len() > 0 {
		t.Errorf("after it was given back: %v; the daemon's log has %q", err, b.said.String())
	}

	// Who holds it has come to its end without giving it back.
	b.do(func(tx store.Tx) error {
		return b.Move(t.Context(), tx, &next, ledger.Move{Event: change.Fail, By: audit.Host})
	})
	if _, err := b.TakeRepository(t.Context(), mine); err != nil {
		t.Errorf("after its holder's end: %v", err)
	}
	for _, state := range []change.State{change.InTrial, change.RollbackFailed} {
		t.Run(string(state), func(t *testing.T) {
			b := open(t)
			holder, other := b.add(state), b.add(change.Landing)
			if _, err := b.TakeRepository(t.Context(), holder); err != nil {
				t.Fatal(err)
			}
			if _, err := b.TakeRepository(t.Context(), other); !errors.Is(err, landing.ErrBusy) {
				t.Errorf("from one that is %s it was taken: %v", state, err)
			}
		})
	}
}

func TestAnOpenJournalHoldsBackWhatWouldLandBesideIt(t *testing.T) {
	b := open(t)
	mine, next := b.add(change.Landing), b.add(change.Landing)
	far := b.add(change.Landing, func(c *change.Row) { c.Request.Project.CommonDir = "/src/b/.git" })
	journal := landing.Landing{ID: "lnd-00000001", Change: mine.ID, State: landing.Journaled, Project: mine.Request.Project, Branch: "main", Started: ledger.Now()}
	b.do(func(tx store.Tx) error { return tx.AddLanding(t.Context(), journal) })
	for row, want := range map[*change.Row]error{&mine: nil, &next: landing.ErrBusy, &far: nil} {
		err := b.DB.Read(t.Context(), func(tx store.Tx) error { return b.Free(t.Context(), tx, *row) })
		if !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", row.ID, err, want)
		}
	}

	// What has begun to land is brought to its end before it can be cancelled.
	err := b.DB.Read(t.Context(), func(tx store.Tx) error { _, err := b.Withdrawal(t.Context(), tx, mine); return err })
	if problem.KindOf(err) != problem.Conflict {
		t.Errorf("it is cancelled while it lands: %v", err)
	}
	if err := b.Withdrawable(t.Context(), next); err != nil {
		t.Errorf("one that has not begun: %v", err)
	}
}

func TestATrialHoldsBackWhatWouldLandBesideIt(t *testing.T) {
	for _, state := range []change.State{change.InTrial, change.RollbackFailed} {
		b := open(t)
		tried, next := b.add(state), b.add(change.Landing)
		far := b.add(change.Landing, func(c *change.Row) { c.Request.Project.CommonDir = "/src/b/.git" })
		try(b, tried, 1, trust.Target{Restart: "true"})
		for row, waits := range map[*change.Row]bool{&tried: false, &next: state == change.InTrial, &far: false} {
			_, err := b.TakeRepository(t.Context(), *row)
			if errors.Is(err, ledger.ErrOnTrial) != waits || waits && !strings.Contains(err.Error(), string(tried.ID)) {
				t.Errorf("beside one that is %s, %s: %v", state, row.ID, err)
			}
		}
		if l, err := found(b, "lnd-00000001"); err != nil || l.State != landing.Landed {
			t.Errorf("%+v, %v", l, err)
		}
	}
}

// onTrial stores a change that has a group on trial, or the repository.
func onTrial(b *book, n int, group, path string) change.Row {
	row := b.add(change.InTrial, func(c *change.Row) {
		if group != "" {
			c.Request.Kind, c.Request.Group = request.Swap, group
		}
	})
	try(b, row, n, trust.Target{Group: group}, git.Edit{Path: path})
	return row
}

// try stores the trial of a landing that is over.
func try(b *book, row change.Row, n int, t trust.Target, edits ...git.Edit) {
	b.t.Helper()
	journal := landing.Landing{
		ID: id.Landing(fmt.Sprintf("lnd-%08d", n)), Change: row.ID, State: landing.Journaled, Project: row.Request.Project, Branch: "main", Started: ledger.Now(), Edits: edits,
	}
	b.do(func(tx store.Tx) error {
		closed, at := journal, ledger.Now()
		closed.State, closed.Ended = landing.Landed, &at
		begun := trial.Begin(row.ID, journal.ID, t, time.Minute, deadman.Moment{Wall: ledger.Now(), Boot: "b"})
		return errors.Join(tx.AddLanding(b.t.Context(), journal), tx.CloseLanding(b.t.Context(), closed), tx.AddTrial(b.t.Context(), begun))
	})
}

// TestBesideTheTrialOfAGroupLandsWhatLiesOutsideOfIt holds that two groups are on trial at once, and that each can go back (SM-916).
func TestBesideTheTrialOfAGroupLandsWhatLiesOutsideOfIt(t *testing.T) {
	b := open(t)
	next := func(kind request.Kind, group string, paths ...string) change.Row {
		row := b.add(change.Landing, func(c *change.Row) {
			c.Request.Kind, c.Request.Group = kind, group
			c.Cancel = kind == request.Swap // else there is one of a group
		})
		p := proposal.Proposal{Change: row.ID, Number: 1, Digest: proposal.Digest(row.ID), At: ledger.Now()}
		for _, path := range paths {
			p.Edits = append(p.Edits, git.Edit{Path: path})
		}
		b.do(func(tx store.Tx) error { return tx.AddProposal(t.Context(), p) })
		return row
	}
	free := func(what string, row change.Row, want bool) {
		t.Helper()
		err := b.DB.Read(t.Context(), func(tx store.Tx) error { return b.Free(t.Context(), tx, row) })
		if (err == nil) != want || err != nil && !errors.Is(err, ledger.ErrOnTrial) {
			t.Errorf("%s: %v", what, err)
		}
	}
	echo := onTrial(b, 1, "echo", "groups/echo/runner/runner.yaml")
	free("a person's edit elsewhere", next(request.Edit, "", "README.md"), true)
	free("a person's edit inside", next(request.Edit, "", "README.md", "groups/echo/AGENTS.md"), false)
	free("what a person has edited in it by hand", next(request.Group, "echo", "groups/echo/AGENTS.md"), false)
	free("the same group", next(request.Swap, "echo", "template/AGENTS.md"), false)
	free("what nobody knows", b.add(change.Landing), false)
	free("another group", next(request.Swap, "other", "groups/other/AGENTS.md"), true)
	other := onTrial(b, 2, "other", "groups/other/runner/runner.yaml")
	free("one beside the other", other, true)
	free("the other beside the one", echo, true)
}

// Beside the trial of a whole repository goes back what a group has on trial, and nothing that only lands.
func TestWhatGoesBackInAGroupWaitsForNoTrialOfTheRepository(t *testing.T) {
	for _, back := range []bool{true, false} {
		b := open(t)
		onTrial(b, 1, "", "README.md")
		echo := onTrial(b, 2, "echo", "groups/echo/AGENTS.md")
		if back {
			b.do(func(tx store.Tx) error {
				return tx.DecideTrial(t.Context(), echo.ID, trial.Decision{To: trial.RolledBack, By: audit.Host, At: ledger.Now(), Reason: "it was over"})
			})
		}
		err := b.DB.Read(t.Context(), func(tx store.Tx) error { return b.Free(t.Context(), tx, echo) })
		if (err == nil) != back || err != nil && !errors.Is(err, ledger.ErrOnTrial) {
			t.Errorf("going back %t: %v", back, err)
		}
	}
}

// Beside the host itself on trial nothing lands anywhere, and a change of the host begins beside no trial.
func TestBesideATrialOfTheHostNothingLands(t *testing.T) {
	b := open(t)
	host, ended := b.add(change.InTrial), b.add(change.RollbackFailed)
	far := b.add(change.Landing, func(c *change.Row) { c.Request.Project.CommonDir = "/src/b/.git" })
	free := func(what string, row change.Row, lands, begins bool) {
		t.Helper()
		b.do(func(tx store.Tx) error {
			err := b.Free(t.Context(), tx, row)
			if (err == nil) != lands || err != nil && !errors.Is(err, ledger.ErrOnTrial) {
				t.Errorf("%s lands: %v", what, err)
			}
			err = ledger.NoneOnTrial(t.Context(), tx, row)
			if (err == nil) != begins || err != nil && (!errors.Is(err, ledger.ErrOnTrial) || !strings.Contains(err.Error(), string(host.ID))) {
				t.Errorf("%s begins: %v", what, err)
			}
			return nil
		})
	}
	try(b, ended, 1, trust.Target{Restart: "true"})
	free("beside one that is stuck", far, true, true)
	try(b, host, 2, trust.Target{Host: true})
	free("beside the host's", far, false, false)
	free("the host's own", host, true, true)
}

func found(b *book, name id.Landing) (l landing.Landing, err error) {
	err = b.DB.Read(b.t.Context(), func(tx store.Tx) error { l, err = ledger.LandingNamed(b.t.Context(), tx, name); return err })
	return l, err
}
