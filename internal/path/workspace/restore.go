package workspace

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"sallyport/internal/base/beneath"
	"sallyport/internal/base/git"
	"sallyport/internal/base/problem"
	"sallyport/internal/path/layer"
)

// ErrNotRestored says that a workspace was written and, looked at again, is not what it should be.
// The way on is a new one: Renew.
var ErrNotRestored = problem.New(problem.Conflict, "the workspace does not hold the files that were to be restored")

// Restore makes a workspace hold what the commit to of the host's repository holds: at every
// path, or with only at the named ones (files, or folders with all below them). A path
// that to does not have is removed, and so is a folder that is empty then and that to does
// not have. At the end a new walk reads every changed file and compares (SV-048, SV-049, SV-050).
//
// View is the merged tree of the sandbox that runs on the workspace (sandbox.Process.View);
// all that runs there should be frozen. The upper directory of a mounted overlay is never
// written. View may be nil if no sandbox runs and the workspace is a plain copy.
//
// The agent's own git is not touched, nor are left-over files, unless one stands where to has
// a file, or in a folder that does. W.Spec.IncludeIgnored must be as it is for checkpoints.
// Files that are right already are not written again. Restoring twice does no more than once;
// after an error, or a crash, restoring again or Renew ends equal.
//
// Errors: ErrNotRestored naming a path; problem.Usage for an only that is no path of a tree;
// problem.Refused if to has something that no workspace shows.
func (m *Manager) Restore(ctx context.Context, w Workspace, view *os.File, host git.Dir, to git.OID, only []string) error {
	w = m.reads(w)
	err := m.busy.Alone(ctx, w.path, func() error {
		goal, err := w.goal(ctx, host, to, only)
		if err != nil {
			return err
		}
		top, err := w.openView(view)
		if err != nil {
			return err
		}
		defer unix.Close(top)
		r := restorer{goal: goal, ops: m.ops, top: top, owner: w.Spec.Owner}
		if err := r.run(ctx); err != nil {
			return err
		}
		return w.prove(ctx, host, to, only)
	})
	if err != nil {
		return fmt.Errorf("restore the workspace of %s to %.12s: %w", w.Spec.Change, to, err)
	}
	return nil
}

// goal is what a workspace was found to be, and what it shall be.
type goal struct {
	host  git.Dir
	found map[string]Found     // what differs from the base, left over or not
	paths []string             // of files that differ, or shall differ, from the base; in order
	odd   []string             // folders whose mode is not 0755
	want  map[string]git.Entry // of all of these and the folders above them; zero = nothing
	bare  map[string]bool      // paths that shall differ from the base
}

// file is the entry that shall be at p, unless that is a folder.
func (g goal) file(p string) git.Entry {
	if e := g.want[p]; e.Mode != git.Folder {
		return e
	}
	return git.Entry{}
}

// goal walks a workspace and joins what it finds with what the commit has other than the base.
func (w Workspace) goal(ctx context.Context, host git.Dir, to git.OID, only []string) (goal, error) {
	g := goal{host: host, found: map[string]Found{}, want: map[string]git.Entry{}, bare: map[string]bool{}}
	if err := checkOnly(host, to, only); err != nil {
		return g, err
	}
	edits, err := host.Edits(ctx, w.Spec.Base, to)
	if err != nil {
		return g, err
	}
	if err := layer.Showable(host, edits, to); err != nil {
		return g, err
	}
	seen, err := w.survey(ctx)
	if err != nil {
		return g, err
	}
	diff, err := w.split(ctx, seen.found)
	if err != nil {
		return g, err
	}
	for _, e := range edits {
		if covers(only, e.Path) {
			g.bare[e.Path] = true
			g.paths = append(g.paths, e.Path)
		}
	}
	for _, f := range diff.Changes {
		if covers(only, f.Path) {
			g.paths = append(g.paths, f.Path)
		}
	}
	for _, f := range seen.found {
		g.found[f.Path] = f.Found
		if isTemp(f.Path) { // of a restore that a crash ended, ignored or not
			g.paths = append(g.paths, f.Path)
		}
	}
	for _, p := range seen.odd {
		if covers(only, p) {
			g.odd = append(g.odd, p)
		}
	}
	slices.Sort(g.paths)
	g.paths = slices.Compact(g.paths)
	return g, g.lookUp(ctx, to)
}

// lookUp fills want.
func (g *goal) lookUp(ctx context.Context, to git.OID) error {
	for _, p := range slices.Concat(g.paths, g.odd) {
		for ; p != "."; p = path.Dir(p) {
			g.want[p] = git.Entry{}
		}
	}
	all := make([]string, 0, len(g.want))
	for p := range g.want {
		all = append(all, p)
	}
	entries, err := g.host.Lookup(ctx, to, all)
	if err != nil {
		return err
	}
	for i, p := range all {
		g.want[p] = entries[i]
	}
	return nil
}

// checkOnly refuses what cannot be a path below the top. A planted .git is one: it can be taken away.
func checkOnly(host git.Dir, to git.OID, only []string) error {
	for _, p := range only {
		for part := range strings.SplitSeq(p, "/") {
			if part == "" || part == "." || part == ".." || strings.ContainsRune(part, 0) {
				return problem.Errorf(problem.Usage, host.Command("ls-tree -r --name-only "+string(to)),
					"%q is not a path of a file or folder in the repository", p)
			}
		}
	}
	return nil
}

// covers reports whether p is among only or below one of them; a nil only covers all.
func covers(only []string, p string) bool {
	if only == nil {
		return true
	}
	for _, o := range only {
		if p == o || strings.HasPrefix(p, o) && p[len(o)] == '/' {
			return true
		}
	}
	return false
}

// openView opens the top of the tree for writing in it, even if the agent closed it.
func (w Workspace) openView(view *os.File) (int, error) {
	if view == nil {
		if w.Strategy == Overlay {
			return -1, errors.New("no sandbox shows the overlay, so nothing can be written there; the workspace is made anew")
		}
		home, err := beneath.Top(w.path, unix.O_RDONLY)
		if err != nil {
			return -1, err
		}
		defer unix.Close(home)
		return w.openRight(func() (int, error) { return openRight(home, "tree") })
	}
	if w.Strategy == Overlay {
		var fs unix.Statfs_t
		if err := unix.Fstatfs(int(view.Fd()), &fs); err != nil {
			return -1, fmt.Errorf("look at the view: %w", err)
		}
		if fs.Type != unix.OVERLAYFS_SUPER_MAGIC {
			return -1, errors.New("the view is not an overlay, and writes below one would be lost")
		}
	}
	return w.openRight(func() (int, error) { return reopenRight(int(view.Fd())) })
}

// openRight opens the top, which has, or gets, the mode that every folder of a tree has.
func (w Workspace) openRight(open func() (int, error)) (int, error) {
	fd := -1
	err := w.ops.Do("restore:open", func() (err error) {
		fd, err = open()
		return err
	})
	if err != nil {
		return -1, fmt.Errorf("open the top of the workspace: %w", err)
	}
	return fd, nil
}
