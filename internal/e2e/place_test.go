package e2e_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"sallyport/internal/base/disk/disktest"
	"sallyport/internal/base/race/racetest"
	"sallyport/internal/door/api"
	"sallyport/internal/door/client"
)

// place is where one person works: a repository, a home beside it, and the program.
type place struct {
	dir  string
	repo string
	home string
	bin  string // the program; its keeper lies beside it
	log  string // what daemons that were started by a test said
}

// patience is how long anything that must happen may take.
const patience = 4 * time.Minute

func newPlace(t *testing.T) *place {
	t.Helper()
	need(t, "bwrap")
	need(t, "git")
	dir, err := os.MkdirTemp("", "sally") // a socket's path is short
	if err != nil {
		t.Fatal(err)
	}
	p := &place{dir: dir, repo: filepath.Join(dir, "repo"), home: filepath.Join(dir, "home"), bin: filepath.Join(dir, "bin", "sallyport"), log: filepath.Join(dir, "log")}
	t.Cleanup(func() {
		endAll(t)
		for _, group := range p.groups() {
			_ = unix.Rmdir(group) // of a home that is no more
		}
		clear(t, dir)
	})
	for _, d := range []string{"bin", "run", "person"} {
		if err := os.Mkdir(filepath.Join(dir, d), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("XDG_RUNTIME_DIR", filepath.Join(dir, "run"))
	t.Setenv("HOME", filepath.Join(dir, "person"))
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	programs := map[string]string{p.bin: self, filepath.Join(dir, "bin", "sallyport-keeper"): self}
	if small := filepath.Join(filepath.Dir(self), racetest.Runner); unix.Access(small, unix.X_OK) == nil { // else self does what it does
		programs[filepath.Join(dir, "bin", racetest.Runner)] = small
	}
	for name, program := range programs {
		if err := os.Link(program, name); err != nil { // it lies on another disk
			shell(t, dir, "cp", program, name)
		}
	}
	disktest.Put(t, filepath.Join(dir, "bin", laneFile), strconv.Itoa(os.Getpid()), 0o600)
	adopt(t)
	return p
}

// need skips, loudly, without a program.
func need(t *testing.T, program string) {
	t.Helper()
	if _, err := exec.LookPath(program); err != nil {
		t.Skipf("SKIPPED: %s is not installed", program)
	}
}

// clear removes a folder that may hold folders without rights.
func clear(t *testing.T, dir string) {
	t.Helper()
	readable(dir)
	if err := os.RemoveAll(dir); err != nil {
		t.Errorf("clear up: %v", err)
	}
}

// readable gives every folder below dir, such as an overlay's own, to its owner.
func readable(dir string) {
	_ = filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if d == nil || !d.IsDir() {
			return nil
		}
		if info, err := d.Info(); err == nil && info.Mode()&0o700 != 0o700 {
			_ = os.Chmod(path, info.Mode().Perm()|0o700) // what stays shut is met by whoever needs it
		}
		return nil
	})
}

func shell(t *testing.T, dir, name string, args ...string) string {
	t.Helper()
	cmd := exec.Command(name, args...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s %q: %v\n%s", name, args, err, out)
	}
	return string(out)
}

// save keeps repository and home as they are now; no daemon runs.
func (p *place) save(t *testing.T, name string) {
	t.Helper()
	to := filepath.Join(p.dir, name)
	if err := os.Mkdir(to, 0o700); err != nil {
		t.Fatal(err)
	}
	readable(p.home)
	shell(t, p.dir, "cp", "-a", p.repo, p.home, to)
}

// restore brings them back under the same paths.
func (p *place) restore(t *testing.T, name string) {
	t.Helper()
	clear(t, p.repo)
	clear(t, p.home)
	from := filepath.Join(p.dir, name)
	shell(t, p.dir, "cp", "-a", filepath.Join(from, "repo"), filepath.Join(from, "home"), p.dir)
	_, _ = tryGit(p.repo, "update-index", "--refresh") // stat data of the copy; it fails for what is dirty
}

// start returns a client of a daemon in good health, as any command would.
func (p *place) start(t *testing.T) *client.Client {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	c, err := client.Starter{Person: client.Me(), Self: p.bin, Wait: patience}.Ensure(ctx, p.home)
	if err != nil {
		t.Fatalf("start a daemon: %v\n%s", err, p.said())
	}
	return c
}

