package storetest

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"sallyport/internal/base/audit"
	"sallyport/internal/base/audit/audittest"
	"sallyport/internal/base/git"
	"sallyport/internal/base/id"
	"sallyport/internal/base/lock"
	"sallyport/internal/base/problem"
	"sallyport/internal/path/change"
	"sallyport/internal/path/checkpoint"
	"sallyport/internal/path/landing"
	"sallyport/internal/path/proposal"
	"sallyport/internal/path/session"
	"sallyport/internal/path/workspace"
	"sallyport/internal/port/sandbox"
	"sallyport/internal/rule/policy"
	"sallyport/internal/store"
)

func (s *suite) entries(change string, after int64, limit int) (all []audit.Entry) {
	s.t.Helper()
	s.do(func(ctx context.Context, tx store.Tx) (err error) {
		all, err = tx.Entries(ctx, change, after, limit)
		return err
	})
	return all
}

func testAudit(t *testing.T, s *suite) {
	if err := audittest.Verify(s.entries("", 0, 0)); err != nil {
		t.Error(err)
	}
	for n := range 5 {
		s.do(func(ctx context.Context, tx store.Tx) error {
			e := audit.Entry{At: at(n).Add(999 * time.Microsecond).In(time.FixedZone("", 7200)), Actor: alice,
				Change: fmt.Sprintf("chg-%d", n%2), Subject: "apr-1", Verb: "approved", Reason: "as \xff read\x00",
				Digests: map[string]string{"tree": "b", "base": "a"}, Seq: 99, Hash: "x", Previous: "y"}
			if n == 2 {
				e.Reason, e.Digests = "", nil
			}
			return errors.Join(tx.AppendEntry(ctx, e), tx.AppendEntry(ctx, audit.Entry{At: at(n), Actor: audit.Host, Verb: "noted"}))
		})
	}
	all := s.entries("", 0, 0)
	if err := audittest.Verify(all); err != nil || len(all) != 10 {
		t.Fatalf("%d entries: %v", len(all), err)
	}
	if e := all[0]; !e.At.Equal(at(0)) || e.At.Location() != time.UTC || e.Reason != "as \uFFFD read\uFFFD" || e.Digests["tree"] != "b" || e.Actor != alice {
		t.Errorf("first entry came back as %+v", e)
	}
	s.same(s.entries("", 3, 2), all[3:5])
	if got := s.entries("chg-1", 0, 0); len(got) != 2 || got[0].Seq != 3 || got[1].Seq != 7 {
		t.Errorf("entries of one change: %+v", got)
	}
	// What is undone leaves no gap.
	ctx := context.Background()
	_ = s.db.InTx(ctx, func(tx store.Tx) error {
		return errors.Join(tx.AppendEntry(ctx, audit.Entry{At: at(9), Actor: audit.Host, Verb: "dreamt"}), errors.New("undo"))
	})
	s.do(func(ctx context.Context, tx store.Tx) error {
		return tx.AppendEntry(ctx, audit.Entry{At: at(9), Actor: audit.Host, Verb: "woken"})
	})
	if err := audittest.Verify(s.entries("", 0, 0)); err != nil {
		t.Error(err)
	}
}

