package checkpoint

import (
	"os/exec"
	"strings"
	"testing"
)

// FuzzWhatIsHoldableGitTakes holds holdable against git's own rule: whatever we let into a
// tree, git lets into an index.
func FuzzWhatIsHoldableGitTakes(f *testing.F) {
	for _, p := range []string{"a", "a/b", ".git", ".GIT/x", "a/.git/b", "git~1", ".git.", ".git ", ".g\u200cit", ".git::$INDEX_ALLOCATION", `a\.git\b`, "..", "a//b", "/a", ".", "-rf", "a\nb", "\xff", ".gitmodules"} {
		f.Add(p)
	}
	dir := f.TempDir()
	git := func(stdin string, args ...string) error {
		cmd := exec.Command("git", args...)
		cmd.Dir = dir
		cmd.Env = append(cmd.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1")
		cmd.Stdin = strings.NewReader(stdin)
		return cmd.Run()
	}
	if err := git("", "init", "-q"); err != nil {
		f.Fatal(err)
	}
	if err := git("", "config", "core.protectHFS", "true"); err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, path string) {
		if strings.IndexByte(path, 0) >= 0 || len(path) > 1000 || !holdable(path) {
			return
		}
		// An empty index each time: git's answer to one path must not depend on another.
		if err := git("", "read-tree", "--empty"); err != nil {
			t.Fatal(err)
		}
		if err := git("100644 e69de29bb2d1d6434b8b29ae775ad8c2e48c5391\t"+path+"\x00", "update-index", "-z", "--index-info"); err != nil {
			t.Errorf("git does not take %q: %v", path, err)
		}
	})
}

func TestEverySpellingOfGitIsLeftOut(t *testing.T) {
	for _, p := range []string{".git", "a/.git/b", ".GIT/x", "git~1/x", "GIT~2", ".git.", ".git /x", ".g\u200cit", ".git::$INDEX_ALLOCATION/x", `a\.git\b`, "", "/a", "a//b", "a/../b", ".", "\x00", "a\x00b", "git~10"} {
		if holdable(p) {
			t.Errorf("%q could get into a tree", p)
		}
	}
	for _, p := range []string{".gitignore", "a/.github/b", "git", "git~", "git~1a", "git~a", "a.git", "...", "-rf", "a\nb", "\xff"} {
		if !holdable(p) {
			t.Errorf("%q is left out", p)
		}
	}
}
