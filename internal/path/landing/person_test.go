package landing_test

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"sallyport/internal/base/disk"
	"sallyport/internal/base/disk/disktest"
	"sallyport/internal/path/landing"
	"sallyport/internal/who/person/persontest"
)

// meddle returns operations in which a person does something before, or after, an operation's first time.
func meddle(op string, after bool, do func()) disk.Ops {
	once := false
	return disk.Ops{Around: func(name string, run func() error) error {
		if name != op || once {
			return run()
		}
		once = true
		if !after {
			do()
		}
		err := run()
		if after {
			do()
		}
		return err
	}}
}

// TestAPersonWhoEditsMeanwhileLosesNothing lets them do so at the worst moments: after their file was
// looked at, and just before or after it is moved.
func TestAPersonWhoEditsMeanwhileLosesNothing(t *testing.T) {
	const mine = "the person's\n"
	for _, c := range []struct {
		name  string
		path  string
		op    string
		after bool
		do    func(path string)
		want  landing.State
	}{
		{"in place, before it is replaced", "run.sh", "tree:delete", false, overwrite(mine), landing.Undone},
		{"by an editor that renames", "a.txt", "tree:delete", false, rename(mine), landing.Undone},
		{"after the index was locked", "a.txt", "index:lock", true, rename(mine), landing.Undone},
		{"a file that is to be deleted", "dir/gone", "ref:update", true, overwrite(mine), landing.Undone},
		{"a file that is to come", "new/deep/n.txt", "ref:update", true, overwrite(mine), landing.Undone},
		{"a file where a folder is to come", "new", "ref:update", true, overwrite(mine), landing.Undone},
		{"a file in a folder that is to become a file", "d2f/mine", "tree:delete", true, overwrite(mine), landing.Undone},
		{"on top of the new version, in place", "a.txt", "index:write", false, overwrite(mine), landing.Landed},
		{"on top of the new version, by renaming", "a.txt", "index:swap", true, rename(mine), landing.Landed},
		{"a file in a folder that is emptied", "only/deep/mine", "tree:delete", true, overwrite(mine), landing.Landed},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, o := rich(t, t.TempDir())
			before := look(t, r.Top)
			path := filepath.Join(r.Top, c.path)
			j := &journal{}
			l := &landing.Lander{Host: beside, Ops: meddle(c.op, c.after, func() { c.do(path) })}
			lands(t, l, o, j)
			if j.row.State != c.want {
				t.Errorf("%s %q, want %s", j.row.State, j.row.Reason, c.want)
			}
			if raw, _ := os.ReadFile(path); string(raw) != mine {
				t.Errorf("%s holds %q", c.path, raw)
			}
			if c.want == landing.Undone {
				after := look(t, r.Top)
				for p := c.path; p != "."; p = filepath.Dir(p) { // theirs, with the folders that they made for it
					delete(after.tree, p)
					delete(before.tree, p)
				}
				after.status, before.status = "", ""
				if d := differ(after, before); d != "" {
					t.Errorf("not taken back:\n%s", d)
				}
				if !strings.Contains(j.row.Reason, strings.Split(c.path, "/")[0]) || c.path == "new" && !strings.HasPrefix(j.row.Reason, "new is in the way of new/deep/n.txt: new is not a folder") {
					t.Errorf("reason %q does not name it", j.row.Reason)
				}
			} else if status := gitIn(t, r.Top, "", "status", "--porcelain", "--", c.path); status == "" {
				t.Errorf("git does not see the person's edit of %s", c.path)
			}
			tidy(t, r)
		})
	}
}

func overwrite(body string) func(string) {
	return func(path string) {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			panic(err)
		}
		f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o644)
		if err != nil {
			panic(err)
		}
		if _, err := f.WriteString(body); err != nil {
			panic(err)
		}
		f.Close()
	}
}

func rename(body string) func(string) {
	return func(path string) {
		overwrite(body)(path + "~")
		if err := os.Rename(path+"~", path); err != nil {
			panic(err)
		}
	}
}

// TestAModeAndAnOwnerThatAPersonGivesMeanwhileStay: git knows neither, and what replaces a file has those that it had when it was looked at.
func TestAModeAndAnOwnerThatAPersonGivesMeanwhileStay(t *testing.T) {
	rows := map[string]func(path string) error{
		"a mode": func(path string) error { return os.Chmod(path, 0o600) },
	}
	if os.Geteuid() == 0 {
		rows["an owner"] = func(path string) error { return os.Lchown(path, 54321, -1) }
		rows["a group"] = func(path string) error { return os.Lchown(path, -1, 54321) }
	}
	for name, give := range rows {
		for _, path := range []string{"a.txt", "dir/gone", "link"} {
			if name == "a mode" && path == "link" {
				continue
			}
			t.Run(name+" of "+path, func(t *testing.T) {
				r, o := rich(t, t.TempDir())
				var before picture
				l := &landing.Lander{Host: beside, Ops: meddle("ref:update", true, func() {
					if err := give(filepath.Join(r.Top, path)); err != nil {
						t.Error(err)
					}
					before = picture{tree: walk(t, r.Top, ".git")}
				})}
				j := &journal{}
				lands(t, l, o, j)
				if j.row.State != landing.Undone || !strings.Contains(j.row.Reason, "somebody changed "+path) {
					t.Errorf("%s %q", j.row.State, j.row.Reason)
				}
				if d := differTree(walk(t, r.Top, ".git"), before.tree); len(d) > 0 {
					t.Errorf("%q", d)
				}
			})
		}
	}
}

