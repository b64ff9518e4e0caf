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
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"sallyport/internal/base/problem"
	"sallyport/internal/port/sandbox"
)

// startPatience is how long a sandbox may take until its program runs.
const startPatience = 30 * time.Second

// start runs a spec without asking whether the machine was proven.
func (d *Driver) start(ctx context.Context, spec sandbox.Spec) (*process, error) {
	p, err := d.startUnder(ctx, spec, "")
	if err != nil {
		return nil, err
	}
	return p, nil
}

// startUnder is start with another program than the launcher's as init; "" = the launcher's. A sandbox that has ended before its program ran
// is returned beside the error.
func (d *Driver) startUnder(ctx context.Context, spec sandbox.Spec, init string) (*process, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("start sandbox %q: %w", spec.ID, context.Cause(ctx))
	}
	if spec.Dir == "" {
		spec.Dir = sandbox.Mountpoint
	}
	spec.Limits = spec.Limits.OrDefault()
	if err := d.check(spec); err != nil {
		return nil, err
	}
	bubblewrap, err := d.bubblewrap()
	if err != nil {
		return nil, err
	}
	layout := d.groupLayout()
	if spec.Range && (layout.kind.memory == rlimitWatch || layout.kind.pids == rlimitWatch) {
		return nil, sandbox.ErrUnheld
	}
	if err := d.hand(spec); err != nil {
		return nil, err
	}
	groups, err := layout.make(d.config.Ops, spec.ID, spec.Limits)
	if err != nil {
		return nil, err
	}
	p, err := d.launch(spec, bubblewrap, groups, init)
	groups.close()
	if err != nil {
		return nil, errors.Join(fmt.Errorf("start sandbox %q: %w", spec.ID, err), groups.remove())
	}
	p.foreign = init != ""
	p.begin(ctx, spec)
	if init != "" {
		go countOutside(p) // ends with it
	}
	select {
	case err = <-p.started:
	case <-time.After(d.patience):
		err = errors.New("the sandbox did not start in time")
	}
	if err == nil {
		return p, nil
	}
	p.abandon()
	<-p.done
	if cause := context.Cause(ctx); cause != nil {
		return p, fmt.Errorf("start sandbox %q: %w", spec.ID, cause)
	}
	return p, fmt.Errorf("start sandbox %q: %w", spec.ID, p.explain(err))
}

// explain adds to a failed start what bwrap or init said.
func (p *process) explain(err error) error {
	if kind := problem.KindOf(err); kind != problem.Internal {
		return err
	}
	if said := p.said(); said != "" {
		err = fmt.Errorf("%w: %q", err, said)
	}
	return problem.Errorf(problem.Unavailable, "sallyport doctor", "the sandbox could not be built: %w", err)
}

// calm keeps the launcher's runtime from starting threads and collecting garbage in the milliseconds it lives.
var calm = []string{"GOMAXPROCS=1", "GOGC=off"}

// launch starts the launcher with everything it needs and nothing else.
func (d *Driver) launch(spec sandbox.Spec, bubblewrap string, g *groups, init string) (*process, error) {
	filter, err := d.filterProgram(filterOf(spec))
	if err != nil {
		return nil, err
	}
	var opened []*os.File // ours to close once the launcher has its own
	defer func() {
		for _, f := range opened {
			f.Close()
		}
	}()
	keep := func(f *os.File) *os.File { opened = append(opened, f); return f }

	ours, theirs, err := socketPair()
	if err != nil {
		return nil, err
	}
	keep(theirs)
	conn, err := net.FileConn(ours)
	ours.Close()
	if err != nil {
		return nil, fmt.Errorf("open control socket: %w", err)
	}
	control := conn.(*net.UnixConn) // a socket pair of AF_UNIX is nothing else

	program, _ := d.program() // which one it is, and why, the probe says
	l := sandbox.Launch{
		Parent: os.Getpid(), Drop: os.Geteuid() == 0, Owner: spec.Owner, Tree: spec.Tree, Binds: slices.Concat(spec.Own, spec.Binds),
		Image: spec.Image, Mounts: spec.Mounts, Egress: spec.Egress, Home: spec.Home, Cache: spec.Cache, Background: spec.Background, Range: spec.Range,
		Self: program, Bubblewrap: bubblewrap, ScratchBytes: spec.Limits.MemoryBytes, ScratchFiles: int64(spec.Limits.FilesMax),
	}
	if spec.Argv[0] == sandbox.SelfPath { // an adapter is in the whole program only
		l.Binds = append(l.Binds, sandbox.Bind{Source: d.config.Self, Target: sandbox.SelfPath})
	}
	extra := []*os.File{theirs, nil, nil} // descriptors 3, 4, 5: see package sandbox
	if l.Drop {
		extra = d.passMaps(&l, extra)
	}
	if init != "" { // from here on it is a file to show, and no program to run out here
		l.Self = init
	}
	for _, f := range g.join {
		l.GroupFDs = append(l.GroupFDs, 3+len(extra))
		extra = append(extra, f)
	}
	text, err := json.Marshal(l)
	if err == nil {
		extra[sandbox.LaunchFD-3], err = memfile("launch", text)
	}
	if err == nil {
		keep(extra[sandbox.LaunchFD-3])
		extra[sandbox.FilterFD-3], err = memfile("filter", filter)
	}
	if err != nil {
		_ = control.Close()
		return nil, err
	}
	keep(extra[sandbox.FilterFD-3])

	cmd := exec.Command(program, "runner", "launch")
	cmd.Env = calm
	cmd.Dir = "/"
	cmd.ExtraFiles = extra
	cmd.SysProcAttr = d.attributes(g)
	said, err := newTail(cmd, keep)
	if err != nil {
		_ = control.Close()
		return nil, err
	}
	d.starter.do(func() { err = d.config.Ops.Do("sandbox:start", cmd.Start) })
	if err != nil {
		_ = control.Close()
		said.Close()
		return nil, d.explainStart(err)
	}
	return newProcess(cmd, control, said, g), nil
}

