package bwrap

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"sync"
	"syscall"

	"sallyport/internal/port/sandbox"
)

// idmaps keeps one user namespace per owner, which maps the host's root to that
// owner: base layers that belong to root are shown through it.
type idmaps struct {
	mu   sync.Mutex
	open map[sandbox.Owner]*os.File
}

// idmapsMax is how many are kept: each is a descriptor, and every change may have an owner of its own.
const idmapsMax = 8

// mapping returns the namespace's descriptor, which the caller does not close.
func (m *idmaps) mapping(s *starter, self string, owner sandbox.Owner) (*os.File, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if f, ok := m.open[owner]; ok {
		return f, nil
	}
	var f *os.File
	var err error
	s.do(func() { f, err = newMapping(self, owner) })
	if err != nil {
		return nil, fmt.Errorf("make an id map for uid %d: %w", owner.UID, err)
	}
	if m.open == nil {
		m.open = map[sandbox.Owner]*os.File{}
	}
	for old := range m.open {
		if len(m.open) < idmapsMax {
			break
		}
		delete(m.open, old) // closed by its finalizer: a start on another goroutine may still pass it on
	}
	m.open[owner] = f
	return f, nil
}

// newMapping starts a child in a new user namespace that does nothing but wait,
// takes the namespace and ends the child.
func newMapping(self string, owner sandbox.Owner) (_ *os.File, err error) {
	cmd := exec.Command(self, "runner", "hold")
	cmd.Env = []string{}
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Pdeathsig:   syscall.SIGKILL,
		Cloneflags:  syscall.CLONE_NEWUSER,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: int(owner.UID), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: int(owner.GID), Size: 1}},
	}
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, errors.Join(err, stdin.Close())
	}
	f, err := os.Open(fmt.Sprintf("/proc/%d/ns/user", cmd.Process.Pid))
	_ = cmd.Process.Kill() // its status says no more than that
	_ = cmd.Wait()
	return f, err
}
