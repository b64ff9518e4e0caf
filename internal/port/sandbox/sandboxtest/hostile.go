package sandboxtest

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// try is something that must not work inside. Its script ends with status 0 if it
// worked. The control is the same script outside, or inside where it is allowed:
// it must work there, or the try proves nothing.
type try struct {
	name    string
	script  string
	inside  []string // environment of the try
	outside []string // environment of the control; nil = the same
	control string   // another script as the control; it runs outside unless allowed is set
	allowed bool     // the control runs inside
	root    bool     // the control needs root
	amd64   bool     // the try is in this machine's code
	lacking int      // exit status of the control where a kernel has nothing of the kind; 0 = every kernel has
	egress  string   // the try has a way out
}

func testHostile(t *testing.T, s Setup) {
	need(t, "python3")
	secret := filepath.Join(s.Root, "secret")
	must(t, os.WriteFile(secret, []byte("planted\n"), 0o644))
	call := func(body string) string {
		return "/usr/bin/python3 -c '\nimport ctypes, os, sys, socket\nlibc = ctypes.CDLL(None, use_errno=True)\n" + body + "'"
	}
	tries := []try{
		{name: "remount /usr for writing", script: `mount -o remount,rw,bind /usr && echo x > /usr/x`, control: "test -x /usr/bin/mount"},
		{name: "read the package database", script: `head -c 1 /var/lib/dpkg/status || head -c 1 /var/lib/rpm/*`},
		{name: "see other homes", script: `test -n "$(ls -A "$T" | grep -v '^agent$')"`, inside: []string{"T=/home"}, outside: []string{"T=" + s.Root}},
		{name: "see the host's host name", script: `test "$(uname -n)" = "` + hostname() + `"`},
		{name: "climb out by parents", script: `cat ../../../../../../../../"$T"`, inside: []string{"T=" + secret}},
		{name: "make a user namespace by clone", script: call("r = libc.syscall(56, 0x10000000 | 17, 0, 0, 0, 0)\nif r == 0: os._exit(0)\nsys.exit(r < 0)")},
		{name: "make a namespace with clone3", script: call("a = (ctypes.c_uint64 * 11)(0x10000000, 0, 0, 0, 17)\nr = libc.syscall(435, a, 88)\nif r == 0: os._exit(0)\nsys.exit(r < 0)")},
		{name: "type into a terminal", script: call("import pty, fcntl\nm, s = pty.openpty()\nos.setsid()\nfcntl.ioctl(s, 0x540E, 0)\nr = libc.syscall(16, s, ctypes.c_ulong(0x5412 | (1 << 32)), b\"x\")\nsys.exit(r != 0)"),
			control: "true"},
		{name: "lower the limits of its init", script: call("own = (ctypes.c_uint64 * 2)(64, 64)\nsys.exit(libc.prlimit(1, 7, own, None) != 0)"), allowed: true,
			control: call("own = (ctypes.c_uint64 * 2)(64, 64)\nassert libc.prlimit(0, 7, own, None) == 0\nassert libc.prlimit(1, 7, None, own) == 0\nassert own[0] > 64")},
		{name: "make a vsock socket", script: call("sys.exit(libc.syscall(41, ctypes.c_ulong(40 | (1 << 32)), 1, 0) < 0)"), allowed: true,
			control: call("for f in (1, 2, 10, 16): assert libc.syscall(41, f, 3 if f == 16 else 1, 0) >= 0, f")},
		{name: "make a packet socket", script: call("sys.exit(libc.syscall(41, 17, 3, 0) < 0)"), root: true},
		{name: "call the kernel as a 32-bit program", amd64: true, lacking: 128 + int(syscall.SIGSEGV), script: call("import mmap\nm = mmap.mmap(-1, 4096, prot=7)\n" +
			// mov eax, 20 (getpid); int 0x80; ret
			"m.write(bytes([0xb8, 20, 0, 0, 0, 0xcd, 0x80, 0xc3]))\nf = ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(m)))\nos._exit(f() <= 0)")},
	}
	t.Run("self-test", func(t *testing.T) { s.holdSelfTest(t) })
	for _, y := range tries {
		t.Run(y.name, func(t *testing.T) { s.hold(t, y) })
	}
	t.Run("have the machine's program for core dumps run", s.holdCore)
	t.Run("inherit a descriptor", func(t *testing.T) { s.holdDescriptors(t, secret) })
}

