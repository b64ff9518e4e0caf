package e2e_test

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"sallyport/internal/base/disk/disktest"
	"sallyport/internal/base/keeper"
	"sallyport/internal/daemon"
	"sallyport/internal/door/api"
	"sallyport/internal/door/client"
	"sallyport/internal/store/sqlite/sqlitetest"
)

// hostWish is a change of the host itself, and hostFile what it changes.
const (
	hostWish = "/change append docs/notes.md: More."
	hostFile = "docs/notes.md"
)

// hosting is a world whose host changes, under a keeper. A person has its card.
type hosting struct {
	*swapped
	code  string // that the last yes was answered with
	newer bool   // what is on trial leaves a database of another schema
}

func newHosting(t *testing.T) *hosting {
	t.Helper()
	w := &hosting{swapped: newSwapped(t)}
	disktest.Put(t, filepath.Join(w.home, "policy.yaml"), "approvals: {cool_down: 1s}\n", 0o600)
	git(t, w.home, "add", "policy.yaml")
	git(t, w.home, "commit", "-qm", "think for a second")
	w.first = w.home1(t)
	if _, err := daemon.PutRelease(daemon.Options{Home: w.home, Self: w.bin}); err != nil {
		t.Fatal(err)
	}
	d := w.kept(t)
	c := d.client(t, w.place)
	if c == nil {
		t.Fatalf("the host did not come up: %s", w.said())
	}
	s := newSwapper("")
	if !s.says(t, c, "wish", hostWish) {
		t.Fatal("the daemon went away")
	}
	await(t, "the card", func() (bool, error) {
		changes, err := client.Call(t.Context(), c, api.ChangeList, api.Filter{})
		if err != nil || len(changes) == 0 {
			return false, err
		}
		w.change = changes[0].ID
		if changes[0].State == api.Failed {
			return false, fmt.Errorf("%s: %s\n%s", w.change, changes[0].Reason, w.said())
		}
		return changes[0].State == api.AwaitingApproval, nil
	})
	w.quit(t, d)
	w.save(t, "card")
	return w
}

// kept starts a keeper that nobody starts again, with more in its environment and that of its daemons.
func (w *hosting) kept(t *testing.T, more ...string) *doomed {
	t.Helper()
	if w.newer {
		more = append(more, newer+"=1")
	}
	return w.begin(t, []string{filepath.Join(w.dir, "bin", keeper.Program), "serve", w.home}, append(more, keeper.InService+"=1")...)
}

// quit ends a keeper and its daemon in good order.
func (w *hosting) quit(t *testing.T, d *doomed) {
	t.Helper()
	if err := d.Process.Signal(unix.SIGTERM); err != nil {
		t.Fatal(err)
	}
	d.end(t, w.place)
	if status := d.ProcessState.ExitCode(); status != 0 {
		t.Errorf("the keeper ended with %s: %s", d.ProcessState, w.said())
	}
	nobody(t)
}

