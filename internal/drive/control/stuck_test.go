package control_test

import (
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"sallyport/internal/base/deadman"
	"sallyport/internal/base/disk"
	"sallyport/internal/base/git/gittest"
	"sallyport/internal/base/id"
	"sallyport/internal/drive/drivetest"
	"sallyport/internal/drive/guard"
	"sallyport/internal/path/change"
	"sallyport/internal/path/landing"
	"sallyport/internal/store"
)

// Whatever fails before a landing has begun: it is an answer, soon, and a yes of long ago lands nothing.
func TestAnErrorBeforeALandingBeginsGoesBackToThePersonWithItsReason(t *testing.T) {
	drivetest.Bubble(t, func(t *testing.T, h *drivetest.Home) {
		o := h.Odd()
		var broken atomic.Bool
		h.Parts.Lander.Ops = disk.Ops{Around: func(op string, do func() error) error {
			if op == "git:import" && broken.Load() {
				return errors.New("input/output error")
			}
			return do()
		}}
		h.Cage.Play = drivetest.Writes("two\n")
		c, _ := h.Daemon()
		chg := h.Ask(c)
		fails := func(what string) func() func() {
			return func() func() { o.Fault.Store(&what); return func() { o.Fault.Store(nil) } }
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
			{"/repo", func() func() { return h.Aside("") }},
			{"/repo/.git", func() func() { return h.Aside(".git") }},
			{"/repo/.git", func() func() { return h.Aside(".git/objects") }},
			{"/repo/.git", func() func() { return h.Spoil(".git/HEAD", "what is this\n") }},
			{"/repo/.git/config", func() func() { return h.Spoil(".git/config", "[core\n") }},
			{"the index cannot be read", func() func() { return h.Spoil(".git/index", "none\n") }},
			{`branch "main"`, func() func() {
				tip := h.Git("rev-parse", "main")
				h.Git("update-ref", "-d", "refs/heads/main")
				return func() { h.Git("update-ref", "refs/heads/main", tip) }
			}},
		} {
			mend := of.breaks()
			h.Yes(c, chg)
			time.Sleep(10 * time.Second)
			d := h.Is(c, chg, change.AwaitingApproval)
			if !strings.Contains(d.Change.Reason, of.says) || d.Change.Next == "" || d.Proposal.Card.Note == "" {
				t.Errorf("of %q it says %q, next %q, and the card %q", of.says, d.Change.Reason, d.Change.Next, d.Proposal.Card.Note)
			}
			mend()
			time.Sleep(time.Hour)
			d = h.Is(c, chg, change.AwaitingApproval)
			host, err := h.Parts.Workspaces.EnsureRepository(t.Context(), d.Change.Request.Project)
			if err != nil {
				t.Fatal(err)
			}
			if left, err := host.Refs(t.Context(), "refs/sallyport/"+string(chg)+"/landings/"); err != nil || len(left) > 0 {
				t.Errorf("of %q the tries have left %v, %v", of.says, left, err)
			}
		}
		if armed, disarmed := h.Keeper.Told(); armed > disarmed {
			t.Errorf("a keeper watches what has not begun: armed %d times, disarmed %d times", armed, disarmed)
		}
		h.Yes(c, chg)
		h.Is(c, chg, change.Finalized)
	})
}

// late is a keeper that stands only once something has happened.
type late struct {
	*drivetest.Keeper
	stands func(id.Landing)
}

func (k *late) Arm(l id.Landing, w guard.Watched) error {
	k.stands(l)
	return k.Keeper.Arm(l, w)
}

