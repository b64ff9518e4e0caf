package landing_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"sallyport/internal/base/disk"
	"sallyport/internal/base/git/gittest"
	"sallyport/internal/path/landing"
)

// unlockedByHand removes our lock on the index, as git advises a person to.
func unlockedByHand(t *testing.T, r repo) {
	t.Helper()
	if err := os.Remove(filepath.Join(r.GitDir, "index.lock")); err != nil {
		t.Fatal(err)
	}
}

// TestWhatAPersonUndoesOfABranchThatIsNewIsTold: nothing of it is moved, and it is not as approved.
func TestWhatAPersonUndoesOfABranchThatIsNewIsTold(t *testing.T) {
	for name, c := range map[string]struct{ path, file, text string }{
		"a file is the old one":      {"a", "a", "a\n"},
		"a file is a folder, theirs": {"d2f", "d2f/mine", "mine"},
	} {
		t.Run(name, func(t *testing.T) {
			r, o := plain(t)
			j := stopped(t, o, "index:write")
			unlockedByHand(t, r)
			if err := os.Remove(filepath.Join(r.Top, c.path)); err != nil {
				t.Fatal(err)
			}
			put(t, filepath.Join(r.Top, c.file), c.text, 0o644)
			recoverAll(t, j, disk.Ops{})
			if want := c.path + " was changed meanwhile, and stays as you have it"; j.row.State != landing.Landed || j.row.Reason != want {
				t.Errorf("%s %q, want %q", j.row.State, j.row.Reason, want)
			}
			if raw, err := os.ReadFile(filepath.Join(r.Top, c.file)); string(raw) != c.text {
				t.Errorf("%s holds %q, %v", c.file, raw, err)
			}
			tidy(t, r)
		})
	}
}

// TestWhatAPersonStagesAfterACrashStaysAndIsTold: the file is as approved, and its entry is theirs.
func TestWhatAPersonStagesAfterACrashStaysAndIsTold(t *testing.T) {
	r, o := plain(t)
	j := stopped(t, o, "ref:update")
	unlockedByHand(t, r)
	mine := gitIn(t, r.Top, "theirs", "hash-object", "-w", "--stdin")
	gitIn(t, r.Top, "", "update-index", "--cacheinfo", "100644,"+mine+",a")
	recoverAll(t, j, disk.Ops{})
	if j.row.State != landing.Landed || j.row.Reason != "a was changed meanwhile, and stays as you have it" {
		t.Errorf("%s %q", j.row.State, j.row.Reason)
	}
	if entry := gitIn(t, r.Top, "", "ls-files", "-s", "a"); !strings.Contains(entry, mine) {
		t.Errorf("the index has %s", entry)
	}
	if raw, err := os.ReadFile(filepath.Join(r.Top, "a")); string(raw) != "b\n" {
		t.Errorf("a holds %q, %v", raw, err)
	}
}

// TestAPathThatCannotFollowAPersonsCommitIsTold: they committed on top of what lands, and edit one of its files.
func TestAPathThatCannotFollowAPersonsCommitIsTold(t *testing.T) {
	r, o := plain(t)
	j := stopped(t, o, "ref:update")
	unlockedByHand(t, r)
	put(t, filepath.Join(r.Top, "theirs"), "t", 0o644)
	gitIn(t, r.Top, "", "add", "theirs")
	gitIn(t, r.Top, "", "commit", "-qm", "theirs", "theirs")
	rename("mine")(filepath.Join(r.Top, "a"))
	tip := gitIn(t, r.Top, "", "rev-parse", "main")
	recoverAll(t, j, disk.Ops{})
	if j.row.State != landing.Landed || !strings.Contains(j.row.Reason, "somebody changed a while the landing was under way") {
		t.Errorf("%s %q", j.row.State, j.row.Reason)
	}
	if raw, err := os.ReadFile(filepath.Join(r.Top, "a")); string(raw) != "mine" || gitIn(t, r.Top, "", "rev-parse", "main") != tip {
		t.Errorf("a holds %q, %v", raw, err)
	}
}

