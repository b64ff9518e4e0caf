package e2e_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"sallyport/internal/base/disk/disktest"
	"sallyport/internal/base/problem"
	"sallyport/internal/door/api"
	"sallyport/internal/door/client"
)

// stages is how often a patient agent waits for the gate to open.
const stages = 3

// patient does a piece of work, waits until it may go on, breaks a rule, waits, mends that, waits, and ends: patient GATE.
func patient(args []string) error {
	wait := func(stage int) error {
		if err := put("stage.txt", strconv.Itoa(stage)+"\n"); err != nil {
			return err
		}
		for {
			if _, err := os.Stat(filepath.Join(args[0], strconv.Itoa(stage))); err == nil {
				return nil
			}
			time.Sleep(5 * time.Millisecond)
			if is, err := os.ReadFile("stage.txt"); err != nil || string(is) != strconv.Itoa(stage)+"\n" { // it went back before anybody saw it
				if err := put("stage.txt", strconv.Itoa(stage)+"\n"); err != nil {
					return err
				}
			}
		}
	}
	for _, err := range []error{put("one.txt", "one\n"), os.RemoveAll("gone.txt"), os.Chmod("tool.sh", 0o755), wait(1)} {
		if err != nil {
			return err
		}
	}
	for _, err := range []error{put("deep/bad.lock", "not allowed\n"), put("two.txt", "two\n"), wait(2)} {
		if err != nil {
			return err
		}
	}
	if err := settled("3", wait); err != nil {
		return err
	}
	return settled("3", nil) // what the host took back is made again: the end is the same, whatever happened meanwhile
}

// settled is what the patient agent has made in the end.
func settled(stage string, wait func(int) error) error {
	for _, err := range []error{
		os.RemoveAll("deep/bad.lock"), os.RemoveAll("gone.txt"), put("one.txt", "one\n"), put("two.txt", "two\n"),
		put("deep/three.txt", "three\n"), put("stage.txt", stage+"\n"), os.Chmod("tool.sh", 0o755),
	} {
		if err != nil {
			return err
		}
	}
	if wait != nil {
		return wait(3)
	}
	return nil
}

// watched is a world in which a patient agent is looked at between its stages.
type watched struct {
	*world
	gate string                                                // a folder that the agent sees
	asks func(t *testing.T, c *client.Client, stage int) error // what a person does at each stage
}

// calm has no checkpoint taken but those that are asked for, however slow the machine is.
const calm = "{checkpoint_interval_ms: 3600000, max_uncommitted_changes: 10000}"

// newWatched makes one whose home is set up as the words of interactive say.
func newWatched(t *testing.T, interactive string) *watched {
	w := &watched{world: newWorld(t)}
	w.gate = filepath.Join(w.dir, "gate")
	w.configure(t, map[string]string{
		"policy.yaml":    "forbidden_areas: ['**/*.lock']\n",
		"sallyport.yaml": "interactive: " + interactive + "\n",
	})
	w.new = w.made(t)
	w.asks = func(t *testing.T, c *client.Client, _ int) error {
		_, err := client.Call(t.Context(), c, api.CheckpointTake, w.change)
		return err
	}
	return w
}

// made works out on a clone what the agent makes.
func (w *watched) made(t *testing.T) string {
	t.Helper()
	clone := filepath.Join(w.dir, "watched-clone")
	git(t, w.dir, "clone", "-q", "--no-local", w.repo, clone)
	for name, text := range map[string]string{"one.txt": "one\n", "two.txt": "two\n", "deep/three.txt": "three\n", "stage.txt": "3\n"} {
		disktest.Put(t, filepath.Join(clone, name), text, 0o644)
	}
	if err := os.Remove(filepath.Join(clone, "gone.txt")); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(filepath.Join(clone, "tool.sh"), 0o755); err != nil {
		t.Fatal(err)
	}
	git(t, clone, "add", "-A")
	return strings.TrimSpace(git(t, clone, "write-tree"))
}

// through sends the agent and asks for a checkpoint at each of its stages; it returns early once the daemon is gone.
func (w *watched) through(t *testing.T, c *client.Client, gone func() bool) {
	t.Helper()
	ch, err := client.Call(t.Context(), c, api.ChangeRun, api.Run{
		Dir: w.repo, Text: "patient", Agent: "command", Argv: []string{w.bin, "agent", "patient", w.gate}, Shares: []string{w.gate},
		Path: os.Getenv("PATH"), Home: os.Getenv("HOME"), Approve: "later",
	})
	if err != nil {
		if problem.KindOf(err) != problem.Unavailable {
			t.Errorf("asked, the daemon said: %v", err)
		}
		return
	}
	w.change = ch.ID
	for stage := range stages {
		await(t, fmt.Sprintf("stage %d", stage+1), func() (bool, error) {
			raw, err := os.ReadFile(filepath.Join(w.upper(ch.ID), "stage.txt"))
			return gone() || err == nil && string(raw) == strconv.Itoa(stage+1)+"\n", nil
		})
		if gone() {
			return
		}
		if err := watchedBy(t, func() error { return w.asks(t, c, stage+1) }); err != nil && problem.KindOf(err) != problem.Unavailable {
			t.Errorf("asked at stage %d, the daemon said: %v", stage+1, err)
		}
		w.open(t, stage+1)
	}
	rest(t, c, ch.ID, gone)
}