// The keeper starts beside the work that moves nothing. It watches before a landing has begun.
func TestNoLandingBeginsBeforeItsKeeperWatches(t *testing.T) {
	drivetest.Bubble(t, func(t *testing.T, h *drivetest.Home) {
		brought := make(chan struct{})
		var stood atomic.Int32
		h.Parts.Lander.Ops = disk.Ops{Around: func(op string, do func() error) error {
			if op == "desk:make" && stood.Load() != 1 {
				t.Errorf("the landing has begun with %d keepers that watch", stood.Load())
			}
			err := do()
			if op == "git:aside" {
				close(brought)
			}
			return err
		}}
		h.Parts.Keeper = &late{h.Keeper, func(l id.Landing) {
			<-brought
			for range 100 { // for as long as the next step would take
				err := h.Parts.DB.Read(t.Context(), func(tx store.Tx) error {
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
		h.Cage.Play = drivetest.Writes("two\n")
		c, _ := h.Daemon()
		chg := h.Ask(c)
		h.Yes(c, chg)
		h.Is(c, chg, change.Finalized)
	})
}

// What waits for its turn says for what, at once, and can be withdrawn; so can its daemon end.
func TestALandingThatWaitsSaysForWhatAndCanBeCancelled(t *testing.T) {
	drivetest.Bubble(t, func(t *testing.T, h *drivetest.Home) {
		h.Serve()
		c, end := h.Daemon()
		tried := h.Land(c, nil)
		h.Is(c, tried, change.InTrial)
		h.Cage.Play = drivetest.Writes("three\n")
		waiting := h.Land(c, nil)
		time.Sleep(time.Second)
		waits := func() {
			t.Helper()
			d := h.Is(c, waiting, change.Landing)
			if !strings.Contains(d.Change.Reason, string(tried)+" is on trial") || d.Change.Attempts != 0 || d.Change.Next != "sallyport change show "+string(tried) {
				t.Errorf("it says %q after %d attempts, next %q", d.Change.Reason, d.Change.Attempts, d.Change.Next)
			}
		}
		waits()
		end()
		c, _ = h.Daemon()
		time.Sleep(2 * time.Second)
		waits()
		if err := c.Cancel(gittest.Context(t), waiting, h.By(), "enough"); err != nil {
			t.Fatal(err)
		}
		if d := h.Is(c, waiting, change.Cancelled); d.Change.Reason != "enough" {
			t.Errorf("it ended with %q", d.Change.Reason)
		}
	})
}

// A landing that stands in the journal and whose repository has gone for good is left as it stands by a person; until then it
// says so, is tried again, and holds up nobody.
func TestALandingThatCanBeBroughtToNoEndIsLeftByAPerson(t *testing.T) {
	drivetest.Bubble(t, func(t *testing.T, h *drivetest.Home) {
		h.Cage.Play = drivetest.Writes("two\n")
		var mend func()
		h.Parts.Lander.Ops = disk.Ops{Around: func(op string, do func() error) error {
			if op == "ref:update" && mend == nil {
				mend = h.Aside("")
				return errors.New("the disk went away")
			}
			return do()
		}}
		c, end := h.Daemon()
		chg := h.Ask(c)
		h.Yes(c, chg)
		d := h.Is(c, chg, change.RollbackFailed)
		for range 2 {
			if !strings.Contains(d.Change.Reason, "no such file") || !strings.Contains(d.Change.Reason, "sallyport change cancel "+string(chg)) || d.Change.Next == "" {
				t.Errorf("it says %q, next %q", d.Change.Reason, d.Change.Next)
			}
			time.Sleep(10 * time.Minute)
			d = h.Is(c, chg, change.RollbackFailed)
		}
		if d.Change.Attempts < 5 || d.Change.Attempts > 30 {
			t.Errorf("it was tried again %d times in 20 minutes", d.Change.Attempts)
		}
		if err := c.Cancel(gittest.Context(t), chg, h.By(), "it is gone"); err != nil {
			t.Fatal(err)
		}
		d = h.Is(c, chg, change.Failed)
		if !strings.Contains(d.Change.Reason, "ann stopped the rollback") || !strings.Contains(d.Change.Reason, "it is gone") || d.Landing.State != landing.Stranded || d.Landing.Ended == nil {
			t.Errorf("it ended with %q, its landing %s %v", d.Change.Reason, d.Landing.State, d.Landing.Ended)
		}
		if armed, _ := h.Keeper.Still(); len(armed) > 0 {
			t.Errorf("a keeper watches on: %v", armed)
		}
		mend()
		if left, err := h.Parts.Lander.Clear(t.Context(), *d.Landing); err != nil || len(left) > 0 { // as gc does
			t.Fatal(left, err)
		}
		end()
		c, _ = h.Daemon()
		time.Sleep(time.Hour)
		h.Is(c, chg, change.Failed)
		other := h.Ask(c)
		h.Yes(c, other)
		h.Is(c, other, change.Finalized)
	})
}

// What stands in the journal and can neither be closed nor taken back is said aloud, holds up nobody, and is tried again.
func TestALandingWhoseEndCannotBeWrittenIsToldOfAndTriedAgain(t *testing.T) {
	drivetest.Bubble(t, func(t *testing.T, h *drivetest.Home) {
		h.Cage.Play = drivetest.Writes("two\n")
		var broken atomic.Bool
		h.Parts.Clock = func() (deadman.Moment, error) {
			if broken.Load() {
				return deadman.Moment{}, errors.New("no clock")
			}
			return deadman.Now()
		}
		h.Parts.Lander.Ops = disk.Ops{Around: func(op string, do func() error) error {
			broken.CompareAndSwap(false, op == "ref:update")
			return do()
		}}
		c, _ := h.Daemon()
		chg := h.Ask(c)
		h.Yes(c, chg)
		time.Sleep(time.Minute)
		d := h.Is(c, chg, change.RollbackFailed)
		if !strings.Contains(d.Change.Reason, "no clock") || !strings.Contains(d.Change.Reason, "sallyport change cancel "+string(chg)) || d.Landing.State != landing.Stranded {
			t.Errorf("its landing is %s, and it says %q", d.Landing.State, d.Change.Reason)
		}
		broken.Store(false)
		time.Sleep(10 * time.Minute)
		h.Is(c, chg, change.Finalized)
	})
}