func testSessions(t *testing.T, s *suite) {
	c := s.addChange()
	first := session.Session{ID: "sed-aaaaa", Change: c.ID, Attempt: 1, Agent: "command", Started: at(1), Dir: ".state/sessions/sed-aaaaa"}
	second := session.Session{ID: "sed-00000", Change: c.ID, Attempt: 2, Agent: "command", Started: at(2)}
	s.do(func(ctx context.Context, tx store.Tx) error {
		return errors.Join(tx.PutSession(ctx, second), tx.PutSession(ctx, first))
	})
	end := at(5)
	first.Ended, first.Exit = &end, &sandbox.Exit{Code: -1, Signal: "SIGKILL", Limit: &sandbox.Limit{Name: "time", Value: "1h", Observed: "1h"}}
	s.do(func(ctx context.Context, tx store.Tx) error { return tx.PutSession(ctx, first) })
	s.do(func(ctx context.Context, tx store.Tx) error {
		all, err := tx.Sessions(ctx, c.ID.Subject())
		s.same(all, []session.Session{first, second})
		return err
	})
	s.do(func(ctx context.Context, tx store.Tx) error {
		one, err := tx.Session(ctx, second.ID)
		s.same([]session.Session{one}, []session.Session{second})
		return err
	})
	s.fails(problem.NotFound, func(ctx context.Context, tx store.Tx) error { _, err := tx.Session(ctx, "sed-zzzzz"); return err })
	stranger := first
	stranger.Change = s.addChange().ID
	s.fails(problem.Conflict, func(ctx context.Context, tx store.Tx) error { return tx.PutSession(ctx, stranger) })
	stranger.ID, stranger.Change = "sed-bbbbb", "chg-nowhere0"
	s.fails(problem.NotFound, func(ctx context.Context, tx store.Tx) error { return tx.PutSession(ctx, stranger) })
}

func testCheckpoints(t *testing.T, s *suite) {
	c := s.addChange()
	one, two := aCheckpoint(c.ID, 1), aCheckpoint(c.ID, 2)
	two.Previous, two.Status, two.Trigger, two.Session = one.ID, checkpoint.Invalid, checkpoint.Interrupted, "sed-aaaaa"
	two.Violations = []policy.Violation{{File: "x\n", Constraint: "symlink", Severity: policy.Critical}}
	two.LeftOver = []workspace.LeftOver{{Folder: "node_modules", Files: 3, Bytes: 1 << 40}}
	for range 2 { // the second time does nothing
		s.do(func(ctx context.Context, tx store.Tx) error {
			return errors.Join(tx.AddCheckpoint(ctx, two), tx.AddCheckpoint(ctx, one))
		})
	}
	s.do(func(ctx context.Context, tx store.Tx) error {
		all, err := tx.Checkpoints(ctx, c.ID)
		s.same(all, []checkpoint.Checkpoint{one, two})
		return err
	})
	s.do(func(ctx context.Context, tx store.Tx) error {
		got, err := tx.Checkpoint(ctx, two.ID)
		s.same(got, two)
		return err
	})
	for i, why := range []checkpoint.Trigger{
		checkpoint.AtEnd, checkpoint.OnDemand, checkpoint.Interval, checkpoint.Changes, checkpoint.TurnEnded, checkpoint.Restored, checkpoint.Interrupted,
	} {
		next := aCheckpoint(c.ID, 3+i)
		next.Trigger = why
		s.do(func(ctx context.Context, tx store.Tx) error { return tx.AddCheckpoint(ctx, next) })
	}
	other := one
	other.Commit = oid(9)
	s.fails(problem.Conflict, func(ctx context.Context, tx store.Tx) error { return tx.AddCheckpoint(ctx, other) })
	other.Change = "chg-nowhere0"
	s.fails(problem.NotFound, func(ctx context.Context, tx store.Tx) error { return tx.AddCheckpoint(ctx, other) })
	s.fails(problem.NotFound, func(ctx context.Context, tx store.Tx) error {
		_, err := tx.Checkpoint(ctx, "ckpt-009-00000000")
		return err
	})
	// Two changes may share a name; then it names neither.
	twin := one
	twin.Change = s.addChange().ID
	s.do(func(ctx context.Context, tx store.Tx) error { return tx.AddCheckpoint(ctx, twin) })
	s.fails(problem.Conflict, func(ctx context.Context, tx store.Tx) error {
		_, err := tx.Checkpoint(ctx, one.ID)
		return err
	})
	for _, status := range constants(t, "path/checkpoint/checkpoint.go", "Status") {
		for _, trigger := range constants(t, "path/checkpoint/checkpoint.go", "Trigger") {
			k := aCheckpoint(s.addChange().ID, 1)
			k.Status, k.Trigger = checkpoint.Status(status), checkpoint.Trigger(trigger)
			s.do(func(ctx context.Context, tx store.Tx) error { return tx.AddCheckpoint(ctx, k) })
		}
	}
}