// watchedBy asks the host for something about an agent that has just begun to work: it may not be watched yet.
func watchedBy(t *testing.T, ask func() error) (err error) {
	t.Helper()
	await(t, "the agent to be watched", func() (bool, error) {
		err = ask()
		return err == nil || problem.KindOf(err) != problem.Conflict, nil
	})
	return err
}

// open lets the agent go on.
func (w *watched) open(t *testing.T, stage int) {
	t.Helper()
	disktest.Put(t, filepath.Join(w.gate, strconv.Itoa(stage)), "", 0o644)
}

// once runs a daemon that dies where it is told, or to the end of the change.
func (w *watched) once(t *testing.T, where string) (names []string, killed bool) {
	t.Helper()
	w.restore(t, "new")
	clear(t, w.gate)
	if err := os.Mkdir(w.gate, 0o755); err != nil {
		t.Fatal(err)
	}
	log := filepath.Join(w.dir, "names")
	if err := os.Remove(log); err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	w.change = ""
	d := w.doom(t, where, log)
	if c := d.client(t, w.place); c != nil {
		w.through(t, c, d.gone)
		_ = client.Do(t.Context(), c, api.DaemonStop, api.Nothing{}) // dead already is as good
	}
	d.end(t, w.place)
	w.noKeeper(t, d)
	return operations(t, log), d.killed()
}

// crash kills a daemon before or after, as whens say, every operation whose name begins so, and judges what comes of it.
func (w *watched) crash(t *testing.T, whens []string, prefixes ...string) {
	w.keep(t, "new")
	var whole []string
	t.Run("whole", func(t *testing.T) {
		names, killed := w.once(t, "")
		if whole = names; killed {
			t.Fatal("it died by itself")
		}
		w.recovered(t)
	})
	if t.Failed() {
		t.Fatalf("operations were %q\n%s", whole, w.said())
	}
	w.killAt(t, second(whole, prefixes), whens)
}

// killAt kills a daemon before or after each of some operations.
func (w *watched) killAt(t *testing.T, operations, whens []string) {
	var points []string
	for _, at := range operations {
		for _, when := range whens {
			points = append(points, at+":"+when)
		}
	}

	failures := 0
	for _, where := range disktest.Sample(t, points, watchedSampled) {
		if !t.Run(where, func(t *testing.T) {
			names, killed := w.once(t, where)
			if !killed {
				t.Fatalf("it did not die; operations were %q\n%s", names, w.said())
			}
			w.sane(t)
			w.recovered(t)
			if t.Failed() {
				t.Logf("operations were %q\n%s", names, w.said())
			}
		}) {
			failures++
		}
		if failures == failuresMax {
			return
		}
	}
}

// watchedSampled is how many points there are for each that the ordinary run takes; each takes seconds of an agent's time.
const watchedSampled = 3

// second returns each operation whose name begins so, as disktest.KillAt has it: the second of its name, for
// then there is something to lose, or the only one.
func second(names, prefixes []string) []string {
	count := map[string]int{}
	var all []string
	for _, op := range names {
		for _, name := range disktest.NamesOf(op) {
			if slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(name, p) }) {
				if count[name]++; count[name] == 1 {
					all = append(all, name)
				}
			}
		}
	}
	for i, name := range all {
		all[i] = fmt.Sprintf("%s#%d", name, min(2, count[name]))
	}
	return all
}

// sane holds a home whose daemon has just died: the last valid tree is the one or the other, and never one that
// breaks a rule (SV-032, SV-035).
func (w *watched) sane(t *testing.T) {
	t.Helper()
	hosts, err := filepath.Glob(filepath.Join(w.home, ".state", "repos", "*.git"))
	if err != nil {
		t.Fatal(err)
	}
	for _, host := range hosts {
		refs, err := tryGit(host, "--git-dir="+host, "for-each-ref", "--format=%(refname)", "refs/sallyport")
		if err != nil {
			continue // it is being made
		}
		for ref := range strings.Lines(refs) {
			ref = strings.TrimSpace(ref)
			if strings.HasSuffix(ref, "/valid") {
				w.soundTree(t, host, ref)
			}
		}
	}
}

// soundTree checks that a ref names a tree without what breaks a rule.
func (w *watched) soundTree(t *testing.T, host, ref string) {
	t.Helper()
	for name := range listed(t, host, ref) {
		if strings.HasSuffix(name, ".lock") {
			t.Errorf("%s holds %q, which breaks a rule", ref, name)
		}
	}
}

