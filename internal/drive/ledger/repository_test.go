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
	if _, err := b.TakeRepository(t.Context(), next); err != nil {
		t.Errorf("after it was given back: %v", err)
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
		journal := landing.Landing{ID: "lnd-00000001", Change: tried.ID, State: landing.Journaled, Project: tried.Request.Project, Branch: "main", Started: ledger.Now()}
		b.do(func(tx store.Tx) error {
			closed, at := journal, ledger.Now()
			closed.State, closed.Ended = landing.Landed, &at
			row := trial.Begin(tried.ID, journal.ID, trust.Target{Restart: "true"}, time.Minute, deadman.Moment{Wall: ledger.Now(), Boot: "b"})
			return errors.Join(tx.AddLanding(t.Context(), journal), tx.CloseLanding(t.Context(), closed), tx.AddTrial(t.Context(), row))
		})
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

// TestBesideTheTrialOfAGroupLandsWhatLiesOutsideOfIt holds that two groups are on trial at once, and that each can go back (SM-916).
func TestBesideTheTrialOfAGroupLandsWhatLiesOutsideOfIt(t *testing.T) {
	b := open(t)
	n := 0
	onTrial := func(group string) change.Row {
		n++
		row := b.add(change.InTrial, func(c *change.Row) { c.Request.Kind, c.Request.Group = request.Swap, group })
		name := id.Landing(fmt.Sprintf("lnd-%08d", n))
		journal := landing.Landing{
			ID: name, Change: row.ID, State: landing.Journaled, Project: row.Request.Project, Branch: "main", Started: ledger.Now(),
			Edits: []git.Edit{{Path: "groups/" + group + "/runner/runner.yaml"}},
		}
		b.do(func(tx store.Tx) error {
			closed, at := journal, ledger.Now()
			closed.State, closed.Ended = landing.Landed, &at
			t1 := trial.Begin(row.ID, name, trust.Target{Group: group}, time.Minute, deadman.Moment{Wall: ledger.Now(), Boot: "b"})
			return errors.Join(tx.AddLanding(t.Context(), journal), tx.CloseLanding(t.Context(), closed), tx.AddTrial(t.Context(), t1))
		})
		return row
	}
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
	echo := onTrial("echo")
	free("a person's edit elsewhere", next(request.Edit, "", "README.md"), true)
	free("a person's edit inside", next(request.Edit, "", "README.md", "groups/echo/AGENTS.md"), false)
	free("what a person has edited in it by hand", next(request.Group, "echo", "groups/echo/AGENTS.md"), false)
	free("the same group", next(request.Swap, "echo", "template/AGENTS.md"), false)
	free("what nobody knows", b.add(change.Landing), false)
	free("another group", next(request.Swap, "other", "groups/other/AGENTS.md"), true)
	other := onTrial("other")
	free("one beside the other", other, true)
	free("the other beside the one", echo, true)
}

func found(b *book, name id.Landing) (l landing.Landing, err error) {
	err = b.DB.Read(b.t.Context(), func(tx store.Tx) error { l, err = ledger.LandingNamed(b.t.Context(), tx, name); return err })
	return l, err
}
