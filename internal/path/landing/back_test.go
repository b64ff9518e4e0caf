package landing_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"sallyport/internal/base/disk"
	"sallyport/internal/base/disk/disktest"
	"sallyport/internal/base/git/gittest"
	"sallyport/internal/path/landing"
)

// failing are operations in which writing the index fails once, so that the landing goes back, and then whatever then says.
func failing(then func(op string) error) disk.Ops {
	back := false
	return disk.Ops{Around: func(op string, do func() error) error {
		if op == "index:write" && !back {
			back = true
			return unix.ENOSPC
		}
		if back {
			if err := then(op); err != nil {
				return err
			}
		}
		return do()
	}}
}

// TestAWayBackThatFailsKeepsItsRowOpen: a path that could not be taken back is no path that a person has changed.
func TestAWayBackThatFailsKeepsItsRowOpen(t *testing.T) {
	for _, fails := range []string{"tree:unadd", "tree:rmdir", "tree:unreplace", "tree:mkdir", "tree:undelete"} {
		t.Run(fails, func(t *testing.T) {
			r, o := plain(t)
			before, j := look(t, r.Top), &journal{}
			l := &landing.Lander{Host: beside, Ops: failing(func(op string) error {
				if op == fails {
					return unix.EIO
				}
				return nil
			})}
			lands(t, l, o, j)
			if j.row.State != landing.Stranded || j.row.Ended != nil || !strings.Contains(j.row.Reason, "input/output error") {
				t.Errorf("%s %q, ended %v", j.row.State, j.row.Reason, j.row.Ended)
			}
			recoverAll(t, j, disk.Ops{})
			if j.row.State != landing.Undone || strings.Contains(j.row.Reason, "was changed meanwhile") {
				t.Errorf("%s %q", j.row.State, j.row.Reason)
			}
			unchanged(t, r, before)
			tidy(t, r)
		})
	}
}

// TestBothVersionsOfAFileThatIsWrittenTwiceWhileItGoesBackAreKept: the one that came out, and the one in its place.
func TestBothVersionsOfAFileThatIsWrittenTwiceWhileItGoesBackAreKept(t *testing.T) {
	r, o := plain(t)
	path, once := filepath.Join(r.Top, "new/n"), map[string]bool{}
	j := &journal{}
	l := &landing.Lander{Host: beside, Ops: failing(func(op string) error {
		if words := map[string]string{"tree:unadd": "mine", "tree:restore": "mine again"}[op]; words != "" && !once[op] {
			once[op] = true
			overwrite(words)(path)
		}
		return nil
	})}
	lands(t, l, o, j)
	if j.row.State != landing.Undone || !once["tree:restore"] || !strings.Contains(j.row.Reason, "new/n was changed meanwhile, and stays as you have it") {
		t.Errorf("%s %q, restored %t", j.row.State, j.row.Reason, once["tree:restore"])
	}
	if raw, err := os.ReadFile(path); string(raw) != "mine again" {
		t.Errorf("new/n holds %q, %v", raw, err)
	}
	_, kept, _ := strings.Cut(j.row.Reason, "your version of new/n is kept as ")
	kept, _, _ = strings.Cut(kept, ";")
	if raw, err := os.ReadFile(kept); string(raw) != "mine" {
		t.Errorf("kept: %q, %v", raw, err)
	}
}

// TestAFileThatIsAsApprovedAlreadyStaysWhenTheRestGoesBack: it was the person's before, and nobody has changed it.
func TestAFileThatIsAsApprovedAlreadyStaysWhenTheRestGoesBack(t *testing.T) {
	r, o := plain(t)
	put(t, filepath.Join(r.Top, "a"), "b\n", 0o644)
	before, j := look(t, r.Top), &journal{}
	lands(t, &landing.Lander{Host: beside, Ops: failing(func(string) error { return nil })}, o, j)
	if j.row.State != landing.Undone || strings.Contains(j.row.Reason, "was changed") {
		t.Errorf("%s %q", j.row.State, j.row.Reason)
	}
	unchanged(t, r, before)
}

// TestAFileThatAPersonHasBroughtBackThemselvesIsNotToldAsChanged: it is what the way back would have brought.
func TestAFileThatAPersonHasBroughtBackThemselvesIsNotToldAsChanged(t *testing.T) {
	for at, file := range map[string]struct{ path, text string }{"tree:undelete": {"gone", "g\n"}, "tree:unreplace": {"a", "a\n"}} {
		t.Run(at, func(t *testing.T) {
			r, o := plain(t)
			before, did, j := look(t, r.Top), false, &journal{}
			l := &landing.Lander{Host: beside, Ops: failing(func(op string) error {
				if op == at && !did {
					did = true
					put(t, filepath.Join(r.Top, file.path), file.text, 0o644)
				}
				return nil
			})}
			lands(t, l, o, j)
			if !did || j.row.State != landing.Undone || strings.Contains(j.row.Reason, "was changed") {
				t.Errorf("did %t, %s %q", did, j.row.State, j.row.Reason)
			}
			unchanged(t, r, before)
			tidy(t, r)
		})
	}
}