// recovered starts a daemon in good health and holds it to a truthful end with nothing lost.
func (w *watched) recovered(t *testing.T) {
	t.Helper()
	for stage := range stages { // who begins anew finds every gate open
		w.open(t, stage+1)
	}
	c := w.start(t)
	all, err := client.Call(t.Context(), c, api.ChangeList, api.Filter{})
	if err != nil || len(all) > 1 {
		t.Fatalf("changes: %+v, %v", all, err)
	}
	for _, ch := range all {
		at := rest(t, c, ch.ID, nil)
		w.truthful(t, c)
		w.offers(t, c, at)
		d, err := client.Call(t.Context(), c, api.ChangeShow, ch.ID)
		if err != nil || len(d.Checkpoints) == 0 {
			t.Fatalf("%+v, %v", d, err)
		}
		host, valid := w.host(t), ""
		for i, cp := range d.Checkpoints {
			if cp.Number != i+1 {
				t.Errorf("checkpoint %d has the number %d", i+1, cp.Number)
			}
			bad := slices.Contains(cp.Files, "deep/bad.lock")
			if is := cp.Status == "valid"; is == bad {
				t.Errorf("checkpoint %d of %q is %s", cp.Number, cp.Files, cp.Status)
			}
			if cp.Status == "valid" {
				valid = cp.Commit
				w.soundTree(t, host, cp.Commit)
			}
		}
		is, err := tryGit(host, "--git-dir="+host, "rev-parse", "refs/sallyport/"+ch.ID+"/valid")
		if err != nil || strings.TrimSpace(is) != valid {
			t.Errorf("valid is %q (%v), not %s", is, err, valid)
		}
	}
	w.stop(t, c)
	w.leftNothing(t)
}

// TestADaemonThatDiesWhileItLooksAtAnAgentLosesNoCheckpoint is SV-035 and law 4 over the checkpoints of a session.
func TestADaemonThatDiesWhileItLooksAtAnAgentLosesNoCheckpoint(t *testing.T) {
	if !apart(t) {
		return
	}
	newWatched(t, calm).crash(t, []string{"before", "after"}, "checkpoint:", "db:checkpointed")
}

// TestADaemonThatDiesWhileItPutsBackLosesNothing is the same over what goes back under the agent's feet: the files that
// break a rule, and then all, to the first checkpoint.
func TestADaemonThatDiesWhileItPutsBackLosesNothing(t *testing.T) {
	if !apart(t) {
		return
	}
	w := newWatched(t, calm)
	w.asks = func(t *testing.T, c *client.Client, stage int) error {
		if stage == 2 {
			done, err := client.Call(t.Context(), c, api.ChangePutBack, api.PutBack{Of: w.change, Violating: true})
			if err == nil && (!slices.Equal(done.Reverted, []string{"deep/bad.lock"}) || done.Checkpoint.Status != "valid") {
				t.Errorf("put back: %+v", done)
			}
			return err
		}
		if _, err := client.Call(t.Context(), c, api.CheckpointTake, w.change); err != nil || stage != 3 {
			return err
		}
		all, err := client.Call(t.Context(), c, api.CheckpointList, w.change)
		if err != nil {
			return err
		}
		back, err := client.Call(t.Context(), c, api.CheckpointRestore, all[0].ID)
		if err == nil && back.Tree != all[0].Tree {
			t.Errorf("restored to %s, the tree is %s and not %s", all[0].ID, back.Tree, all[0].Tree)
		}
		return err
	}
	// They follow one another: what is before one is after the one before.
	w.crash(t, []string{"after"}, "restore:", "db:put_back", "db:restored")
}

// TestADaemonThatDiesWhileAShadowGoesBackLosesNothing is the same where the host acts by itself: a tree that breaks a rule goes
// back whole, and the crash meets it half-way. A checkpoint is due after five seconds only, so the points are few.
func TestADaemonThatDiesWhileAShadowGoesBackLosesNothing(t *testing.T) {
	if !apart(t) {
		return
	}
	w := newWatched(t, "{strategy: shadow_workspace, watchdog_poll_interval_ms: 100, checkpoint_interval_ms: 5000, max_uncommitted_changes: 1}")
	w.asks = func(t *testing.T, c *client.Client, stage int) error {
		if stage != 2 {
			_, err := client.Call(t.Context(), c, api.CheckpointTake, w.change)
			return err
		}
		var failed error
		await(t, "what breaks a rule to go back", func() (bool, error) {
			all, err := client.Call(t.Context(), c, api.CheckpointList, w.change)
			if err != nil {
				failed = err
				return true, nil
			}
			_, err = os.Lstat(filepath.Join(w.upper(w.change), "deep/bad.lock"))
			invalid := slices.ContainsFunc(all, func(cp api.Checkpoint) bool { return cp.Status == "invalid" })
			return invalid && errors.Is(err, fs.ErrNotExist), nil
		})
		return failed
	}
	w.keep(t, "new")
	w.killAt(t, []string{"db:checkpointed__invalid#1", "restore:remove#1", "restore:prove#1"}, []string{"after"})
}
