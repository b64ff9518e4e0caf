package bwrap

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"sallyport/internal/base/problem"
	"sallyport/internal/port/sandbox"
)

// process is one running sandbox. Its goroutines end by themselves once the
// launcher's process, and with it everything inside, is gone.
type process struct {
	cmd     *exec.Cmd // the launcher, which became bwrap
	control *net.UnixConn
	tail    *tail
	groups  *groups
	limits  sandbox.Limits
	image   string   // as of the spec
	foreign bool     // its init is of another build
	written []string // folders that its programs write to
	before  written  // in what was there for it: a plain folder, a git directory, mounts
	room    room     // with Spec.Range: of the disk that its programs write to, before they began

	sending  sync.Mutex
	freezing sync.Mutex
	started  chan error
	stopped  chan sandbox.Stopped // answers of init
	thawed   chan struct{}
	output   atomic.Int64
	stderr   ending // of the program, to recognise what the kernel does not count
	copies   sync.WaitGroup

	mu       sync.Mutex
	since    time.Time   // when its program began, or if it has not, its launcher
	alarm    *time.Timer // ends it when its time is over, from the program's begin; until then startPatience does
	init     *os.File    // pidfd of pid 1 inside; nil before it said hello and after the end
	initPID  int         // as the host sees it
	sees     bool        // what programs have open can be looked at from here
	view     *os.File    // the workspace as init sees it (O_PATH); nil as long as init is
	over     bool
	built    time.Duration // of the processor, that went into building the sandbox: it is not the program's
	running  bool          // its program has begun
	asked    bool          // to end, by Kill
	limit    *sandbox.Limit
	ended    *sandbox.Ended
	env      []string // of the sandbox's program
	attached map[int]*attached
	numbers  int

	heard  error         // why no more was heard of init, before its end; read once served is closed
	served chan struct{} // closed when the control socket has nothing more to tell
	done   chan struct{} // closed when nothing is left
	exit   sandbox.Exit
	err    error
}

func newProcess(cmd *exec.Cmd, control *net.UnixConn, t *tail, g *groups) *process {
	return &process{
		cmd: cmd, control: control, tail: t, groups: g,
		started: make(chan error, 1), stopped: make(chan sandbox.Stopped, 1), thawed: make(chan struct{}, 1),
		attached: map[int]*attached{}, numbers: 1,
		served: make(chan struct{}), done: make(chan struct{}),
	}
}

// begin starts what serves the sandbox until its end.
func (p *process) begin(ctx context.Context, spec sandbox.Spec) {
	p.limits, p.image = spec.Limits, spec.Image
	p.written = append(writable(spec.Tree), spec.Home, spec.Cache.Upper)
	for _, b := range spec.Own {
		if b.Writable {
			p.written = append(p.written, b.Source)
		}
	}
	there := []string{spec.Tree.Dir, spec.Tree.GitDir} // what was made for the program is not the program's
	for _, m := range spec.Mounts {
		if m.Writable {
			p.written, there = append(p.written, m.Source), append(there, m.Source)
		}
	}
	p.before = measure(there)
	if spec.Range {
		p.room = room{spec.Tree.Dir, freeOn(spec.Tree.Dir)}
	}
	p.alarm = time.AfterFunc(startPatience+spec.Limits.Timeout, p.expire)
	uncancel := context.AfterFunc(ctx, p.Kill)
	go p.tail.read()
	go p.serve(spec)
	go p.watch()
	go p.watchDisk()
	go func() {
		defer close(p.done)
		awaitLauncher(p.cmd.Process.Pid)
		err := p.cmd.Wait()
		p.alarm.Stop()
		uncancel()
		p.finish(err)
	}()
}

// awaitLauncher waits for the launcher's end, and ends what it left in its group of processes while that still has its number. A bwrap
// that somebody ends between making its child and letting it go on leaves a child that waits for ever, and holds our socket.
func awaitLauncher(pid int) {
	for errors.Is(unix.Waitid(unix.P_PID, pid, nil, unix.WEXITED|unix.WNOWAIT, nil), unix.EINTR) {
		continue
	}
	_ = unix.Kill(-pid, unix.SIGKILL) // nothing left is as good
}

