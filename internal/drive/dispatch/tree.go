package dispatch

import (
	"context"
	"errors"
	"sync"

	"sallyport/internal/base/git"
	"sallyport/internal/base/inert"
	"sallyport/internal/base/problem"
	"sallyport/internal/drive/ledger"
	"sallyport/internal/store"
	"sallyport/internal/who/group"
)

// tree is what a group is now, as one object: what its branch has, or what it had before a change that goes back.
func (d *Dispatcher) tree(ctx context.Context, of group.Folder) (git.OID, error) {
	head, err := d.Home.Head(ctx)
	if err != nil {
		return "", problem.Errorf(problem.Unavailable, "sallyport doctor", "the home's repository has no branch that can be read: %w", err)
	}
	if old, err := (Renewer{d}).leaving(ctx, of); err != nil {
		return "", err
	} else if old != "" {
		head = old
	}
	if tree, ok := d.found.tree(head, of); ok {
		return tree, nil
	}
	tree, err := group.FindTree(ctx, d.Home, head, of)
	if p := (&problem.Problem{}); errors.As(err, &p) && p.Kind == problem.NotFound {
		return "", problem.Errorf(problem.NotFound, "sallyport group list", "there is no group %q in this home", inert.Short(string(of), 60))
	}
	if err == nil {
		d.found.keep(head, of, tree)
	}
	return tree, err
}

// leaving is the commit whose files a group runs while it is to go back and its files have not; "" otherwise (SM-906).
func (d Renewer) leaving(ctx context.Context, of group.Folder) (commit git.OID, err error) {
	err = d.DB.Read(ctx, func(tx store.Tx) error {
		open, err := tx.OpenTrials(ctx)
		if err != nil {
			return err
		}
		for _, t := range open {
			if t.Leaves(of) {
				l, err := ledger.LandingNamed(ctx, tx, t.Landing)
				commit = l.Head
				return err
			}
		}
		return nil
	})
	return commit, err
}

// found are the trees of groups in one commit, which never change: to look for them costs a process.
type found struct {
	mu     sync.Mutex
	commit git.OID
	trees  map[group.Folder]git.OID
}

func (f *found) tree(commit git.OID, of group.Folder) (git.OID, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	tree, ok := f.trees[of]
	return tree, ok && f.commit == commit
}

func (f *found) keep(commit git.OID, of group.Folder, tree git.OID) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.commit != commit {
		f.commit, f.trees = commit, map[group.Folder]git.OID{}
	}
	f.trees[of] = tree
}
