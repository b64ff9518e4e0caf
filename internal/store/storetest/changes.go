package storetest

import (
	"context"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"sallyport/internal/base/audit"
	"sallyport/internal/base/id"
	"sallyport/internal/base/lock"
	"sallyport/internal/base/problem"
	"sallyport/internal/path/change"
	"sallyport/internal/path/request"
	"sallyport/internal/store"
	"sallyport/internal/who/person"
)

func testChange(t *testing.T, s *suite) {
	c := s.addChange()
	s.same(s.change(c.ID), c)
	bare := s.addChange(func(c *change.Row) { c.Due, c.Base, c.Problem, c.UID = time.Time{}, "", "", 0 })
	s.same(s.change(bare.ID), bare)

	s.fails(problem.Conflict, func(ctx context.Context, tx store.Tx) error { return tx.AddChange(ctx, c) })
	s.fails(problem.NotFound, func(ctx context.Context, tx store.Tx) error {
		_, err := tx.Change(ctx, "chg-nowhere0")
		if p := problem.Of(err); p.Next != "sallyport change list" {
			t.Errorf("%q names %q as the next command", p.Text, p.Next)
		}
		return err
	})
	s.fails(problem.NotFound, func(ctx context.Context, tx store.Tx) error { return tx.RequestCancel(ctx, "chg-nowhere0") })
	s.do(func(ctx context.Context, tx store.Tx) error { return tx.RequestCancel(ctx, c.ID) })
	if !s.change(c.ID).Cancel {
		t.Error("the wish to cancel was not kept")
	}
}

// testStates reads the states where they are named, so that a new one cannot be forgotten here.
func testStates(t *testing.T, s *suite) {
	for _, state := range constants(t, "path/change/state.go", "State") {
		c := s.addChange(func(c *change.Row) { c.State = change.State(state) })
		if got := s.change(c.ID).State; got != change.State(state) {
			t.Errorf("state %q came back as %q", state, got)
		}
	}
	for _, kind := range constants(t, "base/problem/problem.go", "Kind") {
		s.addChange(func(c *change.Row) { c.Problem = kind })
	}
	ctx := context.Background()
	c := s.aChange()
	c.State = "dreaming"
	if err := s.db.InTx(ctx, func(tx store.Tx) error { return tx.AddChange(ctx, c) }); err == nil {
		t.Error("a state that no table knows was stored")
	}
}

// constants returns the string constants of a type in a source file of internal/.
func constants(t *testing.T, path, typ string) []string {
	t.Helper()
	_, here, _, _ := runtime.Caller(0)
	file := filepath.Join(filepath.Dir(here), "..", "..", filepath.FromSlash(path))
	if _, err := os.Stat(file); err != nil {
		t.Skipf("the sources are not here (built with -trimpath?): %v", err)
	}
	tree, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	ast.Inspect(tree, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok || len(spec.Values) != 1 {
			return true
		}
		if name, ok := spec.Type.(*ast.Ident); !ok || name.Name != typ {
			return true
		}
		if lit, ok := spec.Values[0].(*ast.BasicLit); ok {
			text, err := strconv.Unquote(lit.Value)
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, text)
		}
		return true
	})
	if len(all) < 2 {
		t.Fatalf("found only %q of type %s in %s", all, typ, file)
	}
	return all
}

