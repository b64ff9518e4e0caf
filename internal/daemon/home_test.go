package daemon

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"sallyport/internal/base/disk/disktest"
	"sallyport/internal/base/git"
	"sallyport/internal/base/problem"
	"sallyport/internal/rule/config"
	"sallyport/internal/who/group"
)

// A home is whole from the first daemon on: its configuration, what new groups are copied from, and a group that needs no account.
func TestANewHomeBeginsWithAGroup(t *testing.T) {
	home := filepath.Join(t.TempDir(), "home")
	makeHome(t, home)
	for _, name := range []string{".state", "sallyport.yaml", "policy.yaml", "groups"} {
		disktest.Private(t, filepath.Join(home, name), ".")
	}
	disktest.Private(t, filepath.Join(home, ".git"), "HEAD", "refs/heads/main") // others could enter while it is made
	made := &Daemon{Options: Options{Home: home}}
	if _, err := made.ensureFile(config.File{Name: "more/of/it", Text: "x"}); err != nil {
		t.Fatal(err)
	}
	disktest.Private(t, filepath.Join(home, "more"), "of/it") // whatever the umask is
	if err := os.RemoveAll(filepath.Join(home, "more")); err != nil {
		t.Fatal(err)
	}
	mine := "# mine\n"
	writeFile(t, filepath.Join(home, "sallyport.yaml"), []byte(mine), 0o600)
	if err := os.RemoveAll(filepath.Join(home, ".git")); err != nil {
		t.Fatal(err)
	}
	makeHome(t, home) // what a person wrote is tracked as it is
	makeHome(t, home) // and again changes nothing

	if got, err := os.ReadFile(filepath.Join(home, "sallyport.yaml")); err != nil || string(got) != mine {
		t.Errorf("what a person wrote is %q: %v", got, err)
	}
	if out := gitIn(t, home, "status", "--porcelain"); out != "" {
		t.Errorf("in a new home git says %q", out)
	}
	gitIn(t, home, "config", "core.bare", "true") // as an earlier build made it
	makeHome(t, home)
	gitIn(t, home, "status")
	if n := gitIn(t, home, "rev-list", "--count", "main"); n != "1\n" {
		t.Errorf("there are %s commits", n)
	}
	d := git.Dir{Path: filepath.Join(home, ".git")}
	head, err := d.Resolve(t.Context(), "main")
	if err != nil {
		t.Fatal(err)
	}
	all, odd, err := group.List(t.Context(), d, head)
	if err != nil || len(odd) > 0 || !slices.Equal(all, []group.Folder{group.First}) {
		t.Errorf("the groups are %q and %q: %v", all, odd, err)
	}
	tree, err := group.FindTree(t.Context(), d, head, group.First)
	if err != nil {
		t.Fatal(err)
	}
	if g, err := group.Read(t.Context(), d, group.First, tree); err != nil || g.Runner.Agent != "echo" {
		t.Errorf("the group is %+v: %v", g, err)
	}
	ignored := gitIn(t, home, "check-ignore", ".state/x", ".env", ".env.local", "groups/echo/.env") // SM-015
	if strings.Count(ignored, "\n") != 4 {
		t.Errorf("git ignores %q", ignored)
	}
}

// Who can move a home away can put another in its place, and with it say what agents may do.
func TestAHomeThatSomebodyElseCouldReplaceIsNotServed(t *testing.T) {
	above := filepath.Join(t.TempDir(), "above")
	home := filepath.Join(above, "between", "home")
	makeHome(t, home)
	root := os.Geteuid() == 0
	for name, is := range map[string]struct {
		mode     os.FileMode
		uid, gid int
		next     string // "": it is served
	}{
		"their own":                {0o755, -1, -1, ""},
		"a folder of all":          {0o777, -1, -1, "chmod o-w "},
		"a folder like /tmp":       {0o777 | os.ModeSticky, -1, -1, ""},
		"a folder of a group":      {0o775, -1, 4711, "chmod g-w "},
		"of a group that may read": {0o755, -1, 4711, ""},
		"of somebody else":         {0o755, 4711, -1, "ls -ldn "},
	} {
		if (is.uid > 0 || is.gid > 0) && !root {
			continue // only root can give a folder away
		}
		if err := errors.Join(os.Chown(above, is.uid, is.gid), os.Chmod(above, is.mode)); err != nil {
			t.Fatal(err)
		}
		d := &Daemon{Options: Options{Home: home}}
		if _, err := d.makeState(); (err == nil) != (is.next == "") || err != nil && (problem.KindOf(err) != problem.Refused || !strings.HasPrefix(problem.Of(err).Next, is.next)) {
			t.Errorf("%s: %v", name, err)
		}
		if err := os.Chown(above, os.Geteuid(), os.Getegid()); err != nil {
			t.Fatal(err)
		}
	}
}