// said is the end of what the daemons of this place have written.
func (p *place) said() string {
	var out strings.Builder
	for _, path := range []string{client.LogPath(p.home), p.log} {
		raw, _ := os.ReadFile(path)
		fmt.Fprintf(&out, "%s: …%s\n", filepath.Base(path), raw[max(0, len(raw)-4000):])
	}
	return out.String()
}

// stop ends the daemon and waits until nothing that this test began is left.
func (p *place) stop(t *testing.T, c *client.Client) {
	t.Helper()
	d, err := client.Call(t.Context(), c, api.DaemonShow, api.Nothing{})
	if err != nil {
		t.Fatalf("ask the daemon: %v\n%s", err, p.said())
	}
	if err := client.Do(t.Context(), c, api.DaemonStop, api.Nothing{}); err != nil {
		t.Fatalf("stop the daemon: %v", err)
	}
	await(t, "the daemon to end", func() (bool, error) {
		reap()
		err := unix.Kill(d.PID, 0)
		return errors.Is(err, unix.ESRCH), nil
	})
	nobody(t)
}

// stopUnwatched is stop for a daemon that comes after one which died. The keeper of a change that has found that one dead may be bringing a
// daemon yet, and it would come after the one that ends here: so the keepers end first. What they keep must be over.
func (p *place) stopUnwatched(t *testing.T, c *client.Client) {
	t.Helper()
	await(t, "the keepers to end", func() (bool, error) { return len(keepersAmong(p.home, children())) == 0, nil })
	p.stop(t, c)
}

// moment is how long there is between looks at what is waited for.
const moment = 15 * time.Millisecond

// await polls until ready, or fails.
func await(t *testing.T, what string, ready func() (bool, error)) {
	t.Helper()
	deadline := time.NewTimer(patience)
	defer deadline.Stop()
	tick := time.NewTicker(moment)
	defer tick.Stop()
	for {
		done, err := ready()
		if err != nil {
			t.Fatalf("wait for %s: %v", what, err)
		}
		if done {
			return
		}
		select {
		case <-deadline.C:
			t.Fatalf("waited %s for %s", patience, what)
		case <-tick.C:
		}
	}
}

// doomed is a daemon that dies by itself at one of its operations.
type doomed struct {
	*exec.Cmd
	ended chan struct{} // closed when it is gone and waited for
}

// doom starts one; where is as disktest.KillAt has it, and names gets the operations it began.
func (p *place) doom(t *testing.T, where, names string) *doomed {
	t.Helper()
	return p.begin(t, []string{p.bin, "daemon", "run", "--home", p.home}, disktest.KillAt+"="+where, disktest.KillLog+"="+names)
}

// begin starts a daemon as a child of this process, with more in its environment.
func (p *place) begin(t *testing.T, argv []string, more ...string) *doomed {
	t.Helper()
	log, err := os.OpenFile(p.log, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	d := &doomed{Cmd: exec.Command(argv[0], argv[1:]...), ended: make(chan struct{})}
	d.Dir = "/"
	d.Stdout, d.Stderr = log, log
	d.Env = append(client.Me().DaemonEnvironment(), more...)
	d.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := d.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { // ends with the process
		_ = d.Wait()
		close(d.ended)
	}()
	t.Cleanup(func() {
		_ = d.Process.Kill() // gone already is as good
		<-d.ended
	})
	return d
}

// gone reports whether the daemon has ended.
func (d *doomed) gone() bool {
	select {
	case <-d.ended:
		return true
	default:
		return false
	}
}

// end waits until the daemon is gone. One that does not go says where it hangs.
func (d *doomed) end(t *testing.T, p *place) {
	t.Helper()
	deadline := time.NewTimer(patience)
	defer deadline.Stop()
	select {
	case <-d.ended:
		return
	case <-deadline.C:
	}
	_ = d.Process.Signal(unix.SIGQUIT) // it prints its stacks, and ends
	<-d.ended
	t.Fatalf("the daemon neither died nor ended in %s: %s", patience, p.said())
}

// killed reports whether it died by its own hand; only after it has ended.
func (d *doomed) killed() bool {
	status, ok := d.ProcessState.Sys().(syscall.WaitStatus)
	return ok && status.Signaled() && status.Signal() == syscall.SIGKILL
}

// client returns a client of the doomed daemon, nil if it dies before it answers.
func (d *doomed) client(t *testing.T, p *place) (c *client.Client) {
	t.Helper()
	await(t, "the daemon to answer or to die", func() (bool, error) {
		var err error
		if c, err = client.Me().Dial(t.Context(), p.home); err == nil {
			return true, nil
		}
		c = nil
		return d.gone(), nil
	})
	return c
}

// rest waits until a change is where nothing happens by itself, or its daemon is gone.
func rest(t *testing.T, c *client.Client, change string, gone func() bool) (out api.Change) {
	t.Helper()
	defer func() {
		if t.Failed() {
			t.Logf("%s is %s (%s): %s", change, out.State, out.BlockedReason, out.Reason)
		}
	}()
	watch, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	_ = c.Watch(watch, change, func(api.Notice) error { return nil }) // its end may be the daemon's, or that of a pause
	await(t, change+" to come to rest", func() (bool, error) {
		d, err := client.Call(t.Context(), c, api.ChangeShow, change)
		if err != nil {
			if gone != nil {
				return gone(), nil
			}
			return false, err
		}
		out = d.Change
		return api.Final(out.State) || out.State == api.AwaitingApproval, nil
	})
	return out
}

// adopt makes this process the parent of everything that its children leave behind, so that
// nothing can be left unseen.
func adopt(t *testing.T) {
	t.Helper()
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		t.Fatal(err)
	}
}

