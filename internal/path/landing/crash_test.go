package landing_test

import (
	"errors"
	"os"
	"os/exec"
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

// world is one repository, made once and copied for each try.
type world struct {
	template string
	made     repo // the template's
	order    landing.Order
	old, new picture
}

// makeWorld learns what old and new look like from a landing that nothing disturbs.
func makeWorld(t *testing.T, order func(repo, landing.Order) landing.Order) *world {
	t.Helper()
	w := &world{template: filepath.Join(t.TempDir(), "template")}
	if err := os.Mkdir(w.template, 0o755); err != nil {
		t.Fatal(err)
	}
	r, o := rich(t, w.template)
	w.made, w.order = r, order(r, o)
	gitIn(t, w.template, "", "repack", "-adq") // what is copied and removed for each try is most of its cost; what is to land stays loose
	r, o = w.copy(t)
	w.old = look(t, r.Top)
	r.land(t, o)
	w.new = look(t, r.Top)
	return w
}

// copy returns a fresh copy of the world's repository and the order for it.
func (w *world) copy(t *testing.T) (repo, landing.Order) {
	t.Helper()
	top := filepath.Join(t.TempDir(), "r")
	if out, err := exec.Command("cp", "-a", w.template, top).CombinedOutput(); err != nil {
		t.Fatalf("cp: %v\n%s", err, out)
	}
	gittest.Restart(t)
	_, _ = tryGit(top, "", "update-index", "--refresh") // stat data of the copy; it fails for what is dirty
	p := w.made.Project                                 // as git would find it: that takes as long as a landing
	for _, path := range []*string{&p.Top, &p.GitDir, &p.CommonDir} {
		*path = strings.Replace(*path, w.template, top, 1)
	}
	r, o := repo{p, p.Common(disk.Ops{})}, w.order
	r.closes(t)
	o.Project, o.Edits = r.Project, slices.Clone(o.Edits)
	return r, o
}

func forwardOrder(_ repo, o landing.Order) landing.Order { return o }

// recoverAll starts anew until the row is closed, as a host would.
func recoverAll(t *testing.T, j *journal, ops disk.Ops) {
	t.Helper()
	gittest.Restart(t)
	l := &landing.Lander{Host: beside, Ops: ops, Wait: 300 * time.Millisecond}
	for range 3 {
		if !j.open() {
			return
		}
		if _, err := l.Recover(gittest.Context(t), *j.row, j.steps()); err != nil {
			t.Fatalf("recover: %v", err)
		}
	}
	if j.open() {
		t.Fatalf("still open: %s %q", j.row.State, j.row.Reason)
	}
}

// judge wants old or new, exactly, as the row says, and nothing left behind.
func (w *world) judge(t *testing.T, r repo, j *journal) {
	t.Helper()
	want := w.old
	if j.row != nil && j.row.State == landing.Landed {
		want = w.new
		if j.row.Reason != "" {
			t.Errorf("landed, but %q", j.row.Reason)
		}
	}
	if d := differ(look(t, r.Top), want); d != "" {
		t.Errorf("the row says %v; differs:\n%s", j.row, d)
	}
	if left := residue(t, r); j.row != nil && len(left) > 0 {
		t.Errorf("left behind: %q", left)
	}
}

func attempt(t tb, l *landing.Lander, o landing.Order, j *journal) error {
	computed, err := l.Compute(gittest.Context(t), o)
	if err != nil {
		return err
	}
	_, err = l.Land(gittest.Context(t), computed, j.steps())
	return err
}

// lands is an attempt that comes about.
func lands(t tb, l *landing.Lander, o landing.Order, j *journal) {
	t.Helper()
	if err := attempt(t, l, o, j); err != nil {
		t.Fatal(err)
	}
}

// compute is what comes of an order, which can land.
func compute(t tb, l *landing.Lander, o landing.Order) landing.Landing {
	t.Helper()
	made, err := l.Compute(gittest.Context(t), o)
	if err != nil {
		t.Fatal(err)
	}
	return made
}

func TestACrashAnywhereLeavesOldOrNewExactly(t *testing.T) {
	for name, order := range map[string]func(repo, landing.Order) landing.Order{
		"swap": forwardOrder,
		"branch alone": func(r repo, o landing.Order) landing.Order {
			gitIn(t, r.Top, "", "stash", "-q")
			gitIn(t, r.Top, "", "switch", "-qc", "other")
			o.WorkTree = false
			return o
		},
		"a branch that is to be made": func(r repo, o landing.Order) landing.Order {
			gitIn(t, r.Top, "", "stash", "-q")
			o.Branch, o.WorkTree, o.New = "team/new", false, true
			return o
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel() // each waits for the disk most of the time
			w := makeWorld(t, order)
			ends, locked := map[landing.State]int{}, 0
			seen := disktest.Everywhere(t, func(t *testing.T, c *disktest.Crash) {
				r, o := w.copy(t)
				j := &journal{}
				_, err := disktest.Run(func() error { return attempt(t, &landing.Lander{Host: beside, Ops: c.Ops()}, o, j) })
				if err != nil {
					t.Fatal(err)
				}
				if raw, err := os.ReadFile(filepath.Join(r.CommonDir, "refs/heads", o.Branch+".lock")); err == nil {
					if locked++; strings.TrimSpace(string(raw)) != string(j.row.NewCommit) {
						t.Errorf("a lock on the branch that says %q", raw)
					}
				}
				recoverAll(t, j, disk.Ops{})
				w.judge(t, r, j)
				if j.row != nil {
					ends[j.row.State]++
				}
			})
			if ends[landing.Landed] == 0 || ends[landing.Undone] == 0 {
				t.Errorf("ends: %v; want both", ends)
			}
			if locked == 0 {
				t.Error("no crash left a lock on the branch: the loop does not stop there")
			}
			t.Logf("%d operations: %q", len(seen), seen)
		})
	}
}

