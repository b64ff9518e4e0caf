package bwrap

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"sallyport/internal/base/problem"
	"sallyport/internal/port/sandbox"
)

// ground is what the tries of a probe are aimed at: a file, sockets where somebody listens, and folders
// of this machine. close takes away what was made.
type ground struct {
	root      string // the probe's scratch folder
	aims      sandbox.Aims
	listeners []net.Listener
	left      int // descriptor that a program started meanwhile inherits; -1 = none
}

// newGround makes it below root.
func (d *Driver) newGround(root string) (*ground, error) {
	g := &ground{root: root, left: -1, aims: sandbox.Aims{
		File: filepath.Join(root, "secret"), Socket: filepath.Join(root, "s"), Folders: []string{root},
		Abstract: "sallyport-probe-" + strconv.Itoa(os.Getpid()) + "-" + filepath.Base(root),
		Process:  os.Getpid(), Started: processStart(os.Getpid()),
	}}
	if home, err := os.UserHomeDir(); err == nil && filepath.IsAbs(home) {
		g.aims.Folders = append(g.aims.Folders, home)
	}
	g.aims.Folders = append(g.aims.Folders, "/root", "/home")
	err := d.config.Ops.Do("probe:ground", func() error {
		if err := os.WriteFile(g.aims.File, []byte("planted\n"), 0o644); err != nil {
			return err
		}
		// A path below the home may be too long for a socket: then that one try is not made.
		if l, err := net.ListenUnix("unix", &net.UnixAddr{Net: "unix", Name: g.aims.Socket}); err == nil {
			l.SetUnlinkOnClose(false) // it goes with the folder
			g.listeners = append(g.listeners, l)
		} else {
			g.aims.Socket = ""
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("probe sandboxes: %w", err)
	}
	if l, err := net.Listen("unix", "@"+g.aims.Abstract); err == nil {
		g.listeners = append(g.listeners, l)
	} else {
		g.aims.Abstract = ""
	}
	if l, err := net.Listen("tcp4", "127.0.0.1:0"); err == nil {
		g.listeners = append(g.listeners, l)
		g.aims.Port = l.Addr().(*net.TCPAddr).Port // of a TCP listener it is nothing else
	}
	return g, nil
}

// open makes a way out that leads nowhere. A path below the home may be too long for a socket: then there is none.
func (g *ground) open() {
	path := filepath.Join(g.root, "e")
	if l, err := net.ListenUnix("unix", &net.UnixAddr{Net: "unix", Name: path}); err == nil {
		l.SetUnlinkOnClose(false)
		g.listeners = append(g.listeners, l)
		g.aims.Egress = path
	}
}

// leave opens the planted file so that a program which is started now inherits it. It holds nothing of anybody's.
func (g *ground) leave() error {
	fd, err := syscall.Open(g.aims.File, syscall.O_RDONLY, 0) // without O_CLOEXEC
	if err != nil {
		return fmt.Errorf("probe sandboxes: %w", err)
	}
	g.left, g.aims.Inherited = fd, g.aims.File
	return nil
}

func (g *ground) close() {
	for _, l := range g.listeners {
		_ = l.Close() // nothing was written
	}
	if g.left >= 0 {
		_ = syscall.Close(g.left)
	}
}

// processStart is when a process began, as runner reads it inside.
func processStart(pid int) string {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return ""
	}
	fields := strings.Fields(string(raw[bytes.LastIndexByte(raw, ')')+1:]))
	if len(fields) < 20 {
		return ""
	}
	return fields[19]
}

// SelfTest runs the same tries in a sandbox and, as their control, where nothing confines them.
func (d *Driver) SelfTest(ctx context.Context) ([]sandbox.Try, error) {
	ctx, cancel := context.WithTimeout(ctx, probeTime)
	defer cancel()
	var all []sandbox.Try
	err := d.onGround(func(g *ground, tree sandbox.Tree, owner sandbox.Owner) error {
		victim, err := d.victim(g)
		if err != nil {
			return err
		}
		defer victim()
		if err := g.leave(); err != nil {
			return err
		}
		g.open() // all is tried where there is a way out
		inside, _, err := d.tryInside(ctx, "probe-tries", owner, sandbox.Tree{Dir: tree.Dir}, g.aims)
		if err != nil {
			return err
		}
		outside, err := d.tryOutside(ctx, g.aims)
		if err != nil {
			return err
		}
		all = compared(inside, outside)
		return nil
	})
	return all, err
}

// victim starts a process that does nothing, to be seen, signalled and traced.
func (d *Driver) victim(g *ground) (end func(), err error) {
	program, _ := d.program()
	cmd := exec.Command(program, "runner", "hold")
	cmd.Env, cmd.Dir = calm, "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	in, err := cmd.StdinPipe()
	if err == nil {
		d.starter.do(func() { err = d.config.Ops.Do("probe:start", cmd.Start) })
	}
	if err != nil {
		return nil, fmt.Errorf("start what a self-test aims at: %w", err)
	}
	g.aims.Process, g.aims.Started = cmd.Process.Pid, processStart(cmd.Process.Pid)
	return func() {
		_ = in.Close() // its end
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}, nil
}

// tryOutside runs the tries as this process's own user, with nothing around them.
func (d *Driver) tryOutside(ctx context.Context, aims sandbox.Aims) ([]sandbox.Tried, error) {
	aims.Outside = true
	text, err := json.Marshal(aims)
	if err != nil {
		return nil, err
	}
	program, _ := d.program()
	var out, said bytes.Buffer
	cmd := exec.CommandContext(ctx, program, "runner", "probe")
	cmd.Env, cmd.Dir = calm, "/"
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(text), &out, &said
	if err := d.config.Ops.Do("probe:control", cmd.Run); err != nil {
		return nil, problem.Errorf(problem.Unavailable, "sallyport doctor", "the controls of the self-test failed: %w: %q", err,
			strings.TrimSpace(said.String()))
	}
	var tried []sandbox.Tried
	if err := json.Unmarshal(out.Bytes(), &tried); err != nil {
		return nil, fmt.Errorf("read the controls of the self-test: %w", err)
	}
	return tried, nil
}

// compared holds what was tried inside against its controls.
func compared(inside, outside []sandbox.Tried) []sandbox.Try {
	worked, why := map[string]bool{}, map[string]string{}
	for _, t := range outside {
		worked[t.Name], why[t.Name] = t.Worked, t.Detail
	}
	var all []sandbox.Try
	for _, t := range inside {
		y := sandbox.Try{Name: t.Name, Held: !t.Worked, Detail: t.Detail}
		switch {
		case worked[t.Name]:
			y.Control = "outside"
		case t.Allowed != "":
			y.Control = t.Allowed
		default:
			y.Detail += "; outside too: " + why[t.Name]
		}
		all = append(all, y)
	}
	return all
}

// weaker is the refusal of a machine where something worked that must not.
func weaker(tried []sandbox.Tried) error {
	var names []string
	for _, t := range tried {
		if t.Worked {
			names = append(names, t.Name)
		}
	}
	if len(names) == 0 {
		return nil
	}
	return problem.Errorf(problem.Unavailable, "sallyport doctor --self-test",
		"the sandbox is weaker than it must be: a program in it can %s; sallyport runs nothing in it", strings.Join(names, "; "))
}

// onGround runs do with what tries are aimed at, the trees of a workspace, and the probe's identity. All lies in a folder of its own, which is
// removed afterwards.
func (d *Driver) onGround(do func(g *ground, tree sandbox.Tree, owner sandbox.Owner) error) (err error) {
	owner := sandbox.Owner{UID: uint32(os.Geteuid()), GID: uint32(os.Getegid())}
	if owner.UID == 0 {
		owner = sandbox.Owner{UID: probeUID, GID: probeUID}
	}
	root, err := d.scratch()
	if err != nil {
		return err
	}
	defer func() {
		err = errors.Join(err, d.config.Ops.Do("probe:remove", func() error {
			// overlayfs leaves a folder without any right in the work directory
			_ = os.Chmod(filepath.Join(root, "work", "work"), 0o700)
			return os.RemoveAll(root)
		}))
	}()
	tree, err := d.probeTrees(root, owner)
	if err != nil {
		return err
	}
	g, err := d.newGround(root)
	if err != nil {
		return err
	}
	defer g.close()
	return do(g, tree, owner)
}
