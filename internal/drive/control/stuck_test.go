package control_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"sallyport/internal/base/deadman"
	"sallyport/internal/base/disk"
	"sallyport/internal/base/git"
	"sallyport/internal/base/id"
	"sallyport/internal/base/problem"
	"sallyport/internal/drive/grounds"
	"sallyport/internal/drive/guard"
	"sallyport/internal/path/change"
	"sallyport/internal/path/landing"
	"sallyport/internal/rule/trust"
	"sallyport/internal/store"
)

// odd is a home some of whose parts fail while fault is set.
type odd struct {
	rules
	*service
	*keeper
	fault atomic.Pointer[string]
}

func (o *odd) fails(what string) error {
	if at := o.fault.Load(); at != nil && *at == what {
		return errors.New(what + " cannot be read")
	}
	return nil
}

func (o *odd) At(ctx context.Context, project git.Project, host git.Dir, commit git.OID) (grounds.Judging, error) {
	if err := o.fails("rules"); err != nil {
		return grounds.Judging{}, problem.Errorf(problem.Refused, "cat .sallyport.yaml", "%w", err)
	}
	if err := o.fails("home"); err != nil {
		return grounds.Judging{}, err
	}
	return o.rules.At(ctx, project, host, commit)
}

func (o *odd) Of(ctx context.Context, host git.Dir, p git.Project, head git.OID) (trust.Target, string, error) {
	if err := o.fails("target"); err != nil {
		return trust.Target{}, "", err
	}
	return trust.Target{}, "", nil
}

func (o *odd) Arm(l id.Landing, w guard.Watched) error {
	if err := o.fails("keeper"); err != nil {
		return err
	}
	return o.keeper.Arm(l, w)
}

// make gives a home parts that can fail.
func (h *home) odd() *odd {
	o := &odd{keeper: h.keeper, service: &service{page: filepath.Join(h.repo, "page.txt")}}
	h.parts.Rules, h.parts.Targets, h.parts.Keeper = o, o, o
	return o
}

// aside moves a part of the repository out of the way; "" is all of it.
func (h *home) aside(path string) (mend func()) {
	from, to := filepath.Join(h.repo, path), h.repo+".aside"
	if err := os.Rename(from, to); err != nil {
		h.t.Fatal(err)
	}
	return func() {
		if err := errors.Join(os.RemoveAll(from), os.Rename(to, from)); err != nil {
			h.t.Error(err)
		}
	}
}

// spoil writes a file of the repository.
func (h *home) spoil(path, text string) (mend func()) {
	at := filepath.Join(h.repo, path)
	was, missing := os.ReadFile(at)
	if err := os.WriteFile(at, []byte(text), 0o644); err != nil {
		h.t.Fatal(err)
	}
	return func() {
		err := os.WriteFile(at, was, 0o644)
		if missing != nil {
			err = os.Remove(at)
		}
		if err != nil {
			h.t.Error(err)
		}
	}
}

