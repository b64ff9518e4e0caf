package landing_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"sallyport/internal/base/disk"
	"sallyport/internal/base/git"
	"sallyport/internal/base/git/gittest"
	"sallyport/internal/path/landing"
	"sallyport/internal/who/person/persontest"
)

// TestAsRootEverythingStaysItsOwners lands on a repository of another user, with a file and a link that belong to a third.
func TestAsRootEverythingStaysItsOwners(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root")
	}
	const owner, third = 54321, 54322
	top := t.TempDir()
	persontest.OpenWay(t, filepath.Dir(top))
	r, o := rich(t, top)
	o = r.orderFrom(t, o.Base, r.approve(t, o.Source, map[string]blob{"dir/link": link("keep")}))
	if err := os.Chmod(filepath.Join(r.CommonDir, "refs/heads"), 0o775|os.ModeSetgid); err != nil { // core.sharedRepository
		t.Fatal(err)
	}
	gitIn(t, top, "", "pack-refs", "--all", "--prune")
	if out, err := exec.Command("chown", "-R", fmt.Sprintf("%d:%d", owner, owner), top).CombinedOutput(); err != nil {
		t.Fatalf("chown: %v\n%s", err, out)
	}
	for _, p := range []string{"a.txt", "link"} {
		if err := os.Lchown(filepath.Join(top, p), third, owner); err != nil {
			t.Fatal(err)
		}
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

// TestAsRootWhatIsKeptOfAFileIsForItsOwner, in whichever folder it was when they wrote into it.
func TestAsRootWhatIsKeptOfAFileIsForItsOwner(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root")
	}
	const owner = 54321
	for name, make := range map[string]func(*testing.T) (repo, landing.Order){"in the git directory": plain, "in the work tree": separate} {
		t.Run(name, func(t *testing.T) {
			r, o := make(t)
			persontest.OpenWay(t, filepath.Dir(r.Top))
			persontest.OpenWay(t, filepath.Dir(r.CommonDir))
			if out, err := exec.Command("chown", "-R", fmt.Sprintf("%d:%d", owner, owner), r.Top, r.CommonDir).CombinedOutput(); err != nil {
				t.Fatalf("chown: %v\n%s", err, out)
			}
			r = openRepo(t, r.Top)
			o.Project = r.Project
			l := &landing.Lander{Host: beside, Ops: meddle("index:write", false, func() {
				found, _ := filepath.Glob(filepath.Join(r.GitDir, "sallyport-lnd-*/slots/*"))
				more, _ := filepath.Glob(filepath.Join(r.Top, ".sallyport-lnd-*/*"))
				for _, at := range append(found, more...) {
					if raw, _ := os.ReadFile(at); string(raw) == "a\n" || string(raw) == "a old\n" {
						overwrite("late words")(at)
					}
				}
			})}
			j := &journal{}
			lands(t, l, o, j)
			_, at, _ := strings.Cut(j.row.Reason, " is kept as ")
			if raw, err := os.ReadFile(at); j.row.State != landing.Landed || string(raw) != "late words" {
				t.Fatalf("%s %q: %q, %v", j.row.State, j.row.Reason, raw, err)
			}
			for ; at != filepath.Dir(r.Top) && at != filepath.Dir(r.CommonDir); at = filepath.Dir(at) {
				if info, err := os.Lstat(at); err != nil || info.Sys().(*syscall.Stat_t).Uid != owner || info.Sys().(*syscall.Stat_t).Gid != owner {
					t.Errorf("%s: %v, %+v", at, err, info.Sys())
				}
			}
		})
	}
}

