package client

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"sallyport/internal/base/deadman"
	"sallyport/internal/base/disk"
	"sallyport/internal/base/inert"
	"sallyport/internal/base/keeper"
	"sallyport/internal/base/problem"
	"sallyport/internal/door/api"
)

// Starter starts a home's daemon where none runs.
type Starter struct {
	Person
	Self string        // this program's absolute path
	Wait time.Duration // how long a daemon may take to answer; 0 = 30 s
	Ops  disk.Ops
}

const (
	waitDefault = 30 * time.Second
	pollTime    = 15 * time.Millisecond
	endsMax     = 3 // how often a daemon may end between two questions: one on trial is started twice
	logTail     = 4 << 10
)

// ErrTaken refuses to serve a home that another daemon serves.
var ErrTaken = problem.New(problem.Conflict, "another daemon serves this home")

// ExitTaken is the exit status of `daemon run` for ErrTaken: whoever started it may wait for the other.
const ExitTaken = keeper.ExitTaken

// Dial returns a client of the home's daemon if one answers; ErrNoDaemon otherwise.
func (p Person) Dial(ctx context.Context, home string) (*Client, error) {
	first, unusable := p.Socket(home)
	for _, path := range p.Sockets(home) {
		err := p.ours(path)
		elsewhere := unusable != nil || path != first // a place that is not ours counts only where ours would be
		if errors.Is(err, fs.ErrNotExist) || err != nil && elsewhere {
			continue
		}
		if err != nil {
			return nil, err
		}
		c := New(path)
		c.trusted = func(uid int) bool { return uid == p.UID || uid == 0 }
		d, err := Call(ctx, c, api.DaemonShow, api.Nothing{})
		c.home, c.pid = home, d.PID
		ended := errors.Is(err, ErrNoDaemon) || errors.Is(err, errGone) // perhaps between the dial and the answer
		if ended || errors.Is(err, errStranger) && elsewhere {
			continue
		}
		if err != nil {
			return nil, err
		}
		if d.Home != home {
			return nil, problem.Errorf(problem.Internal, "sallyport daemon stop --home "+d.Home, "the daemon on %q serves home %q, not %q", path, d.Home, home)
		}
		return c, nil
	}
	return nil, fmt.Errorf("home %q: %w", home, ErrNoDaemon)
}

// dialAsUser returns a client of the second socket of a home that is another user's, where its owner or root listens; ErrNoDaemon if nobody does.
func (p Person) dialAsUser(ctx context.Context, home string, whose int) (*Client, error) {
	for _, path := range listening(usersEnd(home)) {
		c := New(path)
		c.home, c.guest, c.trusted = home, true, func(uid int) bool { return uid == whose || uid == 0 }
		d, err := Call(ctx, c, api.DaemonShow, api.Nothing{})
		if err != nil || d.Home != home { // another user may have put one there: it is none
			continue
		}
		return c, c.sameBuild(ctx, home)
	}
	return nil, fmt.Errorf("home %q: %w", home, ErrNoDaemon)
}

// Find returns a client of the home's daemon if one answers p, and starts none: in a home that is another user's, the one that lets p in.
// Errors: ErrNoDaemon if none runs; problem.Unavailable where only the home's owner can tell.
func (p Person) Find(ctx context.Context, home string) (*Client, error) {
	c, err := p.Dial(ctx, home)
	whose, others := p.ownerOf(home)
	if !others || !errors.Is(err, ErrNoDaemon) {
		return c, err
	}
	if c, err := p.dialAsUser(ctx, home, whose); err == nil || !errors.Is(err, ErrNoDaemon) {
		return c, err
	}
	if unix.Access(home, unix.W_OK) != nil {
		return nil, problem.Errorf(problem.Unavailable, "sallyport chat --help",
			"the home %q is another user's (uid %d), and no daemon answers you there. They let you in by: sallyport person add NAME --uid %d, and have it answer by: sallyport serve", home, whose, p.UID)
	}
	return nil, err
}