// finish waits until nothing is left, and says how it ended.
func (p *process) finish(waited error) {
	p.mu.Lock()
	fd := p.init
	p.init, p.over = nil, true
	p.mu.Unlock()
	p.dropView()
	if fd != nil {
		// bwrap is gone; its death ends init, and a pid namespace's init is gone last.
		p.err = errors.Join(p.err, awaitGone(fd))
		fd.Close()
	}
	// With init and bwrap gone the socket ends; what init said last is heard before that.
	<-p.served
	_ = p.control.Close()
	p.copies.Wait()
	p.lookAtDisk(nameless{})
	var gone *exec.ExitError
	if waited != nil && !errors.As(waited, &gone) {
		p.err = errors.Join(p.err, waited)
	}
	p.exit = p.judge()
	p.err = errors.Join(p.err, p.heard, p.lastWords(), p.groups.remove())
	var never error
	// What has written has run, and so has what broke a limit of its own; init may have been ended before it could say so.
	if broke := p.exit.Limit; p.output.Load() == 0 && (broke == nil || broke.Name == sandbox.Time) {
		never = errors.New("the sandbox ended before its program ran")
	}
	p.failStart(never)
	p.mu.Lock()
	for _, a := range p.attached {
		a.finish(sandbox.Exit{Code: -1, Signal: "SIGKILL"}, sandbox.ErrEnded)
	}
	p.mu.Unlock()
	<-p.tail.done
}

// lastWords is what init said, or its runtime, when it came to an end that nobody had asked for and no limit explains: that is no end of the
// program's.
func (p *process) lastWords() error {
	p.mu.Lock()
	explained, asked := p.ended != nil || p.limit != nil, p.asked
	p.mu.Unlock()
	if explained || p.exit.Limit != nil {
		return nil
	}

	said := p.said()
	switch {
	case said != "":
		return fmt.Errorf("the sandbox's init ended by itself: %q", said)
	case !asked && p.heard == nil:
		return errors.New("something outside of the sandbox ended it")
	}
	return nil
}

// awaitGone waits until the process of a pidfd has ended.
func awaitGone(fd *os.File) error {
	_ = unix.PidfdSendSignal(int(fd.Fd()), unix.SIGKILL, nil, 0) // gone already is as good
	poll := []unix.PollFd{{Fd: int32(fd.Fd()), Events: unix.POLLIN}}
	deadline := time.Now().Add(time.Minute)
	for time.Now().Before(deadline) {
		n, err := unix.Poll(poll, 1000)
		if err != nil && !errors.Is(err, unix.EINTR) {
			return fmt.Errorf("wait for the end of the sandbox: %w", err)
		}
		if n > 0 {
			return nil
		}
	}
	return errors.New("the sandbox's processes did not end within a minute of being killed")
}

// judge names the limit that was broken, or the program's own end.
func (p *process) judge() sandbox.Exit {
	p.mu.Lock()
	defer p.mu.Unlock()
	exit := sandbox.Exit{Code: -1, Signal: "SIGKILL", Limit: p.limit}
	if p.ended != nil && p.limit == nil {
		exit = exitOf(*p.ended)
	}
	if exit.Limit != nil {
		return exit
	}
	if peak, yes := p.groups.outOfMemory(); yes {
		exit.Limit = p.memoryLimit(outOf(peak))
		return exit
	}
	if exit.Code == 0 {
		return exit
	}
	refused := p.groups.forksRefused()
	switch {
	case refused > 0:
		exit.Limit = p.processesLimit(moreRefused(refused))
	case p.ended == nil: // init itself came to its end
	case p.groups.kind.memory == rlimitWatch && p.starved():
		// What it asked for at once was never there to be counted.
		exit.Limit = p.memoryLimit("the kernel refused more, as stderr says")
	case p.groups.kind.pids != rlimitWatch:
		exit.Limit = p.descriptorsBroken()
	case p.stderr.holds("cannot fork") || p.stderr.holds("fork: "+unix.EAGAIN.Error()):
		// A storm that was over before anyone looked; the kernel keeps no count of it.
		exit.Limit = p.processesLimit("the kernel refused more, as stderr says")
	default:
		exit.Limit = p.descriptorsBroken()
	}
	return exit
}

