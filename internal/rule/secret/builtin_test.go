package secret

import (
	"maps"
	"regexp"
	"slices"
	"testing"

	"github.com/zricethezav/gitleaks/v8/config"
)

// TestTheBuiltInRulesAreThoseOfTheLibraryWheneverTheyAreCompiled compares what is made when it is used with what is made all at once.
func TestTheBuiltInRulesAreThoseOfTheLibraryWheneverTheyAreCompiled(t *testing.T) {
	rules, err := parse([]byte(config.DefaultConfig))
	if err != nil {
		t.Fatal(err)
	}
	cfg, err := rules.Translate()
	if err != nil {
		t.Fatal(err)
	}
	want := newSieve(loaded(cfg))
	got, err := builtIn()
	if err != nil {
		t.Fatal(err)
	}
	if len(got.rules) != len(want.rules) || len(cfg.Rules) < 200 {
		t.Fatalf("%d rules, not %d, of the library's %d", len(got.rules), len(want.rules), len(cfg.Rules))
	}
	same := func(what string, is, wanted []*config.Allowlist) {
		t.Helper()
		if !slices.EqualFunc(is, wanted, func(a, b *config.Allowlist) bool {
			return a.MatchCondition == b.MatchCondition && a.RegexTarget == b.RegexTarget && len(a.StopWords) == len(b.StopWords) &&
				slices.EqualFunc(a.Regexes, b.Regexes, sameText) && slices.EqualFunc(a.Paths, b.Paths, sameText)
		}) {
			t.Errorf("%s is excused by %+v, not %+v", what, is, wanted)
		}
	}
	same("everything", got.allow(), cfg.Allowlists)
	from, err := library()
	if err != nil {
		t.Fatal(err)
	}
	for i, w := range want.rules {
		g := got.rules[i]
		if g.id != w.id || g.severity != w.severity || g.keywords != w.keywords || g.runs != w.runs || g.whole != w.whole || g.lines != w.lines || g.pathOnly != w.pathOnly || g.pathed != w.pathed ||
			!slices.EqualFunc(g.anchors, w.anchors, func(a, b anchor) bool { return slices.Equal(a.words, b.words) }) || (g.path == nil) != (w.path == nil) || g.path != nil && !sameText(g.path, w.path) {
			t.Errorf("%s is %+v, not %+v", w.id, g, w)
		}
		for n, a := range g.anchors {
			if a.check() == nil || !sameText(a.check(), w.anchors[n].check()) {
				t.Errorf("anchor %d of %s looks for %s, not %s", n, w.id, a.check(), w.anchors[n].check())
			}
		}
		if (g.find == nil) != (w.find == nil) || g.find != nil && !sameText(g.find(), w.find()) {
			t.Errorf("%s has another expression", w.id)
		}
		if w.own != nil {
			continue
		}
		exact := from.exact(w.id)
		is, wanted := exact.Rules[w.id], cfg.Rules[w.id]
		if is.SecretGroup != wanted.SecretGroup || is.Entropy != wanted.Entropy || !slices.Equal(slices.Sorted(slices.Values(is.Keywords)), slices.Sorted(slices.Values(wanted.Keywords))) {
			t.Errorf("%s is compiled as %+v, not %+v", w.id, is, wanted)
		}
		same(w.id, is.Allowlists, wanted.Allowlists)
		same("all beside "+w.id, exact.Allowlists, cfg.Allowlists)
		for _, r := range wanted.RequiredRules {
			if _, has := exact.Rules[r.RuleID]; !has {
				t.Errorf("%s requires %s, and has %q", w.id, r.RuleID, slices.Collect(maps.Keys(exact.Rules)))
			}
		}
	}
}

func sameText(a, b *regexp.Regexp) bool { return a.String() == b.String() }