// Ensure returns a client of the home's daemon, starting it first if none answers: one of this
// program's own build, or one that a keeper has and that speaks this program's version or one next to it.
// A socket that a killed daemon left is the new daemon's to remove. With the error that it is another
// comes a client of it all the same, for who only looks, and for what any version answers.
func (s Starter) Ensure(ctx context.Context, home string) (*Client, error) {
	c, err := s.Find(ctx, home)
	if c != nil && c.Guest() { // the daemon is another user's, and not s's to start again
		return c, err
	}
	if errors.Is(err, ErrNoDaemon) {
		c, err = s.start(ctx, home)
	}
	if err != nil {
		return nil, err
	}
	err = c.sameBuild(ctx, home)
	for again := 0; again < endsMax && (errors.Is(err, ErrNoDaemon) || errors.Is(err, errGone)); again++ { // it ended since it answered
		if c, err = s.start(ctx, home); err != nil {
			return nil, err
		}
		err = c.sameBuild(ctx, home)
	}
	if err != nil && c.Other() == nil {
		return c, err
	}
	c.restart = func(ctx context.Context) error {
		again, err := s.Ensure(ctx, home)
		if err != nil && (again == nil || again.Other() == nil) {
			return err
		}
		c.move(again)
		return nil
	}
	return c, err
}

// sameBuild refuses a daemon of another build before anything is asked of it. What a keeper runs is a release, and another build may talk with
// it, in the version that both speak.
func (c *Client) sameBuild(ctx context.Context, home string) error {
	d, err := Call(ctx, c, api.DaemonShow, api.Nothing{})
	if err != nil {
		return err
	}
	version, common := api.Common(d.API)
	if common && d.Keeper != nil || d.API == api.Version && d.Build == api.Build() {
		c.speak(version, nil)
		return nil
	}
	differs := api.Differ(home, d.Build, strconv.Itoa(d.API), api.Build(), strconv.Itoa(api.Version))
	err = problem.Errorf(problem.Unavailable, "sallyport daemon stop", "%s", differs)
	if d.Working > 0 {
		err = problem.Errorf(problem.Unavailable, "sallyport daemon stop --wait", "%s, and is at work: %s", differs, Doing(d))
	}
	if d.Keeper != nil { // on trial it cannot be stopped, and has to be answered all the same
		c.speak(0, err)
	}
	return err
}

// speak has c say a version from now on; other is why few verbs are answered.
func (c *Client) speak(version int, other error) {
	c.mu.Lock()
	c.speaks, c.other = version, other
	c.mu.Unlock()
}

// Doing says in words what a daemon is doing.
func Doing(d api.Daemon) string {
	if d.Working == 0 {
		return "nothing"
	}
	var named []string
	for _, text := range d.Doing {
		named = append(named, inert.Line(text))
	}
	switch more := d.Working - len(named); {
	case len(named) == 0: // an older daemon names none
		return fmt.Sprintf("%d changes", d.Working)
	case more > 0:
		return fmt.Sprintf("%s and %d more", strings.Join(named, ", "), more)
	}
	return strings.Join(named, ", ")
}

// LogPath is where a daemon that was started by itself writes.
func LogPath(home string) string { return filepath.Join(home, ".state", "logs", "daemon.log") }