// passMaps adds to a launcher's descriptors the id maps that it shows folders of others through.
func (d *Driver) passMaps(l *sandbox.Launch, extra []*os.File) []*os.File {
	passed := map[sandbox.Owner]int{}
	pass := func(from sandbox.Owner) int {
		if fd, ok := passed[from]; ok {
			return fd
		}
		// Without one the launcher refuses a layer that needs it, naming it, and shows a mount as it is.
		f, err := d.idmaps.mapping(&d.starter, l.Self, idmap{from, l.Owner})
		if err != nil {
			return 0
		}
		passed[from] = 3 + len(extra)
		extra = append(extra, f)
		return passed[from]
	}

	l.IdmapFD = pass(sandbox.Owner{})
	l.MountFDs = make([]int, len(l.Mounts))
	for i, m := range l.Mounts {
		if m.Of != l.Owner {
			l.MountFDs[i] = pass(m.Of)
		}
	}
	return extra
}

// attributes are the namespaces the launcher is born in.
func (d *Driver) attributes(g *groups) *syscall.SysProcAttr {
	a := &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL, Cloneflags: syscall.CLONE_NEWNS}
	if g.into != nil {
		a.UseCgroupFD, a.CgroupFD = true, int(g.into.Fd())
	}
	if uid, gid := os.Geteuid(), os.Getegid(); uid != 0 {
		a.Cloneflags |= syscall.CLONE_NEWUSER
		a.UidMappings = []syscall.SysProcIDMap{{ContainerID: uid, HostID: uid, Size: 1}}
		a.GidMappings = []syscall.SysProcIDMap{{ContainerID: gid, HostID: gid, Size: 1}}
		// What mounting an overlay and copying up in it takes; the launcher gives all of it up.
		a.AmbientCaps = []uintptr{
			unix.CAP_SYS_ADMIN, unix.CAP_CHOWN, unix.CAP_DAC_OVERRIDE, unix.CAP_FOWNER, unix.CAP_FSETID, unix.CAP_MKNOD, unix.CAP_SETFCAP,
		}
	}
	return a
}

// explainStart turns the errors of a kernel that gives no namespaces into what a person can do.
func (d *Driver) explainStart(err error) error {
	if !errors.Is(err, unix.EPERM) && !errors.Is(err, unix.ENOSPC) && !errors.Is(err, unix.EINVAL) && !errors.Is(err, unix.EUSERS) {
		return fmt.Errorf("start launcher: %w", err)
	}
	_, fix := userNamespaces()
	return problem.Errorf(problem.Unavailable, fix, "this machine gives no namespaces to uid %d: %w", os.Geteuid(), err)
}

// socketPair returns both ends of the control socket; ours learns the sender's real pid.
func socketPair() (ours, theirs *os.File, err error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, fmt.Errorf("open control socket: %w", err)
	}
	ours, theirs = os.NewFile(uintptr(fds[0]), "control"), os.NewFile(uintptr(fds[1]), "control")
	if err := unix.SetsockoptInt(fds[0], unix.SOL_SOCKET, unix.SO_PASSCRED, 1); err != nil {
		ours.Close()
		theirs.Close()
		return nil, nil, fmt.Errorf("open control socket: %w", err)
	}
	return ours, theirs, nil
}

// memfile returns text as a file in memory, at its beginning.
func memfile(name string, text []byte) (*os.File, error) {
	fd, err := unix.MemfdCreate(name, unix.MFD_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("pass %s: %w", name, err)
	}
	f := os.NewFile(uintptr(fd), name)
	if _, err = f.Write(text); err == nil {
		_, err = f.Seek(0, io.SeekStart)
	}
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("pass %s: %w", name, err)
	}
	return f, nil
}

// tail keeps the last of what bwrap and init say about themselves; programs write elsewhere.
type tail struct {
	*os.File
	last []byte
	done chan struct{}
}

const tailBytes = 4 << 10

func newTail(cmd *exec.Cmd, keep func(*os.File) *os.File) (*tail, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("open pipe: %w", err)
	}
	keep(w)
	cmd.Stdout, cmd.Stderr = w, w
	return &tail{File: r, done: make(chan struct{})}, nil
}

func (t *tail) read() {
	defer close(t.done)
	defer t.Close()
	buf := make([]byte, tailBytes)
	for {
		n, err := t.File.Read(buf)
		t.last = append(t.last, buf[:n]...)
		if over := len(t.last) - tailBytes; over > 0 {
			t.last = bytes.Clone(t.last[over:])
		}
		if err != nil {
			return
		}
	}
}

// said returns the last line of it; only after done.
func (p *process) said() string {
	<-p.tail.done
	lines := strings.Split(strings.TrimSpace(string(p.tail.last)), "\n")
	return lines[len(lines)-1]
}
