package git_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"sallyport/internal/base/disk/disktest"
	"sallyport/internal/base/git"
)

// slowGit puts a git into the PATH that, asked for verb, says through a pipe that it runs, and then does what the
// shell text says; $git is the real one. running returns once it does.
func slowGit(t *testing.T, verb, text string) (dir string, running func()) {
	t.Helper()
	is, err := exec.LookPath("git")
	if err != nil {
		t.Fatal(err)
	}
	dir = t.TempDir()
	begun := filepath.Join(dir, "begun")
	if err := unix.Mkfifo(begun, 0o600); err != nil {
		t.Fatal(err)
	}
	script := "#!/bin/sh\ngit='" + is + "'\ncase \" $* \" in *' " + verb + " '*) ;; *) exec \"$git\" \"$@\" ;; esac\ncd '" + dir + "'\n" + text + "\n"
	disktest.Put(t, filepath.Join(dir, "git"), script, 0o755)
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	return dir, func() {
		t.Helper()
		if _, err := os.ReadFile(begun); err != nil { // opens when the other side does
			t.Error(err)
		}
	}
}

// A ref's lock is held for as long as git moves it: a change that is cancelled then must not leave one.
func TestARefThatIsBeingMovedIsMovedWhateverEnds(t *testing.T) {
	top := person(t)
	write(t, filepath.Join(top, "a"), "1")
	c := commit(t, top)
	d := open(t, top)
	dir, running := slowGit(t, "update-ref", `echo > begun; read go < go; exec "$git" "$@"`)
	if err := unix.Mkfifo(filepath.Join(dir, "go"), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	moved := make(chan error, 1)
	go func() { moved <- d.UpdateRef(ctx, "ref", "refs/sallyport/x", c, "") }()
	running()
	cancel()
	disktest.Put(t, filepath.Join(dir, "go"), "go\n", 0o600)
	if err := <-moved; err != nil {
		t.Errorf("the move ended with %v", err)
	}
	if is := run(t, top, "rev-parse", "refs/sallyport/x"); is != string(c) {
		t.Errorf("the ref is %q", is)
	}
	if err := d.UpdateRef(ctx, "ref", "refs/sallyport/y", c, ""); !errors.Is(err, context.Canceled) {
		t.Errorf("what is cancelled before it begins: %v", err)
	}
	if refs, err := d.Refs(t.Context(), "refs/sallyport/"); err != nil || len(refs) != 1 {
		t.Errorf("refs %v, %v", refs, err)
	}
}

// Git removes its lock and temporary files when it is asked to end, and cannot when it is killed.
func TestACancelledGitIsAskedToEndFirst(t *testing.T) {
	top := person(t)
	d := open(t, top)
	dir, running := slowGit(t, "read-tree", `trap 'echo > asked; exit 3' TERM; echo > begun; while :; do sleep 0.01; done`)
	ctx, cancel := context.WithCancelCause(t.Context())
	ended := make(chan error, 1)
	go func() {
		_, err := d.Run(ctx, git.Cmd{Args: []string{"read-tree", "HEAD"}})
		ended <- err
	}()
	running()
	why := errors.New("the person has had enough")
	cancel(why)
	if err := <-ended; !errors.Is(err, why) {
		t.Errorf("it ended with %v", err)
	}
	if _, err := os.Stat(filepath.Join(dir, "asked")); err != nil {
		t.Error("git was killed without being asked")
	}
}
