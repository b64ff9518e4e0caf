package cli

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"sallyport/internal/base/disk/disktest"
)

// TestSettingsOfGitThatOnlyAVariableLeadsToAreNamed with the command that has sallyport's git read them, too.
func TestSettingsOfGitThatOnlyAVariableLeadsToAreNamed(t *testing.T) {
	home, other := t.TempDir(), t.TempDir()
	for _, file := range []string{filepath.Join(home, ".config/git/config"), filepath.Join(other, "git/attributes"), filepath.Join(other, "mine")} {
		disktest.Put(t, file, "", 0o644)
	}
	for _, c := range []struct {
		name, xdg, global string
		want              []string // in the detail, and in the way out
	}{
		{name: "no variable"},
		{name: "what is read anyway", xdg: filepath.Join(home, ".config")},
		{name: "no such files", xdg: filepath.Join(other, "none"), global: "/dev/null"},
		{name: "attributes elsewhere", xdg: other, want: []string{"git/attributes, which XDG_CONFIG_HOME has your git read", "--add core.attributesFile " + other}},
		{name: "configuration elsewhere", global: filepath.Join(other, "mine"), want: []string{"mine, which GIT_CONFIG_GLOBAL has", "--add include.path " + other}},
	} {
		t.Run(c.name, func(t *testing.T) {
			env := map[string]string{"HOME": home, "XDG_CONFIG_HOME": c.xdg, "GIT_CONFIG_GLOBAL": c.global}
			a := &app{Program: Program{Getenv: func(name string) string { return env[name] }}}
			checks := unseenSettings(a.Getenv)
			if c.want == nil {
				if len(checks) > 0 {
					t.Errorf("%+v", checks)
				}
				return
			}
			if len(checks) != 1 || !checks[0].Ignored || !strings.Contains(checks[0].Detail, c.want[0]) || !strings.Contains(checks[0].Fix, c.want[1]) {
				t.Errorf("%+v; want %q", checks, c.want)
			}
			if out, err := exec.Command("sh", "-c", checks[0].Fix).CombinedOutput(); err != nil {
				t.Fatalf("%s: %v\n%s", checks[0].Fix, err, out)
			}
			if again := unseenSettings(a.Getenv); len(again) > 0 {
				t.Errorf("after %s: %+v", checks[0].Fix, again)
			}
		})
	}
}
