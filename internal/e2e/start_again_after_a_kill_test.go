package e2e_test

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"sallyport/internal/base/disk/disktest"
	"sallyport/internal/door/api"
	"sallyport/internal/door/client"
)

// graceless makes a daemon of this test clear up at once what nobody owns.
const graceless = "SALLYPORT_TEST_GRACELESS"

// litter is what a crash can leave, and what only looks like it.
type litter struct {
	goes  []string // paths that must be gone
	stays []string // paths that must be there
	close func()
}

// TestAfterAKillNothingIsLeftWithoutAnOwner is I3 of the threat model: the daemon and its sandbox are killed, orphans
// of every kind are planted beside look-alikes, and one start with no grace must tell them apart.
func TestAfterAKillNothingIsLeftWithoutAnOwner(t *testing.T) {
	if !apart(t) {
		return
	}
	w := newWorld(t)
	w.toLanded(t)
	d := w.begin(t, []string{w.bin, "daemon", "run", "--home", w.home})
	c := d.client(t, w.place)
	if c == nil {
		t.Fatalf("the daemon did not come up: %s", w.said())
	}
	shown, err := client.Call(t.Context(), c, api.ChangeShow, w.change)
	if err != nil || shown.Landing == nil {
		t.Fatalf("%s did not land: %v", w.change, err)
	}
	asked, err := client.Call(t.Context(), c, api.ChangeRun, api.Run{Dir: w.repo, Text: "Never ends", Agent: "command", Argv: []string{"sh", "-c", "echo lost > half.txt; echo > whole.txt; sleep 600"},
		Path: os.Getenv("PATH"), Home: os.Getenv("HOME"), Approve: "later"})
	if err != nil {
		t.Fatal(err)
	}
	await(t, "the agent to work", func() (bool, error) {
		d, err := client.Call(t.Context(), c, api.ChangeShow, asked.ID)
		return d.Progress != nil && d.Progress.FilesChanged > 1, err
	})
	if err := d.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	d.end(t, w.place)
	nobody(t) // the sandbox has died with it

	l := w.plant(t, asked.ID, shown.Landing.ID)
	defer l.close()
	d, c = w.sweeps(t, l.goes)
	if err := client.Do(t.Context(), c, api.ChangeCancel, api.Reason{Of: asked.ID, Reason: "enough"}); err != nil {
		t.Fatal(err)
	}
	rest(t, c, asked.ID, nil)
	w.stop(t, c)
	d.end(t, w.place)
	var cut []string // by the cancelling
	for _, name := range []string{"objects/pack/tmp_*", "fast_import_crash_*"} {
		found, _ := filepath.Glob(filepath.Join(w.home, ".state", "repos", "*.git", name))
		cut = append(cut, found...)
	}
	d, c = w.sweeps(t, cut)
	w.stop(t, c)
	d.end(t, w.place)
	for _, path := range l.stays {
		if _, err := os.Lstat(path); err != nil {
			t.Errorf("it is not ours, and it is gone: %s", path)
		}
	}
	hosts, _ := filepath.Glob(filepath.Join(w.home, ".state", "repos", "*.git"))
	if text, err := tryGit(hosts[0], "--git-dir="+hosts[0], "show", "refs/sallyport/chg-lost0000/checkpoints/1:half.txt"); err != nil || text != "lost\n" {
		t.Errorf("the work of the workspace that nobody knew is %q: %v", text, err)
	}
	for _, ref := range []string{"refs/sallyport-notes/mine", "refs/sallyport/chg-else0000/base"} {
		if _, err := tryGit(w.repo, "rev-parse", "--verify", ref); err != nil {
			t.Errorf("%s is gone: %v", ref, err)
		}
	}
	l.close()
	for _, path := range l.stays { // they are no leftovers of ours
		_ = os.RemoveAll(path)
		if strings.Contains(path, "/.git/sallyport-") {
			_ = os.RemoveAll(filepath.Join(w.repo, ".git", strings.SplitN(strings.SplitN(path, "/.git/", 2)[1], "/", 2)[0]))
		}
	}
	w.leftNothing(t)
}

