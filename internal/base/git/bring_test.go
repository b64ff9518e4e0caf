package git_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sallyport/internal/base/disk"
	"sallyport/internal/base/git"
	"sallyport/internal/base/problem"
)

// What is brought is all that a commit takes, whatever it is and however large; git itself reads the pack, and checks it.
func TestBringCopiesWhatACommitChangesAndTellsIt(t *testing.T) {
	for _, format := range []string{"sha1", "sha256"} {
		for _, files := range []int{7, 150} { // loose, and as a pack
			top := person(t, "--object-format="+format)
			write(t, top+"/a", "1\n")
			write(t, top+"/gone/deep/b", "2\n")
			base := commit(t, top)
			theirs := open(t, top)
			ours, err := git.InitBare(t.Context(), disk.Ops{}, t.TempDir()+"/r.git", format)
			if err != nil {
				t.Fatal(err)
			}
			write(t, ours.Path+"/objects/info/alternates", top+"/.git/objects\n")
			in := git.Import{Ref: "refs/sallyport/t", From: base, Parents: []git.OID{base}, Author: who, Committer: who}
			size := func(i int) int { return []int{0, 1, 15, 16, 2047, 2048, 300_000}[i%7] + i/7 }
			for i := range files {
				in.Writes = append(in.Writes, git.Write{Path: fmt.Sprintf("d%d/e/f%d", i%3, i), Mode: git.File, Data: bytesOf(strings.Repeat(string(rune('a'+i%7)), size(i)))})
			}
			in.Writes = append(in.Writes, git.Write{Path: "gone/deep/b"},
				git.Write{Path: "link", Mode: git.Symlink, Data: bytesOf("a")}, git.Write{Path: "a", Mode: git.Executable, Data: bytesOf("3\n")})
			made, err := ours.Import(t.Context(), "t:i", in)
			if err != nil {
				t.Fatal(err)
			}

			edits, err := theirs.Bring(t.Context(), "t:b", ours, made.OID, base)
			if err != nil {
				t.Fatal(err)
			}
			if want, err := ours.Edits(t.Context(), base, made.OID); err != nil || !slices.Equal(edits, want) {
				t.Errorf("%d edits are told, %d there are, %v", len(edits), len(want), err)
			}
			if whole, err := theirs.Whole(t.Context(), made.OID, base); !whole || err != nil {
				t.Errorf("%s, %d files: whole %v, %v", format, files, whole, err)
			}
			run(t, top, "update-ref", "refs/heads/new", string(made.OID))
			run(t, top, "fsck", "--strict", "--full")
			packs, _ := filepath.Glob(top + "/.git/objects/pack/*.pack")
			if (len(packs) > 0) != (files > 100) {
				t.Errorf("%d files came as %d packs", files, len(packs))
			}
		}
	}
}

func TestBringOfWhatIsNotThereBringsNothing(t *testing.T) {
	top, base, next := twice(t)
	theirs, err := git.InitBare(t.Context(), disk.Ops{}, t.TempDir()+"/r.git", "sha1")
	if err != nil {
		t.Fatal(err)
	}
	oid := run(t, top, "rev-parse", "main:a")
	if err := os.Remove(filepath.Join(top, ".git/objects", oid[:2], oid[2:])); err != nil {
		t.Fatal(err)
	}
	if _, err := theirs.Bring(t.Context(), "t:b", open(t, top), next, base); problem.KindOf(err) != problem.NotFound {
		t.Errorf("%v, want that the object is missing", err)
	}
	if packs, _ := filepath.Glob(theirs.Path + "/objects/pack/*"); len(packs) > 0 {
		t.Errorf("it has left %q", packs)
	}
}
