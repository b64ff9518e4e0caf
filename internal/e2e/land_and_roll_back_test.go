package e2e_test

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sallyport/internal/base/problem"
	"sallyport/internal/door/api"
	"sallyport/internal/door/client"
)

// groups are the control groups of this place's home, one for each hierarchy.
func (p *place) groups() []string {
	name := p.groupName()
	var found []string
	_ = filepath.WalkDir("/sys/fs/cgroup", func(path string, d os.DirEntry, err error) error {
		if err == nil && d.IsDir() && d.Name() == name {
			found = append(found, path)
			return filepath.SkipDir
		}
		return nil
	})
	return found
}

func (p *place) groupName() string {
	sum := sha256.Sum256([]byte(filepath.Join(p.home, ".state")))
	return "sallyport-" + hex.EncodeToString(sum[:4])
}

// startup is how many operations a daemon of a kept world begins before it can be asked anything.
func (w *world) startup(t *testing.T, start string) int {
	t.Helper()
	w.restore(t, start)
	log := filepath.Join(w.dir, "startup")
	d := w.doom(t, "", log)
	c := d.client(t, w.place)
	if c == nil {
		t.Fatalf("the daemon did not come up: %s", w.said())
	}
	n := len(operations(t, log))
	w.stop(t, c)
	return n
}

// TestADaemonThatDiesWhileItLandsLeavesOldOrNew is law 4 and invariants I1, I2, I3 and I10 over a landing.
func TestADaemonThatDiesWhileItLandsLeavesOldOrNew(t *testing.T) {
	if !apart(t) {
		return
	}
	w := newWorld(t)
	w.toAsked(t)
	w.keep(t, "asked")
	w.crashEverywhere(t, loop{
		from: w.startup(t, "asked"), start: "asked",
		ask: func(t *testing.T, c *client.Client) (string, error) {
			return w.change, approve(t.Context(), c, w.change)
		},
		judge: w.judgeLanding,
	})
}

// judgeLanding wants old or new, exactly, as the row says, and a way that is still open.
func (w *world) judgeLanding(t *testing.T, c *client.Client, _ int) {
	t.Helper()
	at := rest(t, c, w.change, nil)
	w.landed(t, look(t, w.repo), w.new, at.State == api.Finalized)
	w.truthful(t, c)
	if d, err := client.Call(t.Context(), c, api.ChangeShow, w.change); err != nil || d.Approval == nil || d.Approval.Proposal != 1 {
		t.Errorf("it was asked a second time: %+v, %v", d.Approval, err)
	}
	if at.State == api.Finalized {
		return
	}
	if at.State != api.AwaitingApproval { // that is where it stands as long as the yes is not stored
		t.Fatalf("%s is %s: %s", w.change, at.State, at.Reason)
	}
	if err := approve(t.Context(), c, w.change); err != nil {
		t.Fatal(err)
	}
	if at = rest(t, c, w.change, nil); at.State != api.Finalized {
		t.Fatalf("approved again, %s is %s: %s", w.change, at.State, at.Reason)
	}
	w.landed(t, look(t, w.repo), w.new, true)
	w.truthful(t, c)
}

// dieLanding has a daemon die half-way through the landing; without a keeper nobody takes it up.
func (w *world) dieLanding(t *testing.T, where string, keeper bool) {
	t.Helper()
	program := filepath.Join(filepath.Dir(w.bin), "sallyport-keeper")
	if !keeper {
		if err := os.Rename(program, program+".away"); err != nil {
			t.Fatal(err)
		}
		defer func() {
			if err := os.Rename(program+".away", program); err != nil {
				t.Error(err)
			}
		}()
	}
	d := w.doom(t, where, filepath.Join(w.dir, "dying"))
	c := d.client(t, w.place)
	if c == nil {
		t.Fatalf("the daemon did not come up: %s", w.said())
	}
	if err := approve(t.Context(), c, w.change); err != nil && problem.KindOf(err) != problem.Unavailable {
		t.Fatal(err)
	}
	d.end(t, w.place)
	if !d.killed() {
		t.Fatalf("the daemon did not die: %s", w.said())
	}
}

// TestADaemonThatDiesWhileItRecoversLeavesTheNewTree kills the one that comes after the dead, too.
func TestADaemonThatDiesWhileItRecoversLeavesTheNewTree(t *testing.T) {
	if !apart(t) {
		return
	}
	w := newWorld(t)
	w.toAsked(t)
	w.keep(t, "asked")
	from := w.startup(t, "asked") - 2 // it goes on with the landing while it begins to listen
	w.restore(t, "asked")
	w.dieLanding(t, "tree:replace#2:after", false)
	nobody(t)
	w.save(t, "broken")
	w.crashEverywhere(t, loop{
		from: from, start: "broken",
		ask:   func(*testing.T, *client.Client) (string, error) { return w.change, nil },
		judge: w.judgeLanding,
	})
}

