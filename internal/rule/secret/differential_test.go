package secret

import (
	"context"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp/syntax"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/zricethezav/gitleaks/v8/config"
	"github.com/zricethezav/gitleaks/v8/detect"

	"sallyport/internal/base/race/racetest"
)

var scanners = sync.OnceValues(func() (*Scanner, *detect.Detector) {
	s, err := New(Config{})
	if err != nil {
		panic(err)
	}
	d, err := detect.NewDetectorDefaultConfig()
	if err != nil {
		panic(err)
	}
	d.IgnoreGitleaksAllow = true
	return s, d
})

// All comparisons with the library, and all known secrets: the sieve is a function of one text on one goroutine.
func TestAllOfItWithoutTheRaceDetector(t *testing.T) { racetest.Whole(t) }

// said is a finding without the secret: what the test may print.
type said struct {
	rule string
	line int
	text string
}

func (s said) String() string {
	return fmt.Sprintf("%s, line %d, %d bytes", s.rule, s.line, len(s.text))
}

// compare holds what the sieve finds against what the library finds in the whole text: neither more nor less, nor elsewhere. It returns
// the rule of each that the library finds.
func compare(t *testing.T, path, text string) (rules []string) {
	t.Helper()
	s, library := scanners()
	ours, theirs := map[said]int{}, map[said]int{}
	hits, err := s.sieve.scan(t.Context(), path, text)
	if err != nil {
		t.Fatal(err)
	}
	for _, h := range hits {
		if !h.own {
			ours[said{h.rule, h.line, h.secret}]++
		}
	}
	for _, f := range library.Detect(detect.Fragment{Raw: text, FilePath: path}) {
		line := f.StartLine + 1
		if strings.HasPrefix(f.Match, "file detected:") {
			line = 0
		}
		theirs[said{f.RuleID, line, f.Secret}]++
		rules = append(rules, f.RuleID)
	}
	for f := range theirs {
		if ours[f] != theirs[f] {
			t.Errorf("%s: missed %s (%d of %d)", path, f, ours[f], theirs[f])
		}
	}
	for f := range ours {
		if theirs[f] == 0 {
			t.Errorf("%s: only ours: %s", path, f)
		}
	}
	return rules
}

// sources returns the files below a folder, one in so many.
func sources(t testing.TB, folder string, oneIn int) []string {
	var files []string
	n := 0
	err := filepath.WalkDir(folder, func(p string, e fs.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() {
			return err
		}
		if info, err := e.Info(); err == nil && info.Size() < 200_000 {
			if n++; n%oneIn == 0 {
				files = append(files, p)
			}
		}
		return nil
	})
	if err != nil {
		t.Skipf("needs the sources in %s: %v", folder, err)
	}
	return files
}

func TestNothingIsMissedInRealSources(t *testing.T) {
	oneIn := 80
	if racetest.Part() {
		oneIn = 2000
	}
	found, bytes := 0, 0
	files := sources(t, goSources(t), oneIn)
	files = append(files, sources(t, librarySources(t), 8)...)
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		bytes += len(text)
		found += len(compare(t, file, string(text)))
	}
	t.Logf("%d files, %d bytes: the library found %d, and so did the sieve", len(files), bytes, found)
}

// goSources is where the standard library stands. A program that was built with -trimpath, as Whole's, does not know it.
func goSources(t testing.TB) string {
	out, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		t.Skip("needs the go command")
	}
	return filepath.Join(strings.TrimSpace(string(out)), "src")
}

// librarySources is where the library's own samples of secrets stand.
func librarySources(t testing.TB) string {
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/zricethezav/gitleaks/v8").Output()
	if err != nil || len(out) == 0 {
		t.Skip("needs the go command and gitleaks in the module cache")
	}
	return strings.TrimSpace(string(out))
}

func TestNothingIsMissedInRealDiffs(t *testing.T) {
	cache, err := exec.Command("go", "env", "GOMODCACHE").Output()
	if err != nil {
		t.Skip("needs the go command")
	}
	if racetest.Part() {
		t.Skip("long: the library needs most of it")
	}
	var found, diffs, bytes int
	for _, module := range []string{"golang.org/x/sys", "golang.org/x/tools", "golang.org/x/term", "modernc.org/libc"} {
		versions, _ := filepath.Glob(filepath.Join(strings.TrimSpace(string(cache)), module+"@*"))
		for i := 1; i < len(versions); i++ {
			diff, _ := exec.Command("git", "diff", "--no-index", "--no-color", versions[i-1], versions[i]).Output()
			for _, part := range slices.Collect(slices.Chunk(diff[:min(len(diff), 300_000)], 50_000)) {
				found += len(compare(t, "", string(part)))
				bytes += len(part)
			}
			diffs++
		}
	}
	if diffs == 0 {
		t.Skip("needs two versions of a module in the module cache")
	}
	t.Logf("%d diffs, %d bytes: %d findings", diffs, bytes, found)
}