// descriptorsBroken names the limit of descriptors if a failed program says so with its last words:
// one that ends at once is gone before init has counted, and the kernel keeps no count.
func (p *process) descriptorsBroken() *sandbox.Limit {
	if !p.stderr.holds(unix.EMFILE.Error()) {
		return nil
	}
	return &sandbox.Limit{
		Name: sandbox.Descriptors, Value: strconv.Itoa(p.limits.DescriptorsMax) + " per process", Observed: "the kernel refused more, as stderr says",
	}
}

// starved reports whether a program's last words are that it was refused memory.
func (p *process) starved() bool {
	return slices.ContainsFunc([]string{unix.ENOMEM.Error(), "MemoryError", "runtime: out of memory", "std::bad_alloc"}, p.stderr.holds)
}

func (p *process) memoryLimit(observed string) *sandbox.Limit {
	return &sandbox.Limit{Name: sandbox.Memory, Value: sandbox.Bytes(p.limits.MemoryBytes), Observed: observed}
}

// outOf says what was used when the kernel killed.
func outOf(peak int64) string { return sandbox.Bytes(peak) + ", and the program asked for more" }

func (p *process) processesLimit(observed string) *sandbox.Limit {
	return &sandbox.Limit{Name: sandbox.Processes, Value: strconv.Itoa(p.limits.ProcessesMax), Observed: observed}
}

func moreRefused(n int64) string {
	return "more, of which " + strconv.FormatInt(n, 10) + " were refused"
}

func exitOf(e sandbox.Ended) sandbox.Exit {
	exit := sandbox.Exit{Code: e.Code}
	if e.Signal != 0 {
		exit.Code, exit.Signal = -1, unix.SignalName(unix.Signal(e.Signal))
		if exit.Signal == "" {
			exit.Signal = "signal " + strconv.Itoa(e.Signal)
		}
	}
	return exit
}

// stop ends everything because of a limit; the first one counts.
func (p *process) stop(l *sandbox.Limit) {
	p.mu.Lock()
	if p.limit == nil {
		p.limit = l
	}
	p.mu.Unlock()
	p.Kill()
}

// begun gives the program its time from now on: what it takes to build the sandbox is not the program's.
func (p *process) begun() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.over && !p.running { // whoever says it twice has no more time
		p.since, p.running = time.Now(), true
		p.alarm.Reset(p.limits.Timeout)
	}
}

// expire ends a program that had its time, unless it was just done.
func (p *process) expire() {
	p.mu.Lock()
	ended, took := p.ended != nil || p.over, time.Since(p.since)
	p.mu.Unlock()
	if !ended {
		p.stop(&sandbox.Limit{Name: sandbox.Time, Value: p.limits.Timeout.String(), Observed: took.Round(time.Millisecond).String()})
	}
}

// Kill ends the whole tree: pid 1 of a pid namespace takes all others with it. A sandbox that is not up yet ends when it is, by
// welcome: a bwrap that dies between making its child and letting it go on leaves a child that waits for ever, out of reach of
// every death signal.
func (p *process) Kill() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.over {
		return
	}
	p.asked = true
	endTree(p.init, p.cmd.Process)
}

