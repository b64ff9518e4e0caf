package e2e_test

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"sallyport/internal/base/disk/disktest"
	"sallyport/internal/door/api"
	"sallyport/internal/door/client"
)

// configure writes a home's files before its first daemon.
func (p *place) configure(t *testing.T, files map[string]string) {
	t.Helper()
	if err := os.Mkdir(p.home, 0o700); err != nil {
		t.Fatal(err)
	}
	for name, text := range files {
		disktest.Put(t, filepath.Join(p.home, name), text, 0o600)
	}
}

// send asks for a change that is worked on by this program as an agent.
func (p *place) send(t *testing.T, c *client.Client, timeout time.Duration, args ...string) string {
	t.Helper()
	return p.sendTo(t, c, api.Run{TimeoutMS: timeout.Milliseconds(), Messages: args[0] == "pretend"}, args...)
}

// sendTo is send with what wish says besides.
func (p *place) sendTo(t *testing.T, c *client.Client, wish api.Run, args ...string) string {
	t.Helper()
	wish.Dir, wish.Text, wish.Agent, wish.Argv = p.repo, args[0], "command", append([]string{p.bin, "agent"}, args...)
	wish.Path, wish.Home, wish.Approve = os.Getenv("PATH"), os.Getenv("HOME"), "later"
	ch, err := client.Call(t.Context(), c, api.ChangeRun, wish)
	if err != nil {
		t.Fatalf("ask for %q: %v\n%s", args, err, p.said())
	}
	return ch.ID
}

// gate makes a folder that agents see, and returns it with what opens it: until then who waits at it waits.
func (p *place) gate(t *testing.T) (folder string, open func()) {
	t.Helper()
	folder, err := os.MkdirTemp(p.dir, "gate-")
	if err == nil {
		err = os.Chmod(folder, 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
	return folder, func() {
		t.Helper()
		disktest.Put(t, filepath.Join(folder, "open"), "", 0o644)
	}
}

// opened reports to an agent whether its gate is open.
func opened(gate string) bool {
	_, err := os.Stat(filepath.Join(gate, "open"))
	return err == nil
}

// host is the git directory that holds the checkpoints.
func (p *place) host(t *testing.T) string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(p.home, ".state", "repos", "*.git"))
	if err != nil || len(found) != 1 {
		t.Fatalf("repositories of the host: %q, %v", found, err)
	}
	return found[0]
}

// transcript is all that a change's agents have printed.
func transcript(t *testing.T, c *client.Client, change string) string {
	t.Helper()
	d, err := client.Call(t.Context(), c, api.ChangeShow, change)
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	for _, s := range d.Sessions {
		if err := client.Copy(t.Context(), c, api.ChangeTranscript, api.Transcript{Of: change, Session: s.ID}, &out); err != nil {
			t.Error(err)
		}
	}
	return out.String()
}

// verdict is what becomes of a hostile agent's change.
type verdict struct {
	state  string   // awaiting_approval, finalized (nothing changed) or failed
	broken []string // "path: constraint" of the last checkpoint, each once, in order
	files  []string // changed paths of the last checkpoint; nil = not looked at
	limit  string   // that ended the agent
	goes   bool     // what is broken is removed as soon as the host looks, which may be before the agent ends: then nothing changed
}

// heldTo returns the verdict as it is for these checkpoints, and what they found broken: the last, or all where what is broken goes.
func (v verdict) heldTo(all []api.Checkpoint) (as verdict, found []string) {
	last := all[len(all)-1]
	if !v.goes {
		return v, broken(last)
	}
	for _, cp := range all {
		found = append(found, broken(cp)...)
	}
	slices.Sort(found)
	if last.Status == "valid" {
		v.state, v.files = api.Finalized, []string{}
	}
	return v, slices.Compact(found)
}