// sweeps begins a daemon that gives no grace, and waits until it has taken away what must go.
func (w *world) sweeps(t *testing.T, goes []string) (*doomed, *client.Client) {
	t.Helper()
	d := w.begin(t, []string{w.bin, "daemon", "run", "--home", w.home}, graceless+"=1")
	c := d.client(t, w.place)
	if c == nil {
		t.Fatalf("the daemon did not come up: %s", w.said())
	}
	var left string
	defer func() {
		if t.Failed() && left != "" {
			t.Errorf("it is left: %s\n%s", left, w.said())
		}
	}()
	await(t, "what nobody owns to go", func() (bool, error) {
		if d.gone() {
			return false, errors.New("the daemon ended: " + w.said())
		}
		left = ""
		for _, path := range goes {
			if _, err := os.Lstat(path); err == nil {
				left = path
			}
		}
		return left == "", nil
	})
	return d, c
}

// plant leaves orphans of every kind, and by each a look-alike.
func (w *world) plant(t *testing.T, working, landed string) (l litter) {
	t.Helper()
	state, gitDir := filepath.Join(w.home, ".state"), filepath.Join(w.repo, ".git")
	runtime := filepath.Join(os.Getenv("XDG_RUNTIME_DIR"), "sallyport")
	mine := filepath.Join(w.dir, "mine")
	put := func(list *[]string, path, text string, mode fs.FileMode) string {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		disktest.Put(t, path, text, mode)
		if list != nil {
			*list = append(*list, path)
		}
		return path
	}
	link := func(path string) {
		t.Helper()
		if err := os.Symlink(mine, path); err != nil {
			t.Fatal(err)
		}
		l.stays = append(l.stays, path)
	}
	put(&l.stays, filepath.Join(mine, "diary.txt"), "dear diary", 0o600)

	// Workspaces: one that no row tells of, and a link with such a name.
	readable(w.home)
	shell(t, state, "cp", "-a", filepath.Join("workspaces", working), "workspaces/chg-lost0000")
	l.goes = append(l.goes, filepath.Join(state, "workspaces", "chg-lost0000"))
	link(filepath.Join(state, "workspaces", "chg-link0000"))

	// Sessions and changes.
	put(nil, filepath.Join(state, "sessions", "sh-00000", "transcript.jsonl"), "{}", 0o600)
	put(nil, filepath.Join(state, "changes", "chg-lost0000", "state.md"), "", 0o600)
	l.goes = append(l.goes, filepath.Join(state, "sessions", "sh-00000"), filepath.Join(state, "changes", "chg-lost0000"))
	link(filepath.Join(state, "sessions", "sh-11111"))
	if os.Geteuid() == 0 {
		other := put(nil, filepath.Join(state, "sessions", "sh-22222", "transcript.jsonl"), "{}", 0o600)
		if err := os.Chown(filepath.Dir(other), 12345, 12345); err != nil {
			t.Fatal(err)
		}
		l.stays = append(l.stays, other)
	}

	// Half-made files, locks of git's, and a lock that is a person's.
	put(&l.goes, filepath.Join(state, "deadman", ".lnd-00000000.new"), "{", 0o600)
	put(&l.goes, filepath.Join(state, "something.part"), "{", 0o600)
	hosts, _ := filepath.Glob(filepath.Join(state, "repos", "*.git"))
	put(&l.goes, filepath.Join(hosts[0], "refs", "sallyport", working, "valid.lock"), "", 0o600)
	put(&l.goes, filepath.Join(hosts[0], "objects", "pack", "tmp_pack_x7KqPz"), "PACK", 0o400)
	put(&l.goes, filepath.Join(hosts[0], "fast_import_crash_4711"), "fast-import crash report", 0o600)
	put(&l.goes, filepath.Join(gitDir, "refs", "sallyport", working, "base.lock"), "", 0o600)
	put(&l.stays, filepath.Join(gitDir, "objects", "pack", "tmp_pack_theirs"), "PACK", 0o400)
	put(&l.stays, filepath.Join(gitDir, "refs", "heads", "mine.lock"), "", 0o600)

	// Desks: of a landing that is over, of one that this home does not know, and a person's own bytes.
	put(nil, filepath.Join(gitDir, "sallyport-"+landed+".new", "slots", "0"), "x", 0o600)
	l.goes = append(l.goes, filepath.Join(gitDir, "sallyport-"+landed+".new"))
	put(&l.stays, filepath.Join(gitDir, "sallyport-lnd-elsewher", "note"), "{}", 0o600)
	put(&l.stays, filepath.Join(gitDir, "sallyport-kept-lnd-00000000", "slots", "0"), "mine", 0o600)

	// Refs of a person and of another home.
	git(t, w.repo, "update-ref", "refs/sallyport-notes/mine", "HEAD")
	git(t, w.repo, "update-ref", "refs/sallyport/chg-else0000/base", "HEAD")

	// Sockets: of a daemon that is gone, of one that lives, and a folder with something else in it.
	listen := func(hash string) net.Listener {
		t.Helper()
		if err := os.MkdirAll(filepath.Join(runtime, hash), 0o700); err != nil {
			t.Fatal(err)
		}
		s, err := net.ListenUnix("unix", &net.UnixAddr{Name: filepath.Join(runtime, hash, "daemon.sock"), Net: "unix"})
		if err != nil {
			t.Fatal(err)
		}
		s.SetUnlinkOnClose(false)
		return s
	}
	listen("00000000dead").Close()
	alive := listen("00000000a11e")
	l.close = func() { alive.Close() }
	l.goes = append(l.goes, filepath.Join(runtime, "00000000dead"))
	l.stays = append(l.stays, filepath.Join(runtime, "00000000a11e", "daemon.sock"))
	put(&l.stays, filepath.Join(runtime, "0000000000ff", "notes.txt"), "mine", 0o600)

	w.plantGroups(t, &l)
	return l
}

