package bwrap

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"sallyport/internal/base/cgroup"
	"sallyport/internal/port/sandbox"
)

// freezePatience is how long a freeze may take when the context has no deadline, on a machine that has much else to do.
const freezePatience = 10 * time.Second

// Freeze stops every process of the sandbox and shows that all stand still, or
// lets all run again and returns an error (SV-085).
func (p *process) Freeze(ctx context.Context) error {
	p.freezing.Lock()
	defer p.freezing.Unlock()
	ctx, cancel := context.WithTimeoutCause(ctx, freezePatience, errors.New("not every process stopped in time"))
	defer cancel()
	var err error
	if p.groups.unified != "" {
		err = p.freezeGroup(ctx)
	} else {
		err = p.freezeByInit(ctx)
	}
	if err == nil {
		return nil
	}
	return errors.Join(fmt.Errorf("freeze the sandbox: %w", err), p.thaw())
}

func (p *process) freezeGroup(ctx context.Context) error {
	if err := writeGroup(p.groups.ops, p.groups.unified, "cgroup.freeze", "1"); err != nil {
		return p.orEnded(err)
	}
	return p.poll(ctx, func() (bool, error) {
		frozen, ok := cgroup.Number(p.groups.unified, "cgroup.events", "frozen")
		if !ok {
			return false, p.orEnded(errors.New("the control group is gone"))
		}
		return frozen == 1, nil
	})
}

// poll asks until yes, more slowly with time.
func (p *process) poll(ctx context.Context, ask func() (bool, error)) error {
	for pause := 50 * time.Microsecond; ; pause = min(2*pause, 10*time.Millisecond) {
		yes, err := ask()
		if yes || err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-p.done:
			return sandbox.ErrEnded
		case <-time.After(pause):
		}
	}
}

// freezeByInit asks init, and then looks from outside.
func (p *process) freezeByInit(ctx context.Context) error {
	deadline, _ := ctx.Deadline()
	select {
	case <-p.stopped: // a late answer to an earlier try
	default:
	}
	if err := p.send(sandbox.Order{Freeze: &sandbox.Freezing{Within: time.Until(deadline) * 9 / 10}}); err != nil {
		return p.orEnded(err)
	}
	select {
	case s := <-p.stopped:
		if s.Error != "" {
			return errors.New(s.Error)
		}
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-p.done:
		return sandbox.ErrEnded
	}
	p.mu.Lock()
	init := p.initPID
	p.mu.Unlock()
	// A process that dies takes a moment, and stands only then.
	var last error
	err := p.poll(ctx, func() (bool, error) {
		last = allStill(init)
		return last == nil, nil
	})
	if err != nil && last != nil && !errors.Is(err, sandbox.ErrEnded) {
		return fmt.Errorf("%w: %w", err, last)
	}
	return err
}

// Thaw lets all run again.
func (p *process) Thaw() error {
	p.freezing.Lock()
	defer p.freezing.Unlock()
	return p.thaw()
}

func (p *process) thaw() error {
	select {
	case <-p.done:
		return nil
	default:
	}
	if p.groups.unified != "" {
		err := writeGroup(p.groups.ops, p.groups.unified, "cgroup.freeze", "0")
		gone := errors.Is(err, os.ErrNotExist) || errors.Is(err, syscall.ENODEV) // it has ended, and its group with it
		if err != nil && !gone {
			return fmt.Errorf("thaw the sandbox: %w", err)
		}
		return nil
	}
	return thawByInit(p)
}

func thawByInit(p *process) error {
	select {
	case <-p.thawed:
	default:
	}
	if err := p.send(sandbox.Order{Thaw: true}); err != nil {
		return p.unlessOver(err)
	}
	select {
	case <-p.thawed:
		return nil
	case <-p.done:
		return nil
	case <-time.After(freezePatience):
		return errors.New("thaw the sandbox: its init does not answer")
	}
}

// orEnded is why nothing could be stopped: the sandbox ended meanwhile, or err.
func (p *process) orEnded(err error) error {
	if p.unlessOver(err) == nil {
		return sandbox.ErrEnded
	}
	return err
}

// unlessOver forgives a sandbox that ended meanwhile.
func (p *process) unlessOver(err error) error {
	select {
	case <-p.done:
		return nil
	case <-time.After(freezePatience):
		return err
	}
}

// allStill looks from the host: every thread of every descendant of init is
// stopped or dead.
func allStill(init int) error {
	inside, err := descendants(init)
	if err != nil {
		return err
	}
	for _, pid := range inside {
		tasks, err := filepath.Glob("/proc/" + strconv.Itoa(pid) + "/task/*/stat")
		if err != nil {
			return err
		}
		for _, task := range tasks {
			raw, err := os.ReadFile(task)
			if err != nil {
				continue // gone
			}
			if state := stateOf(string(raw)); !strings.ContainsRune("TtZXx", state) {
				return fmt.Errorf("process %d is still running (%c)", pid, state)
			}
		}
	}
	return nil
}

// descendants lists every process below init. Inside a pid namespace orphans go to init, so none is missed.
func descendants(init int) ([]int, error) {
	parents, err := parents()
	if err != nil {
		return nil, err
	}
	inside := map[int]bool{init: true}
	for grown := true; grown; {
		grown = false
		for pid, parent := range parents {
			if inside[parent] && !inside[pid] {
				inside[pid], grown = true, true
			}
		}
	}
	delete(inside, init)
	return slices.Collect(maps.Keys(inside)), nil
}

func stateOf(stat string) rune {
	rest := strings.TrimLeft(stat[strings.LastIndexByte(stat, ')')+1:], " ")
	if rest == "" {
		return '?'
	}
	return rune(rest[0])
}

// parents lists every process of this machine with its parent.
func parents() (map[int]int, error) {
	dir, err := os.Open("/proc")
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	names, err := dir.Readdirnames(-1)
	if err != nil {
		return nil, err
	}
	out := map[int]int{}
	for _, name := range names {
		pid, err := strconv.Atoi(name)
		if err != nil {
			continue
		}
		if parent, err := parentOf(pid); err == nil {
			out[pid] = parent
		}
	}
	return out, nil
}
