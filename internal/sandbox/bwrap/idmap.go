package bwrap

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"sallyport/internal/sandbox"
)

// idmaps keeps one user namespace per owner, which maps the host's root to that
// owner: base layers that belong to root are shown through it.
type idmaps struct {
	mu   sync.Mutex
	open map[sandbox.Owner]*os.File
}

// mapping returns the namespace's descriptor; it stays open for the life of the process.
func (m *idmaps) mapping(s *starter, owner sandbox.Owner) (*os.File, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if f, ok := m.open[owner]; ok {
		return f, nil
	}
	var f *os.File
	var err error
	s.do(func() { f, err = newMapping(owner) })
	if err != nil {
		return nil, fmt.Errorf("make an id map for uid %d: %w", owner.UID, err)
	}
	if m.open == nil {
		m.open = map[sandbox.Owner]*os.File{}
	}
	m.open[owner] = f
	return f, nil
}

// newMapping starts a traced child in a new user namespace, which stops before
// its first instruction, takes the namespace and ends the child: it never runs.
func newMapping(owner sandbox.Owner) (*os.File, error) {
	pid, err := syscall.ForkExec("/proc/self/exe", []string{"sallyport"}, &syscall.ProcAttr{
		Sys: &syscall.SysProcAttr{
			Ptrace:      true,
			Pdeathsig:   syscall.SIGKILL,
			Cloneflags:  syscall.CLONE_NEWUSER,
			UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: int(owner.UID), Size: 1}},
			GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: int(owner.GID), Size: 1}},
		},
	})
	if err != nil {
		return nil, err
	}
	defer func() {
		_ = unix.Kill(pid, unix.SIGKILL)
		reap(pid)
	}()
	var status unix.WaitStatus
	for {
		_, err := unix.Wait4(pid, &status, 0, nil)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			return nil, err
		}
		break
	}
	if !status.Stopped() {
		return nil, errors.New("the child did not stop")
	}
	return os.Open(fmt.Sprintf("/proc/%d/ns/user", pid))
}

func reap(pid int) {
	for {
		if _, err := unix.Wait4(pid, nil, 0, nil); !errors.Is(err, unix.EINTR) {
			return
		}
	}
}
