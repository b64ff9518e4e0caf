package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sallyport/internal/base/audit"
	"sallyport/internal/base/audit/audittest"
	"sallyport/internal/base/disk/disktest"
	"sallyport/internal/base/problem"
	"sallyport/internal/door/api"
	"sallyport/internal/door/client"
)

// request asks for the change that does all that can be done to a tree.
func (p *place) request(ctx context.Context, c *client.Client) (api.Change, error) {
	return client.Call(ctx, c, api.ChangeRun, api.Run{
		Dir: p.repo, Text: "Do all that can be done to a tree", Agent: "command", Argv: []string{"sh", "-c", work},
		Path: os.Getenv("PATH"), Home: os.Getenv("HOME"), Checks: []string{"grep -q edited edit.txt"}, Approve: "later",
	})
}

// approve says yes to what a change waits for.
func approve(ctx context.Context, c *client.Client, change string) error {
	q, err := client.Call(ctx, c, api.ApprovalShow, change)
	if err != nil {
		return err
	}
	_, err = client.Call(ctx, c, api.ApprovalApprove, api.Approve{Of: q.Approval.ID, Digest: q.Approval.Digest})
	return err
}

// world is what a crash loop starts from each time, and all that it may come to.
type world struct {
	*place
	old, new string          // trees: before the change, and with it
	paths    map[string]bool // in which they differ
	first    string          // commit that main named before everything
	change   string          // once it was requested
	before   picture         // of what this loop starts from
	log      []audit.Entry   // of the home at that time
	ended    map[string]bool // changes that truthful saw at their end
}

// newWorld makes the repository, and works out on a clone what the agent will make of it.
func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{place: newPlace(t)}
	w.makeRepo(t)
	clone := filepath.Join(w.dir, "clone")
	git(t, w.dir, "clone", "-q", "--no-local", w.repo, clone)
	shell(t, clone, "sh", "-c", work)
	git(t, clone, "add", "-A")
	w.new = strings.TrimSpace(git(t, clone, "write-tree"))
	w.first = strings.TrimSpace(git(t, w.repo, "rev-parse", "main"))
	w.old = strings.TrimSpace(git(t, w.repo, "rev-parse", "main^{tree}"))
	w.paths = touched(t, clone, w.old, w.new)
	if len(w.paths) < 10 {
		t.Fatalf("the agent touches only %v", w.paths)
	}
	return w
}

// keep saves the world as a loop's start.
func (w *world) keep(t *testing.T, name string) {
	t.Helper()
	w.save(t, name)
	w.restore(t, name)
	w.before = look(t, w.repo)
}

// remember takes the audit log for the chain that must go on from it.
func (w *world) remember(t *testing.T, c *client.Client) {
	t.Helper()
	var err error
	if w.log, err = client.Call(t.Context(), c, api.AuditList, api.Entries{Limit: 10_000}); err != nil {
		t.Fatal(err)
	}
}

