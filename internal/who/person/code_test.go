package person_test

import (
	"slices"
	"strings"
	"testing"

	"sallyport/internal/who/person"
)

// TestCodesAreFoundInWhateverStandsBesideThem holds that a code is found as people write it between other words, and that a text has no more
// of them looked up than is bounded.
func TestCodesAreFoundInWhateverStandsBesideThem(t *testing.T) {
	for text, want := range map[string][]person.LinkCode{
		"":                               nil,
		"ABCD-EFGH":                      {"ABCDEFGH"},
		"abcd efgh":                      {"ABCDEFGH"},
		"<@12345678> ABCD-EFGH":          {"5678ABCD", "ABCDEFGH"}, // a 1 is in no code
		"nick:ABCD-EFGH.":                {"ABCDEFGH"},
		"**ABCDEFGH**":                   {"ABCDEFGH"},
		"_ABCD-EFGH_":                    {"ABCDEFGH"},
		"é»ABCD\u2013EFGHé":              {"ABCDEFGH"},
		"x-ABCD - EFGH-x":                {"ABCDEFGH"},
		"take ABCD-EFGH":                 {"TAKEABCD", "ABCDEFGH"},
		"ABCD-EFGH ABCDEFGH, 2345-6789 ": {"ABCDEFGH", "EFGHABCD", "EFGH2345", "23456789"},
		"ABCD, or EFGH":                  nil,
		"XABCD-EFGH or ABCD-EFGHX":       {"ABCDEFGH"},
		"codeABCDEFGHx":                  {"DEABCDEF", "EABCDEFG", "ABCDEFGH", "BCDEFGHX"},
		"ABCD-EFG0 ABC0EFGHJ":            nil,
	} {
		if got := person.CodesIn(text); !slices.Equal(got, want) {
			t.Errorf("%q has %q, not %q", text, got, want)
		}
	}
	if got := person.CodesIn("no", "ABCD-EFGH", "efgh-abcd, abcdefgh"); !slices.Equal(got, []person.LinkCode{"ABCDEFGH", "EFGHABCD", "ABCDABCD"}) {
		t.Errorf("texts have %q", got)
	}
	var many strings.Builder
	for range 5000 {
		many.WriteString(string(person.NewCode()) + "\n")
	}
	if got := person.CodesIn(many.String()); len(got) != 4096 {
		t.Errorf("%d are looked for", len(got))
	}
}