// For every rule of the library: secrets drawn from its own expression, between words that look like much.
func TestNothingIsMissedOfAnyRule(t *testing.T) {
	rnd := rand.New(rand.NewPCG(7, 7))
	s, library := scanners()
	rounds, oneIn := 6, 1
	if racetest.Part() {
		rounds, oneIn = 1, 10
	}
	hitsOf, tried := map[string]int{}, 0
	for i, id := range slices.Sorted(maps.Keys(library.Config.Rules)) {
		if i%oneIn != 0 {
			continue
		}
		tried++
		from := library.Config.Rules[id]
		path := pathFor(from)
		if from.Regex == nil {
			hitsOf[id] += len(compare(t, "a/b.p12", "content"))
			continue
		}
		re, err := syntax.Parse(from.Regex.String(), syntax.Perl)
		if err != nil {
			t.Fatal(err)
		}
		for range rounds {
			var text strings.Builder
			for range 4 {
				text.WriteString(prose(rnd, rnd.IntN(700)))
				text.WriteString([]string{"\n", " ", "\"", "='", ": ", "é", "\xff\xfe", "\r\n"}[rnd.IntN(8)])
				text.WriteString(sample(re, rnd))
				text.WriteString([]string{"\n", " ", "\"", "';", "", "é", "\xc3", "x"}[rnd.IntN(8)])
				if rnd.IntN(2) == 0 && len(from.Keywords) > 0 {
					text.WriteString(" " + from.Keywords[rnd.IntN(len(from.Keywords))] + " ")
				}
			}
			for _, rule := range compare(t, path, text.String()) {
				hitsOf[rule]++
			}
		}
	}
	var never []string
	for i, id := range slices.Sorted(maps.Keys(library.Config.Rules)) {
		if i%oneIn == 0 && hitsOf[id] == 0 {
			never = append(never, id)
		}
	}
	t.Logf("%d rules (%d with a sieve); the drawn secrets of %d were found, by both. Never drawn well enough: %v",
		tried, len(s.sieve.rules)-len(ownRules), tried-len(never), never)
	if len(never) > tried/5 {
		t.Errorf("the generator is bad: %d rules never fired", len(never))
	}
}

func pathFor(r config.Rule) string {
	for _, p := range []string{"a/b.txt", "a/b.php", "a/b.tf", "a/b.yaml", "nuget.config"} {
		if r.Path == nil || r.Path.MatchString(p) {
			return p
		}
	}
	return ""
}

// Letters that fold to ASCII, cut runes, texts at both ends of a window, and very dense texts.
func TestNothingIsMissedInOddTexts(t *testing.T) {
	rnd := rand.New(rand.NewPCG(9, 9))
	_, library := scanners()
	ids := slices.Sorted(maps.Keys(library.Config.Rules))
	pieces := []string{"\u212a", "\u0130", "\u017f", "\xe2\x84", "\x80\x80\x80\x80", "key", "KEY=", "token: ", "\n", "\r\n", "=", "'", "\"", "api_key = ", "é", "\x00"}
	rounds, dense := 150, 1
	if racetest.Part() {
		rounds, dense = 5, 10
	}
	for range rounds {
		var text strings.Builder
		for range 3 + rnd.IntN(30) {
			if rnd.IntN(3) == 0 {
				if from := library.Config.Rules[ids[rnd.IntN(len(ids))]]; from.Regex != nil {
					re, _ := syntax.Parse(from.Regex.String(), syntax.Perl)
					text.WriteString(sample(re, rnd))
				}
			}
			text.WriteString(pieces[rnd.IntN(len(pieces))])
		}
		compare(t, "", text.String())
	}
	compare(t, "", strings.Repeat("key", 30_000/dense))
	compare(t, "", strings.Repeat(`api_key = "`+random(rnd, alnum, 30)+"\"\n", 300/dense))
	compare(t, "", "")
}

func FuzzTheSieveFindsWhatTheLibraryFinds(f *testing.F) {
	rnd := rand.New(rand.NewPCG(3, 3))
	for _, texts := range known(rnd) {
		for _, text := range texts {
			f.Add("token = '" + text + "'\n")
		}
	}
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) < 4000 {
			compare(t, "", text)
		}
	})
}

// ours and the library's speed on the same texts, in turn.
func BenchmarkScan(b *testing.B) {
	s, library := scanners()
	rnd := rand.New(rand.NewPCG(5, 5))
	var source []string
	size := 0
	for _, file := range sources(b, goSources(b), 25) {
		text, err := os.ReadFile(file)
		if err != nil {
			b.Fatal(err)
		}
		source = append(source, string(text))
		size += len(text)
	}
	var dense strings.Builder
	for dense.Len() < 200_000 {
		for _, kind := range slices.Sorted(maps.Keys(known(rnd))) {
			dense.WriteString("api_key = \"" + known(rnd)[kind][0] + "\"\n")
		}
	}
	words := strings.Repeat("key token secret password auth access api ", 5000)
	for _, c := range []struct {
		name  string
		texts []string
	}{{"source", source}, {"secrets", []string{dense.String()}}, {"words", []string{words}}} {
		bytes := 0
		for _, text := range c.texts {
			bytes += len(text)
		}
		b.Run(c.name+"/ours", func(b *testing.B) {
			b.SetBytes(int64(bytes))
			for b.Loop() {
				for _, text := range c.texts {
					if _, err := s.inspect(context.Background(), "a/b.go", text); err != nil {
						b.Fatal(err)
					}
				}
			}
		})
		b.Run(c.name+"/gitleaks", func(b *testing.B) {
			b.SetBytes(int64(bytes))
			for b.Loop() {
				for _, text := range c.texts {
					library.Detect(detect.Fragment{Raw: text, FilePath: "a/b.go"})
				}
			}
		})
	}
}