// toAsked brings the change to a person; no daemon runs afterwards.
func (w *world) toAsked(t *testing.T) {
	t.Helper()
	c := w.start(t)
	asked, err := w.request(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	w.change = asked.ID
	if at := rest(t, c, w.change, nil); at.State != api.AwaitingApproval {
		t.Fatalf("%s is %s: %s\n%s", w.change, at.State, at.Reason, w.said())
	}
	w.remember(t, c)
	w.stop(t, c)
}

// toLanded lands it.
func (w *world) toLanded(t *testing.T) {
	t.Helper()
	w.toAsked(t)
	c := w.start(t)
	if err := approve(t.Context(), c, w.change); err != nil {
		t.Fatal(err)
	}
	if at := rest(t, c, w.change, nil); at.State != api.Finalized {
		t.Fatalf("%s is %s: %s\n%s", w.change, at.State, at.Reason, w.said())
	}
	w.remember(t, c)
	w.stop(t, c)
}

// loop kills a daemon before and after each operation of what ask sets going, from operation number from on.
// judge is called with a daemon in good health, once nothing moves by itself any more.
type loop struct {
	from  int
	start string // saved state
	ask   func(t *testing.T, c *client.Client) (change string, err error)
	judge func(t *testing.T, c *client.Client, point int)
}

// failuresMax is after how many failures a loop ends: the rest would say the same.
const failuresMax = 3

func (w *world) crashEverywhere(t *testing.T, l loop) {
	whole, killed := w.crashOnce(t, l, "1000000:before")
	if killed || len(whole) <= l.from {
		t.Fatalf("a whole run has the operations %q", whole)
	}
	var points []point
	for _, n := range disktest.Points(t, whole[l.from:]) {
		points = append(points, point{l.from + n, "before"}, point{l.from + n, "after"})
	}
	if len(points) < pointsMin {
		t.Fatalf("only %d points: the whole run has the operations %q", len(points), whole)
	}
	points = disktest.Sample(t, points, sampled)

	reached, deaths, failures := map[string]int{}, 0, 0
	for _, p := range points {
		ok := t.Run(fmt.Sprintf("%s_%d", p.when, p.at), func(t *testing.T) {
			names, killed := p.die(func(where string) ([]string, bool) { return w.crashOnce(t, l, where) })
			if !killed {
				return
			}
			deaths++
			reached[names[p.at]]++
			t.Logf("killed %s %s", p.when, names[p.at])
			c := w.start(t)
			l.judge(t, c, p.at)
			w.stopUnwatched(t, c)
			w.leftNothing(t)
			if t.Failed() {
				t.Logf("operations were %q\n%s", names, w.said())
			}
		})
		if !ok {
			failures++
		}
		if failures == failuresMax {
			return
		}
	}
	t.Logf("%d operations a whole run, %d names: %q", len(whole), len(reached), slices.Sorted(maps.Keys(reached)))
	if 2*deaths < len(points) {
		t.Errorf("it died at %d of %d points only", deaths, len(points))
	}
}

// point is an operation of a whole run, and on which side of it the daemon dies.
type point struct {
	at   int
	when string
}

// triesMax is how often a daemon is begun that shall die at a point.
const triesMax = 4

// die runs daemons until one dies at the point. Not every run has as many operations, for some depend on how fast things go: in place of one that a run
// did not come to, the next is to die a little before the end of that run.
func (p *point) die(once func(where string) (names []string, killed bool)) (names []string, killed bool) {
	for try := range triesMax {
		if names, killed = once(fmt.Sprintf("%d:%s", p.at, p.when)); killed || len(names) == 0 {
			break
		}
		p.at = max(0, min(p.at, len(names))-1-4*try)
	}
	return names, killed
}

// sampled is how many points there are for each that the ordinary run takes. It is odd, so that both sides have their turn.
const sampled = 15

// pointsMin is fewer than any loop has, before a sample is taken: with less, something is wrong with the loop.
const pointsMin = 20

// crashOnce runs one daemon to its death, or to its end if there is no such operation.
func (w *world) crashOnce(t *testing.T, l loop, where string) (names []string, killed bool) {
	t.Helper()
	w.restore(t, l.start)
	log := filepath.Join(w.dir, "names")
	if err := os.Remove(log); err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	d := w.doom(t, where, log)
	if c := d.client(t, w.place); c != nil {
		change, err := l.ask(t, c)
		if err == nil {
			rest(t, c, change, d.gone)
			_ = client.Do(t.Context(), c, api.DaemonStop, api.Nothing{}) // dead already is as good
		} else if problem.KindOf(err) != problem.Unavailable {
			t.Errorf("asked, the daemon said: %v", err)
		}
	}
	d.end(t, w.place)
	w.noKeeper(t, d)
	return operations(t, log), d.killed()
}

// noKeeper waits for the keepers of a daemon that ended well: one that still looked would take the record that the
// next saved world brings for its own, and bring a daemon to it.
func (w *world) noKeeper(t *testing.T, d *doomed) {
	t.Helper()
	if !d.killed() {
		nobody(t)
	}
}

// landed checks that main names exactly one new commit with the wanted tree, or none, and that the index and
// the work tree say the same.
func (w *world) landed(t *testing.T, now picture, tree string, yes bool) {
	t.Helper()
	want := w.before.tree
	if yes {
		want = tree
		if count := strings.TrimSpace(git(t, w.repo, "rev-list", "--count", w.before.head+".."+now.head)); count != "1" {
			t.Errorf("%s commits landed, not 1", count)
		}
		if parent := strings.TrimSpace(git(t, w.repo, "rev-parse", now.head+"^@")); parent != w.before.head {
			t.Errorf("the landing stands on %s, not on %s", parent, w.before.head)
		}
	} else if now.head != w.before.head {
		t.Errorf("main names %s, not %s", now.head, w.before.head)
	}
	if now.tree != want {
		t.Errorf("main has the tree %s, not %s", now.tree, want)
	}
	holds(t, w.repo, now, want, w.paths)
	untouched(t, w.before, now, w.paths)
	sound(t, filepath.Join(w.repo, ".git"))
}

// truthful checks what holds after any crash: the audit log only grew and its chain holds; every finalized
// change that landed has exactly one yes, to what landed; every checkpoint has its ref.
func (w *world) truthful(t *testing.T, c *client.Client) {
	t.Helper()
	ctx := t.Context()
	entries, err := client.Call(ctx, c, api.AuditList, api.Entries{Limit: 10_000})
	if err != nil {
		t.Fatal(err)
	}
	if err := audittest.Verify(entries); err != nil {
		t.Error(err)
	}
	if len(entries) < len(w.log) || len(w.log) > 0 && entries[len(w.log)-1].Hash != w.log[len(w.log)-1].Hash {
		t.Errorf("the audit log of %d entries does not go on from the %d there were", len(entries), len(w.log))
	}
	approvals, err := client.Call(ctx, c, api.ApprovalList, api.Waiting{Limit: 10_000})
	if err != nil {
		t.Fatal(err)
	}
	changes, err := client.Call(ctx, c, api.ChangeList, api.Filter{})
	if err != nil {
		t.Fatal(err)
	}
	w.ended = map[string]bool{}
	for _, ch := range changes {
		d, err := client.Call(ctx, c, api.ChangeShow, ch.ID)
		if err != nil {
			t.Fatal(err)
		}
		landed := ch.State == api.Finalized || ch.State == api.RolledBack
		if has := d.Landing != nil && d.Landing.State == "landed"; has != landed {
			t.Errorf("%s is %s, its landing is %+v", ch.ID, ch.State, d.Landing)
		}
		yes := 0
		for _, a := range approvals {
			if a.Change == ch.ID && a.Decision == "approved" && d.Proposal != nil && a.Proposal == d.Proposal.Number && a.Digest == d.Proposal.Digest {
				yes++
			}
		}
		if want := map[bool]int{true: 1}[landed]; yes != want {
			t.Errorf("%s is %s with %d approvals of what it proposes, not %d", ch.ID, ch.State, yes, want)
		}
		if landed && git(t, w.repo, "rev-parse", d.Landing.Commit+"^{tree}") != d.Landing.Tree+"\n" {
			t.Errorf("%s landed %s, which has not the tree %s", ch.ID, d.Landing.Commit, d.Landing.Tree)
		}
		w.keptWork(t, d)
		w.ended[ch.ID] = api.Final(ch.State)
	}
	// Clearing up comes after the end of a change, and a daemon that is asked to stop leaves it to the next one.
	await(t, "the workspaces of ended changes to be gone", func() (bool, error) {
		for change, ended := range w.ended {
			if _, err := os.Lstat(filepath.Join(w.home, ".state", "workspaces", change)); ended && err == nil {
				return false, nil
			}
		}
		return true, nil
	})
}

// keptWork checks that the host's repository holds every checkpoint under its ref, and is sound.
func (w *world) keptWork(t *testing.T, d api.Detail) {
	t.Helper()
	hosts, err := filepath.Glob(filepath.Join(w.home, ".state", "repos", "*.git"))
	if err != nil || len(hosts) > 1 {
		t.Fatalf("repositories of the host: %q, %v", hosts, err)
	}
	if len(hosts) == 0 {
		if len(d.Checkpoints) > 0 {
			t.Errorf("%s has checkpoints and the host no repository", d.Change.ID)
		}
		return
	}
	for _, cp := range d.Checkpoints {
		ref := fmt.Sprintf("refs/sallyport/%s/checkpoints/%d", d.Change.ID, cp.Number)
		if is, err := tryGit(hosts[0], "--git-dir="+hosts[0], "rev-parse", ref); err != nil || strings.TrimSpace(is) != cp.Commit {
			t.Errorf("%s is %q (%v), not %s", ref, is, err, cp.Commit)
		}
	}
	sound(t, hosts[0])
}

// leftNothing checks that no lock, half-made thing, mount or control group is left; processes nobody looks after are
// found by stop. No daemon runs.
func (w *world) leftNothing(t *testing.T) {
	t.Helper()
	readable(w.home)
	for _, root := range []string{w.repo, w.home} {
		err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			if root == w.home && strings.HasPrefix(path, filepath.Join(w.home, ".state", "repos")) && gitTemporary(d.Name()) {
				return nil // of a git that was ended with the daemon, perhaps while it merged packs: the sweep takes it when it has had its grace
			}
			if own, _ := filepath.Match(filepath.Join(w.home, ".state", "workspaces", "*", "scratch"), path); own {
				return filepath.SkipDir // its git, which may have been killed at any time
			}
			if d.IsDir() && path == filepath.Join(w.home, ".state", "sessions", filepath.Base(filepath.Dir(path)), "home") {
				return filepath.SkipDir // an agent's own, kept for who resumes it
			}
			if why := leftover(root, path); why != "" {
				t.Errorf("%s: %s", why, path)
			}
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	}
	for change, ended := range w.ended {
		if _, err := os.Lstat(filepath.Join(w.home, ".state", "workspaces", change)); ended && err == nil {
			t.Errorf("%s has ended and its workspace is left", change)
		}
	}
	if mounts, err := os.ReadFile("/proc/self/mountinfo"); err != nil || strings.Contains(string(mounts), w.dir) {
		t.Errorf("a mount is left (%v):\n%s", err, mounts)
	}
	for _, group := range w.groups() {
		if inner, err := os.ReadDir(group); err == nil {
			for _, g := range inner {
				if g.IsDir() {
					t.Errorf("a control group is left: %s", filepath.Join(group, g.Name()))
				}
			}
		}
	}
}

// gitTemporary reports whether git gives its files this name until it ends well.
func gitTemporary(name string) bool {
	return strings.HasPrefix(name, "tmp_") || strings.HasPrefix(name, "fast_import_crash")
}

// leftover says what is wrong with a path's being there; "" if nothing is.
func leftover(root, path string) string {
	name := filepath.Base(path)
	rel, _ := filepath.Rel(root, path)
	switch {
	case strings.HasSuffix(name, ".lock"):
		return "a lock is left"
	case strings.HasPrefix(name, ".new-"), strings.HasSuffix(name, ".new"), strings.HasSuffix(name, ".part"), strings.HasSuffix(name, ".old"):
		if name == "metadata.json.new" { // of a session that never began; its folder is a record
			return ""
		}
		return "something half made is left"
	case strings.HasPrefix(name, "sallyport-lnd-"), strings.HasPrefix(name, ".sallyport-lnd-"), strings.HasPrefix(name, "sallyport-kept-"):
		return "a desk is left"
	case gitTemporary(name):
		return "a temporary file of git's is left"
	case strings.HasPrefix(name, "probe-"), strings.HasPrefix(name, ".probe-"):
		return "a probe is left"
	}
	switch up := filepath.Dir(rel); {
	case up == ".state/shown", up == ".state/dirty":
		return "something thrown away is left"
	case up == ".state/deadman" && strings.HasSuffix(name, ".json"):
		return "an armed record is left"
	}
	return ""
}
