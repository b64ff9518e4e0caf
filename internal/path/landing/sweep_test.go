package landing_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"sallyport/internal/base/disk"
	"sallyport/internal/base/disk/disktest"
	"sallyport/internal/base/git/gittest"
	"sallyport/internal/path/landing"
)

// TestOnlyFoldersOfLandingsAreTheirDesks: whatever is named here may be removed by the sweep.
func TestOnlyFoldersOfLandingsAreTheirDesks(t *testing.T) {
	r := testRepo(t, map[string]blob{"a": text("1")})
	objects := filepath.Join(r.CommonDir, "objects")
	want := map[string]landing.Desk{}
	for at, d := range map[string]landing.Desk{
		filepath.Join(r.GitDir, "sallyport-lnd-1"):             {Landing: "lnd-1"},
		filepath.Join(r.GitDir, "sallyport-lnd-2.new"):         {Landing: "lnd-2"},
		filepath.Join(r.GitDir, "sallyport-lnd-3.old"):         {Landing: "lnd-3"},
		filepath.Join(r.GitDir, "sallyport-lnd-4.part"):        {Landing: "lnd-4"},
		filepath.Join(r.GitDir, "sallyport-kept-lnd-5"):        {Landing: "lnd-5", Kept: true},
		filepath.Join(r.Top, ".sallyport-lnd-5"):               {Landing: "lnd-5", Kept: true}, // the slots of the one that is kept
		filepath.Join(r.Top, ".sallyport-lnd-1"):               {Landing: "lnd-1"},
		filepath.Join(objects, "tmp_objdir-sallyport-lnd-6"):   {Landing: "lnd-6", Aside: true},
		filepath.Join(r.GitDir, "sallyport-other"):             {},
		filepath.Join(r.GitDir, "sallyport-another"):           {}, // before those of landings, where names are in order
		filepath.Join(r.GitDir, "lnd-7"):                       {},
		filepath.Join(r.Top, "sallyport-lnd-8"):                {}, // a person's own folder
		filepath.Join(r.GitDir, ".sallyport-lnd-9"):            {},
		filepath.Join(objects, "tmp_objdir-lnd-10"):            {},
		filepath.Join(objects, "lnd-15"):                       {},
		filepath.Join(objects, "tmp_objdir-sallyport-another"): {},
	} {
		if err := os.Mkdir(at, 0o700); err != nil {
			t.Fatal(err)
		}
		if d.Landing != "" {
			want[at] = d
		}
	}
	for _, file := range []string{filepath.Join(r.GitDir, "sallyport-lnd-11"), filepath.Join(objects, "tmp_objdir-sallyport-lnd-12")} {
		put(t, file, "", 0o600)
	}
	if err := os.Symlink("sallyport-lnd-1", filepath.Join(r.GitDir, "sallyport-lnd-13")); err != nil {
		t.Fatal(err)
	}
	p := r.Project
	if os.Geteuid() == 0 { // root is whoever owns it, or nobody else
		p.UID = 54321
		for at, uid := range map[string]int{"sallyport-lnd-1": 54321, "sallyport-lnd-14": 54322} {
			at = filepath.Join(r.GitDir, at)
			if err := os.Mkdir(at, 0o700); err != nil && !os.IsExist(err) {
				t.Fatal(err)
			}
			if err := os.Chown(at, uid, uid); err != nil {
				t.Fatal(err)
			}
		}
	}
	desks, err := landing.Desks(p)
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range desks {
		w, ok := want[d.Path]
		if !ok || d.Landing != w.Landing || d.Kept != w.Kept || d.Aside != w.Aside {
			t.Errorf("%+v, want %+v", d, w)
		}
		delete(want, d.Path)
	}
	for at := range want {
		t.Errorf("%s is missing", at)
	}

	aside := "objects/tmp_objdir-sallyport-lnd-6"
	before := walk(t, r.CommonDir)
	if err := (&landing.Lander{}).ClearAside(gittest.Context(t), r.Project); err != nil {
		t.Fatal(err)
	}
	if d := differTree(before, walk(t, r.CommonDir)); len(d) != 1 || !strings.HasPrefix(d[0], fmt.Sprintf("%q: ", aside)) {
		t.Errorf("clearing took %q", d)
	}
}

