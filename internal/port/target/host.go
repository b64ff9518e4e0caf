package target

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"sallyport/internal/base/disk"
	"sallyport/internal/base/git"
	"sallyport/internal/base/id"
	"sallyport/internal/base/inert"
	"sallyport/internal/base/problem"
	"sallyport/internal/rule/trust"
)

// Host restarts and probes targets on this machine.
type Host struct {
	Ops     disk.Ops
	Changes string              // folder of what is kept of each change
	Clean   func(string) string // takes secrets out of a command's output; nil = shows it as it is
}

// Place is where a target's commands run, and for whom.
type Place struct {
	Project git.Project
	Change  id.Change // "" for none
}

// changeVariable tells a command of a target which change it runs for.
const changeVariable = "SALLYPORT_CHANGE"

// outputFile is where a restart writes, in its change's folder. It is the same file for every restart of one change:
// what an earlier one left running may still write to it.
const outputFile = "restart.out"

const (
	keptBytesMax   = 64 << 10 // of a restart's output, when it has ended
	strayBytesMax  = 1 << 20  // of what it left running, until Trim
	answerBytesMax = 1 << 20  // of a probe's answer or output
)

// Restart runs t's restart, nothing if it has none. Errors: problem.Refused naming the command, how it ended and the last
// line it wrote; problem.Unavailable if it could not be run; ctx's cause. Its last output is kept without secrets.
func (h Host) Restart(ctx context.Context, t trust.Target, at Place) error {
	if t.Restart == "" {
		return nil
	}
	t = t.Filled()
	cmd, err := command(t, t.Restart, at)
	if err != nil {
		return err
	}
	cmd.Limit, cmd.Stays = t.Within, true
	folder := filepath.Join(h.Changes, string(at.Change))
	running := filepath.Join(folder, runFile)
	err = h.Ops.Do("target:output", func() error {
		if err := os.MkdirAll(folder, 0o700); err != nil {
			return err
		}
		if err := endInterrupted(folder, at); err != nil {
			return err
		}
		cmd.Out, err = os.OpenFile(filepath.Join(folder, outputFile), os.O_RDWR|os.O_CREATE|os.O_APPEND|unix.O_NOFOLLOW, 0o600)
		if err == nil {
			err = cmd.Out.Truncate(0)
		}
		if err == nil {
			cmd.Note, err = os.OpenFile(running, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
		}
		return err
	})
	if err != nil {
		return problem.Errorf(problem.Unavailable, "df -h "+inert.Path(h.Changes), "keep the output of the restart: %w", err)
	}
	defer func() { _ = errors.Join(cmd.Out.Close(), cmd.Note.Close()) }() // what matters was written by keep and by the shell
	ran := h.Ops.Do("target:restart", func() error { return errors.Join(cmd.Run(ctx), os.Remove(running)) })
	text, err := h.keep(cmd.Out)
	if ran != nil {
		return h.failed(ctx, at, "the restart failed: "+inert.Line(t.Restart), ran, text)
	}
	return err
}

// keep leaves the end of a restart's output in its file, without secrets, and returns it.
func (h Host) keep(out *os.File) (string, error) {
	text, err := tail(out, keptBytesMax)
	text = h.clean(text)
	if err == nil {
		err = h.Ops.Do("target:keep", func() error {
			if err := out.Truncate(0); err != nil {
				return err
			}
			_, err := out.WriteString(text)
			return err
		})
	}
	if err != nil {
		return "", problem.Errorf(problem.Unavailable, "df -h "+inert.Path(h.Changes), "keep the output of the restart: %w", err)
	}
	return text, nil
}

// Trim empties the output of every restart whose service went on writing to it beyond 1 MiB: what a service has to say
// belongs into a file of its own.
func (h Host) Trim() error {
	all, err := filepath.Glob(filepath.Join(h.Changes, "*", outputFile))
	if err != nil {
		return err
	}
	var errs []error
	for _, file := range all {
		if st, err := os.Lstat(file); err != nil || !st.Mode().IsRegular() || st.Size() <= strayBytesMax {
			continue
		}
		errs = append(errs, h.Ops.Do("target:trim", func() error { return os.Truncate(file, 0) }))
	}
	return errors.Join(errs...)
}

func (h Host) clean(text string) string {
	if h.Clean == nil {
		return text
	}
	return h.Clean(text)
}

// failed says how a command failed, with its last words.
func (h Host) failed(ctx context.Context, at Place, what string, ran error, text string) error {
	next := "sallyport target show --repo " + inert.Path(at.Project.Top)
	switch {
	case ctx.Err() != nil:
		return fmt.Errorf("%s: %w", h.clean(what), ran)
	case !errors.Is(ran, errExit) && !errors.Is(ran, errTime) && !errors.Is(ran, errFlood):
		return problem.Errorf(problem.Unavailable, next, "%s: %w", h.clean(what), ran)
	}
	if last := lastLine(text); last != "" {
		return problem.Errorf(problem.Refused, next, "%s: %w: %s", h.clean(what), ran, inert.Line(last))
	}
	return problem.Errorf(problem.Refused, next, "%s: %w", h.clean(what), ran)
}

// command is a target's command at its place.
func command(t trust.Target, words string, at Place) (Command, error) {
	c := Command{Words: words, Dir: at.Project.Top, Env: Environment()}
	if t.Proposed && os.Geteuid() == 0 && at.Project.UID != 0 { // never as root what a stranger's file says
		as, home, name, err := owner(at.Project)
		if err != nil {
			return Command{}, problem.Errorf(problem.Unavailable, "id "+strconv.Itoa(int(at.Project.UID)),
				"run the command as the owner of %q: %w", at.Project.Top, err)
		}
		c.As = as
		c.Env = environment(map[string]string{"HOME": home, "USER": name, "XDG_RUNTIME_DIR": "/run/user/" + strconv.Itoa(int(at.Project.UID))})
	}
	if at.Change != "" {
		c.Env = append(c.Env, changeVariable+"="+string(at.Change))
	}
	return c, nil
}

// Environment is all that a command of the host's own sees: where things are, and more ("NAME=value") that is said of the change.
func Environment(more ...string) []string { return append(environment(nil), more...) }

func environment(instead map[string]string) []string {
	var env []string
	for _, name := range []string{"PATH", "HOME", "USER", "LANG", "XDG_RUNTIME_DIR"} {
		v, other := instead[name]
		if !other {
			v = os.Getenv(name)
		}
		if v != "" {
			env = append(env, name+"="+v)
		}
	}
	return env
}

// owner is who a repository belongs to, with the groups and the home that they log in with. A number without a name
// has the folder's group alone.
func owner(p git.Project) (as *syscall.Credential, home, name string, err error) {
	as = &syscall.Credential{Uid: p.UID, Gid: p.GID}
	u, err := user.LookupId(strconv.Itoa(int(p.UID)))
	if errors.As(err, new(user.UnknownUserIdError)) {
		return as, "/", strconv.Itoa(int(p.UID)), nil
	}
	if err != nil {
		return nil, "", "", err
	}
	gid, err := strconv.ParseUint(u.Gid, 10, 32)
	if err != nil {
		return nil, "", "", err
	}
	as.Gid = uint32(gid)
	groups, err := u.GroupIds()
	if err != nil {
		return nil, "", "", err
	}
	for _, g := range groups {
		n, err := strconv.ParseUint(g, 10, 32)
		if err != nil {
			return nil, "", "", err
		}
		as.Groups = append(as.Groups, uint32(n))
	}
	return as, u.HomeDir, u.Username, nil
}

// Ask asks once whether t answers; nil if nothing is asked. Errors: problem.Refused naming what was asked and what
// came back; problem.Unavailable if it could not be asked; ctx's cause.
func (h Host) Ask(ctx context.Context, t trust.Target, at Place) error {
	if err := h.ask(ctx, t.Filled(), at); err != nil {
		return fmt.Errorf("the probe did not pass: %w", err)
	}
	return nil
}

func (h Host) ask(ctx context.Context, t trust.Target, at Place) error {
	switch {
	case t.Probe.Command != "":
		return h.askCommand(ctx, t, at)
	case t.Probe.HTTP != "":
		return h.askHTTP(ctx, t, at)
	}
	return nil
}

func (h Host) askCommand(ctx context.Context, t trust.Target, at Place) error {
	cmd, err := command(t, t.Probe.Command, at)
	if err != nil {
		return err
	}
	out, err := Memory()
	if err != nil {
		return problem.Errorf(problem.Unavailable, "free -m", "make a file in memory for the output of the probe: %w", err)
	}
	defer func() { _ = out.Close() }() // nothing of it stays
	cmd.Out, cmd.Limit = out, t.Probe.Timeout
	ran := cmd.Run(ctx)
	if ran == nil {
		return nil
	}
	return h.failed(ctx, at, inert.Line(t.Probe.Command), ran, h.clean(Said(out)))
}

// Memory returns a file without a name that takes answerBytesMax bytes and no more: writing beyond is an error of the writer's.
func Memory() (*os.File, error) {
	fd, err := unix.MemfdCreate("sallyport", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		return nil, err
	}
	f := os.NewFile(uintptr(fd), "output")
	err = f.Truncate(answerBytesMax)
	if err == nil {
		_, err = unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, unix.F_SEAL_GROW|unix.F_SEAL_SEAL)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// Said is what was written to a file of Memory's; "" if it cannot be read.
func Said(f *os.File) string {
	raw, _ := io.ReadAll(io.NewSectionReader(f, 0, answerBytesMax)) // without it an error stands alone
	return strings.TrimRight(string(raw), "\x00")
}

// Wait asks until t has answered for Healthy without a miss. It gives up when nothing that lasts has begun by the end
// of Within, and at once when a target that has answered misses three times in a row. Errors as of Ask.
func (h Host) Wait(ctx context.Context, t trust.Target, at Place) error {
	t = t.Filled()
	if t.Probe.None() {
		return nil
	}
	began := time.Now()
	var since time.Time // of the answers in a row
	answered, misses := false, 0
	next := time.NewTimer(0)
	defer next.Stop()
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-next.C:
		}
		asked := time.Now()
		err := h.ask(ctx, t, at)
		switch now := time.Now(); {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case err == nil:
			if answered, misses = true, 0; since.IsZero() {
				since = now
			}
			if now.Sub(since) >= t.Probe.Healthy {
				return nil
			}
		default:
			since = time.Time{}
			misses++
			late := now.Sub(began) >= t.Probe.Within
			if answered && (misses >= trust.MissesMax || late) {
				return fmt.Errorf("the target answered at first, then stopped answering: %w", err)
			}
			if late {
				return fmt.Errorf("the probe did not pass: %w", err)
			}
		}
		next.Reset(max(t.Probe.Every-time.Since(asked), 0))
	}
}
