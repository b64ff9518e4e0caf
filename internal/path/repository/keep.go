package repository

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"sallyport/internal/base/git"
	"sallyport/internal/base/id"
	"sallyport/internal/base/inert"
	"sallyport/internal/base/problem"
)

// RefRoot is below which every ref of a change lies, in the host's repository; an older sallyport had some in the project's, too.
func RefRoot(change id.Change) string { return fmt.Sprintf("refs/sallyport/%s/", change) }

// BaseRef names a change's base in the host's repository.
func BaseRef(change id.Change) string { return RefRoot(change) + "base" }

// Keep names a change's base in the host's repository, which holds all that it reaches. Doing it twice is doing it once.
func (r *Store) Keep(ctx context.Context, project git.Project, change id.Change, base git.OID) error {
	host, err := r.Open(ctx, project, base)
	if err == nil {
		err = setRef(ctx, host, "keep:base", BaseRef(change), base)
	}
	if err != nil {
		return fmt.Errorf("keep the base of %s: %w", change, err)
	}
	return nil
}

// Propose returns the commit that a change has to offer: the tree of one of its checkpoints upon its base, and nothing of what stood
// between the two. A ref of the host's names it.
func Propose(ctx context.Context, host git.Dir, change id.Change, checkpoint, base git.OID) (git.OID, error) {
	commit, err := host.Upon(ctx, "propose:commit", checkpoint, base)
	if err == nil {
		err = setRef(ctx, host, "propose:ref", RefRoot(change)+"proposal", commit)
	}
	return commit, err
}

// Lend writes a branch of a project that names a commit of the host's, with what the project does not have of it.
//
// Errors: problem.Usage if it is no name of a branch; problem.Conflict if the branch is there; problem.Refused if the commit's base
// is not in the project any more.
func (r *Store) Lend(ctx context.Context, host git.Dir, project git.Project, branch string, commit, base git.OID) error {
	list := "git -C " + inert.Path(project.Top) + " branch --list"
	if !PlainBranch(branch) {
		return problem.Errorf(problem.Usage, "sallyport change branch --help", "%q is not a valid name of a branch", branch)
	}
	theirs, ref := project.Common(r.ops), "refs/heads/"+branch
	there, err := theirs.Refs(ctx, ref)
	if err != nil {
		return err
	}
	if len(there) > 0 { // it, or branches below it
		return problem.Errorf(problem.Conflict, list, "there is a branch %q in %q already", branch, project.Top)
	}
	if _, err := theirs.Branch(ctx, branch); err != nil {
		return problem.Errorf(problem.Conflict, list, "the branch %q cannot be made in %q: %w", branch, project.Top, err)
	}
	out, err := host.Run(ctx, git.Cmd{Args: []string{"rev-parse", string(base), string(base) + "^@"}})
	if err != nil {
		return err
	}
	var have []git.OID
	for _, c := range strings.Fields(string(out)) { // a base with uncommitted work is the host's, its parent is theirs
		if ok, err := holds(ctx, theirs, git.OID(c)); err != nil {
			return err
		} else if ok {
			have = append(have, git.OID(c))
		}
	}
	if len(have) == 0 {
		return problem.Errorf(problem.Refused, "sallyport change export --help",
			"the base of the change, %.12s, is not in %q any more, so no branch can begin there; a patch can still be exported", base, project.Top)
	}
	if err := theirs.Receive(ctx, "branch:objects", host, commit, have); err != nil {
		return err
	}
	return theirs.UpdateRefLog(ctx, "branch:ref", ref, commit, "", "sallyport: branch")
}

// holds reports whether dir has a commit.
func holds(ctx context.Context, dir git.Dir, commit git.OID) (bool, error) {
	if !commit.Valid() {
		return false, fmt.Errorf("%q is no commit", commit)
	}
	tree, err := dir.Resolve(ctx, string(commit)+"^{tree}")
	var failed *git.Failure
	if errors.As(err, &failed) && failed.Code == 128 {
		return false, nil
	}
	return tree != "", err
}

// setRef moves a ref of ours to an object, from wherever it is.
func setRef(ctx context.Context, dir git.Dir, op, ref string, to git.OID) error {
	is, err := dir.Resolve(ctx, ref)
	if err != nil || is == to {
		return err
	}
	return dir.UpdateRef(ctx, op, ref, to, is)
}

// PlainBranch reports whether git takes a short branch name; the rules of check-ref-format.
func PlainBranch(name string) bool {
	if name == "" || name == "@" || strings.HasPrefix(name, "-") || strings.HasSuffix(name, ".") ||
		strings.Contains(name, "..") || strings.Contains(name, "@{") || strings.ContainsAny(name, " ~^:?*[\\\x7f") {
		return false
	}
	for i := range len(name) {
		if name[i] < ' ' {
			return false
		}
	}
	for part := range strings.SplitSeq(name, "/") {
		if part == "" || part[0] == '.' || strings.HasSuffix(part, ".lock") {
			return false
		}
	}
	return true
}
