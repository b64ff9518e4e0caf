package landing_test

import (
	"errors"
	"os"
	"path/filepath"
	"runtime/debug"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"sallyport/internal/base/disk/disktest"
	"sallyport/internal/base/git/gittest"
	"sallyport/internal/path/landing"
)

// TestNoLandingLeavesAFileOfARepositoryOpen: the collector of garbage would close some of them, at some time. It rests meanwhile.
func TestNoLandingLeavesAFileOfARepositoryOpen(t *testing.T) {
	percent := debug.SetGCPercent(-1)
	defer debug.SetGCPercent(percent)
	l := func() *landing.Lander { return &landing.Lander{Host: beside, Wait: 30 * time.Millisecond} }
	for name, c := range map[string]func(t *testing.T) (r repo, do func()){
		"it lands and goes back": func(t *testing.T) (repo, func()) {
			r, o := rich(t, t.TempDir())
			return r, func() { r.land(t, r.back(t, r.land(t, o))) }
		},
		"another file system": func(t *testing.T) (repo, func()) {
			r, o := separate(t)
			return r, func() { r.land(t, r.back(t, r.land(t, o))) }
		},
		"a pack": func(t *testing.T) (repo, func()) {
			r := testRepo(t, map[string]blob{"a": text("1")})
			return r, func() { r.land(t, r.order(t, hundred())) }
		},
		"a branch alone": func(t *testing.T) (repo, func()) {
			r, o := plain(t)
			gitIn(t, r.Top, "", "-c", "core.logAllRefUpdates=false", "branch", "team/deep")
			gitIn(t, r.Top, "", "pack-refs", "--all", "--prune")
			o.Branch, o.WorkTree = "team/deep", false
			return r, func() { r.land(t, o) }
		},
		"a linked work tree": func(t *testing.T) (repo, func()) {
			main := testRepo(t, map[string]blob{"a": text("1")})
			top := filepath.Join(t.TempDir(), "linked")
			gitIn(t, main.Top, "", "switch", "-qc", "away")
			gitIn(t, main.Top, "", "worktree", "add", "-q", top, "main")
			r := openRepo(t, top)
			return r, func() { r.land(t, r.order(t, map[string]blob{"a": text("2"), "d/b": text("3")})) }
		},
		"a new branch that is taken back": func(t *testing.T) (repo, func()) {
			r, o := plain(t)
			o.Branch, o.WorkTree, o.New = "team/new", false, true
			return r, func() {
				j := &journal{}
				lander := &landing.Lander{Host: beside, Ops: failingAfterTheBranch(&disktest.Crash{At: -1}, func() { gitIn(t, r.Top, "", "pack-refs", "--all", "--no-prune") })}
				if err := attempt(t, lander, o, j); err != nil || j.row.State != landing.Undone {
					t.Errorf("%v, %+v", err, j.row)
				}
			}
		},
		"an edit meanwhile": func(t *testing.T) (repo, func()) {
			r, o := rich(t, t.TempDir())
			return r, func() {
				j := &journal{}
				lander := &landing.Lander{Host: beside, Ops: meddle("tree:replace", true, func() { overwrite("mine")(filepath.Join(r.Top, "dir/-rf")) })}
				if err := attempt(t, lander, o, j); err != nil || j.row.State != landing.Undone {
					t.Errorf("%v, %+v", err, j.row)
				}
			}
		},
		"a late edit that is kept": func(t *testing.T) (repo, func()) {
			r, o := plain(t)
			return r, func() {
				lander := &landing.Lander{Host: beside, Ops: meddle("index:write", false, func() {
					slots, _ := filepath.Glob(filepath.Join(r.GitDir, "sallyport-lnd-*/slots/*"))
					for _, at := range slots {
						if raw, _ := os.ReadFile(at); string(raw) == "a\n" {
							overwrite("late")(at)
						}
					}
				})}
				if err := attempt(t, lander, o, &journal{}); err != nil {
					t.Error(err)
				}
			}
		},
		"a branch that moved": func(t *testing.T) (repo, func()) {
			r, o := plain(t)
			theirs := gitIn(t, r.Top, "", "commit-tree", "-p", "main", "-m", "theirs", "main^{tree}")
			return r, func() {
				lander := &landing.Lander{Host: beside, Ops: meddle("desk:commit", true, func() { gitIn(t, r.Top, "", "update-ref", "refs/heads/main", theirs) })}
				if err := attempt(t, lander, o, &journal{}); !errors.Is(err, landing.ErrStale) {
					t.Error(err)
				}
			}
		},
		"recovered forwards": func(t *testing.T) (repo, func()) {
			r, o := plain(t)
			j := stopped(t, o, "tree:replace")
			return r, func() { recoverAll(t, j, (&disktest.Crash{At: -1}).Ops()) }
		},
		"recovered backwards": func(t *testing.T) (repo, func()) {
			r, o := plain(t)
			j := stopped(t, o, "tree:replace")
			put(t, filepath.Join(r.Top, "new/n"), "mine", 0o644)
			return r, func() { recoverAll(t, j, (&disktest.Crash{At: -1}).Ops()) }
		},
		"cleared": func(t *testing.T) (repo, func()) {
			r, o := plain(t)
			j := stopped(t, o, "tree:replace")
			return r, func() {
				if _, err := l().Clear(gittest.Context(t), *j.row); err != nil {
					t.Error(err)
				}
			}
		},
		"what git left is cleared": func(t *testing.T) (repo, func()) {
			r := testRepo(t, map[string]blob{"a": text("1")})
			o := r.order(t, hundred())
			if crashed, err := disktest.Run(func() error {
				return attempt(t, &landing.Lander{Host: beside, Ops: stopAt("git:import", true)}, o, &journal{})
			}); !crashed || err != nil {
				t.Fatal(crashed, err)
			}
			return r, func() {
				if err := l().ClearAside(gittest.Context(t), r.Project); err != nil {
					t.Error(err)
				}
			}
		},
		"somebody holds it": func(t *testing.T) (repo, func()) {
			r, o := plain(t)
			computed := compute(t, l(), o)
			return r, func() {
				folder, err := os.Open(r.CommonDir)
				if err != nil {
					t.Fatal(err)
				}
				defer folder.Close()
				if err := unix.Flock(int(folder.Fd()), unix.LOCK_EX); err != nil {
					t.Fatal(err)
				}
				if _, err := l().Land(gittest.Context(t), computed, (&journal{}).steps()); !errors.Is(err, landing.ErrBusy) {
					t.Error(err)
				}
			}
		},
		"refused": func(t *testing.T) (repo, func()) {
			r, o := plain(t)
			computed := compute(t, l(), o)
			put(t, filepath.Join(r.Top, "d2f/mine"), "mine", 0o644)
			return r, func() {
				if _, err := l().Compute(gittest.Context(t), o); !errors.Is(err, landing.ErrDirty) {
					t.Error(err)
				}
				if _, err := l().Land(gittest.Context(t), computed, (&journal{}).steps()); !errors.Is(err, landing.ErrDirty) {
					t.Error(err)
				}
				if _, err := l().Inspect(gittest.Context(t), r.Project, "main"); err != nil {
					t.Error(err)
				}
			}
		},
		"a folder of the repository is away": func(t *testing.T) (repo, func()) {
			r, o := plain(t)
			o.Project.GitDir += "-away"
			return r, func() {
				if _, err := l().Compute(gittest.Context(t), o); err == nil {
					t.Error("it was computed")
				}
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			r, do := c(t)
			before := openBelow(t, r) // what a crash left
			do()
			gittest.Restart(t)
			for at, n := range openBelow(t, r) {
				if n > before[at] {
					t.Errorf("%s is open %d times, and was %d times", at, n, before[at])
				}
			}
		})
	}
}