func testProposals(t *testing.T, s *suite) {
	c := s.addChange()
	read := func() (p proposal.Proposal, ok bool) {
		s.do(func(ctx context.Context, tx store.Tx) (err error) { p, ok, err = tx.Proposal(ctx, c.ID); return err })
		return p, ok
	}
	if _, ok := read(); ok {
		t.Error("a new change has a proposal")
	}
	first := s.addProposal(c.ID, 1)
	if got, ok := read(); ok {
		s.same(got, first)
	} else {
		t.Error("no proposal")
	}
	s.fails(proposal.ErrSuperseded, func(ctx context.Context, tx store.Tx) error { return tx.AddProposal(ctx, first) })
	first.Number = 3
	s.fails(proposal.ErrSuperseded, func(ctx context.Context, tx store.Tx) error { return tx.AddProposal(ctx, first) })
	second := s.addProposal(c.ID, 2)
	got, _ := read()
	s.same(got, second)
	first.Number, first.Change = 1, "chg-nowhere0"
	s.fails(problem.NotFound, func(ctx context.Context, tx store.Tx) error { return tx.AddProposal(ctx, first) })
}

func testLandings(t *testing.T, s *suite) {
	c, other := s.addChange(), s.addChange()
	of := func(change id.Change) (l landing.Landing, ok bool) {
		s.do(func(ctx context.Context, tx store.Tx) (err error) { l, ok, err = tx.LandingOf(ctx, change); return err })
		return l, ok
	}
	if _, ok := of(c.ID); ok {
		t.Error("a new change has a landing")
	}
	l := s.aLanding(c.ID, "/src/a")
	s.do(func(ctx context.Context, tx store.Tx) error { return tx.AddLanding(ctx, l) })
	if got, ok := of(c.ID); ok {
		s.same(got, l)
	} else {
		t.Error("no landing")
	}
	s.do(func(ctx context.Context, tx store.Tx) error {
		got, ok, err := tx.Landing(ctx, l.ID)
		s.same(got, l)
		if _, absent, err := tx.Landing(ctx, id.NewLanding()); !ok || absent || err != nil {
			t.Errorf("by its id: %v, %v; one that is not there: %v", ok, err, absent)
		}
		return err
	})
	// One at a time in a repository, any number elsewhere.
	s.fails(landing.ErrBusy, func(ctx context.Context, tx store.Tx) error {
		return tx.AddLanding(ctx, s.aLanding(other.ID, "/src/a"))
	})
	elsewhere := s.aLanding(other.ID, "/src/b")
	s.do(func(ctx context.Context, tx store.Tx) error { return tx.AddLanding(ctx, elsewhere) })
	s.do(func(ctx context.Context, tx store.Tx) error {
		open, err := tx.OpenLandings(ctx)
		s.same(open, []landing.Landing{l, elsewhere})
		return err
	})
	s.fails(problem.NotFound, func(ctx context.Context, tx store.Tx) error {
		return tx.AddLanding(ctx, s.aLanding("chg-nowhere0", "/src/c"))
	})

	move := func(to landing.State) func(context.Context, store.Tx) error {
		return func(ctx context.Context, tx store.Tx) error {
			end, now := at(30), l
			now.State, now.Ended, now.Reason, now.Message = to, &end, "because", "a journal is not rewritten"
			return tx.CloseLanding(ctx, now)
		}
	}
	s.fails(problem.Internal, move(landing.Journaled))
	s.do(move(landing.Stranded))
	s.do(move(landing.Stranded))                        // said again at the next start
	s.do(func(ctx context.Context, tx store.Tx) error { // it has an end: somebody has given it up
		open, err := tx.OpenLandings(ctx)
		s.same(open, []landing.Landing{elsewhere})
		return err
	})
	s.do(move(landing.Landed))
	s.fails(change.ErrMoved, move(landing.Undone))
	end := at(30)
	l.State, l.Ended, l.Reason = landing.Landed, &end, "because"
	got, _ := of(c.ID)
	s.same(got, l)
	next := s.aLanding(c.ID, "/src/a")
	s.do(func(ctx context.Context, tx store.Tx) error { return tx.AddLanding(ctx, next) })
	got, _ = of(c.ID)
	s.same(got, next)
	closed := s.aLanding(c.ID, "/src/z")
	closed.State = landing.Landed
	s.fails(problem.Internal, func(ctx context.Context, tx store.Tx) error { return tx.AddLanding(ctx, closed) })
}

