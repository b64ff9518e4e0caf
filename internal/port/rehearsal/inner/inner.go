// Package inner runs the programs of a rehearsal as plain children: a sandbox starts no sandbox, and a rehearsal is one already.
//
// It confines nothing. So it is never built where no sandbox stands around it, and it runs our own adapters alone.
package inner

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"sallyport/internal/base/problem"
	"sallyport/internal/port/rehearsal"
	"sallyport/internal/port/sandbox"
)

// Driver is the port's, for a rehearsal.
type Driver struct{ self string }

var _ sandbox.Driver = (*Driver)(nil)

// errElsewhere is why there is no such driver outside.
var errElsewhere = problem.New(problem.Refused, "programs run without a sandbox of their own in a rehearsal alone, and this is none")

// New returns a driver for the daemon of a home that is rehearsed; self is its program. Errors: problem.Refused anywhere else.
func New(home, self string) (*Driver, error) {
	if !rehearsal.Here(home) {
		return nil, errElsewhere
	}
	return &Driver{self}, nil
}

// Probe says that nothing is confined here.
func (*Driver) Probe(context.Context) (sandbox.Report, error) {
	return sandbox.Report{Driver: "inner", Freezer: "signal", Memory: "none"}, nil
}

// SelfTest has nothing to try: what holds is the sandbox around all of it.
func (*Driver) SelfTest(context.Context) ([]sandbox.Try, error) { return nil, nil }

// leftMax is how long what a program left behind may hold its output open, until it is ended too.
const leftMax = time.Second

// Start runs one of our own adapters as a child, in the folder that a sandbox would show at the spec's.
func (d *Driver) Start(ctx context.Context, spec sandbox.Spec) (sandbox.Process, error) {
	if len(spec.Argv) == 0 || spec.Argv[0] != sandbox.SelfPath {
		return nil, problem.Errorf(problem.Unavailable, "sallyport agent list", "a rehearsal runs no program but sallyport's own")
	}
	home := spec.Home
	if home == "" {
		home = os.TempDir()
	}
	cmd := exec.Command(d.self, spec.Argv[1:]...)
	cmd.Dir = shownAt(spec, spec.Dir)
	cmd.Env = append(slices.Clone(spec.Env), "HOME="+home)
	cmd.Stdout, cmd.Stderr = spec.Stdout, spec.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.WaitDelay = leftMax
	var in io.WriteCloser
	var err error
	if spec.Stdin != nil {
		if in, err = cmd.StdinPipe(); err != nil {
			return nil, fmt.Errorf("start %q: %w", spec.ID, err)
		}
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %q: %w", spec.ID, err)
	}

	p := &process{cmd: cmd, limits: spec.Limits.OrDefault(), done: make(chan struct{})}
	if in != nil {
		go func() { // ends with what it reads from, which whoever started this closes
			_, _ = io.Copy(in, spec.Stdin) // a program that is gone reads no more
			_ = in.Close()
		}()
	}
	p.alarm = time.AfterFunc(p.limits.Timeout, p.expire)
	uncancel := context.AfterFunc(ctx, p.Kill)
	go func() {
		defer close(p.done)
		err := cmd.Wait()
		p.alarm.Stop()
		uncancel()
		p.finish(err)
	}()
	return p, nil
}

// shownAt is where the folder lies that a sandbox would show at a path.
func shownAt(spec sandbox.Spec, path string) string {
	if path == "" {
		path = sandbox.Mountpoint
	}
	at, root := spec.Tree.Dir, sandbox.Mountpoint
	for _, b := range slices.Concat(spec.Own, spec.Binds) {
		if sandbox.Below(path, b.Target) && len(b.Target) > len(root) {
			at, root = b.Source, b.Target
		}
	}
	return at + strings.TrimPrefix(path, root)
}

// process is a running child with what it starts, as far as that stays in its group.
type process struct {
	cmd    *exec.Cmd
	limits sandbox.Limits
	alarm  *time.Timer
	done   chan struct{}

	mu    sync.Mutex
	over  bool
	limit *sandbox.Limit
	exit  sandbox.Exit
	err   error
}

func (p *process) finish(waited error) {
	_ = unix.Kill(-p.cmd.Process.Pid, unix.SIGKILL) // what it left behind; none is as good
	p.mu.Lock()
	defer p.mu.Unlock()
	p.over = true
	p.exit = sandbox.Exit{Code: p.cmd.ProcessState.ExitCode(), Limit: p.limit}
	if status, ok := p.cmd.ProcessState.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		p.exit.Code, p.exit.Signal = -1, unix.SignalName(status.Signal())
	}
	var gone *exec.ExitError
	if waited != nil && !errors.As(waited, &gone) && !errors.Is(waited, exec.ErrWaitDelay) {
		p.err = waited
	}
}

func (p *process) expire() {
	p.mu.Lock()
	p.limit = &sandbox.Limit{Name: sandbox.Time, Value: p.limits.Timeout.String(), Observed: "more"}
	p.mu.Unlock()
	p.Kill()
}

// Wait blocks until the program has ended.
func (p *process) Wait() (sandbox.Exit, error) {
	<-p.done
	return p.exit, p.err
}

// signal reaches every process of the group.
func (p *process) signal(s unix.Signal) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.over {
		return sandbox.ErrEnded
	}
	return unix.Kill(-p.cmd.Process.Pid, s)
}

// Kill ends it.
func (p *process) Kill() { _ = p.signal(unix.SIGKILL) } // gone already is as good

// Freeze stops it.
func (p *process) Freeze(context.Context) error { return p.signal(unix.SIGSTOP) }

// Thaw lets it go on.
func (p *process) Thaw() error {
	if err := p.signal(unix.SIGCONT); !errors.Is(err, sandbox.ErrEnded) {
		return err
	}
	return nil
}

// errNone says that a child has no sandbox to look into.
var errNone = problem.New(problem.Unavailable, "a program of a rehearsal has no sandbox of its own")

// View fails: there is nothing to look into.
func (*process) View(context.Context) (*os.File, error) { return nil, errNone }

// Attach fails: nobody works beside a rehearsal.
func (*process) Attach(context.Context, []string, []string, string, *os.File) (sandbox.Attached, error) {
	return nil, errNone
}
