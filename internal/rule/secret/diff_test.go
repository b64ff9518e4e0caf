package secret

import (
	"encoding/base64"
	"math/rand/v2"
	"strings"
	"testing"
)

func TestADiffIsShownWithoutSecretsAndElseAsItIs(t *testing.T) {
	s, _ := scanners()
	rnd := rand.New(rand.NewPCG(6, 7))
	token := known(rnd)["github-token"][0]
	block := keyBlock(rnd, 6)
	signed := func(sign, text string) string {
		return sign + strings.ReplaceAll(text, "\n", "\n"+sign) + "\n"
	}
	wrapped := base64.StdEncoding.EncodeToString([]byte(strings.Repeat("some words ", 9) + token + strings.Repeat(" more words", 9)))
	wrapped = wrap(wrapped, 60, "\n")
	head := "diff --git a/a b/a\n--- a/a\n+++ b/a\n@@ -1,2 +1,2 @@\n"
	for name, c := range map[string]struct{ text, want string }{
		"nothing":               {head + " a\n-b\n-c\n+d\n+\n+e\n", head + " a\n-b\n-c\n+d\n+\n+e\n"},
		"no newline at the end": {head + "-b\n\\ No newline at end of file\n+d", head + "-b\n\\ No newline at end of file\n+d"},
		"a token":               {head + "+k = " + token + "\n", head + "+k = [secret: github-token]\n"},
		"a token that goes":     {head + "-k = " + token + "\n", head + "-k = [secret: github-token]\n"},
		"a key":                 {head + " a\n" + signed("+", "x\n"+block+"\ny"), head + " a\n" + signed("+", "x\n[secret: private-key]\ny")},
		"a key that goes":       {head + signed("-", "x\n"+block+"\ny"), head + signed("-", "x\n[secret: private-key]\ny")},
		"a key that stays":      {head + signed(" ", "x\n"+block+"\ny"), head + " x\n [secret: private-key]\n y\n"},
		"wrapped base64":        {head + signed("+", "x\n"+wrapped+"\ny"), ""},
	} {
		var out strings.Builder
		r := s.DiffRedactor(&out)
		for _, b := range []byte(c.text) { // in whatever pieces it comes
			if _, err := r.Write([]byte{b}); err != nil {
				t.Fatal(err)
			}
		}
		if err := r.Close(); err != nil {
			t.Fatal(err)
		}
		if c.want != "" && out.String() != c.want {
			t.Errorf("%s: %q, want %q", name, out.String(), c.want)
		}
		if c.want == "" && (!strings.Contains(out.String(), "[secret: ") || strings.Contains(out.String(), wrapped[70:100])) {
			t.Errorf("%s: %q", name, out.String())
		}
	}
}