// decides is a person who approves the change as often as they are asked, gives the answer to its trial once it may be given, and stays until
// it is over for the keeper too. Before the answer they say a few things. gone ends all of it early.
func (w *hosting) decides(t *testing.T, word string, gone func() bool, s *swapper) api.Change {
	t.Helper()
	var at api.Change
	var c *client.Client
	said := 0
	var refused error // the last answer to an answer: not yet, perhaps
	unwatch := func() {}
	defer func() {
		unwatch()
		if r, is, err := keeper.RecordOf(w.home); t.Failed() {
			t.Logf("%s is %s: %s; the keeper's record: %t, %q %s, %v; it was answered %v; %s", at.ID, at.State, at.Reason, is, r.Step, r.Why, err, refused, w.said())
		}
	}()
	await(t, w.change+" to come to its end", func() (bool, error) {
		if gone() {
			return false, errors.New("the keeper has ended: " + w.said())
		}
		if c == nil {
			var err error
			if c, err = client.Me().Dial(t.Context(), w.home); err != nil {
				c = nil
				return false, nil
			}
			unwatch()
			unwatch = s.watch(t, c)
		}
		d, err := client.Call(t.Context(), c, api.ChangeShow, w.change)
		if err != nil {
			c = nil
			return false, nil
		}
		at = d.Change
		if at.State == api.InTrial && at.Trial.Asks() {
			for ; said < sayings20 && s.says(t, c, fmt.Sprint("trial-", said), fmt.Sprint("trial-", said)); said++ {
			}
			s.mu.Lock()
			defer s.mu.Unlock()
			if said < sayings20 || s.count(line(fmt.Sprint("trial-", said-1))) == 0 {
				return false, nil
			}
		}
		switch {
		case at.State == api.AwaitingApproval && d.Approval != nil && d.Proposal != nil:
			said, err := client.Call(t.Context(), c, api.ApprovalApprove, api.Approve{Of: d.Approval.ID, Digest: d.Proposal.Digest, Marked: true, Typed: "CONFIRM HOST"})
			if err == nil {
				w.code = said.Code
			}
		case at.State == api.InTrial && word == "rollback" && !at.Trial.Asks() && w.code != "": // not yet
		case at.State == api.InTrial && (word == "rollback" || w.code == ""):
			_, refused = client.Call(t.Context(), c, api.ChangeRollback, api.Rollback{Of: w.change, Reason: "no", Approve: "yes"})
		case at.State == api.InTrial:
			refused = client.Do(t.Context(), c, api.ChangeConfirm, api.Confirm{Of: w.change, Code: w.code})
		}
		_, is, err := keeper.RecordOf(w.home)
		return api.Final(at.State) && !is, err
	})
	return at
}

// dies has the host changed while a daemon that begins at a step of the record dies once, and judges what came of it.
func (w *hosting) dies(t *testing.T, word, step, where string) {
	t.Helper()
	w.restore(t, "card")
	w.code = ""
	w.forget(t)
	log := filepath.Join(w.dir, "names")
	d := w.kept(t, disktest.KillAt+"="+where, disktest.KillLog+"="+log, killStep+"="+step)
	said := newSwapper("")
	at := w.decides(t, word, d.gone, said)
	died := func() (bool, error) {
		raw, err := os.ReadFile(log)
		return strings.Contains(string(raw), "\nkilled "), err
	}
	if is, _ := died(); where != never && !is { // or it dies under the eyes of who judges it
		w.quit(t, d)
		d = w.kept(t)
	}
	w.judgeHost(t, d, at, said, word == "confirm" && where == never)
	w.quit(t, d)
	if w.newer {
		back := wentBack(w.home)
		back.Change = w.change
		sqlitetest.WentBack(t, back)
	}
	if where != never {
		if is, err := died(); !is {
			t.Logf("nobody came to %s of step %s: %v", where, step, err)
		}
		d = w.kept(t) // the dead may have been about to end
		if d.client(t, w.place) == nil {
			t.Fatalf("the host does not come up again: %s", w.said())
		}
		w.quit(t, d)
	}
	w.leftNothing(t)
}

// forget removes what was logged.
func (w *hosting) forget(t *testing.T) {
	t.Helper()
	logs, err := filepath.Glob(filepath.Join(w.dir, "names*"))
	if err != nil {
		t.Fatal(err)
	}
	copies, err := filepath.Glob(filepath.Join(w.dir, "went-*"))
	if err != nil {
		t.Fatal(err)
	}
	logs = append(logs, copies...)
	for _, path := range append(logs, w.place.log) {
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			t.Fatal(err)
		}
	}
}

// whole has the host changed while nobody dies, and returns the operations by the step at which their daemon has begun. Where several have
// begun at a step they are those of the first.
func (w *hosting) whole(t *testing.T, word string, steps ...string) map[string][]string {
	t.Helper()
	w.dies(t, word, eachStep, never)
	all := map[string][]string{}
	for _, step := range steps {
		raw, err := os.ReadFile(filepath.Join(w.dir, "names."+step))
		if err != nil {
			t.Fatal(err)
		}
		first := string(raw)
		if next := strings.Index(first[1:], "\n0 "); next >= 0 {
			first = first[:next+2]
		}
		for line := range strings.Lines(first) {
			_, name, _ := strings.Cut(strings.TrimSpace(line), " ")
			all[step] = append(all[step], name)
		}
	}
	return all
}

// sayings20 is how many things a person says while the host is on trial, whatever becomes of it.
const sayings20 = 20

const never = "1000000:before"

