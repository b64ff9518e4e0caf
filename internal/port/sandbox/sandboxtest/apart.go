package sandboxtest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/creack/pty"

	"sallyport/internal/port/sandbox"
)

// spy tries to reach the program whose number stands in the file pid, and prints what it reached. It has the same uid.
const spy = `
import ctypes, os, socket
libc = ctypes.CDLL(None, use_errno=True)
while not os.path.exists("pid"): pass
pid = int(open("pid").read())
proc = "/proc/%d/" % pid
def read(path, n=16): return len(os.read(os.open(path, os.O_RDONLY | os.O_NONBLOCK), n)) > 0
def memory():
    with open(proc + "maps") as f: at = int(f.readline().split("-")[0], 16)
    fd = os.open(proc + "mem", os.O_RDONLY)
    return len(os.pread(fd, 4, at)) == 4
def taken():
    fd = libc.syscall(438, os.pidfd_open(pid), 0, 0) # pidfd_getfd
    return fd >= 0 and os.isatty(fd)
def traced():
    if libc.ptrace(16, pid, 0, 0) < 0: return False # attach
    os.waitpid(pid, 0)
    return libc.ptrace(17, pid, 0, 0) == 0
def typed():
    import fcntl, termios
    fcntl.ioctl(os.open(proc + "fd/0", os.O_RDWR | os.O_NOCTTY), termios.TIOCSTI, b"x")
    return True
def spoken():
    s = socket.socket(socket.AF_UNIX)
    s.connect("\0spied")
    return True
for name, does in (("opens its terminal", lambda: os.open(proc + "fd/0", os.O_RDWR | os.O_NOCTTY) >= 0),
        ("names its terminal", lambda: os.readlink(proc + "fd/1") != ""),
        ("reads its memory", memory), ("takes its descriptor", taken), ("traces it", traced),
        ("reads its environment", lambda: read(proc + "environ")), ("reads its place", lambda: os.readlink(proc + "cwd") != ""),
        ("speaks to it", spoken), ("types into its terminal", typed)):
    try: ok = does()
    except OSError: ok = False
    if ok: print(name)
`

// watched is a person's program on a terminal: it says where it is, listens, and waits for a line.
const watched = `
import os, socket
s = socket.socket(socket.AF_UNIX); s.bind("\0spied"); s.listen(8)
open("pid.new", "w").write(str(os.getpid())); os.rename("pid.new", "pid")
input()
`

// testApart has a program look into one that a person started beside it. The control is the same from a third one,
// which a person started too: to it everything is open but typing, which a filter forbids to all.
func testApart(t *testing.T, s Setup) {
	need(t, "python3")
	spec := s.Spec(t, "")
	spec.Argv = []string{"/usr/bin/python3", "-c", spy + `
open("told.new", "w").write("done"); os.rename("told.new", "told")
while True: libc.pause()`}
	var out lockedBuffer
	spec.Stdout = &out
	spec.Env = append(spec.Env, "PYTHONUNBUFFERED=1")
	p := s.start(t, spec)
	master, slave, err := pty.Open()
	must(t, err)
	defer master.Close()
	defer slave.Close()
	_, err = p.Attach(t.Context(), []string{"/usr/bin/python3", "-c", watched}, nil, "", slave)
	must(t, err)
	eventually(t, "the program has looked", func() bool { _, err := os.Stat(filepath.Join(spec.Tree.Upper, "told")); return err == nil })
	if out.String() != "" {
		t.Errorf("the program beside it:\n%s", out.String())
	}
	reached := s.beside(t, p, spec, spy)
	wants := []string{"names its terminal", "reads its memory", "takes its descriptor", "traces it", "reads its environment", "reads its place", "speaks to it"}
	if os.Geteuid() != 0 { // else the terminal's file is root's
		wants = append(wants, "opens its terminal")
	}
	for _, want := range wants {
		if !strings.Contains(reached, want) {
			t.Errorf("the control no longer %s: %q", want, reached)
		}
	}
	if strings.Contains(reached, "types") {
		t.Errorf("typed into a terminal: %q", reached)
	}
}

// beside runs python beside a program and returns what it printed.
func (s Setup) beside(t *testing.T, p sandbox.Process, spec sandbox.Spec, script string) string {
	t.Helper()
	null, err := os.Open(os.DevNull)
	must(t, err)
	defer null.Close()
	a, err := p.Attach(t.Context(), []string{"/bin/sh", "-c", `exec /usr/bin/python3 -c "$0" > reached`, script}, nil, "", null)
	must(t, err)
	_, err = a.Wait()
	must(t, err)
	text, err := os.ReadFile(filepath.Join(spec.Tree.Upper, "reached"))
	must(t, err)
	return string(text)
}
