package landing

import (
	"cmp"
	"strings"

	"sallyport/internal/base/git"
	"sallyport/internal/base/id"
	"sallyport/internal/base/inert"
	"sallyport/internal/base/pattern"
)

// Message is what a landing commit says. Its words may come from agents and repositories: none of them can end a line of
// ours or be read as a trailer.
type Message struct {
	Change   id.Change // the change that lands
	Subject  string    // made by Subject, Reverting, Swap or Rollback
	Body     string    // more words; may be empty
	CoAuthor string    // of what lands, Name <address>; "" if no agent took part
	Approver string    // Name <address>; "" if nobody was asked
	Unasked  bool      // the approver said yes beforehand
}

// subjectMax is how wide a subject may be.
const subjectMax = 72

// Subject is the first line of a text, cut at a word.
func Subject(text string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	if strings.HasPrefix(line, "---") { // where git ends a message
		line = strings.TrimLeft(line, "- ")
	}
	return cut(oneLine(cmp.Or(line, "no description")), subjectMax)
}

// Reverting is the subject of a commit that takes back the one with subject.
func Reverting(subject string) string {
	const frame = `Revert ""`
	return `Revert "` + cut(oneLine(subject), subjectMax-len(frame)) + `"`
}

// Swap is the subject of what lands in a home of groups (SM-103), Rollback of what goes back there (SM-127, SM-139).
func Swap(change id.Change, summary string) string {
	return "swap " + string(change) + ": " + oneLine(summary)
}

func Rollback(change id.Change, reason string) string {
	return "rollback " + string(change) + ": " + oneLine(reason)
}

// String returns the subject, the body, and trailers that name the agent, the change and who approved it.
func (m Message) String() string {
	var b strings.Builder
	b.WriteString(m.Subject + "\n\n")
	if body := strings.TrimSpace(m.Body); body != "" && !strings.Contains(m.Subject, oneLine(body)) {
		for line := range strings.Lines(inert.Block(body, 8<<10)) {
			b.WriteString(plainLine(strings.TrimRight(line, " \t\r\n")) + "\n")
		}
		b.WriteString("\n")
	}
	if m.CoAuthor != "" {
		b.WriteString("Co-authored-by: " + oneLine(m.CoAuthor) + "\n")
	}
	b.WriteString("Sallyport-Change: " + oneLine(string(m.Change)) + "\n")
	switch {
	case m.Approver != "" && m.Unasked:
		b.WriteString("Pre-approved-by: " + oneLine(m.Approver) + "\n")
	case m.Approver != "":
		b.WriteString("Approved-by: " + oneLine(m.Approver) + "\n")
	}
	return b.String()
}

// marked is the beginning of a line that git, or a tool that reads commits, takes for something else than prose: a trailer, the end
// of the message, a patch, a comment.
var marked = pattern.Of(`^(?:[A-Za-z0-9][A-Za-z0-9-]*[ \t]*[:=#]|---|diff -|From |\(cherry picked|[#;@!$%^&|])`)

// plainLine indents a line of somebody's words that could be taken for one of ours.
func plainLine(line string) string {
	if marked().MatchString(line) {
		return "  " + line
	}
	return line
}

// cut shortens a line to a width, at a word if there is one not far from the end.
func cut(line string, most int) string {
	if inert.Width(line) <= most {
		return line
	}
	width, end := 1, 0 // of the ellipsis
	for i, r := range line {
		if width += inert.Width(string(r)); width > most {
			break
		}
		end = i + len(string(r))
	}
	if space := strings.LastIndexByte(line[:end], ' '); space > end/2 && line[end] != ' ' {
		end = space
	}
	return strings.TrimRight(line[:end], " ") + "…"
}

// oneLine folds white space to single spaces and makes the rest harmless.
func oneLine(s string) string { return inert.Line(strings.Join(strings.Fields(s), " ")) }

// Inverse returns the edits that undo edits: of a landing, relative to its new tree.
func Inverse(edits []git.Edit) []git.Edit {
	back := make([]git.Edit, len(edits))
	for i, e := range edits {
		back[i] = git.Edit{Path: e.Path, Old: e.New, New: e.Old}
	}
	return back
}