// testOneOpenSwap is SM-100: one change of what a group runs is open, unless somebody has withdrawn the one before.
func testOneOpenSwap(t *testing.T, s *suite) {
	swap := func(of string, state change.State) change.Row {
		c := s.aChange()
		c.State, c.Request.Kind, c.Request.Group = state, request.Swap, of
		return c
	}
	add := func(c change.Row) func(ctx context.Context, tx store.Tx) error {
		return func(ctx context.Context, tx store.Tx) error { return tx.AddChange(ctx, c) }
	}
	first, second, other, edit := swap("echo", "in_trial"), swap("echo", "requested"), swap("ann", "requested"), swap("echo", "requested")
	edit.Request.Kind = request.Group
	s.do(add(first))
	s.fails(problem.Conflict, add(second))
	s.do(add(other))
	s.do(add(edit))
	s.do(func(ctx context.Context, tx store.Tx) error { return tx.RequestCancel(ctx, first.ID) })
	s.do(add(second))
	first = s.change(first.ID)
	first.State = "finalized"
	s.do(func(ctx context.Context, tx store.Tx) error { return tx.MoveChange(ctx, "in_trial", first) })

	third := swap("echo", "failed")
	s.do(add(third))
	third = s.change(third.ID)
	third.State = "preparing"
	s.fails(problem.Conflict, func(ctx context.Context, tx store.Tx) error { return tx.MoveChange(ctx, "failed", third) })
	second = s.change(second.ID)
	second.State = "rejected"
	s.do(func(ctx context.Context, tx store.Tx) error { return tx.MoveChange(ctx, "requested", second) })
	s.do(func(ctx context.Context, tx store.Tx) error { return tx.MoveChange(ctx, "failed", third) })
	for _, c := range []struct {
		filter change.Filter
		want   []id.Change
	}{
		{change.Filter{Swaps: "echo"}, []id.Change{third.ID, second.ID, first.ID}},
		{change.Filter{Swaps: "echo", States: change.Open()}, []id.Change{third.ID}},
		{change.Filter{Swaps: "bob"}, nil},
	} {
		var got []id.Change
		s.do(func(ctx context.Context, tx store.Tx) error {
			all, err := tx.Changes(ctx, c.filter)
			for _, c := range all {
				got = append(got, c.ID)
			}
			return err
		})
		if !slices.Equal(got, c.want) {
			t.Errorf("%+v: got %v, want %v", c.filter, got, c.want)
		}
	}
}

func testList(t *testing.T, s *suite) {
	var want []id.Change
	for n := range 6 {
		c := s.addChange(func(c *change.Row) {
			c.Created = at(0) // the order is that of acceptance even where the clock stood still
			if n%2 == 1 {
				c.Request.Project.Top, c.State = "/src/b", "working"
			}
		})
		want = append([]id.Change{c.ID}, want...)
	}
	for _, c := range []struct {
		name   string
		filter change.Filter
		want   []id.Change
	}{
		{"all", change.Filter{}, want},
		{"limit", change.Filter{Limit: 2}, want[:2]},
		{"repository", change.Filter{Top: "/src/b"}, []id.Change{want[0], want[2], want[4]}},
		{"states", change.Filter{States: []change.State{"requested", "landing"}}, []id.Change{want[1], want[3], want[5]}},
		{"both", change.Filter{Top: "/src/a", States: []change.State{"working"}}, nil},
		{"no state at all", change.Filter{States: []change.State{}}, nil},
	} {
		var got []id.Change
		s.do(func(ctx context.Context, tx store.Tx) error {
			all, err := tx.Changes(ctx, c.filter)
			for _, c := range all {
				got = append(got, c.ID)
			}
			return err
		})
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: got %v, want %v", c.name, got, c.want)
		}
	}
}

func testMove(t *testing.T, s *suite) {
	c := s.addChange()
	next := c
	next.State, next.Base, next.UID, next.Attempts, next.Problem = "preparing", string(oid(77)), 8, 0, ""
	next.Reason, next.Next, next.RevertedBy, next.Moved, next.Due = "", "", "", at(500), time.Time{}
	s.do(func(ctx context.Context, tx store.Tx) error { return tx.MoveChange(ctx, "requested", next) })
	s.same(s.change(c.ID), next)

	s.fails(change.ErrMoved, func(ctx context.Context, tx store.Tx) error { return tx.MoveChange(ctx, "requested", next) })
	stale := next
	stale.Fence--
	s.fails(change.ErrMoved, func(ctx context.Context, tx store.Tx) error { return tx.MoveChange(ctx, "preparing", stale) })
	stale.ID = "chg-nowhere0"
	s.fails(problem.NotFound, func(ctx context.Context, tx store.Tx) error { return tx.MoveChange(ctx, "preparing", stale) })

	// A wish to cancel that came while the step was at work is not written over by its move.
	s.do(func(ctx context.Context, tx store.Tx) error { return tx.RequestCancel(ctx, c.ID) })
	next.State = "working"
	s.do(func(ctx context.Context, tx store.Tx) error { return tx.MoveChange(ctx, "preparing", next) })
	if got := s.change(c.ID); !got.Cancel || got.State != "working" {
		t.Errorf("after the move: cancel = %v, state = %s", got.Cancel, got.State)
	}
	// It ends with what it asked for: a cancelled change that is taken up again is wanted.
	next.State = "cancelled"
	s.do(func(ctx context.Context, tx store.Tx) error { return tx.MoveChange(ctx, "working", next) })
	next.State = "preparing"
	s.do(func(ctx context.Context, tx store.Tx) error { return tx.MoveChange(ctx, "cancelled", next) })
	if got := s.change(c.ID); got.Cancel {
		t.Error("a change that was taken up again is still to be cancelled")
	}
	next.State = "working"
	s.do(func(ctx context.Context, tx store.Tx) error { return tx.MoveChange(ctx, "preparing", next) })
}

