package repository_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"sallyport/internal/base/disk/disktest"
	"sallyport/internal/path/repository"
	wt "sallyport/internal/path/workspace/workspacetest"
)

// The host's repository is what "nothing is lost" stands on: half of one under its name would be taken for a whole.
func TestTheHostsRepositoryIsOnTheDiskBeforeItHasItsName(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("SKIPPED: needs git")
	}
	calls := disktest.Calls(t, func(dir string) {
		p, _ := wt.Project(t, map[string]string{"a": "1\n"})
		exclude := filepath.Join(p.CommonDir, "info", "exclude")
		disktest.Put(t, exclude, "left\n", 0o644)
		r := at(filepath.Join(dir, "repos"), repository.Config{})
		host, err := r.Open(t.Context(), p)
		if err != nil {
			t.Fatal(err)
		}
		disktest.Say("made")
		disktest.Put(t, exclude, "other\n", 0o644)
		if _, err := r.Open(t.Context(), p); err != nil {
			t.Fatal(err)
		}
		disktest.Say("again")
		if raw, err := os.ReadFile(filepath.Join(host.Path, "info", "exclude")); err != nil || string(raw) != "other\n" {
			t.Errorf("%q, %v", raw, err)
		}
		if info, err := os.Stat(filepath.Join(dir, "repos")); err != nil || info.Mode().Perm()&0o022 != 0 {
			t.Errorf("%v, %v", info.Mode(), err)
		}
	})
	const bare = `repos/[0-9a-f]{16}\.git`
	disktest.Ordered(t, calls,
		`syncfs repos/\S+`, `rename repos/\S+ `+bare, `fsync repos`,
		`fsync `+bare+`/info/\S+`, `rename `+bare+`/info/\S+ `+bare+`/info/exclude`, `say made`,
		`fsync `+bare+`/info/\S+`, `rename `+bare+`/info/\S+ `+bare+`/info/exclude`, `say again`)
}

// A look at files that an agent has added starts a process of git's where there are patterns, and none in a project without.
func TestOnlyPatternsOfAProjectAreTakenOver(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("SKIPPED: needs git")
	}
	p, _ := wt.Project(t, map[string]string{"a": "1\n"})
	r := at(filepath.Join(t.TempDir(), "repos"), repository.Config{})
	exclude := filepath.Join(p.CommonDir, "info", "exclude")
	asMade, err := os.ReadFile(exclude)
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct{ text, want string }{
		{string(asMade), ""}, {"", ""}, {"\n\r\n# one\n#two", ""},
		{"# one\n*.log\n", "# one\n*.log\n"}, {`\#name`, `\#name`}, {" # a name\n", " # a name\n"}, {"\r\nlast", "\r\nlast"}, {"# again\n", ""},
	} {
		disktest.Put(t, exclude, test.text, 0o644)
		host, err := r.Open(t.Context(), p)
		if err != nil {
			t.Fatal(err)
		}
		raw, err := os.ReadFile(filepath.Join(host.Path, "info", "exclude"))
		if test.want == "" && !os.IsNotExist(err) || test.want != "" && (err != nil || string(raw) != test.want) {
			t.Errorf("of %q it has %q, %v", test.text, raw, err)
		}
	}
}