// broken is the part of a verdict that a checkpoint has.
func broken(cp api.Checkpoint) []string {
	var all []string
	for _, v := range cp.Violations {
		all = append(all, v.File+": "+v.Constraint)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// row is one misbehaviour and its verdict.
type row struct {
	name    string
	args    []string
	timeout time.Duration
	want    verdict
}

// misbehaviours is the table: what an agent does, and by which name it is stopped.
func misbehaviours(trap string) []row {
	const failed, asked = api.Failed, api.AwaitingApproval
	spelled := make([]string, len(spellings))
	for i, path := range spellings {
		spelled[i] = path + ": git_dir"
	}
	return []row{
		{"plants a git directory in every spelling", []string{"spell"}, 0, verdict{state: failed, broken: append(spelled,
			".GIT/config: case_collision", ".Git/hooks/post-checkout: case_collision", "GIT~1/x: case_collision", "git~1/config: case_collision", "sub4/.git\u202e/HEAD: name", ".g\u200cit/config: name")}},
		{"marks files as the overlay would", []string{"mark"}, 0, verdict{state: asked, files: []string{"gone.txt", "ox/f"}}},
		{"floods its output", []string{"flood"}, 0, verdict{state: failed, limit: "output"}},
		{"claims success after nothing", []string{"claim"}, 0, verdict{state: api.Finalized, files: []string{}}},
		{"makes links out of the tree and inside", []string{"link"}, 0, verdict{state: failed, goes: true,
			broken: []string{"absolute: symlink", "up: symlink", "inside: symlink", "dangling: symlink", "self: symlink"}}},
		{"makes hard links", []string{"hard-link"}, 0, verdict{state: failed, goes: true, broken: []string{"one: hard_link", "two: hard_link", "three: hard_link", "edit.txt: hard_link"}}},
		{"makes a pipe", []string{"pipe"}, 0, verdict{state: failed, broken: []string{"pipe: special_file"}}},
		{"makes a socket", []string{"listen"}, 0, verdict{state: failed, broken: []string{"socket: special_file"}}},
		{"makes devices, and cannot", []string{"device"}, 0, verdict{state: asked, files: []string{"tried"}}},
		{"sets user and group bits", []string{"set-id"}, 0, verdict{state: failed, broken: []string{"user: setid", "group: setid", "user: executable", "group: executable"}}},
		{"gives names that are hostile to read", []string{"name"}, 0, verdict{state: failed, broken: []string{
			"\x1b[2Jclear: name", "right\u202eto left: name", "two\nlines: name", `\xff\xfe: name`, "EDIT.TXT: case_collision"}}},
		{"shuts its folders", []string{"shut"}, 0, verdict{state: asked, files: []string{"deep/er/more", "shut/in/side"}}},
		{"ruins its git directory and plants programs there", []string{"ruin-git", trap}, 0, verdict{state: asked, files: []string{"honest"}}},
		{"writes a file that is too large", []string{"fill", "1", "2000"}, 0, verdict{state: failed, broken: []string{"big0: file_bytes"}}},
		{"writes too much in all", []string{"fill", "5", "1000"}, 0, verdict{state: failed, broken: []string{": change_bytes", "big4: unreadable"}}},
		{"fills the disk", []string{"grow"}, 0, verdict{state: failed, limit: "disk", broken: []string{": change_bytes", "grown: file_bytes"}}},
		{"says that it has mended what it has not", []string{"pretend"}, 0, verdict{state: failed, broken: []string{"sub/.git: git_dir"}}},
		{"writes too many files", []string{"many", "600"}, 0, verdict{state: failed, broken: []string{": paths"}}},
		{"ends for no signal, and its children neither", []string{"stay"}, 2 * time.Second, verdict{state: failed, limit: "time"}},
		{"leaves processes behind", []string{"leave"}, 0, verdict{state: asked, files: []string{"left0", "left1", "left2", "left3", "left4", "work"}}},
		{"kills everything it can", []string{"kill"}, 0, verdict{state: asked, files: []string{"work"}}},
		{"adds an executable where they are refused", []string{"executable"}, 0, verdict{state: failed, broken: []string{"run: executable"}}},
	}
}

// hostileHome is how the home of a hostile agent is set up: tight limits, and a look as soon as anything has changed.
var hostileHome = map[string]string{
	"sallyport.yaml": "limits: {output: 200KiB, timeout: 10m}\nchanges: {at_once: 10}\ninteractive: {watchdog_poll_interval_ms: 100, checkpoint_interval_ms: 5000, max_uncommitted_changes: 1, shadow_workspace: {max_shadow_size_mb: 20}}\n",
	"policy.yaml":    "file_bytes_max: 1MiB\nchange_bytes_max: 4MiB\npaths_max: 500\nexecutables: refuse\n",
}

// TestAHostileAgentGetsItsVerdictAndHarmsNothing is threat T1 against the real daemon and the real sandbox.
func TestAHostileAgentGetsItsVerdictAndHarmsNothing(t *testing.T) {
	if !apart(t) {
		return
	}
	w := newWorld(t)
	w.configure(t, hostileHome)
	planted := filepath.Join(w.dir, "planted")
	const secret = "not for any agent: 9d2c41\n"
	if err := os.Mkdir(planted, 0o755); err != nil {
		t.Fatal(err)
	}
	disktest.Put(t, filepath.Join(planted, "secret"), secret, 0o644)
	w.before = look(t, w.repo)
	c := w.start(t)

	t.Run("table", func(t *testing.T) { w.table(t, c, misbehaviours(filepath.Join(planted, "trapped"))) })
	t.Run("writes while it is paused, and answers that it does not", func(t *testing.T) { w.escapes(t, c) })
	t.Run("swaps names while it is read", func(t *testing.T) { w.swaps(t, c, filepath.Join(planted, "secret"), secret) })

	w.noBlobHas(t, secret)
	w.noBlobHas(t, "root:x:0:0")
	w.stop(t, c) // and no process is left
	w.leftNothing(t)
	now := look(t, w.repo)
	if now.head != w.before.head {
		t.Errorf("main has moved to %s", now.head)
	}
	untouched(t, w.before, now, nil)
	sound(t, filepath.Join(w.repo, ".git"))
	if left, err := os.ReadDir(planted); err != nil || len(left) != 1 {
		t.Errorf("beside the repository: %v, %v", left, err)
	}
	if raw, err := os.ReadFile(filepath.Join(planted, "secret")); err != nil || string(raw) != secret {
		t.Errorf("a file beside the repository holds %q, %v", raw, err)
	}
}

// table sends every agent at once, and holds each to its verdict.
func (w *world) table(t *testing.T, c *client.Client, rows []row) {
	ids := make([]string, len(rows))
	for i, r := range rows {
		ids[i] = w.send(t, c, r.timeout, r.args...)
	}
	for i, r := range rows {
		t.Run(r.name, func(t *testing.T) {
			at := rest(t, c, ids[i], nil)
			d, err := client.Call(t.Context(), c, api.ChangeShow, ids[i])
			if err != nil || len(d.Checkpoints) == 0 || len(d.Sessions) != 1 || d.Sessions[0].Exit == nil {
				t.Fatalf("%v: %+v\n%s", err, d, w.said())
			}
			cp := d.Checkpoints[len(d.Checkpoints)-1]
			want, found := r.want.heldTo(d.Checkpoints)
			if at.State != want.state {
				t.Errorf("it is %s (%s), not %s", at.State, at.Reason, want.state)
			}
			slices.Sort(want.broken)
			if !slices.Equal(found, want.broken) {
				t.Errorf("it breaks\n%q, not\n%q", found, want.broken)
			}
			if is := map[bool]string{true: "valid", false: "invalid"}[want.state != api.Failed || len(want.broken) == 0]; cp.Status != is {
				t.Errorf("its checkpoint is %s, not %s", cp.Status, is)
			}
			if want.files != nil && !slices.Equal(cp.Files, want.files) {
				t.Errorf("its files are %q, not %q", cp.Files, want.files)
			}
			if l := d.Sessions[0].Exit.Limit; (l == nil) != (r.want.limit == "") || l != nil && l.Name != r.want.limit {
				t.Errorf("it ended by %+v, not by the limit %q", l, r.want.limit)
			}
			if at.State == api.Failed && (at.Reason == "" || at.Next == "") {
				t.Errorf("the refusal says %q, next %q", at.Reason, at.Next)
			}
			if t.Failed() {
				t.Logf("its checkpoints are %q; it said: %.2000q\n%s", triggers(d), transcript(t, c, ids[i]), w.said())
			}
		})
	}
	entries := listed(t, w.host(t), lastCommit(t, c, ids[1]))
	if entries["gone.txt"] != "100644 "+blob(nil) || entries["edit.txt"] == "" || entries["deep/er/still.txt"] == "" {
		t.Errorf("marked as the overlay would, the tree has %v", entries)
	}
}

func lastCommit(t *testing.T, c *client.Client, change string) string {
	t.Helper()
	d, err := client.Call(t.Context(), c, api.ChangeShow, change)
	if err != nil || len(d.Checkpoints) == 0 {
		t.Fatalf("%v, %+v", err, d)
	}
	return d.Checkpoints[len(d.Checkpoints)-1].Commit
}

// upper is the folder that a change's agent writes to, as the host sees it.
func (p *place) upper(change string) string {
	return filepath.Join(p.home, ".state", "workspaces", change, "upper")
}

// escapes pauses an agent whose writers left its session, and reads their memory.
func (w *world) escapes(t *testing.T, c *client.Client) {
	id := w.send(t, c, 0, "escape")
	read := func() string {
		var all strings.Builder
		for i := range 3 {
			raw, _ := os.ReadFile(filepath.Join(w.upper(id), fmt.Sprintf("escaped%d", i))) // not there yet is nothing
			all.Write(raw)
		}
		return all.String()
	}
	moves := func(what string) {
		t.Helper()
		first := read()
		await(t, what, func() (bool, error) { return len(read()) == 3*4096 && read() != first, nil })
	}
	stands := func(what string) string {
		t.Helper()
		first := read()
		tick := time.NewTicker(10 * time.Millisecond)
		defer tick.Stop()
		for over := time.Now().Add(300 * time.Millisecond); time.Now().Before(over); <-tick.C {
			if read() != first {
				t.Fatalf("something was written %s", what)
			}
		}
		return first
	}
	moves("the agent to write")
	for range 3 {
		if err := watchedBy(t, func() error { return client.Do(t.Context(), c, api.ChangePause, api.Reason{Of: id, Reason: "a look"}) }); err != nil {
			t.Fatal(err)
		}
		held := stands("while it was paused")
		cp, err := client.Call(t.Context(), c, api.CheckpointTake, id)
		if err != nil || cp.Status != "valid" || len(cp.Files) != 3 {
			t.Fatalf("%+v, %v", cp, err)
		}
		var kept strings.Builder
		for i := range 3 {
			kept.WriteString(git(t, w.host(t), "cat-file", "blob", fmt.Sprintf("%s:escaped%d", cp.Commit, i)))
		}
		if kept.String() != held {
			t.Error("the checkpoint of a paused agent is not what stands there")
		}
		if stands("while it was paused, after a checkpoint") != held {
			t.Error("a checkpoint let it run")
		}
		if err := client.Do(t.Context(), c, api.ChangeResume, id); err != nil {
			t.Fatal(err)
		}
		moves("the agent to write again")
	}
	if err := client.Do(t.Context(), c, api.ChangeCancel, api.Reason{Of: id, Reason: "enough"}); err != nil {
		t.Fatal(err)
	}
	if at := rest(t, c, id, nil); at.State != api.Cancelled {
		t.Errorf("it is %s: %s", at.State, at.Reason)
	}
}

// swapsMin is how many looks at an agent that swaps names are enough.
const swapsMin = 16

// swaps takes checkpoints, one after the other, while an agent exchanges what its names mean.
func (w *world) swaps(t *testing.T, c *client.Client, secret, text string) {
	gate, open := w.gate(t)
	id := w.sendTo(t, c, api.Run{Shares: []string{gate}}, "swap", gate, secret)
	seen := map[string]int{}
	taken, met := 0, false
	await(t, "enough checkpoints, one of them with a link", func() (bool, error) {
		cp, err := client.Call(t.Context(), c, api.CheckpointTake, id)
		if err != nil { // it does not run yet
			return false, nil
		}
		taken++
		met = met || slices.ContainsFunc(broken(cp), func(b string) bool { return strings.HasSuffix(b, ": symlink") })
		return taken >= swapsMin && met, nil
	})
	open()
	if at := rest(t, c, id, nil); at.State != api.AwaitingApproval {
		t.Errorf("it is %s: %s", at.State, at.Reason)
	}
	all, err := client.Call(t.Context(), c, api.CheckpointList, id)
	if err != nil || len(all) < swapsMin {
		t.Fatalf("%d checkpoints, %v", len(all), err)
	}
	links := 0
	for _, cp := range all {
		held := map[string]string{}
		for name, entry := range listed(t, w.host(t), cp.Commit) {
			if mode, oid, _ := strings.Cut(entry, " "); mode == "120000" || cp.Number == len(all) {
				held[name] = mode + " " + oid
			}
		}
		broke := broken(cp)
		for name, entry := range held {
			if !strings.HasPrefix(entry, "120000") {
				continue
			}
			links++
			if !slices.Contains(broke, name+": symlink") {
				t.Errorf("checkpoint %d has the link %q and breaks only %q", cp.Number, name, broke)
			}
		}
		for _, name := range []string{"file", "folder/passwd", "link", "other", "etc/passwd"} {
			if out, err := tryGit(w.host(t), "cat-file", "blob", cp.Commit+":"+name); err == nil {
				seen[out]++
			}
		}
	}
	if links == 0 {
		t.Errorf("in %d checkpoints no link was met: nothing was proven", len(all))
	}
	for _, what := range slices.Sorted(maps.Keys(seen)) {
		if what != "mine\n" && what != "/etc/passwd" && what != "/etc" && what != secret {
			t.Errorf("a checkpoint holds %.100q %d times", what, seen[what])
		}
	}
	t.Logf("%d checkpoints, %d links in them; read: %v", len(all), links, seen)
	if strings.Contains(fmt.Sprint(seen), text) {
		t.Error("a checkpoint holds the secret")
	}
}

// noBlobHas looks for a text in everything that the host's repository holds, and in all that a change can show.
func (w *world) noBlobHas(t *testing.T, text string) {
	t.Helper()
	dir := w.host(t)
	objects := git(t, dir, "cat-file", "--batch", "--batch-all-objects", "--buffer")
	if strings.Contains(objects, text) {
		t.Errorf("the host's repository holds %q", text)
	}
	if !strings.Contains(objects, "mine\n") {
		t.Error("the search finds nothing: not even what is there")
	}
}