// TestALockThatAPersonTakesAsOursIsGivenBackStays: between the look at a lock and its removal their git may have come.
func TestALockThatAPersonTakesAsOursIsGivenBackStays(t *testing.T) {
	for _, c := range []struct {
		op, lock string
		fails    bool // the landing is taken back
	}{{"index:unlock", "index.lock", false}, {"ref:unlock", "refs/heads/team/new.lock", true}, {"packed:unlock", "packed-refs.lock", true}} {
		for _, theirs := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, theirs %t", c.op, theirs), func(t *testing.T) {
				r, o := plain(t)
				want := landing.Landed
				if c.fails {
					o.Branch, o.WorkTree, o.New = "team/new", false, true
					want = landing.Undone
				}
				lock := filepath.Join(r.CommonDir, c.lock)
				meddled := false
				inner := disk.Ops{}
				if c.fails {
					inner = failingAfterTheBranch(&disktest.Crash{At: -1}, func() {})
				}
				ops := disk.Ops{Around: func(op string, do func() error) error {
					if op == c.op && !meddled {
						meddled = true
						if err := os.Remove(lock); err != nil {
							t.Error(err)
						}
						if theirs {
							put(t, lock, "theirs", 0o644)
						}
					}
					return inner.Do(op, do)
				}}
				j := &journal{}
				lands(t, &landing.Lander{Host: beside, Ops: ops, Wait: 30 * time.Millisecond}, o, j)
				if !meddled || j.row.State != want {
					t.Errorf("meddled %t, %s %q", meddled, j.row.State, j.row.Reason)
				}
				if raw, err := os.ReadFile(lock); theirs && string(raw) != "theirs" || !theirs && err == nil {
					t.Errorf("the lock: %q, %v", raw, err)
				}
			})
		}
	}
}

// TestALockThatCannotBeGivenBackKeepsItsRowOpen: their git would stand before it, and nobody would take it away.
func TestALockThatCannotBeGivenBackKeepsItsRowOpen(t *testing.T) {
	for op, fails := range map[string]bool{"index:unlock": false, "ref:unlock": true, "packed:unlock": true} {
		t.Run(op, func(t *testing.T) {
			r, o := plain(t)
			want, inner := landing.Landed, disk.Ops{}
			if fails {
				o.Branch, o.WorkTree, o.New = "team/new", false, true
				want, inner = landing.Undone, failingAfterTheBranch(&disktest.Crash{At: -1}, func() {})
			}
			l := &landing.Lander{Host: beside, Ops: disk.Ops{Around: func(name string, do func() error) error {
				if name == op {
					return unix.EIO
				}
				return inner.Do(name, do)
			}}}
			j := &journal{}
			lands(t, l, o, j)
			if j.row.State != landing.Stranded || !strings.Contains(j.row.Reason, "input/output error") {
				t.Errorf("%s %q", j.row.State, j.row.Reason)
			}
			recoverAll(t, j, disk.Ops{})
			if left := residue(t, r); j.row.State != want || len(left) > 0 {
				t.Errorf("%s %q, left behind: %q", j.row.State, j.row.Reason, left)
			}
		})
	}
}

