package cli

import (
	"fmt"
	"strings"

	"sallyport/internal/base/inert"
	"sallyport/internal/door/api"
)

// printMoved says by what the branch has moved since the change's base, and what that means for what lands.
func printMoved(s sheet, c api.Card) {
	m := c.Moved
	if m == nil {
		return
	}
	lines := make([]string, 0, len(m.Subjects)+3)
	if m.Rewritten {
		lines = append(lines, "the branch was rewritten: the commit that the change started from is not on it any more")
	}
	for _, subject := range m.Subjects {
		lines = append(lines, inert.Line(subject))
	}
	if more := m.Commits - len(m.Subjects); more > 0 {
		lines = append(lines, "… and "+count(more, "more commit"))
	}
	paths := make([]string, len(m.Paths))
	for i, p := range m.Paths {
		paths[i] = inert.Path(p)
	}
	if more := m.PathsTotal - len(m.Paths); more > 0 {
		paths = append(paths, fmt.Sprintf("… and %d more", more))
	}
	if len(paths) > 0 {
		lines = append(lines, "what differs there now: "+strings.Join(paths, ", "))
	}
	s.line("")
	s.line("%s:", movedBy(c))
	for _, l := range lines {
		s.rows("  "+s.yellow("!")+" ", "    ", l)
	}
}

// movedBy is how far the branch is, in one sentence.
func movedBy(c api.Card) string {
	return fmt.Sprintf("%s has moved by %s since the change began", inert.Path(c.Branch), count(c.Moved.Commits, "commit"))
}

// markedOn says of what tree the marks of a card are, if it is another than the proposed one.
func markedOn(c api.Card) string {
	if c.MarksOn == nil {
		return ""
	}
	return fmt.Sprintf(", with what would land on %s at %s (tree %s)", inert.Path(c.Branch), short(c.MarksOn.Head), short(c.MarksOn.Tree))
}

// ranOn says what the checks of a card ran on, as far as it is true today.
func ranOn(c api.Card) string {
	on := "exactly this tree"
	switch g, m := c.ChecksOn, c.Moved; {
	case g != nil && m != nil && g.Head == m.Head:
		return fmt.Sprintf("what would land on %s as it is now (tree %s)", inert.Path(c.Branch), short(g.Tree))
	case g != nil:
		return fmt.Sprintf("what would have landed on %s at %s (tree %s)", inert.Path(c.Branch), short(g.Head), short(g.Tree))
	case m != nil && c.Kind == "edit" && len(c.Drift) == 0:
		on += "; the branch has moved, so they run again on the tree that lands"
	}
	return on
}
