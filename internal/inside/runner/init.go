package runner

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"sallyport/internal/port/sandbox"
)

// initProcess is pid 1 of a sandbox: its end is the end of every process inside.
//
// The agent has the same uid, so this process is not dumpable (no ptrace, no
// /proc/1/fd, no /proc/1/mem), is ended by no signal from inside, and hands
// none of its descriptors on. Program 1 is in a domain that no other program is
// in (see enterDomain): what a person starts beside it, it cannot look into.
type initProcess struct {
	send sync.Mutex // one message at a time on the control socket

	mu       sync.Mutex
	programs map[int]int // pid to number of the programs that were asked for
	frozen   bool
	resting  map[int]bool // what the agent itself had stopped before a freeze
	watching sandbox.Watching
	before   int64         // entries of the scratch space when the first program began
	seen     sight         // at the last look
	pause    time.Duration // from that look to the next, where the kernel holds what they may
	worked   worked
	unseen   atomic.Int64  // bytes of memory as the driver says
	first    chan struct{} // closed when there is a child to wait for
	shared   error         // why program 1 is in no domain, so that it could look into the others; nil = it is in one
}

// serveInit serves the control socket until it closes or program 1 ends.
func serveInit() int {
	if os.Getpid() != 1 {
		fmt.Fprintln(os.Stderr, "runner init: only as pid 1 of a sandbox")
		return 2
	}
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		fmt.Fprintln(os.Stderr, "runner init: hide from the agent:", err)
		return 1
	}
	if err := unix.CloseRange(3, math.MaxUint32, unix.CLOSE_RANGE_CLOEXEC); err != nil {
		fmt.Fprintln(os.Stderr, "runner init: close descriptors:", err)
		return 1
	}
	if err := ignoreSignals(); err != nil {
		fmt.Fprintln(os.Stderr, "runner init:", err)
		return 1
	}
	in := &initProcess{programs: map[int]int{}, first: make(chan struct{})}
	if err := in.hello(); err != nil {
		fmt.Fprintln(os.Stderr, "runner init:", err)
		return 1
	}
	go in.reap()
	err := in.handleOrders()
	// The driver is gone or talks nonsense: nobody may go on in here.
	fmt.Fprintln(os.Stderr, "runner init:", err)
	return 1
}

// hello says that init is up, and hands the driver the top of the workspace. Nothing of the
// agent's runs yet; its rights on the folder do not matter, for it is only named (O_PATH).
func (in *initProcess) hello() error {
	top, err := unix.Open(sandbox.Mountpoint, unix.O_PATH|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("open %s: %w", sandbox.Mountpoint, err)
	}
	defer unix.Close(top)
	frame, err := sandbox.Frame(sandbox.Event{Hello: sandbox.Protocol, Speaks: sandbox.Orders})
	if err != nil {
		return err
	}
	// The descriptor rides on the first bytes; the rest is plain.
	for {
		err = unix.Sendmsg(sandbox.ControlFD, frame[:4], unix.UnixRights(top), nil, 0)
		if !errors.Is(err, unix.EINTR) {
			break
		}
	}
	if err == nil {
		err = writeAll(sandbox.ControlFD, frame[4:])
	}
	if err != nil {
		return fmt.Errorf("say hello: %w", err)
	}
	return nil
}

// tell sends one event; if nobody hears it any more, this is the end.
func (in *initProcess) tell(e sandbox.Event) {
	frame, err := sandbox.Frame(e)
	if err == nil {
		in.send.Lock()
		defer in.send.Unlock()
		err = writeAll(sandbox.ControlFD, frame)
	}
	if err != nil {
		syscall.Exit(1)
	}
}

// handleOrders carries out orders until the socket closes.
func (in *initProcess) handleOrders() error {
	for {
		order, fds, err := receive(sandbox.ControlFD)
		if err != nil {
			return err
		}
		switch {
		case order.Run != nil:
			if order.Watch != nil {
				if err := in.hold(*order.Watch); err != nil {
					return err
				}
			}
			in.start(order, fds)
		case order.Kill > 0:
			in.kill(order.Kill)
		case order.Freeze != nil:
			in.freeze(order.Freeze.Within)
		case order.Thaw:
			in.thaw()
		case order.Unseen != nil:
			in.unseen.Store(*order.Unseen)
		}
		for _, fd := range fds {
			unix.Close(fd)
		}
	}
}

// receive reads one order and the descriptors that came with it.
func receive(fd int) (sandbox.Order, []int, error) {
	var order sandbox.Order
	var head [4]byte
	oob := make([]byte, unix.CmsgSpace(3*4))
	n, oobn, err := receiveSome(fd, head[:], oob)
	if err != nil {
		return order, nil, err
	}
	fds, err := parseRights(oob[:oobn])
	if err != nil {
		return order, nil, err
	}
	if err := readAll(fd, head[n:]); err != nil {
		return order, nil, err
	}
	size := binary.BigEndian.Uint32(head[:])
	if size > sandbox.FrameMax {
		return order, nil, fmt.Errorf("order of %d bytes", size)
	}
	body := make([]byte, size)
	if err := readAll(fd, body); err != nil {
		return order, nil, err
	}
	if err := json.Unmarshal(body, &order); err != nil {
		return order, nil, fmt.Errorf("read order: %w", err)
	}
	return order, fds, nil
}

func receiveSome(fd int, buf, oob []byte) (n, oobn int, err error) {
	for {
		n, oobn, _, _, err = unix.Recvmsg(fd, buf, oob, unix.MSG_CMSG_CLOEXEC)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err == nil && n == 0 {
			err = io.EOF
		}
		return n, oobn, err
	}
}

