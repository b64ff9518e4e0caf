package workspace_test

import (
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"sallyport/internal/git"
	"sallyport/internal/workspace"
	wt "sallyport/internal/workspace/workspacetest"
)

// studio is a workspace that is shown, and the states that it was in.
type studio struct {
	m    *workspace.Manager
	w    workspace.Workspace
	host git.Dir
	live *wt.Live
	kept int
}

func open(t *testing.T, m *workspace.Manager, files map[string]string) *studio {
	t.Helper()
	s := &studio{m: m, w: prepare(t, m, files)}
	t.Cleanup(func() { // an ordinary user's t.TempDir does not open closed folders
		if err := m.Remove(t.Context(), s.w.Spec.Change); err != nil && t.Context().Err() == nil {
			t.Error(err)
		}
	})
	var err error
	if s.host, err = m.Repository(t.Context(), s.w.Spec.Project); err != nil {
		t.Fatal(err)
	}
	s.live = wt.Show(t, s.w)
	return s
}

// keep makes a commit of what is in the workspace, as a checkpoint does.
func (s *studio) keep(t *testing.T) git.OID {
	t.Helper()
	reader, err := s.m.Reader(s.w)
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	s.kept++
	in := git.Import{
		Ref: fmt.Sprintf("refs/sallyport/%s/test/%d", s.w.Spec.Change, s.kept), From: s.w.Spec.Base, Parents: []git.OID{s.w.Spec.Base},
		Message: "state\n", Author: git.Signature{Name: "n", Email: "e", At: time.Unix(1, 0)}, Committer: git.Signature{Name: "n", Email: "e", At: time.Unix(1, 0)},
	}
	for _, f := range walk(t, s.m, s.w).Changes {
		w := git.Write{Path: f.Path, Mode: f.Mode}
		switch {
		case strings.Contains("/"+strings.ToLower(f.Path)+"/", "/.git/") || f.Fact.Unreadable != "":
			continue
		case f.Mode == git.Symlink:
			w.Data = workspace.Text(f.Fact.LinkTarget)
		case f.Mode != "":
			w.Data = func() (io.ReadCloser, int64, error) { return reader.Open(f.Path) }
		}
		in.Writes = append(in.Writes, w)
	}
	made, err := s.host.Import(t.Context(), "test:import", in)
	if err != nil {
		t.Fatal(err)
	}
	return made.OID
}

func (s *studio) restore(t *testing.T, to git.OID, only ...string) {
	t.Helper()
	if err := s.m.Restore(t.Context(), s.w, s.live.View, s.host, to, only); err != nil {
		t.Fatal(err)
	}
}

// sees returns what the sandbox sees: path → mode and bytes.
func (s *studio) sees(t *testing.T) map[string]string {
	t.Helper()
	copied := filepath.Join(t.TempDir(), "copy")
	s.live.Try(t, copied)
	return filesIn(t, copied)
}

// filesIn reads a folder: path → mode and bytes of files and links.
func filesIn(t *testing.T, folder string) map[string]string {
	t.Helper()
	out := map[string]string{}
	err := filepath.WalkDir(folder, func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		rel, err := filepath.Rel(folder, p)
		if err != nil {
			return err
		}
		if d.Type()&fs.ModeSymlink != 0 {
			target, err := os.Readlink(p)
			out[rel] = "link " + target
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		if err := os.Chmod(p, 0o600); err != nil {
			return err
		}
		raw, err := os.ReadFile(p)
		out[rel] = fmt.Sprintf("%o %q", info.Mode().Perm(), raw)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// holds returns what a commit holds, in the words of filesIn.
func (s *studio) holds(t *testing.T, commit git.OID) map[string]string {
	t.Helper()
	out := map[string]string{}
	err := s.host.List(t.Context(), commit, func(p string, e git.Entry, _ int64) error {
		body, err := s.host.Blob(t.Context(), e.OID)
		if err != nil {
			return err
		}
		defer body.Close()
		raw, err := io.ReadAll(body)
		switch e.Mode {
		case git.Symlink:
			out[p] = "link " + string(raw)
		case git.Executable:
			out[p] = fmt.Sprintf("755 %q", raw)
		default:
			out[p] = fmt.Sprintf("644 %q", raw)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func same(t *testing.T, got, want map[string]string) {
	t.Helper()
	for _, p := range slices.Sorted(maps.Keys(want)) {
		if got[p] != want[p] {
			t.Errorf("%q is %s, want %s", p, got[p], want[p])
		}
	}
	for _, p := range slices.Sorted(maps.Keys(got)) {
		if _, ok := want[p]; !ok {
			t.Errorf("%q is there: %s", p, got[p])
		}
	}
}

// exactly holds that the sandbox sees what a commit holds, and a walk finds no other change.
func (s *studio) exactly(t *testing.T, commit git.OID) {
	t.Helper()
	same(t, s.sees(t), s.holds(t, commit))
	again := s.keep(t)
	edits, err := s.host.Edits(t.Context(), commit, again)
	if err != nil || len(edits) > 0 {
		t.Errorf("a checkpoint would differ: %v, %v", edits, err)
	}
}

// days are the five states that an agent's work goes through.
var days = [][]wt.Op{
	{wt.Write("src/a.go", "package one\n"), wt.Write("new/x.bin", "\x00\xff\r\n\x00"), wt.Symlink("new/link", "../README")},
	{wt.Remove("docs"), wt.Rename("src/b.go", "src/z.go"), wt.Chmod("README", 0o755), wt.Write("new/empty", "")},
	{wt.Remove("README"), wt.Write("README/in", "a folder now\n"), wt.Remove("src/deep"), wt.Symlink("src/deep", "/etc"), wt.Rename("new", "moved")},
	{wt.Remove("."), wt.Write("alone", "all the rest is gone\n")},
	{wt.Write("src", "a file now"), wt.Fifo("docs"), wt.Socket("new"), wt.Link("alone", "twin"), wt.Write("run.sh/a/b/c", "deep"), wt.Chmod("run.sh/a", 0)},
}

func TestRestoreGoesToAnyStateByteForByte(t *testing.T) {
	everyWay(t, func(t *testing.T, m *workspace.Manager) {
		s := open(t, m, base)
		states := []git.OID{s.keep(t)}
		for _, day := range days {
			s.live.Edit(t, day...)
			states = append(states, s.keep(t))
		}
		for _, to := range []int{2, 5, 0, 3, 1, 4, 2, 2, 3, 0} {
			s.restore(t, states[to])
			s.exactly(t, states[to])
			if t.Failed() {
				t.Fatalf("on the way to state %d", to)
			}
		}
		if got := show(walk(t, m, s.w)); len(got) > 0 && s.w.Strategy != workspace.Overlay {
			t.Errorf("found %q in the base's own state", got)
		}
	})
}
