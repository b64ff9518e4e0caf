package workspacetest

import (
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sallyport/internal/base/disk"
	"sallyport/internal/base/git"
	"sallyport/internal/base/git/gittest"
)

// EveryFormat runs a test with both kinds of object ids.
func EveryFormat(t *testing.T, do func(t *testing.T, p git.Project)) {
	for _, format := range []string{"sha1", "sha256"} {
		t.Run(format, func(t *testing.T) {
			top := t.TempDir()
			Git(t, top, "init", "-q", "-b", "main", "--object-format="+format)
			Files(t, top, map[string]string{"README": "read me\n", "src/a.go": "package a\n"})
			p, _ := Commit(t, top)
			do(t, p)
		})
	}
}

// Commits makes n commits on the branch that is checked out, each a line longer in one file, and returns the last.
func Commits(t *testing.T, p git.Project, n int) git.OID {
	t.Helper()
	old, err := os.ReadFile(filepath.Join(p.Top, "count"))
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	branch := Git(t, p.Top, "symbolic-ref", "HEAD")
	from, words := "from "+branch+"^0\n", fmt.Sprint(time.Now().UnixNano()) // no two are one commit
	var stream strings.Builder
	for i := range n {
		text := string(old) + strings.Repeat("1\n", i+1)
		fmt.Fprintf(&stream, "commit %s\ncommitter P <p@example.org> %d +0000\ndata %d\n%s\n%sM 100644 inline count\ndata %d\n%s\n",
			branch, 1_700_000_000+len(old)+i, len(words), words, from, len(text), text)
		from = ""
	}
	cmd := exec.Command("git", "fast-import", "--quiet")
	cmd.Dir, cmd.Stdin = p.Top, strings.NewReader(stream.String())
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	Git(t, p.Top, "reset", "-q", "--hard")
	return git.OID(Git(t, p.Top, "rev-parse", "HEAD"))
}

// Whole wants all that a commit reaches in a git directory that borrows nothing from elsewhere.
func Whole(t *testing.T, gitDir string, commit git.OID) {
	t.Helper()
	if out := Git(t, gitDir, "rev-list", "--objects", "--missing=print", string(commit)); strings.Contains(out, "?") {
		t.Errorf("missing: %s", out)
	}
	Git(t, gitDir, "fsck", "--full", "--connectivity-only")
}

// Photo is every file of a person's repository with its mode, but for objects, which may grow.
func Photo(t *testing.T, top string) string {
	t.Helper()
	var out strings.Builder
	err := filepath.WalkDir(top, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if p == filepath.Join(top, ".git/objects") {
				return fs.SkipDir
			}
			return nil
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		data, err := os.ReadFile(p)
		fmt.Fprintf(&out, "%s %v %v %q\n", p, info.Mode(), info.ModTime(), data)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// History makes commits whose trees are just what it is given.
type History struct {
	P    git.Project
	Host git.Dir // the project's own
	Last git.OID

	t testing.TB
}

// NewHistory is one of a project without files.
func NewHistory(t testing.TB) *History {
	t.Helper()
	p, _ := Project(t, nil)
	return &History{P: p, Host: p.Common(disk.Ops{}), t: t}
}

// Commit makes one on the last one. A text that begins with x+ is executable, with -> a link.
func (h *History) Commit(files map[string]string) git.OID {
	h.t.Helper()
	in := git.Import{Ref: "refs/heads/main", Message: "x\n"}
	if h.Last != "" {
		in.Parents = []git.OID{h.Last}
	}
	for name, text := range files {
		w := git.Write{Path: name, Mode: git.File}
		if to, ok := strings.CutPrefix(text, "->"); ok {
			w.Mode, text = git.Symlink, to
		} else if body, ok := strings.CutPrefix(text, "x+"); ok {
			w.Mode, text = git.Executable, body
		}
		w.Data = git.Text(text)
		in.Writes = append(in.Writes, w)
	}
	made, err := h.Host.Import(gittest.Context(h.t), "test:import", in)
	if err != nil {
		h.t.Fatal(err)
	}
	h.Last = made.OID
	return made.OID
}

// Many is a tree of n files.
func Many(n int) map[string]string {
	files := map[string]string{}
	for i := range n {
		files[fmt.Sprintf("d%d/e%d/f%d", i%100, i/100%10, i)] = fmt.Sprint("file ", i)
	}
	return files
}
