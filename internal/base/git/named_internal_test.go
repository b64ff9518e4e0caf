package git

import (
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func linked(t *testing.T, to, at string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(to, at); err != nil {
		t.Fatal(err)
	}
}

func TestATrailHasEachLinkOnTheWayAndTheEnd(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	put(t, dir+"/real/deep/file", "")
	linked(t, "real", dir+"/near")
	linked(t, dir+"/real/deep", dir+"/far")
	linked(t, "../real/deep", dir+"/in/up")
	linked(t, "near/deep", dir+"/twice")
	linked(t, "loop", dir+"/loop")
	linked(t, "/nonexistent/place", dir+"/gone")
	for i := range linksMax + 1 {
		linked(t, fmt.Sprint("l", i+1), fmt.Sprintf("%s/l%d", dir, i))
	}
	for path, want := range map[string]string{
		"real/deep/file":     "real/deep/file",
		"real/./deep//file":  "real/deep/file",
		"real/deep/../other": "real/other",
		"near/deep/file":     "near real/deep/file",
		"far/file":           "far real/deep/file",
		"far/../x":           "far real/x",
		"in/up/file":         "in/up real/deep/file",
		"twice/file":         "twice near real/deep/file",
		"near":               "near real",
		"near/none/more":     "near real/none/more",
		"loop":               strings.Repeat("loop ", linksMax) + "loop",
		fmt.Sprint("l", 1):   links(1),
	} {
		var got []string
		for _, place := range trail(dir + "/" + path) {
			rel, _ := filepath.Rel(dir, place)
			got = append(got, rel)
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s: %q, want %q", path, got, want)
		}
	}
	if got := trail(dir + "/gone"); !slices.Equal(got, []string{dir + "/gone", "/nonexistent/place"}) {
		t.Errorf("to what is not there: %q", got)
	}
	if got := trail("/../.."); !slices.Equal(got, []string{"/"}) {
		t.Errorf("above all: %q", got)
	}
}

// links is the trail of as many links in a row as are followed, and the end.
func links(from int) string {
	var names []string
	for i := range linksMax + 1 {
		names = append(names, fmt.Sprint("l", from+i))
	}
	return strings.Join(names, " ")
}

func TestWhatLiesBelowATopIsNoGitFolder(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	tops := []string{dir + "/one", dir + "/one/in", dir + "/two"}
	linked(t, dir+"/one/hook", dir+"/two/link")
	for path, want := range map[string]string{
		"one/a": "a", "one": "", "one/.git": "", "one/.git/x": "", "one/.github/x": ".github/x", "one/..x": "..x", "onea": "", "": "",
		"one/in/b": "in/b b", "two/b": "b", "two/link": "link hook", "two/.git/../c": "c",
	} {
		if got := strings.Join(below(tops, dir+"/"+path), " "); got != want {
			t.Errorf("%s: %q, want %q", path, got, want)
		}
	}
	if got := below(tops, ""); got != nil {
		t.Errorf("no path at all: %q", got)
	}
}

func TestEveryWorkTreeHasItsTop(t *testing.T) {
	p, _, do := configuredPlace(t)
	do("-c", "user.name=a", "-c", "user.email=a@b", "commit", "-q", "--allow-empty", "-m", "x")
	side := filepath.Join(t.TempDir(), "side")
	do("worktree", "add", "-q", "--detach", side)
	put(t, filepath.Join(p.CommonDir, "worktrees/broken/other"), "")
	for _, from := range []string{p.Top, side} {
		q, err := Open(t.Context(), from)
		if err != nil {
			t.Fatal(err)
		}
		want := []string{p.Top, side}
		if slices.Sort(want); !slices.Equal(q.tops(), want) {
			t.Errorf("from %s: %q, want %q", from, q.tops(), want)
		}
	}
	through := filepath.Join(t.TempDir(), "link")
	linked(t, p.Top, through)
	if got := (Project{Top: through, CommonDir: "/somewhere/repo.git"}).tops(); !slices.Equal(got, []string{p.Top}) {
		t.Errorf("through a link, of a bare one: %q", got)
	}
}

func TestAHomeFolderStandsInThePlaceOfATilde(t *testing.T) {
	me, err := user.Current()
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		"~/x/y": "/home/of/x/y", "~": "/home/of/", "x/~": "x/~", "/a": "/a", "": "",
		"~" + me.Username + "/x": me.HomeDir + "/x", "~nobody-is-called-so/x": "~nobody-is-called-so/x",
	} {
		if got := expand(path, "/home/of"); got != want {
			t.Errorf("%q is %q, want %q", path, got, want)
		}
	}
	p := Project{UID: uint32(os.Getuid())}
	if got := p.home("/said"); got != "/said" {
		t.Errorf("as said it is %q", got)
	}
	if got := p.home("said"); got != me.HomeDir {
		t.Errorf("as the system says it is %q", got)
	}
	if got := (Project{UID: 4_000_000_001}).home(""); got != nowhere {
		t.Errorf("of nobody it is %q", got)
	}
}

func TestATruthIsReadAsGitReadsIt(t *testing.T) {
	for value, want := range map[string]string{
		"true": "true", "YES": "true", "On": "true", "1": "true", "-1": "true", " 2 ": "true",
		"false": "false", "No": "false", "OFF": "false", "": "false", "0": "false", " 0": "false",
		"always": "always", "if-asked": "if-asked",
	} {
		if got := truth(value); got != want || isTrue(value) != (want == "true") {
			t.Errorf("%q is %q, and true: %v", value, got, isTrue(value))
		}
	}
}

func TestWhoCommitsIsOneLineWithoutMarks(t *testing.T) {
	for said, want := range map[string]string{"Ann": "Ann", " Ann B. ": "Ann B", "<Ann>\n": "Ann", "\"Ann\"": "Ann", "A\xffnn": "Ann", ".,:;": "", "An'n": "An'n"} {
		if got := identity(said); got != want {
			t.Errorf("%q is %q", said, got)
		}
	}
	if got := (Signature{Name: "A <b>", Email: "<a@b>"}).Address(); got != "A b <a@b>" {
		t.Errorf("in a trailer: %q", got)
	}
	if got := unique([]Named{{"a", "x"}, {"b", "x"}, {"a", "x"}, {"a", "y"}}); !slices.Equal(got, []Named{{"a", "x"}, {"b", "x"}, {"a", "y"}}) {
		t.Errorf("each once: %v", got)
	}
	all := []setting{{scope: "global", key: "user.name", value: "Ann"}, {scope: "local", key: "user.name", value: "Bob"}, {scope: "command", key: "user.name", value: "us"}, {scope: "local", key: "other", value: "x"}}
	if got := pick(all, []string{"user.name", "user.email"}); len(got) != 1 || got["user.name"] != "Bob" {
		t.Errorf("the last word that is not ours: %v", got)
	}
}
