package landing

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"sallyport/internal/disk"
	"sallyport/internal/git"
)

// settle brings a landing whose end is open to one of its ends, from whatever a crash, a failure or a
// person has left: Landed or Undone. It may be run any number of times.
func (r *run) settle(ctx context.Context, onwards bool) (State, error) {
	tip, err := r.objects.Resolve("refs/heads/" + r.l.Branch)
	if err != nil {
		return "", err
	}
	if len(r.l.Edits) == 0 {
		return Landed, nil
	}
	laid := len(r.done) > 0
	if tip == r.l.NewCommit && tip != r.l.Head {
		if !laid && r.l.WorkTree { // the desk goes only after everything was verified
			return Landed, nil
		}
		if onwards {
			cause := r.finish(nil)
			if cause == nil {
				return Landed, nil
			}
			r.left = append(r.left, reason(cause))
		}
		if err := r.moveRef(ctx, r.l.Head, r.l.NewCommit, "take back"); err != nil {
			return "", err
		}
		tip = r.l.Head
	}
	if tip == r.l.Head || tip == "" {
		return Undone, r.unwind(ctx, laid, nil)
	}
	return r.follow(ctx, tip, laid)
}

// unwind makes the work tree and the index old again.
func (r *run) unwind(ctx context.Context, laid bool, only pick) error {
	if !laid {
		return nil
	}
	if err := r.backward(only); err != nil {
		return err
	}
	if r.locked { // else the index was never written
		if err := r.lockIndex(ctx, r.wait(waitForGit)); err != nil {
			return err
		}
		if err := r.setIndex(false, only); err != nil {
			return err
		}
	}
	return r.verify(false, only)
}

// follow is for a branch that a person has moved meanwhile. It is theirs: each path that their commit
// has as the old or the new one goes there, if it is the other one still; the rest is left alone.
func (r *run) follow(ctx context.Context, tip git.OID, laid bool) (State, error) {
	state := Undone
	within, err := r.Common(disk.Ops{}).Contains(ctx, tip, r.l.NewCommit)
	if err != nil {
		return "", err
	}
	if within {
		state = Landed
	}
	if !laid {
		return state, nil
	}
	paths := make([]string, len(r.note.Steps))
	for i := range r.note.Steps {
		paths[i] = r.note.Steps[i].Path
	}
	theirs, err := r.lookup(tip, paths)
	if err != nil {
		return "", err
	}
	is := func(side func(*step) git.Entry) pick {
		return func(i int) bool { return file(theirs[i]) == side(&r.note.Steps[i]) }
	}
	if err := r.unwind(ctx, laid, is(func(s *step) git.Entry { return s.Old })); err != nil {
		return "", err
	}
	if err := r.finish(is(func(s *step) git.Entry { return s.New })); err != nil {
		r.left = append(r.left, reason(err))
	}
	return state, nil
}

// Recover brings a row that a crash or a failure left open to its end: forward if the branch names
// the new commit, else back. It may be run any number of times, and by several processes.
// An error means that the row is as open as before: try again later.
func (l *Lander) Recover(ctx context.Context, open Landing, steps Steps) (Landing, error) {
	if open.State == Landed || open.State == Undone {
		return open, nil
	}
	held, err := l.lock(ctx, open.Project)
	if err != nil {
		if errors.Is(err, ErrBusy) || ctx.Err() != nil {
			return open, err
		}
		return l.gone(open, steps, err)
	}
	defer held.Close()
	s, err := openSite(ctx, open.Project)
	if err != nil {
		return l.gone(open, steps, err)
	}
	ctx = context.WithoutCancel(ctx)
	d := &desk{site: s, ops: l.Ops, l: &open}
	defer d.end()
	r := run{Lander: l, desk: d, held: held}
	if err := r.resume(ctx); err != nil {
		r.strand(err)
	}
	return r.close(steps)
}

// gone closes a row as stranded whose repository cannot be opened.
func (l *Lander) gone(open Landing, steps Steps, err error) (Landing, error) {
	r := run{Lander: l, desk: &desk{l: &open}}
	r.strand(err)
	return r.close(steps)
}

// resume takes up the desk, if there is one, and settles.
func (r *run) resume(ctx context.Context) error {
	if err := r.configure(); err != nil {
		return err
	}
	if err := r.clearRefLocks(ctx); err != nil {
		return err
	}
	if r.l.WorkTree && len(r.l.Edits) > 0 {
		ready, err := r.open("")
		if err != nil {
			return err
		}
		if ready {
			if err := r.takeUp(ctx); err != nil {
				return err
			}
		}
	}
	state, err := r.settle(ctx, true)
	if err != nil {
		return err
	}
	if state == Undone {
		r.wrapUp(state, errors.New("the host stopped in the middle of it"))
	} else {
		r.wrapUp(state, nil)
	}
	return nil
}

// takeUp reads the desk, and takes the index's lock unless nothing has moved.
func (r *run) takeUp(ctx context.Context) error {
	if err := r.read(); err != nil {
		return err
	}
	tip, err := r.objects.Resolve("refs/heads/" + r.l.Branch)
	if err != nil || tip == r.l.Head && !slices.Contains(r.done, true) && !r.ownLock("index.lock") {
		return err
	}
	return r.lockIndex(ctx, r.wait(waitForGit))
}

// clearRefLocks removes the lock files that a git of ours left when the power went while it moved the
// branch. No such git lives: it would hold the flock. A lock is ours if it is for the new
// commit or the old, and nobody has moved it for as long as any git needs.
func (r *run) clearRefLocks(ctx context.Context) error {
	ref := "refs/heads/" + r.l.Branch + ".lock"
	for _, c := range []struct {
		in   *folder
		path string
		ours func(text string) bool
	}{
		{r.common, ref, func(text string) bool { return text == string(r.l.NewCommit) || text == string(r.l.Head) }},
		{r.gitDir, "HEAD.lock", func(text string) bool { return text == "" }}, // taken for the reflog alone
	} {
		var first unix.Stat_t
		gone, err := poll(ctx, r.wait(waitForGit), func() (bool, error) {
			var now unix.Stat_t
			err := c.in.stat(c.path, &now)
			if err == nil && first.Ino == 0 {
				first = now
			}
			return errors.Is(err, unix.ENOENT) || err == nil && now.Ino != first.Ino, nil
		})
		if err != nil || gone {
			if err != nil {
				return err
			}
			continue
		}
		text, err := c.in.small(c.path)
		if err != nil || !c.ours(strings.TrimSpace(text)) || time.Unix(first.Mtim.Unix()).Before(r.l.Started.Add(-time.Minute)) {
			continue
		}
		if err := r.ops.Do("ref:unlock", func() error { return c.in.unlink(c.path) }); err != nil {
			return fmt.Errorf("remove the stale lock %q: %w", c.path, err)
		}
	}
	return nil
}