// abandon ends the tree also where it is not up: nobody waits for that any more. One that is up has not been asked to end by that: it may
// be abandoned because something outside has ended it.
func (p *process) abandon() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.over {
		return
	}
	if p.init == nil {
		p.asked = true
		for _, child := range childrenOf(p.cmd.Process.Pid) {
			_ = unix.Kill(child, unix.SIGKILL) // gone already is as good
		}
		_ = p.cmd.Process.Kill()
	}
	endTree(p.init, p.cmd.Process)
}

// endTree ends a sandbox that is up, which has an init.
func endTree(init *os.File, launcher *os.Process) {
	if init == nil {
		return
	}
	_ = unix.PidfdSendSignal(int(init.Fd()), unix.SIGKILL, nil, 0) // gone already is as good
	_ = launcher.Kill()                                            // a frozen bwrap would never see that init is gone
}

// Wait blocks until nothing of the sandbox is left. An error says that this
// could not be shown, or that something of ours was left behind.
func (p *process) Wait() (sandbox.Exit, error) {
	<-p.done
	return p.exit, p.err
}

// watch looks at what the control groups count.
func (p *process) watch() {
	if p.groups.kind.memory == rlimitWatch && p.groups.kind.pids == rlimitWatch && p.groups.unified == "" {
		return // init does it
	}
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	var used time.Duration
	for {
		select {
		case <-p.done:
			return
		case <-tick.C:
		}
		var ran bool
		if used, ran = p.groups.ran(used); !ran {
			continue
		}
		if peak, yes := p.groups.outOfMemory(); yes {
			p.stop(p.memoryLimit(outOf(peak)))
		}
		if refused := p.groups.forksRefused(); refused > 0 {
			p.stop(p.processesLimit(moreRefused(refused)))
		}
		p.mu.Lock()
		up, burnt := p.init != nil, used-p.built
		p.mu.Unlock()
		if up && burnt > p.limits.Processor {
			p.stop(sandbox.OverProcessor(p.limits.Processor, burnt))
		}
	}
}

// copyOut hands the program's output on until the limit of both streams together.
func (p *process) copyOut(from *os.File, to io.Writer, also io.Writer) {
	defer p.copies.Done()
	defer from.Close()
	buf := make([]byte, 32<<10)
	var lines sandbox.Lines
	for {
		n, err := from.Read(buf)
		if n > 0 {
			total := p.output.Add(lines.Cost(buf[:n]))
			if over := total - p.limits.OutputBytes; over > 0 {
				p.stop(&sandbox.Limit{Name: sandbox.Output, Value: sandbox.Bytes(p.limits.OutputBytes), Observed: "more than " +
					sandbox.Bytes(p.limits.OutputBytes)})
				n = max(0, n-int(over))
			}
			if also != nil {
				_, _ = also.Write(buf[:n]) // the one that counts is to
			}
			if to != nil && n > 0 {
				if _, werr := to.Write(buf[:n]); werr != nil {
					// Who was to read it is gone; the program must not hang on a full pipe.
					to = nil
				}
			}
		}
		if err != nil {
			return
		}
	}
}

// ending keeps the last bytes written.
type ending struct {
	mu   sync.Mutex
	last []byte
}

func (e *ending) Write(b []byte) (int, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.last = append(e.last, b...)
	if over := len(e.last) - tailBytes; over > 0 {
		e.last = bytes.Clone(e.last[over:])
	}
	return len(b), nil
}

func (e *ending) holds(text string) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return bytes.Contains(bytes.ToLower(e.last), bytes.ToLower([]byte(text)))
}

// failure turns what the launcher or init reported into an error with its kind.
func failure(f sandbox.Failure, image string) error {
	switch {
	case f.Missing && f.Number > 0 && image != "":
		return problem.Errorf(problem.NotFound, "",
			"%s; the sandbox shows the image %s in place of the machine's programs, and image/Dockerfile has to install what is missing in it",
			f.Text, sandbox.ImageName(image))
	case f.Missing:
		return problem.Errorf(problem.NotFound, "", "%s", f.Text)
	case f.Shared:
		return sandbox.ErrShared
	}
	return errors.New(f.Text)
}