// Whatever fails before a landing has begun: it is an answer, soon, and a yes of long ago lands nothing.
func TestAnErrorBeforeALandingBeginsGoesBackToThePersonWithItsReason(t *testing.T) {
	bubble(t, func(t *testing.T, h *home) {
		o := h.odd()
		var broken atomic.Bool
		h.parts.Lander.Ops = disk.Ops{Around: func(op string, do func() error) error {
			if op == "git:import" && broken.Load() {
				return errors.New("input/output error")
			}
			return do()
		}}
		h.cage.play = writes("two\n")
		c, _ := h.daemon()
		chg := h.ask(c)
		fails := func(what string) func() func() {
			return func() func() { o.fault.Store(&what); return func() { o.fault.Store(nil) } }
		}
		for _, of := range []struct {
			says   string
			breaks func() (mend func())
		}{
			{"rules cannot be read", fails("rules")},
			{"home cannot be read", fails("home")},
			{"target cannot be read", fails("target")},
			{"arm the keeper: keeper cannot be read", fails("keeper")},
			{"input/output error", func() func() { broken.Store(true); return func() { broken.Store(false) } }},
			{"/repo", func() func() { return h.aside("") }},
			{"/repo/.git", func() func() { return h.aside(".git") }},
			{"/repo/.git", func() func() { return h.aside(".git/objects") }},
			{"/repo/.git", func() func() { return h.spoil(".git/HEAD", "what is this\n") }},
			{"/repo/.git/config", func() func() { return h.spoil(".git/config", "[core\n") }},
			{"the index cannot be read", func() func() { return h.spoil(".git/index", "none\n") }},
			{`branch "main"`, func() func() {
				tip := h.git("rev-parse", "main")
				h.git("update-ref", "-d", "refs/heads/main")
				return func() { h.git("update-ref", "refs/heads/main", tip) }
			}},
		} {
			mend := of.breaks()
			h.yes(c, chg)
			time.Sleep(10 * time.Second)
			d := h.is(c, chg, change.AwaitingApproval)
			if !strings.Contains(d.Change.Reason, of.says) || d.Change.Next == "" || d.Proposal.Card.Note == "" {
				t.Errorf("of %q it says %q, next %q, and the card %q", of.says, d.Change.Reason, d.Change.Next, d.Proposal.Card.Note)
			}
			mend()
			time.Sleep(time.Hour)
			d = h.is(c, chg, change.AwaitingApproval)
			host, err := h.parts.Workspaces.Repository(t.Context(), d.Change.Request.Project)
			if err != nil {
				t.Fatal(err)
			}
			if left, err := host.Refs(t.Context(), "refs/sallyport/"+string(chg)+"/landings/"); err != nil || len(left) > 0 {
				t.Errorf("of %q the tries have left %v, %v", of.says, left, err)
			}
		}
		if armed, disarmed := h.keeper.told(); armed > disarmed {
			t.Errorf("a keeper watches what has not begun: armed %d times, disarmed %d times", armed, disarmed)
		}
		h.yes(c, chg)
		h.is(c, chg, change.Finalized)
	})
}

// late is a keeper that stands only once something has happened.
type late struct {
	*keeper
	stands func(id.Landing)
}

func (k *late) Arm(l id.Landing, w guard.Watched) error {
	k.stands(l)
	return k.keeper.Arm(l, w)
}

// The keeper starts beside the work that moves nothing. It watches before a landing has begun.
func TestNoLandingBeginsBeforeItsKeeperWatches(t *testing.T) {
	bubble(t, func(t *testing.T, h *home) {
		brought := make(chan struct{})
		var stood atomic.Int32
		h.parts.Lander.Ops = disk.Ops{Around: func(op string, do func() error) error {
			if op == "desk:make" && stood.Load() != 1 {
				t.Errorf("the landing has begun with %d keepers that watch", stood.Load())
			}
			err := do()
			if op == "git:aside" {
				close(brought)
			}
			return err
		}}
		h.parts.Keeper = &late{h.keeper, func(l id.Landing) {
			<-brought
			for range 100 { // for as long as the next step would take
				err := h.parts.DB.Read(t.Context(), func(tx store.Tx) error {
					_, there, err := tx.Landing(t.Context(), l)
					if there {
						t.Error("the landing is in the journal before its keeper watches")
					}
					return err
				})
				if err != nil {
					t.Error(err)
				}
			}
			stood.Add(1)
		}}
		h.cage.play = writes("two\n")
		c, _ := h.daemon()
		chg := h.ask(c)
		h.yes(c, chg)
		h.is(c, chg, change.Finalized)
	})
}

// What waits for its turn says for what, at once, and can be withdrawn; so can its daemon end.
func TestALandingThatWaitsSaysForWhatAndCanBeCancelled(t *testing.T) {
	bubble(t, func(t *testing.T, h *home) {
		h.serve()
		c, end := h.daemon()
		tried := h.land(c, nil)
		h.is(c, tried, change.InTrial)
		h.cage.play = writes("three\n")
		waiting := h.land(c, nil)
		time.Sleep(time.Second)
		waits := func() {
			t.Helper()
			d := h.is(c, waiting, change.Landing)
			if !strings.Contains(d.Change.Reason, string(tried)+" is on trial") || d.Change.Attempts != 0 || d.Change.Next != "sallyport change show "+string(tried) {
				t.Errorf("it says %q after %d attempts, next %q", d.Change.Reason, d.Change.Attempts, d.Change.Next)
			}
		}
		waits()
		end()
		c, _ = h.daemon()
		time.Sleep(2 * time.Second)
		waits()
		if err := c.Cancel(t.Context(), waiting, h.by(), "enough"); err != nil {
			t.Fatal(err)
		}
		if d := h.is(c, waiting, change.Cancelled); d.Change.Reason != "enough" {
			t.Errorf("it ended with %q", d.Change.Reason)
		}
	})
}

