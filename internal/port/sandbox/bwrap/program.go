package bwrap

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"

	"golang.org/x/sys/unix"

	"sallyport/internal/base/inert"
	"sallyport/internal/base/problem"
	"sallyport/internal/port/sandbox"
)

// runnerSum is the SHA-256, in hex, of the sallyport-runner that was built with this program;
// set by the linker: -ldflags "-X sallyport/internal/port/sandbox/bwrap.runnerSum=…". Empty: none was.
var runnerSum string

// runnerName is the small program's name, beside Config.Self.
const runnerName = "sallyport-runner"

// small is the program that stands in for Config.Self around and in sandboxes: it can do
// nothing else, and so starts in a fraction of the time. It is used only if it is, byte for
// byte, the one that was built with this program, and if nobody could change it unseen.
type small struct {
	mu   sync.Mutex
	sum  string // as runnerSum
	seen mark   // the file whose content was read
	err  error  // what was wrong with it
}

// mark tells one content of a file from another: who writes to a file changes its ctime.
type mark struct {
	device, inode uint64
	size          int64
	changed       unix.Timespec
	mode, uid     uint32
}

// program returns what is executed as launcher and init: the small program, or Self and
// why the small one is not used. It looks at the file at each start, and reads it when it is another.
func (d *Driver) program() (path string, why error) {
	if d.small.sum == "" {
		return d.config.Self, nil
	}
	path = filepath.Join(filepath.Dir(d.config.Self), runnerName)
	if err := d.small.examine(path); err != nil {
		return d.config.Self, err
	}
	return path, nil
}

// examine returns what is wrong with the file at path; a link is never followed.
func (s *small) examine(path string) error {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return problem.Errorf(problem.Unavailable, "make build", "open %q: %w", path, err)
	}
	f := os.NewFile(uintptr(fd), path)
	defer f.Close()
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return fmt.Errorf("look at %q: %w", path, err)
	}
	m := mark{device: st.Dev, inode: st.Ino, size: st.Size, changed: st.Ctim, mode: st.Mode, uid: st.Uid}
	s.mu.Lock()
	defer s.mu.Unlock()
	if m != s.seen {
		s.err = s.judge(f, m)
		s.seen = m
	}
	return s.err
}

// runnerBytesMax bounds what is read of a file that only has the right name.
const runnerBytesMax = 64 << 20

func (s *small) judge(f *os.File, m mark) error {
	no := func(fix, format string, args ...any) error {
		return problem.Errorf(problem.Unavailable, fix, "%q "+format, append([]any{f.Name()}, args...)...)
	}
	switch {
	case m.mode&unix.S_IFMT != unix.S_IFREG || m.mode&0o111 == 0:
		return no("make build", "is no program")
	case m.uid != 0 && int(m.uid) != os.Geteuid():
		return no("sudo chown root "+inert.Path(f.Name()), "belongs to uid %d, who could change it", m.uid)
	case m.mode&0o022 != 0:
		return no("chmod go-w "+inert.Path(f.Name()), "can be changed by others (mode %04o)", m.mode&0o7777)
	case m.size > runnerBytesMax:
		return no("make build", "has %d bytes", m.size)
	}
	hash := sha256.New()
	if _, err := io.Copy(hash, io.LimitReader(f, runnerBytesMax)); err != nil {
		return fmt.Errorf("read %q: %w", f.Name(), err)
	}
	if hex.EncodeToString(hash.Sum(nil)) != s.sum {
		return no("make build", "was not built with this program")
	}
	return nil
}

// checkRunner is a line of the probe's report. Without the small program all works as well, only later.
func (d *Driver) checkRunner() sandbox.Check {
	path, why := d.program()
	c := sandbox.Check{Name: "runner", OK: why == nil, Detail: path}
	switch {
	case errors.Is(why, os.ErrNotExist):
		c.Detail, c.Fix = runnerName+" is not beside this program: sandboxes start more slowly", "make build"
	case why != nil:
		p := problem.Of(why)
		c.Detail, c.Fix = p.Text+": sallyport does not use it, and sandboxes start more slowly", p.Next
	case d.small.sum == "":
		c.Detail = "sallyport itself, because it was built without sallyport-runner: sandboxes start more slowly"
	}
	return c
}
