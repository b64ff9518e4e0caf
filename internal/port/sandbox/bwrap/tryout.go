package bwrap

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"sallyport/internal/base/inert"
	"sallyport/internal/base/problem"
	"sallyport/internal/port/sandbox"
)

var _ sandbox.RunnerTrier = (*Driver)(nil)

const (
	tryoutWord        = "there and back"
	tryoutDescriptors = 333 // that nothing else gives a program
	tryoutMemory      = 512 << 20
	tryoutProcesses   = 128
	tryoutWhy         = 500 // bytes of a reason, which another build may have worded
)

// TryRunner has the runner of a folder be pid 1 of sandboxes that our own builds. As launcher it would run outside of every wall, as root
// where this is root: nobody has approved it yet, so that part is left alone.
func (d *Driver) TryRunner(ctx context.Context, dir string) (sandbox.Tryout, error) {
	program, err := runnerOf(dir)
	if err != nil {
		return sandbox.Tryout{}, err
	}
	own, _ := d.program() // which one it is, and why, the probe says
	switch same, err := alike(program, own); {
	case err != nil:
		return sandbox.Tryout{}, fmt.Errorf("try another runner: %w", err)
	case same:
		return sandbox.Tryout{Same: true}, nil
	}
	if err := d.prove(ctx); err != nil { // what holds here under our own
		return sandbox.Tryout{}, err
	}

	tried, err := d.tryRunner(ctx, program)
	if err != nil || tried.Failed == "" {
		return tried, err
	}
	if now, err := d.tryRunner(ctx, own); err != nil {
		return now, err
	} else if now.Failed != "" {
		return now, problem.Errorf(problem.Unavailable, "sallyport doctor --self-test", "the runner of now fails here as well: %s", now.Failed)
	}
	return tried, nil
}

// runnerOf is the program of a folder that its sallyport would use as runner.
func runnerOf(dir string) (string, error) {
	path := filepath.Join(dir, runnerName)
	if _, err := os.Lstat(path); !errors.Is(err, os.ErrNotExist) {
		return path, err
	}
	path = filepath.Join(dir, "sallyport")
	_, err := os.Lstat(path)
	return path, err
}

// alike reports whether two programs are the same. One of them is anybody's, and may have a GiB of holes: only as long as the other it is read.
func alike(a, b string) (bool, error) {
	of, err := os.Stat(a)
	if err != nil {
		return false, err
	}
	if with, err := os.Stat(b); err != nil || of.Size() != with.Size() {
		return false, err
	}
	one, err := os.ReadFile(a)
	if err != nil {
		return false, err
	}
	other, err := os.ReadFile(b)
	return bytes.Equal(one, other), err
}

// newcomer is another runner while it is tried.
type newcomer struct {
	d       *Driver
	program string
	owner   sandbox.Owner
	tree    sandbox.Tree
	aims    sandbox.Aims
	tries   int
}

// shortcoming is what a newcomer fails in.
type shortcoming struct{ why, tail string }

func (s *shortcoming) Error() string { return s.why }

func (d *Driver) tryRunner(ctx context.Context, program string) (t sandbox.Tryout, err error) {
	within, cancel := context.WithTimeoutCause(ctx, probeTime, errors.New("it took too long"))
	defer cancel()
	err = d.onGround(func(g *ground, tree sandbox.Tree, owner sandbox.Owner) error {
		victim, err := d.victim(g)
		if err != nil {
			return err
		}
		defer victim()
		g.open()
		if g.aims.Egress != "" {
			go echo(g.listeners[len(g.listeners)-1]) // ends with it
			g.aims.Word = tryoutWord
		}
		n := newcomer{d: d, program: program, owner: owner, tree: sandbox.Tree{Dir: tree.Dir}, aims: g.aims}
		err = n.play(within)
		t.Tries = n.tries
		return err
	})
	var short *shortcoming
	var other otherProtocol
	switch {
	case ctx.Err() != nil:
		return t, context.Cause(ctx)
	case errors.As(err, &other):
		t.Untried = fmt.Sprintf("it speaks version %d of what a host and a sandbox say to each other, and this host version %d", int(other), sandbox.Protocol)
		return t, nil
	case errors.As(err, &short):
		t.Failed, t.Tail = inert.Short(short.why, tryoutWhy), short.tail
		return t, nil
	}
	return t, err
}

// echo sends back what comes until nothing comes any more.
func echo(l net.Listener) {
	for {
		c, err := l.Accept()
		if err != nil {
			return
		}
		go func() {
			_ = c.SetDeadline(time.Now().Add(triesTime))
			_, _ = io.Copy(c, io.LimitReader(c, int64(len(tryoutWord)))) // who sends it sees whether it came back
			_ = c.Close()
		}()
	}
}

