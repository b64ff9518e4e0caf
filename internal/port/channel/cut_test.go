package channel_test

import (
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	"pgregory.net/rapid"

	"sallyport/internal/base/rapidtest"
	"sallyport/internal/port/channel"
)

func TestALongTextIsCutBetweenLinesOrWords(t *testing.T) {
	for _, c := range []struct {
		text string
		max  int
		want []string
	}{
		{"", 10, nil},
		{"short", 10, []string{"short"}},
		{"one two three", 8, []string{"one two", "three"}},
		{"one two\nthree four", 12, []string{"one two", "three four"}},
		{"exactly ten", 7, []string{"exactly", "ten"}},
		{"aaaaaaaaaaaa", 5, []string{"aaaaa", "aaaaa", "aa"}},
		{"ééé", 4, []string{"éé", "é"}},
		{"日本語", 1, []string{"日", "本", "語"}},
		{"a bbbbbbbbbbbbbbbbbb", 10, []string{"a bbbbbbbb", "bbbbbbbbbb"}},
		{"   \n   x", 4, []string{"   x"}},
		{"a\nbbbb cc dddd", 8, []string{"a", "bbbb cc", "dddd"}}, // a line goes before a word
	} {
		if got := (channel.Can{TextMax: c.max}).Cut(c.text); !slices.Equal(got, c.want) {
			t.Errorf("%q by %d: %q, not %q", c.text, c.max, got, c.want)
		}
	}
}

func TestNoLetterOfACutTextIsLost(t *testing.T) {
	units := func(text string) int { return len(utf16.Encode([]rune(text))) }
	solid := func(text string) string {
		return strings.Map(func(r rune) rune {
			if unicode.IsSpace(r) {
				return -1
			}
			return r
		}, text)
	}
	rapidtest.Check(t, func(t *rapid.T) {
		can := channel.Can{TextMax: rapid.IntRange(4, 40).Draw(t, "max")}
		length := func(s string) int { return len(s) }
		if rapid.Bool().Draw(t, "units") {
			can.Length, length = units, units
		}
		text := rapid.StringOfN(rapid.RuneFrom([]rune("ab \n\té日😀")), 0, 200, -1).Draw(t, "text")
		pieces := can.Cut(text)
		for _, p := range pieces {
			if length(p) > can.TextMax || p == "" || !utf8.ValidString(p) {
				t.Fatalf("%q has %d of %d", p, length(p), can.TextMax)
			}
		}
		if got := solid(strings.Join(pieces, "")); got != solid(text) {
			t.Fatalf("%q became %q", text, pieces)
		}
	})
}

func TestALongLineOfACardGoesOnBelowAMark(t *testing.T) {
	x := func(n int) string { return strings.Repeat("x", n) }
	for text, want := range map[string]string{
		"":                             "",
		"two\nlines\n":                 "two\nlines\n",
		x(240) + "\n" + x(240):         x(240) + "\n" + x(240),
		x(240) + "1. approve":          x(240) + "\n… 1. approve",
		x(240) + "\n1. approve":        x(240) + "\n1. approve",
		x(239) + "é1. approve\nx":      x(239) + "\n… é1. approve\nx",
		x(240) + x(236) + "1. approve": x(240) + "\n… " + x(236) + "\n… 1. approve",
	} {
		if got := channel.Rows(text); got != want {
			t.Errorf("%q is\n%q, not\n%q", text, got, want)
		}
	}
}
