package landing

import (
	"context"
	"errors"
	"slices"

	"sallyport/internal/base/disk"
	"sallyport/internal/base/git"
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
	if tip == r.l.NewCommit && tip != r.l.Head {
		if !r.laid { // the desk goes only after everything was verified
			return Landed, nil
		}
		if onwards {
			cause := r.there(ctx)
			if cause == nil {
				cause = r.finish(nil)
			}
			if cause == nil {
				return Landed, nil
			}
			r.left = append(r.left, reason(cause))
		}
		if err := r.takeBack(ctx); err != nil {
			return "", err
		}
		tip = r.l.Head
	}
	if tip == r.l.Head || tip == "" {
		return Undone, r.unwind(ctx, nil)
	}
	return r.follow(ctx, tip)
}

// unwind makes the work tree and the index old again.
func (r *run) unwind(ctx context.Context, only pick) error {
	if !r.laid {
		return nil
	}
	if err := (live{r.desk}).backward(only); err != nil {
		return err
	}
	if r.wrote { // else an entry that is as approved is a person's
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
func (r *run) follow(ctx context.Context, tip git.OID) (State, error) {
	state := Undone
	within, err := r.Common(disk.Ops{}).Contains(ctx, tip, r.l.NewCommit)
	if err != nil {
		return "", err
	}
	if within {
		state = Landed
	}
	if !r.laid {
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
		return func(i int) bool { return theirs[i].File() == side(&r.note.Steps[i]) }
	}
	if err := r.unwind(ctx, is(func(s *step) git.Entry { return s.Old })); err != nil {
		return "", err
	}
	if err := r.finish(is(func(s *step) git.Entry { return s.New })); err != nil {
		r.left = append(r.left, reason(err))
	}
	return state, nil
}

// Recover brings a row that a crash or a failure left open to its end: forward if the branch names
// the new commit, else back. It may be run any number of times, and by several processes. One that is back with nothing left behind is
// closed by steps.Again.
// An error means that the row is as open as before: try again later.
func (l *Lander) Recover(ctx context.Context, open Landing, steps Steps) (Landing, error) {
	if open.State == Landed || open.State == Undone {
		return open, nil
	}
	stopped := open.State == Journaled
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
	if open.New {
		s.ground = open.Head
	}
	d := &desk{site: s, ops: l.Ops, l: &open}
	defer d.end()
	r := run{Lander: l, desk: d}
	if err := r.resume(ctx); err != nil {
		r.strand(err)
	}
	if stopped && r.l.State == Undone && len(r.left) == 0 {
		steps.Close = steps.Again
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
	if err := (objects{r.site}).sweepAside(r.ops); err != nil {
		return err
	}
	ready, err := r.open("")
	if err != nil {
		return err
	}
	if ready {
		if err := r.takeUp(ctx); err != nil {
			return err
		}
	}
	state, err := r.settle(ctx, true)
	if err != nil {
		return err
	}
	if state == Undone {
		r.wrapUp(state, errors.New("sallyport stopped in the middle of the landing"))
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
	if err != nil || !r.l.WorkTree || tip == r.l.Head && !slices.Contains(r.done, true) && !r.ownLock() {
		return err
	}
	r.wrote = true // for all that the desk tells
	return r.lockIndex(ctx, r.wait(waitForGit))
}