// play has the newcomer do all that an init does.
func (n *newcomer) play(ctx context.Context) error {
	// Our own self-test first, for it is ours that judges.
	held, err := n.probe(ctx, sandbox.SelfPath)
	if err != nil {
		return err
	}
	known := map[string]bool{}
	for _, t := range held {
		known[t.Name] = true
		if t.Worked {
			return &shortcoming{why: "behind it a program in a sandbox can " + t.Name}
		}
	}
	// Its own is the one that a host with it runs first; without that nothing runs there.
	its, err := n.probe(ctx, sandbox.InitPath)
	if err != nil {
		return err
	}
	for _, t := range its {
		if t.Worked && known[t.Name] { // others may ask for walls that only its own launcher builds
			return &shortcoming{why: "its own self-test says that a program in a sandbox can " + t.Name + ", and that of this host that none can"}
		}
	}
	n.tries = len(held)
	return n.orders(ctx)
}

// start starts a program under the newcomer.
func (n *newcomer) start(ctx context.Context, spec sandbox.Spec) (*process, error) {
	spec.ID = "tryout-" + strconv.FormatInt(time.Now().UnixNano(), 10)
	spec.Owner, spec.Tree = n.owner, n.tree
	spec.Env = []string{"PATH=/usr/bin:/bin"}
	if spec.Argv[0] != sandbox.SelfPath { // else it is there anyway
		spec.Own = []sandbox.Bind{{Source: n.d.config.Self, Target: sandbox.SelfPath}}
	}
	spec.Limits.Timeout, spec.Limits.MemoryBytes, spec.Limits.ProcessesMax = triesTime, tryoutMemory, tryoutProcesses
	p, err := n.d.startUnder(ctx, spec, n.program)
	switch {
	case err == nil:
		return p, nil
	case p == nil, errors.As(err, new(otherProtocol)): // nothing of it has run, or nothing was asked of it
		return nil, err
	}
	return nil, n.short(p, "it does not start as the first program of a sandbox: %w", err)
}

// short ends a sandbox in which the newcomer has failed, and says in what.
func (n *newcomer) short(p *process, format string, args ...any) error {
	p.abandon()
	<-p.done
	<-p.tail.done
	p.stderr.mu.Lock()
	defer p.stderr.mu.Unlock()
	tail := strings.TrimSpace(string(p.tail.last) + "\n" + string(p.stderr.last))
	return &shortcoming{why: fmt.Errorf(format, args...).Error(), tail: strings.ToValidUTF8(tail[max(0, len(tail)-tailBytes):], "\uFFFD")}
}

// probe runs a self-test under the newcomer, with a way out that gives a word back.
func (n *newcomer) probe(ctx context.Context, self string) ([]sandbox.Tried, error) {
	text, err := json.Marshal(n.aims)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	p, err := n.start(ctx, sandbox.Spec{Argv: []string{self, "runner", "probe"}, Stdin: bytes.NewReader(text), Stdout: &out, Egress: n.aims.Egress})
	if err != nil {
		return nil, err
	}
	var tried []sandbox.Tried
	whose := "its own self-test"
	if self == sandbox.SelfPath {
		whose = "the self-test of this host"
	}
	switch exit, err := p.Wait(); {
	case err != nil:
		return nil, n.short(p, "%s did not come to its end: %w", whose, err)
	case exit.Limit != nil:
		return nil, n.short(p, "%s broke the limit %s: %s", whose, exit.Limit.Name, exit.Limit.Observed)
	case exit.Code != 0:
		return nil, n.short(p, "%s ended with %d %s", whose, exit.Code, exit.Signal)
	}
	if err := json.Unmarshal(out.Bytes(), &tried); err != nil {
		return nil, n.short(p, "%s gives no report: %w", whose, err)
	}
	return tried, nil
}

// pulse is a program of several processes that gives a sign of life all the time, until its stdin ends.
const (
	pulse     = `(while :; do echo; sleep 0.01; done) & cat; exit 3`
	pulseEnd  = 3
	pulseMore = 10 // signs that show that it goes on, and no pipe held them back
)

// signs counts what a program says.
type signs struct {
	seen  atomic.Int64
	heard chan struct{} // there were more
}

func (s *signs) Write(b []byte) (int, error) {
	s.seen.Add(int64(len(b)))
	select {
	case s.heard <- struct{}{}:
	default:
	}
	return len(b), nil
}

