package proposal

import (
	"fmt"
	"strings"

	"sallyport/internal/base/inert"
)

// moved says by what the branch has moved since the change's base (SM-162).
func (t *telling) moved(c Card) {
	m := c.Moved
	if m == nil {
		return
	}
	by := fmt.Sprintf("%d commits", m.Commits)
	if m.Commits == 1 {
		by = "1 commit"
	}
	t.line("%s has moved by %s since the change began", inert.Path(c.Branch), by)
	if m.Rewritten {
		t.line("  ! it was rewritten: the commit that the change started from is not on it any more")
	}
	paths := make([]string, len(m.Paths))
	for i, p := range m.Paths {
		paths[i] = inert.Path(p)
	}
	if more := m.PathsTotal - len(m.Paths); more > 0 {
		paths = append(paths, fmt.Sprintf("and %d more", more))
	}
	if len(paths) > 0 {
		t.line("  ! what differs there now: %s", strings.Join(paths, ", "))
	}
}
