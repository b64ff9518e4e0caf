package workspace

import (
	"context"
	"fmt"
	"strings"

	"sallyport/internal/git"
	"sallyport/internal/id"
)

// RefRoot is below which every ref of a change lies, in our repository and in a person's.
func RefRoot(change id.Change) string { return fmt.Sprintf("refs/sallyport/%s/", change) }

// BaseRef keeps a change's base alive in the project's repository.
func BaseRef(change id.Change) string { return RefRoot(change) + "base" }

// Keep sets refs/sallyport/<change>/base in the project's repository, so that no amend
// and no gc takes the base away. Doing it twice is doing it once.
func (m *Manager) Keep(ctx context.Context, project git.Project, change id.Change, base git.OID) error {
	theirs := project.Common(m.ops)
	if err := m.bring(ctx, project, base, base); err != nil {
		return fmt.Errorf("keep the base of %s: %w", change, err)
	}
	if err := setRef(ctx, theirs, "keep:base", BaseRef(change), base); err != nil {
		return fmt.Errorf("keep the base of %s: %w", change, err)
	}
	return nil
}

// Offer copies a commit of ours, with all it needs, into the project's repository as one
// pack and sets ref there. base is the commit that it was made from.
func (m *Manager) Offer(ctx context.Context, project git.Project, change id.Change, ref string, commit, base git.OID) error {
	if !strings.HasPrefix(ref, RefRoot(change)) {
		return fmt.Errorf("%q is no ref of %s", ref, change)
	}
	if err := m.bring(ctx, project, commit, base); err != nil {
		return fmt.Errorf("offer %.12s of %s: %w", commit, change, err)
	}
	if err := setRef(ctx, project.Common(m.ops), "offer:ref", ref, commit); err != nil {
		return fmt.Errorf("offer %.12s of %s: %w", commit, change, err)
	}
	return nil
}

// bring copies commit into the project's repository unless it is there with its tree.
// What is sent leaves out what base needs if they have base, or else its parents.
func (m *Manager) bring(ctx context.Context, project git.Project, commit, base git.OID) error {
	theirs := project.Common(m.ops)
	if ok, err := holds(ctx, theirs, commit); ok || err != nil {
		return err
	}
	host, err := m.Repository(ctx, project)
	if err != nil {
		return err
	}
	have, err := known(ctx, theirs, host, base)
	if err != nil {
		return err
	}
	return theirs.Receive(ctx, "offer:objects", host, commit, have)
}

// known returns the commits nearest to base, itself included, that dir holds.
func known(ctx context.Context, dir, host git.Dir, base git.OID) ([]git.OID, error) {
	if base == "" {
		return nil, nil
	}
	if ok, err := holds(ctx, dir, base); err != nil || ok {
		return []git.OID{base}, err
	}
	out, err := host.Run(ctx, git.Cmd{Args: []string{"rev-parse", "--end-of-options", string(base) + "^@"}})
	if err != nil {
		return nil, err
	}
	var have []git.OID
	for _, parent := range strings.Fields(string(out)) {
		if parent == "--end-of-options" {
			continue
		}
		ok, err := holds(ctx, dir, git.OID(parent))
		if err != nil {
			return nil, err
		}
		if ok {
			have = append(have, git.OID(parent))
		}
	}
	return have, nil
}

// holds reports whether dir has a commit.
func holds(ctx context.Context, dir git.Dir, commit git.OID) (bool, error) {
	if !commit.Valid() {
		return false, fmt.Errorf("%q is no commit", commit)
	}
	tree, err := dir.Resolve(ctx, string(commit)+"^{tree}")
	if failed, ok := err.(*git.Failure); ok && failed.Code == 128 {
		return false, nil
	}
	return tree != "", err
}

// setRef moves a ref of ours to an object, from wherever it is.
func setRef(ctx context.Context, dir git.Dir, op, ref string, to git.OID) error {
	refs, err := dir.Refs(ctx, ref)
	if err != nil || refs[ref] == to {
		return err
	}
	return dir.UpdateRef(ctx, op, ref, to, refs[ref])
}

// Release removes the refs of a change from the project's repository, and nothing else.
// The objects go when their owner's git next collects.
func (m *Manager) Release(ctx context.Context, project git.Project, change id.Change) error {
	theirs := project.Common(m.ops)
	refs, err := theirs.Refs(ctx, RefRoot(change))
	if err != nil {
		return fmt.Errorf("release the refs of %s: %w", change, err)
	}
	if err := DropRefs(ctx, theirs, refs); err != nil {
		return fmt.Errorf("release the refs of %s: %w", change, err)
	}
	return nil
}
