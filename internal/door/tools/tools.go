// Package tools is the host's end of what agents ask for from inside: one socket for each session, one call on each
// connection.
//
// Whoever is in the sandbox is taken for hostile. What it can do here is to use up the rate of its own session: lines,
// time, calls at once and calls in a while are bounded for each socket, and no session waits for another. A call is told
// before it is answered, whatever became of it: what it did is in the audit, and that it was refused is in the daemon's log.
package tools

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net"
	"os"
	"slices"
	"sync"
	"time"

	"sallyport/internal/base/disk"
	"sallyport/internal/base/inert"
	"sallyport/internal/base/problem"
	"sallyport/internal/port/tool"
)

// Handler does what a call asks for, at once: what needs a person it asks, and answers tool.Asked. A call whose Key it has seen gets
// the first result again.
type Handler func(ctx context.Context, c tool.Call) (tool.Result, error)

// Session is whose socket it is.
type Session struct {
	Handlers map[tool.Name]Handler // the tools that it has
	Intake   func() string         // what its turn is for; nil or "" = none
	Told     func(Event)           // hears of every call before it is answered; called by several goroutines; may be nil
	Limits   Limits
}

// Event is one call, whatever became of it.
type Event struct {
	At      time.Time
	Call    tool.Call // zero as far as nobody could tell
	Result  tool.Result
	Problem error // why there is no result
	Missed  int   // calls that were refused for their number since the last event; they have none of their own
}

// Limits bound one session. A zero is the default.
type Limits struct {
	Burst   int           // calls that may come at once (default 30)
	Every   time.Duration // one more may come after so long (default 2s)
	AtOnce  int           // connections at once (default 16)
	Line    time.Duration // for a line to arrive, and for an answer to be taken (default 10s)
	Handler time.Duration // for a call to be done (default 10s)
}

func (l Limits) orDefaults() Limits {
	set := func(n *int, usual int) {
		if *n == 0 {
			*n = usual
		}
	}
	wait := func(d *time.Duration, usual time.Duration) {
		if *d == 0 {
			*d = usual
		}
	}
	set(&l.Burst, 30)
	set(&l.AtOnce, 16)
	wait(&l.Every, 2*time.Second)
	wait(&l.Line, 10*time.Second)
	wait(&l.Handler, 10*time.Second)
	return l
}

// Door is the socket of one session.
type Door struct {
	session  Session
	has      []tool.Name
	path     string
	ops      disk.Ops
	listener *net.UnixListener
	slots    chan struct{}
	rate     rate
}

// Open makes a session's socket at path: 0600 and ours. Whoever starts the sandbox gives it to the sandbox's uid. A socket that a
// killed daemon left there goes. Nothing is answered before Run.
func Open(ops disk.Ops, path string, s Session) (*Door, error) {
	if info, err := os.Lstat(path); err == nil && info.Mode().Type() == fs.ModeSocket {
		if err := ops.Do("tools:remove-stale", func() error { return os.Remove(path) }); err != nil {
			return nil, fmt.Errorf("remove the socket of a session that has ended: %w", err)
		}
	}
	d := &Door{session: s, path: path, ops: ops, has: slices.Sorted(maps.Keys(s.Handlers))}
	d.session.Limits = s.Limits.orDefaults()
	d.slots = make(chan struct{}, d.session.Limits.AtOnce)
	d.rate = rate{burst: d.session.Limits.Burst, every: d.session.Limits.Every}
	err := ops.Do("tools:listen", func() (err error) {
		if d.listener, err = net.ListenUnix("unix", &net.UnixAddr{Net: "unix", Name: path}); err != nil {
			return err
		}
		d.listener.SetUnlinkOnClose(false) // by Run, as an operation of its own
		return os.Chmod(path, 0o600)
	})
	if err != nil && d.listener != nil {
		err = errors.Join(err, d.listener.Close(), os.Remove(path))
	}
	if err != nil {
		return nil, fmt.Errorf("open the tools of a session: %w", err)
	}
	return d, nil
}

// Run answers until ctx ends, with the session. Then the socket is gone, no call is left, and nil is returned; an error is that of a
// socket that broke.
func (d *Door) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	var calls sync.WaitGroup
	stop := context.AfterFunc(ctx, func() { d.listener.Close() })
	err := d.accept(ctx, &calls)
	asked := ctx.Err() != nil

	stop()
	d.listener.Close()
	cancel()
	calls.Wait()
	removed := d.ops.Do("tools:remove", func() error { return os.Remove(d.path) })
	if errors.Is(removed, fs.ErrNotExist) {
		removed = nil
	}
	if asked {
		return removed
	}
	return errors.Join(err, removed)
}

// acceptPause is how long a listener rests that cannot open another connection, such as when descriptors are used up.
const acceptPause = 50 * time.Millisecond

