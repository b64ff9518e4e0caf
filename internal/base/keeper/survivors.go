package keeper

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"sallyport/internal/base/deadman"
	"sallyport/internal/base/disk"
	"sallyport/internal/base/release"
)

// What going back takes at the most.
const (
	survivorsMax = 10 * time.Second // until all that a daemon has left behind is gone
	revertMax    = 10 * time.Minute // one try of the old release's way back
	revertTail   = 4 << 10          // bytes of what it says that are told
)

// processes is the family of this process.
type processes struct {
	tell  func(format string, a ...any)
	fence *fence
}

// start starts a daemon: one on trial within the limits, where there are any. unlimited is why there are none.
func (p processes) start(home, digest string, hello Hello, onTrial bool, unlimited error) (child, error) {
	switch {
	case !onTrial:
		p.leave()
	case p.fence.none():
		p.tell("memory and processes of the version on trial have no limits: %v", unlimited)
	default:
		c, err := start(home, digest, hello, p.fence.start)
		if err == nil {
			return c, nil
		}
		p.tell("%v; it is tried without limits of memory and processes", err)
		hello.Limits = Limits{}
	}
	return start(home, digest, hello, (*exec.Cmd).Start)
}

// leave takes the fence away once the daemon in it is no more on trial, and has ended.
func (p processes) leave() {
	if err := p.fence.leave(); err != nil {
		p.tell("%v", err)
	}
}

// lift takes the limits away, for the version in them stays.
func (p processes) lift() {
	if err := p.fence.lift(); err != nil {
		p.tell("lift the limits of memory and processes: %v", err)
	}
}

func (p processes) reached() string { return p.fence.reached() }

// adopt has the kernel give this process what its children leave behind, so that it can be found, or no longer. Outside of a host
// change a daemon's leavings are none of the keeper's business: services that a person restarted are among them.
func (p processes) adopt(yes bool) {
	const setChildSubreaper = 36
	on := uintptr(0)
	if yes {
		on = 1
	}
	if _, _, errno := syscall.Syscall(syscall.SYS_PRCTL, setChildSubreaper, on, 0); errno != 0 {
		p.tell("what a daemon leaves behind cannot be found: %v", errno)
	}
}

// reap takes children away that have ended, but the daemon, which somebody waits for.
func (p processes) reap(daemon child) {
	for _, pid := range children() {
		if pid != daemon.is.PID {
			_, _ = syscall.Wait4(pid, nil, syscall.WNOHANG, nil)
		}
	}
}

func (p processes) endSurvivors(daemon child) {
	if err := errors.Join(p.fence.end(), endSurvivors(daemon.is)); err != nil {
		p.tell("%v", err)
	}
}

// children returns the numbers of this process's children, of every thread. Each is there, or waits to be taken away, until this
// process itself waits for it: so a number is good.
func children() (pids []int) {
	paths, _ := filepath.Glob("/proc/self/task/*/children")
	for _, path := range paths {
		raw, _ := os.ReadFile(path) // a thread may have ended meanwhile
		for _, field := range strings.Fields(string(raw)) {
			if pid, err := strconv.Atoi(field); err == nil {
				pids = append(pids, pid)
			}
		}
	}
	return pids
}

// endSurvivors ends what a daemon of this process has left behind: all children that began no earlier than it did, and theirs, which
// become children as their parents end. It waits until they are gone.
func endSurvivors(daemon deadman.Process) error {
	if daemon.PID == 0 {
		return nil
	}
	for began := time.Now(); ; time.Sleep(time.Millisecond) {
		left := 0
		for _, pid := range children() {
			is, err := deadman.Look(pid)
			if err != nil || is.Start < daemon.Start {
				continue
			}
			_ = syscall.Kill(pid, syscall.SIGKILL)
			_, _ = syscall.Wait4(pid, nil, syscall.WNOHANG, nil)
			left++
		}
		switch {
		case left == 0:
			return nil
		case time.Since(began) > survivorsMax:
			return fmt.Errorf("%d processes that a daemon left behind do not end", left)
		}
	}
}

// revert runs the old release's own way back once, from the copy that no change can reach.
func revert(ctx context.Context, home string, r Record) error {
	program, err := open(r.Old, old(home, disk.Ops{}), release.In(home, disk.Ops{}))
	if err != nil {
		return err
	}
	defer program.Close()
	ctx, cancel := context.WithTimeoutCause(ctx, revertMax, fmt.Errorf("it took longer than %s", revertMax))
	defer cancel()
	out := &tail{max: revertTail}
	cmd := exec.CommandContext(ctx, fmt.Sprint("/proc/self/fd/", pipeAt), "daemon", "revert", "--home", home)
	cmd.Args[0], cmd.Dir = "sallyport", "/"
	cmd.Stdout, cmd.Stderr, cmd.ExtraFiles = out, out, []*os.File{program}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL}
	cmd.WaitDelay = time.Second // for one that it leaves behind, with its output open
	if err = cmd.Start(); err != nil {
		return err
	}
	is, _ := deadman.Look(cmd.Process.Pid)
	err = cmd.Wait()
	left := endSurvivors(is)
	if cmd.ProcessState.Success() { // whatever of it does not end
		_, _ = os.Stderr.Write(out.last) // what could not come back is told there alone
		return nil
	}
	return fmt.Errorf("%w: %q", errors.Join(err, context.Cause(ctx), left), bytes.TrimSpace(out.last))
}

// tail keeps the last of what is written to it.
type tail struct {
	max  int
	last []byte
}

func (t *tail) Write(p []byte) (int, error) {
	t.last = append(t.last, p...)
	t.last = t.last[max(0, len(t.last)-t.max):]
	return len(p), nil
}
