package workspace_test

import (
	"path/filepath"
	"strings"
	"testing"

	"sallyport/internal/base/disk/disktest"
	"sallyport/internal/base/git/gittest"
	"sallyport/internal/path/workspace"
	wt "sallyport/internal/path/workspace/workspacetest"
)

func TestWhatAWorkspaceTakesIsAllThatItsAgentWrote(t *testing.T) {
	for name, u := range map[string]workspace.Usage{
		"plenty": {Free: 40 << 30, All: 100 << 30}, "a small disk": {Free: 1 << 20, All: 4 << 20}, "a gigabyte is enough": {Free: 1<<30 + 1, All: 1 << 40},
	} {
		if u.Low() {
			t.Errorf("%s is called low", name)
		}
	}
	if !(workspace.Usage{Free: 1 << 29, All: 100 << 30}).Low() || !(workspace.Usage{Free: 1, All: 4 << 20}).Low() {
		t.Error("hardly anything is called enough")
	}
	everyWay(t, func(t *testing.T, m *workspace.Manager) {
		w := prepare(t, m, base)
		measure := func() workspace.Usage {
			u, err := m.Usage(gittest.Context(t), w, walk(t, m, w))
			if err != nil || u.Free <= 0 || u.All < u.Free {
				t.Fatalf("%+v, %v", u, err)
			}
			return u
		}
		before := measure()
		disktest.Put(t, filepath.Join(w.Tree.GitDir, "hidden"), strings.Repeat("x", 3<<20), 0o600)
		if now := measure(); now.Held-before.Held < 3<<20 {
			t.Errorf("3 MiB in the agent's own git count as %d", now.Held-before.Held)
		}
		wt.Edit(t, w, wt.Write("big", strings.Repeat("x", 8<<20)))
		if now := measure(); now.Held-before.Held < 8<<20 {
			t.Errorf("8 MiB in the tree count as %d", now.Held-before.Held)
		}
	})
}
