package workspace_test

import (
	"context"
	"errors"
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

	"golang.org/x/sys/unix"

	"sallyport/internal/base/disk"
	"sallyport/internal/base/disk/disktest"
	"sallyport/internal/base/git"
	"sallyport/internal/base/git/gittest"
	"sallyport/internal/base/problem"
	"sallyport/internal/path/workspace"
	wt "sallyport/internal/path/workspace/workspacetest"
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
	p, head := wt.Project(t, files)
	return openOn(t, m, workspace.Spec{Change: "chg-00000001", Project: p, Base: head, Branch: "main", Owner: wt.Self()})
}

func openOn(t *testing.T, m *workspace.Manager, spec workspace.Spec) *studio {
	t.Helper()
	s := &studio{m: m}
	var err error
	if s.w, err = m.Prepare(gittest.Context(t), spec); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { // an ordinary user's t.TempDir does not open closed folders
		if err := m.Remove(context.Background(), spec.Change); err != nil {
			t.Error(err)
		}
	})
	if s.host, err = m.EnsureRepository(gittest.Context(t), spec.Project); err != nil {
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
			w.Data = git.Text(f.Fact.LinkTarget)
		case f.Mode != "":
			w.Data = func() (io.ReadCloser, int64, error) { return reader.Open(f.Path) }
		}
		in.Writes = append(in.Writes, w)
	}
	made, err := s.host.Import(gittest.Context(t), "test:import", in)
	if err != nil {
		t.Fatal(err)
	}
	return made.OID
}