func testLeases(t *testing.T, s *suite) {
	const ttl = 10 * time.Millisecond
	take := func(holder string, now int) (l lock.Lease, ok bool) {
		s.do(func(ctx context.Context, tx store.Tx) (err error) {
			l, ok, err = tx.TakeLease(ctx, "repo:/src/a", holder, at(now), ttl)
			return err
		})
		return l, ok
	}
	rolledBack := errors.New("what was tried is rolled back")
	holds := func(l lock.Lease, now int) (held bool) { // another is told so
		ctx := t.Context()
		err := s.db.InTx(ctx, func(tx store.Tx) error {
			there, taken, err := tx.TakeLease(ctx, l.Key, "another", at(now), ttl)
			held = !taken && there.Holder == l.Holder && there.Fence == l.Fence
			return errors.Join(err, rolledBack)
		})
		if err.Error() != rolledBack.Error() {
			t.Error(err)
		}
		return held
	}
	one, ok := take("one", 0)
	if !ok || one.Fence != 1 || !one.Until.Equal(at(10)) || !holds(one, 9) || holds(one, 10) {
		t.Fatalf("first taking: %v %+v", ok, one)
	}
	if l, ok := take("two", 9); ok || l.Holder != "one" || l.Fence != 1 {
		t.Errorf("two was given what one holds: %v %+v", ok, l)
	}
	if l, ok := take("one", 5); !ok || l.Fence != 1 || !l.Until.Equal(at(15)) {
		t.Errorf("renewal: %v %+v", ok, l)
	}
	two, ok := take("two", 15)
	if !ok || two.Fence != 2 || holds(one, 15) || !holds(two, 15) {
		t.Errorf("taking one that ran out: %v %+v", ok, two)
	}
	if l, ok := take("two", 40); !ok || l.Fence != 3 || holds(two, 40) {
		t.Errorf("a lease that ran out was renewed, not taken anew: %v %+v", ok, l)
	}
	s.do(func(ctx context.Context, tx store.Tx) error { return tx.DropLease(ctx, one) }) // a lost one
	three := lock.Lease{Key: "repo:/src/a", Holder: "two", Fence: 3}
	if !holds(three, 41) {
		t.Error("dropping a lost lease dropped the present one")
	}
	s.do(func(ctx context.Context, tx store.Tx) error { return tx.DropLease(ctx, three) })
	if l, ok := take("one", 42); !ok || l.Fence != 4 || holds(three, 42) {
		t.Errorf("after giving back: %v %+v; the fence must grow", ok, l)
	}
}

// testExact protects what is acted on later: a path that is not UTF-8 must not come back as another.
func testExact(t *testing.T, s *suite) {
	c := s.addChange()
	bad := s.aChange()
	bad.Request.Argv = []string{"cat", "a\xff"}
	s.fails(problem.Refused, func(ctx context.Context, tx store.Tx) error { return tx.AddChange(ctx, bad) })
	p := proposal.Proposal{Change: c.ID, Number: 1, Edits: []git.Edit{{Path: "ok"}, {Path: "a\xff"}}}
	s.fails(problem.Refused, func(ctx context.Context, tx store.Tx) error { return tx.AddProposal(ctx, p) })
	l := s.aLanding(c.ID, "/src/a")
	l.Edits[0].Path = "a\xff"
	s.fails(problem.Refused, func(ctx context.Context, tx store.Tx) error { return tx.AddLanding(ctx, l) })
	// What is only shown is kept all the same: a violation must be told.
	k := aCheckpoint(c.ID, 1)
	k.FilesChanged = []string{"a\xff"}
	s.do(func(ctx context.Context, tx store.Tx) error { return tx.AddCheckpoint(ctx, k) })
}
