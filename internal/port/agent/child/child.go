// Package child starts an agent's own program inside a sandbox, reads what it writes line by line, and ends it with all
// that it started. Engines stand on it: what an agent writes is bounded here before anybody reads it.
package child

import (
	"bufio"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"

	"sallyport/internal/base/inert"
)

// Options say what to start. Argv[0] is an absolute path; the environment is this process's own with Env added.
type Options struct {
	Argv []string
	Env  []string
	Dir  string // "" = where this process stands
	// LineBytesMax is the longest line of its stdout; 0 = LineBytesMax.
	LineBytesMax int
	// Grace is how long it has to end by itself once its stdin is closed and it was told to; 0 = Grace.
	Grace time.Duration
}

const (
	// LineBytesMax holds a message that quotes a large file.
	LineBytesMax = 8 << 20
	// Grace is short: a session that is over holds a person up.
	Grace = 2 * time.Second
	// saidBytesMax is how much of the end of its stderr is kept.
	saidBytesMax = 4 << 10
)

// ErrLine says that a program wrote a line that is longer than anything it may mean.
var ErrLine = errors.New("a line of its output is too long")

// Child is a program that runs.
type Child struct {
	Stdin io.WriteCloser

	cmd    *exec.Cmd
	mark   string // in the environment of it and of all that it started
	grace  time.Duration
	out    *bufio.Reader
	outEnd *os.File
	max    int
	said   tail
	done   chan struct{} // closed once it is gone
	err    error         // of its end; only after done
	close  sync.Once
	closed error
}

// markName is the environment variable by which all that a program started is found again.
const markName = "SALLYPORT_AGENT"

// Start starts a program in a process group of its own.
func Start(o Options) (*Child, error) {
	if len(o.Argv) == 0 {
		return nil, errors.New("no program is named")
	}
	raw := make([]byte, 8)
	_, _ = rand.Read(raw) // it never fails
	c := &Child{mark: markName + "=" + hex.EncodeToString(raw), grace: o.Grace, max: o.LineBytesMax, done: make(chan struct{})}
	if c.grace <= 0 {
		c.grace = Grace
	}
	if c.max <= 0 {
		c.max = LineBytesMax
	}
	c.cmd = exec.Command(o.Argv[0], o.Argv[1:]...)
	c.cmd.Env = append(append(os.Environ(), o.Env...), c.mark)
	c.cmd.Dir = o.Dir
	c.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	c.cmd.Stderr = &c.said
	c.cmd.WaitDelay = time.Second // what it left behind may hold its stderr
	var err error
	if c.Stdin, err = c.cmd.StdinPipe(); err != nil {
		return nil, fmt.Errorf("start %q: %w", o.Argv[0], err)
	}
	// A pipe of our own: that of os/exec is closed when the program ends, with its last words in it.
	r, w, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("start %q: %w", o.Argv[0], err)
	}
	c.cmd.Stdout = w
	err = c.cmd.Start()
	w.Close()
	if err != nil {
		r.Close()
		return nil, fmt.Errorf("start %q: %w", o.Argv[0], err)
	}
	c.outEnd, c.out = r, bufio.NewReaderSize(r, 64<<10)
	go func() { // ends with the program
		c.err = c.cmd.Wait()
		close(c.done)
	}()
	return c, nil
}

// Line returns the next line that the program wrote, without its newline; it is good until the next call. Errors: io.EOF
// when it has closed its output, ErrLine for one that is too long, after which nothing more can be read.
func (c *Child) Line() ([]byte, error) {
	var long []byte
	for {
		piece, err := c.out.ReadSlice('\n')
		if len(long)+len(piece) > c.max {
			return nil, ErrLine
		}
		switch {
		case err == nil && long == nil:
			return piece[:len(piece)-1], nil
		case err == nil:
			long = append(long, piece...)
			return long[:len(long)-1], nil
		case errors.Is(err, bufio.ErrBufferFull):
			long = append(long, piece...)
		case len(long)+len(piece) > 0 && errors.Is(err, io.EOF):
			return append(long, piece...), nil
		case errors.Is(err, os.ErrClosed):
			return nil, io.EOF
		default:
			return nil, err
		}
	}
}

// Out is its stdout, for a protocol that has bounds of its own; who reads it calls no Line.
func (c *Child) Out() *bufio.Reader { return c.out }

// Done is closed when the program is gone.
func (c *Child) Done() <-chan struct{} { return c.done }

// Fate says in one line for a person how a program that is gone has ended; only after Done.
func (c *Child) Fate() string {
	how := "it ended with status 0"
	var failed *exec.ExitError
	if errors.As(c.err, &failed) {
		how = "it ended with " + failed.String()
	} else if c.err != nil && !errors.Is(c.err, exec.ErrWaitDelay) {
		how = c.err.Error()
	}
	if said := c.Said(); said != "" {
		how += ": " + said
	}
	return how
}

// lastWordsMax bounds in bytes what is said of a program's last line.
const lastWordsMax = 300

// Said is the last line that it wrote to its stderr, in short.
func (c *Child) Said() string {
	lines := strings.Split(strings.TrimSpace(c.said.String()), "\n")
	return inert.Cut(strings.ToValidUTF8(strings.TrimSpace(lines[len(lines)-1]), "\uFFFD"), lastWordsMax)
}

// Signal sends a signal to the program alone.
func (c *Child) Signal(s os.Signal) error { return c.cmd.Process.Signal(s) }

// Close ends the program and all that it started: its stdin ends and it is asked to end; what is left after the grace is
// killed. It returns once they are gone; closing twice is as good as once.
func (c *Child) Close() error {
	c.close.Do(func() {
		_ = c.Stdin.Close() // gone already is as good
		_ = c.cmd.Process.Signal(syscall.SIGTERM)
		limit := time.NewTimer(c.grace)
		defer limit.Stop()
		select {
		case <-c.done:
		case <-limit.C:
		}
		c.closed = c.sweep()
		_ = c.outEnd.Close()
		<-c.done
	})
	return c.closed
}

// tail keeps the end of what is written to it.
type tail struct {
	mu  sync.Mutex
	buf []byte
}

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.buf = append(t.buf, p[max(0, len(p)-saidBytesMax):]...)
	if over := len(t.buf) - saidBytesMax; over > 0 {
		t.buf = append(t.buf[:0], t.buf[over:]...)
	}
	return len(p), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(t.buf)
}
