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

// idmaps keeps user namespaces, each of which maps one owner to another: base layers that belong to root, and folders that
// belong to a person, are shown to a sandbox's owner through it.
type idmaps struct {
	mu   sync.Mutex
	open map[idmap]*os.File
}

type idmap struct{ from, to sandbox.Owner }

// idmapsMax is how many are kept: each is a descriptor, and every change may have an owner of its own.
const idmapsMax = 8

// mapping returns the namespace's descriptor, which the caller does not close.
func (m *idmaps) mapping(s *starter, self string, of idmap) (*os.File, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if f, ok := m.open[of]; ok {
		return f, nil
	}
	var f *os.File
	var err error
	s.do(func() { f, err = newMapping(self, of) })
	if err != nil {
		return nil, fmt.Errorf("make an id map for uid %d: %w", of.to.UID, err)
	}
	if m.open == nil {
		m.open = map[idmap]*os.File{}
	}
	for old := range m.open {
		if len(m.open) < idmapsMax {
			break
		}
		delete(m.open, old) // closed by its finalizer: a start on another goroutine may still pass it on
	}
	m.open[of] = f
	return f, nil
}

// newMapping starts a child in a new user namespace that does nothing but wait,
// takes the namespace and ends the child.
func newMapping(self string, of idmap) (_ *os.File, err error) {
	cmd := exec.Command(self, "runner", "hold")
	cmd.Env = []string{}
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Pdeathsig:   syscall.SIGKILL,
		Cloneflags:  syscall.CLONE_NEWUSER,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: int(of.from.UID), HostID: int(of.to.UID), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: int(of.from.GID), HostID: int(of.to.GID), Size: 1}},
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
