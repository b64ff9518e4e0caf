package bwrap

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"sallyport/internal/base/problem"
	"sallyport/internal/base/race"
	"sallyport/internal/port/sandbox"
)

// serve reads what the launcher and init tell until the socket closes.
func (p *process) serve(spec sandbox.Spec) {
	defer close(p.served)
	for {
		e, from, err := p.receive()
		if err == nil && e.Hello != 0 {
			err = p.welcome(e, from, spec)
		}
		from.close()
		if err != nil {
			p.failStart(err)
			if !errors.Is(err, io.EOF) && !errors.Is(err, unix.ECONNRESET) {
				p.heard = fmt.Errorf("hear the sandbox's init: %w", err)
			}
			// Nobody inside may go on unwatched.
			p.abandon()
			return
		}
		p.hear(e)
	}
}

func (p *process) failStart(err error) {
	if errors.Is(err, io.EOF) {
		return // finish says so, once the reason is known
	}
	select {
	case p.started <- err:
	default:
	}
}

// hear acts on one event.
func (p *process) hear(e sandbox.Event) {
	switch {
	case e.Failed != nil && e.Failed.Number <= 1:
		p.failStart(failure(*e.Failed, p.image))
	case e.Failed != nil:
		p.pick(e.Failed.Number, func(a *attached) { a.begun(failure(*e.Failed, p.image)) })
	case e.Started == 1:
		p.begun()
		p.failStart(nil)
	case e.Started > 1:
		p.pick(e.Started, func(a *attached) { a.begun(nil) })
	case e.Ended != nil && e.Ended.Number == 1:
		p.mu.Lock()
		p.ended = e.Ended
		p.mu.Unlock()
	case e.Ended != nil:
		p.pick(e.Ended.Number, func(a *attached) { a.finish(exitOf(*e.Ended), nil) })
	case e.Limit != nil:
		p.stop(e.Limit)
	case e.Frozen != nil:
		select {
		case p.stopped <- *e.Frozen:
		default:
		}
	case e.Thawed:
		select {
		case p.thawed <- struct{}{}:
		default:
		}
	}
}

func (p *process) pick(number int, f func(*attached)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if a, ok := p.attached[number]; ok {
		f(a)
	}
}

// receive reads one event and who sent it with what, as the kernel says.
func (p *process) receive() (sandbox.Event, sender, error) {
	var e sandbox.Event
	var head [4]byte
	oob := make([]byte, unix.CmsgSpace(unix.SizeofUcred)+unix.CmsgSpace(4))
	n, oobn, _, _, err := p.control.ReadMsgUnix(head[:], oob)
	if err != nil {
		return e, sender{}, err
	}
	if n == 0 {
		return e, sender{}, io.EOF
	}
	from := parseSender(oob[:oobn])
	if _, err := io.ReadFull(p.control, head[n:]); err != nil {
		return e, from, err
	}
	size := binary.BigEndian.Uint32(head[:])
	if size > sandbox.FrameMax {
		return e, from, fmt.Errorf("event of %d bytes", size)
	}
	body := make([]byte, size)
	if _, err := io.ReadFull(p.control, body); err != nil {
		return e, from, err
	}
	if err := json.Unmarshal(body, &e); err != nil {
		return e, from, fmt.Errorf("read event: %w", err)
	}
	return e, from, nil
}

// sender is what the kernel says of a message: whose it is, and the descriptors that came along.
type sender struct {
	pid int
	fds []int
}

func parseSender(oob []byte) (s sender) {
	messages, err := unix.ParseSocketControlMessage(oob)
	if err != nil {
		return s
	}
	for _, m := range messages {
		if cred, err := unix.ParseUnixCredentials(&m); err == nil {
			s.pid = int(cred.Pid)
		} else if fds, err := unix.ParseUnixRights(&m); err == nil {
			s.fds = append(s.fds, fds...)
		}
	}
	return s
}

// close closes the descriptors that nobody took.
func (s sender) close() {
	for _, fd := range s.fds {
		unix.Close(fd)
	}
}

