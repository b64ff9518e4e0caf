package storetest

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"sallyport/internal/base/audit"
	"sallyport/internal/base/audit/audittest"
	"sallyport/internal/base/disk"
	"sallyport/internal/base/id"
	"sallyport/internal/chat/message"
	"sallyport/internal/chat/prompt"
	"sallyport/internal/path/change"
	"sallyport/internal/store"
)

// note appends one audit entry.
func note(ctx context.Context, tx store.Tx, verb string) error {
	return tx.AppendEntry(ctx, audit.Entry{At: at(0), Actor: audit.Host, Verb: verb})
}

func (s *suite) verbs() (all []string) {
	s.t.Helper()
	entries := s.entries("", 0, 100_000)
	if err := audittest.Verify(entries); err != nil {
		s.t.Error(err)
	}
	for _, e := range entries {
		all = append(all, e.Verb)
	}
	return all
}

// together runs calls so that they share as few commits as the store can manage: the
// first holds the writer until all others wait.
func together(t *testing.T, db store.DB, calls ...func(tx store.Tx) error) []error {
	t.Helper()
	errs := make([]error, len(calls))
	begun, open := make(chan struct{}), make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		if err := db.InTx(t.Context(), func(store.Tx) error { close(begun); <-open; return nil }); err != nil {
			t.Error(err)
		}
	})
	<-begun
	for n, call := range calls {
		wg.Go(func() { errs[n] = db.InTx(t.Context(), call) })
	}
	for range 1000 { // let them queue up; the outcome is the same if one is late
		runtime.Gosched()
	}
	close(open)
	wg.Wait()
	return errs
}

func testSavepoint(t *testing.T, s *suite) {
	ctx := t.Context()
	boom := errors.New("boom")
	good := func(tx store.Tx) error { return note(ctx, tx, "good") }
	bad := func(tx store.Tx) error { return errors.Join(note(ctx, tx, "bad"), boom) }
	broken := func(tx store.Tx) error { // the database itself says no to this one
		c := change.Row{ID: "chg-x", State: "dreaming"}
		return errors.Join(note(ctx, tx, "bad"), tx.AddChange(ctx, c))
	}
	errs := together(t, s.db, good, bad, good, broken, good, bad, good)
	for n, err := range errs {
		if (err == nil) != (n%2 == 0) || n%4 == 1 && !errors.Is(err, boom) {
			t.Errorf("call %d: err = %v", n, err)
		}
	}
	if got := fmt.Sprint(s.verbs()); got != "[good good good good]" {
		t.Errorf("the log holds %s", got)
	}
}

func testPanic(t *testing.T, s *suite) {
	ctx := t.Context()
	func() {
		defer func() {
			if v := recover(); v != "bug" {
				t.Errorf("recovered %v in the caller", v)
			}
		}()
		_ = s.db.InTx(ctx, func(tx store.Tx) error {
			_ = note(ctx, tx, "bad")
			panic("bug")
		})
	}()
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		_ = s.db.InTx(ctx, func(tx store.Tx) error {
			_ = note(ctx, tx, "bad")
			runtime.Goexit()
			return nil
		})
	}()
	<-gone
	s.do(func(ctx context.Context, tx store.Tx) error { return note(ctx, tx, "good") })
	if got := fmt.Sprint(s.verbs()); got != "[good]" {
		t.Errorf("the log holds %s", got)
	}
	var kept store.Tx
	s.do(func(_ context.Context, tx store.Tx) error { kept = tx; return nil })
	if err := note(ctx, kept, "bad"); err == nil {
		t.Error("a transaction could be used after its end")
	}
}

func testCancelled(t *testing.T, s *suite) {
	why := errors.New("the person left")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(why)
	for range 100 { // the writer is free and the context ended: both are ready
		ran := false
		if err := s.db.InTx(ctx, func(store.Tx) error { ran = true; return nil }); !errors.Is(err, why) || ran {
			t.Fatalf("ran = %v, err = %v", ran, err)
		}
	}

	// One that waits is skipped, and those around it are served.
	ctx, cancel = context.WithCancelCause(t.Context())
	begun, open, done := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	go func() {
		done <- s.db.InTx(t.Context(), func(tx store.Tx) error { close(begun); <-open; return note(t.Context(), tx, "first") })
	}()
	<-begun
	skipped := make(chan error, 1)
	go func() { skipped <- s.db.InTx(ctx, func(tx store.Tx) error { return note(ctx, tx, "skipped") }) }()
	cancel(why)
	if err := <-skipped; !errors.Is(err, why) {
		t.Errorf("err = %v", err)
	}
	close(open)
	if err := <-done; err != nil {
		t.Error(err)
	}

	// One whose closure has run learns the outcome, whatever its context says by then.
	ctx, cancel = context.WithCancelCause(t.Context())
	err := s.db.InTx(ctx, func(tx store.Tx) error {
		cancel(why)
		return note(ctx, tx, "late")
	})
	if got := fmt.Sprint(err, s.verbs()); got != "<nil> [first late]" {
		t.Errorf("outcome and log: %s", got)
	}
}

