package workspace_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"sallyport/internal/base/disk/disktest"
	"sallyport/internal/path/workspace"
	"sallyport/internal/path/workspace/workspacetest"
)

// The host's repository is what "nothing is lost" stands on: half of one under its name would be taken for a whole.
func TestTheHostsRepositoryIsOnTheDiskBeforeItHasItsName(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("SKIPPED: needs git")
	}
	calls := disktest.Calls(t, func(dir string) {
		p, _ := workspacetest.Project(t, map[string]string{"a": "1\n"})
		exclude := filepath.Join(p.CommonDir, "info", "exclude")
		if err := os.WriteFile(exclude, []byte("left\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		m := workspace.New(workspace.Config{Root: filepath.Join(dir, "state"), Strategy: workspace.Copy})
		host, err := m.EnsureRepository(t.Context(), p)
		if err != nil {
			t.Fatal(err)
		}
		disktest.Say("made")
		if err := os.WriteFile(exclude, []byte("other\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		if _, err := m.EnsureRepository(t.Context(), p); err != nil {
			t.Fatal(err)
		}
		disktest.Say("again")
		if raw, err := os.ReadFile(filepath.Join(host.Path, "info", "exclude")); err != nil || string(raw) != "other\n" {
			t.Errorf("%q, %v", raw, err)
		}
		for _, folder := range []string{"state/repos"} {
			if info, err := os.Stat(filepath.Join(dir, folder)); err != nil || info.Mode().Perm()&0o022 != 0 {
				t.Errorf("%s: %v, %v", folder, info.Mode(), err)
			}
		}
	})
	const repository = `state/repos/[0-9a-f]{16}\.git`
	disktest.Ordered(t, calls,
		`syncfs state/repos/\S+`, `rename state/repos/\S+ `+repository, `fsync state/repos`,
		`fsync `+repository+`/info/\S+`, `rename `+repository+`/info/\S+ `+repository+`/info/exclude`, `say made`,
		`fsync `+repository+`/info/\S+`, `rename `+repository+`/info/\S+ `+repository+`/info/exclude`, `say again`)
}