// judgeHost wants the change there or gone byte for byte, said so by the row, nothing left with the keeper, and a host that answers.
func (w *hosting) judgeHost(t *testing.T, d *doomed, at api.Change, s *swapper, kept bool) {
	t.Helper()
	now := w.home1(t)
	commits := strings.TrimSpace(git(t, w.home, "rev-list", "--count", w.first.head+".."+now.head))
	text, missing := os.ReadFile(filepath.Join(w.home, hostFile))
	switch {
	case at.State == api.Finalized && commits == "1" && strings.HasSuffix(string(text), "More.\n"):
	case !kept && at.State == api.RolledBack && (commits == "2" || commits == "0") && now.tree == w.first.tree && errors.Is(missing, fs.ErrNotExist):
	default:
		t.Errorf("%s is %s: %s; %s commits, the file is %q, %v", at.ID, at.State, at.Reason, commits, text, missing)
	}
	if entries, err := os.ReadDir(keeper.Folder(w.home)); err != nil || len(entries) > 0 {
		t.Errorf("left with the keeper: %v, %v", entries, err)
	}
	c := d.client(t, w.place)
	if c == nil {
		t.Fatalf("the host is gone: %s", w.said())
	}
	defer s.watch(t, c)()
	await(t, "the chat to be shown", s.sees(func(n *terminal) bool { return n.ready }))
	if !s.says(t, c, "four", "four") {
		t.Error("the host takes no message")
	}
	await(t, "an answer to four", s.sees(func(*terminal) bool { return s.count(line("four")) > 0 }))
	w.keptItsWord(t, c)

	// What was said in the trial is there once, and was answered once, however often hosts came and went.
	all, err := client.Call(t.Context(), c, api.MessageList, api.Messages{Group: "echo"})
	if err != nil {
		t.Fatal(err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for nonce, id := range s.accepted {
		n, want := 0, 0
		for _, m := range all {
			if m.ID == id && (m.Status == api.MessageCompleted || m.Status == api.MessageFolded) {
				n++
				want = map[bool]int{true: 1}[m.Status == api.MessageCompleted] // the others were counted only
			}
		}
		if answered := s.count(line(nonce)); n != 1 || answered != want {
			t.Errorf("%s is there %d times, and was answered %d times, not %d: %s", nonce, n, answered, want, s.all())
		}
	}
	if db, err := os.ReadFile(filepath.Join(w.home, ".state", "sallyport.db")); err != nil || bytes.Contains(db, []byte("CREATE TABLE more")) {
		t.Errorf("the database has the schema of the version on trial: %v", err)
	}
}

// TestTheHostChangesOrDoesNotWhereverItDies kills the host at the operations of each part of its change: the old one from the yes until it has
// handed over, the new one at its first start and its second, and the old one's way back and start. Whatever comes of it is whole.
func TestTheHostChangesOrDoesNotWhereverItDies(t *testing.T) {
	if !apart(t) {
		return
	}
	w := newHosting(t)
	type blow struct {
		word, step, where string
		newer             bool
	}
	var blows []blow
	for _, part := range []struct {
		word  string
		newer bool
		steps []string
	}{
		{"confirm", false, []string{noStep, string(keeper.Handed), string(keeper.ReadyOnce)}},
		{"rollback", true, []string{string(keeper.Back)}},
	} {
		w.newer = part.newer
		whole := w.whole(t, part.word, part.steps...)
		for _, step := range part.steps {
			from := 0
			if step == noStep {
				from = disktest.Index(whole[step], "db:approved")
			}
			if from < 0 || len(whole[step]) == 0 || part.newer && disktest.Index(whole[step], "revert:lay") < 0 {
				t.Fatalf("step %s has the operations %q", step, whole[step])
			}
			for _, n := range disktest.Points(t, whole[step][from:]) {
				for _, side := range []string{":before", ":after"} {
					blows = append(blows, blow{part.word, step, strconv.Itoa(from+n) + side, part.newer})
				}
			}
		}
	}
	for _, b := range disktest.Sample(t, blows, 211) {
		t.Run(b.step+"_"+b.where, func(t *testing.T) {
			defer func() {
				if t.Failed() {
					t.Logf("the daemons said %s", w.said())
					killAll(t)
				}
			}()
			w.newer = b.newer
			w.dies(t, b.word, b.step, b.where)
		})
	}
}