func (s *studio) restore(t *testing.T, to git.OID, only ...string) {
	t.Helper()
	if err := s.m.Restore(gittest.Context(t), s.w, s.live.View, s.host, to, only); err != nil {
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
	err := s.host.List(gittest.Context(t), commit, func(p string, e git.Entry, _ int64) error {
		body, err := s.host.Blob(gittest.Context(t), e.OID)
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
	edits, err := s.host.Edits(gittest.Context(t), commit, again)
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
		for _, to := range []int{5, 2, 5, 0, 3, 1, 4, 2, 2, 3, 0} {
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

func TestNamedFilesGoBackAndTheRestStays(t *testing.T) {
	everyWay(t, func(t *testing.T, m *workspace.Manager) {
		s := open(t, m, base)
		s.live.Edit(t, wt.Write("src/a.go", "one\n"), wt.Write("new/x", "1"))
		state := s.keep(t)
		s.live.Edit(t,
			wt.Write("src/a.go", "two\n"), wt.Write("src/b.go", "two\n"), wt.Write("new/x", "2"), wt.Write("new/y", "2"),
			wt.Write("other/z", "2"), wt.Remove("docs"), wt.Write("bad/.git/config", "2"), wt.Remove("README"), wt.Write("README/x", "2"),
		)
		want := s.sees(t)
		s.restore(t, state, "src/a.go", "new", "bad", "docs/x.md", "README", "no/such")
		delete(want, "new/y")
		delete(want, "bad/.git/config")
		delete(want, "README/x")
		want["src/a.go"], want["new/x"], want["docs/x.md"], want["README"] = `644 "one\n"`, `644 "1"`, `644 "x\n"`, `644 "read me\n"`
		same(t, s.sees(t), want)
		for _, wrong := range []string{"", ".", "..", "../x", "/etc", "a//b", "a/", "a/../b"} {
			err := m.Restore(gittest.Context(t), s.w, s.live.View, s.host, state, []string{wrong})
			if problem.KindOf(err) != problem.Usage {
				t.Errorf("%q: %v", wrong, err)
			}
		}
	})
}

func TestRestoreLeavesWhatIsLeftOverAndTheAgentsGit(t *testing.T) {
	files := maps.Clone(base)
	files[".gitignore"] = "out/\n*.log\n"
	everyWay(t, func(t *testing.T, m *workspace.Manager) {
		s := open(t, m, files)
		state := s.keep(t)
		s.live.Edit(t,
			wt.Write("out/a", "1"), wt.Chmod("out", 0o700), wt.Write("src/x.log", "2"), wt.Remove("src/a.go"), wt.Write("new/y.log", "3"), wt.Write("new/y", "4"),
			wt.Write(".git/mine", "5"), wt.Write("src/.git/config", "6"), wt.Write(".GIT/hooks/x", "7"), wt.Mkdir("empty/er"),
			wt.Remove("docs"), wt.Write("docs", "8"), wt.Remove("link"), wt.Write("link/z.log", "9"),
		)
		s.restore(t, state)
		want := s.holds(t, state)
		want["out/a"], want["src/x.log"], want["new/y.log"] = `644 "1"`, `644 "2"`, `644 "3"`
		same(t, s.sees(t), want)
		if raw, err := os.ReadFile(filepath.Join(s.w.Tree.GitDir, "mine")); err != nil || string(raw) != "5" {
			t.Errorf("the agent's own git: %q, %v", raw, err)
		}
	})
}

func TestWhatACrashLeftHalfWrittenIsRemoved(t *testing.T) {
	files := maps.Clone(base)
	files[".gitignore"] = ".*\n"
	everyWay(t, func(t *testing.T, m *workspace.Manager) {
		s := open(t, m, files)
		state := s.keep(t)
		const half = ".sallyport-restore-0123456789abcdef" // of a name that is not written this time
		s.live.Edit(t, wt.Write("src/"+half, "half a fi"), wt.Write(".mine", "1"))
		s.restore(t, state, "README")
		want := s.holds(t, state)
		want[".mine"] = `644 "1"`
		same(t, s.sees(t), want)
	})
}

func TestFoldersAreOpenAgainAndThoseThatAreEmptyAreGone(t *testing.T) {
	everyWay(t, func(t *testing.T, m *workspace.Manager) {
		s := open(t, m, base)
		state := s.keep(t)
		s.live.Edit(t, wt.Write("a/b/c/x", "1"), wt.Write("a/y", "1"), wt.Write("src/deep/n", "1"), wt.Mkdir("only/empty"),
			wt.Chmod("a/b", 0), wt.Chmod("src/deep", 0), wt.Chmod("src", 0o200), wt.Chmod("docs", 0), wt.Chmod(".", 0))
		s.restore(t, state)
		s.exactly(t, state)
		for _, p := range []string{".", "src", "src/deep", "docs"} {
			if st, err := os.Stat(filepath.Join(fmt.Sprintf("/proc/self/fd/%d", s.live.View.Fd()), p)); err != nil || st.Mode().Perm() != 0o755 {
				t.Errorf("%s: %v, %v", p, st, err)
			}
		}
		if _, err := os.Stat(filepath.Join(fmt.Sprintf("/proc/self/fd/%d", s.live.View.Fd()), "a")); !os.IsNotExist(err) {
			t.Errorf("a folder that nobody made is there: %v", err)
		}
	})
}

func TestWhatIsRightIsNotWrittenAgain(t *testing.T) {
	everyWay(t, func(t *testing.T, m *workspace.Manager) {
		s := open(t, m, base)
		s.live.Edit(t, days[0]...)
		state := s.keep(t)
		before := walk(t, m, s.w)
		s.live.Edit(t, wt.Write("later", "x"))
		s.restore(t, state)
		if after := walk(t, m, s.w); !slices.EqualFunc(before.Changes, after.Changes, func(a, b workspace.Found) bool { return a == b }) {
			t.Errorf("before %+v\nafter %+v", before.Changes, after.Changes)
		}
	})
}

func TestAnOverlayIsNeverWrittenBelowItsMount(t *testing.T) {
	wt.CanOverlay(t)
	m := workspace.New(workspace.Config{Root: filepath.Join(t.TempDir(), "state"), Strategy: workspace.Overlay})
	s := open(t, m, base)
	upper, err := os.Open(s.w.Tree.Upper)
	if err != nil {
		t.Fatal(err)
	}
	defer upper.Close()
	for name, view := range map[string]*os.File{"the upper folder": upper, "no view": nil} {
		if err := m.Restore(gittest.Context(t), s.w, view, s.host, s.w.Spec.Base, nil); err == nil {
			t.Errorf("restored through %s", name)
		}
	}
}

func TestAWorkspaceThatIsNotRestoredIsToldSo(t *testing.T) {
	spoil := map[string]func(top string) error{
		"a byte":        func(top string) error { return os.WriteFile(top+"/src/a.go", []byte("later"), 0o644) },
		"a mode":        func(top string) error { return os.Chmod(top+"/src/a.go", 0o600) },
		"a new file":    func(top string) error { return os.WriteFile(top+"/new", nil, 0o644) },
		"a lost file":   func(top string) error { return os.Remove(top + "/docs/x.md") },
		"a second name": func(top string) error { return os.Link(top+"/src/a.go", top+"/twin") },
		"a folder":      func(top string) error { return os.Chmod(top+"/src", 0o700) },
		"another kind":  func(top string) error { return os.Symlink("x", top+"/new") },
	}
	for _, strategy := range []workspace.Strategy{workspace.Overlay, workspace.Copy} {
		for name, do := range spoil {
			t.Run(string(strategy)+"/"+name, func(t *testing.T) {
				if strategy == workspace.Overlay {
					wt.CanOverlay(t)
				}
				var s *studio
				armed := false
				around := func(op string, write func() error) error {
					err := write()
					if op == "restore:prune" && armed { // the last thing that is written
						err = do(fmt.Sprintf("/proc/self/fd/%d", s.live.View.Fd()))
					}
					return err
				}
				m := workspace.New(workspace.Config{Root: filepath.Join(t.TempDir(), "state"), Strategy: strategy, Ops: disk.Ops{Around: around}})
				s = open(t, m, base)
				s.live.Edit(t, wt.Write("src/a.go", "one\n"), wt.Write("docs/x.md", "one\n"))
				state := s.keep(t)
				s.live.Edit(t, wt.Write("src/a.go", "two\n"), wt.Write("gone", ""))
				armed = true
				if err := m.Restore(gittest.Context(t), s.w, s.live.View, s.host, state, nil); !errors.Is(err, workspace.ErrNotRestored) {
					t.Fatalf("error is %v", err)
				}
				armed = false
				s.restore(t, state)
				s.exactly(t, state)
			})
		}
	}
}

func TestNothingOutsideIsWrittenWhileNamesAreExchanged(t *testing.T) {
	for _, strategy := range []workspace.Strategy{workspace.Overlay, workspace.Copy} {
		t.Run(string(strategy), func(t *testing.T) {
			if strategy == workspace.Overlay {
				wt.CanOverlay(t)
			}
			m := workspace.New(workspace.Config{Root: filepath.Join(t.TempDir(), "state"), Strategy: strategy})
			s := open(t, m, base)
			outside := t.TempDir()
			for name := range base {
				p := filepath.Join(outside, strings.TrimPrefix(name, "src/"))
				disktest.Put(t, p, "the host's\n", 0o600)
			}
			before := wt.Photo(t, outside)
			state := s.keep(t)
			s.live.Edit(t, wt.Write("src/a.go", "1"), wt.Write("src/deep/c.go", "1"), wt.Symlink("trap", outside), wt.Symlink("file-trap", outside+"/a.go"))
			// Nothing is frozen: the agent exchanges folders and files for links all the time.
			top := int(s.live.View.Fd())
			stop, stopped := make(chan struct{}), make(chan struct{})
			go func() {
				defer close(stopped)
				for {
					select {
					case <-stop:
						return
					default:
					}
					_ = unix.Renameat2(top, "src", top, "trap", unix.RENAME_EXCHANGE)
					_ = unix.Renameat2(top, "docs/x.md", top, "file-trap", unix.RENAME_EXCHANGE)
					_ = unix.Symlinkat(outside, top, "trap")
				}
			}()
			for range 40 {
				_ = m.Restore(gittest.Context(t), s.w, s.live.View, s.host, state, nil) // fails or not, as the race goes
			}
			close(stop)
			<-stopped
			if after := wt.Photo(t, outside); after != before {
				t.Fatalf("outside was %s, is %s", before, after)
			}
			s.restore(t, state)
			s.exactly(t, state)
		})
	}
}
