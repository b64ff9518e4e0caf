package session_test

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"sallyport/internal/base/disk"
	"sallyport/internal/base/disk/disktest"
	"sallyport/internal/path/session"
	"sallyport/internal/port/sandbox"
)

// agentsUID is who an agent's home belongs to: as root another, else ourselves.
func agentsUID() uint32 {
	if os.Geteuid() == 0 {
		return 64123
	}
	return uint32(os.Geteuid())
}

func TestAnAgentThatKeepsWhatItKnowsHasAHomeOfItsOwnAndNoOtherHasOne(t *testing.T) {
	for _, keeps := range []bool{true, false} {
		var shown string
		r := running(t, func(_ context.Context, spec sandbox.Spec) sandbox.Exit { shown = spec.Home; return sandbox.Exit{} })
		r.Spec.Owner = sandbox.Owner{UID: agentsUID(), GID: agentsUID()}
		r.Program.Keeps = keeps
		for range 2 { // it goes on as who it was
			if _, err := session.Run(t.Context(), r); err != nil {
				t.Fatal(err)
			}
			if err := os.Chmod(session.HomeDir(r.Session.Dir), 0); keeps && err != nil {
				t.Fatal(err)
			}
		}
		if keeps {
			if _, err := session.Run(t.Context(), r); err != nil { // an agent that closed its home is not kept out of it
				t.Fatal(err)
			}
		}
		if !keeps {
			if shown != "" || session.HasHome(r.Session.Dir) {
				t.Errorf("a program that keeps nothing is shown %q", shown)
			}
			continue
		}
		info, err := os.Lstat(shown)
		if err != nil || shown != filepath.Join(r.Session.Dir, "home") || !session.HasHome(r.Session.Dir) {
			t.Fatalf("%q: %v", shown, err)
		}
		if st := info.Sys().(*syscall.Stat_t); info.Mode().Perm() != 0o700 || st.Uid != agentsUID() {
			t.Errorf("mode %v, uid %d", info.Mode(), st.Uid)
		}
	}
}

func TestAHomeMovesWholeToTheSessionThatGoesOnAndIsNeverLookedInto(t *testing.T) {
	dir := t.TempDir()
	from, to := filepath.Join(dir, "a"), filepath.Join(dir, "b")
	if moved, err := session.MoveHome(disk.Ops{}, from, to); moved || err != nil {
		t.Errorf("nothing is there: %v, %v", moved, err)
	}
	home := session.HomeDir(from)
	if err := errors.Join(os.MkdirAll(home, 0o700), os.Symlink("/etc/passwd", filepath.Join(home, "link")), syscall.Mkfifo(filepath.Join(home, "pipe"), 0o600), os.Chmod(home, 0)); err != nil {
		t.Fatal(err)
	}
	var ops []string
	for range 2 {
		moved, err := session.MoveHome(disk.Ops{Around: func(op string, do func() error) error { ops = append(ops, op); return do() }}, from, to)
		if !moved || err != nil {
			t.Fatal(moved, err)
		}
	}
	disktest.Private(t, to, "home/link")
	if len(ops) != 1 || session.HasHome(from) || !session.HasHome(to) {
		t.Errorf("%q", ops)
	}
	if to, err := os.Readlink(filepath.Join(session.HomeDir(to), "link")); to != "/etc/passwd" || err != nil {
		t.Errorf("%q, %v", to, err)
	}
	other := filepath.Join(dir, "c") // an empty one, which a rename would replace
	if err := errors.Join(os.MkdirAll(home, 0o700), os.MkdirAll(session.HomeDir(other), 0o700)); err != nil {
		t.Fatal(err)
	}
	if _, err := session.MoveHome(disk.Ops{}, from, other); err == nil {
		t.Error("one home took the place of another")
	}
	if err := errors.Join(os.Remove(home), os.Symlink(session.HomeDir(to), home)); err != nil {
		t.Fatal(err)
	}
	if session.HasHome(from) {
		t.Error("a link is a home")
	}
}

func TestAMoveOfAHomeThatLosesPowerIsMadeGood(t *testing.T) {
	from, to := filepath.Join(t.TempDir(), "a"), filepath.Join(t.TempDir(), "b")
	if err := os.MkdirAll(session.HomeDir(from), 0o700); err != nil {
		t.Fatal(err)
	}
	lost := errors.New("no power")
	if moved, err := session.MoveHome(disk.Ops{Around: func(string, func() error) error { return lost }}, from, to); moved || !errors.Is(err, lost) || !session.HasHome(from) {
		t.Errorf("%v, %v", moved, err)
	}
	if moved, err := session.MoveHome(disk.Ops{}, from, to); !moved || err != nil || !session.HasHome(to) {
		t.Errorf("%v, %v", moved, err)
	}
	if _, err := os.Lstat(session.HomeDir(from)); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
}

func TestOnlyWhoHasAWayOutIsToldOfOne(t *testing.T) {
	environment := func(way session.Way) (sandbox.Spec, map[string]string) {
		t.Helper()
		spec, err := session.Environment(t.Context(), session.Surroundings{Profiles: []string{"go", "node", "python"}, Path: "/usr/bin", Way: way})
		if err != nil {
			t.Fatal(err)
		}
		env := map[string]string{}
		for _, e := range spec.Env {
			name, value, _ := strings.Cut(e, "=")
			env[name] = value
		}
		return spec, env
	}
	proxies := []string{"HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy", "NODE_USE_ENV_PROXY"}
	trust := []string{"SSL_CERT_FILE", "NODE_EXTRA_CA_CERTS", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "PIP_CERT", "GIT_SSL_CAINFO", "DENO_CERT", "npm_config_cafile"}
	offline := map[string]string{"GOPROXY": "off", "npm_config_offline": "true", "PIP_NO_INDEX": "1"}

	spec, env := environment(session.Way{Registries: true, Bundle: "/run/x"}) // without a socket there is none
	for _, name := range append(slices.Clone(proxies), trust...) {
		if value, there := env[name]; there {
			t.Errorf("%s=%s without a way out", name, value)
		}
	}
	for name, want := range offline {
		if env[name] != want {
			t.Errorf("%s=%q without a way out", name, env[name])
		}
	}
	if spec.Egress != "" || len(spec.Binds) > 0 && slices.ContainsFunc(spec.Binds, func(b sandbox.Bind) bool { return b.Target == sandbox.CABundle }) {
		t.Errorf("%+v", spec)
	}

	spec, env = environment(session.Way{Socket: "/run/s"})
	for _, name := range proxies {
		want := "http://127.0.0.1:3128"
		if strings.EqualFold(name, "no_proxy") {
			want = "127.0.0.1,localhost"
		} else if name == "NODE_USE_ENV_PROXY" {
			want = "1"
		}
		if env[name] != want {
			t.Errorf("%s=%q", name, env[name])
		}
	}
	if spec.Egress != "/run/s" || env["GOPROXY"] != "off" || env["SSL_CERT_FILE"] != "" {
		t.Errorf("%q %+v", spec.Egress, env)
	}

	spec, env = environment(session.Way{Socket: "/run/s", Bundle: "/run/ca", Registries: true})
	for _, name := range trust {
		if env[name] != sandbox.CABundle {
			t.Errorf("%s=%q", name, env[name])
		}
	}
	if !slices.Contains(spec.Binds, sandbox.Bind{Source: "/run/ca", Target: sandbox.CABundle}) {
		t.Errorf("%+v", spec.Binds)
	}
	for name := range offline {
		if value := env[name]; value != "" && value != "https://proxy.golang.org" {
			t.Errorf("%s=%q although registries may be reached", name, value)
		}
	}
}
