package landing_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"sallyport/internal/base/disk"
	"sallyport/internal/base/disk/disktest"
	"sallyport/internal/base/git/gittest"
	"sallyport/internal/base/problem"
	"sallyport/internal/path/landing"
)

// alone is plain with another branch checked out.
func alone(t *testing.T) (repo, landing.Order) {
	t.Helper()
	r, o := plain(t)
	gitIn(t, r.Top, "", "switch", "-q", "conflicting")
	o.WorkTree = false
	return r, o
}

// TestALockOfThePersonsIsNamedAtTheRequestAndAtTheLanding and stays: git leaves an empty one where it is killed.
func TestALockOfThePersonsIsNamedAtTheRequestAndAtTheLanding(t *testing.T) {
	for name, make := range map[string]func(*testing.T) (repo, landing.Order){"checked out": plain, "alone": alone} {
		t.Run(name, func(t *testing.T) {
			r, o := make(t)
			l := &landing.Lander{Host: beside, Wait: 30 * time.Millisecond}
			computed := compute(t, l, o)
			lock := filepath.Join(r.CommonDir, "refs/heads/main.lock")
			put(t, lock, "", 0o644)
			_, request := l.Inspect(gittest.Context(t), r.Project, "main")
			_, compute := l.Compute(gittest.Context(t), o)
			_, land := l.Land(gittest.Context(t), computed, (&journal{}).steps())
			for _, err := range []error{request, compute, land} {
				if p := problem.Of(err); !errors.Is(err, landing.ErrOddState) || !strings.Contains(p.Text, lock) || p.Next != "rm -i "+lock {
					t.Errorf("%v", err)
				}
			}
			if st, err := os.Stat(lock); err != nil || st.Size() != 0 {
				t.Errorf("their lock: %v", err)
			}
		})
	}
}

// TestALockOfThePersonsThatComesLastIsWaitedForAndThenLeftInPeace: their git takes the branch when ours is about to.
func TestALockOfThePersonsThatComesLastIsWaitedForAndThenLeftInPeace(t *testing.T) {
	r, o := plain(t)
	before := look(t, r.Top)
	lock := filepath.Join(r.CommonDir, "refs/heads/main.lock")
	j := &journal{}
	l := &landing.Lander{Host: beside, Ops: meddle("ref:lock", false, func() { put(t, lock, "", 0o644) }), Wait: 30 * time.Millisecond}
	lands(t, l, o, j)
	if j.row.State != landing.Undone || !strings.Contains(j.row.Reason, "main.lock") {
		t.Errorf("%s %q", j.row.State, j.row.Reason)
	}
	if err := os.Remove(lock); err != nil {
		t.Error("their lock was removed")
	}
	unchanged(t, r, before)
	tidy(t, r)
}

// TestABranchThatMovesAtTheLastMomentIsComputedAnew: nothing is taken back, for nothing was done, and the
// second try lands on top.
func TestABranchThatMovesAtTheLastMomentIsComputedAnew(t *testing.T) {
	for name, make := range map[string]func(*testing.T) (repo, landing.Order){"checked out": plain, "alone": alone} {
		for _, op := range []string{"git:import", "desk:commit", "ref:lock"} {
			t.Run(name+" "+op, func(t *testing.T) {
				r, o := make(t)
				var theirs string
				l := &landing.Lander{Host: beside, Ops: meddle(op, true, func() {
					theirs = gitIn(t, r.Top, "", "commit-tree", "-p", "main", "-m", "theirs", "main^{tree}")
					if op == "ref:lock" { // their git was at it already
						put(t, filepath.Join(r.CommonDir, "refs/heads/main"), theirs+"\n", 0o644)
					} else {
						gitIn(t, r.Top, "", "update-ref", "refs/heads/main", theirs)
					}
				})}
				computed := compute(t, l, o)
				j := &journal{}
				if done, err := l.Land(gittest.Context(t), computed, j.steps()); !errors.Is(err, landing.ErrStale) || done.State != "" || j.open() {
					t.Fatalf("%s %v, row %v; want stale, and no open row", done.State, err, j.row)
				}
				tidy(t, r)
				if refs := refsBeside(t, r); refs != "" {
					t.Errorf("the try has left %s", refs)
				}
				if at := gitIn(t, r.Top, "", "rev-parse", "main"); at != theirs {
					t.Errorf("the branch is at %s", at)
				}
				o.Landing += "b"
				if done := r.land(t, o); string(done.Head) != theirs {
					t.Errorf("landed on %s", done.Head)
				}
			})
		}
	}
}