// plantGroups leaves a control group of this home's with a process in it, and an empty one of another home's.
func (w *world) plantGroups(t *testing.T, l *litter) {
	t.Helper()
	groups := w.groups()
	if len(groups) == 0 {
		const top = "/sys/fs/cgroup"
		for _, at := range []string{top, filepath.Join(top, "unified"), filepath.Join(top, "memory"), filepath.Join(top, "pids")} {
			if unix.Access(filepath.Join(at, "cgroup.procs"), unix.W_OK) == nil {
				groups = append(groups, filepath.Join(at, w.groupName()))
				break
			}
		}
	}
	if len(groups) == 0 || os.Geteuid() != 0 {
		t.Log("SKIPPED: control groups cannot be made here")
		return
	}
	orphan := filepath.Join(groups[0], fmt.Sprintf("%d-sh-00000", 1<<22))
	other := filepath.Join(filepath.Dir(groups[0]), "sallyport-00000000")
	for _, dir := range []string{orphan, other} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Logf("SKIPPED: control groups cannot be made here: %v", err)
			return
		}
	}
	inner := w.begin(t, []string{"sleep", "600"})
	disktest.Put(t, filepath.Join(orphan, "cgroup.procs"), fmt.Sprint(inner.Process.Pid), 0o600)
	l.goes, l.stays = append(l.goes, orphan), append(l.stays, other)
	before := l.close
	l.close = func() {
		before()
		_ = unix.Rmdir(other)
		if !inner.gone() {
			t.Errorf("the process in %s lives", strings.TrimPrefix(orphan, groups[0]))
		}
	}
}
