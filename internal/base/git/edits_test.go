package git_test

import (
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sallyport/internal/base/git"
)

// Git itself is the oracle: trees in which files become folders, links, programs, and nothing.
func TestEditsAreWhatGitSaysDiffers(t *testing.T) {
	top := person(t)
	d := open(t, top)
	ctx := kept(t)
	names := []string{"a", "a.b", "a-b", "a/x", "a/x/y", "a/z", "b/c/d/e", "b/c/d", "b/c.d", "é", "nl\n", "z"}
	random := rand.New(rand.NewPCG(1, 2))
	commits := []git.OID{git.EmptyTree("sha1")}
	for range 12 {
		for _, name := range names {
			path := filepath.Join(top, name)
			if random.IntN(3) == 0 {
				_ = os.RemoveAll(path)
			}
			if _, err := os.Lstat(path); err == nil || random.IntN(2) == 0 || os.MkdirAll(filepath.Dir(path), 0o755) != nil {
				continue
			}
			if random.IntN(5) == 0 {
				_ = os.Symlink("x", path)
				continue
			}
			_ = os.WriteFile(path, []byte{byte('0' + random.IntN(3))}, 0o644|os.FileMode(random.IntN(2)*0o111))
		}
		commits = append(commits, commit(t, top))
	}

	differ := 0
	for _, from := range commits {
		for _, to := range commits {
			edits, err := d.Edits(ctx, from, to)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, e := range edits {
				got = append(got, fmt.Sprintf("%s %s %s %s %q", e.Old.Mode, e.New.Mode, e.Old.OID, e.New.OID, e.Path))
			}
			var want []string
			records := strings.Split(run(t, top, "diff-tree", "-r", "-z", "--raw", "--no-renames", "--no-abbrev", string(from), string(to)), "\x00")
			for i := 0; i+1 < len(records); i += 2 {
				f := strings.Fields(strings.TrimPrefix(records[i], ":"))
				for j := range f[:4] {
					if strings.Trim(f[j], "0") == "" {
						f[j] = ""
					}
				}
				want = append(want, fmt.Sprintf("%s %s %s %s %q", f[0], f[1], f[2], f[3], records[i+1]))
			}
			if !slices.Equal(got, want) {
				t.Fatalf("from %s to %s:\n%s\ngit says\n%s", from, to, strings.Join(got, "\n"), strings.Join(want, "\n"))
			}
			differ += len(got)
		}
	}
	if differ < 500 {
		t.Errorf("only %d edits were compared", differ)
	}
}

func TestARepositoryIsWholeOnlyWithAllThatACommitBrings(t *testing.T) {
	top := person(t)
	write(t, filepath.Join(top, "a"), "A")
	first := commit(t, top)
	write(t, filepath.Join(top, "d/b"), "B")
	second := commit(t, top)
	d := open(t, top)
	ctx := kept(t)
	whole := func() bool {
		t.Helper()
		is, err := d.Whole(ctx, second, first)
		if err != nil {
			t.Error(err)
		}
		return is
	}
	if !whole() {
		t.Fatal("nothing is missing")
	}
	for _, rev := range []string{"main", "main^{tree}", "main:d", "main:d/b"} {
		oid := run(t, top, "rev-parse", rev)
		file := filepath.Join(top, ".git/objects", oid[:2], oid[2:])
		if err := os.Rename(file, file+".away"); err != nil {
			t.Fatal(err)
		}
		if whole() {
			t.Errorf("without %s it is whole", rev)
		}
		if err := os.Rename(file+".away", file); err != nil {
			t.Fatal(err)
		}
	}
}

// A folder, a file or a link whose rights are odd is what git takes it for, and what lies in the folder is looked at.
func TestAModeWithOddRightsIsTheKindThatGitTakesItFor(t *testing.T) {
	top := person(t)
	write(t, filepath.Join(top, "in/a"), "A")
	from := commit(t, top)
	folder, file := run(t, top, "rev-parse", "HEAD:in"), run(t, top, "rev-parse", "HEAD:in/a")
	raw := ""
	for _, e := range [][3]string{
		{"100600", "f", file}, {"100711", "g", file}, {"40000", "in", folder}, {"120755", "l", file}, {"40755", "odd", folder}, {"160755", "s", string(from)},
	} {
		id, err := hex.DecodeString(e[2])
		if err != nil {
			t.Fatal(err)
		}
		raw += e[0] + " " + e[1] + "\x00" + string(id)
	}
	write(t, filepath.Join(top, "tree"), raw)
	to := git.OID(run(t, top, "hash-object", "-t", "tree", "-w", "--literally", "tree"))

	edits, err := open(t, top).Edits(kept(t), from, to)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range edits {
		got = append(got, string(e.New.Mode)+" "+e.Path)
	}
	var want []string
	for line := range strings.Lines(run(t, top, "ls-tree", "-r", string(to))) {
		if f := strings.Fields(line); f[3] != "in/a" {
			want = append(want, f[0]+" "+f[3])
		}
	}
	if !slices.Equal(got, want) || len(want) != 5 {
		t.Errorf("found %q, git says %q", got, want)
	}
}