// TestABranchIsMovedAsGitMovesIt: packed or loose, deep below folders that are missing or stand empty in its
// place, with the reflogs that the configuration asks for, in files that are the owner's.
func TestABranchIsMovedAsGitMovesIt(t *testing.T) {
	for _, c := range []struct {
		name, branch string
		config       string // of core.logAllRefUpdates
		empty        bool   // a folder of a branch that is gone stands in its place
		lines        int    // of the reflog
	}{
		{name: "packed", branch: "packed", lines: 1},
		{name: "deep", branch: "team/deep/er", lines: 1},
		{name: "an empty folder in its place", branch: "team/deep", empty: true, lines: 1},
		{name: "no reflogs", branch: "quiet", config: "false"},
		{name: "always", branch: "loud", config: "always", lines: 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, o := plain(t)
			if c.config != "" {
				gitIn(t, r.Top, "", "config", "core.logAllRefUpdates", c.config)
			}
			gitIn(t, r.Top, "", "-c", "core.logAllRefUpdates=false", "branch", c.branch)
			gitIn(t, r.Top, "", "pack-refs", "--all", "--prune")
			if c.empty {
				for _, in := range []string{"refs/heads", "logs/refs/heads"} {
					if err := os.MkdirAll(filepath.Join(r.CommonDir, in, c.branch), 0o755); err != nil {
						t.Fatal(err)
					}
				}
			}
			o.Branch, o.WorkTree = c.branch, false
			done := r.land(t, o)
			if at := gitIn(t, r.Top, "", "rev-parse", "refs/heads/"+c.branch); at != string(done.NewCommit) {
				t.Errorf("%s is at %s", c.branch, at)
			}
			raw, _ := os.ReadFile(filepath.Join(r.CommonDir, "logs/refs/heads", c.branch))
			if n := strings.Count(string(raw), "\n"); n != c.lines || n > 0 && !strings.HasSuffix(string(raw), "\tsallyport: land chg-test0001\n") {
				t.Errorf("reflog: %q", raw)
			}
			if out, err := tryGit(r.Top, "", "fsck", "--strict"); err != nil {
				t.Errorf("fsck: %s", out)
			}
			gitIn(t, r.Top, "", "branch", "-qD", c.branch)
		})
	}
}

// TestReflogsAreKeptWhereTheConfigurationSaysNothing, as git keeps them in every work tree, whatever repository it is linked to.
func TestReflogsAreKeptWhereTheConfigurationSaysNothing(t *testing.T) {
	for name, isBare := range map[string]string{"of a repository with files": "false", "of a bare repository": "true"} {
		t.Run(name, func(t *testing.T) {
			main := testRepo(t, map[string]blob{"a": text("1")})
			top := filepath.Join(t.TempDir(), "linked")
			gitIn(t, main.Top, "", "switch", "-qc", "away")
			gitIn(t, main.Top, "", "worktree", "add", "-q", top, "main")
			gitIn(t, main.Top, "", "config", "--unset", "core.logAllRefUpdates")
			gitIn(t, main.Top, "", "config", "core.bare", isBare)
			r := openRepo(t, top)
			logs := []string{filepath.Join(r.CommonDir, "logs/refs/heads/main"), filepath.Join(r.GitDir, "logs/HEAD")}
			order := r.order(t, map[string]blob{"a": text("2")})
			for _, does := range []struct {
				what string
				do   func()
			}{
				{"commit: theirs", func() { gitIn(t, top, "", "commit", "-q", "--allow-empty", "-m", "theirs") }}, // what their git does
				{"sallyport: land chg-test0001", func() { r.land(t, order) }},
			} {
				for _, log := range logs {
					if err := os.RemoveAll(log); err != nil {
						t.Fatal(err)
					}
				}
				does.do()
				for _, log := range logs {
					if raw, err := os.ReadFile(log); strings.Count(string(raw), "\n") != 1 || !strings.HasSuffix(string(raw), "\t"+does.what+"\n") {
						t.Errorf("%s: %q, %v, want the one line %q", log, raw, err, does.what)
					}
				}
			}
		})
	}
}

