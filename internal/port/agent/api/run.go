package api

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"
)

const (
	runUsual   = 2 * time.Minute
	runMax     = 10 * time.Minute
	runHeadMax = 12 << 10 // bytes of the beginning of an output
	runTailMax = 28 << 10 // and of its end
)

// runLimit is how long a command may take.
func runLimit(a values) time.Duration {
	if n := a.number("seconds"); n > 0 {
		return min(time.Duration(min(n, int(runMax/time.Second)))*time.Second, runMax)
	}
	return runUsual
}

// run runs a command in a process group of its own, which ends with it.
func run(ctx context.Context, w *workshop, a values) (string, error) {
	command := a.text("command")
	if strings.TrimSpace(command) == "" || strings.ContainsRune(command, 0) {
		return "", errors.New("the command is empty")
	}
	limit := runLimit(a)
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer newPatience(limit, func() { cancel(errTime) }).Stop()
	cmd := exec.CommandContext(ctx, "/bin/sh", "-c", command)
	cmd.Dir = w.dir
	cmd.Env = append(os.Environ(), w.env...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	group := func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.Cancel = group
	cmd.WaitDelay = time.Second // what left the group may hold its output
	var out middle
	cmd.Stdout, cmd.Stderr = &out, &out
	if ctx.Err() != nil {
		return "", errInterrupted
	}
	if err := cmd.Start(); err != nil {
		return "", fmt.Errorf("the shell cannot be started: %w", err)
	}
	err := cmd.Wait()
	_ = group() // what it left behind; gone already is as good
	said := out.String()
	var status *exec.ExitError
	switch {
	case errors.Is(context.Cause(ctx), errTime):
		return said, fmt.Errorf("(the command was ended after %s, its limit)", limit)
	case ctx.Err() != nil:
		return said, errInterrupted
	case errors.As(err, &status) && status.Exited():
		return said, fmt.Errorf("(exit status %d)", status.ExitCode())
	case errors.As(err, &status):
		return said, fmt.Errorf("(a signal ended the command: %w)", status)
	case err != nil && !errors.Is(err, exec.ErrWaitDelay):
		return said, fmt.Errorf("(%w)", err)
	case said == "":
		return "(exit status 0, no output)", nil
	}
	return said, nil
}

var (
	errTime        = errors.New("its time is over")
	errInterrupted = errors.New("(the command was interrupted)")
)

// middle keeps the beginning and the end of what is written to it.
type middle struct {
	mu   sync.Mutex
	head []byte
	tail []byte
	over int // bytes between them
}

func (m *middle) Write(p []byte) (int, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	n := len(p)
	if room := runHeadMax - len(m.head); room > 0 {
		take := min(room, len(p))
		m.head = append(m.head, p[:take]...)
		p = p[take:]
	}
	m.tail = append(m.tail, p[max(0, len(p)-runTailMax):]...)
	m.over += max(0, len(p)-runTailMax)
	if more := len(m.tail) - runTailMax; more > 0 {
		m.over += more
		m.tail = append(m.tail[:0], m.tail[more:]...)
	}
	return n, nil
}

func (m *middle) String() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.over == 0 {
		return string(m.head) + string(m.tail)
	}
	return fmt.Sprintf("%s\n… (%d bytes left out)\n%s", m.head, m.over, m.tail)
}
