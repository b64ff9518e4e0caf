package adapter

import (
	"fmt"
	"strings"

	"sallyport/internal/port/agent"
)

const (
	wordsBytesMax = 192 << 10 // bounds what an agent is told at once
	chatBytesMax  = 512 << 10 // and what it is told at once in a conversation, where nothing is cut
)

// violated is what an agent is told about the rules that its work breaks. The wording is fixed: file, rule, why, and a way out.
func violated(m message) string {
	var b strings.Builder
	fmt.Fprintf(&b, "Your work was checked at %s and breaks rules of this repository, so it cannot be kept as it is:\n", m.CheckpointID)
	for _, f := range m.Violations {
		file := f.File
		if file == "" {
			file = "the change as a whole"
		}
		fmt.Fprintf(&b, "- %s: rule %s: %s.", file, f.Constraint, strings.TrimSuffix(f.Message, "."))
		if f.Suggestion != "" {
			fmt.Fprintf(&b, " What to do: %s.", strings.TrimSuffix(f.Suggestion, "."))
		}
		b.WriteByte('\n')
	}
	if m.Omitted != nil && m.Omitted.Violations > 0 {
		fmt.Fprintf(&b, "- and %d more.\n", m.Omitted.Violations)
	}
	if m.Action == "reverted" {
		b.WriteString("The host reverted files to how they were when they last broke no rule: read them again before you go on.\n")
	} else {
		b.WriteString("The files are as you left them.\n")
	}
	b.WriteString("Correct this. Where you may not change a file, find another way. Then go on with your task.")
	return b.String()
}

// first is what an agent is asked at the beginning; loaded says that it remembers what was said before.
func first(o agent.Order, loaded bool) string {
	if o.Resumed == nil {
		return o.Text
	}
	var b strings.Builder
	files := o.Resumed.Files
	if files == "" {
		files = "The files are as they were then: look at them before you go on."
	}
	fmt.Fprintf(&b, "Your work on this request was interrupted: %s. %s\n", o.Resumed.Why, files)
	if loaded {
		b.WriteString("Go on where you left off. The request was:\n\n" + o.Text)
		return b.String()
	}
	b.WriteString("The request is:\n\n" + o.Text)
	if o.Resumed.Transcript != "" {
		b.WriteString("\n\nWhat was said and done before, from its end, as it was written down:\n\n" + o.Resumed.Transcript)
	}
	return b.String()
}

// joined makes one text of several, whole from the beginning.
func joined(texts []string) string {
	all := strings.Join(texts, "\n\n")
	if len(all) > wordsBytesMax {
		return strings.ToValidUTF8(all[:wordsBytesMax], "") + "\n… (cut)"
	}
	return all
}
