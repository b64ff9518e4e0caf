package cli

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"sallyport/internal/base/disk/disktest"
)

// machine is one that systemd may run, by hand.
type machine struct {
	t      *testing.T
	dir    string
	user   bool // whoever asks is not root
	bare   bool // systemd does not run
	told   []string
	failed error
}

func (m *machine) cli(words ...string) result {
	m.t.Helper()
	var out, errs bytes.Buffer
	s := Systemd{Self: "/usr/lib/sallyport/sallyport", System: filepath.Join(m.dir, "system"), Root: !m.user}
	if !m.bare {
		s.Tell = func(_ context.Context, words ...string) error {
			m.told = append(m.told, strings.Join(words, " "))
			return m.failed
		}
	}
	p := Program{
		In: strings.NewReader(""), Out: &out, Err: &errs, Dir: func() (string, error) { return "/", nil },
		Getenv: func(k string) string {
			return map[string]string{"SALLYPORT_HOME": "/srv/usual", "HOME": m.dir, "PATH": "/bin:/opt/a b", "XDG_RUNTIME_DIR": "/run/user/0", "GORACE": "x"}[k]
		},
		Systemd: func() (Systemd, error) { return s, nil },
	}
	code := Main(p, words)
	return result{code, out.String(), errs.String()}
}

// files are the paths below the machine's folder, in order.
func (m *machine) files() (all []string) {
	m.t.Helper()
	err := filepath.WalkDir(m.dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			all = append(all, strings.TrimPrefix(path, m.dir+"/"))
		}
		return err
	})
	if err != nil {
		m.t.Fatal(err)
	}
	return all
}

func TestAUnitIsNamedAfterItsHomeAsSystemdWritesPaths(t *testing.T) {
	escape, err := exec.LookPath("systemd-escape")
	if err != nil {
		t.Log("SKIPPED in part: systemd-escape is not here to compare with")
	}
	for path, want := range map[string]string{
		"/":                 "-",
		"/srv/sallyport":    "srv-sallyport",
		"/srv/a-b":          `srv-a\x2db`,
		"/srv/a b":          `srv-a\x20b`,
		"/.hidden/.x":       `\x2ehidden-.x`,
		"/home/ä@b:c_d.e/%": `home-\xc3\xa4\x40b:c_d.e-\x25`,
		`/a\b"c'd$e`:        `a\x5cb\x22c\x27d\x24e`,
	} {
		if got := unitEscape(path); got != want {
			t.Errorf("%q is %q, not %q", path, got, want)
		}
		if escape == "" {
			continue
		}
		if out, err := exec.Command(escape, "--path", path).Output(); err != nil || strings.TrimSuffix(string(out), "\n") != want {
			t.Errorf("systemd writes %q as %q, %v", path, out, err)
		}
	}
}

func TestAUnitServesExactlyItsHome(t *testing.T) {
	m := &machine{t: t, dir: t.TempDir()}
	got := m.cli("service", "install", "--print", `/srv/a b%"c\$d`)
	want := "# Written by `sallyport service install`; `sallyport service remove` removes it.\n" + `[Unit]
Description=sallyport serves (/srv/a b%%"c\$d)
After=network.target
StartLimitIntervalSec=0

[Service]
Type=exec
Environment=SALLYPORT_SERVICE=1
Environment="PATH=/bin:/opt/a b"
Environment="HOME=` + m.dir + `"
ExecStart=":/usr/lib/sallyport/sallyport" serve "/srv/a b%%\"c\\$d"
Restart=always
RestartSec=1
OOMPolicy=continue
Delegate=yes
KillMode=mixed
TimeoutStopSec=60

[Install]
WantedBy=multi-user.target
`
	if got.code != exitDone || got.out != want {
		t.Errorf("exit %d %s:\n%s", got.code, got.err, got.out)
	}
	if left := m.files(); len(left) > 0 || len(m.told) > 0 {
		t.Errorf("printing made %q and told %q", left, m.told)
	}
	if got := m.cli("service", "install", "--print"); !strings.Contains(got.out, `serve "/srv/usual"`) {
		t.Errorf("%+v", got)
	}
	got = m.cli("service", "install", "--print", "--user", "/srv/x", "--json")
	for _, part := range []string{`"unit": "sallyport-srv-x.service"`, `"path": "` + m.dir + `/.config/systemd/user/sallyport-srv-x.service"`, `WantedBy=default.target`} {
		if !strings.Contains(got.out, part) {
			t.Errorf("%s lacks %s", got.out, part)
		}
	}
}

