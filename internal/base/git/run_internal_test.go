package git

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"sallyport/internal/base/problem"
)

func TestOfWhatGitComplainsTheBeginningIsKept(t *testing.T) {
	kept := &tail{max: 8}
	for _, text := range []string{"1234", "", "56789", "more"} {
		if n, err := kept.Write([]byte(text)); n != len(text) || err != nil {
			t.Errorf("%q: %d, %v", text, n, err)
		}
	}
	if kept.String() != "12345678" {
		t.Errorf("kept %q", kept)
	}
}

func TestAnOlderVersionIsOlderByItsFirstDifference(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want bool
	}{
		{"2.38.0", "2.38", false}, {"2.37.9", "2.38", true}, {"2.39", "2.38.1", false}, {"2.38", "2.38.1", true}, {"2.9", "2.10", true}, {"3", "2.38", false},
		{"1.99", "2.0", true}, {"2", "2.0", false}, {"x", "1", true}, {"x", "0", false}, {"2.38.1", "2.38.1", false}, {"2.38.0.rc1", "2.38.1", true},
	} {
		if got := older(c.a, c.b); got != c.want {
			t.Errorf("%s is older than %s: %v", c.a, c.b, got)
		}
	}
}

func TestTheEndOfAProcessIsToldByWhatItIs(t *testing.T) {
	d := Dir{Path: t.TempDir()}
	said := &tail{buf: []byte(" no luck \n")}
	status := exec.Command("sh", "-c", "exit 3").Run()
	if err := d.finish(t.Context(), "x", nil, said); err != nil {
		t.Errorf("a good end: %v", err)
	}
	var f *Failure
	if err := d.finish(t.Context(), "x", status, said); !errors.As(err, &f) || f.Code != 3 || f.Command != "x" || f.Error() != "git x: no luck" {
		t.Errorf("a bad end: %v", err)
	}
	if got := (&Failure{Command: "x", Code: 3, Stderr: " \n"}).Error(); got != "git x: exit status 3" {
		t.Errorf("of one that says nothing: %q", got)
	}
	ctx, end := context.WithCancelCause(t.Context())
	gone := errors.New("gone")
	end(gone)
	if err := d.finish(ctx, "x", status, said); !errors.Is(err, gone) {
		t.Errorf("with its context: %v", err)
	}
	if err := d.finish(t.Context(), "x", fmt.Errorf("no git: %w", exec.ErrNotFound), said); problem.KindOf(err) != problem.Unavailable || !strings.Contains(err.Error(), "not installed") {
		t.Errorf("of no program: %v", err)
	}
	other := errors.New("other")
	if err := d.finish(t.Context(), "x", other, said); !errors.Is(err, other) {
		t.Errorf("of something else: %v", err)
	}
	if err := (Dir{Path: d.Path + "/none"}).finish(t.Context(), "x", other, said); problem.KindOf(err) != problem.Unavailable || !strings.Contains(err.Error(), "does not exist") {
		t.Errorf("in no repository: %v", err)
	}
}

func TestGitRunsAsTheOwnerWhereThatIsAnother(t *testing.T) {
	for _, c := range []struct {
		as   *Identity
		want bool
	}{{nil, false}, {&Identity{}, false}, {&Identity{UID: 1234, GID: 56}, os.Geteuid() == 0}} {
		d := Dir{Path: "/x", As: c.as}
		got := d.credential()
		if (got != nil) != c.want {
			t.Errorf("%+v: %+v", c.as, got)
		}
		if got != nil && (got.Uid != 1234 || got.Gid != 56 || got.Groups == nil || len(got.Groups) != 0 || got.NoSetGroups) {
			t.Errorf("as %+v", got)
		}
		cmd, _ := d.command(t.Context(), Cmd{Args: []string{"x"}})
		if (cmd.SysProcAttr.Credential != nil) != c.want || !cmd.SysProcAttr.Setpgid {
			t.Errorf("%+v: it runs as %+v", c.as, cmd.SysProcAttr)
		}
		if at := d.place(); (at == place{path: "/x", uid: 1234, gid: 56}) != c.want {
			t.Errorf("%+v: its place is %+v", c.as, at)
		}
	}
}

func TestGitSeesNothingOfOursAndOfItsOwnerWhatIsAskedFor(t *testing.T) {
	t.Setenv("GIT_DIR", "/elsewhere")
	d := Dir{Path: "/x"}
	cmd, _ := d.command(t.Context(), Cmd{Args: []string{"x"}, Env: []string{"A=b"}, Config: []string{"c.d=e"}})
	for _, want := range []string{"A=b", "HOME=" + nowhere, "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null", "GIT_ALLOW_PROTOCOL=none"} {
		if !slices.Contains(cmd.Env, want) {
			t.Errorf("without %s: %q", want, cmd.Env)
		}
	}
	if slices.Contains(cmd.Env, "GIT_DIR=/elsewhere") || cmd.Dir != "/x" || !slices.Contains(cmd.Args, "c.d=e") || cmd.Args[1] != "--git-dir=/x" {
		t.Errorf("it runs in %s with %q and %q", cmd.Dir, cmd.Env, cmd.Args)
	}
	if slices.ContainsFunc(cmd.Env, func(kv string) bool { return strings.HasPrefix(kv, "GIT_OBJECT_DIRECTORY=") }) {
		t.Errorf("it writes aside: %q", cmd.Env)
	}
	d.Objects = "/aside"
	cmd, _ = d.command(t.Context(), Cmd{Args: []string{"x"}, Home: "/home/of", Dir: "/elsewhere"})
	for _, want := range []string{"HOME=/home/of", "GIT_OBJECT_DIRECTORY=/aside", `GIT_ALTERNATE_OBJECT_DIRECTORIES="/x/objects"`, "GIT_ALLOW_PROTOCOL=none"} {
		if !slices.Contains(cmd.Env, want) {
			t.Errorf("without %s: %q", want, cmd.Env)
		}
	}
	for _, not := range []string{"HOME=" + nowhere, "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null"} {
		if slices.Contains(cmd.Env, not) {
			t.Errorf("with %s: %q", not, cmd.Env)
		}
	}
	if cmd.Dir != "/elsewhere" {
		t.Errorf("it runs in %s", cmd.Dir)
	}
}