// TestANewBranchThatStoppedBeforeItWasMadeIsComputedAnew: it stands on what it is to be made on until then.
func TestANewBranchThatStoppedBeforeItWasMadeIsComputedAnew(t *testing.T) {
	r, o := plain(t)
	o.Branch, o.WorkTree, o.New = "team/new", false, true
	before := look(t, r.Top)
	j, e := stopped(t, o, "ref:lock"), &ends{}
	done, err := (&landing.Lander{Host: beside}).Recover(gittest.Context(t), *j.row, e.steps(j))
	if err != nil || done.State != landing.Undone || (*e != ends{again: 1}) {
		t.Errorf("%s %q, %v, closed by %+v", done.State, done.Reason, err, *e)
	}
	unchanged(t, r, before)
	tidy(t, r)
}

// stopAt loses power at the first operation of a name, before it or after it.
func stopAt(op string, after bool) disk.Ops {
	c := &disktest.Crash{At: -1, After: after}
	return disk.Ops{Around: func(name string, do func() error) error {
		if name == op && c.At < 0 {
			c.At = len(c.Seen())
		}
		return c.Ops().Around(name, do)
	}}
}

// stopped is the open row of a landing that lost power after an operation.
func stopped(t *testing.T, o landing.Order, op string) *journal {
	t.Helper()
	j := &journal{}
	if crashed, err := disktest.Run(func() error { return attempt(t, &landing.Lander{Host: beside, Ops: stopAt(op, true)}, o, j) }); !crashed || err != nil {
		t.Fatal(crashed, err)
	}
	gittest.Restart(t)
	return j
}

// TestClearingTakesWhatALandingLeftAndKeepsAPersonsBytes: its row was closed by other means than its end.
func TestClearingTakesWhatALandingLeftAndKeepsAPersonsBytes(t *testing.T) {
	for _, c := range []struct {
		op    string
		after bool
		mine  bool   // a person wrote into a file that was taken out
		gone  string // what an earlier try has removed already
	}{{op: "desk:note", after: true}, {op: "ref:lock", after: true}, {op: "tree:replace", after: true}, {op: "tree:replace", after: true, mine: true}, {op: "desk:remove"}, {op: "desk:remove", gone: "slots"}, {op: "desk:remove", gone: "note"}} {
		name := c.op + c.gone
		if c.mine {
			name += ", mine"
		}
		t.Run(name, func(t *testing.T) {
			r, o := plain(t)
			j := &journal{}
			if crashed, err := disktest.Run(func() error { return attempt(t, &landing.Lander{Host: beside, Ops: stopAt(c.op, c.after)}, o, j) }); !crashed || err != nil {
				t.Fatal(crashed, err)
			}
			if c.mine {
				slots, _ := filepath.Glob(filepath.Join(r.GitDir, "sallyport-lnd-*/slots/*"))
				for _, at := range slots {
					if raw, _ := os.ReadFile(at); string(raw) == "a\n" {
						put(t, at, "late words", 0o644)
					}
				}
			}
			if c.gone != "" {
				if err := os.RemoveAll(filepath.Join(r.GitDir, "sallyport-"+string(o.Landing)+".old", c.gone)); err != nil {
					t.Fatal(err)
				}
			}
			head, tree := gitIn(t, r.Top, "", "rev-parse", "main"), walk(t, r.Top, ".git")
			gittest.Restart(t)
			l := &landing.Lander{Host: beside, Wait: 30 * time.Millisecond}

			folder, err := os.Open(r.CommonDir)
			if err != nil {
				t.Fatal(err)
			}
			if err := unix.Flock(int(folder.Fd()), unix.LOCK_EX); err != nil {
				t.Fatal(err)
			}
			before := walk(t, r.Top)
			if _, err := l.Clear(gittest.Context(t), *j.row); !errors.Is(err, landing.ErrBusy) {
				t.Errorf("while another landing is under way: %v", err)
			}
			if err := l.ClearAside(gittest.Context(t), r.Project); !errors.Is(err, landing.ErrBusy) {
				t.Errorf("while another landing is under way: %v", err)
			}
			if d := differTree(walk(t, r.Top), before); len(d) > 0 {
				t.Errorf("and yet it changed %q", d)
			}
			folder.Close()

			broken := &landing.Lander{Host: beside, Ops: disk.Ops{Around: func(op string, do func() error) error {
				if op == "desk:remove" {
					return unix.EIO
				}
				return do()
			}}}
			if _, err := broken.Clear(gittest.Context(t), *j.row); !errors.Is(err, unix.EIO) {
				t.Errorf("on a disk that fails: %v", err)
			}
			left, err := l.Clear(gittest.Context(t), *j.row)
			if err != nil {
				t.Fatal(err)
			}
			if !c.mine {
				if still := residue(t, r); len(still) > 0 || len(left) > 0 {
					t.Errorf("left behind: %q, %q", still, left)
				}
			} else if len(left) != 1 || !strings.HasPrefix(left[0], "your version of a is kept as ") {
				t.Errorf("it says %q", left)
			} else if raw, err := os.ReadFile(strings.TrimPrefix(left[0], "your version of a is kept as ")); string(raw) != "late words" {
				t.Errorf("kept: %q, %v", raw, err)
			}
			for _, lock := range []string{"index.lock", "refs/heads/main.lock"} {
				if _, err := os.Lstat(filepath.Join(r.CommonDir, lock)); err == nil {
					t.Errorf("%s is held still", lock)
				}
			}
			if d := differTree(walk(t, r.Top, ".git"), tree); len(d) > 0 || gitIn(t, r.Top, "", "rev-parse", "main") != head {
				t.Errorf("the branch or the work tree has moved: %q", d)
			}
		})
	}
}