// What is committed in a home says what its groups run.
func TestNobodyElseWritesTheRepositoryOfAHome(t *testing.T) {
	home := filepath.Join(t.TempDir(), "home")
	umask := syscall.Umask(0)
	makeHome(t, home)
	syscall.Umask(umask)
	repository := filepath.Join(home, ".git")
	if is, err := os.Stat(repository); err != nil || is.Mode().Perm() != 0o700 {
		t.Fatalf("the repository has the mode %s, %v", is.Mode(), err)
	}
	for _, is := range []struct {
		home, repository os.FileMode
		served           bool
	}{
		{0o700, 0o777, true}, // nobody else gets to it
		{0o755, 0o777, false},
		{0o710, 0o777, false},
		{0o755, 0o755, false}, // what is in it has the modes that git gave it
	} {
		if err := errors.Join(os.Chmod(home, is.home), os.Chmod(repository, is.repository), os.Chmod(filepath.Join(repository, "refs/heads"), 0o777)); err != nil {
			t.Fatal(err)
		}
		d := &Daemon{Options: Options{Home: home}}
		err := d.makeRepository(t.Context(), filepath.Join(home, ".state"))
		if (err == nil) != is.served || err != nil && !strings.HasPrefix(problem.Of(err).Next, "chmod -R go-w ") {
			t.Errorf("%+v: %v", is, err)
		}
		now, err := os.Stat(repository)
		if closed := err == nil && now.Mode().Perm() == 0o700; closed != is.served {
			t.Errorf("%+v: now others may enter it as %s says: %v", is, now.Mode(), err)
		}
	}
}

func TestAHomeThatEveryoneMayWriteIsNotServed(t *testing.T) {
	home := filepath.Join(t.TempDir(), "home")
	makeHome(t, home)
	if os.Geteuid() == 0 {
		if err := errors.Join(os.Chown(home, -1, 4711), os.Chmod(home, 0o770)); err != nil {
			t.Fatal(err)
		}
		if _, err := (&Daemon{Options: Options{Home: home}}).makeState(); problem.KindOf(err) != problem.Refused || !strings.HasPrefix(problem.Of(err).Next, "chmod g-w ") {
			t.Errorf("a home that a group may write: %v", err)
		}
		if err := os.Chown(home, -1, 0); err != nil {
			t.Fatal(err)
		}
	}
	for mode, served := range map[os.FileMode]bool{0o777: false, 0o777 | os.ModeSticky: false, 0o702: false, 0o775: true, 0o755: true} {
		if err := os.Chmod(home, mode); err != nil {
			t.Fatal(err)
		}
		d := &Daemon{Options: Options{Home: home}}
		if _, err := d.makeState(); (err == nil) != served || !served && (problem.KindOf(err) != problem.Refused || !strings.HasPrefix(problem.Of(err).Next, "chmod o-w ")) {
			t.Errorf("%s: %v", mode, err)
		}
	}
}

func makeHome(t *testing.T, home string) {
	t.Helper()
	d := &Daemon{Options: Options{Home: home}}
	state, err := d.makeState()
	if err == nil {
		err = d.makeRepository(t.Context(), state)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// gitIn runs the real git as a person would.
func gitIn(t *testing.T, dir string, args ...string) string {
	t.Helper()
	out, err := exec.Command("git", append([]string{"-C", dir}, args...)...).CombinedOutput()
	if err != nil {
		t.Fatalf("git %q: %v\n%s", args, err, out)
	}
	return string(out)
}

func writeFile(t *testing.T, path string, data []byte, perm os.FileMode) {
	t.Helper()
	disktest.Put(t, path, data, perm)
}