func testGroup(t *testing.T, s *suite) {
	if err := s.db.Close(); err != nil {
		t.Fatal(err)
	}
	var commits atomic.Int32
	s.reopen(disk.Ops{Around: func(op string, do func() error) error {
		if op == "db:counted" {
			commits.Add(1)
		}
		return do()
	}})
	calls := make([]func(store.Tx) error, 256)
	for n := range calls {
		calls[n] = func(tx store.Tx) error {
			if _, err := tx.NextUID(t.Context()); err != nil {
				return err
			}
			return note(t.Context(), tx, "counted")
		}
	}
	for n, err := range together(t, s.db, calls...) {
		if err != nil {
			t.Errorf("caller %d: %v", n, err)
		}
	}
	if got := len(s.verbs()); got != len(calls) {
		t.Errorf("%d entries of %d callers", got, len(calls))
	}
	if n := commits.Load(); n == 0 || n > int32(len(calls))/2 {
		t.Errorf("%d commits for %d callers: they do not share", n, len(calls))
	} else {
		t.Logf("%d callers, %d commits", len(calls), n)
	}
}

func testSnapshot(t *testing.T, s *suite) {
	c := s.addChange()
	ctx := t.Context()
	err := s.db.Read(ctx, func(tx store.Tx) error {
		before, err := tx.Change(ctx, c.ID)
		if err != nil {
			return err
		}
		s.addChange() // commits while this reads
		s.do(func(ctx context.Context, w store.Tx) error { return w.RequestCancel(ctx, c.ID) })
		after, err := tx.Change(ctx, c.ID)
		if all, _ := tx.Changes(ctx, change.Filter{}); len(all) != 1 || after.Cancel != before.Cancel {
			t.Errorf("the moment moved: %d changes, cancel %v", len(all), after.Cancel)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	_ = s.db.Read(ctx, func(tx store.Tx) error {
		if c, err := tx.Change(ctx, c.ID); err != nil || !c.Cancel {
			t.Errorf("a later read does not see the commit: %+v, %v", c, err)
		}
		return nil
	})
	ended, cancel := context.WithCancel(ctx)
	cancel()
	if err := s.db.Read(ended, func(store.Tx) error { return nil }); !errors.Is(err, context.Canceled) {
		t.Errorf("reading under an ended context: %v", err)
	}
}

func testReadOnly(t *testing.T, s *suite) {
	c := s.addChange()
	ctx := t.Context()
	for name, write := range map[string]func(tx store.Tx) error{
		"MoveChange":  func(tx store.Tx) error { return tx.MoveChange(ctx, c.State, c) },
		"ClaimDue":    func(tx store.Tx) error { _, _, err := tx.ClaimDue(ctx, "x", at(99), 1); return err },
		"ClaimOnly":   func(tx store.Tx) error { _, _, err := tx.ClaimOnly(ctx, c.ID, "x", at(99), 1); return err },
		"NextUID":     func(tx store.Tx) error { _, err := tx.NextUID(ctx); return err },
		"AppendEntry": func(tx store.Tx) error { return note(ctx, tx, "bad") },
		"TakeLease":   func(tx store.Tx) error { _, _, err := tx.TakeLease(ctx, "k", "x", at(0), 1); return err },
	} {
		if err := s.db.Read(ctx, write); err == nil {
			t.Errorf("%s wrote in a transaction that reads", name)
		}
	}
	if got := s.verbs(); len(got) != 0 {
		t.Errorf("the log holds %v", got)
	}
}

// testHear holds that who hears of messages, and what a transaction asked to be called after it, come in the order of the commits, before
// the caller has its answer, and never for what was undone.
func testHear(t *testing.T, s *suite) {
	c := s.talks("1000/echo", "echo")
	var mu sync.Mutex
	var told []string
	tell := func(text string) {
		mu.Lock()
		defer mu.Unlock()
		told = append(told, text)
	}
	hear := func(rows message.Rows) {
		for _, m := range rows.Ins {
			tell(fmt.Sprint("in ", m.Seq, m.Status))
		}
		for _, o := range rows.Outs {
			tell(fmt.Sprint("out ", o.Seq))
		}
	}
	s.db.Hear(hear)

	ctx, broken := t.Context(), errors.New("broken")
	calls := make([]func(store.Tx) error, 64)
	for n := range calls {
		calls[n] = func(tx store.Tx) error {
			m, err := tx.PutIn(ctx, message.In{ID: id.NewMessage(), Chat: c.ID, Kind: prompt.Chat, Text: "x", At: at(3), Status: message.Pending, Due: at(3)})
			if err != nil {
				return err
			}
			tx.After(func() { tell(fmt.Sprint("after ", m.Seq)) })
			if n%4 == 0 {
				return broken
			}
			m.Status = message.Processing
			return tx.MoveIn(ctx, message.Pending, 0, m)
		}
	}
	for n, err := range together(t, s.db, calls...) {
		if n%4 == 0 && !errors.Is(err, broken) || n%4 != 0 && err != nil {
			t.Errorf("caller %d: %v", n, err)
		}
	}
	var want []string
	err := s.db.Read(ctx, func(tx store.Tx) error {
		all, err := tx.Ins(ctx, message.Filter{Chat: c.ID})
		for _, m := range all {
			want = append(want, fmt.Sprint("in ", m.Seq, message.Pending), fmt.Sprint("in ", m.Seq, message.Processing), fmt.Sprint("after ", m.Seq))
		}
		return err
	})
	if err != nil || len(want) != 48*3 || !slices.Equal(told, want) {
		t.Errorf("%v: told of\n%s\nwant\n%s", err, told, want)
	}

	told = nil
	s.do(func(ctx context.Context, tx store.Tx) error {
		out := message.Out{ID: id.NewOut(), Chat: c.ID, Lane: message.Talk, Turn: 1, Call: "k", Text: "y", At: at(4)}
		_, err := tx.PutOut(ctx, out)
		out.ID = id.NewOut()
		_, err2 := tx.PutOut(ctx, out) // the same call sends once
		return errors.Join(err, err2)
	})
	if len(told) != 1 || !strings.HasPrefix(told[0], "out ") {
		t.Errorf("told of %q", told)
	}
	told = nil
	s.do(func(_ context.Context, tx store.Tx) error {
		tx.After(func() { tell("nothing was written") })
		return nil
	})
	if !slices.Equal(told, []string{"nothing was written"}) {
		t.Errorf("told of %q", told)
	}

	if err := s.db.Close(); err != nil {
		t.Fatal(err)
	}
	s.reopen(disk.Ops{Around: func(op string, do func() error) error {
		if op == "db:put-message" {
			return broken
		}
		return do()
	}})
	told = nil
	s.db.Hear(hear)
	if err := s.db.InTx(ctx, calls[1]); !errors.Is(err, broken) || len(told) > 0 {
		t.Errorf("a commit that failed (%v) is told of: %q", err, told)
	}
}

func testReopen(t *testing.T, s *suite) {
	c := s.addChange()
	p := s.addProposal(c.ID, 1)
	a := s.addApproval(p)
	l := s.aLanding(c.ID, "/src/a")
	s.do(func(ctx context.Context, tx store.Tx) error {
		_, _, err := tx.TakeLease(ctx, "k", "x", at(0), 1)
		_, err2 := tx.NextUID(ctx)
		return errors.Join(err, err2, tx.AddLanding(ctx, l), note(ctx, tx, "kept"), tx.AddCheckpoint(ctx, aCheckpoint(c.ID, 1)))
	})
	for range 2 {
		if err := s.db.Close(); err != nil {
			t.Fatal(err)
		}
		s.reopen(disk.Ops{})
	}
	s.same(s.change(c.ID), c)
	s.do(func(ctx context.Context, tx store.Tx) error {
		gotP, _, err := tx.Proposal(ctx, c.ID)
		s.same(gotP, p)
		gotA, err2 := tx.Approval(ctx, a.ID)
		s.same(gotA, a)
		gotL, _, err3 := tx.LandingOf(ctx, c.ID)
		s.same(gotL, l)
		lease, ok, err4 := tx.TakeLease(ctx, "k", "y", at(9), 1)
		if !ok || lease.Fence != 2 {
			t.Errorf("the fence began anew: %+v", lease)
		}
		uid, err5 := tx.NextUID(ctx)
		if uid != 1 {
			t.Errorf("uid %d was given twice", uid)
		}
		return errors.Join(err, err2, err3, err4, err5)
	})
	if got := fmt.Sprint(s.verbs()); got != "[kept]" {
		t.Errorf("the log holds %s", got)
	}
}

func testClose(t *testing.T, s *suite) {
	if err := errors.Join(s.db.Close(), s.db.Close()); err != nil {
		t.Fatal(err)
	}
	nothing := func(store.Tx) error { t.Error("ran in a closed database"); return nil }
	if s.db.InTx(t.Context(), nothing) == nil || s.db.Read(t.Context(), nothing) == nil {
		t.Error("a closed database took a transaction")
	}
}
