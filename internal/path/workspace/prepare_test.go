package workspace_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"sallyport/internal/base/disk/disktest"
	"sallyport/internal/base/git"
	"sallyport/internal/base/git/gittest"
	"sallyport/internal/base/problem"
	"sallyport/internal/path/workspace"
	wt "sallyport/internal/path/workspace/workspacetest"
)

func TestPreparingTwiceKeepsWhatWasDone(t *testing.T) {
	everyWay(t, func(t *testing.T, m *workspace.Manager) {
		w := prepare(t, m, base)
		wt.Edit(t, w, wt.Write("x", "1"))
		again, err := m.Prepare(gittest.Context(t), w.Spec)
		if err != nil {
			t.Fatal(err)
		}
		opened, err := m.Open(gittest.Context(t), w.Spec)
		if err != nil {
			t.Fatal(err)
		}
		for _, same := range []workspace.Workspace{again, opened} {
			if got := show(walk(t, m, same)); !slices.Equal(got, []string{"x 100644"}) {
				t.Errorf("found %q", got)
			}
		}
		other := w.Spec
		other.Base = git.OID(strings.Repeat("1", 40))
		if _, err := m.Open(gittest.Context(t), other); problem.KindOf(err) != problem.Conflict {
			t.Errorf("another base: %v", err)
		}
	})
}

func TestFreshThrowsAwayAndRemoveLeavesNothing(t *testing.T) {
	everyWay(t, func(t *testing.T, m *workspace.Manager) {
		w := prepare(t, m, base)
		wt.Edit(t, w, wt.Write("x", "1"), wt.Remove("src"), wt.Write("closed/x", "1"), wt.Chmod("closed", 0))
		fresh, err := m.MakeAnew(gittest.Context(t), w.Spec)
		if err != nil {
			t.Fatal(err)
		}
		if got := show(walk(t, m, fresh)); got != nil {
			t.Errorf("found %q in a fresh workspace", got)
		}
		wt.Edit(t, fresh, wt.Exec("deep=$(printf 'd/%.0s' $(seq 400)); mkdir -p $deep; cd $deep; echo >x; chmod 0 ."))
		withDescriptors(t, 350, func() {
			if err := m.Remove(gittest.Context(t), w.Spec.Change); err != nil {
				t.Fatal(err)
			}
		})
		if left, err := os.ReadDir(filepath.Clean(filepath.Join(w.Tree.GitDir, "..", "..", ".."))); err != nil || len(left) > 0 {
			t.Errorf("left: %v %v", left, err)
		}
		if _, err := m.Open(gittest.Context(t), w.Spec); problem.KindOf(err) != problem.NotFound {
			t.Errorf("open after remove: %v", err)
		}
		if err := m.Remove(gittest.Context(t), w.Spec.Change); err != nil {
			t.Errorf("remove twice: %v", err)
		}
	})
}

// withDescriptors runs do while this process may have few files open.
func withDescriptors(t *testing.T, most uint64, do func()) {
	t.Helper()
	var was unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &was); err != nil {
		t.Fatal(err)
	}
	few := was
	few.Cur = most
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &few); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &was); err != nil {
			t.Fatal(err)
		}
	}()
	do()
}

func TestRemoveFollowsNoLink(t *testing.T) {
	everyWay(t, func(t *testing.T, m *workspace.Manager) {
		outside := t.TempDir()
		disktest.Put(t, filepath.Join(outside, "kept"), "", 0o644)
		w := prepare(t, m, base)
		wt.Edit(t, w, wt.Symlink("out", outside), wt.Symlink("deep/out", outside))
		if err := m.Remove(gittest.Context(t), w.Spec.Change); err != nil {
			t.Fatal(err)
		}
		if _, err := os.Stat(filepath.Join(outside, "kept")); err != nil {
			t.Error(err)
		}
	})
}

func TestTheAgentsOwnGitIsCleanAndKnowsTheBranch(t *testing.T) {
	everyWay(t, func(t *testing.T, m *workspace.Manager) {
		w := prepare(t, m, base)
		want := []string{"main", string(w.Spec.Base), "x", "end"}
		script := "git branch --show-current; git rev-parse HEAD; git log --format=%s; git status --porcelain; git remote; echo end"
		if got := strings.Fields(wt.Edit(t, w, wt.Exec(script))); !slices.Equal(got, want) {
			t.Errorf("git says %q, want %q", got, want)
		}
		wt.Edit(t, w, wt.Exec("echo 1 >new; git add new; git commit -qm agent; git status --porcelain"))
		if got := show(walk(t, m, w)); !slices.Equal(got, []string{"new 100644"}) {
			t.Errorf("found %q", got)
		}
	})
}

func TestTheLocksOfAnAgentsGitThatWasKilledGo(t *testing.T) {
	everyWay(t, func(t *testing.T, m *workspace.Manager) {
		w := prepare(t, m, base)
		outside := filepath.Join(t.TempDir(), "theirs.lock")
		wt.Edit(t, w, wt.Exec("touch "+outside+" yarn.lock; cd .git; touch index.lock HEAD.lock refs/heads/main.lock; ln -s "+filepath.Dir(outside)+" refs/out; ln -s "+outside+" refs/tags/x.lock"))
		if err := m.Unlock(w); err != nil {
			t.Fatal(err)
		}
		wt.Edit(t, w, wt.Exec("git add --all && git commit -qm agent"))
		if got := show(walk(t, m, w)); !slices.Equal(got, []string{"yarn.lock 100644"}) {
			t.Errorf("found %q", got)
		}
		if _, err := os.Stat(outside); err != nil {
			t.Errorf("through a link: %v", err)
		}
	})
}

