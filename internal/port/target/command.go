package target

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// shell runs words as `sh -c` does, but for a umask that is the same whoever started the daemon.
const shell = `umask 022; exec /bin/sh -c "$1"`

// noted is shell, and writes its own number to descriptor 3 before anything of the words runs.
const noted = `echo $$ >&3 && exec 3>&- || exit 126; ` + shell

const (
	floodBytesMax = 16 << 20 // what a command may write while it runs
	lookEvery     = 50 * time.Millisecond
)

// Command is a command of the host's own: a restart, a probe, a notification. It sees no descriptor, no
// terminal and no variable of the daemon's but Env.
type Command struct {
	Words string
	Dir   string
	Env   []string
	As    *syscall.Credential // nil = as the daemon
	Stdin *os.File            // nil = /dev/null
	Out   *os.File            // a file, never a pipe: what the command leaves running holds up nobody
	Note  *os.File            // gets its number first; nil = nobody asks for it
	Limit time.Duration       // then its process group is killed
	Stays bool                // what it leaves running stays
}

// The ways in which a command comes to no good end; Run's errors wrap one of them, or say why it could not be started.
var (
	errExit  = errors.New("the command failed")
	errTime  = errors.New("the command took too long")
	errFlood = errors.New("the command wrote too much")
)

// Run runs the command to its end, in a session of its own. It returns ctx's cause if ctx ends first; then, and at the end
// of its time, its process group is killed. If the daemon dies its shell does too; what that has started goes on.
func (c Command) Run(ctx context.Context) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	runtime.LockOSThread() // whose end is the parent's death for Pdeathsig
	defer runtime.UnlockOSThread()
	if err := unix.CloseRange(3, math.MaxUint32, unix.CLOSE_RANGE_CLOEXEC); err != nil {
		return fmt.Errorf("close the descriptors of the daemon for the command: %w", err)
	}
	words := shell
	if c.Note != nil {
		words = noted
	}
	cmd := exec.Command("/bin/sh", "-c", words, "sh", c.Words)
	if c.Note != nil {
		cmd.ExtraFiles = []*os.File{c.Note}
	}
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = c.Dir, c.Env, c.Out, c.Out
	if c.Stdin != nil {
		cmd.Stdin = c.Stdin
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Credential: c.As, Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start the command: %w", err)
	}
	over := make(chan error, 1)
	go func() { over <- ended(cmd.Process.Pid) }() // ends with the command
	why := c.await(ctx, over)
	if why != nil || !c.Stays {
		_ = unix.Kill(-cmd.Process.Pid, unix.SIGKILL) // nobody has its number before Wait; an empty group is no error
	}
	if why != nil {
		<-over
	}
	err := cmd.Wait()
	var exit *exec.ExitError
	switch {
	case why != nil:
		return why
	case errors.As(err, &exit):
		return fmt.Errorf("%w: %w", errExit, exit)
	}
	return err
}

// await waits for the end of the command, of ctx, or of what it may use.
func (c Command) await(ctx context.Context, over chan error) error {
	limit := time.NewTimer(c.Limit)
	defer limit.Stop()
	look := time.NewTicker(lookEvery)
	defer look.Stop()
	for {
		select {
		case err := <-over:
			over <- nil
			return err
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-limit.C:
			return fmt.Errorf("%w: it did not end within %s", errTime, c.Limit)
		case <-look.C:
			if st, err := c.Out.Stat(); err == nil && st.Size() > floodBytesMax {
				return fmt.Errorf("%w: more than %d MiB", errFlood, floodBytesMax>>20)
			}
		}
	}
}

// ended waits until a child of ours has ended and leaves it to be waited for: until then its number is its own.
func ended(pid int) error {
	for {
		err := unix.Waitid(unix.P_PID, pid, nil, unix.WEXITED|unix.WNOWAIT, nil)
		if !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}

// lineMax is how much of a command's last words is told.
const lineMax = 300

// lastLine is the last line of what a command wrote that says anything; "" if none does.
func lastLine(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	last := []rune(strings.TrimSpace(lines[len(lines)-1]))
	if len(last) > lineMax {
		return string(last[:lineMax-1]) + "…"
	}
	return string(last)
}

// tail is the end of a file, at most bytesMax of it, in whole lines where it is cut: half a secret is not known to be one.
func tail(f *os.File, bytesMax int64) (string, error) {
	st, err := f.Stat()
	if err != nil {
		return "", err
	}
	from := max(st.Size()-bytesMax, 0)
	buf, err := io.ReadAll(io.NewSectionReader(f, from, bytesMax))
	if err != nil {
		return "", err
	}
	text := string(buf)
	if from > 0 {
		_, text, _ = strings.Cut(text, "\n")
	}
	return text, nil
}