// ends counts by which of its steps a row was closed.
type ends struct{ close, again int }

func (e *ends) steps(j *journal) landing.Steps {
	s := j.steps()
	return landing.Steps{
		Journal: s.Journal,
		Close:   func(l landing.Landing) error { e.close++; return s.Close(l) },
		Again:   func(l landing.Landing) error { e.again++; return s.Again(l) },
	}
}

// TestOnlyWhatStoppedAndLeftAllAsItWasIsComputedAnew: of anything else a person hears how it ended.
func TestOnlyWhatStoppedAndLeftAllAsItWasIsComputedAnew(t *testing.T) {
	for _, c := range []struct {
		name     string
		op       string
		edited   bool          // a person wrote into the next version
		stranded bool          // an earlier recovery could not end it
		state    landing.State // that it comes to
		again    bool
	}{
		{"before it moved", "desk:commit", false, false, landing.Undone, true},
		{"before it moved, and tried in vain since", "desk:commit", false, true, landing.Undone, false},
		{"after it moved", "ref:update", false, false, landing.Landed, false},
		{"after it moved, and somebody edited", "tree:delete", true, false, landing.Undone, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, o := plain(t)
			j, e := stopped(t, o, c.op), &ends{}
			if c.edited {
				put(t, filepath.Join(r.Top, "a"), "mine", 0o644)
			}
			if c.stranded {
				j.row.State = landing.Stranded
			}
			done, err := (&landing.Lander{Host: beside}).Recover(gittest.Context(t), *j.row, e.steps(j))
			if err != nil || done.State != c.state || done.Ended == nil {
				t.Errorf("%s %q, ended %v, %v", done.State, done.Reason, done.Ended, err)
			}
			if want := (ends{close: 1}); c.again && (*e != ends{again: 1}) || !c.again && *e != want {
				t.Errorf("closed by %+v", *e)
			}
			if _, err := (&landing.Lander{Host: beside}).Recover(gittest.Context(t), done, landing.Steps{}); err != nil {
				t.Errorf("again, at its end: %v", err)
			}
		})
	}
	t.Run("the branch moved before its first step", func(t *testing.T) {
		r, o := plain(t)
		theirs := gitIn(t, r.Top, "", "commit-tree", "-p", "main", "-m", "theirs", "main^{tree}")
		l := &landing.Lander{Host: beside, Ops: meddle("desk:commit", true, func() { gitIn(t, r.Top, "", "update-ref", "refs/heads/main", theirs) })}
		computed := compute(t, l, o)
		j, e := &journal{}, &ends{}
		if done, err := l.Land(gittest.Context(t), computed, e.steps(j)); !errors.Is(err, landing.ErrStale) || (*e != ends{again: 1}) || done.State != "" || done.Ended != nil || done.Reason != "" {
			t.Errorf("%v, closed by %+v: %+v", err, *e, done)
		}
		if j.row.State != landing.Undone || j.row.Ended == nil || !strings.Contains(j.row.Reason, "got a new commit") {
			t.Errorf("%+v", j.row)
		}
	})
	t.Run("the branch moved, and the row cannot be closed", func(t *testing.T) {
		r, o := plain(t)
		theirs := gitIn(t, r.Top, "", "commit-tree", "-p", "main", "-m", "theirs", "main^{tree}")
		l := &landing.Lander{Host: beside, Ops: meddle("desk:commit", true, func() { gitIn(t, r.Top, "", "update-ref", "refs/heads/main", theirs) })}
		computed := compute(t, l, o)
		j, no := &journal{}, errors.New("the database is gone")
		steps := j.steps()
		steps.Again = func(landing.Landing) error { return no }
		if done, err := l.Land(gittest.Context(t), computed, steps); !errors.Is(err, no) || done.State != landing.Journaled {
			t.Errorf("%s, %v", done.State, err)
		}
		if refs := refsBeside(t, r); !strings.HasPrefix(refs, string(j.row.NewCommit)+" ") {
			t.Errorf("the commit of an open row is kept by %q", refs)
		}
		recoverAll(t, j, disk.Ops{})
		if j.row.State != landing.Undone || gitIn(t, r.Top, "", "rev-parse", "main") != theirs {
			t.Errorf("%+v", j.row)
		}
	})
}

