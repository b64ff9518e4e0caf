package inert_test

import (
	"testing"

	"sallyport/internal/base/inert"
)

func TestAHeadEndsBetweenTwoCharacters(t *testing.T) {
	for _, c := range []struct {
		text  string
		limit int
		want  string
	}{
		{"", 3, ""},
		{"abc", -1, ""},
		{"abc", 3, "abc"},
		{"abcd", 3, "abc"},
		{"a\u00e9b", 2, "a"},
		{"a\u00e9b", 3, "a\u00e9"},
		{"a\U0001f600", 4, "a"},
		{"\U0001f600", 3, ""},
		{"a\x80\x80\x80\x80\x80\x80\x80\x80", 7, "a\x80\x80"}, // no text, and no reason to leave out much
	} {
		if got := inert.Head(c.text, c.limit); got != c.want {
			t.Errorf("Head(%q, %d) = %q, want %q", c.text, c.limit, got, c.want)
		}
	}
}

func TestACutLeavesNoHalfOfAWord(t *testing.T) {
	for _, c := range []struct {
		text  string
		limit int
		want  string
	}{
		{"", 3, ""},
		{"one two", 7, "one two"},
		{"key sk-0123456789abcdef", 16, "key …"},
		{"key sk-0123456789abcdef", 7, "key …"}, // the cut is before the word
		{"key\nsk-0123456789abcdef", 12, "key\n…"},
		{"one two three", 10, "one two…"},                         // and at its end
		{"\u5bc6\u7801\u662fabcdefgh", 14, "\u5bc6\u7801\u662f…"}, // a script without spaces
		{"\u5bc6\u7801\u662f\u5bc6\u7801\u662f", 11, "\u5bc6\u7801…"},
		{"abcdefgh", 6, "…"},
		{"abcdefgh", 1, "…"},
	} {
		if got := inert.Cut(c.text, c.limit); got != c.want {
			t.Errorf("Cut(%q, %d) = %q, want %q", c.text, c.limit, got, c.want)
		}
	}
}

func TestTheCharacterOfWhichMoreIsToComeIsLeftOut(t *testing.T) {
	for in, want := range map[string]string{
		"":                  "",
		"ab":                "ab",
		"a\u00e9":           "a\u00e9",
		"a\xc3":             "a",
		"a\xf0\x9f\x98":     "a",
		"\xf0":              "",
		"a\U0001f600":       "a\U0001f600",
		"a\xff":             "a\xff", // no beginning of one
		"a\x80\x80\x80\x80": "a\x80\x80\x80\x80",
	} {
		if got := string(inert.Whole([]byte(in))); got != want {
			t.Errorf("Whole(%q) = %q, want %q", in, got, want)
		}
	}
}
