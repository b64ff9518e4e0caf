package inert_test

import (
	"bytes"
	"errors"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"pgregory.net/rapid"

	"sallyport/internal/base/inert"
	"sallyport/internal/base/rapidtest"
)

func TestLineShowsWhatATerminalWouldObey(t *testing.T) {
	for in, want := range map[string]string{
		"plain text, naïve 日本 ✓":       "plain text, naïve 日本 ✓",
		"\x1b[2Jgone":                  `\x1b[2Jgone`,
		"two\nlines\tand\r":            `two\nlines\tand\r`,
		"a\x00b\x07c\x7f":              `a\x00b\x07c\x7f`,
		"c1 \u009b31m":                 `c1 \u009b31m`,
		"bidi \u202etxt.exe":           `bidi \u202etxt.exe`,
		"iso \u2066x\u2069":            `iso \u2066x\u2069`,
		"zero\u200bwidth\ufeff":        `zero\u200bwidth\ufeff`,
		"tag \U000e0041":               `tag \U000e0041`,
		"no break\u00a0space":          `no break\u00a0space`,
		"line\u2028sep":                `line\u2028sep`,
		"filler \u3164":                `filler \u3164`,
		"not utf8 \xff\xc3":            `not utf8 \xff\xc3`,
		"replacement \ufffd is itself": "replacement \ufffd is itself",
		`a backslash \n is itself`:     `a backslash \n is itself`,
	} {
		if got := inert.Line(in); got != want {
			t.Errorf("Line(%q) = %q, want %q", in, got, want)
		}
	}
}

func TestBlockKeepsLinesAndSaysWhatItLeftOut(t *testing.T) {
	if got := inert.Block("a\n\tb\x1b", 100); got != "a\n\tb\\x1b" {
		t.Errorf("got %q", got)
	}
	if got := inert.Block("aé"+strings.Repeat("x", 10), 2); got != "a\n… 12 bytes more" {
		t.Errorf("a rune was cut in two: %q", got)
	}
	if got := inert.Block("abc", -1); got != "\n… 3 bytes more" {
		t.Errorf("got %q", got)
	}
}

func TestPathIsOneUnmistakableWord(t *testing.T) {
	for in, want := range map[string]string{
		"src/main.go":   "src/main.go",
		"naïve.txt":     "naïve.txt",
		"-rf":           "'-rf'",
		"~root/x":       "'~root/x'",
		"":              "''",
		"a b":           "'a b'",
		"$(reboot)":     "'$(reboot)'",
		"a;b":           "'a;b'",
		"it's":          `$'it\'s'`,
		`back\slash`:    `$'back\\slash'`,
		"new\nline":     `$'new\nline'`,
		"\x1b[31mred":   `$'\x1b[31mred'`,
		"x\u202egpj.sh": `$'x\u202egpj.sh'`,
		"\xff":          `$'\xff'`,
	} {
		if got := inert.Path(in); got != want {
			t.Errorf("Path(%q) = %s, want %s", in, got, want)
		}
	}
}

// What is shown, pasted into a shell, names the very file that was meant.
func TestPathIsReadBackByAShell(t *testing.T) {
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("bash is not on this machine")
	}
	for _, p := range []string{"a", "-rf", "a b", "$(id)`id`", "it's \\", "new\nline\x1b\x01f", "\xff\xfe0", "é\u202e1", "\U000e0041b", "e'" + strings.Repeat("\u0301", 9) + "'" + strings.Repeat("\u0301", 9), "!x", "~", "*?[a]{b,c}", "#x", "=ls"} {
		cmd := exec.Command(bash, "--norc", "-c", "printf %s "+inert.Path(p))
		cmd.Env = []string{"LC_ALL=C.UTF-8"}
		out, err := cmd.Output()
		if err != nil || string(out) != p {
			t.Errorf("%q became %s, which the shell reads as %q (%v)", p, inert.Path(p), out, err)
		}
	}
}