// TestWhatWasDoneBeforeACrashIsTakenBackWithTheRest: a file of theirs lies by then where a new one was to come.
func TestWhatWasDoneBeforeACrashIsTakenBackWithTheRest(t *testing.T) {
	for _, op := range []string{"ref:update", "tree:delete", "tree:rmdir", "tree:replace", "tree:add"} {
		t.Run(op, func(t *testing.T) {
			r, o := plain(t)
			before := look(t, r.Top)
			j := stopped(t, o, op)
			put(t, filepath.Join(r.Top, "new/n"), "mine", 0o600)
			recoverAll(t, j, disk.Ops{})
			if j.row.State != landing.Undone || !strings.Contains(j.row.Reason, "somebody changed new/n") {
				t.Errorf("%s %q", j.row.State, j.row.Reason)
			}
			after := look(t, r.Top)
			if raw, err := os.ReadFile(filepath.Join(r.Top, "new/n")); string(raw) != "mine" {
				t.Errorf("theirs holds %q, %v", raw, err)
			}
			delete(after.tree, "new")
			delete(after.tree, "new/n")
			after.status = before.status
			if d := differ(after, before); d != "" {
				t.Error(d)
			}
			tidy(t, r)
		})
	}
}

// TestWhatCannotBeClearedUpKeepsItsRowOpen: what has landed, what was taken back, and what never began.
func TestWhatCannotBeClearedUpKeepsItsRowOpen(t *testing.T) {
	for name, c := range map[string]struct {
		fails string // beside what clears up
		state landing.State
		head  bool // it is where it was
	}{
		"it has landed":       {"", landing.Landed, false},
		"it was taken back":   {"index:write", landing.Undone, true},
		"the branch moved":    {"desk:commit", landing.Undone, false},
		"it was not laid out": {"desk:note", landing.Undone, true},
	} {
		t.Run(name, func(t *testing.T) {
			r, o := plain(t)
			theirs := ""
			l := &landing.Lander{Host: beside, Ops: disk.Ops{Around: func(op string, do func() error) error {
				switch {
				case op == "desk:discard", op == "desk:remove":
					return unix.EIO
				case op == c.fails && op == "desk:commit":
					theirs = gitIn(t, r.Top, "", "commit-tree", "-p", "main", "-m", "theirs", "main^{tree}")
					gitIn(t, r.Top, "", "update-ref", "refs/heads/main", theirs)
				case op == c.fails:
					return unix.ENOSPC
				}
				return do()
			}}}
			j, e := &journal{}, &ends{}
			computed := compute(t, l, o)
			done, err := l.Land(gittest.Context(t), computed, e.steps(j))
			if err != nil || done.State != landing.Stranded || done.Ended != nil || !strings.Contains(done.Reason, "input/output error") || (*e != ends{close: 1}) {
				t.Errorf("%s %q, ended %v, %v, closed by %+v", done.State, done.Reason, done.Ended, err, *e)
			}
			recoverAll(t, j, disk.Ops{})
			at := gitIn(t, r.Top, "", "rev-parse", "main")
			if j.row.State != c.state || (at == string(o.Base)) != c.head || theirs != "" && at != theirs {
				t.Errorf("%s %q, main is at %s", j.row.State, j.row.Reason, at)
			}
			tidy(t, r)
		})
	}
}

