package bwrap

import (
	"context"
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"sallyport/internal/base/problem"
)

// keepView takes the folder that init opened before anything of the agent's ran. A name in
// /proc would not do: init is not dumpable, so its root is closed to an ordinary user.
func (p *process) keepView(from sender) error {
	if len(from.fds) != 1 {
		return fmt.Errorf("the sandbox's init came with %d descriptors, not with its workspace", len(from.fds))
	}
	fd, err := unix.FcntlInt(uintptr(from.fds[0]), unix.F_DUPFD_CLOEXEC, 3)
	if err != nil {
		return fmt.Errorf("hold the sandbox's workspace: %w", err)
	}
	file := os.NewFile(uintptr(fd), "workspace")
	var st unix.Stat_t
	if err = unix.Fstat(fd, &st); err == nil && st.Mode&unix.S_IFMT != unix.S_IFDIR {
		err = errors.New("it is no folder")
	}
	if err != nil {
		file.Close()
		return fmt.Errorf("hold the sandbox's workspace: %w", err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.over {
		file.Close()
		return errors.New("the sandbox has ended")
	}
	p.view = file
	return nil
}

// dropView lets go of the workspace: whoever holds it keeps it mounted.
func (p *process) dropView() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.view != nil {
		p.view.Close()
		p.view = nil
	}
}

// View returns a descriptor of the workspace's top, the caller's to close.
func (p *process) View(ctx context.Context) (*os.File, error) {
	if err := ctx.Err(); err != nil {
		return nil, context.Cause(ctx)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.over || p.view == nil {
		return nil, problem.Errorf(problem.Conflict, "", "the sandbox has ended")
	}
	fd, err := unix.FcntlInt(p.view.Fd(), unix.F_DUPFD_CLOEXEC, 3)
	if err != nil {
		return nil, fmt.Errorf("view the sandbox's workspace: %w", err)
	}
	return os.NewFile(uintptr(fd), "workspace"), nil
}
