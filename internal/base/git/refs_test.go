package git_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"sallyport/internal/base/disk"
	"sallyport/internal/base/git"
)

// A name may be taken though no branch has it: what is made there would show up under somebody else's feet.
func TestABranchIsNotMadeWhereALinkOrAnEmptyWorkTreeStands(t *testing.T) {
	dir := t.TempDir()
	run := func(args ...string) {
		t.Helper()
		cmd := exec.Command("git", append([]string{"-C", dir, "-c", "user.name=a", "-c", "user.email=a@b"}, args...)...)
		cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=/nonexistent", "GIT_CONFIG_NOSYSTEM=1"}
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%q: %v\n%s", args, err, out)
		}
	}
	side := filepath.Join(t.TempDir(), "side")
	run("init", "-q", "-b", "main")
	run("commit", "-q", "--allow-empty", "-m", "base")
	run("worktree", "add", "-q", "--detach", side)
	run("-C", side, "symbolic-ref", "HEAD", "refs/heads/empty")
	run("symbolic-ref", "refs/heads/link", "refs/heads/none")
	p, err := git.Open(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	d := p.Common(disk.Ops{})
	for name, want := range map[string]string{"empty": "a work tree has checked it out", "link": "a symbolic name", "HEAD": "no branch of this name", "-x": "no branch of this name", "a..b": "no branch of this name", "main/below": "no branch below it", "main/below/deep": "no branch below it", "new": "", "main": ""} {
		there, err := d.Branch(t.Context(), name)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) || there != (name == "main") {
			t.Errorf("%s: %v, %v", name, there, err)
		}
	}
}
