package group

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"sallyport/internal/base/git"
	"sallyport/internal/base/id"
	"sallyport/internal/base/inert"
	"sallyport/internal/base/problem"
)

// promotedShown is how many paths the message of a promotion names.
const promotedShown = 3

// Promotable returns what of a landed change of a group the template can have too: the edits of its runner and its skills, at the
// template's paths (SM-154).
func Promotable(folder Folder, landed []git.Edit) (all []git.Edit) {
	for _, e := range landed {
		for _, name := range overlaid {
			if within(e.Path, folder.path()+"/"+name) {
				e.Path = templateFolder + e.Path[len(folder.path()):]
				all = append(all, e)
			}
		}
	}
	return all
}

// Promote drafts the template with what has landed of a group's runner and skills, so that later groups begin with it (SM-152). The
// files are copied as they landed; no group that is there gets them. A draft without edits says that the template has them already, and one
// that is Unseen changes a file that was another in the template than in the group: the card of the change has not shown what that does.
//
// Errors: problem.Refused, naming the path, if a file of it would take the place of a folder of the template's.
func Promote(ctx context.Context, host git.Dir, head git.OID, folder Folder, change id.Change, landed []git.Edit, by By) (Draft, error) {
	wanted := Promotable(folder, landed)
	paths := make([]string, len(wanted))
	for i, e := range wanted {
		paths[i] = strings.TrimPrefix(e.Path, templateFolder+"/")
	}
	if len(wanted) == 0 {
		return Draft{Base: head}, nil
	}

	d, err := commit(ctx, host, head, git.Writes(wanted), promoted(change, paths), by)
	if err != nil {
		return Draft{}, fmt.Errorf("draft the template with %s: %w", change, err)
	}
	for _, e := range d.Edits {
		at := slices.IndexFunc(wanted, func(w git.Edit) bool { return w.Path == e.Path && w.New == e.New })
		if at < 0 {
			return Draft{}, problem.Errorf(problem.Refused, host.Command("ls-tree -r "+string(head)+" "+templateFolder+"/"),
				"the template cannot have what landed with %s: %s of the template is in its way", change, inert.Path(e.Path))
		}
		d.Unseen = d.Unseen || wanted[at].Old != e.Old
	}
	if len(d.Edits) == 0 {
		return Draft{Base: head}, nil
	}
	return d, nil
}

// promoted is the message of a promotion.
func promoted(change id.Change, paths []string) string {
	shown := paths[:min(len(paths), promotedShown)]
	names := make([]string, len(shown))
	for i, p := range shown {
		names[i] = inert.Path(p)
	}
	text := strings.Join(names, ", ")
	if more := len(paths) - len(shown); more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return fmt.Sprintf("promote %s: %s → template\n", change, text)
}