// TestACrashWhileANewBranchIsTakenBackLeavesNoLockBehind: its landing fails once the branch is there, and is killed before each step
// of the way back. A person's git has packed the branch meanwhile, beside another name that peels.
func TestACrashWhileANewBranchIsTakenBackLeavesNoLockBehind(t *testing.T) {
	w := makeWorld(t, func(r repo, o landing.Order) landing.Order {
		gitIn(t, r.Top, "", "stash", "-q")
		gitIn(t, r.Top, "", "tag", "-a", "-m", "peeled", "team")
		o.Branch, o.WorkTree, o.New = "team/new", false, true
		return o
	})
	locks := map[string]bool{}
	for at := indexOf(t, w, "ref:update") + 1; ; at++ {
		r, o := w.copy(t)
		c, j := &disktest.Crash{At: at}, &journal{}
		l := &landing.Lander{Host: beside, Ops: failingAfterTheBranch(c, func() { gitIn(t, r.Top, "", "pack-refs", "--all", "--no-prune") })}
		crashed, err := disktest.Run(func() error { return attempt(t, l, o, j) })
		if err != nil {
			t.Fatal(err)
		}
		for _, lock := range []string{"refs/heads/team/new.lock", "packed-refs.lock"} {
			if _, err := os.Stat(filepath.Join(r.CommonDir, lock)); err == nil {
				locks[lock] = true
			}
		}
		recoverAll(t, j, disk.Ops{})
		w.judge(t, r, j)
		if t.Failed() {
			t.Fatalf("crashed before the last of %q", c.Seen())
		}
		if crashed {
			continue
		}
		if j.row.State != landing.Undone || len(locks) != 2 {
			t.Errorf("%s, and locks that a crash left: %v; want what was taken back, and both", j.row.State, locks)
		}
		return
	}
}

// failingAfterTheBranch are the operations of a crash, on a disk that fails once the branch is there, and something has happened to it.
func failingAfterTheBranch(c *disktest.Crash, happens func()) disk.Ops {
	around := c.Ops().Around
	return disk.Ops{Around: func(op string, do func() error) error {
		if err := around(op, do); err != nil || op != "ref:update" {
			return err
		}
		happens()
		return errors.New("the disk is gone")
	}}
}

// TestACrashWhileClosingIsRecoveredToTheSameEnd loses the database instead of the disk.
func TestACrashWhileClosingIsRecoveredToTheSameEnd(t *testing.T) {
	w := makeWorld(t, forwardOrder)
	r, o := w.copy(t)
	j := &journal{}
	steps := j.steps()
	steps.Close = func(landing.Landing) error { return errors.New("the database is gone") }
	l := &landing.Lander{Host: beside}
	computed := compute(t, l, o)
	if done, err := l.Land(gittest.Context(t), computed, steps); err == nil || done.State != landing.Journaled {
		t.Fatalf("%s, %v; want an open row", done.State, err)
	}
	recoverAll(t, j, disk.Ops{})
	w.judge(t, r, j)
	if j.row.State != landing.Landed {
		t.Errorf("ended %s", j.row.State)
	}
}

// TestACrashInARecoveryIsRecovered crashes the landing at each operation and each
// recovery from there at each of its own, forwards and, where a person has edited a file, backwards.
func TestACrashInARecoveryIsRecovered(t *testing.T) {
	w := makeWorld(t, forwardOrder)
	_, o := w.copy(t)
	count := &disktest.Crash{At: -1}
	lands(t, &landing.Lander{Host: beside, Ops: count.Ops()}, o, &journal{})
	seen := count.Seen()
	from := slices.Index(seen, "desk:make")
	for _, at := range disktest.Sample(t, disktest.Points(t, seen[from:]), 4) {
		for _, edited := range []bool{false, true} {
			if !w.crashTwice(t, from+at, edited, seen[from+at]) {
				return
			}
		}
	}
}