func owned(t *testing.T, top string, owner, third uint32) {
	t.Helper()
	err := filepath.Walk(top, func(p string, st os.FileInfo, err error) error {
		if err != nil {
			return err
		}
		want := owner
		if p == filepath.Join(top, "a.txt") || p == filepath.Join(top, "link") {
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
	percent := debug.SetGCPercent(-1) // it would close what is left open
	defer debug.SetGCPercent(percent)
	o.Project.UID = 54321
	o.Project.Top = trap
	_, err := (&landing.Lander{Host: beside}).Compute(gittest.Context(t), o)
	if err == nil || !strings.Contains(err.Error(), "belongs to uid 54322") {
		t.Errorf("%v", err)
	}
	r.Top, r.CommonDir = trap, trap
	if left := openBelow(t, r); len(left) > 0 {
		t.Errorf("it is open still: %v", left)
	}
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
	tidy(t, r)
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
	if info, err := os.Lstat(filepath.Join(r.GitDir, "index")); err != nil {
		t.Error(err)
	} else if info.Mode() != 0o644 {
		t.Errorf("the index is %v", info.Mode())
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

// TestAFolderThatComesIsOfTheGroupOfASetGroupFolderAboveIt: what git and mkdir would have made there.
func TestAFolderThatComesIsOfTheGroupOfASetGroupFolderAboveIt(t *testing.T) {
	r := testRepo(t, map[string]blob{"team/a": text("1"), "own/a": text("1")})
	team := filepath.Join(r.Top, "team")
	gid := os.Getgid()
	if os.Geteuid() == 0 {
		gid = 54323
		if err := os.Chown(team, -1, gid); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chmod(team, 0o755|os.ModeSetgid); err != nil {
		t.Fatal(err)
	}
	r.land(t, r.order(t, map[string]blob{"team/deep/er/x": text("1"), "own/deep/x": text("1"), "top/x": text("1")}))
	for p, set := range map[string]bool{"team/deep": true, "team/deep/er": true, "own/deep": false, "top": false} {
		st, err := os.Stat(filepath.Join(r.Top, p))
		if err != nil {
			t.Fatal(err)
		}
		want, group := os.FileMode(0o755), os.Getgid()
		if set {
			want, group = want|os.ModeSetgid, gid
		}
		if got := st.Mode() &^ os.ModeDir; got != want || int(st.Sys().(*syscall.Stat_t).Gid) != group {
			t.Errorf("%s has mode %v and group %d", p, got, st.Sys().(*syscall.Stat_t).Gid)
		}
	}
}

// TestAFolderThatGoesComesBackAsItWas: its landing is taken back after it was emptied and removed.
func TestAFolderThatGoesComesBackAsItWas(t *testing.T) {
	r, o := rich(t, t.TempDir())
	for p, perm := range map[string]os.FileMode{"only": 0o710, "only/deep": 0o750 | os.ModeSticky, "only/deep/one": 0o600} {
		if err := os.Chmod(filepath.Join(r.Top, p), perm); err != nil {
			t.Fatal(err)
		}
	}
	marks := map[string]string{"user.mine": "kept", "system.posix_acl_default": oneMoreUser} // the second is for what comes into it
	for name, value := range marks {
		if err := unix.Setxattr(filepath.Join(r.Top, "only/deep"), name, []byte(value), 0); err != nil {
			t.Logf("no %s here: %v", name, err)
			delete(marks, name)
		}
	}
	before, emptied := look(t, r.Top), false
	j := &journal{}
	ops := disk.Ops{Around: func(op string, do func() error) error {
		if op == "index:write" && !emptied {
			_, err := os.Stat(filepath.Join(r.Top, "only"))
			emptied = os.IsNotExist(err)
			return unix.ENOSPC
		}
		return do()
	}}
	lands(t, &landing.Lander{Host: beside, Ops: ops}, o, j)
	if !emptied || j.row.State != landing.Undone {
		t.Errorf("emptied %t, %s %q", emptied, j.row.State, j.row.Reason)
	}
	unchanged(t, r, before)
	value := make([]byte, 64)
	for name, want := range marks {
		if n, err := unix.Getxattr(filepath.Join(r.Top, "only/deep"), name, value); err != nil || string(value[:n]) != want {
			t.Errorf("its %s is %q, %v", name, value[:max(n, 0)], err)
		}
	}
}

// oneMoreUser are the rights of one more user, as the kernel writes them: kind, rights and id of each entry.
const oneMoreUser = "\x02\x00\x00\x00" + "\x01\x00\x06\x00\xff\xff\xff\xff" + "\x02\x00\x04\x00\x39\x30\x00\x00" + "\x04\x00\x04\x00\xff\xff\xff\xff" + "\x10\x00\x04\x00\xff\xff\xff\xff" + "\x20\x00\x04\x00\xff\xff\xff\xff"

// TestNoAttributeThatGrantsARightIsCopied: what a person has marked a file with stays, a capability does not.
func TestNoAttributeThatGrantsARightIsCopied(t *testing.T) {
	r := testRepo(t, map[string]blob{"a": text("1")})
	a := filepath.Join(r.Top, "a")
	for name, value := range map[string]string{"user.mine": "kept", "user.empty": ""} {
		if err := unix.Setxattr(a, name, []byte(value), 0); err != nil {
			t.Skipf("SKIPPED: no extended attributes here: %v", err)
		}
	}
	want := map[string]string{"user.mine": "kept", "user.empty": ""}
	if err := unix.Setxattr(a, "system.posix_acl_access", []byte(oneMoreUser), 0); err == nil {
		want["system.posix_acl_access"] = oneMoreUser
	} else {
		t.Logf("no access lists here: %v", err)
	}
	capable := unix.Setxattr(a, "security.capability", []byte("\x01\x00\x00\x02\x00\x04\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00"), 0) == nil
	r.land(t, r.order(t, map[string]blob{"a": text("2")}))
	value := make([]byte, 64)
	for name, want := range want {
		if n, err := unix.Getxattr(a, name, value); err != nil || string(value[:n]) != want {
			t.Errorf("%s is %q, %v", name, value[:max(n, 0)], err)
		}
	}
	if n, err := unix.Getxattr(a, "security.capability", value); err == nil {
		t.Errorf("it has a capability: %q", value[:n])
	}
	t.Logf("with a capability: %t", capable)
}

// TestALinkWhoseTargetCannotBeIsNotLanded: a tree may say what no file system holds.
func TestALinkWhoseTargetCannotBeIsNotLanded(t *testing.T) {
	for name, c := range map[string]struct {
		target string
		lands  bool
	}{
		"one byte": {"x", true}, "the longest": {strings.Repeat("x", 4095), true},
		"none": {"", false}, "too long": {strings.Repeat("x", 4096), false}, "one that ends in the middle": {"a\x00b", false}, "one that ends where it begins": {"\x00a", false},
	} {
		t.Run(name, func(t *testing.T) {
			r := testRepo(t, map[string]blob{"a": text("1")})
			before := look(t, r.Top)
			j := &journal{}
			if err := attempt(t, &landing.Lander{Host: beside}, r.order(t, map[string]blob{"link": link(c.target)}), j); err != nil {
				t.Fatal(err)
			}
			to, err := os.Readlink(filepath.Join(r.Top, "link"))
			if c.lands && (j.row.State != landing.Landed || to != c.target) {
				t.Errorf("%s %q, %q, %v", j.row.State, j.row.Reason, to, err)
			}
			if !c.lands && (j.row.State != landing.Undone || !strings.Contains(j.row.Reason, "a link's target has")) {
				t.Errorf("%s %q", j.row.State, j.row.Reason)
			}
			if d := differ(look(t, r.Top), before); !c.lands && d != "" {
				t.Error(d)
			}
		})
	}
}

// TestABranchThatTheMainWorkTreeHoldsIsNotMovedFromALinkedOne, and the HEAD of a bare repository holds none.
func TestABranchThatTheMainWorkTreeHoldsIsNotMovedFromALinkedOne(t *testing.T) {
	main := testRepo(t, map[string]blob{"a": text("1")})
	top := filepath.Join(t.TempDir(), "linked")
	gitIn(t, main.Top, "", "worktree", "add", "-q", "-b", "away", top)
	r := openRepo(t, top)
	o := r.order(t, map[string]blob{"a": text("2")})
	o.WorkTree = false
	before := look(t, main.Top)
	if err := attempt(t, &landing.Lander{Host: beside}, o, &journal{}); !errors.Is(err, landing.ErrBranch) || !strings.Contains(err.Error(), main.CommonDir) {
		t.Errorf("%v", err)
	}
	unchanged(t, main, before)
	gitIn(t, main.Top, "", "config", "core.bare", "true")
	if done := r.land(t, o); gitIn(t, top, "", "rev-parse", "main") != string(done.NewCommit) {
		t.Error("main did not move")
	}
}

// TestAnIndexOfAnySizeIsNotRead: a sparse file costs nothing, and can claim as much as it likes.
func TestAnIndexOfAnySizeIsNotRead(t *testing.T) {
	r := testRepo(t, map[string]blob{"a": text("1")})
	if err := os.Truncate(filepath.Join(r.GitDir, "index"), 512<<20+1); err != nil {
		t.Fatal(err)
	}
	if _, err := (&landing.Lander{Host: beside}).Inspect(gittest.Context(t), r.Project, "main"); !errors.Is(err, landing.ErrOddState) || !strings.Contains(err.Error(), "536870913 bytes") {
		t.Errorf("%v", err)
	}
}

// TestAWholeIndexIsWrittenWhereGitWouldSplitIt: their git may split it the next time that it writes it.
func TestAWholeIndexIsWrittenWhereGitWouldSplitIt(t *testing.T) {
	r, o := plain(t)
	gitIn(t, r.Top, "", "config", "core.splitIndex", "true")
	r.land(t, o)
	if status := gitIn(t, r.Top, "", "status", "--porcelain"); status != "" {
		t.Errorf("status %q", status)
	}
}

// TestAnIndexKeepsItsRightsAndItsGroup: in a repository that is shared, others write it too.
func TestAnIndexKeepsItsRightsAndItsGroup(t *testing.T) {
	for name, want := range map[string]os.FileMode{"shared": 0o664, "shut": 0o600} {
		r, o := plain(t)
		at, group := filepath.Join(r.GitDir, "index"), os.Getgid()
		err := os.Chmod(at, want)
		if os.Geteuid() == 0 {
			group = 54321
			err = errors.Join(err, os.Lchown(at, -1, group))
		}
		if err != nil {
			t.Fatal(err)
		}
		r.land(t, o)
		info, err := os.Lstat(at)
		if err != nil {
			t.Fatal(err)
		}
		if got := int(info.Sys().(*syscall.Stat_t).Gid); info.Mode() != want || got != group {
			t.Errorf("%q is %v, of the group %d; want %v, %d", name, info.Mode(), got, want, group)
		}
	}
}
