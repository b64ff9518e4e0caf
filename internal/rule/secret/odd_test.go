package secret

import (
	"encoding/base64"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp/syntax"
	"strings"
	"testing"

	"github.com/zricethezav/gitleaks/v8/detect"

	"sallyport/internal/base/race/racetest"
)

// A letter beyond ASCII that folds to an ASCII one stands for it in an expression, and for the Kelvin sign in a keyword.
func TestLettersThatFoldToASCIIHideNothing(t *testing.T) {
	rnd := rand.New(rand.NewPCG(11, 11))
	_, library := scanners()
	found := 0
	for id, hide := range map[string][2]string{
		"kraken-access-token": {"kraken", "\u212araken"}, "kucoin-access-token": {"kucoin", "\u212aucoin"}, "okta-access-token": {"kta", "\u212ata"},
		"asana-client-id": {"asana", "a\u017fana asana"}, "looker-client-id": {"looker", "loo\u212aer"},
	} {
		re, err := syntax.Parse(library.Config.Rules[id].Regex.String(), syntax.Perl)
		if err != nil {
			t.Fatal(err)
		}
		for range 20 {
			text := "\n" + strings.ReplaceAll(strings.ToLower(sample(re, rnd)), hide[0], hide[1]) + "\n"
			found += len(compare(t, "", text))
		}
	}
	if found < 20 {
		t.Errorf("the library found %d: the texts are bad", found)
	}
}

// What the library allows for a path it is not asked about; the product's rules hold all the same.
func TestPathsThatTheLibraryAllows(t *testing.T) {
	rnd := rand.New(rand.NewPCG(12, 12))
	secrets := known(rnd)
	hook := "hooks.slack.com" + "/services/" + random(rnd, alnum, 44)
	for _, path := range []string{"node_modules/x.js", "a.png", "package-lock.json", "vendor/github.com/x/y.go", "go.sum", "gitleaks.toml", "x.bb", "a/jquery.js", "src/x.go"} {
		text := "a\n" + hook + "\n" + secrets["github-token"][0] + "\nSRC = \"" + random(rnd, alnum, 20) + "\"\n"
		compare(t, path, text)
		if fs := scan(t, path, text); !has(fs, "github-token", 3) || has(fs, "slack-webhook-url", 2) != (path == "src/x.go" || path == "x.bb") {
			t.Errorf("%s: %v", path, fs)
		}
	}
}

// Rules as a base may write them, with assertions where windows begin and end.
func TestAnyRuleIsSievedAsTheLibraryDoesIt(t *testing.T) {
	rnd := rand.New(rand.NewPCG(13, 13))
	for i, expression := range []string{
		`\Bqqq[0-9]{4}`, `\bqqq[0-9]{4}\b`, `^qqq[0-9]{4}`, `(?m)^qqq[0-9]{4}$`, `qqq[0-9]{4}$`, `\A\s*qqq.{4}`, `qqq[^x]{1,30}\z`, `\b---qqq[0-9]+`, `\B---qqq[0-9]+`,
		`(?:\b|x)qqq[0-9]{2,}`, `[a-z]*qqq[a-z]*=\d+`, `(?s)qqq.*?end`, `qqq\n?[0-9]{4}`, `(?:qqq|zzz){2,}[0-9]`, `(?i)(?:qqq\s?){3}[0-9]+`, `[qz]{3}[0-9]{4}`, `é*qqq[é-ü]{2}`,
		`(?:a|(?:b|qqq)+)x[0-9]{3}`, `q?q?qqq=(?:[0-9]{1,200}|x+)`, `\D{4}=[0-9]{3}`,
	} {
		if racetest.Part() && i%4 != 0 {
			continue
		}
		cfg, _, err := loadRules([]byte("[[rules]]\nid='ours'\nregex='''"+expression+"'''\nkeywords=['q', 'z', '=']\n"), false)
		if err != nil {
			t.Fatalf("%s: %v", expression, err)
		}
		s, library := loaded(cfg), detect.NewDetector(cfg)
		re, err := syntax.Parse(expression, syntax.Perl)
		if err != nil {
			t.Fatal(err)
		}
		pieces := []string{"qqq", "zzz", "QQQ", "---", "1234", "\n", " ", "x", "a", "=", "é", "ü", "\xc3", "end", "_"}
		fired := 0
		for range 60 {
			var text strings.Builder
			for range rnd.IntN(40) {
				text.WriteString(pieces[rnd.IntN(len(pieces))])
				if rnd.IntN(8) == 0 {
					text.WriteString(sample(re, rnd))
				}
				if rnd.IntN(30) == 0 {
					text.WriteString(strings.Repeat("plain ", 60))
				}
			}
			ours, theirs := map[said]int{}, map[said]int{}
			hits, err := s.scan(t.Context(), "", text.String())
			if err != nil {
				t.Fatal(err)
			}
			for _, h := range hits {
				if !h.own {
					ours[said{h.rule, h.line, h.secret}]++
				}
			}
			for _, f := range library.Detect(detect.Fragment{Raw: text.String()}) {
				theirs[said{f.RuleID, f.StartLine + 1, f.Secret}]++
				fired++
			}
			for f, n := range theirs {
				if ours[f] != n {
					t.Fatalf("%s: missed %s (%d of %d) in %q", expression, f, ours[f], n, text.String())
				}
			}
			if len(ours) != len(theirs) {
				t.Fatalf("%s: %v, the library: %v; in %q", expression, ours, theirs, text.String())
			}
		}
		if fired == 0 {
			t.Errorf("%s never matched", expression)
		}
	}
}

// A long name at the end of the line before is no part of the base64 below it.
func TestBase64BelowALongName(t *testing.T) {
	rnd := rand.New(rand.NewPCG(14, 14))
	for n := 32; n < 40; n++ {
		key := known(rnd)["aws-access-key"][0]
		text := random(rnd, lower, n) + "\n" + base64.StdEncoding.EncodeToString([]byte("the key "+key+" of ours")) + "\n"
		if fs := scan(t, "a", text); !has(fs, "aws-access-key", 0) {
			t.Errorf("missed below %d letters", n)
		}
	}
}

// What the rules and these tests are made of must not stop a change to them.
func TestThisPackageHoldsNothingThatLooksLikeASecret(t *testing.T) {
	files, err := filepath.Glob("*.go")
	if err != nil || len(files) == 0 {
		t.Fatal(err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range scan(t, file, string(text)) {
			t.Error(f)
		}
	}
}