// TestEachPathThatFollowsAPersonsCommitIsLookedAt, also those behind one that their commit has as it was.
func TestEachPathThatFollowsAPersonsCommitIsLookedAt(t *testing.T) {
	r, o := plain(t)
	j := stopped(t, o, "index:write")
	unlockedByHand(t, r)
	gitIn(t, r.Top, "", "update-ref", "refs/heads/main", string(r.approve(t, j.row.NewCommit, map[string]blob{"a": text("a\n")})))
	rename("mine")(filepath.Join(r.Top, "dir/f"))
	recoverAll(t, j, disk.Ops{})
	if j.row.State != landing.Landed || j.row.Reason != "dir/f was changed meanwhile, and stays as you have it" {
		t.Errorf("%s %q", j.row.State, j.row.Reason)
	}
	for path, want := range map[string]string{"a": "a\n", "dir/f": "mine", "new/n": "n\n"} {
		if raw, err := os.ReadFile(filepath.Join(r.Top, path)); string(raw) != want {
			t.Errorf("%s holds %q, %v", path, raw, err)
		}
	}
}

// TestALandingThatGitHasForgottenIsTakenBack: a person moved the branch to a commit of their own, and had git remove the one that landed.
func TestALandingThatGitHasForgottenIsTakenBack(t *testing.T) {
	r, o := plain(t)
	j := stopped(t, o, "index:write")
	unlockedByHand(t, r)
	gitIn(t, r.Top, "", "update-ref", "refs/heads/main", string(r.approve(t, j.row.Head, map[string]blob{"theirs": text("t\n")})))
	gitIn(t, r.Top, "", "reflog", "expire", "--expire=now", "--all")
	gitIn(t, r.Top, "", "prune", "--expire=now")
	recoverAll(t, j, disk.Ops{})
	if j.row.State != landing.Undone {
		t.Errorf("%s %q", j.row.State, j.row.Reason)
	}
	if raw, err := os.ReadFile(filepath.Join(r.Top, "a")); string(raw) != "a\n" {
		t.Errorf("a holds %q, %v", raw, err)
	}
}

// TestARecoveryThatCannotGoOnIsStrandedAndGoesOnLater: a git of the person's has the index, and it is left in peace.
func TestARecoveryThatCannotGoOnIsStrandedAndGoesOnLater(t *testing.T) {
	r, o := plain(t)
	j, e := stopped(t, o, "index:unlock"), &ends{}
	lock := filepath.Join(r.GitDir, "index.lock")
	put(t, lock, "theirs", 0o644)
	l := &landing.Lander{Host: beside, Wait: 30 * time.Millisecond}
	done, err := l.Recover(gittest.Context(t), *j.row, e.steps(j))
	if err != nil || done.State != landing.Stranded || done.Ended != nil || !strings.Contains(done.Reason, "index.lock") || (*e != ends{close: 1}) {
		t.Errorf("%s %q, ended %v, %v, closed by %+v", done.State, done.Reason, done.Ended, err, *e)
	}
	if raw, err := os.ReadFile(lock); string(raw) != "theirs" {
		t.Errorf("their lock holds %q, %v", raw, err)
	}
	if err := os.Remove(lock); err != nil {
		t.Fatal(err)
	}
	recoverAll(t, j, disk.Ops{})
	if left := residue(t, r); j.row.State != landing.Landed || j.row.Reason != "" || len(left) > 0 {
		t.Errorf("%s %q, left behind: %q", j.row.State, j.row.Reason, left)
	}
	if status := gitIn(t, r.Top, "", "status", "--porcelain"); status != "" {
		t.Errorf("status %q", status)
	}
}

// TestARecoveryThatTouchesNoFileDoesWithoutTheIndex: a git of the person's that has it is no reason to wait.
func TestARecoveryThatTouchesNoFileDoesWithoutTheIndex(t *testing.T) {
	for name, c := range map[string]struct {
		make  func(*testing.T) (repo, landing.Order)
		op    string
		state landing.State
	}{
		"nothing has moved":       {plain, "desk:commit", landing.Undone},
		"a branch alone":          {alone, "ref:update", landing.Landed},
		"a branch alone, at rest": {alone, "desk:commit", landing.Undone},
	} {
		t.Run(name, func(t *testing.T) {
			r, o := c.make(t)
			j := stopped(t, o, c.op)
			lock := filepath.Join(r.GitDir, "index.lock")
			put(t, lock, "theirs", 0o644)
			l := &landing.Lander{Host: beside, Wait: 30 * time.Millisecond}
			if done, err := l.Recover(gittest.Context(t), *j.row, j.steps()); err != nil || done.State != c.state {
				t.Errorf("%s %q, %v", done.State, done.Reason, err)
			}
			if raw, err := os.ReadFile(lock); string(raw) != "theirs" {
				t.Errorf("their lock holds %q, %v", raw, err)
			}
		})
	}
}

