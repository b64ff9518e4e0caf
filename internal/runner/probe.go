package runner

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"sallyport/internal/sandbox"
)

// probe tries inside a sandbox what must fail, and the one thing that must work:
// to write the workspace's file. It reports each try; its status is 1 if the
// workspace cannot be written.
func probe(out io.Writer) int {
	checks := []sandbox.Check{
		attempt("identity", holdsNothing),
		attempt("host files", func() error { return only("/", topsInside) }),
		attempt("read-only /usr", func() error { return unwritable("/usr/sallyport-probe", os.O_CREATE) }),
		attempt("read-only /etc", func() error { return unwritable("/etc/passwd", 0) }),
		attempt("read-only /proc/sys", func() error { return unwritable("/proc/sys/kernel/core_pattern", 0) }),
		attempt("no network", noNetwork),
		attempt("no inherited descriptors", noDescriptors),
		attempt("init out of reach", initHidden),
		attempt("no mounts", func() error {
			return mustFail("mount", unix.Mount("tmpfs", "/tmp", "tmpfs", 0, ""))
		}),
		attempt("no new namespaces", func() error {
			return mustFail("unshare", unix.Unshare(unix.CLONE_NEWUSER))
		}),
	}
	if err := os.WriteFile(sandbox.Mountpoint+"/file", []byte("changed\n"), 0o644); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	if err := json.NewEncoder(out).Encode(checks); err != nil {
		return 1
	}
	return 0
}

func attempt(name string, try func() error) sandbox.Check {
	if err := try(); err != nil {
		return sandbox.Check{Name: name, Detail: err.Error(), Fix: "sallyport doctor"}
	}
	return sandbox.Check{Name: name, OK: true, Detail: "tried inside a sandbox"}
}

func mustFail(what string, err error) error {
	if err == nil {
		return errors.New(what + " worked")
	}
	return nil
}

var topsInside = []string{".sallyport", "bin", "dev", "etc", "home", "lib", "lib32", "lib64", "libx32", "proc", "sbin", "tmp", "usr", "var", "workspace"}

func only(dir string, names []string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if !slices.Contains(names, e.Name()) {
			return fmt.Errorf("%q is visible", dir+e.Name())
		}
	}
	return nil
}

func unwritable(path string, flags int) error {
	f, err := os.OpenFile(path, os.O_WRONLY|flags, 0o600)
	if err == nil {
		f.Close()
		return fmt.Errorf("%s can be written", path)
	}
	return nil
}

// holdsNothing reads this process's rights as the kernel shows them.
func holdsNothing() error {
	raw, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return err
	}
	want := map[string]string{"CapInh": "0", "CapPrm": "0", "CapEff": "0", "CapAmb": "0", "CapBnd": "0", "NoNewPrivs": "1", "Seccomp": "2"}
	for line := range strings.Lines(string(raw)) {
		name, value, _ := strings.Cut(line, ":")
		value = strings.TrimLeft(strings.TrimSpace(value), "0")
		if value == "" {
			value = "0"
		}
		if w, ok := want[name]; ok {
			if value != w {
				return fmt.Errorf("%s is %s", name, value)
			}
			delete(want, name)
		}
	}
	if len(want) > 0 {
		return fmt.Errorf("the kernel does not tell %d of its facts", len(want))
	}
	if os.Getuid() == 0 || os.Geteuid() == 0 {
		return errors.New("uid 0")
	}
	return nil
}

func noNetwork() error {
	raw, err := os.ReadFile("/proc/net/dev")
	if err != nil {
		return err
	}
	for line := range strings.Lines(string(raw)) {
		name, _, ok := strings.Cut(line, ":")
		if name = strings.TrimSpace(name); ok && name != "lo" {
			return fmt.Errorf("there is a network interface %q", name)
		}
	}
	return nil
}

func noDescriptors() error {
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return err
	}
	for _, e := range entries {
		fd, err := strconv.Atoi(e.Name())
		if err != nil || fd <= 2 {
			continue
		}
		// What this program opened itself closes on exec; what it inherited does not.
		if flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0); err == nil && flags&unix.FD_CLOEXEC == 0 {
			return fmt.Errorf("descriptor %d came along", fd)
		}
	}
	return nil
}

func initHidden() error {
	if _, err := os.ReadDir("/proc/1/fd"); err == nil {
		return errors.New("its descriptors can be listed")
	}
	if f, err := os.Open("/proc/1/mem"); err == nil {
		f.Close()
		return errors.New("its memory can be opened")
	}
	if err := unix.PtraceAttach(1); err == nil {
		return errors.New("it can be traced")
	}
	return nil
}