// TestALandingInWhichSallyportStopsEachTimeIsAskedAboutAgain holds that what was approved lands anew after a death, and not without end.
func TestALandingInWhichSallyportStopsEachTimeIsAskedAboutAgain(t *testing.T) {
	if !apart(t) {
		return
	}
	w := newWorld(t)
	w.toAsked(t)
	w.keep(t, "asked")
	if err := os.Remove(filepath.Join(filepath.Dir(w.bin), "sallyport-keeper")); err != nil { // it would bring a daemon back between two deaths
		t.Fatal(err)
	}
	const where = "db:began_landing:after"
	w.dieLanding(t, where, true)
	for n := range 2 {
		d := w.doom(t, where, filepath.Join(w.dir, fmt.Sprint("dying-", n)))
		d.end(t, w.place)
		if !d.killed() {
			t.Fatalf("it did not land anew the %d. time: %s", n+1, w.said())
		}
	}
	d := w.doom(t, "", filepath.Join(w.dir, "living"))
	c := d.client(t, w.place)
	if c == nil {
		t.Fatalf("the daemon did not come up: %s", w.said())
	}
	at := rest(t, c, w.change, nil)
	if shown, err := client.Call(t.Context(), c, api.ChangeShow, w.change); err != nil || at.State != api.AwaitingApproval || shown.Approval.Proposal != 2 || !strings.Contains(at.Reason, "stopped in the middle") {
		t.Errorf("%s is %s: %s; %+v, %v", w.change, at.State, at.Reason, shown.Approval, err)
	}
	w.landed(t, look(t, w.repo), w.new, false)
	w.stop(t, c)
}

// TestAKeeperHasALandingFinishedThatItsDaemonLeftOpen needs nobody to run a command.
func TestAKeeperHasALandingFinishedThatItsDaemonLeftOpen(t *testing.T) {
	if !apart(t) {
		return
	}
	w := newWorld(t)
	w.toAsked(t)
	w.keep(t, "asked")
	for _, where := range []string{"keeper:start:after", "db:began_landing:after", "ref:update:after", "tree:add#2:after", "index:swap:before"} {
		t.Run(where, func(t *testing.T) {
			w.restore(t, "asked")
			if err := os.Remove(filepath.Join(w.dir, "dying")); err != nil && !errors.Is(err, fs.ErrNotExist) {
				t.Fatal(err)
			}
			w.dieLanding(t, where, true)
			var c *client.Client
			await(t, "the keeper to bring a daemon back", func() (bool, error) {
				var err error
				c, err = client.Me().Dial(t.Context(), w.home)
				return err == nil, nil
			})
			w.judgeLanding(t, c, 0)
			if at, err := client.Call(t.Context(), c, api.ChangeShow, w.change); err != nil || at.Change.State != api.Finalized {
				t.Errorf("what was approved did not land: %+v, %v", at.Change, err)
			}
			w.stopUnwatched(t, c)
			w.leftNothing(t)
		})
	}
}

// TestADaemonThatDiesWhileItRollsBackLeavesOldOrNew is the same over the way back.
func TestADaemonThatDiesWhileItRollsBackLeavesOldOrNew(t *testing.T) {
	if !apart(t) {
		return
	}
	w := newWorld(t)
	w.toLanded(t)
	w.keep(t, "landed")
	rollback := func(t *testing.T, c *client.Client) (string, error) {
		r, err := client.Call(t.Context(), c, api.ChangeRollback, api.Rollback{Of: w.change, Reason: "it was wrong", Approve: "yes"})
		return r.ID, err
	}
	w.crashEverywhere(t, loop{
		from: w.startup(t, "landed"), start: "landed", ask: rollback,
		judge: func(t *testing.T, c *client.Client, _ int) {
			back := w.reverts(t, c)
			if back == "" { // the wish was never accepted
				w.landed(t, look(t, w.repo), w.old, false)
				w.truthful(t, c)
				var err error
				if back, err = rollback(t, c); err != nil {
					t.Fatal(err)
				}
			}
			at := rest(t, c, back, nil)
			w.rolledBack(t, c, at.State == api.Finalized)
			if at.State == api.Finalized {
				return
			}
			if at.State != api.AwaitingApproval {
				t.Fatalf("%s is %s: %s", back, at.State, at.Reason)
			}
			if err := approve(t.Context(), c, back); err != nil {
				t.Fatal(err)
			}
			if at = rest(t, c, back, nil); at.State != api.Finalized {
				t.Fatalf("approved again, %s is %s: %s", back, at.State, at.Reason)
			}
			w.rolledBack(t, c, true)
		},
	})
}