// start runs `daemon run` apart from this process and waits until it answers.
func (s Starter) start(ctx context.Context, home string) (*Client, error) {
	if err := NoProject(home); err != nil {
		return nil, err
	}
	if _, err := s.Socket(home); err != nil {
		return nil, err
	}
	if c, err := s.awaitKept(ctx, home); !errors.Is(err, ErrNoDaemon) { // without a turn: others may wait, too
		return c, err
	}
	log, err := s.openLog(home)
	if err != nil {
		return nil, err
	}
	defer log.Close() // the daemon has its own descriptor
	turn, err := s.turn(ctx, filepath.Dir(LogPath(home)))
	if err != nil {
		return nil, err
	}
	defer turn.Close() // gives the turn to the next
	if c, err := s.Dial(ctx, home); !errors.Is(err, ErrNoDaemon) {
		return c, err // somebody else's turn was before ours
	}
	if keeper.Kept(home) {
		return s.awaitKept(ctx, home)
	}
	if hostMoves(home) {
		return nil, problem.Errorf(problem.Unavailable, "sallyport serve "+inert.Path(home),
			"a change of the host is under way in %q, and nobody keeps that home up: only sallyport serve starts a daemon there, and it goes on with the change or goes back", home)
	}
	if deadman.Disarmed(s.Getenv) {
		return nil, problem.Errorf(problem.Conflict, "sallyport daemon status --home "+inert.Path(home),
			"none is started for %q: what the keeper wanted a daemon for is done", home)
	}
	began, err := log.Seek(0, 2)
	if err != nil {
		return nil, fmt.Errorf("read the daemon's log: %w", err)
	}
	cmd := exec.Command(s.Self, "daemon", "run", "--home", home)
	cmd.Args[0] = "sallyport"
	cmd.Dir = "/"
	cmd.Env = s.DaemonEnvironment()
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // a signal to this terminal is none of its business
	if err := cmd.Start(); err != nil {
		return nil, problem.Errorf(problem.Unavailable, "sallyport doctor", "start the daemon %q: %w", s.Self, err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }() // ends with the child, or with this process, whichever is first
	return s.await(ctx, home, ended, began)
}

// openLog makes the home's log folder and opens the log; it is the first thing written
// in a home, so a home that cannot be written is told here.
func (s Starter) openLog(home string) (*os.File, error) {
	path := LogPath(home)
	var log *os.File
	err := s.Ops.Do("home:log", func() error {
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			return err
		}
		var err error
		log, err = os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o600)
		return err
	})
	if err != nil {
		return nil, problem.Errorf(problem.Unavailable, "sallyport doctor --home "+inert.Path(home),
			"the home %q cannot be written: %w", home, err)
	}
	return log, nil
}