// children returns the living children of this process; the dead it buries. A git of the test's
// own is never among them: they are waited for where they are started.
func children() (alive []int) {
	for range 100 {
		if alive = childrenListed(); len(alive) > 0 || errors.Is(unix.Waitid(unix.P_ALL, 0, nil, unix.WEXITED|unix.WNOHANG|unix.WNOWAIT, nil), unix.ECHILD) {
			break
		}
	}
	return alive
}

// childrenListed reads the lists of all threads. One can lack a child while another ends, or while a thread does: its children go to a
// thread that may have been read already. So an empty answer is none until the kernel says that there is no child.
func childrenListed() []int {
	var alive []int
	lists, _ := filepath.Glob("/proc/self/task/*/children")
	for _, list := range lists {
		raw, err := os.ReadFile(list)
		if err != nil {
			continue // a thread that has ended
		}
		for _, field := range strings.Fields(string(raw)) {
			pid, err := strconv.Atoi(field)
			if err != nil {
				continue
			}
			var status unix.WaitStatus
			if got, err := unix.Wait4(pid, &status, unix.WNOHANG, nil); err == nil && got == 0 {
				alive = append(alive, pid)
			}
		}
	}
	return alive
}

func reap() { children() }

// endAll ends what a test that broke off has left: all of it, for this process has adopted it and runs one test.
func endAll(t *testing.T) {
	t.Helper()
	began := time.Now()
	for left := children(); len(left) > 0; left = children() {
		for _, pid := range left {
			_ = unix.Kill(pid, unix.SIGKILL) // a child that has not been waited for: nobody else has its number
		}
		if time.Since(began) > patience {
			t.Errorf("processes %d do not end", left)
			return
		}
		<-time.After(moment)
	}
}

// nobody waits until no process is left of all that was started.
func nobody(t *testing.T) {
	t.Helper()
	var left []int
	began := time.Now()
	for left = children(); len(left) > 0 && time.Since(began) < patience; left = children() {
		<-time.After(moment)
	}
	for _, pid := range left {
		raw, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		t.Errorf("process %d is left: %q", pid, bytes.Split(raw, []byte{0}))
	}
}

// operations reads the names in a log of disktest.KillLog, in order; the fatal one is among them.
func operations(t *testing.T, path string) []string {
	t.Helper()
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for line := range strings.Lines(string(raw)) {
		if _, name, ok := strings.Cut(strings.TrimSpace(line), " "); ok && !strings.HasPrefix(line, "killed ") {
			names = append(names, name)
		}
	}
	return names
}

// tryGit runs git as its owner would, without touching anything by the way.
func tryGit(dir string, args ...string) (string, error) {
	cmd := exec.Command("git", args...)
	cmd.Dir = dir
	cmd.Env = append(slices.DeleteFunc(os.Environ(), func(kv string) bool { return strings.HasPrefix(kv, "GIT_") }),
		"GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1", "GIT_OPTIONAL_LOCKS=0", "LC_ALL=C",
		"GIT_AUTHOR_NAME=Ann", "GIT_AUTHOR_EMAIL=ann@example.org", "GIT_COMMITTER_NAME=Ann", "GIT_COMMITTER_EMAIL=ann@example.org")
	var out, complaint bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, io.MultiWriter(&complaint)
	if err := cmd.Run(); err != nil {
		return out.String(), fmt.Errorf("git %q: %w: %s", args, err, complaint.String())
	}
	return out.String(), nil
}

func git(t *testing.T, dir string, args ...string) string {
	t.Helper()
	out, err := tryGit(dir, args...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}
