package checkpoint_test

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"sallyport/internal/base/git"
	"sallyport/internal/base/git/gittest"
	"sallyport/internal/base/id"
	"sallyport/internal/base/rapidtest"
	"sallyport/internal/path/checkpoint"
	"sallyport/internal/path/workspace"
	wt "sallyport/internal/path/workspace/workspacetest"
	"sallyport/internal/who/person/persontest"
)

func TestMain(m *testing.M) { wt.Main(m) }

// names are the components that random paths are made of: few, so that edits meet.
var names = []string{"a", "b", "c.go", "-rf", "new\nline", "\xff\xfe", "ü", "a b", "back\\slash", "\"quote", "*", ":(top)x", "\x1b[31mred"}

func path(t *rapid.T, label string) string {
	parts := rapid.SliceOfN(rapid.SampledFrom(names), 1, 3).Draw(t, label)
	return strings.Join(parts, "/")
}

func content(t *rapid.T) []byte {
	return rapid.OneOf(
		rapid.SampledFrom([][]byte{{}, []byte("one\n"), []byte("two\n"), []byte("crlf\r\n"), {0, 1, 2, 255}}),
		rapid.SliceOfN(rapid.Byte(), 0, 200),
	).Draw(t, "content")
}

// tree draws files that can stand beside each other.
func tree(t *rapid.T) []git.Write {
	files := map[string]git.Write{}
	for range rapid.IntRange(0, 14).Draw(t, "files") {
		p := path(t, "file")
		if clashes(files, p) {
			continue
		}
		mode := rapid.SampledFrom([]git.Mode{git.File, git.File, git.Executable, git.Symlink}).Draw(t, "mode")
		body := string(content(t))
		if mode == git.Symlink {
			body = rapid.SampledFrom([]string{"a", "../b", "/nonexistent/passwd", "nowhere"}).Draw(t, "target")
		}
		files[p] = git.Write{Path: p, Mode: mode, Data: git.Text(body)}
	}
	var out []git.Write
	for _, p := range slices.Sorted(maps.Keys(files)) {
		out = append(out, files[p])
	}
	return out
}

func clashes(files map[string]git.Write, p string) bool {
	for q := range files {
		if q == p || strings.HasPrefix(q, p+"/") || strings.HasPrefix(p, q+"/") {
			return true
		}
	}
	return false
}

// edits draws what an agent does; what cannot be done is left out when it is applied.
func edits(t *rapid.T) []wt.Op {
	var ops []wt.Op
	for range rapid.IntRange(0, 12).Draw(t, "edits") {
		op := wt.Op{Path: []byte(path(t, "path"))}
		op.Do = rapid.SampledFrom([]string{"write", "write", "append", "remove", "remove", "mkdir", "rename", "rename", "chmodfile", "symlink", "link", "fifo"}).Draw(t, "do")
		switch op.Do {
		case "write", "append":
			op.Data = content(t)
			op.Mode = rapid.SampledFrom([]uint32{0o644, 0o755, 0o600}).Draw(t, "mode")
		case "rename", "link":
			op.To = []byte(path(t, "to"))
		case "chmodfile":
			op.Mode = rapid.SampledFrom([]uint32{0o644, 0o755, 0o600, 0o700}).Draw(t, "mode")
		case "symlink":
			op.To = []byte(rapid.SampledFrom([]string{"a", "../b", "/nonexistent", "."}).Draw(t, "target"))
		}
		ops = append(ops, op)
	}
	return ops
}

// oracle is what git itself makes of a folder: a repository of its own, no walker of ours.
func oracle(t *testing.T, folder string) git.OID {
	t.Helper()
	wt.Git(t, folder, "init", "-q")
	wt.Git(t, folder, "add", "-A")
	return git.OID(wt.Git(t, folder, "write-tree"))
}

func TestACheckpointIsWhatGitWouldAdd(t *testing.T) {
	rapidtest.Cases(t, 25)
	persontest.Ordinary(t, "files and folders without rights are shut to their owner")
	for _, strategy := range []workspace.Strategy{workspace.Overlay, workspace.Copy} {
		t.Run(string(strategy), func(t *testing.T) {
			if strategy == workspace.Overlay {
				wt.CanOverlay(t)
			}
			root := t.TempDir()
			m := workspace.New(workspace.Config{Root: filepath.Join(root, "state"), Strategy: strategy})
			project, _ := wt.Project(t, map[string]string{"unrelated": "x"})
			host, err := m.EnsureRepository(gittest.Context(t), project)
			if err != nil {
				t.Fatal(err)
			}
			n := 0
			rapidtest.Check(t, func(r *rapid.T) {
				n++
				change := id.Change(fmt.Sprintf("chg-%08d", n))
				base, err := host.Import(gittest.Context(t), "test:base", git.Import{Ref: "refs/sallyport/test/base", Writes: tree(r), Author: author, Committer: author})
				if err != nil {
					r.Fatal(err)
				}
				w, err := m.Prepare(gittest.Context(t), workspace.Spec{Change: change, Project: project, Base: base.OID, Branch: "main", Owner: wt.Self()})
				if err != nil {
					r.Fatal(err)
				}
				merged := filepath.Join(root, string(change))
				wt.Try(t, w, merged, edits(r)...)
				taken, err := checkpoint.Take(gittest.Context(t), taking(m, host, w))
				if err != nil {
					r.Fatal(err)
				}
				if want := oracle(t, merged); taken.Checkpoint.Tree != want {
					list := wt.Git(t, merged, "ls-files", "-s")
					got, _ := host.Run(gittest.Context(t), git.Cmd{Args: []string{"ls-tree", "-r", string(taken.Checkpoint.Tree)}})
					was, _ := host.Run(gittest.Context(t), git.Cmd{Args: []string{"ls-tree", "-r", string(base.Tree)}})
					r.Fatalf("tree %s, git has %s\n--- base\n%s--- checkpoint\n%s--- git\n%s", taken.Checkpoint.Tree, want, was, got, list)
				}
				_ = os.RemoveAll(merged)
				if err := m.Remove(gittest.Context(t), change); err != nil {
					r.Fatal(err)
				}
			})
		})
	}
}

var author = git.Signature{Name: "sallyport", Email: "sallyport@localhost", At: time.Unix(1_700_000_000, 0)}

func taking(m *workspace.Manager, host git.Dir, w workspace.Workspace) checkpoint.Taking {
	return checkpoint.Taking{
		Workspaces: m, Workspace: w, Host: host, Trigger: checkpoint.AtEnd, Session: "agent-00001",
		At: time.Unix(1_700_000_000, 0).UTC(), Author: author,
	}
}