// A landing that stands in the journal and whose repository has gone for good is left as it stands by a person; until then it
// says so, is tried again, and holds up nobody.
func TestALandingThatCanBeBroughtToNoEndIsLeftByAPerson(t *testing.T) {
	bubble(t, func(t *testing.T, h *home) {
		h.cage.play = writes("two\n")
		var mend func()
		h.parts.Lander.Ops = disk.Ops{Around: func(op string, do func() error) error {
			if op == "ref:update" && mend == nil {
				mend = h.aside("")
				return errors.New("the disk went away")
			}
			return do()
		}}
		c, end := h.daemon()
		chg := h.ask(c)
		h.yes(c, chg)
		d := h.is(c, chg, change.RollbackFailed)
		for range 2 {
			if !strings.Contains(d.Change.Reason, "no such file") || !strings.Contains(d.Change.Reason, "sallyport change cancel "+string(chg)) || d.Change.Next == "" {
				t.Errorf("it says %q, next %q", d.Change.Reason, d.Change.Next)
			}
			time.Sleep(10 * time.Minute)
			d = h.is(c, chg, change.RollbackFailed)
		}
		if d.Change.Attempts < 5 || d.Change.Attempts > 30 {
			t.Errorf("it was tried again %d times in 20 minutes", d.Change.Attempts)
		}
		if err := c.Cancel(t.Context(), chg, h.by(), "it is gone"); err != nil {
			t.Fatal(err)
		}
		d = h.is(c, chg, change.Failed)
		if !strings.Contains(d.Change.Reason, "ann stopped the rollback") || !strings.Contains(d.Change.Reason, "it is gone") || d.Landing.State != landing.Stranded || d.Landing.Ended == nil {
			t.Errorf("it ended with %q, its landing %s %v", d.Change.Reason, d.Landing.State, d.Landing.Ended)
		}
		if armed, _ := h.keeper.still(); len(armed) > 0 {
			t.Errorf("a keeper watches on: %v", armed)
		}
		mend()
		if left, err := h.parts.Lander.Clear(t.Context(), *d.Landing); err != nil || len(left) > 0 { // as gc does
			t.Fatal(left, err)
		}
		end()
		c, _ = h.daemon()
		time.Sleep(time.Hour)
		h.is(c, chg, change.Failed)
		other := h.ask(c)
		h.yes(c, other)
		h.is(c, other, change.Finalized)
	})
}

// What stands in the journal and can neither be closed nor taken back is said aloud, holds up nobody, and is tried again.
func TestALandingWhoseEndCannotBeWrittenIsToldOfAndTriedAgain(t *testing.T) {
	bubble(t, func(t *testing.T, h *home) {
		h.cage.play = writes("two\n")
		var broken atomic.Bool
		h.parts.Clock = func() (deadman.Moment, error) {
			if broken.Load() {
				return deadman.Moment{}, errors.New("no clock")
			}
			return deadman.Now()
		}
		h.parts.Lander.Ops = disk.Ops{Around: func(op string, do func() error) error {
			broken.CompareAndSwap(false, op == "ref:update")
			return do()
		}}
		c, _ := h.daemon()
		chg := h.ask(c)
		h.yes(c, chg)
		time.Sleep(time.Minute)
		d := h.is(c, chg, change.RollbackFailed)
		if !strings.Contains(d.Change.Reason, "no clock") || !strings.Contains(d.Change.Reason, "sallyport change cancel "+string(chg)) || d.Landing.State != landing.Stranded {
			t.Errorf("its landing is %s, and it says %q", d.Landing.State, d.Change.Reason)
		}
		broken.Store(false)
		time.Sleep(10 * time.Minute)
		h.is(c, chg, change.Finalized)
	})
}
