package landing

import (
	"context"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"sallyport/internal/base/git"
	"sallyport/internal/base/inert"
	"sallyport/internal/base/problem"
)

// Compute says what landing an order would do now. It reads only, and names every refusal:
// ErrOddState, ErrBranch, ErrDrift, ErrConverts, ErrDirty, each with the thing and a command to run.
func (l *Lander) Compute(ctx context.Context, o Order) (Landing, error) {
	s, err := openSite(ctx, o.Project)
	if err != nil {
		return Landing{}, err
	}
	defer s.close()
	made := Landing{
		ID: o.Landing, Change: o.Change, Project: o.Project, Branch: o.Branch, WorkTree: o.WorkTree,
		Message: o.Message, Signing: o.Signing, Author: o.Author, Committer: o.Committer, Home: o.Home, Back: o.Back, Started: time.Now().UTC(),
	}
	if o.New {
		if made.New, err = s.toMake(ctx, o.Branch, o.Base); err != nil {
			return Landing{}, err
		}
	}
	head, x, err := s.look(ctx, o.Branch, o.WorkTree, l.wait(waitForGit))
	if err != nil {
		return Landing{}, err
	}
	made.Head = head
	if err := s.compare(o, &made); err != nil {
		return Landing{}, err
	}
	if err := l.approved(ctx, o); err != nil {
		return Landing{}, err
	}
	if err := l.asStored(ctx, s, &made); err != nil {
		return Landing{}, err
	}
	if !o.WorkTree || len(made.Edits) == 0 {
		return made, nil
	}
	if made.Staging, err = s.stagingFor(made.ID); err != nil {
		return Landing{}, err
	}
	if !made.Back { // what goes back has been there before
		if err = s.cleanRepositories(x, made.Edits); err != nil {
			return made, err
		}
	}
	_, err = s.clean(x, made.Edits)
	return made, err
}

// approved compares the edits of an order with the tree that was approved.
func (l *Lander) approved(ctx context.Context, o Order) error {
	if o.Source == "" {
		return nil
	}
	host, err := l.Host(ctx, o.Project)
	if err != nil {
		return err
	}
	paths := make([]string, len(o.Edits))
	for i, e := range o.Edits {
		paths[i] = e.Path
	}
	found, err := host.Lookup(ctx, o.Source, paths)
	if err != nil {
		return fmt.Errorf("read what was approved: %w", err)
	}
	for i, e := range o.Edits {
		if found[i].File() != e.New {
			return fmt.Errorf("%q in %.12s is not what was approved", e.Path, o.Source)
		}
	}
	return nil
}

// compare looks at three trees path by path: head must hold what the base held, or already what
// was approved (SM-162, SM-166). It fills in Edits, relative to head, and Skip.
func (s *site) compare(o Order, made *Landing) error {
	edits := slices.Clone(o.Edits)
	slices.SortFunc(edits, func(a, b git.Edit) int { return strings.Compare(a.Path, b.Path) })
	if err := s.sound(edits); err != nil {
		return err
	}
	paths := make([]string, len(edits))
	for i, e := range edits {
		paths[i] = e.Path
	}
	above := folders(paths)
	head, err := s.lookup(made.Head, append(paths, above...))
	if err != nil {
		return fmt.Errorf("read the branch: %w", err)
	}
	drift, err := s.sort(edits, head, made)
	if err != nil {
		return err
	}
	for i, p := range above { // a file where an approved path needs a folder
		e, mine := head[len(edits)+i], slices.IndexFunc(edits, func(e git.Edit) bool { return e.Path == p })
		if !e.Absent() && e.Mode != git.Folder && (mine < 0 || !edits[mine].New.Absent()) && needed(p, made.Edits) {
			drift = append(drift, p)
		}
	}
	return s.drifted(made, drift)
}

// lookup returns what a commit has at paths.
func (s *site) lookup(commit git.OID, paths []string) ([]git.Entry, error) {
	tree, err := s.objects.Resolve(string(commit) + "^{tree}")
	if err == nil && tree == "" {
		err = problem.Errorf(problem.NotFound, s.command("fsck"), "commit %s is missing in %q", commit, s.Top)
	}
	if err != nil {
		return nil, err
	}
	return s.objects.Lookup(tree, paths)
}

// sort puts each edit where head says it belongs, and returns what head has otherwise.
func (s *site) sort(edits []git.Edit, head []git.Entry, made *Landing) (drift []string, err error) {
	for i, e := range edits {
		now := head[i].File()
		switch {
		case now == e.New && (!e.New.Absent() || head[i].Absent() || needed(e.Path, edits)):
			if e.Old != e.New {
				made.Skip = append(made.Skip, e.Path)
			}
		case now == e.Old:
			made.Edits = append(made.Edits, e)
		default:
			drift = append(drift, e.Path)
		}
		if head[i].Mode != git.Folder || e.New.Absent() {
			continue
		}
		err := s.objects.Files(head[i].OID, e.Path+"/", func(p string) {
			if !deleted(p, edits) { // the file would take a folder's place
				drift = append(drift, p)
			}
		})
		if err != nil {
			return nil, err
		}
	}
	return drift, nil
}

// deleted reports whether the edits, in path order, delete p.
func deleted(p string, edits []git.Edit) bool {
	i, ok := slices.BinarySearchFunc(edits, p, func(e git.Edit, p string) int { return strings.Compare(e.Path, p) })
	return ok && edits[i].New.Absent()
}

func (s *site) drifted(made *Landing, paths []string) error {
	if len(paths) == 0 {
		return nil
	}
	return problem.Case(&Drift{paths}, s.command("log "+inert.Path(made.Branch)+" -- ")+listed(paths[:1]),
		"%s changed on %s since the change began", listed(paths), made.Branch)
}

// needed reports whether an edit puts something below folder.
func needed(folder string, edits []git.Edit) bool {
	return slices.ContainsFunc(edits, func(e git.Edit) bool {
		return !e.New.Absent() && strings.HasPrefix(e.Path, folder+"/")
	})
}

// folders returns every folder above the paths, each once and before those below it.
func folders(paths []string) []string {
	seen := map[string]bool{}
	var all []string
	for _, p := range paths {
		for up := path.Dir(p); up != "." && !seen[up]; up = path.Dir(up) {
			seen[up] = true
			all = append(all, up)
		}
	}
	slices.Sort(all)
	return all
}

// sound refuses edits that no check could have passed; they are checked again here because
// this is the last door.
func (s *site) sound(edits []git.Edit) error {
	refuse := func(e git.Edit, why string) error {
		return problem.Errorf(problem.Refused, s.command("status"), "%q cannot land: %s", e.Path, why)
	}
	for i, e := range edits {
		if i > 0 && edits[i-1].Path == e.Path {
			return refuse(e, "the change names that path twice")
		}
		if !utf8.ValidString(e.Path) {
			return refuse(e, "that name is not UTF-8")
		}
		if e.Path == "." || !fs.ValidPath(e.Path) || strings.ContainsRune(e.Path, 0) {
			return refuse(e, "that is no path below the work tree")
		}
		for part := range strings.SplitSeq(e.Path, "/") {
			if strings.EqualFold(part, ".git") {
				return refuse(e, "that name is reserved for git")
			}
		}
		for _, side := range []git.Entry{e.Old, e.New} {
			switch {
			case side.Absent(), side.Mode == git.Symlink, regular(side.Mode):
			case side.Mode == git.Submodule:
				return refuse(e, "sallyport lands no submodule")
			default:
				return refuse(e, fmt.Sprintf("git knows no file of mode %q", side.Mode))
			}
		}
	}
	return nil
}
