package secret

import (
	"regexp/syntax"
	"testing"

	"github.com/zricethezav/gitleaks/v8/config"

	"sallyport/internal/base/race/racetest"
)

// What is written has to run as what was read: the standard library's own way to write an expression is the oracle.
func TestAnExpressionIsWrittenAsTheStandardLibraryMeansIt(t *testing.T) {
	all := []string{
		`a`, `(?i)stra\x{df}e`, `a|b|`, `(a|(?i:b))+?c{2,3}?d{0,}`, `[^\s@/"']{1,256}`, `(?s).(?-s).`, `(?m)^a$`, `^\Aa\b\B$`, `a\z`, `(?U)a+b*?`,
		`[^\x00-\x{10FFFF}]`, `()`, `\Q.*+?()|[]{}^$\E`, "\n\t\x00é\U0001F600", `(?P<name>x)`, `(ab)?`, `[a-zA-Z_]`, `(?i)[k]`, `a{3}`, `(?:ab|cd){2,}`,
	}
	for _, o := range ownRules {
		all = append(all, o.expression)
	}
	for _, r := range defaultRules(t) {
		if r.Regex != nil {
			all = append(all, r.Regex.String())
		}
	}
	if len(all) < 200 {
		t.Fatalf("only %d expressions", len(all))
	}
	for i, expression := range all {
		if racetest.Part() && i%10 != 0 {
			continue
		}
		re, err := syntax.Parse(expression, syntax.Perl)
		if err != nil {
			t.Fatal(err)
		}
		want, got := programOf(t, re.String()), programOf(t, expressionOf(re))
		if got != want {
			t.Errorf("%q is written as %q", expression, expressionOf(re))
		}
	}
}

// programOf is what an expression is compiled to.
func programOf(t *testing.T, expression string) string {
	t.Helper()
	re, err := syntax.Parse(expression, syntax.Perl)
	if err != nil {
		t.Fatalf("%q: %v", expression, err)
	}
	p, err := syntax.Compile(re.Simplify())
	if err != nil {
		t.Fatalf("%q: %v", expression, err)
	}
	return p.String()
}

// defaultRules are the library's.
func defaultRules(t *testing.T) map[string]config.Rule {
	t.Helper()
	_, d := scanners()
	return d.Config.Rules
}
