package daemon

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sallyport/internal/base/disk"
	"sallyport/internal/rule/config"
	"sallyport/internal/rule/secret"
)

// TestAnImageIsBroughtOnceAndByAName: an agent writes a Dockerfile, and a copy of what it names is made where no sandbox has a limit. It
// tells apart neither the names of one image, nor the images whose names it does not know.
func TestAnImageIsBroughtOnceAndByAName(t *testing.T) {
	bin, to := t.TempDir(), t.TempDir()
	said := filepath.Join(bin, "said")
	script := `#!/bin/sh
echo "$@" >> ` + said + `
[ "$1" = push ] && exit 0
for name; do :; done
case $name in
a|a5e6|sha256:a5e6|private|company/private|localhost/company/private|localhost/company/private:latest|containers-storage:private) printf localhost/company/private:latest;;
cafe) printf localhost/cafe:latest;;
*) exit 125;;
esac
`
	if err := os.WriteFile(filepath.Join(bin, builder), []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
	plain, err := secret.New(secret.Config{})
	if err != nil {
		t.Fatal(err)
	}
	home := t.TempDir()
	settings := "host: {build: {images: [private, company/private, absent, 'localhost/company/private:latest', a, a5e6, 'sha256:a5e6', 'containers-storage:private', cafe]}}\n"
	if err := os.WriteFile(filepath.Join(home, "sallyport.yaml"), []byte(settings), 0o600); err != nil {
		t.Fatal(err)
	}
	allows, err := config.Open(home, disk.Ops{})
	if err != nil {
		t.Fatal(err)
	}
	c := candidate{&Daemon{secrets: &secretRules{plain: plain}, settings: allows}}
	pushed := func(names ...string) (all []string) {
		t.Helper()
		if err := c.Bases(t.Context(), names, to); err != nil {
			t.Fatal(err)
		}
		raw, err := os.ReadFile(said)
		if err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(raw)) {
			if words := strings.Fields(line); words[0] == "push" {
				all = append(all, words[2])
			}
		}
		_ = os.Remove(said)
		return all
	}

	if got := pushed("private", "company/private", "absent", "localhost/company/private:latest"); !slices.Equal(got, []string{"private"}) {
		t.Errorf("of one image there are %q", got)
	}
	if got := pushed("a", "a5e6", "sha256:a5e6", "containers-storage:private"); len(got) > 0 {
		t.Errorf("without its name there is %q", got)
	}
	if got := pushed("localhost/company/private"); len(got) > 0 {
		t.Errorf("without a word of the owner's there is %q", got)
	}
	if got := pushed("cafe"); !slices.Equal(got, []string{"cafe"}) {
		t.Errorf("of a name that could be a digest there is %q", got)
	}
}