// dangerous returns the first thing in s that must never be shown; keep is what may be.
func dangerous(s, keep string) string {
	if !utf8.ValidString(s) {
		return "it is not UTF-8"
	}
	for _, r := range s {
		if strings.ContainsRune(keep, r) {
			continue
		}
		if unicode.IsControl(r) || unicode.Is(unicode.Cf, r) || unicode.Is(unicode.Zl, r) || unicode.Is(unicode.Zp, r) || inert.Bidi(r) {
			return strconv.QuoteRune(r)
		}
	}
	return ""
}

func FuzzNothingDangerousIsShown(f *testing.F) {
	for _, s := range []string{"", "a\x1b[0m", "\u202e\u2066\n\t\r", "\xff\xc3\x28\xe2\x80", "\U000e0041\u200b", "+added\n-removed\n@@\ndiff", "e" + strings.Repeat("\u0301", 9)} {
		f.Add(s, 3)
	}
	f.Fuzz(func(t *testing.T, s string, n int) {
		if bad := dangerous(inert.Line(s), ""); bad != "" {
			t.Errorf("Line(%q): %s", s, bad)
		}
		if bad := dangerous(inert.Path(s), ""); bad != "" {
			t.Errorf("Path(%q): %s", s, bad)
		}
		if bad := dangerous(inert.Block(s, n), "\n\t"); bad != "" {
			t.Errorf("Block(%q): %s", s, bad)
		}
		var out bytes.Buffer
		w := inert.NewWriter(&out, false)
		cut := 0
		if n > 0 && len(s) > 0 {
			cut = n % len(s)
		}
		for _, part := range []string{s[:cut], s[cut:]} {
			if k, err := w.Write([]byte(part)); err != nil || k != len(part) {
				t.Fatalf("Write = %d, %v", k, err)
			}
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		if want := inert.Block(s, len(s)); out.String() != want {
			t.Errorf("streamed %q, at once %q", out.String(), want)
		}
	})
}

func TestWriterIsTheSameHoweverTheTextIsCut(t *testing.T) {
	rapidtest.Check(t, func(t *rapid.T) {
		s := string(rapid.SliceOf(rapid.Byte()).Draw(t, "bytes")) + rapid.String().Draw(t, "text") + rapid.StringOf(rapid.SampledFrom([]rune("e\n\t\u0301\u0301\u0301\u0301"))).Draw(t, "marks")
		var out bytes.Buffer
		w := inert.NewWriter(&out, false)
		for rest := s; rest != ""; {
			n := rapid.IntRange(1, len(rest)).Draw(t, "n")
			if _, err := w.Write([]byte(rest[:n])); err != nil {
				t.Fatal(err)
			}
			rest = rest[n:]
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		if want := inert.Block(s, len(s)); out.String() != want {
			t.Fatalf("streamed %q, at once %q", out.String(), want)
		}
	})
}

func TestWriterColoursOnlyByTheFirstCharacterOfALine(t *testing.T) {
	var out bytes.Buffer
	w := inert.NewWriter(&out, true)
	if _, err := w.Write([]byte("diff --git a b\n@@ -1 @@\n+in\x1b[31m\n-out\n same +x\n+é")); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write([]byte{0xc3}); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	want := "\x1b[1mdiff --git a b\x1b[0m\n\x1b[36m@@ -1 @@\x1b[0m\n\x1b[32m+in\\x1b[31m\x1b[0m\n\x1b[31m-out\x1b[0m\n same +x\n\x1b[32m+é\\xc3\x1b[0m"
	if out.String() != want {
		t.Errorf("got  %q\nwant %q", out.String(), want)
	}
}

func TestAScreenTakesWhatALineEditorNeedsAndNothingThatDrivesATerminal(t *testing.T) {
	var out bytes.Buffer
	s := inert.NewScreen(&out)
	for _, b := range []byte("ls\b\r\n\a\x1b]0;title\a\x1b[?2004h\x1b[6n\x1bP+q\x1b\\\u009d52;c;aGk\u009c\x00\v\x0e\u202e.") {
		if _, err := s.Write([]byte{b}); err != nil {
			t.Fatal(err)
		}
	}
	want := "ls\b\r\n\a" + `\x1b]0;title` + "\a" + `\x1b[?2004h\x1b[6n\x1bP+q\x1b\\u009d52;c;aGk\u009c\x00\x0b\x0e\u202e.`
	if err := s.Close(); err != nil || out.String() != want {
		t.Errorf("%q, want %q, %v", out.String(), want, err)
	}
}

func TestWriterReportsThatNobodyReads(t *testing.T) {
	gone := errors.New("gone")
	w := inert.NewWriter(failing{gone}, false)
	if _, err := w.Write(bytes.Repeat([]byte("x"), 100<<10)); !errors.Is(err, gone) {
		t.Errorf("Write = %v", err)
	}
	if err := w.Close(); !errors.Is(err, gone) {
		t.Errorf("Close = %v", err)
	}
}

type failing struct{ err error }

func (f failing) Write([]byte) (int, error) { return 0, f.err }

// What Unicode lets a program show as nothing, and no letter beside it.
func TestWhatHasNoInkIsKnownByItsProperty(t *testing.T) {
	for _, r := range []rune{0x34f, 0x115f, 0x1160, 0x17b4, 0x17b5, 0x180b, 0x180d, 0x180f, 0x2065, 0x2800, 0x3164, 0x13441, 0x13442, 0x16fe4, 0x1d159, 0xfe00, 0xfe0f, 0xffa0, 0xfff0, 0xfff8, 0xe0000, 0xe0080, 0xe0100, 0xe01ef, 0xe0fff} {
		if !inert.Inkless(r) || inert.Line(string(r)) == string(r) {
			t.Errorf("%U is shown as it is", r)
		}
	}
	for _, r := range []rune{'a', 0xe9, 0x17b6, 0x1820, 0x2801, 0x3163, 0x1161, 0x4e00, 0x1f600} {
		if inert.Inkless(r) || inert.Line(string(r)) != string(r) {
			t.Errorf("%U is not shown", r)
		}
	}
}

func TestNoPileOfMarksCoversOtherLines(t *testing.T) {
	pile := func(n int) string { return strings.Repeat("\u0301", n) }
	for in, want := range map[string]string{
		"e" + pile(5):                    "e" + pile(5),
		"e" + pile(7):                    "e" + pile(5) + `\u0301\u0301`,
		"e" + pile(5) + "e" + pile(5):    "e" + pile(5) + "e" + pile(5),
		"a\u20dd" + pile(5):              "a\u20dd" + pile(4) + `\u0301`,
		"\u05e9\u05c1\u05bc\u05b8\u0596": "\u05e9\u05c1\u05bc\u05b8\u0596", // Hebrew has four
	} {
		if got := inert.Line(in); got != want {
			t.Errorf("Line(%+q) = %+q, want %+q", in, got, want)
		}
		if got := inert.Block("\n"+in+"\n"+in, 1000); got != "\n"+want+"\n"+want {
			t.Errorf("Block of %+q: %+q", in, got)
		}
		if path := inert.Path(in); in == want && path != in || in != want && path != "$'"+want+"'" {
			t.Errorf("Path(%+q) = %+q", in, path)
		}
	}
}

func TestAShortTextIsOneLineOfAtMostItsLimit(t *testing.T) {
	for _, c := range []struct {
		text  string
		limit int
		want  string
	}{
		{"", 10, ""},
		{"  one\n\n two\tthree ", 20, "one two three"},
		{"\x1b[31mred\u202e", 40, `\x1b[31mred\u202e`},
		{"a\xffb", 10, "a?b"},
		{"0123456789", 10, "0123456789"},
		{"0123456789x", 10, "0123456789…"},
		{"12345678é9", 9, "12345678…"}, // no half of a letter
	} {
		if got := inert.Short(c.text, c.limit); got != c.want {
			t.Errorf("Short(%q, %d) = %q, want %q", c.text, c.limit, got, c.want)
		}
	}
}

func TestABriefTextIsOneLineAndLeavesNoHalfOfAWord(t *testing.T) {
	for in, want := range map[string]string{"a\n b": "a b", "the key  sk-0123456789abcdef": "the key …", "sk-0123456789abcdef": "…"} {
		if got := inert.Brief(in, 15); got != want {
			t.Errorf("Brief(%q) = %q, want %q", in, got, want)
		}
	}
}
