package workspace

import (
	"context"
	"errors"
	"os"

	"sallyport/internal/base/git"
	"sallyport/internal/base/id"
	"sallyport/internal/base/problem"
)

// Found opens a workspace by its record alone, and returns it with the host's repository that holds its base:
// for one whose change nobody knows.
//
// Errors: problem.NotFound if there is none, or no repository of the host's holds its base.
func (m *Manager) Found(ctx context.Context, change id.Change) (Workspace, git.Dir, error) {
	path := m.home(change)
	r, err := readRecord(path)
	if errors.Is(err, os.ErrNotExist) {
		return Workspace{}, git.Dir{}, problem.Errorf(problem.NotFound, "", "the folder %q has no record of a workspace", path)
	}
	if err != nil {
		return Workspace{}, git.Dir{}, err
	}
	for _, objects := range r.Objects {
		spec := Spec{Change: change, Base: r.Base, Owner: r.Owner}
		host, ok := m.Repositories.Showing(ctx, objects, r.Base)
		if !ok {
			continue
		}
		w := m.workspace(spec, path, r)
		w.host = host // no record names the project
		return w, host, nil
	}
	return Workspace{}, git.Dir{}, problem.Errorf(problem.NotFound, "", "no repository holds %.12s, the base of the workspace %q", r.Base, path)
}
