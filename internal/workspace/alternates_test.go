package workspace_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sallyport/internal/problem"
	"sallyport/internal/workspace"
	wt "sallyport/internal/workspace/workspacetest"
)

func TestWhatIsBorrowedIsAFolderOfObjectsAndNothingElse(t *testing.T) {
	home := t.TempDir()
	if err := os.MkdirAll(filepath.Join(home, ".ssh"), 0o700); err != nil {
		t.Fatal(err)
	}
	other, _ := wt.Project(t, base)
	linked := filepath.Join(t.TempDir(), "linked")
	if err := os.Symlink(home, linked); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct{ folder, names string }{
		"another repository's objects": {filepath.Join(other.CommonDir, "objects"), ""},
		"a home":                       {home, ".ssh"},
		"a link to a home":             {linked, ".ssh"},
		"a whole repository":           {other.Top, "no part of a folder of objects"},
	} {
		t.Run(name, func(t *testing.T) {
			p, head := wt.Project(t, base)
			wt.Files(t, p.Top, map[string]string{".git/objects/info/alternates": c.folder + "\n"})
			m := workspace.New(workspace.Config{Root: filepath.Join(t.TempDir(), "state")})
			_, err := m.Prepare(t.Context(), workspace.Spec{Change: change, Project: p, Base: head, Owner: wt.Self()})
			if c.names == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			if problem.KindOf(err) != problem.Refused || !strings.Contains(err.Error(), c.names) {
				t.Errorf("error is %v", err)
			}
		})
	}
}

func TestObjectsThatTheirOwnerCannotReachAreNotShown(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can reach what an owner cannot: needs root")
	}
	secret, _ := wt.Project(t, base)
	if err := os.Chmod(secret.Top, 0o700); err != nil {
		t.Fatal(err)
	}
	p, head := wt.Project(t, base)
	objects := filepath.Join(p.CommonDir, "objects")
	if err := os.RemoveAll(objects); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join(secret.CommonDir, "objects"), objects); err != nil {
		t.Fatal(err)
	}
	p.UID, p.GID = 65534, 65534
	m := workspace.New(workspace.Config{Root: filepath.Join(t.TempDir(), "state")})
	_, err := m.Prepare(t.Context(), workspace.Spec{Change: change, Project: p, Base: head, Owner: wt.Self()})
	if problem.KindOf(err) != problem.Refused || !strings.Contains(err.Error(), "closed to uid 65534") {
		t.Errorf("error is %v", err)
	}
}

func TestAnIndexBeyondReasonIsRefused(t *testing.T) {
	p, head := wt.Project(t, base)
	if err := os.Truncate(filepath.Join(p.GitDir, "index"), 1<<40); err != nil {
		t.Skipf("this file system has no sparse files of 1 TiB: %v", err)
	}
	m := workspace.New(workspace.Config{Root: filepath.Join(t.TempDir(), "state")})
	if _, err := m.Dirty(t.Context(), p, head); problem.KindOf(err) != problem.Refused || !strings.Contains(err.Error(), "index") {
		t.Errorf("error is %v", err)
	}
}

func TestWhatIsBorrowedBorrowsNothingThatItsOwnerDoesNotReach(t *testing.T) {
	for depth, fits := range map[int]bool{2: true, 9: false} { // git itself stops at the sixth
		p, head := wt.Project(t, base)
		at := p
		for range depth {
			next, _ := wt.Project(t, base)
			wt.Files(t, at.Top, map[string]string{".git/objects/info/alternates": filepath.Join(next.CommonDir, "objects") + "\n"})
			at = next
		}
		m := workspace.New(workspace.Config{Root: filepath.Join(t.TempDir(), "state")})
		_, err := m.Prepare(t.Context(), workspace.Spec{Change: change, Project: p, Base: head, Owner: wt.Self()})
		if fits != (err == nil) || !fits && (problem.KindOf(err) != problem.Refused || !strings.Contains(err.Error(), "it borrows from")) {
			t.Errorf("%d repositories behind one another: %v", depth, err)
		}
	}
}
