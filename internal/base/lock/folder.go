package lock

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"

	"sallyport/internal/base/inert"
	"sallyport/internal/base/problem"
)

// ErrHeld says that another process holds the lock on a folder.
var ErrHeld = problem.New(problem.Unavailable, "another process holds the folder")

// Held is a kernel lock on a folder. It ends with Close, or with the process, however
// that dies; it leaves nothing behind and is not inherited by programs that are started.
//
// It holds a bare descriptor. An os.File would be closed once nobody refers to it any more,
// and the lock would end with it, unseen.
type Held struct {
	path   string
	fd     int
	closed sync.Once
}

// Folder locks the folder at path for this process, at once or not at all. The lock is on
// the folder itself: whoever reaches it by another name meets the same lock, and no file is written.
//
// Errors: one wrapping ErrHeld that names the holder if the kernel tells (also when it is
// this process); problem.NotFound if there is no such folder.
func Folder(path string) (*Held, error) {
	fd, err := open(path)
	if errors.Is(err, syscall.ENOENT) || errors.Is(err, syscall.ENOTDIR) {
		return nil, problem.Errorf(problem.NotFound, "ls -ld "+inert.Path(path), "%q is not a folder: %w", path, err)
	}
	if err != nil {
		return nil, problem.Errorf(problem.Unavailable, "ls -ld "+inert.Path(path), "lock folder %q: %w", path, err)
	}

	err = retry(func() error { return syscall.Flock(fd, syscall.LOCK_EX|syscall.LOCK_NB) })
	if err == nil {
		return &Held{path: path, fd: fd}, nil
	}
	defer syscall.Close(fd)
	if !errors.Is(err, syscall.EWOULDBLOCK) {
		return nil, problem.Errorf(problem.Unavailable, "ls -ld "+inert.Path(path), "lock folder %q: %w", path, err)
	}
	pid, name := holder(fd)
	if pid == 0 {
		return nil, problem.Case(ErrHeld, "lslocks", "another process uses the folder %q", path)
	}
	return nil, problem.Case(ErrHeld, fmt.Sprintf("ps -fp %d", pid), "the folder %q is in use by process %d (%s)", path, pid, name)
}

// Close gives the lock back. Closing again does nothing.
func (h *Held) Close() (err error) {
	h.closed.Do(func() {
		if err = syscall.Close(h.fd); err != nil {
			err = fmt.Errorf("unlock folder %q: %w", h.path, err)
		}
	})
	return err
}

// open opens a folder for locking only. The descriptor closes on exec, so that no child keeps the lock.
func open(path string) (fd int, err error) {
	err = retry(func() error {
		fd, err = syscall.Open(path, syscall.O_RDONLY|syscall.O_DIRECTORY|syscall.O_CLOEXEC, 0)
		return err
	})
	return fd, err
}

func retry(call func() error) error {
	for {
		if err := call(); !errors.Is(err, syscall.EINTR) {
			return err
		}
	}
}

// holder asks the kernel who holds a flock on the file behind fd; 0 if it does not tell,
// as for a holder in another pid namespace.
func holder(fd int) (pid int, name string) {
	var s syscall.Stat_t
	if syscall.Fstat(fd, &s) != nil {
		return 0, ""
	}
	want := fmt.Sprintf("%02x:%02x:%d", major(s.Dev), minor(s.Dev), s.Ino)
	for range 5 { // the list may move under a reader, who then misses a line
		if pid, name := listed(want); pid != 0 {
			return pid, name
		}
	}
	return 0, ""
}

// listed looks for a file, as /proc/locks names it, in that list.
func listed(want string) (pid int, name string) {
	file, err := os.Open("/proc/locks")
	if err != nil {
		return 0, ""
	}
	defer file.Close()

	for lines := bufio.NewScanner(file); lines.Scan(); {
		if pid := lockedBy(lines.Text(), want); pid != 0 {
			return pid, command(pid)
		}
	}
	return 0, ""
}

// lockedBy returns who holds the flock on a file that a line of /proc/locks tells of; 0 if it tells of none, or not by whom.
func lockedBy(line, want string) (pid int) {
	// 1: FLOCK  ADVISORY  WRITE 1234 fe:00:5678 0 EOF
	// 1: -> FLOCK  ADVISORY  WRITE 1235 fe:00:5678 0 EOF: one that waits
	f := strings.Fields(line)
	if len(f) < 6 || f[1] != "FLOCK" || f[5] != want {
		return 0
	}
	pid, _ = strconv.Atoi(f[4])
	return max(pid, 0) // -1 is one of another pid namespace
}

// command returns a process's name, quoted: it is whatever the process called itself.
func command(pid int) string {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid))
	if err != nil {
		return "it has ended meanwhile"
	}
	return strconv.QuoteToASCII(strings.TrimSuffix(string(raw), "\n"))
}

func major(dev uint64) uint64 { return dev>>8&0xfff | dev>>32&^0xfff }
func minor(dev uint64) uint64 { return dev&0xff | dev>>12&^0xff }
