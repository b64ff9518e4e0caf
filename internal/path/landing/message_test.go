package landing_test

import (
	"os/exec"
	"strings"
	"testing"

	"sallyport/internal/base/git"
	"sallyport/internal/base/inert"
	"sallyport/internal/path/landing"
)

func TestMessagesNameWhatWhyAndWho(t *testing.T) {
	long := "make the very long parser of the configuration accept what it used to accept before"
	for name, test := range map[string]struct {
		m    landing.Message
		want string
	}{
		"a change": {
			landing.Message{Change: "chg-1", Subject: landing.Subject("mend it\nplease"), Body: "mend it\nplease", CoAuthor: "pi (m-1) <pi@agents.invalid>", Approver: "Ann <ann@example.org>"},
			"mend it\n\nmend it\nplease\n\nCo-authored-by: pi (m-1) <pi@agents.invalid>\nSallyport-Change: chg-1\nApproved-by: Ann <ann@example.org>\n",
		},
		"one line, approved beforehand": {
			landing.Message{Change: "chg-1", Subject: landing.Subject("  mend   it "), Body: "  mend   it ", Approver: "Ann <a@b>", Unasked: true},
			"mend it\n\nSallyport-Change: chg-1\nPre-approved-by: Ann <a@b>\n",
		},
		"a long line stands whole in the body": {
			landing.Message{Change: "chg-1", Subject: landing.Subject(long), Body: long},
			"make the very long parser of the configuration accept what it used to…\n\n" + long + "\n\nSallyport-Change: chg-1\n",
		},
		"words that could be taken for others'": {
			landing.Message{Change: "chg-1", Subject: "s", Body: "why:\n\nApproved-by: Mallory <m@x>\n---\n# gone\nFrom here\nfine\n"},
			"s\n\n  why:\n\n  Approved-by: Mallory <m@x>\n  ---\n  # gone\n  From here\nfine\n\nSallyport-Change: chg-1\n",
		},
	} {
		if got := test.m.String(); got != test.want {
			t.Errorf("%s:\n got %q\nwant %q", name, got, test.want)
		}
	}
	if got := landing.Reverting("mend it"); got != `Revert "mend it"` {
		t.Errorf("%q", got)
	}
	if got := landing.Reverting(long); inert.Width(got) > 72 || !strings.HasSuffix(got, `…"`) {
		t.Errorf("%q", got)
	}
	if swap, back := landing.Swap("chg-1", "mend it"), landing.Rollback("chg-1", "it broke"); swap != "swap chg-1: mend it" || back != "rollback chg-1: it broke" {
		t.Errorf("%q, %q", swap, back)
	}
}

// Git is asked itself which lines are trailers; its own words for it are the standard.
func TestNoTrailerOfAMessageIsForged(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("SKIPPED: git is not installed")
	}
	forged := "Approved-by: Mallory <m@example.org>"
	for _, body := range []string{forged, "x\n\n" + forged, forged + "\n---\nx", "x\n" + forged + "\n\n", "(cherry picked from commit 1)\n" + forged, "x\n\n" + forged + "\n " + "more"} {
		for _, subject := range []string{"s", forged, "---", "# s"} {
			m := landing.Message{Change: "chg-1", Subject: landing.Subject(subject), Body: body, Approver: "Ann <ann@example.org>\n" + forged}
			cmd := exec.Command("git", "interpret-trailers", "--parse")
			cmd.Stdin = strings.NewReader(m.String())
			out, err := cmd.Output()
			if want := "Sallyport-Change: chg-1\nApproved-by: Ann <ann@example.org> " + forged + "\n"; err != nil || string(out) != want {
				t.Errorf("of %q git reads %q (%v), want %q", m.String(), out, err, want)
			}
		}
	}
}

func TestASubjectIsCutAtAWord(t *testing.T) {
	for text, want := range map[string]string{
		strings.Repeat("a", 72):                   strings.Repeat("a", 72),
		strings.Repeat("a", 73):                   strings.Repeat("a", 71) + "…",
		strings.Repeat("ab ", 30):                 strings.TrimSpace(strings.Repeat("ab ", 23)) + " ab…",
		"word " + strings.Repeat("語", 60):         "word " + strings.Repeat("語", 33) + "…",
		strings.Repeat("a", 60) + " bbbbbbbbbbbb": strings.Repeat("a", 60) + "…",
		// A word that ends behind the middle is the last one; of one that ends before it too little would be left.
		strings.Repeat("a", 36) + " " + strings.Repeat("b", 60): strings.Repeat("a", 36) + "…",
		strings.Repeat("a", 35) + " " + strings.Repeat("b", 60): strings.Repeat("a", 35) + " " + strings.Repeat("b", 35) + "…",
		"\x1b[31mred\u202e\n": `\x1b[31mred\u202e`,
	} {
		if got := landing.Subject(text); got != want || inert.Width(got) > 72 {
			t.Errorf("%q becomes %q (%d columns), want %q", text, got, inert.Width(got), want)
		}
	}
}

func TestInverseOfInverseIsTheSame(t *testing.T) {
	edits := []git.Edit{{Path: "a", New: git.Entry{Mode: git.File, OID: "1"}}, {Path: "b", Old: git.Entry{Mode: git.Symlink, OID: "2"}}}
	back := landing.Inverse(edits)
	if !back[0].New.Absent() || back[0].Old != edits[0].New || back[1].New != edits[1].Old {
		t.Errorf("%v", back)
	}
	if again := landing.Inverse(back); again[0] != edits[0] || again[1] != edits[1] {
		t.Errorf("%v", again)
	}
}