// TestAnEditThatCouldNotBeGivenBackAtOnceComesBackWithTheRest: it lies among what a landing took out until then.
func TestAnEditThatCouldNotBeGivenBackAtOnceComesBackWithTheRest(t *testing.T) {
	for at, path := range map[string]string{"tree:replace": "a", "tree:delete": "gone"} {
		t.Run(at, func(t *testing.T) {
			r, o := plain(t)
			before, edited, failed, j := look(t, r.Top), false, false, &journal{}
			l := &landing.Lander{Host: beside, Ops: disk.Ops{Around: func(op string, do func() error) error {
				if op == at && !edited {
					edited = true
					rename("mine")(filepath.Join(r.Top, path))
				}
				if op == "tree:restore" && !failed {
					failed = true
					return unix.EIO
				}
				return do()
			}}}
			lands(t, l, o, j)
			if !edited || !failed || j.row.State != landing.Undone || !strings.Contains(j.row.Reason, "input/output error") {
				t.Errorf("edited %t, failed %t, %s %q", edited, failed, j.row.State, j.row.Reason)
			}
			if raw, err := os.ReadFile(filepath.Join(r.Top, path)); string(raw) != "mine" {
				t.Errorf("%s holds %q, %v", path, raw, err)
			}
			after := look(t, r.Top)
			delete(after.tree, path)
			delete(before.tree, path)
			after.status = before.status
			if d := differ(after, before); d != "" {
				t.Error(d)
			}
			tidy(t, r)
		})
	}
}

// TestFoldersOfABranchThatIsTakenBackGoAsFarAsTheyAreEmpty, as git removes them: another branch may have their name by then.
func TestFoldersOfABranchThatIsTakenBackGoAsFarAsTheyAreEmpty(t *testing.T) {
	for with, left := range map[string]string{"": "", "team/other": "team"} {
		r, o := plain(t)
		if with != "" {
			gitIn(t, r.Top, "", "branch", with)
		}
		o.Branch, o.WorkTree, o.New = "team/deep/er/new", false, true
		j := &journal{}
		l := &landing.Lander{Host: beside, Ops: failingAfterTheBranch(&disktest.Crash{At: -1}, func() {})}
		if err := attempt(t, l, o, j); err != nil || j.row.State != landing.Undone {
			t.Fatalf("%v, %+v", err, j.row)
		}
		for _, in := range []string{"refs/heads", "logs/refs/heads"} {
			for _, folder := range []string{"team", "team/deep", "team/deep/er"} {
				if _, err := os.Stat(filepath.Join(r.CommonDir, in, folder)); (err == nil) != (folder == left) {
					t.Errorf("beside %q, %s in %s: %v", with, folder, in, err)
				}
			}
		}
	}
}

// TestABranchWhoseTakingBackFailedIsTakenBackLater: what the first try laid out for it is in the way of no other.
func TestABranchWhoseTakingBackFailedIsTakenBackLater(t *testing.T) {
	r, o := plain(t)
	o.Branch, o.WorkTree, o.New = "team/new", false, true
	before := look(t, r.Top)
	inner, j := failingAfterTheBranch(&disktest.Crash{At: -1}, func() {}), &journal{}
	l := &landing.Lander{Host: beside, Ops: disk.Ops{Around: func(op string, do func() error) error {
		if op == "ref:unlog" {
			return unix.EIO
		}
		return inner.Do(op, do)
	}}}
	if err := attempt(t, l, o, j); err != nil || j.row.State != landing.Stranded {
		t.Fatalf("%v, %+v", err, j.row)
	}
	// A file of the commit is lost meanwhile, so that it cannot be finished.
	lost := string(j.row.Edits[0].New.OID)
	if err := os.Remove(filepath.Join(r.CommonDir, "objects", lost[:2], lost[2:])); err != nil {
		t.Fatal(err)
	}
	gittest.Restart(t)
	done, err := (&landing.Lander{Host: beside, Wait: 300 * time.Millisecond}).Recover(gittest.Context(t), *j.row, j.steps())
	if err != nil || done.State != landing.Undone {
		t.Errorf("%s %q, %v", done.State, done.Reason, err)
	}
	unchanged(t, r, before)
	tidy(t, r)
}

// TestPackedBranchesKeepTheirRightsAndTheirGroup when one is taken out of them: in a repository that is shared, others write them too.
func TestPackedBranchesKeepTheirRightsAndTheirGroup(t *testing.T) {
	for name, want := range map[string]os.FileMode{"shared": 0o664, "shut": 0o400} {
		t.Run(name, func(t *testing.T) {
			r, o := plain(t)
			o.Branch, o.WorkTree, o.New = "team/new", false, true
			at, group, packed := filepath.Join(r.CommonDir, "packed-refs"), os.Getgid(), os.FileInfo(nil)
			l := &landing.Lander{Host: beside, Ops: failingAfterTheBranch(&disktest.Crash{At: -1}, func() {
				gitIn(t, r.Top, "", "pack-refs", "--all")
				if os.Geteuid() == 0 {
					group = 54321
				}
				err := errors.Join(os.Lchown(at, -1, group), os.Chmod(at, want))
				if packed, _ = os.Lstat(at); err != nil {
					t.Error(err)
				}
			})}
			j := &journal{}
			if err := attempt(t, l, o, j); err != nil || j.row.State != landing.Undone {
				t.Fatalf("%v, %+v", err, j.row)
			}
			info, err := os.Lstat(at)
			if err != nil || os.SameFile(info, packed) {
				t.Fatalf("it was not written anew: %v", err)
			}
			if got := int(info.Sys().(*syscall.Stat_t).Gid); info.Mode() != want || got != group {
				t.Errorf("it is %v, of the group %d; want %v, %d", info.Mode(), got, want, group)
			}
		})
	}
}
