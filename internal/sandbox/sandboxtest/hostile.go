package sandboxtest

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
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
}

func testHostile(t *testing.T, s Setup) {
	need(t, "python3")
	secret := filepath.Join(s.Root, "secret")
	must(t, os.WriteFile(secret, []byte("planted\n"), 0o644))
	open := filepath.Join(s.Root, "open")
	must(t, os.Mkdir(open, 0o777))
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	defer listener.Close()
	abstract, err := net.Listen("unix", "@sallyport-test-"+strconv.Itoa(os.Getpid()))
	must(t, err)
	defer abstract.Close()
	for _, l := range []net.Listener{listener, abstract} {
		go func() {
			for {
				c, err := l.Accept()
				if err != nil {
					return
				}
				c.Close()
			}
		}()
	}
	victim := exec.Command("/bin/sleep", marker())
	must(t, victim.Start())
	defer func() { victim.Process.Kill(); victim.Wait() }()
	pid := "VICTIM=" + strconv.Itoa(victim.Process.Pid)
	port := "PORT=" + strconv.Itoa(listener.Addr().(*net.TCPAddr).Port)

	call := func(body string) string {
		return "/usr/bin/python3 -c '\nimport ctypes, os, sys, socket\nlibc = ctypes.CDLL(None, use_errno=True)\n" + body + "'"
	}
	tries := []try{
		{name: "write to /usr", script: `echo x > "$T/x"`, inside: []string{"T=/usr"}, outside: []string{"T=" + open}},
		{name: "write to /etc", script: `echo x > "$T/x"`, inside: []string{"T=/etc"}, outside: []string{"T=" + open}},
		{name: "remount /usr for writing", script: `mount -o remount,rw,bind /usr && echo x > /usr/x`, control: "test -x /usr/bin/mount"},
		{name: "set the core pattern", script: call("os.open(\"/proc/sys/kernel/core_pattern\", os.O_WRONLY)"), root: true},
		{name: "read a file of the host", script: `cat "$T"`, inside: []string{"T=" + secret}},
		{name: "read the package database", script: `head -c 1 /var/lib/dpkg/status || head -c 1 /var/lib/rpm/*`},
		{name: "see the host's run folder", script: `ls -d /run/*`},
		{name: "see other homes", script: `test -n "$(ls -A "$T" | grep -v '^agent$')"`, inside: []string{"T=/home"}, outside: []string{"T=" + s.Root}},
		{name: "see the host's host name", script: `test "$(uname -n)" = "` + hostname() + `"`},
		{name: "climb out by parents", script: `cat ../../../../../../../../"$T"`, inside: []string{"T=" + secret}},
		{name: "connect to the host's loopback", script: call("socket.create_connection((\"127.0.0.1\", int(os.environ[\"PORT\"])), 2)"), inside: []string{port}},
		{name: "connect to an abstract socket of the host",
			script: call("s = socket.socket(socket.AF_UNIX); s.connect(\"\\0\" + os.environ[\"NAME\"])"), inside: []string{"NAME=" + abstract.Addr().String()[1:]}},
		{name: "signal a process of the host", script: `kill -0 "$VICTIM"`, inside: []string{pid}},
		{name: "list the host's processes", script: `test -e "/proc/$VICTIM"`, inside: []string{pid}},
		{name: "read init's descriptors", script: `ls "/proc/$P/fd"`, inside: []string{"P=1"}, outside: []string{"P=self"}},
		{name: "open init's memory", script: call("os.open(\"/proc/%s/mem\" % os.environ[\"P\"], os.O_RDONLY)"), inside: []string{"P=1"}, outside: []string{"P=self"}},
		{name: "trace init", script: call("sys.exit(libc.ptrace(16, 1, 0, 0) != 0)"), allowed: true,
			control: call("pid = os.fork()\nif pid == 0:\n  import time; time.sleep(100)\nr = libc.ptrace(16, pid, 0, 0)\nos.kill(pid, 9)\nsys.exit(r != 0)")},
		{name: "mount", script: call("sys.exit(libc.mount(b\"tmpfs\", b\"/tmp\", b\"tmpfs\", 0, None) != 0)"),
			control: "unshare -rm mount -t tmpfs tmpfs /mnt"},
		{name: "make a user namespace", script: call("sys.exit(libc.unshare(0x10000000) != 0)")},
		{name: "make a user namespace by clone", script: call("r = libc.syscall(56, 0x10000000 | 17, 0, 0, 0, 0)\nif r == 0: os._exit(0)\nsys.exit(r < 0)")},
		{name: "make a namespace with clone3", script: call("a = (ctypes.c_uint64 * 11)(0x10000000, 0, 0, 0, 17)\nr = libc.syscall(435, a, 88)\nif r == 0: os._exit(0)\nsys.exit(r < 0)")},
		{name: "type into a terminal", script: call("import pty, fcntl\nm, s = pty.openpty()\nos.setsid()\nfcntl.ioctl(s, 0x540E, 0)\nr = libc.syscall(16, s, ctypes.c_ulong(0x5412 | (1 << 32)), b\"x\")\nsys.exit(r != 0)"),
			control: "true"},
		{name: "make a vsock socket", script: call("sys.exit(libc.syscall(41, ctypes.c_ulong(40 | (1 << 32)), 1, 0) < 0)"), allowed: true,
			control: call("for f in (1, 2, 10, 16): assert libc.syscall(41, f, 3 if f == 16 else 1, 0) >= 0, f")},
		{name: "make a packet socket", script: call("sys.exit(libc.syscall(41, 17, 3, 0) < 0)"), root: true},
		{name: "use the kernel's keys", script: call("sys.exit(libc.syscall(250, 0, -3, 1, 0, 0) < 0)")},
		{name: "set up io_uring", script: call("p = (ctypes.c_uint8 * 120)()\nsys.exit(libc.syscall(425, 1, p) < 0)")},
		{name: "call the kernel as a 32-bit program", amd64: true, script: call("import mmap\nm = mmap.mmap(-1, 4096, prot=7)\n" +
			// mov eax, 20 (getpid); int 0x80; ret
			"m.write(bytes([0xb8, 20, 0, 0, 0, 0xcd, 0x80, 0xc3]))\nf = ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(m)))\nos._exit(f() <= 0)")},
		{name: "reach control groups", script: `ls -d /sys/fs/cgroup/*`},
		{name: "become somebody else", script: call("os.setuid(0)"), root: true},
		{name: "switch new privileges on", script: `grep -q 'NoNewPrivs:.0' /proc/self/status`},
		{name: "hold a capability", script: `grep -E 'Cap(Inh|Prm|Eff|Bnd|Amb):' /proc/self/status | grep -qv '0000000000000000$'`, root: true},
		{name: "run without a filter", script: `grep -q 'Seccomp:.0' /proc/self/status`},
	}
	for _, y := range tries {
		t.Run(y.name, func(t *testing.T) { s.hold(t, y) })
	}
	t.Run("inherit a descriptor", func(t *testing.T) { s.holdDescriptors(t, secret) })
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
		if out, err := outside(t.Context(), control, env...); err != nil {
			t.Fatalf("the control does not work outside: %v: %s", err, out)
		}
	}
	spec := s.Spec(t, y.script)
	spec.Env = append(spec.Env, y.inside...)
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