// TestWhatCannotBeClearedBesideAPersonsBytesKeepsItsRowOpen: it would be handed to them as theirs.
func TestWhatCannotBeClearedBesideAPersonsBytesKeepsItsRowOpen(t *testing.T) {
	r, o := plain(t)
	other := ""
	l := &landing.Lander{Host: beside, Ops: meddle("index:write", false, func() {
		slots, _ := filepath.Glob(filepath.Join(r.GitDir, "sallyport-lnd-*/slots/*"))
		for _, at := range slots {
			if raw, _ := os.ReadFile(at); string(raw) == "a\n" {
				overwrite("late words")(at)
			}
		}
		other = filepath.Join(r.GitDir, "sallyport-"+string(o.Landing), "slots/a..b") // a name that is never removed
		put(t, other, "", 0o644)
	})}
	j := &journal{}
	lands(t, l, o, j)
	if j.row.State != landing.Stranded || !strings.Contains(j.row.Reason, "a..b") {
		t.Errorf("%s %q", j.row.State, j.row.Reason)
	}
	if err := os.Remove(strings.Replace(other, "/slots", ".old/slots", 1)); err != nil {
		t.Fatal(err)
	}
	recoverAll(t, j, disk.Ops{})
	_, kept, _ := strings.Cut(j.row.Reason, "your version of a is kept as ")
	if raw, err := os.ReadFile(kept); j.row.State != landing.Landed || string(raw) != "late words" {
		t.Errorf("%s %q: %q, %v", j.row.State, j.row.Reason, raw, err)
	}
	if beside, err := os.ReadDir(filepath.Dir(kept)); len(beside) != 1 {
		t.Errorf("kept beside it: %v, %v", beside, err)
	}
}

// TestARowWhoseRepositoryIsAwayIsStrandedAndEndsWhenItIsBack: it cannot be said how it stands, and it is not given up.
func TestARowWhoseRepositoryIsAwayIsStrandedAndEndsWhenItIsBack(t *testing.T) {
	for name, c := range map[string]struct {
		make func(*testing.T) (repo, landing.Order)
		away func(repo) string
	}{
		"the git directory":   {plain, func(r repo) string { return r.GitDir }},
		"the work tree alone": {separate, func(r repo) string { return r.Top }},
	} {
		t.Run(name, func(t *testing.T) {
			r, o := c.make(t)
			j := stopped(t, o, "ref:update")
			at := c.away(r)
			if err := os.Rename(at, at+"-away"); err != nil {
				t.Fatal(err)
			}
			l := &landing.Lander{Host: beside, Wait: 30 * time.Millisecond}
			done, err := l.Recover(gittest.Context(t), *j.row, j.steps())
			if err != nil || done.State != landing.Stranded || done.Ended != nil || done.Reason == "" || !done.Unfinished() {
				t.Errorf("%s %q, ended %v, %v", done.State, done.Reason, done.Ended, err)
			}
			if err := os.Rename(at+"-away", at); err != nil {
				t.Fatal(err)
			}
			gittest.Restart(t)
			if done, err = l.Recover(gittest.Context(t), *j.row, j.steps()); err != nil || done.State != landing.Landed || done.Unfinished() || done.Reason != "" {
				t.Errorf("%s %q, %v", done.State, done.Reason, err)
			}
			tidy(t, r)
		})
	}
}

// TestARecoveryWaitsForAnotherLandingAndClosesNothing: whoever holds the repository may be at this very row.
func TestARecoveryWaitsForAnotherLandingAndClosesNothing(t *testing.T) {
	r, o := plain(t)
	j := stopped(t, o, "tree:delete")
	folder, err := os.Open(r.CommonDir)
	if err != nil {
		t.Fatal(err)
	}
	defer folder.Close()
	if err := unix.Flock(int(folder.Fd()), unix.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	before, e := walk(t, r.Top), &ends{}
	stopping, stop := context.WithCancel(gittest.Context(t))
	stop()
	for _, c := range []struct {
		ctx  context.Context
		wait time.Duration
		want error
	}{{gittest.Context(t), 30 * time.Millisecond, landing.ErrBusy}, {stopping, time.Hour, context.Canceled}} {
		l := &landing.Lander{Host: beside, Wait: c.wait}
		if done, err := l.Recover(c.ctx, *j.row, e.steps(j)); !errors.Is(err, c.want) || done.State != landing.Journaled || (*e != ends{}) {
			t.Errorf("%s, %v, want %v, closed by %+v", done.State, err, c.want, *e)
		}
	}
	if d := differTree(walk(t, r.Top), before); len(d) > 0 {
		t.Errorf("it changed %q", d)
	}
	if left := residue(t, r); !slices.Contains(left, filepath.Join(r.GitDir, "sallyport-"+string(o.Landing))) {
		t.Errorf("the desk is gone: %q", left)
	}
}
