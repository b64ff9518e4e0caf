package sandbox_test

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"sallyport/internal/base/problem"
	"sallyport/internal/port/sandbox"
)

func TestAShareIsReadOnlyAndItsLinkIsFollowedInSight(t *testing.T) {
	m := newMachine(t)
	m.file(t, "data/set/file", "x", 0o644)
	m.link(t, "data/link", m.at("data/set"))
	b, err := m.Share(m.at("data/set"))
	if want := (sandbox.Bind{Source: m.at("data/set"), Target: m.at("data/set")}); err != nil || b != want {
		t.Errorf("%+v, %v", b, err)
	}
	b, err = m.Share(m.at("data/link"))
	if want := (sandbox.Bind{Source: m.at("data/set"), Target: m.at("data/link")}); err != nil || b != want {
		t.Errorf("%+v, %v", b, err)
	}
}

func TestAShareThatShowsMoreThanOneMeansIsRefused(t *testing.T) {
	m := newMachine(t)
	m.link(t, "data/home", m.Home)
	m.link(t, "data/root", "/")
	if err := syscall.Mkfifo(m.at("data/fifo"), 0o644); err != nil {
		t.Fatal(err)
	}
	t.Chdir(m.at("data")) // a socket's path has 108 bytes
	l, err := net.Listen("unix", "s")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for _, path := range []string{
		"/", "//", "/..", m.Home, m.Home + "/.", filepath.Dir(m.Home), m.root, m.Top, filepath.Dir(m.Top), m.at("data/home"), m.at("data/root"),
		"/proc", "/proc/self", "/sys", "/dev", "/dev/null", "/run", "/etc", "/etc/passwd", "/home", "/root", "/tmp", "/var", "/usr", "/boot", m.at("data/fifo"), m.at("data/s"),
	} {
		if path == "/boot" {
			if _, err := os.Stat(path); err != nil {
				continue
			}
		}
		b, err := m.Share(path)
		if problem.KindOf(err) != problem.Refused {
			t.Errorf("%q: %+v, %v", path, b, err)
		}
	}
	if _, err := m.Share("relative"); problem.KindOf(err) != problem.Usage {
		t.Error(err)
	}
	if _, err := m.Share(m.at("absent")); problem.KindOf(err) != problem.NotFound || !strings.Contains(err.Error(), "absent") {
		t.Error(err)
	}
}

func TestASharedFolderWithASocketOrAPipeInItIsRefusedByName(t *testing.T) {
	for name, make := range map[string]func(path string) error{
		"socket": func(path string) error {
			l, err := net.Listen("unix", path)
			if err == nil {
				t.Cleanup(func() { l.Close() })
			}
			return err
		},
		"pipe": func(path string) error { return syscall.Mkfifo(path, 0o600) },
	} {
		t.Run(name, func(t *testing.T) {
			dir, err := os.MkdirTemp("", "share") // a socket's path is short
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { os.RemoveAll(dir) })
			if err := os.MkdirAll(filepath.Join(dir, "a/b"), 0o755); err != nil {
				t.Fatal(err)
			}
			p := sandbox.Person{Home: "/nonexistent"}
			if _, err := p.Share(dir); err != nil {
				t.Fatalf("the control: %v", err)
			}
			if err := make(filepath.Join(dir, "a/b/way.out")); err != nil {
				t.Fatal(err)
			}
			if _, err := p.Share(dir); problem.KindOf(err) != problem.Refused || !strings.Contains(err.Error(), "way.out") {
				t.Errorf("got %v", err)
			}
		})
	}
}
