package sandbox_test

import (
	"strings"
	"testing"

	"sallyport/internal/port/sandbox"
)

func TestALineCountsForWhatKeepingItTakes(t *testing.T) {
	for text, want := range map[string]int64{
		"":                                 0,
		"no end":                           6,
		"\n":                               sandbox.LineCost,
		"\n\n\n":                           3 * sandbox.LineCost,
		"short\n":                          sandbox.LineCost,
		strings.Repeat("x", 100) + "\n":    101,
		strings.Repeat("x", 31) + "\ntail": 36,
	} {
		var whole, pieces sandbox.Lines
		if got := whole.Cost([]byte(text)); got != want {
			t.Errorf("%q costs %d, want %d", text, got, want)
		}
		var got int64
		for i := range len(text) {
			got += pieces.Cost([]byte(text[i : i+1]))
		}
		if got != want {
			t.Errorf("%q in pieces costs %d, want %d", text, got, want)
		}
	}
}