// holdCore wants the one limit at which the kernel starts no such program, whatever a program in the sandbox sets.
func (s Setup) holdCore(t *testing.T) {
	var own syscall.Rlimit
	must(t, syscall.Getrlimit(syscall.RLIMIT_CORE, &own))
	if own.Max == 0 && os.Geteuid() != 0 {
		t.Skip("SKIPPED: this user may set no limit of core dumps")
	}
	got := s.run(t, s.Spec(t, "exec python3 -c '\n"+strings.Join([]string{
		"import ctypes, os, resource",
		"libc = ctypes.CDLL(None, use_errno=True)",
		"resource.setrlimit(resource.RLIMIT_CORE, (0, 0))",
		"none = (ctypes.c_uint64 * 2)(0, 0)",
		"setrlimit = {\"x86_64\": 160, \"aarch64\": 164}.get(os.uname().machine)",
		"assert not setrlimit or libc.syscall(setrlimit, resource.RLIMIT_CORE, none) == 0",
		"print(resource.getrlimit(resource.RLIMIT_CORE))",
		"resource.setrlimit(resource.RLIMIT_FSIZE, (7, 7))",
		"print(resource.getrlimit(resource.RLIMIT_FSIZE))",
	}, "\n")+"'"))
	if got.Code != 0 || got.out != "(1, 1)\n(7, 7)\n" {
		t.Errorf("%+v", got)
	}
}

// unproven are the tries whose control a machine may forbid to everybody, or to who is not root.
var unproven = []string{"find a way to another machine", "set up io_uring", "load a program into the kernel", "watch the machine's performance",
	"use the kernel's keys", "reach control groups", "gain rights by a set-uid program", "connect to a socket file of the host",
	"see what passes on a network"}

// holdSelfTest wants what a doctor would show: everything fails inside, and works at its control. What
// the self-test has is not tried again below.
func (s Setup) holdSelfTest(t *testing.T) {
	tries, err := s.Driver.SelfTest(t.Context())
	must(t, err)
	if len(tries) < 25 {
		t.Errorf("only %d tries", len(tries))
	}
	for _, y := range tries {
		if !y.Held {
			t.Errorf("%s: %s", y.Name, y.Detail)
		}
		if y.Control == "" && !slices.Contains(unproven, y.Name) {
			t.Errorf("%s: the control does not work: %s", y.Name, y.Detail)
		}
	}
}

func hostname() string {
	name, err := os.Hostname()
	if err != nil {
		return "?"
	}
	return name
}

// hold runs the control and the try.
func (s Setup) hold(t *testing.T, y try) {
	t.Helper()
	if y.amd64 && runtime.GOARCH != "amd64" {
		t.Skip("SKIPPED: the try is in amd64 code")
	}
	control, env := y.control, y.outside
	if control == "" {
		control = y.script
	}
	if env == nil {
		env = y.inside
	}
	switch {
	case y.root && os.Geteuid() != 0:
		t.Log("without root this fails outside too; the try is made all the same")
	case y.allowed:
		if got := s.run(t, s.Spec(t, control)); got.Code != 0 {
			t.Fatalf("the control does not work inside: %+v", got)
		}
	default:
		out, err := outside(t.Context(), control, env...)
		var exit *exec.ExitError
		if errors.As(err, &exit) && exit.ExitCode() == y.lacking {
			t.Log("this machine's kernel has nothing of the kind; the try is made all the same")
		} else if err != nil {
			t.Fatalf("the control does not work outside: %v: %s", err, out)
		}
	}
	spec := s.Spec(t, y.script)
	spec.Env, spec.Egress = append(spec.Env, y.inside...), y.egress
	if got := s.run(t, spec); got.Code == 0 {
		t.Errorf("it worked inside: %+v", got)
	}
}

// holdDescriptors leaves a descriptor open across exec and looks for it inside.
func (s Setup) holdDescriptors(t *testing.T, path string) {
	fd, err := syscall.Open(path, syscall.O_RDONLY, 0) // without O_CLOEXEC
	must(t, err)
	defer syscall.Close(fd)
	const list = `for f in /proc/self/fd/*; do readlink $f; done; true`
	out, err := outside(t.Context(), list)
	must(t, err)
	if !strings.Contains(out, path) {
		t.Fatalf("the control does not inherit it either: %s", out)
	}
	got := s.run(t, s.Spec(t, `ls -l /proc/self/fd | grep -c -e '-> ' `))
	if got.out != "4\n" { // 0, 1, 2 and the folder that ls reads
		more := s.run(t, s.Spec(t, `ls -l /proc/self/fd`))
		t.Errorf("inside: %s", more.out)
	}
}