// TestAFileOpenForWritingIsLeftToItsProgram: its next write would go to a file that was taken away.
func TestAFileOpenForWritingIsLeftToItsProgram(t *testing.T) {
	persontest.Ordinary(t, "a lease is for the owner of a file")
	r, o := rich(t, t.TempDir())
	before := look(t, r.Top)
	f, err := os.OpenFile(filepath.Join(r.Top, "a.txt"), os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	j := &journal{}
	lands(t, &landing.Lander{Host: beside}, o, j)
	if j.row.State != landing.Undone || !strings.Contains(j.row.Reason, "has a.txt open for writing") || strings.Contains(j.row.Reason, "was changed") {
		t.Errorf("%s %q", j.row.State, j.row.Reason)
	}
	unchanged(t, r, before)
	if _, err := f.WriteString("more"); err != nil {
		t.Fatal(err)
	}
	if raw, _ := os.ReadFile(filepath.Join(r.Top, "a.txt")); string(raw) != "a old\nmore" {
		t.Errorf("a.txt holds %q", raw)
	}
}

// TestAnEditInAFileThatWasTakenAwayIsKept writes through a descriptor that was opened before, after
// everything has been compared.
func TestAnEditInAFileThatWasTakenAwayIsKept(t *testing.T) {
	for _, outside := range []bool{false, true} {
		var r repo
		var o landing.Order
		if outside {
			r, o = separate(t)
		} else {
			r, o = rich(t, t.TempDir())
		}
		var slot string
		ops := meddle("index:write", false, func() {
			found, _ := filepath.Glob(filepath.Join(r.GitDir, "sallyport-lnd-*/slots/*"))
			more, _ := filepath.Glob(filepath.Join(r.Top, ".sallyport-lnd-*/*"))
			for _, p := range append(found, more...) {
				if raw, err := os.ReadFile(p); err == nil && string(raw) == "a old\n" {
					slot = p
					overwrite("late words")(p)
				}
			}
		})
		j := &journal{}
		lands(t, &landing.Lander{Host: beside, Ops: ops}, o, j)
		if slot == "" || j.row.State != landing.Landed || !strings.Contains(j.row.Reason, "your version of a.txt is kept as ") {
			t.Fatalf("slot %q, %s %q", slot, j.row.State, j.row.Reason)
		}
		_, path, _ := strings.Cut(j.row.Reason, " is kept as ")
		if raw, err := os.ReadFile(path); err != nil || string(raw) != "late words" {
			t.Errorf("kept: %q, %v", raw, err)
		}
		others, _ := os.ReadDir(filepath.Dir(path))
		if len(others) != 1 {
			t.Errorf("kept beside it: %v", others)
		}
		desks, err := landing.Desks(r.Project)
		for _, d := range desks {
			if !d.Kept || strings.HasSuffix(d.Path, ".old") {
				t.Errorf("it is left as %+v", d)
			}
		}
		if want := map[bool]int{false: 1, true: 2}[outside]; err != nil || len(desks) != want {
			t.Errorf("%d folders are left, %v; want %d", len(desks), err, want)
		}
	}
}

// TestAnEditOfTheNewVersionIsToldAndTheRestIsStaged: what somebody has made of a path since is theirs, and the row says so, be it the first
// of the paths or the last.
func TestAnEditOfTheNewVersionIsToldAndTheRestIsStaged(t *testing.T) {
	for name, c := range map[string]struct {
		path string
		age  time.Duration
	}{"written now": {"a", 0}, "with an old time": {"a", time.Hour}, "the last one": {"new/n", 0}} {
		t.Run(name, func(t *testing.T) {
			r, o := plain(t)
			adds := 0
			l := &landing.Lander{Host: beside, Ops: disk.Ops{Around: func(op string, do func() error) error {
				err := do()
				if op == "tree:add" {
					if adds++; adds == 2 { // the last one
						path, at := filepath.Join(r.Top, c.path), time.Now().Add(-c.age)
						overwrite("mine")(path)
						if err := os.Chtimes(path, at, at); err != nil {
							t.Error(err)
						}
					}
				}
				return err
			}}}
			j := &journal{}
			lands(t, l, o, j)
			if j.row.State != landing.Landed || j.row.Reason != c.path+" was changed meanwhile, and stays as you have it" {
				t.Errorf("%s %q", j.row.State, j.row.Reason)
			}
			if status := gitIn(t, r.Top, "", "status", "--porcelain"); status != " M "+c.path {
				t.Errorf("status %q", status)
			}
		})
	}
}

// TestWhatAPersonMakesOfANewVersionStaysWhenItIsTakenBack: the rest goes back, and the row names what does not.
func TestWhatAPersonMakesOfANewVersionStaysWhenItIsTakenBack(t *testing.T) {
	aside := func(r repo, name string) error {
		return os.Rename(filepath.Join(r.Top, name), filepath.Join(r.Top, "aside"))
	}
	for name, c := range map[string]struct {
		do     func(t *testing.T, r repo) error
		theirs map[string]string // path → what is there in the end; "" = nothing
		says   string            // which path stays
	}{
		"a new file is deleted":        {func(_ *testing.T, r repo) error { return os.Remove(filepath.Join(r.Top, "new/n")) }, nil, "new/n"},
		"a new file is edited":         {func(_ *testing.T, r repo) error { overwrite("mine")(filepath.Join(r.Top, "new/n")); return nil }, map[string]string{"new/n": "mine"}, "new/n"},
		"a new file's folder is moved": {func(_ *testing.T, r repo) error { return aside(r, "new") }, map[string]string{"aside/n": "n\n"}, "new/n"},
		"a new file's folder is a link": {func(_ *testing.T, r repo) error {
			return errors.Join(aside(r, "new"), os.Symlink("aside", filepath.Join(r.Top, "new")))
		}, map[string]string{"aside/n": "n\n", "new/n": "n\n"}, "new/n"},
		"a file is deleted":        {func(_ *testing.T, r repo) error { return os.Remove(filepath.Join(r.Top, "a")) }, map[string]string{"a": ""}, "a"},
		"a file is edited":         {func(_ *testing.T, r repo) error { rename("mine")(filepath.Join(r.Top, "a")); return nil }, map[string]string{"a": "mine"}, "a"},
		"a file's folder is moved": {func(_ *testing.T, r repo) error { return aside(r, "dir") }, map[string]string{"aside/f": "f2\n", "dir/f": ""}, "dir/f"},
		"a file's folder is a link": {func(_ *testing.T, r repo) error {
			return errors.Join(aside(r, "dir"), os.Symlink("aside", filepath.Join(r.Top, "dir")))
		}, map[string]string{"aside/f": "f2\n", "dir/f": "f2\n"}, "dir/f"},
		"a deleted file comes again": {func(_ *testing.T, r repo) error { overwrite("mine")(filepath.Join(r.Top, "gone")); return nil }, map[string]string{"gone": "mine"}, "gone"},
		"a file where a folder was":  {func(_ *testing.T, r repo) error { rename("mine")(filepath.Join(r.Top, "d2f")); return nil }, map[string]string{"d2f": "mine"}, "d2f"},
		"a folder as it was": {func(_ *testing.T, r repo) error {
			folder := filepath.Join(r.Top, "d2f")
			err := os.Remove(folder)
			overwrite("mine")(filepath.Join(folder, "x"))
			return err
		}, map[string]string{"d2f/x": "mine"}, "d2f/x"},
	} {
		t.Run(name, func(t *testing.T) {
			r, o := plain(t)
			before, did := look(t, r.Top), false
			l := &landing.Lander{Host: beside, Ops: disk.Ops{Around: func(op string, do func() error) error {
				if op != "index:write" || did {
					return do()
				}
				did = true
				if err := c.do(t, r); err != nil {
					t.Error(err)
				}
				return unix.ENOSPC
			}}}
			j := &journal{}
			lands(t, l, o, j)
			if j.row.State != landing.Undone || !strings.Contains(j.row.Reason, "; "+c.says+" was changed meanwhile, and stays as you have it") {
				t.Errorf("%s %q", j.row.State, j.row.Reason)
			}
			after := look(t, r.Top)
			for path, want := range c.theirs {
				if raw, _ := os.ReadFile(filepath.Join(r.Top, path)); string(raw) != want {
					t.Errorf("%s holds %q, want %q", path, raw, want)
				}
			}
			for p := range c.theirs {
				for ; p != "."; p = filepath.Dir(p) {
					delete(after.tree, p)
					delete(before.tree, p)
				}
			}
			for _, below := range []string{"d2f/x"} { // of a folder that is a file now
				if _, is := c.theirs["d2f"]; is {
					delete(before.tree, below)
				}
			}
			after.status, before.status = "", ""
			if d := differ(after, before); d != "" {
				t.Errorf("not taken back:\n%s", d)
			}
			tidy(t, r)
		})
	}
}

// TestAnEditInAnOldFileThatWasTakenAwayIsKept: one that nobody has written for a while is told by its stamp, and any part of that may tell.
func TestAnEditInAnOldFileThatWasTakenAwayIsKept(t *testing.T) {
	old := time.Now().Add(-time.Hour).Truncate(time.Second)
	for name, c := range map[string]struct {
		words   string        // "" = nobody writes
		another bool          // an editor renames
		back    bool          // its time is put back
		later   time.Duration // it was written so much later
	}{
		"nobody writes":                               {},
		"as many bytes":                               {words: "a mad\n"},
		"more bytes, at the old time":                 {words: "late words", back: true},
		"another file of as many bytes and that time": {words: "a mad\n", back: true, another: true},
		"as many bytes, at a time that says nothing":  {words: "a mad\n", back: true, later: 2 * time.Hour}, // a clock has been put back
	} {
		old := old.Add(c.later)
		t.Run(name, func(t *testing.T) {
			r, o := rich(t, t.TempDir())
			if err := os.Chtimes(filepath.Join(r.Top, "a.txt"), old, old); err != nil {
				t.Fatal(err)
			}
			_, _ = tryGit(r.Top, "", "update-index", "--refresh")
			slot := ""
			l := &landing.Lander{Host: beside, Ops: meddle("index:swap", true, func() {
				found, _ := filepath.Glob(filepath.Join(r.GitDir, "sallyport-lnd-*/slots/*"))
				for _, at := range found {
					if raw, err := os.ReadFile(at); err != nil || string(raw) != "a old\n" {
						continue
					}
					if slot = at; c.another {
						rename(c.words)(at)
					} else if c.words != "" {
						overwrite(c.words)(at)
					}
					if c.back {
						if err := os.Chtimes(at, old, old); err != nil {
							t.Error(err)
						}
					}
				}
			})}
			j := &journal{}
			if err := attempt(t, l, o, j); err != nil || j.row.State != landing.Landed || slot == "" {
				t.Fatalf("%v, slot %q, %+v", err, slot, j.row)
			}
			_, path, kept := strings.Cut(j.row.Reason, "your version of a.txt is kept as ")
			if raw, _ := os.ReadFile(path); kept != (c.words != "") || string(raw) != c.words {
				t.Errorf("%q, kept %q", j.row.Reason, raw)
			}
		})
	}
}

// TestEachFileThatWasTakenAwayIsLookedAt, also those behind one that nobody has written for a while.
func TestEachFileThatWasTakenAwayIsLookedAt(t *testing.T) {
	r, o := plain(t)
	old := time.Now().Add(-time.Hour)
	if err := os.Chtimes(filepath.Join(r.Top, "a"), old, old); err != nil {
		t.Fatal(err)
	}
	_, _ = tryGit(r.Top, "", "update-index", "--refresh")
	j := &journal{}
	l := &landing.Lander{Host: beside, Ops: meddle("index:swap", true, func() {
		slots, _ := filepath.Glob(filepath.Join(r.GitDir, "sallyport-lnd-*/slots/*"))
		for _, at := range slots {
			if raw, err := os.ReadFile(at); err == nil && string(raw) == "f\n" {
				overwrite("late words")(at)
			}
		}
	})}
	if err := attempt(t, l, o, j); err != nil || j.row.State != landing.Landed {
		t.Fatalf("%v, %+v", err, j.row)
	}
	_, path, _ := strings.Cut(j.row.Reason, "your version of dir/f is kept as ")
	if raw, err := os.ReadFile(path); string(raw) != "late words" {
		t.Errorf("%q, kept %q, %v", j.row.Reason, raw, err)
	}
}

// TestAnOldFileThatCameOutIsNotReadAgain: a large tree would be read twice. A file system that keeps no times of reading tells nothing.
func TestAnOldFileThatCameOutIsNotReadAgain(t *testing.T) {
	r, o := plain(t)
	written, read, stamps := time.Now().Add(-time.Hour), time.Now().Add(-48*time.Hour), 0
	if err := os.Chtimes(filepath.Join(r.Top, "a"), written, written); err != nil {
		t.Fatal(err)
	}
	_, _ = tryGit(r.Top, "", "update-index", "--refresh")
	l := &landing.Lander{Host: beside, Ops: disk.Ops{Around: func(op string, do func() error) error {
		slots, _ := filepath.Glob(filepath.Join(r.GitDir, "sallyport-lnd-*/slots/*"))
		for _, at := range slots {
			info, err := os.Stat(at)
			if err != nil || !info.ModTime().Equal(written) {
				continue
			}
			switch st := info.Sys().(*syscall.Stat_t); op {
			case "index:swap":
				if err := os.Chtimes(at, read, written); err != nil {
					t.Error(err)
				}
			case "desk:remove":
				stamps++
				if got := time.Unix(st.Atim.Unix()); !got.Equal(read) {
					t.Errorf("%s was read at %v", at, got)
				}
			}
		}
		return do()
	}}}
	if err := attempt(t, l, o, &journal{}); err != nil || stamps != 1 {
		t.Errorf("%v, looked %d times", err, stamps)
	}
}

// TestWhatAPersonStagesMeanwhileIsRefusedAndStays: before the index is locked their git may do as it likes.
func TestWhatAPersonStagesMeanwhileIsRefusedAndStays(t *testing.T) {
	for name, c := range map[string]struct {
		do    func(t *testing.T, r repo)
		words string
	}{
		"other bytes": {func(t *testing.T, r repo) {
			gitIn(t, r.Top, "", "update-index", "--cacheinfo", "100644,"+gitIn(t, r.Top, "theirs", "hash-object", "-w", "--stdin")+",a")
		}, "somebody staged a "},
		"a path behind one that is staged as approved": {func(t *testing.T, r repo) { gitIn(t, r.Top, "", "rm", "-q", "--cached", "dir/f") }, "somebody staged dir/f "},
		"the very bytes that are to land": {func(t *testing.T, r repo) {
			gitIn(t, r.Top, "", "update-index", "--cacheinfo", "100644,"+gitIn(t, r.Top, "b\n", "hash-object", "-w", "--stdin")+",a")
		}, "somebody staged a "},
		"a path goes that is to go":  {func(t *testing.T, r repo) { gitIn(t, r.Top, "", "rm", "-q", "--cached", "gone") }, "somebody staged gone "},
		"a path is to be left alone": {func(t *testing.T, r repo) { gitIn(t, r.Top, "", "update-index", "--skip-worktree", "gone") }, "somebody staged gone "},
		"a path is announced": {func(t *testing.T, r repo) {
			put(t, filepath.Join(r.Top, "new/n"), "n\n", 0o644)
			gitIn(t, r.Top, "", "add", "-N", "new/n")
		}, "somebody staged new/n "},
		"a path goes": {func(t *testing.T, r repo) { gitIn(t, r.Top, "", "rm", "-q", "--cached", "dir/f") }, "somebody staged dir/f "},
		"a file in a folder's place": {func(t *testing.T, r repo) {
			put(t, filepath.Join(r.Top, "new"), "mine", 0o644)
			gitIn(t, r.Top, "", "add", "new")
			os.Remove(filepath.Join(r.Top, "new"))
		}, "new is staged and not committed"},
	} {
		t.Run(name, func(t *testing.T) {
			r, o := plain(t)
			if strings.HasSuffix(name, "as approved") {
				put(t, filepath.Join(r.Top, "a"), "b\n", 0o644)
				gitIn(t, r.Top, "", "add", "a")
			}
			var before picture
			l := &landing.Lander{Host: beside, Ops: meddle("desk:commit", true, func() { c.do(t, r); before = look(t, r.Top) })}
			j := &journal{}
			lands(t, l, o, j)
			if j.row.State != landing.Undone || !strings.Contains(j.row.Reason, c.words) {
				t.Errorf("%s %q", j.row.State, j.row.Reason)
			}
			unchanged(t, r, before)
		})
	}
}

// TestAnEntryThatIsAssumedUnchangedStaysSo: a person told their git so, whatever lands at that path and goes back.
func TestAnEntryThatIsAssumedUnchangedStaysSo(t *testing.T) {
	for name, fails := range map[string]bool{"it lands": false, "it is taken back": true} {
		t.Run(name, func(t *testing.T) {
			r, o := plain(t)
			gitIn(t, r.Top, "", "update-index", "--assume-unchanged", "a", "gone")
			before, swaps := gitIn(t, r.Top, "", "ls-files", "-s", "-v"), 0
			l := &landing.Lander{Host: beside, Ops: disk.Ops{Around: func(op string, do func() error) error {
				err := do()
				if op == "index:swap" {
					if swaps++; fails && swaps == 1 {
						return unix.ENOSPC
					}
				}
				return err
			}}}
			j := &journal{}
			lands(t, l, o, j)
			after := gitIn(t, r.Top, "", "ls-files", "-s", "-v")
			if fails && (j.row.State != landing.Undone || swaps != 2 || after != before) {
				t.Errorf("%s %q after %d swaps, and the index has\n%s\nnot\n%s", j.row.State, j.row.Reason, swaps, after, before)
			}
			if !fails && (j.row.State != landing.Landed || !strings.HasPrefix(after, "h ") || strings.Count("\n"+after, "\nh ") != 1) {
				t.Errorf("%s %q, and the index has\n%s", j.row.State, j.row.Reason, after)
			}
		})
	}
}

// TestABranchThatMovesWhileItIsTakenBackIsLeftToWhoMovedIt: under its lock too, for a git may have been at it already.
func TestABranchThatMovesWhileItIsTakenBackIsLeftToWhoMovedIt(t *testing.T) {
	for name, c := range map[string]struct {
		branch, op string
		made       bool
	}{"one that was there": {"main", "ref:lock", false}, "one that it has made": {"team/new", "packed:lock", true}} {
		t.Run(name, func(t *testing.T) {
			r, o := plain(t)
			o.Branch, o.WorkTree, o.New = c.branch, !c.made, c.made
			moved, theirs := false, ""
			l := &landing.Lander{Host: beside, Ops: disk.Ops{Around: func(op string, do func() error) error {
				err := do()
				switch {
				case op == "ref:update":
					moved = true
					return unix.ENOSPC
				case op == c.op && moved && theirs == "":
					theirs = gitIn(t, r.Top, "", "commit-tree", "-p", "refs/heads/"+c.branch, "-m", "theirs", "main^{tree}")
					put(t, filepath.Join(r.CommonDir, "refs/heads", c.branch), theirs+"\n", 0o644)
				}
				return err
			}}}
			j := &journal{}
			lands(t, l, o, j)
			if theirs == "" || j.row.State != landing.Stranded || !strings.Contains(j.row.Reason, "got a new commit") {
				t.Errorf("theirs %q, %s %q", theirs, j.row.State, j.row.Reason)
			}
			recoverAll(t, j, disk.Ops{})
			if at := gitIn(t, r.Top, "", "rev-parse", "refs/heads/"+c.branch); at != theirs {
				t.Errorf("%s is at %s, and theirs is %s", c.branch, at, theirs)
			}
			tidy(t, r)
		})
	}
}

// apart is a new folder on another file system than that of the tests' own; it skips where there is none.
func apart(t *testing.T) string {
	t.Helper()
	var own, other unix.Stat_t
	if err := unix.Stat(os.TempDir(), &own); err != nil {
		t.Fatal(err)
	}
	for _, top := range []string{"/dev/shm", "/var/tmp"} {
		if unix.Stat(top, &other) != nil || other.Dev == own.Dev {
			continue
		}
		dir, err := os.MkdirTemp(top, "landing-test-")
		if err != nil {
			continue
		}
		t.Cleanup(func() { os.RemoveAll(dir) })
		apart := filepath.Join(dir, "apart") // the host's repository comes beside it, and goes with dir
		if err := os.Mkdir(apart, 0o700); err != nil {
			t.Fatal(err)
		}
		return apart
	}
	t.Skip("SKIPPED: neither /dev/shm nor /var/tmp is a second file system to write to")
	return ""
}

// separate is rich with its git directory on another file system; it skips where there is none.
func separate(t *testing.T) (repo, landing.Order) {
	t.Helper()
	in, top := apart(t), t.TempDir()
	gitIn(t, top, "", "init", "-q", "-b", "main", "--separate-git-dir", filepath.Join(in, "git"))
	return rich(t, top)
}

func TestAGitDirectoryOnAnotherFileSystemWorks(t *testing.T) {
	persontest.Ordinary(t, "another file system, without the right to mount one")
	r, o := separate(t)
	before := look(t, r.Top)
	j := &journal{}
	if err := attempt(t, &landing.Lander{Host: beside}, o, j); err != nil || j.row.State != landing.Landed {
		t.Fatalf("%v %v", err, j.row)
	}
	if filepath.Dir(j.row.Staging) != r.Top {
		t.Errorf("staged in %q", j.row.Staging)
	}
	tidy(t, r)
	r.land(t, r.back(t, *j.row))
	if d := differ(look(t, r.Top), before); !strings.HasPrefix(d, "refs:") || strings.Count(d, "\n") != 3 {
		t.Errorf("after rolling back, more than the branch differs:\n%s", d)
	}
}

func TestACrashWithAGitDirectoryOnAnotherFileSystemIsRecovered(t *testing.T) {
	_, o := separate(t)
	whole := &disktest.Crash{At: -1}
	lands(t, &landing.Lander{Host: beside, Ops: whole.Ops()}, o, &journal{})
	for _, at := range disktest.Sample(t, disktest.Points(t, whole.Seen()), 3) {
		r, o := separate(t)
		before := look(t, r.Top)
		j, c := &journal{}, &disktest.Crash{At: at, After: true}
		if _, err := disktest.Run(func() error { return attempt(t, &landing.Lander{Host: beside, Ops: c.Ops()}, o, j) }); err != nil {
			t.Fatal(err)
		}
		if !c.Crashed() {
			t.Fatalf("no crash after operation %d", at)
		}
		recoverAll(t, j, disk.Ops{})
		tidy(t, r)
		if j.row != nil && j.row.State == landing.Landed {
			r.land(t, r.back(t, *j.row))
			before.refs = look(t, r.Top).refs
		}
		if d := differ(look(t, r.Top), before); d != "" {
			t.Fatalf("crashed after %q:\n%s", c.Seen()[at], d)
		}
	}
}

// TestAPersonWhoBreaksOurLockAndMovesTheBranchKeepsTheirs: the host is dead, they remove index.lock as git
// advises, and go on.
func TestAPersonWhoBreaksOurLockAndMovesTheBranchKeepsTheirs(t *testing.T) {
	for name, c := range map[string]struct {
		do     func(t *testing.T, r repo)
		want   landing.State
		reason string
	}{
		"commit on top": {func(t *testing.T, r repo) {
			put(t, filepath.Join(r.Top, "theirs"), "t", 0o644)
			gitIn(t, r.Top, "", "add", "theirs")
			gitIn(t, r.Top, "", "commit", "-qm", "theirs", "theirs")
		}, landing.Landed, ""},
		"reset to the old": {func(t *testing.T, r repo) { gitIn(t, r.Top, "", "reset", "-q", "--hard", "HEAD~1") }, landing.Undone, "sallyport stopped in the middle of the landing"},
		"reset to the new": {func(t *testing.T, r repo) { gitIn(t, r.Top, "", "reset", "-q", "--hard") }, landing.Landed, ""},
		"go elsewhere and commit": {func(t *testing.T, r repo) {
			gitIn(t, r.Top, "", "reset", "-q", "--hard", "HEAD~1")
			put(t, filepath.Join(r.Top, "a.txt"), "theirs", 0o644)
			gitIn(t, r.Top, "", "commit", "-qam", "theirs")
		}, landing.Undone, "sallyport stopped in the middle of the landing"},
	} {
		for _, op := range []string{"ref:update", "tree:replace", "tree:add", "index:swap"} {
			t.Run(name+" after "+op, func(t *testing.T) {
				r, o := rich(t, t.TempDir())
				for _, words := range []string{"add -A", "commit -qm clean"} { // a reset takes what is uncommitted with it
					gitIn(t, r.Top, "", strings.Fields(words)...)
				}
				j := stopped(t, o, op)
				unlockedByHand(t, r)
				c.do(t, r)
				tip, stood := gitIn(t, r.Top, "", "rev-parse", "main"), look(t, r.Top)
				recoverAll(t, j, disk.Ops{})
				if j.row.State != c.want || j.row.Reason != c.reason {
					t.Errorf("%s %q, want %s %q", j.row.State, j.row.Reason, c.want, c.reason)
				}
				if d := differ(look(t, r.Top), stood); d != "" && name != "commit on top" { // whose files are brought up to it
					t.Error(d)
				}
				if got := gitIn(t, r.Top, "", "rev-parse", "main"); got != tip {
					t.Errorf("the person's branch was moved from %s to %s", tip, got)
				}
				if out := gitIn(t, r.Top, "", "status", "--porcelain"); out != "" {
					t.Errorf("status after recovery: %q", out)
				}
				tidy(t, r)
			})
		}
	}
}

// TestAPersonWhoBreaksOurLockUnderUsIsNotWrittenOver: without the lock the index is not ours to write.
func TestAPersonWhoBreaksOurLockUnderUsIsNotWrittenOver(t *testing.T) {
	persontest.Ordinary(t, "a lock may be taken by its owner only")
	for _, op := range []string{"ref:update", "tree:replace", "tree:add"} {
		t.Run(op, func(t *testing.T) {
			r, o := rich(t, t.TempDir())
			before := look(t, r.Top)
			j := &journal{}
			ops := meddle(op, true, func() { os.Remove(filepath.Join(r.GitDir, "index.lock")) })
			lands(t, &landing.Lander{Host: beside, Ops: ops}, o, j)
			if j.row.State != landing.Undone || !strings.Contains(j.row.Reason, "removed the lock") {
				t.Errorf("%s %q", j.row.State, j.row.Reason)
			}
			unchanged(t, r, before)
			tidy(t, r)
		})
	}
}

// TestAPersonsGitWaitsForALanding: what they commit while it is under way is refused by their own git.
func TestAPersonsGitWaitsForALanding(t *testing.T) {
	persontest.Ordinary(t, "a lock may be taken by its owner only")
	r, o := rich(t, t.TempDir())
	var said string
	ops := meddle("tree:replace", false, func() { said, _ = tryGit(r.Top, "", "commit", "-qam", "in between") })
	j := &journal{}
	lands(t, &landing.Lander{Host: beside, Ops: ops}, o, j)
	if j.row.State != landing.Landed || !strings.Contains(said, "index.lock") {
		t.Errorf("%s %q; git said %q", j.row.State, j.row.Reason, said)
	}
}

// TestAnEditThatCameOutJustBeforeACrashGoesBack: the host dies between taking the file and looking at it.
func TestAnEditThatCameOutJustBeforeACrashGoesBack(t *testing.T) {
	const mine = "the person's\n"
	for op, path := range map[string]string{"tree:replace": "a.txt", "tree:delete": "d2f/x"} {
		t.Run(op, func(t *testing.T) {
			r, o := rich(t, t.TempDir())
			head := gitIn(t, r.Top, "", "rev-parse", "main")
			c := &disktest.Crash{At: -1}
			ops := disk.Ops{Around: func(name string, do func() error) error {
				if name == op {
					overwrite(mine)(filepath.Join(r.Top, path))
					c.At, c.After = len(c.Seen()), true
				}
				return c.Ops().Around(name, do)
			}}
			j := &journal{}
			if crashed, err := disktest.Run(func() error { return attempt(t, &landing.Lander{Host: beside, Ops: ops}, o, j) }); !crashed || err != nil {
				t.Fatal(crashed, err)
			}
			recoverAll(t, j, disk.Ops{})
			if raw, err := os.ReadFile(filepath.Join(r.Top, path)); err != nil || string(raw) != mine {
				t.Errorf("%s holds %q, %v", path, raw, err)
			}
			if j.row.State != landing.Undone || gitIn(t, r.Top, "", "rev-parse", "main") != head {
				t.Errorf("%s %q", j.row.State, j.row.Reason)
			}
			tidy(t, r)
		})
	}
}

// TestAFolderThatAPersonMadeStays even though it is empty and the landing would have made it.
func TestAFolderThatAPersonMadeStays(t *testing.T) {
	persontest.Ordinary(t, "folders without rights are shut to their owner")
	r, o := rich(t, t.TempDir())
	ops := meddle("ref:update", true, func() {
		if err := os.Mkdir(filepath.Join(r.Top, "new"), 0o700); err != nil {
			t.Error(err)
		}
		overwrite("mine")(filepath.Join(r.Top, "dir/-rf")) // in the way of a file that comes
	})
	j := &journal{}
	lands(t, &landing.Lander{Host: beside, Ops: ops}, o, j)
	if st, err := os.Stat(filepath.Join(r.Top, "new")); err != nil || st.Mode().Perm() != 0o700 || j.row.State != landing.Undone {
		t.Errorf("%v, %v; %s %q", st, err, j.row.State, j.row.Reason)
	}
}

// TestAFolderThatAPersonMovesAwayIsNotMadeAgain: it was there before, and what was to come into it does not land.
func TestAFolderThatAPersonMovesAwayIsNotMadeAgain(t *testing.T) {
	r := testRepo(t, map[string]blob{"dir/f": text("f\n")})
	o := r.order(t, map[string]blob{"dir/deep/n": text("n\n")})
	j := &journal{}
	l := &landing.Lander{Host: beside, Ops: meddle("ref:update", true, func() {
		if err := os.Rename(filepath.Join(r.Top, "dir"), filepath.Join(r.Top, "aside")); err != nil {
			t.Error(err)
		}
	})}
	lands(t, l, o, j)
	if j.row.State != landing.Undone || !strings.Contains(j.row.Reason, "dir") || gitIn(t, r.Top, "", "rev-parse", "main") != string(o.Base) {
		t.Errorf("%s %q", j.row.State, j.row.Reason)
	}
	want := []string{".", "aside", "aside/f"}
	if got := slices.Sorted(maps.Keys(walk(t, r.Top, ".git"))); !slices.Equal(got, want) {
		t.Errorf("there is %q, want %q", got, want)
	}
	tidy(t, r)
}

// TestAFolderThatAPersonMakesAsOursIsToComeIsUsed: it is theirs as they made it, and what lands goes in there, deeper folders too.
func TestAFolderThatAPersonMakesAsOursIsToComeIsUsed(t *testing.T) {
	r, o := rich(t, t.TempDir())
	made := filepath.Join(r.Top, "new")
	j := &journal{}
	did := false
	l := &landing.Lander{Host: beside, Ops: disk.Ops{Around: func(op string, do func() error) error {
		if op != "tree:mkdir" || did {
			return do()
		}
		if err := os.Mkdir(made, 0o700); err != nil {
			t.Error(err)
		}
		err := do()
		if did = errors.Is(err, unix.EEXIST); !did { // another folder's turn
			if err := os.Remove(made); err != nil {
				t.Error(err)
			}
		}
		return err
	}}}
	lands(t, l, o, j)
	if !did || j.row.State != landing.Landed || j.row.Reason != "" {
		t.Errorf("met %t, %s %q", did, j.row.State, j.row.Reason)
	}
	if raw, err := os.ReadFile(filepath.Join(made, "deep/n.txt")); string(raw) != "n" {
		t.Errorf("new/deep/n.txt: %q, %v", raw, err)
	}
	if st, err := os.Stat(made); err != nil || st.Mode().Perm() != 0o700 {
		t.Errorf("their folder: %v, %v", st, err)
	}
	tidy(t, r)
}

// TestAGitOfThePersonsThatHasTheIndexIsWaitedForAndThenLeftInPeace: nothing moves, and its lock stays. What they change meanwhile
// is no matter of a landing that has touched nothing.
func TestAGitOfThePersonsThatHasTheIndexIsWaitedForAndThenLeftInPeace(t *testing.T) {
	for _, ends := range []bool{true, false} {
		r, o := rich(t, t.TempDir())
		before := look(t, r.Top)
		lock := filepath.Join(r.GitDir, "index.lock")
		seen := &disktest.Crash{At: -1}
		tries := 0
		ops := disk.Ops{Around: func(op string, do func() error) error {
			if op == "index:lock" {
				if tries++; tries == 1 {
					put(t, lock, "theirs", 0o644)
					if !ends {
						put(t, filepath.Join(r.Top, "a.txt"), "a mine\n", 0o640)
						before = look(t, r.Top)
					}
				} else if ends {
					os.Remove(lock)
				}
			}
			return seen.Ops().Around(op, do)
		}}
		j := &journal{}
		lands(t, &landing.Lander{Host: beside, Ops: ops, Wait: 100 * time.Millisecond}, o, j)
		if ends {
			if j.row.State != landing.Landed {
				t.Errorf("%s %q", j.row.State, j.row.Reason)
			}
			continue
		}
		if j.row.State != landing.Undone || !strings.Contains(j.row.Reason, "index.lock") || strings.Contains(j.row.Reason, "a.txt") || slices.Contains(seen.Seen(), "ref:update") {
			t.Errorf("%s %q after %q", j.row.State, j.row.Reason, seen.Seen())
		}
		if raw, _ := os.ReadFile(lock); string(raw) != "theirs" {
			t.Errorf("their lock holds %q", raw)
		}
		os.Remove(lock)
		unchanged(t, r, before)
	}
}
