package cli

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"sallyport/internal/base/inert"
	"sallyport/internal/door/api"
)

// printCard shows what a person is asked about. All of it was computed by the host from what
// would land; the agent's own words are quoted and labelled (SM-908).
func printCard(s sheet, change string, p api.Proposal) {
	c := p.Card
	s.line("%s  %s", s.bold(change), s.bold(inert.Line(c.Title)))
	kind := ""
	if c.Kind != "edit" {
		kind = c.Kind + " "
	}
	s.line("  %sfor %s in %s, from %s", kind, inert.Path(c.Branch), inert.Path(c.Repo), short(p.Base))
	if c.Made != "" {
		s.rows("  made by: ", "    ", inert.Line(clip(c.Made, madeMax)))
	}
	printBanner(s, c)
	s.line("")
	printEffect(s, c)
	s.list("on the network", c.Network, s.yellow("!"))
	printAhead(s, c)
	if c.Used != "" {
		s.line("")
		s.rows("  ", "  ", inert.Line(c.Used))
	}
	printWords(s, "the group's agent asks, in its own words, which nobody checked:", c.Wish)
	printWords(s, "the agent says, in its own words, which nobody checked:", c.AgentSays)
	s.line("")
	s.line("%s", s.dim("digest "+digits(p.Digest)+"  rules "+short(p.Policy)))
}

// printAsked shows the card of an approval, and what a yes that was given already has said of the commit.
func printAsked(s sheet, q api.Question) {
	printCard(s, q.Approval.Change, q.Proposal)
	if q.Approval.Decision != api.Pending {
		return
	}
	if m := q.Approval.Message; m != "" {
		s.rows("a yes before yours has it land as: ", "  ", s.bold(inert.Line(m)))
	}
	if q.Approval.Unsigned {
		s.line("a yes before yours has it land unsigned")
	}
}

// printWords quotes an agent below a line that says whose words they are.
func printWords(s sheet, whose, words string) {
	if words == "" {
		return
	}
	s.line("")
	s.line("%s", whose)
	s.rows("  > ", "  > ", inert.Block(words, 2<<10))
}

// printBanner shows what a card begins with.
func printBanner(s sheet, c api.Card) {
	if c.Note != "" {
		s.line("  %s %s", s.yellow("note:"), inert.Line(c.Note))
	}
	for _, b := range c.Banner {
		s.rows("  "+s.red("!")+" ", "    ", inert.Line(b))
	}
}

// printEffect shows what a change does, and how that was tried: on its card, and for as long as it is known.
func printEffect(s sheet, c api.Card) {
	printPicture(s, c)
	printMarks(s, c)
	s.list("what it gains or loses", c.Reach, s.yellow("!"))
	printChecks(s, c)
	printRehearsed(s, c.Host)
	printLeftOver(s, c.LeftOver)
}

// printAhead shows what comes of a yes: on a card, and for as long as it waits for one.
func printAhead(s sheet, c api.Card) {
	printMoved(s, c)
	s.list("why it cannot land as it stands", c.Drift, s.red("!"))
	s.list("once it has landed", c.Then, s.yellow("!"))
	s.list("of its setup", c.Setup, s.yellow("!"))
	if c.Subject != "" {
		s.line("")
		as := "it lands as: "
		if c.Wish != "" {
			as = "it lands as, in the agent's words: "
		}
		s.rows(as, "  ", s.bold(inert.Line(c.Subject)))
		s.rows("  ", "  ", inert.Line(c.CommitBy))
	}
}

// printPicture shows the change as a picture: each path with as many + and - as it has lines,
// scaled to the width.
func printPicture(s sheet, c api.Card) {
	if s.folds {
		c.Files = foldFiles(c)
	}
	if c.FilesTotal == 0 {
		s.line("  no file changes")
		return
	}
	lines := s.green(fmt.Sprintf("+%d", c.Added)) + " " + s.red(fmt.Sprintf("-%d", c.Removed))
	if uncounted(c) {
		lines = s.yellow("lines not counted: there are too many")
	}
	s.line("  %s, %s", count(c.FilesTotal, "file"), lines)
	longest, most := 0, 1
	for _, f := range c.Files {
		longest = max(longest, columns(label(f)))
		most = max(most, f.Added+f.Removed)
	}
	names := min(longest, s.width*6/10)
	room := max(s.width-names-20, 10)
	for _, f := range c.Files {
		bar := " binary"
		switch {
		case f.Uncounted:
			bar = ""
		case !f.Binary:
			bar = fmt.Sprintf(" %5d %s", f.Added+f.Removed, drawBar(s, f.Added, f.Removed, most, room))
		}
		note := ""
		if f.Note != "" {
			note = "  " + s.yellow(inert.Line(f.Note))
		}
		name := label(f)
		if columns(name) > names { // never cut: what lands is named in full
			s.name("  "+statusWord(s, f.Status)+" ", strings.Repeat(" ", 11), name)
			s.line("  %-8s%s%s", "", strings.TrimRight(bar, " "), note)
			continue
		}
		s.line("  %s %s%s%s", statusWord(s, f.Status), name+strings.Repeat(" ", names-columns(name)), strings.TrimRight(bar, " "), note)
	}
	if more := c.FilesTotal - standFor(c.Files); more > 0 {
		s.line("  … and %s more", count(more, "file"))
	}
}