// crashTwice returns false once it has failed.
func (w *world) crashTwice(t *testing.T, at int, edited bool, name string) bool {
	t.Helper()
	whole := w.crashAgain(t, at, -1, edited, name)
	for _, again := range disktest.Sample(t, disktest.Points(t, whole), 3) {
		if !t.Failed() {
			w.crashAgain(t, at, again, edited, name)
		}
	}
	return !t.Failed()
}

// crashAgain loses power after operation at of a landing, and before operation again of its recovery; it returns the recovery's
// operations.
func (w *world) crashAgain(t *testing.T, at, again int, edited bool, name string) []string {
	t.Helper()
	r, o := w.copy(t)
	j := &journal{}
	c := &disktest.Crash{At: at, After: true}
	if _, err := disktest.Run(func() error { return attempt(t, &landing.Lander{Host: beside, Ops: c.Ops()}, o, j) }); err != nil {
		t.Fatal(err)
	}
	const mine = "the person was here\n"
	if edited {
		put(t, filepath.Join(r.Top, "run.sh"), mine, 0o644)
	}
	gittest.Restart(t)
	second := &disktest.Crash{At: again}
	l := &landing.Lander{Host: beside, Ops: second.Ops(), Wait: 300 * time.Millisecond}
	if _, err := disktest.Run(func() error {
		_, err := l.Recover(gittest.Context(t), *j.row, j.steps())
		return err
	}); err != nil {
		t.Fatal(err)
	}
	recoverAll(t, j, disk.Ops{})
	if !edited {
		w.judge(t, r, j)
	} else if raw, _ := os.ReadFile(filepath.Join(r.Top, "run.sh")); string(raw) != mine {
		t.Errorf("the person's edit became %q", raw)
	} else {
		w.judgeEdited(t, r, j)
	}
	if t.Failed() {
		t.Logf("landing crashed after %s, recovery before %d of %q, edited %v", name, again, second.Seen(), edited)
	}
	return second.Seen()
}

// judgeEdited is judge but for the one path that a person has edited.
func (w *world) judgeEdited(t *testing.T, r repo, j *journal) {
	t.Helper()
	want := w.old
	if j.row.State == landing.Landed {
		want = w.new
	}
	got := look(t, r.Top)
	delete(got.tree, "run.sh")
	tree := make(map[string]string)
	for p, what := range want.tree {
		if p != "run.sh" {
			tree[p] = what
		}
	}
	got.status, want.status, want.tree = "", "", tree
	if d := differ(got, want); d != "" {
		t.Errorf("the row says %s %q; differs:\n%s", j.row.State, j.row.Reason, d)
	}
	tidy(t, r)
}

func indexOf(t *testing.T, w *world, op string) int {
	t.Helper()
	_, o := w.copy(t)
	c := &disktest.Crash{At: -1}
	lands(t, &landing.Lander{Host: beside, Ops: c.Ops()}, o, &journal{})
	return slices.Index(c.Seen(), op)
}

// TestAFullDiskAtAnyStepIsTakenBackAndNamed fails each operation as a full disk does.
func TestAFullDiskAtAnyStepIsTakenBackAndNamed(t *testing.T) {
	w := makeWorld(t, forwardOrder)
	_, o := w.copy(t)
	whole := &disktest.Crash{At: -1}
	lands(t, &landing.Lander{Host: beside, Ops: whole.Ops()}, o, &journal{})
	for _, at := range disktest.Sample(t, disktest.Points(t, whole.Seen()), 2) {
		r, o := w.copy(t)
		j := &journal{}
		n, name := 0, ""
		ops := disk.Ops{Around: func(op string, do func() error) error {
			n++
			if n-1 == at {
				name = op
				return unix.ENOSPC
			}
			return do()
		}}
		err := attempt(t, &landing.Lander{Host: beside, Ops: ops}, o, j)
		if name == "" {
			continue // this one was shorter
		}
		if j.row == nil {
			if !errors.Is(err, unix.ENOSPC) {
				t.Errorf("%s: %v", name, err)
			}
		} else if j.open() { // a disk that fails once may fail the way back, too
			recoverAll(t, j, disk.Ops{})
		} else if j.row.State != landing.Landed && !strings.Contains(j.row.Reason, "no space") {
			t.Errorf("%s: %s %q does not name the full disk", name, j.row.State, j.row.Reason)
		}
		w.judge(t, r, j)
		if t.Failed() {
			t.Fatalf("failed at %s", name)
		}
	}
}