func TestAHomeThatNoUnitCanNameIsRefused(t *testing.T) {
	for home, why := range map[string]string{
		"/srv/a\nb":                       "line break",
		"/srv/a\tb":                       "control character",
		"/srv/\xff":                       "UTF-8",
		"/srv/" + strings.Repeat("ä", 60): "too long",
	} {
		m := &machine{t: t, dir: t.TempDir()}
		if got := m.cli("service", "install", home); got.code != exitUsage || !strings.Contains(got.err, why) || len(m.files()) > 0 || len(m.told) > 0 {
			t.Errorf("%q: %+v, %q, %q", home, got, m.files(), m.told)
		}
	}
}

func TestAServiceIsInstalledAndRemoved(t *testing.T) {
	for name, c := range map[string]struct {
		m       machine
		flags   []string
		at      string
		install []string
		remove  []string
	}{
		"of the machine": {machine{}, nil, "system/sallyport-srv-x.service",
			[]string{"daemon-reload", "enable --now sallyport-srv-x.service"}, []string{"disable --now sallyport-srv-x.service", "daemon-reload"}},
		"of a user": {machine{user: true}, []string{"--user"}, ".config/systemd/user/sallyport-srv-x.service",
			[]string{"--user daemon-reload", "--user enable --now sallyport-srv-x.service"}, []string{"--user disable --now sallyport-srv-x.service", "--user daemon-reload"}},
		"without systemd": {machine{bare: true}, nil, "system/sallyport-srv-x.service", nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			m := c.m
			m.t, m.dir = t, t.TempDir()
			verb := func(verb string) result {
				m.told = nil
				return m.cli(append([]string{"service", verb, "/srv/x"}, c.flags...)...)
			}
			if got := verb("remove"); got.code != exitDone || got.out != "no service of /srv/x is installed\n" || len(m.told) > 0 {
				t.Errorf("where there is none: %+v, told %q", got, m.told)
			}
			for _, said := range []string{"written", "is as it should be"} {
				got := verb("install")
				if got.code != exitDone || !strings.Contains(got.out, said) || !slices.Equal(m.told, c.install) || !slices.Equal(m.files(), []string{c.at}) {
					t.Errorf("%+v, told %q, there are %q", got, m.told, m.files())
				}
				if by := "next: systemctl daemon-reload && systemctl enable --now sallyport-srv-x.service\n"; strings.Contains(got.out, by) != m.bare {
					t.Errorf("what is left to a person: %s", got.out)
				}
			}
			if info, err := os.Stat(filepath.Join(m.dir, c.at)); err != nil || info.Mode().Perm() != 0o644 {
				t.Errorf("%v, %v", info, err)
			}
			if got := m.cli("uninstall", "--yes", "--home", "/srv/x"); got.code != exitError || !strings.Contains(got.err, strings.Join(append([]string{"service remove"}, append(c.flags, "/srv/x")...), " ")) {
				t.Errorf("uninstalled while it is served: %+v", got)
			}
			wants := filepath.Join(m.dir, filepath.Dir(c.at), "multi-user.target.wants")
			if err := errors.Join(os.Mkdir(wants, 0o755), os.Symlink("../x", filepath.Join(wants, "sallyport-srv-x.service"))); err != nil {
				t.Fatal(err)
			}
			if got := verb("remove"); got.code != exitDone || !strings.Contains(got.out, "removed") || !slices.Equal(m.told, c.remove) || len(m.files()) > 0 {
				t.Errorf("%+v, told %q, left over %q", got, m.told, m.files())
			}
		})
	}
}

func TestAUnitThatIsNotOursIsLeftAlone(t *testing.T) {
	ours := func(text string) string { return unitMark + "\n" + text }
	for name, lay := range map[string]func(path string) error{
		"another's": func(path string) error { return os.WriteFile(path, []byte("[Service]\n"+unitMark+"\n"), 0o644) },
		"a link to one of ours": func(path string) error {
			return errors.Join(os.WriteFile(path+".real", []byte(ours("")), 0o644), os.Symlink(path+".real", path))
		},
		"a folder": func(path string) error { return os.Mkdir(path, 0o755) },
		"empty":    func(path string) error { return os.WriteFile(path, nil, 0o644) },
	} {
		t.Run(name, func(t *testing.T) {
			m := &machine{t: t, dir: t.TempDir()}
			path := filepath.Join(m.dir, "system", "sallyport-srv-x.service")
			if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), lay(path)); err != nil {
				t.Fatal(err)
			}
			before, was := m.files(), read(path)
			for _, verb := range []string{"install", "remove"} {
				got := m.cli("service", verb, "/srv/x")
				if got.code == exitDone || !strings.Contains(got.err, path) || len(m.told) > 0 || !slices.Equal(m.files(), before) || read(path) != was {
					t.Errorf("%s: %+v, told %q", verb, got, m.told)
				}
			}
		})
	}
	m := &machine{t: t, dir: t.TempDir()}
	path := filepath.Join(m.dir, "system", "sallyport-srv-x.service")
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(ours("of an older version")), 0o644)); err != nil {
		t.Fatal(err)
	}
	if got := m.cli("service", "install", "/srv/x"); got.code != exitDone || !strings.Contains(got.out, "next: systemctl restart sallyport-srv-x.service\n") || !strings.Contains(read(path), "KillMode=mixed") {
		t.Errorf("%+v", got)
	}
}

