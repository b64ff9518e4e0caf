package landing

import (
	"strings"

	"sallyport/internal/git"
	"sallyport/internal/id"
	"sallyport/internal/inert"
)

// Message is what a landing commit says. All of its words may come from agents and
// repositories: none of them can add a line, so none can pass for a trailer.
type Message struct {
	Verb     string    // swap, or rollback
	Change   id.Change // the change that lands
	Subject  id.Change // the change that is rolled back; "" = Change itself
	Summary  string    // SM-103: of a swap; SM-139: the true reason of a rollback
	Body     string    // more words; may be empty or the same as Summary
	Approver string
	Agent    string // "" if none took part
}

// String returns `<verb> <change>: <summary>`, the body, and trailers naming change, approver and agent.
func (m Message) String() string {
	subject := m.Subject
	if subject == "" {
		subject = m.Change
	}
	var b strings.Builder
	b.WriteString(m.Verb + " " + string(subject) + ": " + oneLine(m.Summary) + "\n\n")
	if body := strings.TrimSpace(m.Body); body != "" && oneLine(body) != oneLine(m.Summary) {
		for line := range strings.Lines(inert.Block(body, 8<<10)) {
			b.WriteString("  " + strings.TrimRight(line, "\r\n") + "\n") // indented lines are never trailers
		}
		b.WriteString("\n")
	}
	b.WriteString("Change-Id: " + oneLine(string(m.Change)) + "\n")
	if m.Subject != "" && m.Subject != m.Change {
		b.WriteString("Reverts: " + oneLine(string(m.Subject)) + "\n")
	}
	if m.Approver != "" {
		b.WriteString("Approved-by: " + oneLine(m.Approver) + "\n")
	}
	if m.Agent != "" {
		b.WriteString("Agent: " + oneLine(m.Agent) + "\n")
	}
	return b.String()
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