// uncounted reports whether counting its lines took too long.
func uncounted(c api.Card) bool { return len(c.Files) > 0 && c.Files[0].Uncounted }

func label(f api.FileLine) string {
	if n, folded := filesIn(f); folded {
		return inert.Path(f.Path) + "  " + count(n, "file")
	}
	if f.From != "" {
		return inert.Path(f.From) + " => " + inert.Path(f.Path)
	}
	return inert.Path(f.Path)
}

// statusWord is a path's fate in one column.
func statusWord(s sheet, v string) string {
	if strings.HasPrefix(v, folded) {
		v = strings.TrimSpace(folded)
	}
	word := fmt.Sprintf("%-8s", inert.Line(v))
	switch v {
	case "added":
		return s.green(word)
	case "deleted":
		return s.red(word)
	}
	return s.cyan(word)
}

// drawBar draws added and removed in at most room columns, scaled so that most fills them;
// what is there at all gets at least one.
func drawBar(s sheet, added, removed, most, room int) string {
	scale := func(n int) int {
		if most <= room || n == 0 {
			return n
		}
		return max(n*(room-1)/most, 1)
	}
	return s.green(strings.Repeat("+", scale(added))) + s.red(strings.Repeat("-", scale(removed)))
}

func printChecks(s sheet, card api.Card) {
	if len(card.Checks) == 0 {
		return
	}
	s.line("")
	s.line("checks, run on %s:", ranOn(card))
	for _, c := range card.Checks {
		took := duration(time.Duration(c.TookMS) * time.Millisecond)
		if c.OK {
			s.line("  %s %s (%s)", s.green("passed"), inert.Line(c.Command), took)
			continue
		}
		s.line("  %s %s (%s): %s", s.red("FAILED"), inert.Line(c.Command), took, inert.Line(c.Why))
		s.rows("    | ", "    | ", inert.Block(strings.TrimSpace(c.Tail), 4<<10))
	}
	var with []string
	for _, c := range card.Checks {
		if c.With != "" && !slices.Contains(with, c.With) {
			with = append(with, c.With)
			s.rows("  began with ", "    ", inert.Line(c.With))
		}
	}
}

// printRehearsed shows how a change of the host was tried, and what that cannot show.
func printRehearsed(s sheet, h *api.Rehearsed) {
	if h == nil {
		return
	}
	if h.Runs != "" {
		s.line("")
		s.rows("  ", "  ", "once it has landed, "+inert.Line(h.Runs))
	}
	s.list("rehearsed on a copy of the state without anybody's words ("+duration(time.Duration(h.TookMS)*time.Millisecond)+")", h.Tried, s.green("+"))
	s.list("what a rehearsal does not show", h.Not, s.yellow("!"))
}

// printMarks shows what needs a word of its own, path by path: what a tool runs by itself, what tells an agent, what is not
// what it looks like.
func printMarks(s sheet, c api.Card) {
	if len(c.Marks) == 0 {
		return
	}
	s.line("")
	switch {
	case c.MarksWord:
		s.line("%s%s: look before you approve", s.red("marked"), markedOn(c))
	default:
		s.line("%s%s:", s.yellow("marked"), markedOn(c))
	}
	lines := foldMarks(c.Marks, s.folds && len(c.Marks) >= foldFrom)
	for _, m := range lines {
		s.rows("  "+s.red("!")+" ", "    ", m)
	}
	if len(lines) < len(c.Marks) {
		s.line("  approval show lists each of %s", count(len(c.Marks), "mark"))
	}
	if more := c.MarksTotal - len(c.Marks); more > 0 {
		s.line("  … and %s more", count(more, "mark"))
	}
}

func printLeftOver(s sheet, left []api.LeftOver) {
	if len(left) == 0 {
		return
	}
	s.line("")
	s.line("left out because the base ignores it, or because it lies below .git:")
	const shown = 10
	for i, l := range left {
		if i == shown {
			s.line("  … and %s more", count(len(left)-shown, "folder"))
			break
		}
		folder := l.Folder
		if folder == "" {
			folder = "."
		}
		s.rows("  ", "  ", fmt.Sprintf("%s: %s, %s", inert.Path(folder), count(l.Files, "file"), size(l.Bytes)))
	}
}