func parseRights(oob []byte) ([]int, error) {
	if len(oob) == 0 {
		return nil, nil
	}
	messages, err := unix.ParseSocketControlMessage(oob)
	if err != nil {
		return nil, fmt.Errorf("read descriptors: %w", err)
	}
	var fds []int
	for _, m := range messages {
		if m.Header.Type != unix.SCM_RIGHTS {
			continue
		}
		more, err := unix.ParseUnixRights(&m)
		if err != nil {
			return nil, fmt.Errorf("read descriptors: %w", err)
		}
		fds = append(fds, more...)
	}
	return fds, nil
}

func readAll(fd int, b []byte) error {
	for len(b) > 0 {
		n, err := unix.Read(fd, b)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			return err
		}
		if n == 0 {
			return io.EOF
		}
		b = b[n:]
	}
	return nil
}

// start runs a program with the descriptors that came: three, or one for all three. With a relay that is there first.
func (in *initProcess) start(o sandbox.Order, fds []int) {
	var err error
	if o.Relay != nil {
		err = in.relay(*o.Relay)
	}
	switch {
	case err != nil:
	case o.Run.Number == 1 && os.Getuid() != 0: // others may be a person's, and it must not look into them
		inDomain(func(apart error) {
			in.shared = apart
			err = in.spawn(*o.Run, fds)
		})
	default:
		err = in.spawn(*o.Run, fds)
	}
	if err != nil {
		f := &sandbox.Failure{Number: o.Run.Number, Text: err.Error(), Missing: errors.Is(err, os.ErrNotExist), Shared: errors.Is(err, sandbox.ErrShared)}
		in.tell(sandbox.Event{Failed: f})
	}
}

// relay starts the relay on a port that is open already. It has an agent's limits: an agent can make it its own.
func (in *initProcess) relay(r sandbox.Relay) error {
	listener, err := listenEgress()
	if err != nil {
		return err
	}
	defer unix.Close(listener)
	null, err := unix.Open(os.DevNull, unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("start the relay: %w", err)
	}
	defer unix.Close(null)
	attr := &syscall.ProcAttr{
		Dir: "/", Env: append([]string{"GOMAXPROCS=1"}, r.Env...), Sys: &syscall.SysProcAttr{Setsid: true},
		Files: []uintptr{uintptr(null), uintptr(null), uintptr(null), uintptr(listener)},
	}
	in.mu.Lock()
	defer in.mu.Unlock()
	pid, err := in.startLimited(func() (int, error) {
		return syscall.ForkExec(sandbox.InitPath, []string{"sallyport-runner", "runner", "relay"}, attr)
	})
	if err != nil {
		return fmt.Errorf("start the relay: %w", err)
	}
	in.limitProgram(pid)
	return nil
}

// spawn holds the lock from before the fork until the pid is known, so that its end cannot be missed.
func (in *initProcess) spawn(r sandbox.Run, fds []int) error {
	if len(r.Argv) == 0 {
		return errors.New("no program named")
	}
	path, err := find(r.Argv[0], r.Env, r.Dir)
	if err != nil {
		return err
	}
	attr := &syscall.ProcAttr{Dir: r.Dir, Env: r.Env, Sys: &syscall.SysProcAttr{Setsid: true}}
	switch {
	case r.Terminal && len(fds) == 1:
		fd := uintptr(fds[0])
		attr.Files = []uintptr{fd, fd, fd}
		if _, err := unix.IoctlGetTermios(fds[0], unix.TCGETS); err == nil {
			attr.Sys.Setctty = true
			attr.Sys.Ctty = 0 // in the child
			if in.shared != nil {
				return fmt.Errorf("%w: %w", sandbox.ErrShared, in.shared)
			}
		}
	case len(fds) == 3:
		attr.Files = []uintptr{uintptr(fds[0]), uintptr(fds[1]), uintptr(fds[2])}
	default:
		return fmt.Errorf("%d descriptors came", len(fds))
	}
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.frozen {
		return errors.New("the sandbox is frozen")
	}
	pid, err := in.startLimited(func() (int, error) { return syscall.ForkExec(path, r.Argv, attr) })
	if err != nil {
		return fmt.Errorf("start %q: %w", r.Argv[0], err)
	}
	in.limitProgram(pid)
	in.programs[pid] = r.Number
	if r.Number == 1 {
		close(in.first)
	}
	// Told under the lock: nobody hears of an end before its beginning.
	in.tell(sandbox.Event{Started: r.Number})
	return nil
}

// reap waits for every child, asked for or orphaned, and ends the sandbox with program 1.
func (in *initProcess) reap() {
	<-in.first
	for {
		var status unix.WaitStatus
		pid, err := unix.Wait4(-1, &status, 0, nil)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			return // no child left: program 1 ended, and with it this process
		}
		in.mu.Lock()
		number, asked := in.programs[pid]
		delete(in.programs, pid)
		in.mu.Unlock()
		if !asked {
			continue
		}
		ended := sandbox.Ended{Number: number, Code: status.ExitStatus()}
		if status.Signaled() {
			ended.Code, ended.Signal = -1, int(status.Signal())
		}
		if number == 1 {
			in.look() // the others are still there, and may be too many
		}
		in.tell(sandbox.Event{Ended: &ended})
		if number == 1 {
			syscall.Exit(0) // at once, and with it everything inside
		}
	}
}

// kill ends one program and what is left of its session.
func (in *initProcess) kill(number int) {
	in.mu.Lock()
	defer in.mu.Unlock()
	for pid, n := range in.programs {
		if n == number {
			_ = unix.Kill(-pid, unix.SIGKILL) // gone already is as good
			_ = unix.Kill(pid, unix.SIGKILL)
		}
	}
}
