package workspace_test

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"sallyport/internal/base/disk/disktest"
	"sallyport/internal/base/git"
	"sallyport/internal/base/git/gittest"
	"sallyport/internal/path/workspace"
	wt "sallyport/internal/path/workspace/workspacetest"
)

// trouble is work that takes every kind of write to take back.
var trouble = []wt.Op{
	wt.Write("src/a.go", "spoiled\n"), wt.Remove("docs"), wt.Symlink("docs", "src"), wt.Remove("README"), wt.Write("README/x/y", "1"),
	wt.Write("new/z", "1"), wt.Chmod("new", 0), wt.Remove("link"), wt.Fifo("link"), wt.Chmod("run.sh", 0o644), wt.Chmod("src/deep", 0o500),
}

func TestARestoreThatLosesPowerAnywhereIsFinishedByTheNext(t *testing.T) {
	for _, strategy := range []workspace.Strategy{workspace.Overlay, workspace.Copy} {
		t.Run(string(strategy), func(t *testing.T) {
			t.Parallel() // each waits for the disk most of the time
			if strategy == workspace.Copy && testing.Short() {
				t.Skip("SKIPPED: -short: the loop runs on an overlay only")
			}
			if strategy == workspace.Overlay {
				wt.CanOverlay(t)
			}
			p, head := wt.Project(t, base)
			seen := disktest.Everywhere(t, func(t *testing.T, c *disktest.Crash) {
				root := filepath.Join(t.TempDir(), "state")
				sound := workspace.New(workspace.Config{Root: root, Strategy: strategy})
				s := openOn(t, sound, workspace.Spec{Change: "chg-00000001", Project: p, Base: head, Branch: "main", Owner: wt.Self()})
				s.live.Edit(t, wt.Write("src/a.go", "good\n"), wt.Write("kept/b", "\x00"), wt.Remove("src/deep/d.go"))
				state := s.keep(t)
				s.live.Edit(t, trouble...)
				weak := workspace.New(workspace.Config{Root: root, Strategy: strategy, Ops: c.Ops()})
				if _, err := disktest.Run(func() error { return weak.Restore(gittest.Context(t), s.w, s.live.View, s.host, state, nil) }); err != nil {
					t.Fatal(err)
				}
				gittest.Restart(t)
				s.restore(t, state)
				s.exactly(t, state)
			})
			for _, op := range []string{"restore:open", "restore:write", "restore:remove", "restore:folder", "restore:prune", "restore:compare", "restore:prove"} {
				if !slices.Contains(seen, op) {
					t.Errorf("no %s among %q", op, seen)
				}
			}
		})
	}
}

func TestARenewalThatLosesPowerAnywhereLeavesTheOldOrTheNew(t *testing.T) {
	for _, strategy := range []workspace.Strategy{workspace.Overlay, workspace.Copy} {
		t.Run(string(strategy), func(t *testing.T) {
			t.Parallel() // each waits for the disk most of the time
			if strategy == workspace.Copy && testing.Short() {
				t.Skip("SKIPPED: -short: the loop runs on an overlay only")
			}
			if strategy == workspace.Overlay {
				wt.CanOverlay(t)
			}
			p, head := wt.Project(t, base)
			ends := map[string]int{}
			seen := disktest.Everywhere(t, func(t *testing.T, c *disktest.Crash) {
				root := filepath.Join(t.TempDir(), "state")
				sound := workspace.New(workspace.Config{Root: root, Strategy: strategy})
				spec := workspace.Spec{Change: "chg-00000001", Project: p, Base: head, Branch: "main", Owner: wt.Self()}
				s := openOn(t, sound, spec)
				s.live.Edit(t, days[2][:4]...)
				s.live.Edit(t, wt.Remove("docs"), wt.Symlink("docs", "src"), wt.Chmod("run.sh", 0o644))
				next := s.keep(t)
				s.live.Try(t, "", trouble...)
				old := s.keep(t)
				s.live.Close()
				weak := workspace.New(workspace.Config{Root: root, Strategy: strategy, Ops: c.Ops()})
				if _, err := disktest.Run(func() error { _, err := weak.Renew(gittest.Context(t), spec, s.host, next); return err }); err != nil {
					t.Fatal(err)
				}
				gittest.Restart(t)
				wt.ClearLeft(t, sound)
				var err error
				if s.w, err = sound.Open(gittest.Context(t), spec); err != nil {
					t.Fatal(err)
				}
				end := s.keep(t)
				for name, state := range map[string]git.OID{"old": old, "new": next} {
					if edits, err := s.host.Edits(gittest.Context(t), state, end); err != nil {
						t.Fatal(err)
					} else if len(edits) == 0 {
						ends[name]++
						return
					}
				}
				t.Error("neither the old workspace nor the new one")
			})
			if ends["old"] == 0 || ends["new"] < 2 {
				t.Errorf("ends %v over %q", ends, seen)
			}
		})
	}
}

func TestARenewedWorkspaceIsTheCommitAndNothingOfTheOld(t *testing.T) {
	everyWay(t, func(t *testing.T, m *workspace.Manager) {
		s := open(t, m, base)
		states := []git.OID{s.keep(t)}
		for _, day := range days {
			s.live.Edit(t, day...)
			states = append(states, s.keep(t))
		}
		s.live.Edit(t, wt.Write(".git/mine", "the old one's"))
		for i, to := range states {
			s.live.Close()
			w, err := m.Renew(gittest.Context(t), s.w.Spec, s.host, to)
			if err != nil {
				t.Fatalf("state %d: %v", i, err)
			}
			s.w, s.live = w, wt.Show(t, w)
			s.exactly(t, to)
			if _, err := os.Stat(filepath.Join(w.Tree.GitDir, "mine")); !os.IsNotExist(err) {
				t.Errorf("the old one's git is there: %v", err)
			}
			// What is done on it is found, and can be taken back.
			s.live.Try(t, "", trouble...)
			s.restore(t, to)
			s.exactly(t, to)
			if t.Failed() {
				t.Fatalf("at state %d", i)
			}
		}
	})
}
