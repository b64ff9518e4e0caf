package group

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"sallyport/internal/base/git"
)

// Origin is where a group's files and those of the template were the same last, or were brought together.
type Origin struct {
	Commit git.OID              // of the home, whose template the group had then
	Met    map[string]git.Entry // by the template's path: what the template has been given of the group since
}

// Made is the commit that made a group, up to a head that has it; of one that was made anew the last. Its template is what the group was
// copied from.
func Made(ctx context.Context, d git.Dir, head git.OID, folder Folder) (git.OID, error) {
	made, err := git.LastAdded(ctx, d, head, folder.path()+"/"+runnerFile)
	if err == nil && made == "" {
		err = folder.refuse(runnerFile, "it is missing, and says how the group's agent runs")
	}
	return made, err
}

// MovedSince returns what has moved in the template between an origin and head, as edits of the group's files, by path (SM-918). It does not
// look at what the group has there.
func MovedSince(ctx context.Context, d git.Dir, folder Folder, o Origin, head git.OID) ([]git.Edit, error) {
	found := map[git.OID]git.OID{}
	for _, commit := range []git.OID{o.Commit, head} {
		at, err := d.Lookup(ctx, commit, []string{templateFolder})
		if err != nil {
			return nil, fmt.Errorf("read the template at %.12s: %w", commit, err)
		}
		found[commit] = at[0].OID
		if at[0].Mode != git.Folder {
			found[commit] = emptyLike(commit)
		}
	}
	edits, err := d.EditsMax(ctx, found[o.Commit], found[head], FilesMax)
	if errors.Is(err, git.ErrFar) {
		return nil, folder.refuse("", "more than %d files and folders have moved in the template", FilesMax)
	}
	if err != nil {
		return nil, fmt.Errorf("compare the template at %.12s and at %.12s: %w", o.Commit, head, err)
	}

	moved := map[string]git.Edit{}
	for _, e := range edits {
		if e.Path = path.Join(templateFolder, e.Path); folder.copyOf(e.Path) != "" {
			moved[e.Path] = e
		}
	}
	met := slices.Sorted(maps.Keys(o.Met))
	now, err := d.Lookup(ctx, head, met)
	if err != nil {
		return nil, fmt.Errorf("read the template at %.12s: %w", head, err)
	}
	for i, p := range met {
		moved[p] = git.Edit{Path: p, Old: o.Met[p], New: now[i].File()}
	}
	return folder.own(moved), nil
}

// own are edits of the template as edits of the group's copies, without those that change nothing.
func (f Folder) own(moved map[string]git.Edit) (all []git.Edit) {
	for _, p := range slices.Sorted(maps.Keys(moved)) {
		e := moved[p]
		if e.Path = f.copyOf(p); e.Path != "" && e.Old != e.New {
			all = append(all, e)
		}
	}
	return all
}

// copyOf is where a group has its copy of a file of the template; "" if it has none.
func (f Folder) copyOf(template string) string {
	for _, name := range copied {
		if within(template, templateFolder+"/"+name) {
			return f.path() + template[len(templateFolder):]
		}
	}
	return ""
}

// Within is a path of a home as one from the group's folder.
func (f Folder) Within(p string) string { return strings.TrimPrefix(p, f.path()+"/") }

// emptyLike is the tree without files, in the form of hashes that another has.
func emptyLike(oid git.OID) git.OID {
	if len(oid) == 64 {
		return git.EmptyTree("sha256")
	}
	return git.EmptyTree("sha1")
}
