package workspacetest

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"sallyport/internal/base/git"
)

// Git runs a person's git in dir, without any settings of this machine.
func Git(t testing.TB, dir string, args ...string) string {
	t.Helper()
	cmd := exec.Command("git", append([]string{"-c", "maintenance.auto=false"}, args...)...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(),
		"GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1",
		"GIT_AUTHOR_NAME=P", "GIT_AUTHOR_EMAIL=p@example.org", "GIT_COMMITTER_NAME=P", "GIT_COMMITTER_EMAIL=p@example.org")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("git %q: %v\n%s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

// Project makes a person's repository with the given files ("x+" before a text makes it
// executable, "->" a link) and one commit, and returns it with that commit.
func Project(t testing.TB, files map[string]string) (git.Project, git.OID) {
	t.Helper()
	top := filepath.Join(t.TempDir(), "repo")
	if err := os.Mkdir(top, 0o755); err != nil {
		t.Fatal(err)
	}
	Git(t, top, "init", "-q", "-b", "main")
	Files(t, top, files)
	return Commit(t, top)
}

// Files writes files as Project does.
func Files(t testing.TB, top string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		p := filepath.Join(top, name)
		if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
			t.Fatal(err)
		}
		var err error
		if target, ok := strings.CutPrefix(text, "->"); ok {
			err = os.Symlink(target, p)
		} else if body, ok := strings.CutPrefix(text, "x+"); ok {
			err = os.WriteFile(p, []byte(body), 0o755)
		} else {
			err = os.WriteFile(p, []byte(text), 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// Commit commits all there is.
func Commit(t testing.TB, top string) (git.Project, git.OID) {
	t.Helper()
	Git(t, top, "add", "-Af")
	Git(t, top, "commit", "-qm", "x", "--allow-empty")
	p, err := git.Open(t.Context(), top)
	if err != nil {
		t.Fatal(err)
	}
	return p, git.OID(Git(t, top, "rev-parse", "HEAD"))
}