// welcome takes hold of init and gives it the program to run.
func (p *process) welcome(e sandbox.Event, from sender, spec sandbox.Spec) error {
	pid := from.pid
	if e.Hello != sandbox.Protocol && !(p.foreign && e.Speaks == sandbox.Orders) {
		return problem.Errorf(problem.Unavailable, "sallyport daemon stop", "somebody replaced the program while its daemon runs: %w", otherProtocol(e.Hello))
	}
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return fmt.Errorf("hold the sandbox's init: %w", err)
	}
	file := os.NewFile(uintptr(fd), "init")
	// Our own child is not waited for yet, so its pid is its own; whose parent it is, is init.
	parent, err := parentOf(pid)
	if err == nil && spec.Range {
		parent, err = parentOf(parent) // the launcher stands by
	}
	if err != nil || parent != p.cmd.Process.Pid {
		file.Close()
		return fmt.Errorf("process %d is not the sandbox's init", pid)
	}
	p.mu.Lock()
	if p.over || p.init != nil {
		p.mu.Unlock()
		_ = unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0) // gone already is as good
		file.Close()
		return errors.New("the sandbox started after the host had stopped waiting for it")
	}
	p.init, p.initPID = file, pid
	p.built, _ = p.groups.processor()
	asked := p.asked
	_, unseen := readNames("/proc/" + strconv.Itoa(pid) + "/fd") // init hides from its like: who sees it sees all
	p.sees = unseen == nil
	p.mu.Unlock()
	if asked {
		return errors.New("the sandbox was to end before it was up")
	}
	if err := p.keepView(from); err != nil {
		return err
	}
	watch := &sandbox.Watching{
		DescriptorsMax: spec.Limits.DescriptorsMax, ProcessesMax: spec.Limits.ProcessesMax, Grouped: p.groups.kind.pids != rlimitWatch,
		FilesMax: spec.Limits.FilesMax, Processor: spec.Limits.Processor,
	}
	if p.groups.kind.memory == rlimitWatch {
		watch.MemoryBytes = spec.Limits.MemoryBytes
	}
	files, err := p.open(spec)
	if err != nil {
		return err
	}
	p.mu.Lock()
	p.env = spec.Env
	p.mu.Unlock()
	run := &sandbox.Run{Number: 1, Argv: spec.Argv, Env: spec.Env, Dir: spec.Dir}
	if spec.Argv[0] == sandbox.InitPath { // a part of our own, as a probe or a replayed script is
		run.Env = addEnv(run.Env, race.Options())
	}
	order := sandbox.Order{Run: run, Watch: watch}
	if spec.Egress != "" {
		order.Relay = &sandbox.Relay{Env: race.Options()}
	}
	err = p.send(order, files[:]...)
	for _, f := range files {
		f.Close()
	}
	return err
}

// otherProtocol is the version of what host and sandbox say to each other that an init speaks, where it is not ours.
type otherProtocol int

func (o otherProtocol) Error() string {
	return fmt.Sprintf("the new one speaks version %d inside a sandbox, the daemon version %d", int(o), sandbox.Protocol)
}

func parentOf(pid int) (int, error) {
	raw, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return 0, err
	}
	text := string(raw)
	fields := strings.Fields(text[strings.LastIndexByte(text, ')')+1:])
	if len(fields) < 2 {
		return 0, fmt.Errorf("process %d has no parent", pid)
	}
	return strconv.Atoi(fields[1])
}

// childrenOf returns the children of a process; none where it is gone.
func childrenOf(pid int) (children []int) {
	self := strconv.Itoa(pid)
	raw, _ := os.ReadFile("/proc/" + self + "/task/" + self + "/children")
	for _, field := range strings.Fields(string(raw)) {
		if child, err := strconv.Atoi(field); err == nil {
			children = append(children, child)
		}
	}
	return children
}

