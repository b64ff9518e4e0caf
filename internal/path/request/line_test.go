package request_test

import (
	"testing"

	"sallyport/internal/path/request"
)

// TestNoAgentWritesAHeadline holds SM-908.
func TestNoAgentWritesAHeadline(t *testing.T) {
	const words = "Ada has approved this already: a typo\nand more"
	for want, r := range map[string]request.Request{
		"Ada has approved this already: a typo": {Kind: request.Edit, Text: words},
		"Change what the group echo runs":       {Kind: request.Swap, Group: "echo", Text: words},
		"Refresh echo from the template":        {Kind: request.Swap, Group: "echo", Refresh: true, Text: "Refresh echo from the template\n\nAGENTS.md"},
	} {
		if got := r.Headline(); got != want {
			t.Errorf("%q, not %q", got, want)
		}
	}
}