func TestBranchNamesAreNoPaths(t *testing.T) {
	m := workspace.New(workspace.Config{Root: filepath.Join(t.TempDir(), "state")})
	p, head := wt.Project(t, base)
	for _, branch := range []string{"../../../../escape", "a\nb", "", "-x", "a..b", "refs/../x"} {
		w, err := m.MakeAnew(gittest.Context(t), workspace.Spec{Change: "chg-00000001", Project: p, Base: head, Branch: branch, Owner: wt.Self()})
		if err != nil {
			t.Fatal(err)
		}
		data, err := os.ReadFile(filepath.Join(w.Tree.GitDir, "HEAD"))
		if err != nil || strings.TrimSpace(string(data)) != string(head) {
			t.Errorf("branch %q: HEAD is %q, %v", branch, data, err)
		}
	}
}

func TestAProjectThatBorrowsObjectsWorks(t *testing.T) {
	first, _ := wt.Project(t, base)
	top := filepath.Join(t.TempDir(), "clone")
	wt.Git(t, first.Top, "clone", "-q", "--shared", first.Top, top)
	// A path relative to the borrower's objects is what git itself does not follow twice.
	rel, err := filepath.Rel(filepath.Join(top, ".git/objects"), filepath.Join(first.CommonDir, "objects"))
	if err != nil {
		t.Fatal(err)
	}
	disktest.Put(t, filepath.Join(top, ".git/objects/info/alternates"), rel+"\n", 0o644)
	wt.Files(t, top, map[string]string{"own": "1"})
	p, head := wt.Commit(t, top)
	m := workspace.New(workspace.Config{Root: filepath.Join(t.TempDir(), "state")})
	w, err := m.Prepare(gittest.Context(t), workspace.Spec{Change: "chg-00000001", Project: p, Base: head, Branch: "main", Owner: wt.Self()})
	if err != nil {
		t.Fatal(err)
	}
	if len(w.Tree.Objects) != 1 {
		t.Errorf("objects are %v", w.Tree.Objects)
	}
	if got := wt.Edit(t, w, wt.Exec("git log --format=%s; git status --porcelain")); strings.TrimSpace(got) != "x\nx" {
		t.Errorf("git says %q", got)
	}
}

func TestPowerLostWhilePreparingLeavesNothingHalf(t *testing.T) {
	for _, strategy := range []workspace.Strategy{workspace.Overlay, workspace.Copy} {
		t.Run(string(strategy), func(t *testing.T) {
			t.Parallel() // each waits for the disk most of the time
			p, head := wt.Project(t, base)
			made := filepath.Join(t.TempDir(), "state")
			if _, err := workspace.New(workspace.Config{Root: made}).EnsureRepository(gittest.Context(t), p, head); err != nil {
				t.Fatal(err)
			}
			disktest.Everywhere(t, func(t *testing.T, c *disktest.Crash) {
				root := filepath.Join(t.TempDir(), "state")
				if strategy == workspace.Copy { // one loop over how the host's repository is made is enough
					if err := os.CopyFS(root, os.DirFS(made)); err != nil {
						t.Fatal(err)
					}
				}
				spec := workspace.Spec{Change: "chg-00000001", Project: p, Base: head, Branch: "main", Owner: wt.Self()}
				weak := workspace.New(workspace.Config{Root: root, Ops: c.Ops(), Strategy: strategy})
				_, err := disktest.Run(func() error {
					if _, err := weak.Prepare(gittest.Context(t), spec); err != nil {
						return err
					}
					if _, err := weak.MakeAnew(gittest.Context(t), spec); err != nil {
						return err
					}
					if _, err := weak.Materialize(gittest.Context(t), spec, head); err != nil {
						return err
					}
					return weak.Remove(gittest.Context(t), spec.Change)
				})
				if err != nil {
					t.Fatal(err)
				}
				gittest.Restart(t)
				m := workspace.New(workspace.Config{Root: root, Strategy: strategy})
				wt.ClearLeft(t, m)
				for _, where := range []string{"*/.new-*", "repos/*.git/bases/views/.new-*", "shown/*"} {
					if left, _ := filepath.Glob(filepath.Join(root, where)); left != nil {
						t.Errorf("left: %q", left)
					}
				}
				w, err := m.Prepare(gittest.Context(t), spec)
				if err != nil {
					t.Fatal(err)
				}
				if got := show(walk(t, m, w)); got != nil {
					t.Errorf("found %q", got)
				}
				for name := range base {
					if _, err := os.Lstat(filepath.Join(layerTree(w, root), name)); err != nil {
						t.Error(err)
					}
				}
			})
		})
	}
}

func layerTree(w workspace.Workspace, root string) string {
	if w.Strategy == workspace.Overlay {
		return w.Tree.Layers[0]
	}
	return w.Tree.Dir
}