func (d *Door) accept(ctx context.Context, calls *sync.WaitGroup) error {
	for {
		conn, err := d.listener.Accept()
		var again interface{ Temporary() bool }
		switch {
		case err == nil:
		case ctx.Err() == nil && errors.As(err, &again) && again.Temporary():
			select {
			case <-time.After(acceptPause):
			case <-ctx.Done():
			}
			continue
		default:
			return err
		}

		select {
		case d.slots <- struct{}{}:
			calls.Go(func() {
				defer func() { <-d.slots }()
				d.serve(ctx, conn)
			})
		default: // whoever does not read why is not waited for: a connection that has just come has room for so little
			_, _ = conn.Write(tool.Encode(tool.Result{},
				problem.Errorf(problem.Unavailable, "", "%d calls are under way, the limit; try again in a moment", cap(d.slots))))
			conn.Close()
		}
	}
}

// serve takes the one call of a connection and answers it.
func (d *Door) serve(ctx context.Context, conn net.Conn) {
	defer conn.Close()
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	defer stop()
	_ = conn.SetDeadline(time.Now().Add(d.session.Limits.Line))

	line, err := readLine(conn)
	if errors.Is(err, errSilent) {
		return // nobody asked anything
	}
	e := Event{At: time.Now()}
	ok := false
	if ok, e.Missed = d.rate.take(e.At); !ok {
		e.Problem = problem.Errorf(problem.Unavailable, "", "too many calls came in a while; one more is taken every %s", d.session.Limits.Every)
	} else {
		e.Call, e.Result, e.Problem = d.do(ctx, line, err)
	}
	if d.session.Told != nil && (ok || e.Missed == 0) {
		d.session.Told(e)
	}

	_ = conn.SetDeadline(time.Now().Add(d.session.Limits.Line))
	_, _ = conn.Write(tool.Encode(e.Result, e.Problem)) // who left, or does not read: what it asked for is done and told
}

// errSilent says that a connection ended before it said anything.
var errSilent = errors.New("nothing was said")

// readLine reads the one line of a connection. What it cannot take is an error of its own, in one clause.
func readLine(conn net.Conn) ([]byte, error) {
	r := bufio.NewReaderSize(conn, tool.LineMax)
	line, err := r.ReadSlice('\n')
	switch {
	case errors.Is(err, bufio.ErrBufferFull):
		return nil, fmt.Errorf("its line has more than %d bytes", tool.LineMax)
	case err != nil && len(line) == 0:
		return nil, errSilent
	case errors.Is(err, os.ErrDeadlineExceeded):
		return nil, errors.New("its line did not end in time")
	case err != nil:
		return nil, errors.New("its line has no end")
	case r.Buffered() > 0:
		return nil, errors.New("something follows its line; a connection takes one call")
	}
	return line, nil
}

// do decodes a call and has it done.
func (d *Door) do(ctx context.Context, line []byte, unread error) (c tool.Call, r tool.Result, err error) {
	if unread != nil {
		return c, r, problem.Errorf(problem.Usage, "sallyport-tool --help", "the call cannot be taken: %w", unread)
	}
	if c, err = tool.Parse(line, d.has); err != nil {
		return c, r, err
	}
	if c.Verb == tool.List {
		return c, tool.Result{Text: "the tools of this session", Tools: d.has}, nil
	}
	if c.Intake == "" && d.session.Intake != nil {
		c.Intake = d.session.Intake()
	}
	r, err = d.handle(ctx, c)
	return c, r, err
}

// handle keeps a fault in one call from ending every other session of this machine, and a slow one from holding its agent.
func (d *Door) handle(ctx context.Context, c tool.Call) (r tool.Result, err error) {
	defer func() {
		if fault := recover(); fault != nil {
			r, err = tool.Result{}, problem.Errorf(problem.Internal, "", "the host failed in %s: %s", c.Verb, inert.Short(fmt.Sprint(fault), 200))
		}
	}()
	limit := d.session.Limits.Handler
	ctx, done := context.WithTimeout(ctx, limit)
	defer done()
	r, err = d.session.Handlers[c.Verb](ctx, c)
	switch {
	case err == nil || ctx.Err() == nil:
		return r, err
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		err = problem.Errorf(problem.Unavailable, "", "%s was not done within %s", c.Verb, limit)
	default:
		err = problem.Errorf(problem.Unavailable, "", "%s was not done, because the session ended", c.Verb)
	}
	return tool.Result{}, err
}

// rate is how many calls may come in a while.
type rate struct {
	burst int
	every time.Duration

	mu     sync.Mutex
	spent  int // of the burst
	since  time.Time
	missed int // refused since the last that was told
}

// take takes a place for a call, if there is one. missed is how many were refused in silence since the last that was told; the first
// of a row is told.
func (r *rate) take(now time.Time) (ok bool, missed int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if back := int(now.Sub(r.since) / r.every); back > 0 {
		r.spent = max(0, r.spent-back)
		r.since = r.since.Add(time.Duration(back) * r.every)
		if r.spent == 0 {
			r.since = now
		}
	}
	if r.spent >= r.burst {
		missed, r.missed = r.missed, r.missed+1
		return false, missed
	}
	if r.spent++; r.spent == 1 {
		r.since = now
	}
	missed, r.missed = max(0, r.missed-1), 0
	return true, missed
}
