package secret

import (
	"compress/gzip"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/zricethezav/gitleaks/v8/detect"
	"github.com/zricethezav/gitleaks/v8/report"
)

// TestAListOfWholeLinesAllowsWhatTheLibraryAllows: such lists are asked by us, once a line.
func TestAListOfWholeLinesAllowsWhatTheLibraryAllows(t *testing.T) {
	lists := map[string]string{
		"none":           "",
		"words":          `regexes = ['''# a sample''']`,
		"begin":          `regexes = ['''^key''']`,
		"end":            `regexes = ['''sample$''', '''of none''']`,
		"a stop word":    "regexes = ['''# a sample''']\nstopwords = [\"abc\"]",
		"and a word":     "condition = \"AND\"\nregexes = ['''# a sample''']\nstopwords = [\"abc\"]",
		"and a path":     "condition = \"AND\"\nregexes = ['''# a sample''']\npaths = ['''\\.bb$''']",
		"and all":        "condition = \"AND\"\nregexes = ['''# a sample''']\npaths = ['''\\.bb$''']\nstopwords = [\"abc\"]",
		"or a path":      "regexes = ['''# a sample''']\npaths = ['''\\.bb$''']",
		"and a commit":   "condition = \"AND\"\nregexes = ['''# a sample''']\ncommits = [\"abcdef0\"]",
		"a path alone":   "paths = ['''\\.bb$''']",
		"and alone":      "condition = \"AND\"\npaths = ['''\\.bb$''']",
		"stop words":     `stopwords = ["abc"]`,
		"and stop words": "condition = \"AND\"\nstopwords = [\"abc\"]",
	}
	texts := []string{
		"key-abc1 key-xyz2\n", "key-abc1 key-xyz2 # a sample\nkey-abc3\n", "x key-abc1\nkey-xyz2 # a sample", " key-abc1 # a sample\n\nkey-abc1\nkey-xyz2 # a sample",
		"key-abc1 # a sample\nkey-abc1 # another\nkey-abc1 # a sample\n", "", "\n\nkey-\nabc1 # a sample\nkey-xyz2",
	}
	found, allowed := 0, 0
	for name, list := range lists {
		for _, where := range []string{"[[rules.allowlists]]", "[[allowlists]]"} {
			toml := "[[rules]]\nid = \"mine\"\nregex = '''key-\\s?([a-z0-9]+)'''\n"
			if list != "" {
				toml += where + "\nregexTarget = \"line\"\n" + list + "\n"
			}
			cfg, _, err := loadRules([]byte(toml), true)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			mine, whole := newDetector(cfg, cfg.Rules["mine"]), detect.NewDetector(cfg)
			for i, text := range texts {
				for _, path := range []string{"", "a.bb", "a.go"} {
					want := slices.DeleteFunc(whole.Detect(detect.Fragment{Raw: text, FilePath: path}), func(f report.Finding) bool { return f.RuleID != "mine" })
					got := mine.find(t.Context(), path, text)
					if fmt.Sprint(got) != fmt.Sprint(want) {
						t.Errorf("%s in %s, text %d at %q: %d found, the library finds %d", name, where, i, path, len(got), len(want))
					}
					found, allowed = found+len(want), allowed+strings.Count(text, "key-")-len(want)
				}
			}
		}
	}
	if found < 200 || allowed < 100 {
		t.Errorf("%d were found, %d allowed: the lists tell nothing apart", found, allowed)
	}
}

// TestWhatTheLibraryWouldTakeHoursForIsNotScanned: it hears of no time-out while it tells where its matches are. What is not scanned is not
// clean.
func TestWhatTheLibraryWouldTakeHoursForIsNotScanned(t *testing.T) {
	s, err := New(Config{Toml: []byte("[[rules]]\nid = \"mine\"\nregex = '''key-([a-z0-9]{8})'''\nkeywords = [\"key-\"]\n"), Trusted: true})
	if err != nil {
		t.Fatal(err)
	}
	keys := func(n int) string { return strings.Repeat("key-abcd1234 ", n) }
	var packed strings.Builder
	w := gzip.NewWriter(&packed)
	if _, err := w.Write([]byte(keys(40_000))); err != nil || w.Close() != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		text    string
		crowded bool
	}{
		"many lines with a key each": {strings.ReplaceAll(keys(110_000), " ", "\n"), true},
		"many keys in one last line": {keys(40_000), true},
		"many keys in one line":      {keys(40_000) + "\n", false},
		"many lines and few keys":    {strings.Repeat("\n", 1<<20) + keys(10) + "\n", false},
		"few keys before many bytes": {keys(10) + strings.Repeat("z%", 2<<20), false},
		"many keys in a packed line": {packed.String(), true},
	} {
		found, err := s.Scan(t.Context(), "a", strings.NewReader(c.text), int64(len(c.text)))
		var not *NotScanned
		if crowded := errors.As(err, &not); crowded != c.crowded || !c.crowded && (err != nil || len(found) == 0) || crowded && not.Reason != "too much of it looks like a secret" {
			t.Errorf("%s: %d found, %v", name, len(found), err)
		}
	}
}

// BenchmarkALineFullOfSecrets tells how much longer one line takes than the same in lines of one each.
func BenchmarkALineFullOfSecrets(b *testing.B) {
	s, _ := scanners()
	var text strings.Builder
	for i := range 2000 {
		fmt.Fprintf(&text, "secret:q%04xZr7TkW2mVx%04x ", i*31, i*17)
	}
	line, lines := text.String(), strings.ReplaceAll(text.String(), " ", "\n")
	took := map[string]time.Duration{}
	for b.Loop() {
		for _, text := range []string{line, lines} {
			began := time.Now()
			s.Redact(text)
			took[text] += time.Since(began)
		}
	}
	b.ReportMetric(float64(took[line])/float64(took[lines]), "times-the-same-in-lines")
}