// TestAnEditBehindAPathThatAPersonsCommitChangesIsTold: the commit says nothing of the path that was edited since.
func TestAnEditBehindAPathThatAPersonsCommitChangesIsTold(t *testing.T) {
	r, o := plain(t)
	j := stopped(t, o, "index:write")
	unlockedByHand(t, r)
	put(t, filepath.Join(r.Top, "a"), "theirs\n", 0o644)
	gitIn(t, r.Top, "", "add", "-A")
	gitIn(t, r.Top, "", "commit", "-qm", "theirs")
	put(t, filepath.Join(r.Top, "new/n"), "mine\n", 0o644)
	stood := look(t, r.Top)
	recoverAll(t, j, disk.Ops{})
	if j.row.State != landing.Landed || j.row.Reason != "new/n was changed meanwhile, and stays as you have it" {
		t.Errorf("%s %q", j.row.State, j.row.Reason)
	}
	unchanged(t, r, stood)
	tidy(t, r)
}

// TestARecoveryGoesOnPastAPathThatWasAsApprovedAlready: of each path behind it the slots tell how far it is.
func TestARecoveryGoesOnPastAPathThatWasAsApprovedAlready(t *testing.T) {
	for _, goesBack := range []bool{false, true} {
		t.Run(fmt.Sprintf("it goes back: %t", goesBack), func(t *testing.T) {
			r, o := plain(t)
			put(t, filepath.Join(r.Top, "a"), "b\n", 0o644) // the first of the paths
			before, want := look(t, r.Top), landing.Landed
			j := stopped(t, o, "tree:add")
			if goesBack {
				want = landing.Undone
				rename("mine")(filepath.Join(r.Top, "new/n"))
			}
			recoverAll(t, j, disk.Ops{})
			if j.row.State != want || !goesBack && j.row.Reason != "" {
				t.Errorf("%s %q, want %s", j.row.State, j.row.Reason, want)
			}
			if status := gitIn(t, r.Top, "", "status", "--porcelain"); !goesBack && status != "" {
				t.Errorf("status %q", status)
			}
			after := look(t, r.Top)
			for _, theirs := range []string{"new", "new/n"} {
				delete(after.tree, theirs)
			}
			after.status = before.status
			if d := differ(after, before); goesBack && d != "" {
				t.Error(d)
			}
			tidy(t, r)
		})
	}
}

// TestAnIndexThatWasWrittenAndNotSwappedIsWrittenAgain: what a crash has left of it may be of another index by then.
func TestAnIndexThatWasWrittenAndNotSwappedIsWrittenAgain(t *testing.T) {
	r, o := plain(t)
	j := stopped(t, o, "index:write")
	unlockedByHand(t, r)
	put(t, filepath.Join(r.Top, "theirs"), "t", 0o644)
	gitIn(t, r.Top, "", "add", "theirs")
	recoverAll(t, j, disk.Ops{})
	if j.row.State != landing.Landed || j.row.Reason != "" {
		t.Errorf("%s %q", j.row.State, j.row.Reason)
	}
	if status := gitIn(t, r.Top, "", "status", "--porcelain"); status != "A  theirs" {
		t.Errorf("status %q", status)
	}
}

// TestAFileSystemThatCannotExchangeTwoFilesIsNamed: nothing lands there by halves.
func TestAFileSystemThatCannotExchangeTwoFilesIsNamed(t *testing.T) {
	r, o := plain(t)
	before := look(t, r.Top)
	l := &landing.Lander{Host: beside, Ops: disk.Ops{Around: func(op string, do func() error) error {
		if op == "tree:replace" {
			return unix.EINVAL
		}
		return do()
	}}}
	j := &journal{}
	lands(t, l, o, j)
	if j.row.State != landing.Undone || !strings.Contains(j.row.Reason, "cannot exchange two files in one step (renameat2)") {
		t.Errorf("%s %q", j.row.State, j.row.Reason)
	}
	unchanged(t, r, before)
}

// TestAttributesThatAreALinkAreNotRead: git does not read them either, and where it leads is nobody's to say.
func TestAttributesThatAreALinkAreNotRead(t *testing.T) {
	r, o := plain(t)
	outside := filepath.Join(t.TempDir(), "attributes")
	put(t, outside, "* filter=x\n", 0o644)
	if err := os.Symlink(outside, filepath.Join(r.Top, ".gitattributes")); err != nil {
		t.Fatal(err)
	}
	r.land(t, o)
}

