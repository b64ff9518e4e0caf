package standing

import (
	"context"
	"fmt"
	"strings"

	"sallyport/internal/base/git"
	"sallyport/internal/base/inert"
	"sallyport/internal/base/problem"
	"sallyport/internal/drive/live"
	"sallyport/internal/rule/mount"
	"sallyport/internal/who/group"
)

// Shown is what a person says of the folders of this machine that what they ask for would newly show a group (CH-026). Nothing said,
// such a folder can be read, and what would let an agent write there is refused.
type Shown struct {
	Yes  bool              // each as the group's runner.yaml has it
	Ask  bool              // they can be asked: nothing is done while one has no word in Said
	Said map[string]string // what they have answered, in words of mount.Mode, by path
}

// UnsaidError says that nothing is done before a person has said how these folders are shown.
type UnsaidError struct{ Folders []live.Mounted }

func (e *UnsaidError) Error() string {
	return fmt.Sprintf("how %d folders of this machine are shown is not said", len(e.Folders))
}

// shown draws up nothing that newly shows a group a folder of this machine otherwise than who asks has said; again is what they say again.
// Errors: *UnsaidError; problem.Refused.
func (g *Groups) shown(ctx context.Context, s Shown, again string, draft drafting) drafting {
	return func(p git.Project, host git.Dir, base git.OID, by group.By) (group.Draft, error) {
		d, err := draft(p, host, base, by)
		if err != nil || s.Yes {
			return d, err
		}
		all, err := group.NewWishesOf(ctx, host, d.Edits)
		if err != nil {
			return d, err
		}
		var wishes []mount.Wish
		for _, w := range all {
			if s.Said[w.Path] != mount.Mode(w.Write) && (s.Ask || w.Write) {
				wishes = append(wishes, w.Wish)
			}
		}
		switch {
		case len(wishes) == 0:
			return d, nil
		case s.Ask:
			return d, &UnsaidError{g.Extra.Find(wishes)}
		}
		var paths []string
		for _, w := range wishes {
			paths = append(paths, inert.Path(w.Path))
		}
		return d, problem.Errorf(problem.Refused, again+" --yes",
			"nothing is done: the group's agent could newly change and delete what is in %s, and nobody was asked; leave readonly: false out of its runner.yaml, or say --yes", strings.Join(paths, ", "))
	}
}
