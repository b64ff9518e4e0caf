package pi

import (
	"slices"

	"sallyport/internal/base/inert"
)

// dialog answers an extension that asks something. There are none unless the home's arguments name one; nobody is there
// to ask. A yes or no about tools that are being called is answered by their kind; everything else is cancelled. It is
// answered at once: while one waits, pi cannot be interrupted. Kinds are those of the calls under way.
func (t *talk) dialog(e event, kinds []string) {
	answer := command{ID: e.ID, Type: "extension_ui_response"}
	switch e.Method {
	case "confirm":
		yes := len(kinds) > 0
		for _, k := range kinds {
			yes = yes && !slices.Contains(t.denied, k)
		}
		answer.Confirmed = &yes
		says := "no"
		if yes {
			says = "yes"
		}
		t.show.Note("an extension asks " + inert.Brief(e.Title, failureBytesMax) + " and is told " + says)
	case "select", "input", "editor":
		answer.Cancelled = true
		t.show.Note("an extension asks " + inert.Brief(e.Title, failureBytesMax) + "; no person can answer it, so the host cancels the question")
	case "notify":
		t.show.Note("an extension says: " + inert.Brief(e.text(), failureBytesMax))
		return
	default: // it only shows something
		return
	}
	t.send(answer)
}