// claim runs ClaimDue in a transaction of its own.
func (s *suite) claim(holder string, now time.Time) (c change.Row, ok bool) {
	s.do(func(ctx context.Context, tx store.Tx) (err error) {
		c, ok, err = tx.ClaimDue(ctx, holder, now, 100*time.Millisecond)
		return err
	})
	return c, ok
}

func (s *suite) nextDue() string {
	var due time.Time
	var ok bool
	s.do(func(ctx context.Context, tx store.Tx) (err error) { due, ok, err = tx.NextDue(ctx); return err })
	if !ok {
		return "nothing"
	}
	return due.Sub(at(0)).String()
}

func testClaim(t *testing.T, s *suite) {
	if got := s.nextDue(); got != "nothing" {
		t.Errorf("next due in an empty store: %s", got)
	}
	late := s.addChange(func(c *change.Row) { c.Due = at(20) })
	early := s.addChange(func(c *change.Row) { c.Due = at(10) })
	s.addChange(func(c *change.Row) { c.Due = time.Time{} })
	if got := s.nextDue(); got != "10ms" {
		t.Errorf("next due: %s", got)
	}
	if c, ok := s.claim("one", at(9)); ok {
		t.Errorf("claimed %s before it was due", c.ID)
	}
	a, ok := s.claim("one", at(30))
	if !ok || a.ID != early.ID || a.Holder != "one" || a.Fence != 1 || !a.Until.Equal(at(130)) {
		t.Fatalf("first claim: %v %+v", ok, a)
	}
	s.same(s.change(a.ID), a)
	b, ok := s.claim("one", at(30)) // one holder has as many as it can take
	if !ok || b.ID != late.ID {
		t.Fatalf("second claim: %v %+v", ok, b)
	}
	if c, ok := s.claim("two", at(129)); ok {
		t.Errorf("claimed %s while its lease ran", c.ID)
	}
	if got := s.nextDue(); got != "130ms" {
		t.Errorf("next due while both are held: %s", got)
	}
	renew := func(c change.Row, now time.Time) func(context.Context, store.Tx) error {
		return func(ctx context.Context, tx store.Tx) error { return tx.RenewClaim(ctx, c, now, 100*time.Millisecond) }
	}
	s.do(renew(b, at(120)))
	taken, ok := s.claim("two", at(130))
	if !ok || taken.ID != early.ID || taken.Fence != 2 || taken.Holder != "two" {
		t.Fatalf("claim of a lease that ran out: %v %+v", ok, taken)
	}
	s.fails(lock.ErrLost, renew(a, at(131)))
	a.State = "preparing"
	s.fails(change.ErrMoved, func(ctx context.Context, tx store.Tx) error { return tx.MoveChange(ctx, "requested", a) })

	// A move that keeps the lease keeps it as it was renewed meanwhile.
	s.do(renew(b, at(200)))
	kept := b // as it was claimed
	kept.State, kept.Due = "preparing", at(140)
	s.do(func(ctx context.Context, tx store.Tx) error { return tx.MoveChange(ctx, "requested", kept) })
	if c := s.change(b.ID); !c.Until.Equal(at(300)) {
		t.Errorf("the lease of who holds on runs until %s", c.Until)
	}
	if c, ok := s.claim("two", at(229)); ok {
		t.Errorf("claimed %s from who holds on to it", c.ID)
	}
	kept.State, kept.Until = "requested", at(400)
	s.do(func(ctx context.Context, tx store.Tx) error { return tx.MoveChange(ctx, "preparing", kept) })
	if c := s.change(b.ID); !c.Until.Equal(at(400)) {
		t.Errorf("a lease that was made longer runs until %s", c.Until)
	}
	b.Until = at(400)

	// A move gives the lease back when it says so.
	taken.State, taken.Holder, taken.Until, taken.Due = "preparing", "", time.Time{}, at(140)
	s.do(func(ctx context.Context, tx store.Tx) error { return tx.MoveChange(ctx, "requested", taken) })
	if c, ok := s.claim("three", at(140)); !ok || c.ID != early.ID || c.Fence != 3 {
		t.Errorf("claim after the lease was given back: %v %+v", ok, c)
	}
	s.fails(lock.ErrLost, renew(taken, at(141)))

	// A daemon that starts ends what its predecessor held, and the predecessor can do nothing more.
	s.do(func(ctx context.Context, tx store.Tx) error { return tx.ReleaseClaims(ctx, "three") })
	s.fails(lock.ErrLost, renew(b, at(142)))
	b.State = "preparing"
	s.fails(change.ErrMoved, func(ctx context.Context, tx store.Tx) error { return tx.MoveChange(ctx, "requested", b) })
	if c := s.change(early.ID); c.Holder != "three" || c.Fence != 3 {
		t.Errorf("releasing took a lease of the one that releases: %+v", c)
	}
	if c, ok := s.claim("three", at(142)); !ok || c.ID != late.ID {
		t.Errorf("claim after release: %v %+v", ok, c)
	}
}