// TestAFolderThatCannotBeMadeForABranchIsNamed: it is no lock of the person's that is waited for.
func TestAFolderThatCannotBeMadeForABranchIsNamed(t *testing.T) {
	r, o := plain(t)
	o.Branch, o.WorkTree, o.New = "team/new", false, true
	before := look(t, r.Top)
	l := &landing.Lander{Host: beside, Wait: 30 * time.Millisecond, Ops: meddle("desk:commit", true, func() {
		if err := os.MkdirAll(filepath.Join(r.GitDir, "sallyport-"+string(o.Landing), "coming/in-the-way"), 0o700); err != nil {
			t.Error(err)
		}
	})}
	j := &journal{}
	lands(t, l, o, j)
	if j.row.State != landing.Undone || !strings.Contains(j.row.Reason, `make folder "refs/heads/team"`) {
		t.Errorf("%s %q", j.row.State, j.row.Reason)
	}
	unchanged(t, r, before)
	tidy(t, r)
}

// TestAFolderThatIsMadeForABranchHasTheRightsOfTheOneAbove: whoever shares the repository goes on with it.
func TestAFolderThatIsMadeForABranchHasTheRightsOfTheOneAbove(t *testing.T) {
	r, o := plain(t)
	o.Branch, o.WorkTree, o.New = "team/new", false, true
	const shared = os.ModeSetgid | 0o770
	for _, in := range []string{"refs/heads", "objects"} {
		if os.Geteuid() == 0 {
			if err := os.Lchown(filepath.Join(r.CommonDir, in), -1, 54321); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.Chmod(filepath.Join(r.CommonDir, in), shared); err != nil {
			t.Fatal(err)
		}
	}
	there, err := filepath.Glob(filepath.Join(r.CommonDir, "objects/??"))
	if err != nil {
		t.Fatal(err)
	}
	r.land(t, o)
	made, err := filepath.Glob(filepath.Join(r.CommonDir, "objects/??"))
	if err != nil {
		t.Fatal(err)
	}
	made = slices.DeleteFunc(made, func(at string) bool { return slices.Contains(there, at) })
	for _, at := range append(made, filepath.Join(r.CommonDir, "refs/heads/team")) {
		info, err := os.Stat(at)
		if err != nil {
			t.Fatal(err)
		}
		if group := info.Sys().(*syscall.Stat_t).Gid; info.Mode() != os.ModeDir|shared || os.Geteuid() == 0 && group != 54321 {
			t.Errorf("%s is %v, of the group %d", at, info.Mode(), group)
		}
	}
	for _, at := range []string{"refs/heads/team/new", "logs/refs/heads/team/new"} {
		if info, err := os.Stat(filepath.Join(r.CommonDir, at)); err != nil {
			t.Error(err)
		} else if info.Mode() != 0o660 {
			t.Errorf("%s is %v", at, info.Mode())
		}
	}
}

// TestARecoveryThatHasBegunIsFinishedWhoeverLosesInterest: half of a landing is nothing to leave behind.
func TestARecoveryThatHasBegunIsFinishedWhoeverLosesInterest(t *testing.T) {
	r, o := plain(t)
	j := stopped(t, o, "ref:update")
	ctx, cancel := context.WithCancel(gittest.Context(t))
	defer cancel()
	began := false
	l := &landing.Lander{Host: beside, Ops: meddle("index:lock", false, func() { began = true; cancel() })}
	done, err := l.Recover(ctx, *j.row, j.steps())
	if err != nil || done.State != landing.Landed || done.Reason != "" || !began {
		t.Errorf("%s %q, %v; begun %t", done.State, done.Reason, err, began)
	}
	tidy(t, r)
}

// TestALandingThatIsJournaledIsFinishedWhoeverLosesInterest: nobody waits any more for what is on its way.
func TestALandingThatIsJournaledIsFinishedWhoeverLosesInterest(t *testing.T) {
	r, o := plain(t)
	l := &landing.Lander{Host: beside}
	computed := compute(t, l, o)
	ctx, cancel := context.WithCancel(gittest.Context(t))
	defer cancel()
	steps := (&journal{}).steps()
	steps.Journal = func(landing.Landing) error { cancel(); return nil }
	if done, err := l.Land(ctx, computed, steps); err != nil || done.State != landing.Landed || done.Reason != "" {
		t.Errorf("%s %q, %v", done.State, done.Reason, err)
	}
	if at := gitIn(t, r.Top, "", "rev-parse", "main^"); at != string(o.Base) {
		t.Errorf("main stands on %s", at)
	}
}
