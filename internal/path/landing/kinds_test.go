package landing_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"sallyport/internal/base/git"
	"sallyport/internal/base/git/gittest"
	"sallyport/internal/path/landing"
	"sallyport/internal/who/person/persontest"
)

// TestAsRootEverythingStaysItsOwners lands on a repository of another user, with a file that belongs to a third.
func TestAsRootEverythingStaysItsOwners(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root")
	}
	const owner, third = 54321, 54322
	top := t.TempDir()
	for p := filepath.Dir(top); p != "/tmp" && p != "/"; p = filepath.Dir(p) {
		if err := os.Chmod(p, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	r, o := rich(t, top)
	if err := os.Chmod(filepath.Join(r.CommonDir, "refs/heads"), 0o775|os.ModeSetgid); err != nil { // core.sharedRepository
		t.Fatal(err)
	}
	gitIn(t, top, "", "pack-refs", "--all", "--prune")
	if out, err := exec.Command("chown", "-R", fmt.Sprintf("%d:%d", owner, owner), top).CombinedOutput(); err != nil {
		t.Fatalf("chown: %v\n%s", err, out)
	}
	if err := os.Chown(filepath.Join(top, "a.txt"), third, owner); err != nil {
		t.Fatal(err)
	}
	if err := unix.Setxattr(filepath.Join(top, "a.txt"), "user.mine", []byte("kept"), 0); err != nil {
		t.Logf("no extended attributes here: %v", err)
	}
	r = openRepo(t, top)
	o.Project = r.Project
	if r.UID != owner {
		t.Fatalf("project of uid %d", r.UID)
	}
	done := r.land(t, o)
	owned(t, top, owner, third)
	if st, err := os.Stat(filepath.Join(r.CommonDir, "refs/heads/main")); err != nil || st.Mode().Perm() != 0o664 {
		t.Errorf("the branch is %v, %v", st.Mode(), err)
	}
	value := make([]byte, 10)
	if n, err := unix.Getxattr(filepath.Join(top, "a.txt"), "user.mine", value); err == nil && string(value[:n]) != "kept" {
		t.Errorf("extended attribute is %q", value[:n])
	}
	r.land(t, r.back(t, done))
	owned(t, top, owner, third)
}

func owned(t *testing.T, top string, owner, third uint32) {
	t.Helper()
	err := filepath.Walk(top, func(p string, st os.FileInfo, err error) error {
		if err != nil {
			return err
		}
		want := owner
		if p == filepath.Join(top, "a.txt") {
			want = third
		}
		if got := st.Sys().(*syscall.Stat_t).Uid; got != want {
			t.Errorf("%s belongs to %d, not %d", p, got, want)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestAsRootASwappedFolderIsNotEntered(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root")
	}
	r, o := rich(t, t.TempDir())
	trap := t.TempDir()
	if err := os.Chown(trap, 54322, 54322); err != nil {
		t.Fatal(err)
	}
	o.Project.UID = 54321
	o.Project.Top = trap
	_, err := (&landing.Lander{Host: beside}).Compute(gittest.Context(t), o)
	if err == nil || !strings.Contains(err.Error(), "belongs to uid 54322") {
		t.Errorf("%v", err)
	}
	_ = r
}

func TestALinkedWorkTreeIsLandedOn(t *testing.T) {
	main := testRepo(t, map[string]blob{"a": text("1")})
	top := filepath.Join(t.TempDir(), "linked")
	gitIn(t, main.Top, "", "switch", "-qc", "away")
	gitIn(t, main.Top, "", "worktree", "add", "-q", top, "main")
	r := openRepo(t, top)
	before := look(t, main.Top)
	done := r.land(t, r.order(t, map[string]blob{"a": text("2"), "d/b": text("3")}))
	if out := gitIn(t, top, "", "status", "--porcelain"); out != "" || gitIn(t, top, "", "rev-parse", "HEAD") != string(done.NewCommit) {
		t.Errorf("status %q", out)
	}
	after := look(t, main.Top)
	after.refs = before.refs
	if d := differ(after, before); d != "" {
		t.Errorf("the other work tree changed:\n%s", d)
	}
	if log := gitIn(t, top, "", "reflog", "-1", "--format=%gs", "HEAD"); log != "sallyport: land chg-test0001" {
		t.Errorf("reflog of HEAD says %q", log)
	}
	if left := residue(t, r); len(left) > 0 {
		t.Errorf("left behind: %q", left)
	}
}

func TestModesMeanNothingWhereTheRepositorySaysSo(t *testing.T) {
	persontest.Ordinary(t, "only the owner of a file may change its mode")
	r := testRepo(t, map[string]blob{"a": {git.Executable, "1"}, "b": {git.Executable, "1"}, "c": text("1")})
	gitIn(t, r.Top, "", "config", "core.fileMode", "false")
	for _, p := range []string{"a", "b", "c"} {
		if err := os.Chmod(filepath.Join(r.Top, p), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	before := look(t, r.Top)
	done := r.land(t, r.order(t, map[string]blob{"a": {git.Executable, "2"}, "b": text("1"), "c": {git.Executable, "1"}}))
	if out := gitIn(t, r.Top, "", "status", "--porcelain"); out != "" {
		t.Errorf("status %q", out)
	}
	r.land(t, r.back(t, done))
	after := look(t, r.Top)
	after.refs = before.refs
	if d := differ(after, before); d != "" {
		t.Error(d)
	}
}

func TestPermissionBitsOfAReplacedFileFollowOnlyGitsOwn(t *testing.T) {
	persontest.Ordinary(t, "only the owner of a file may change its mode")
	r := testRepo(t, map[string]blob{"x": text("1"), "y": {git.Executable, "1"}, "z": text("1"), "s": text("1")})
	for p, perm := range map[string]os.FileMode{"x": 0o640, "y": 0o750, "z": 0o600, "s": 0o644 | os.ModeSetuid} {
		if err := os.Chmod(filepath.Join(r.Top, p), perm); err != nil {
			t.Fatal(err)
		}
	}
	gitIn(t, r.Top, "", "status")
	r.land(t, r.order(t, map[string]blob{
		"x": {git.Executable, "2"}, "y": text("2"), "z": text("2"), "s": text("2"), "n": text("2"), "e": {git.Executable, "2"},
	}))
	for p, want := range map[string]os.FileMode{"x": 0o750, "y": 0o640, "z": 0o600, "s": 0o644, "n": 0o644, "e": 0o755} {
		st, err := os.Stat(filepath.Join(r.Top, p))
		if err != nil {
			t.Fatal(err)
		}
		if got := st.Mode() &^ os.ModeType; got != want {
			t.Errorf("%s has mode %o, want %o", p, got, want)
		}
	}
}

func TestASHA256RepositoryIsLandedOn(t *testing.T) {
	top := t.TempDir()
	gitIn(t, top, "", "init", "-q", "-b", "main", "--object-format=sha256")
	put(t, filepath.Join(top, "a"), "1", 0o644)
	gitIn(t, top, "", "add", "-A")
	gitIn(t, top, "", "commit", "-qm", "one")
	put(t, filepath.Join(top, "a"), "2", 0o644)
	put(t, filepath.Join(top, "d/b"), "3", 0o755)
	gitIn(t, top, "", "add", "-A")
	gitIn(t, top, "", "commit", "-qm", "two")
	source := git.OID(gitIn(t, top, "", "rev-parse", "HEAD"))
	gitIn(t, top, "", "reset", "-q", "--hard", "HEAD~1")
	r := openRepo(t, top)
	done := r.land(t, r.orderFrom(t, git.OID(gitIn(t, top, "", "rev-parse", "HEAD")), source))
	if out := gitIn(t, top, "", "status", "--porcelain"); out != "" || len(done.NewCommit) != 64 {
		t.Errorf("status %q, commit %s", out, done.NewCommit)
	}
}

func TestAnIndexThatIsNotThereIsAnEmptyOne(t *testing.T) {
	r := testRepo(t, map[string]blob{"a": text("1")})
	if err := os.Remove(filepath.Join(r.GitDir, "index")); err != nil {
		t.Fatal(err)
	}
	r.land(t, r.order(t, map[string]blob{"n": text("2")}))
	if out := gitIn(t, r.Top, "", "status", "--porcelain"); out != "D  a\n?? a" {
		t.Errorf("status %q", out)
	}
}

// TestASparseCheckoutStaysSparse: what lies outside of it is not written, and what a new path needs comes.
func TestASparseCheckoutStaysSparse(t *testing.T) {
	r := testRepo(t, map[string]blob{"a": text("1\n"), "in/f": text("1\n"), "out/f": text("1\n"), "out/g": text("1\n")})
	o := r.order(t, map[string]blob{"a": text("2\n"), "in/f": {}, "in/new": text("n\n"), "out/new": text("n\n")})
	gitIn(t, r.Top, "", "sparse-checkout", "set", "--cone", "in")
	done := r.land(t, o)
	if status := gitIn(t, r.Top, "", "status", "--porcelain"); status != "" {
		t.Errorf("status %q", status)
	}
	if flags := gitIn(t, r.Top, "", "ls-files", "-t", "out"); flags != "S out/f\nS out/g\nH out/new" {
		t.Errorf("the index has %q", flags)
	}
	if _, err := os.Lstat(filepath.Join(r.Top, "out/f")); !os.IsNotExist(err) {
		t.Errorf("out/f: %v", err)
	}
	r.land(t, r.back(t, done))
	if status := gitIn(t, r.Top, "", "status", "--porcelain"); status != "" {
		t.Errorf("status after the rollback %q", status)
	}
	gitIn(t, r.Top, "", "sparse-checkout", "disable")
}