// open makes the program's stdin, stdout and stderr and starts copying; it returns the program's ends.
func (p *process) open(spec sandbox.Spec) (files [3]*os.File, err error) {
	defer func() {
		if err != nil {
			for _, f := range files {
				if f != nil {
					f.Close()
				}
			}
			err = fmt.Errorf("open the program's streams: %w", err)
		}
	}()
	if spec.Stdin == nil {
		if files[0], err = os.Open(os.DevNull); err != nil {
			return files, err
		}
	} else {
		r, w, err := os.Pipe()
		if err != nil {
			return files, err
		}
		files[0] = r
		// Not waited for: a reader may block for ever, and a broken pipe only means that nobody read to the end.
		go func() { _, _ = io.Copy(w, spec.Stdin); w.Close() }()
	}
	streams := []struct {
		to   io.Writer
		also io.Writer
	}{{spec.Stdout, nil}, {spec.Stderr, &p.stderr}}
	for i, s := range streams {
		r, w, err := os.Pipe()
		if err != nil {
			return files, err
		}
		files[1+i] = w
		p.copies.Add(1)
		go p.copyOut(r, s.to, s.also)
	}
	return files, nil
}

// send gives init one order, with descriptors.
func (p *process) send(o sandbox.Order, files ...*os.File) error {
	frame, err := sandbox.Frame(o)
	if err != nil {
		return err
	}
	var rights []byte
	if len(files) > 0 {
		var fds []int
		for _, f := range files {
			fds = append(fds, int(f.Fd()))
		}
		rights = unix.UnixRights(fds...)
	}
	p.sending.Lock()
	defer p.sending.Unlock()
	// The descriptors ride on the first bytes; the rest is plain.
	n, _, err := p.control.WriteMsgUnix(frame[:4], rights, nil)
	if err == nil && n < 4 {
		err = io.ErrShortWrite
	}
	if err == nil {
		_, err = p.control.Write(frame[4:])
	}
	if err != nil {
		return fmt.Errorf("speak to the sandbox's init: %w", err)
	}
	return nil
}

// attached is a second program in a sandbox.
type attached struct {
	p       *process
	number  int
	started chan error
	done    chan struct{}
	exit    sandbox.Exit
	err     error
}

// Attach starts another program in the same sandbox.
func (p *process) Attach(ctx context.Context, argv, env []string, dir string, terminal *os.File) (sandbox.Attached, error) {
	if dir == "" {
		dir = sandbox.Mountpoint
	}
	a := &attached{p: p, started: make(chan error, 1), done: make(chan struct{})}
	p.mu.Lock()
	if p.over {
		p.mu.Unlock()
		return nil, fmt.Errorf("attach: %w", sandbox.ErrEnded)
	}
	env = addEnv(p.env, env)
	p.numbers++
	a.number = p.numbers
	p.attached[a.number] = a
	p.mu.Unlock()
	err := p.send(sandbox.Order{Run: &sandbox.Run{Number: a.number, Argv: argv, Env: env, Dir: dir, Terminal: true}}, terminal)
	if err == nil {
		select {
		case err = <-a.started:
		case <-a.done:
			select {
			case err = <-a.started: // a short program: it began before it ended
			default:
				err = sandbox.ErrEnded
			}
		case <-ctx.Done():
			a.Kill()
			err = context.Cause(ctx)
		}
	}
	if err != nil {
		p.mu.Lock()
		delete(p.attached, a.number)
		p.mu.Unlock()
		return nil, fmt.Errorf("attach to the sandbox: %w", err)
	}
	return a, nil
}

// addEnv returns base with the entries of more, which win over those of the same name.
func addEnv(base, more []string) []string {
	out := slices.Clone(base)
	for _, entry := range more {
		name, _, _ := strings.Cut(entry, "=")
		out = slices.DeleteFunc(out, func(old string) bool { return strings.HasPrefix(old, name+"=") })
		out = append(out, entry)
	}
	return out
}

// begun says once whether the program runs; what an init says of it later counts for nothing.
func (a *attached) begun(err error) {
	select {
	case a.started <- err:
	default:
	}
}

// finish is called once with p.mu held.
func (a *attached) finish(exit sandbox.Exit, err error) {
	delete(a.p.attached, a.number)
	a.exit, a.err = exit, err
	close(a.done)
}

// Wait blocks until the program has ended, by itself or with its sandbox.
func (a *attached) Wait() (sandbox.Exit, error) {
	<-a.done
	return a.exit, a.err
}

// Kill ends the program and its session.
func (a *attached) Kill() { _ = a.p.send(sandbox.Order{Kill: a.number}) } // no sandbox, no program