// read is what a file holds; "" if it is none.
func read(path string) string {
	text, _ := os.ReadFile(path)
	return string(text)
}

// A unit that a loss of power empties would have the home served no longer, and nobody told.
func TestAUnitIsOnTheDiskBeforeSystemdIsTold(t *testing.T) {
	calls := disktest.Calls(t, func(dir string) {
		m := &machine{t: t, dir: dir}
		for _, verb := range []string{"install", "remove"} {
			if got := m.cli("service", verb, "/srv/x"); got.code != exitDone {
				t.Errorf("%+v", got)
			}
			disktest.Say(verb)
		}
	})
	disktest.Ordered(t, calls, `fsync system/\.sallyport-\d+\.new`, `link system/\.sallyport-\d+\.new system/sallyport-srv-x\.service`, `fsync system`, `say install`,
		`remove system/sallyport-srv-x\.service`, `fsync system`, `say remove`)
}

func TestWhatSystemdRefusesIsSaidWithWhatIsLeftToDo(t *testing.T) {
	m := &machine{t: t, dir: t.TempDir(), failed: errors.New("exit status 1: Access denied")}
	if got := m.cli("service", "install", "/srv/a-b"); got.code != exitError || !strings.Contains(got.err, "systemctl daemon-reload: exit status 1: Access denied") ||
		!strings.Contains(got.err, `next: systemctl daemon-reload && systemctl enable --now $'sallyport-srv-a\\x2db.service'`) {
		t.Errorf("%+v", got)
	}
	before := m.files()
	if got := m.cli("service", "remove", "/srv/a-b"); got.code != exitError || !strings.Contains(got.err, "disable --now") || !slices.Equal(m.files(), before) {
		t.Errorf("%+v, there are %q", got, m.files())
	}

	m = &machine{t: t, dir: t.TempDir(), user: true}
	for _, verb := range []string{"install", "remove"} {
		if got := m.cli("service", verb, "/srv/x"); got.code != exitError || !strings.Contains(got.err, "service "+verb+" --user /srv/x") || len(m.files()) > 0 || len(m.told) > 0 {
			t.Errorf("who is not root: %+v", got)
		}
	}
}

func TestAProgramThatSystemdCannotStartIsRefused(t *testing.T) {
	for _, self := range []string{`/opt/"x"/sallyport`, `/opt/it's/sallyport`, `/opt/a\b/sallyport`, "/opt/a\nb/sallyport"} {
		if text, err := (unit{home: "/srv/x", self: self}).text(); err == nil || !strings.Contains(err.Error(), strconv.Quote(self)) {
			t.Errorf("%q: %v\n%s", self, err, text)
		}
	}
}

// The quoting of systemd is systemd's to judge: it looks for the program that it reads.
func TestSystemdReadsAUnitAsItIsMeant(t *testing.T) {
	analyze, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Skip("SKIPPED: needs systemd-analyze")
	}
	self := filepath.Join(t.TempDir(), `a b%n$e`, "sallyport")
	if err := os.Mkdir(filepath.Dir(self), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, user := range []bool{false, true} {
		u := unit{home: `/srv/a b%n"c\d$e'f\`, self: self, user: user, env: []string{`PATH=/bin:/opt/"x" %h\`}}
		text, err := u.text()
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(t.TempDir(), "sallyport-x.service")
		disktest.Put(t, path, text, 0o644)
		cmd := exec.Command(analyze, "verify", "--man=no", path)
		if user {
			cmd = exec.Command(analyze, "--user", "verify", "--man=no", path)
		}
		cmd.Env = append(os.Environ(), "XDG_RUNTIME_DIR="+t.TempDir())
		_ = os.Remove(self)
		if out, err := cmd.CombinedOutput(); err == nil || !strings.Contains(string(out), "sallyport-x.service") || !strings.Contains(string(out), "not executable") {
			t.Errorf("user %v: without the program it says %s, %v", user, out, err)
		}
		disktest.Put(t, self, "#!/bin/sh\n", 0o755)
		again := exec.Command(cmd.Args[0], cmd.Args[1:]...)
		again.Env = cmd.Env
		if out, err := again.CombinedOutput(); err != nil || len(out) > 0 {
			t.Errorf("user %v: %s, %v\n%s", user, out, err, text)
		}
	}
}