// turn lets one process at a time start the home's daemon. It is a kernel lock on the log
// folder, which ends with the process, however that dies, and is not the daemon's to inherit.
func (s Starter) turn(ctx context.Context, dir string) (*os.File, error) {
	folder, err := os.Open(dir)
	if err != nil {
		return nil, fmt.Errorf("start the daemon: %w", err)
	}
	deadline := time.NewTimer(s.wait())
	defer deadline.Stop()
	poll := time.NewTicker(pollTime)
	defer poll.Stop()
	for {
		err := unix.Flock(int(folder.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if err == nil {
			return folder, nil
		}
		if !errors.Is(err, unix.EWOULDBLOCK) && !errors.Is(err, unix.EINTR) {
			return nil, errors.Join(fmt.Errorf("lock %q: %w", dir, err), folder.Close())
		}
		select {
		case <-ctx.Done():
			return nil, errors.Join(context.Cause(ctx), folder.Close())
		case <-deadline.C:
			return nil, errors.Join(problem.Errorf(problem.Unavailable, "sallyport daemon status",
				"another process has been starting a daemon for %s, in %q", s.wait(), dir), folder.Close())
		case <-poll.C:
		}
	}
}

// wait is how long a daemon may take to answer.
func (s Starter) wait() time.Duration {
	if s.Wait <= 0 {
		return waitDefault
	}
	return s.Wait
}

// DaemonEnvironment is what a daemon of this person's is started with.
func (p Person) DaemonEnvironment() []string {
	var env []string
	for _, name := range keeper.Passed {
		if v := p.Getenv(name); v != "" {
			env = append(env, name+"="+v)
		}
	}
	return env
}

// await polls until the daemon answers. A child that lost the home to another daemon does
// not end the wait: the other is about to answer.
func (s Starter) await(ctx context.Context, home string, ended <-chan error, began int64) (*Client, error) {
	deadline := time.NewTimer(s.wait())
	defer deadline.Stop()
	poll := time.NewTicker(pollTime)
	defer poll.Stop()
	for {
		c, err := s.Dial(ctx, home)
		if !errors.Is(err, ErrNoDaemon) {
			return c, err
		}
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case err := <-ended:
			var exit *exec.ExitError
			if !errors.As(err, &exit) || exit.ExitCode() != ExitTaken {
				return nil, silent(home, "ended at once", began)
			}
			ended = nil
		case <-deadline.C:
			return nil, silent(home, "did not answer within "+s.wait().String(), began)
		case <-poll.C:
		}
	}
}

// hostWait is how long the daemon of a home may be away while a change of the host is under way there: its trial has ten minutes, and going
// back takes a while.
const hostWait = 15 * time.Minute

// awaitKept waits for the daemon of a home that a keeper has, longer while the host changes; ErrNoDaemon once none has it any more.
func (s Starter) awaitKept(ctx context.Context, home string) (*Client, error) {
	deadline := time.NewTimer(s.wait())
	defer deadline.Stop()
	poll := time.NewTicker(pollTime)
	defer poll.Stop()
	began := time.Now()
	for keeper.Kept(home) {
		c, err := s.Dial(ctx, home)
		if !errors.Is(err, ErrNoDaemon) {
			return c, err
		}
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-deadline.C:
			if hostMoves(home) && time.Since(began) < hostWait {
				deadline.Reset(s.wait())
				continue
			}
			return nil, problem.Errorf(problem.Unavailable, "lslocks",
				"sallyport serve keeps the home %q, and its daemon did not answer within %s: it logs why where it was started", home, s.wait())
		case <-poll.C:
		}
	}
	return nil, ErrNoDaemon
}

// silent says that the daemon did not come up, with its own last words and the way out they name.
func silent(home, how string, began int64) error {
	text, next := lastWords(home, began)
	if text != "" {
		how += ": " + text
	}
	if next == "" {
		next = "tail -n 20 " + inert.Path(LogPath(home))
	}
	return problem.Errorf(problem.Unavailable, next, "the daemon of home %q %s", home, how)
}

// lastWords returns what a home's daemon said when it ended with a problem: its text, and
// the command to run next. A log whose last line is no problem, as after a kill, has none,
// but for a line of any other program, which is returned as the text. A disk without room
// for last words speaks for itself. All of it is harmless to show.
func lastWords(home string, began int64) (text, next string) {
	lines := tail(LogPath(home), began)
	if n := len(lines); n > 1 && strings.HasPrefix(lines[n-1], "next: ") {
		next = inert.Line(strings.TrimPrefix(lines[n-1], "next: "))
		lines = lines[:n-1]
	}
	if n := len(lines); n > 0 && !strings.HasPrefix(lines[n-1], "time=") {
		text = inert.Line(strings.TrimPrefix(lines[n-1], "sallyport: "))
	}
	var fs unix.Statfs_t
	if next == "" && unix.Statfs(home, &fs) == nil && int64(fs.Bavail)*fs.Bsize < logTail {
		return fmt.Sprintf("the disk of the home %q is full", home), "df -h " + inert.Path(home)
	}
	return text, next
}

// tail returns the last lines written to a file after an offset.
func tail(path string, began int64) []string {
	f, err := os.Open(path)
	if err != nil {
		return nil
	}
	defer f.Close() // read only
	size, err := f.Seek(0, 2)
	if err != nil {
		return nil
	}
	raw := make([]byte, min(max(size-began, 0), logTail))
	if _, err := f.ReadAt(raw, size-int64(len(raw))); err != nil {
		return nil
	}
	raw = bytes.TrimSpace(raw)
	if len(raw) == 0 {
		return nil
	}
	return strings.Split(string(raw), "\n")
}
