package workspace

import (
	"context"
	"errors"
	"path/filepath"

	"sallyport/internal/base/git"
	"sallyport/internal/base/problem"
	"sallyport/internal/path/layer"
)

// Renew throws a workspace away, left-over files and the agent's own git included, and returns
// a new one that holds the tree of the commit from of the host's repository: its differences to
// the base are written before the new workspace takes the old one's place, and a walk
// has proven them. No sandbox may be running on it. A crash leaves the old one or the new one;
// an error leaves the old one, unless it says that the old one could not be removed.
//
// Errors: ErrNotRestored; problem.Refused if from has something that no workspace shows;
// problem.Unavailable if this file system holds no deletions over a base.
func (m *Manager) Renew(ctx context.Context, spec Spec, host git.Dir, from git.OID) (Workspace, error) {
	s := layer.Showing{Host: host, Commit: from, Op: "renew:lay"}
	var err error
	if s.Tree, err = host.Tree(ctx, from); err != nil {
		return Workspace{}, err
	}
	if s.Edits, err = host.Edits(ctx, spec.Base, from); err != nil {
		return Workspace{}, err
	}
	if err := layer.Showable(host, s.Edits, from); err != nil {
		return Workspace{}, err
	}
	return m.replace(ctx, spec, func(path string) error {
		r, err := readRecord(path)
		if err != nil {
			return err
		}
		l := layer.Layout{Top: filepath.Join(path, "tree"), Owner: spec.Owner}
		if r.Strategy == Overlay {
			l.Top, l.Overlay = filepath.Join(path, "upper"), true
		}
		err = layer.Lay(ctx, m.ops, s, l)
		if errors.Is(err, layer.ErrNoWhiteouts) {
			return problem.Errorf(problem.Unavailable, "sallyport doctor",
				"the file system of %s cannot record deletions in an overlay (whiteouts): %w", m.root, err)
		}
		if err != nil {
			return err
		}
		return m.workspace(spec, path, r).prove(ctx, host, from, nil)
	})
}