// TestABranchThatIsToBeMadeIsMadeByItsLanding, and by nothing else: it is there with what lands, or not at all.
func TestABranchThatIsToBeMadeIsMadeByItsLanding(t *testing.T) {
	order := func(t *testing.T) (repo, landing.Order) {
		r, o := plain(t)
		o.Branch, o.WorkTree, o.New = "team/new", false, true
		return r, o
	}
	there := func(r repo) string {
		at, _ := tryGit(r.Top, "", "rev-parse", "-q", "--verify", "refs/heads/team/new")
		return strings.TrimSpace(at)
	}
	t.Run("it lands", func(t *testing.T) {
		r, o := order(t)
		done := r.land(t, o)
		if at := there(r); at != string(done.NewCommit) || !done.New || gitIn(t, r.Top, "", "rev-parse", at+"^") != string(o.Base) {
			t.Errorf("it is at %q, and %+v landed", at, done)
		}
		if raw, _ := os.ReadFile(filepath.Join(r.CommonDir, "logs/refs/heads/team/new")); !strings.HasPrefix(string(raw), strings.Repeat("0", 40)+" "+string(done.NewCommit)) {
			t.Errorf("its reflog: %q", raw)
		}
	})
	for name, packs := range map[string][]string{"loose": nil, "packed": {"pack-refs", "--all", "--prune"}, "both": {"pack-refs", "--all", "--no-prune"}} {
		t.Run("taken back when it is "+name, func(t *testing.T) {
			r, o := order(t)
			gitIn(t, r.Top, "", "tag", "-a", "-m", "peeled", "team")
			before := look(t, r.Top)
			j := &journal{}
			l := &landing.Lander{Host: beside, Ops: failingAfterTheBranch(&disktest.Crash{At: -1}, func() {
				if packs != nil {
					gitIn(t, r.Top, "", packs...)
				}
			})}
			lands(t, l, o, j)
			if j.row.State != landing.Undone || there(r) != "" {
				t.Errorf("%s %q, it is at %q", j.row.State, j.row.Reason, there(r))
			}
			unchanged(t, r, before)
			if out, err := tryGit(r.Top, "", "fsck", "--strict"); err != nil {
				t.Errorf("fsck: %s", out)
			}
			for _, gone := range []string{"refs/heads/team", "logs/refs/heads/team"} {
				if _, err := os.Stat(filepath.Join(r.CommonDir, gone)); err == nil {
					t.Errorf("%s is left", gone)
				}
			}
		})
	}
	t.Run("a person packs their branches when it is to be taken back", func(t *testing.T) {
		r, o := order(t)
		lock := filepath.Join(r.CommonDir, "packed-refs.lock")
		j := &journal{}
		l := &landing.Lander{Host: beside, Ops: failingAfterTheBranch(&disktest.Crash{At: -1}, func() { put(t, lock, "", 0o644) }), Wait: 30 * time.Millisecond}
		lands(t, l, o, j)
		if j.row.State != landing.Stranded || !strings.Contains(j.row.Reason, lock) {
			t.Errorf("%s %q", j.row.State, j.row.Reason)
		}
		if err := os.Remove(lock); err != nil {
			t.Error("their lock was removed")
		}
		recoverAll(t, j, disk.Ops{})
		if left := residue(t, r); len(left) > 0 || j.row.State != landing.Landed {
			t.Errorf("%s, left behind: %q", j.row.State, left)
		}
	})
	for name, at := range map[string]string{"git:import": "begun", "ref:lock": "locked"} {
		t.Run("a person makes it when ours has "+at, func(t *testing.T) {
			r, o := order(t)
			l := &landing.Lander{Host: beside, Ops: meddle(name, true, func() {
				put(t, filepath.Join(r.CommonDir, "refs/heads/team/new"), string(o.Base)+"\n", 0o644)
			})}
			if err := attempt(t, l, o, &journal{}); !errors.Is(err, landing.ErrStale) || there(r) != string(o.Base) {
				t.Errorf("%v, it is at %q", err, there(r))
			}
			o.Landing += "b"
			if done := r.land(t, o); done.New || there(r) != string(done.NewCommit) {
				t.Errorf("%+v, it is at %q", done, there(r))
			}
		})
	}
	t.Run("another branch is in its way", func(t *testing.T) {
		r, o := order(t)
		gitIn(t, r.Top, "", "branch", "team")
		if err := attempt(t, &landing.Lander{Host: beside}, o, &journal{}); !errors.Is(err, landing.ErrBranch) || !strings.Contains(err.Error(), "no branch below it") {
			t.Errorf("%v", err)
		}
	})
}

// TestAReflogThatIsNoFileIsNotWrittenTo: whoever may write to the git directory could have root write into a pipe, or wait at one.
func TestAReflogThatIsNoFileIsNotWrittenTo(t *testing.T) {
	r, o := plain(t)
	log := filepath.Join(r.CommonDir, "logs/refs/heads/main")
	if err := errors.Join(os.Remove(log), unix.Mkfifo(log, 0o666)); err != nil {
		t.Fatal(err)
	}
	end, err := os.OpenFile(log, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer end.Close()
	before := look(t, r.Top)
	j := &journal{}
	lands(t, &landing.Lander{Host: beside}, o, j)
	if j.row.State != landing.Undone || !strings.Contains(j.row.Reason, "is no file") {
		t.Errorf("%s %q", j.row.State, j.row.Reason)
	}
	unchanged(t, r, before)
}