// reverts returns the change that rolls back; "" if there is none.
func (w *world) reverts(t *testing.T, c *client.Client) string {
	t.Helper()
	all, err := client.Call(t.Context(), c, api.ChangeList, api.Filter{})
	if err != nil || len(all) > 2 {
		t.Fatalf("changes: %+v, %v", all, err)
	}
	for _, ch := range all {
		if ch.Reverts == w.change {
			return ch.ID
		}
	}
	return ""
}

// rolledBack checks that both rows and the repository say that the change was rolled back, or that it was not.
func (w *world) rolledBack(t *testing.T, c *client.Client, yes bool) {
	t.Helper()
	d, err := client.Call(t.Context(), c, api.ChangeShow, w.change)
	if err != nil {
		t.Fatal(err)
	}
	if is := d.Change.State == api.RolledBack; is != yes {
		t.Errorf("%s is %s; was it rolled back: %v", w.change, d.Change.State, yes)
	}
	w.landed(t, look(t, w.repo), w.old, yes)
	w.truthful(t, c)
}

// TestADaemonThatDiesBeforeAPersonIsAskedLosesNothing is the way from the first daemon of a home to a person's card.
func TestADaemonThatDiesBeforeAPersonIsAskedLosesNothing(t *testing.T) {
	if !apart(t) {
		return
	}
	w := newWorld(t)
	if err := os.Mkdir(w.home, 0o700); err != nil {
		t.Fatal(err)
	}
	w.keep(t, "new")
	ask := func(t *testing.T, c *client.Client) (string, error) {
		ch, err := w.request(t.Context(), c)
		return ch.ID, err
	}
	w.crashEverywhere(t, loop{
		start: "new", ask: ask,
		judge: func(t *testing.T, c *client.Client, point int) {
			all, err := client.Call(t.Context(), c, api.ChangeList, api.Filter{})
			if err != nil || len(all) > 1 {
				t.Fatalf("changes: %+v, %v", all, err)
			}
			if len(all) == 0 { // the wish was never accepted, and whoever asked was told nothing else
				now := look(t, w.repo)
				w.landed(t, now, "", false)
				return
			}
			at := rest(t, c, all[0].ID, nil)
			w.landed(t, look(t, w.repo), "", false)
			w.truthful(t, c)
			w.offers(t, c, at)
			if point%7 != 0 || t.Failed() {
				return
			}
			if err := approve(t.Context(), c, at.ID); err != nil {
				t.Fatal(err)
			}
			at = rest(t, c, at.ID, nil)
			w.landed(t, look(t, w.repo), w.new, at.State == api.Finalized)
		},
	})
}

// offers checks that a change waits for a person with exactly what the agent did, and that every session that
// may have done something has left a checkpoint.
func (w *world) offers(t *testing.T, c *client.Client, at api.Change) {
	t.Helper()
	d, err := client.Call(t.Context(), c, api.ChangeShow, at.ID)
	if err != nil {
		t.Fatal(err)
	}
	if at.State != api.AwaitingApproval || d.Proposal == nil {
		t.Fatalf("%s is %s: %s", at.ID, at.State, at.Reason)
	}
	if d.Proposal.Tree != w.new {
		t.Errorf("%s offers the tree %s, the agent made %s", at.ID, d.Proposal.Tree, w.new)
	}
	if _, err := tryGit(w.repo, "cat-file", "-e", d.Proposal.Commit); err == nil {
		t.Errorf("the person's repository has %s before anybody said yes", d.Proposal.Commit)
	}
	if refs := git(t, w.repo, "for-each-ref", "refs/sallyport/"); refs != "" {
		t.Errorf("the person's repository has %q", refs)
	}
	kept := map[string]bool{}
	for _, cp := range d.Checkpoints {
		kept[cp.Session] = true
	}
	for _, s := range d.Sessions {
		if !kept[s.ID] {
			t.Errorf("session %s has no checkpoint", s.ID)
		}
	}
	if n := len(d.Sessions); n > 2 {
		t.Errorf("one crash, and the agent was started %d times", n)
	}
}
