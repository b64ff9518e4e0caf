package group

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"sallyport/internal/base/git"
)

// Kind is how one file differs.
type Kind string

const (
	Added   Kind = "added"
	Removed Kind = "removed"
	Changed Kind = "changed"
	Moded   Kind = "mode" // the same bytes: only the right to be executed, or the kind of file, is another
)

// Difference is one file that differs. The path is one from the group's folder.
type Difference struct {
	git.Edit
	Kind Kind
}

func differ(e git.Edit) Difference {
	d := Difference{Edit: e, Kind: Changed}
	switch {
	case e.Old.Absent():
		d.Kind = Added
	case e.New.Absent():
		d.Kind = Removed
	case e.Old.OID == e.New.OID:
		d.Kind = Moded
	}
	return d
}

// CompareTemplate returns what a group has otherwise than the template, both as a commit of the home has them, by path (SM-918).
func CompareTemplate(ctx context.Context, d git.Dir, commit git.OID, folder Folder) ([]Difference, error) {
	mine, err := FindTree(ctx, d, commit, folder)
	if err != nil {
		return nil, err
	}
	found, err := d.Lookup(ctx, commit, []string{templateFolder})
	if err != nil {
		return nil, fmt.Errorf("read the template at %.12s: %w", commit, err)
	}
	from := found[0].OID
	if found[0].Mode != git.Folder { // then all of the group is its own
		from = emptyLike(mine)
	}

	edits, err := d.EditsMax(ctx, from, mine, 2*FilesMax)
	if errors.Is(err, git.ErrFar) {
		return nil, folder.refuse("", "it differs from the template in more than %d files and folders", 2*FilesMax)
	}
	if err != nil {
		return nil, fmt.Errorf("compare the group %s with the template: %w", folder, err)
	}
	var all []Difference
	for _, e := range edits {
		top, _, _ := strings.Cut(e.Path, "/")
		if !slices.Contains(copied, top) { // the template gives no group such a file: one that is there is the group's own
			e.Old = git.Entry{}
		}
		if e.Old != e.New {
			all = append(all, differ(e))
		}
	}
	return all, nil
}