func testClaimRace(t *testing.T, s *suite) {
	const rows, claimers = 20, 8
	for range rows {
		s.addChange(func(c *change.Row) { c.Due = at(0) })
	}
	var mu sync.Mutex
	got := map[id.Change]string{}
	var wg sync.WaitGroup
	for n := range claimers {
		wg.Go(func() {
			holder := fmt.Sprint(n)
			for {
				var c change.Row
				var ok bool
				err := s.db.InTx(t.Context(), func(tx store.Tx) (err error) {
					c, ok, err = tx.ClaimDue(t.Context(), holder, at(1), time.Hour)
					return err
				})
				if err != nil {
					t.Error(err)
				}
				if err != nil || !ok {
					return
				}
				mu.Lock()
				if other, twice := got[c.ID]; twice {
					t.Errorf("%s was given to %s and to %s", c.ID, other, holder)
				}
				got[c.ID] = holder
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	if len(got) != rows {
		t.Errorf("%d of %d were claimed", len(got), rows)
	}
}

func testUID(t *testing.T, s *suite) {
	for want := range uint32(3) {
		var got uint32
		s.do(func(ctx context.Context, tx store.Tx) (err error) { got, err = tx.NextUID(ctx); return err })
		if got != want {
			t.Errorf("uid %d, want %d", got, want)
		}
	}
}

func testOwner(t *testing.T, s *suite) {
	owner := person.Owner{ID: alice.Person, UID: 1000, Name: "alice"}
	s.do(func(ctx context.Context, tx store.Tx) error {
		if o, ok, err := tx.Owner(ctx); err != nil || ok {
			t.Errorf("a new home has an owner: %+v, %v", o, err)
		}
		return tx.SetOwner(ctx, owner)
	})
	s.do(func(ctx context.Context, tx store.Tx) error { return tx.SetOwner(ctx, owner) })
	s.fails(problem.Denied, func(ctx context.Context, tx store.Tx) error {
		return tx.SetOwner(ctx, person.Owner{ID: "psn-mallory0", UID: 1001, Name: "mallory"})
	})
	s.do(func(ctx context.Context, tx store.Tx) error {
		o, ok, err := tx.Owner(ctx)
		if !ok || o != owner {
			t.Errorf("owner %+v, %v", o, ok)
		}
		return errors.Join(err)
	})

	s.do(func(ctx context.Context, tx store.Tx) error {
		for i, want := range map[person.Identity]id.Person{
			person.AtTerminal(1000): alice.Person, person.AtTerminal(1001): "", {Platform: "elsewhere", Account: "1000"}: "",
			{Platform: person.Terminal, Account: "alice"}: "",
		} {
			if p, ok, err := tx.Whose(ctx, i); err != nil || ok != (want != "") || p.ID != want {
				t.Errorf("%s is %+v, %v, %v", i, p, ok, err)
			}
		}
		who, err := person.Recognize(ctx, tx, audit.Actor{Kind: "person", Name: "alice", UID: 1000, Person: "psn-forged00"}, person.AtTerminal(1001))
		if who.Person != "" || who.Identity != "terminal:1001" {
			t.Errorf("a stranger is taken for %+v", who)
		}
		return err
	})
}
