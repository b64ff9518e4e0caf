package live_test

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sallyport/internal/base/disk/disktest"
	"sallyport/internal/drive/live"
	"sallyport/internal/port/sandbox"
	"sallyport/internal/rule/mount"
)

// outside returns a folder that is no part of what no group is ever shown, as a temporary one in memory would be.
func outside(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/var/tmp", "sallyport-extra-")
	if err == nil {
		dir, err = filepath.EvalSymlinks(dir)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return dir
}

func TestAGroupIsShownWhatTheHomeAllowsAndWhatIsHarmless(t *testing.T) {
	top := outside(t)
	for _, dir := range []string{"srv/notes", "srv/app/.git", "srv/mail", "srv/keys/deep", "real/in", "home/.state", "person"} {
		if err := os.MkdirAll(filepath.Join(top, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for name, text := range map[string]string{"srv/keys/deep/.env": "KEY=x", "srv/file": "x"} {
		disktest.Put(t, filepath.Join(top, name), text, 0o600)
	}
	for link, to := range map[string]string{"linked": "real", "srv/out": "../person", "srv/in": "notes"} {
		if err := os.Symlink(to, filepath.Join(top, link)); err != nil {
			t.Fatal(err)
		}
	}
	t.Chdir(filepath.Join(top, "srv/mail")) // a socket's path has 108 bytes
	l, err := net.Listen("unix", "s")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()

	e := live.Extra{
		Roots: func() ([]mount.Root, error) {
			return []mount.Root{{Path: top + "/srv", Write: true}, {Path: top + "/linked"}, {Path: top + "/home"}, {Path: top + "/person"}, {Path: top + "/gone"}}, nil
		},
		Closed: []mount.Closed{{Path: top + "/home", What: "sallyport's own home"}}, Homes: []string{top + "/person"},
	}
	for _, test := range []struct {
		path   string
		write  bool
		source string
		why    string
	}{
		{"/srv/notes", true, "/srv/notes", ""},
		{"/linked/in", false, "/real/in", ""},
		{"/linked/in", true, "/real/in", ""}, // read-only: its root gives no key
		{"/srv/app", false, "/srv/app", ""},
		{"/srv/app", true, "", "holds the git repository"},
		{"/srv/mail", false, "", `"s" in it is a socket`},
		{"/srv/keys", false, "", `"deep/.env" in it`},
		{"/srv/out", false, "", "a link on the way leads to"},
		{"/srv/in", false, "", "a link on the way leads to"},
		{"/srv/file", false, "", "it is no folder"},
		{"/srv/none", false, "", "it is not there"},
		{"/home/groups", false, "", "it is not there"},
		{"/home", false, "", "it is sallyport's own home"},
		{"/person", false, "", "it is a home folder"},
		{"/elsewhere", false, "", "no root in mounts"},
	} {
		m := e.Find([]mount.Wish{{Path: top + test.path, Name: "x", Write: test.write}})[0]
		if !strings.Contains(m.Refused, test.why) || (m.Refused == "") != (test.why == "") {
			t.Errorf("%+v: %q", test, m.Refused)
		}
		if test.why != "" && m.Shown != (sandbox.Mount{}) {
			t.Errorf("%+v is refused and shown: %+v", test, m.Shown)
		}
		if s := m.Shown; test.why == "" && (s.Source != top+test.source || s.Ino == 0 || s.Target != "/extra/x" || s.Writable != (test.write && test.path == "/srv/notes") || s.Of.UID != uint32(os.Geteuid())) {
			t.Errorf("%+v: %+v", test, s)
		}
	}
	if absent, err := e.Absent(); err != nil || len(absent) != 1 || absent[0] != top+"/gone" {
		t.Errorf("not there: %q, %v", absent, err)
	}
}

func TestAHomeThatCannotBeReadShowsNothing(t *testing.T) {
	wishes := []mount.Wish{{Path: "/srv", Name: "srv"}}
	for _, e := range []live.Extra{{}, {Roots: func() ([]mount.Root, error) { return []mount.Root{{Path: "/srv"}}, errors.New("sallyport.yaml:1:1") }}} {
		if all := e.Find(wishes); len(all) != 1 || all[0].Refused == "" || all[0].Shown.Source != "" {
			t.Errorf("%+v", all)
		}
	}
}

func TestWhatTheMachineRunsOnIsNeverShown(t *testing.T) {
	e := live.Extra{Roots: func() ([]mount.Root, error) { return []mount.Root{{Path: "/", Write: true}}, nil }}
	for _, dir := range []string{"/", "/etc", "/etc/ssl", "/proc", "/proc/self", "/sys", "/dev", "/run", "/usr/share", "/bin", "/root", "/home"} {
		if m := e.Find([]mount.Wish{{Path: dir, Name: "x"}})[0]; m.Refused == "" {
			t.Errorf("%s is shown: %+v", dir, m.Shown)
		}
	}
}
