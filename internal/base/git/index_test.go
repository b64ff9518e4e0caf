package git_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sallyport/internal/base/disk/disktest"
	"sallyport/internal/base/git"
)

func readIndex(t *testing.T, top, format string) (*git.Index, []byte) {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(top, ".git/index"))
	if err != nil {
		t.Fatal(err)
	}
	x, err := git.ParseIndex(raw, format)
	if err != nil {
		t.Fatal(err)
	}
	if err := x.Check(); err != nil {
		t.Fatal(err)
	}
	return x, raw
}

// TestReplaceMeansWhatGitMeans edits the same index with git and with Replace; git is the oracle.
func TestReplaceMeansWhatGitMeans(t *testing.T) {
	for _, format := range []string{"sha1", "sha256"} {
		for _, version := range []string{"2", "3", "4"} {
			t.Run(format+" version "+version, func(t *testing.T) {
				top := person(t, "--object-format="+format)
				run(t, top, "config", "core.untrackedCache", "true")
				for i := range 60 {
					write(t, filepath.Join(top, fmt.Sprintf("d%d/e%d/f-%02d.txt", i%3, i%5, i)), fmt.Sprint(i))
				}
				write(t, filepath.Join(top, "a"), "a")
				write(t, filepath.Join(top, strings.Repeat("long/", 40)+"name"), "l")
				commit(t, top)
				run(t, top, "update-index", "--index-version", version)
				run(t, top, "update-index", "--assume-unchanged", "d0/e0/f-00.txt")
				if version != "2" { // git raises or lowers the version by what the flags need
					run(t, top, "update-index", "--skip-worktree", "d1/e1/f-01.txt")
				}
				write(t, filepath.Join(top, "untracked"), "u")
				run(t, top, "status")
				blob := git.OID(run(t, top, "hash-object", "-w", "a"))

				random := rand.New(rand.NewPCG(1, 2))
				for round := range 20 {
					set := map[string]git.Staged{}
					var lines strings.Builder
					for range 1 + random.IntN(6) {
						p := fmt.Sprintf("d%d/e%d/f-%02d.txt", random.IntN(4), random.IntN(6), random.IntN(70))
						if random.IntN(2) == 0 {
							set[p] = git.Staged{}
							fmt.Fprintf(&lines, "0 %s\t%s\x00", strings.Repeat("0", len(blob)), p)
						} else {
							set[p] = git.Staged{Entry: git.Entry{Mode: git.Executable, OID: blob}}
							fmt.Fprintf(&lines, "100755 %s\t%s\x00", blob, p)
						}
					}
					x, raw := readIndex(t, top, format)
					out, err := x.Replace(set)
					if err != nil {
						t.Fatal(err)
					}
					index := filepath.Join(top, ".git/index")
					disktest.Put(t, index, out, 0o600)
					ours := run(t, top, "ls-files", "-s", "-v") + run(t, top, "write-tree") + run(t, top, "ls-files", "--debug")
					disktest.Put(t, index, raw, 0o600)
					pipe(t, top, lines.String(), "update-index", "-z", "--index-info")
					theirs := run(t, top, "ls-files", "-s", "-v") + run(t, top, "write-tree") + run(t, top, "ls-files", "--debug")
					// A replaced entry with a flag keeps it or not as the caller says; git drops it.
					if ours != theirs {
						t.Fatalf("round %d: ours and git's index differ after\n%q\nours:\n%s\ngit's:\n%s", round, lines.String(), ours, theirs)
					}
					run(t, top, "fsck")
				}
			})
		}
	}
}

func TestReplaceKeepsConflictsAndFlags(t *testing.T) {
	top := person(t)
	write(t, filepath.Join(top, "a"), "1")
	write(t, filepath.Join(top, "b"), "1")
	write(t, filepath.Join(top, "z"), "1")
	commit(t, top)
	run(t, top, "checkout", "-qb", "other")
	write(t, filepath.Join(top, "b"), "2")
	commit(t, top)
	run(t, top, "checkout", "-q", "main")
	write(t, filepath.Join(top, "b"), "3")
	commit(t, top)
	gitFails(t, top, "merge", "other")
	run(t, top, "update-index", "--assume-unchanged", "a")
	run(t, top, "update-index", "--untracked-cache")
	run(t, top, "status")

	x, _ := readIndex(t, top, "sha1")
	if got := x.Unmerged(); len(got) != 1 || got[0] != "b" {
		t.Errorf("unmerged %q, want b", got)
	}
	z := x.Entry("z")
	z.Stat = git.Stat{}
	out, err := x.Replace(map[string]git.Staged{"z": z})
	if err != nil {
		t.Fatal(err)
	}
	before := run(t, top, "ls-files", "-s", "-v")
	disktest.Put(t, filepath.Join(top, ".git/index"), out, 0o600)
	if after := run(t, top, "ls-files", "-s", "-v"); after != before {
		t.Errorf("entries changed:\n%s\nwere\n%s", after, before)
	}
	if !strings.Contains(string(out), "UNTR") {
		t.Error("the person's untracked cache was switched off")
	}
	run(t, top, "status")
}

func TestReplaceRefusesWhatItCannotMean(t *testing.T) {
	top := person(t)
	write(t, filepath.Join(top, "a"), "1")
	commit(t, top)
	run(t, top, "update-index", "--split-index")
	x, _ := readIndex(t, top, "sha1")
	if _, err := x.Replace(nil); !x.Split || !errors.Is(err, git.ErrIndex) {
		t.Errorf("split index: %v", err)
	}
	run(t, top, "update-index", "--no-split-index")
	x, raw := readIndex(t, top, "sha1")
	if _, err := x.Replace(map[string]git.Staged{"b": {Entry: git.Entry{Mode: git.File, OID: "xyz"}}}); err == nil {
		t.Error("staged an id that is none")
	}
	raw[len(raw)-1] ^= 1
	x, err := git.ParseIndex(raw, "sha1")
	if err != nil {
		t.Fatal(err)
	}
	if err := x.Check(); !errors.Is(err, git.ErrIndex) {
		t.Errorf("wrong checksum: %v", err)
	}
}

func FuzzParseIndexNeverPanics(f *testing.F) {
	f.Add([]byte("DIRC\x00\x00\x00\x02\x00\x00\x00\x00aaaaaaaaaaaaaaaaaaaa"))
	f.Add([]byte("DIRC\x00\x00\x00\x04\x00\x00\x00\x01" + strings.Repeat("\x00", 62) + "\x00a\x00" + "TREE\x00\x00\x00\x06\x00-1 0\n" + strings.Repeat("b", 20)))
	f.Fuzz(func(t *testing.T, raw []byte) {
		x, err := git.ParseIndex(raw, "sha1")
		if err != nil {
			return
		}
		x.Entry("a")
		x.Unmerged()
		out, err := x.Replace(map[string]git.Staged{"a/b": {}})
		if err != nil {
			return
		}
		if _, err := git.ParseIndex(out, "sha1"); err != nil {
			t.Errorf("what Replace wrote cannot be read: %v", err)
		}
	})
}