// await waits for so many more.
func (s *signs) await(ctx context.Context, more int64) error {
	for until := s.seen.Load() + more; s.seen.Load() < until; {
		select {
		case <-s.heard:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

// orders gives the newcomer every order that a host has for an init.
func (n *newcomer) orders(ctx context.Context) error {
	in, end := io.Pipe()
	defer func() { _ = end.Close() }()
	alive := &signs{heard: make(chan struct{}, 1)}
	p, err := n.start(ctx, sandbox.Spec{
		Argv: []string{"/bin/sh", "-c", pulse}, Stdin: in, Stdout: alive, Limits: sandbox.Limits{DescriptorsMax: tryoutDescriptors},
	})
	if err != nil {
		return err
	}
	brief, cancel := context.WithTimeoutCause(ctx, n.d.patience, errors.New("nothing was heard of it in time"))
	defer cancel()
	if err := alive.await(brief, 1); err != nil {
		return n.short(p, "a program that it started says nothing: %w", err)
	}
	if err := p.freezeByInit(brief); err != nil {
		return n.short(p, "it did not freeze a sandbox: %w", err)
	}
	if err := staysFrozen(p); err != nil {
		return n.short(p, "it did not keep a sandbox frozen: %w", err)
	}
	if err := thawByInit(p); err != nil {
		return n.short(p, "it did not thaw a sandbox: %w", err)
	}
	if err := alive.await(brief, pulseMore); err != nil {
		return n.short(p, "a program that it froze did not go on: %w", err)
	}
	if err := n.attach(brief, p); err != nil {
		return n.short(p, "%w", err)
	}
	_ = end.Close() // of a pipe in memory: there is no error
	switch exit, err := p.Wait(); {
	case err != nil:
		return n.short(p, "a sandbox did not come to its end: %w", err)
	case exit.Limit != nil:
		return n.short(p, "a program that keeps every limit came to the limit %s: %s", exit.Limit.Name, exit.Limit.Observed)
	case exit.Code != pulseEnd:
		return n.short(p, "it says that a program ended with %d %s, which had ended with %d", exit.Code, exit.Signal, pulseEnd)
	}
	return nil
}

// staysFrozen looks at a frozen sandbox for as long as it takes to look at a small tree.
func staysFrozen(p *process) error {
	for range 10 {
		if err := allStill(p.initPID); err != nil {
			return err
		}
		time.Sleep(10 * time.Millisecond)
	}
	return nil
}

// attach has a second program started, which says by how it ends whether it has the limits that were asked for.
func (n *newcomer) attach(ctx context.Context, p *process) error {
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer null.Close()
	const limited = 7
	line := fmt.Sprintf(`test "$(ulimit -Hn)" -le %d && exit %d; exit 1`, tryoutDescriptors+1, limited) // the one more shows who breaks it
	a, err := p.Attach(ctx, []string{"/bin/sh", "-c", line}, nil, "", null)
	if err != nil {
		return fmt.Errorf("it did not start a second program: %w", err)
	}
	select {
	case <-a.(*attached).done:
	case <-ctx.Done():
		return fmt.Errorf("it did not tell the end of a second program: %w", context.Cause(ctx))
	}
	exit, err := a.Wait()
	switch {
	case err != nil:
		return fmt.Errorf("a second program did not come to its end: %w", err)
	case exit.Code != limited:
		return fmt.Errorf("a second program has not the limit of descriptors that was asked for, or it says wrongly how that ended (%d %s)", exit.Code, exit.Signal)
	}
	return nil
}

// countOutside counts from outside, as an init of another build may not: where no control group does, nothing else would.
func countOutside(p *process) {
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-p.done:
			return
		case <-tick.C:
		}
		inside, err := descendants(p.cmd.Process.Pid)
		if err != nil {
			continue // the next look may do
		}
		var used int64
		for _, pid := range inside {
			used += residentBytes(pid)
		}
		var l *sandbox.Limit
		switch {
		case len(inside) > p.limits.ProcessesMax:
			l = p.processesLimit(strconv.Itoa(len(inside)))
		case used > p.limits.MemoryBytes:
			l = p.memoryLimit(sandbox.Bytes(used))
		default:
			continue
		}
		p.stop(l)
		p.abandon()
		return
	}
}

// residentBytes is the memory that a process has in use, what it shares with others included.
func residentBytes(pid int) int64 {
	raw, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/statm")
	if err != nil {
		return 0 // gone
	}
	var all, resident int64
	if _, err := fmt.Sscan(string(raw), &all, &resident); err != nil {
		return 0
	}
	return resident * int64(os.Getpagesize())
}
