package secret

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/zricethezav/gitleaks/v8/config"
	"github.com/zricethezav/gitleaks/v8/detect"
	"github.com/zricethezav/gitleaks/v8/report"
)

// detector finds what the library finds by a single rule. It is safe for several at once.
type detector struct {
	library *detect.Detector
	rule    string              // its name; the library knows it by nameless
	lines   []*config.Allowlist // of whole lines: the library would look at each line anew for each secret that stands in it
}

// nameless is what the library knows a rule by that stands alone. Each finding of one that has "generic" in its name it would compare with all
// others, in search of one by another rule.
const nameless = "rule"

// newDetector makes one that knows a rule, and those that it requires, and searches whatever it is given: the sieve has seen to the keywords.
// What excuses a finding inline is ours to judge.
func newDetector(cfg config.Config, rule config.Rule) *detector {
	d := &detector{rule: rule.RuleID}
	lists := cfg.Allowlists
	if len(rule.RequiredRules) == 0 { // what another rule requires, the library judges by itself
		d.lines = slices.DeleteFunc(slices.Concat(lists, rule.Allowlists), func(a *config.Allowlist) bool { return !ofLines(a) })
		lists = slices.DeleteFunc(slices.Clone(lists), ofLines)
		rule.Allowlists = slices.DeleteFunc(slices.Clone(rule.Allowlists), ofLines)
		rule.RuleID = nameless
	}
	one := config.Config{Title: cfg.Title, Rules: map[string]config.Rule{}, Allowlists: lists}
	for _, required := range rule.RequiredRules {
		r := cfg.Rules[required.RuleID]
		r.SkipReport = true
		one.Rules[r.RuleID] = r
	}
	rule.Keywords = nil
	one.Rules[rule.RuleID] = rule
	d.library = detect.NewDetector(one)
	d.library.IgnoreGitleaksAllow = true
	return d
}

// ofLines reports whether a list allows a finding by nothing but its line, beside its path or words of it. The library looks at other ones
// for a file or a commit as well.
func ofLines(a *config.Allowlist) bool {
	return a.RegexTarget == "line" && len(a.Regexes) > 0 && len(a.Commits) == 0 && (len(a.Paths) == 0 || a.MatchCondition == config.AllowlistMatchAnd)
}

// errCrowded says that a text cannot be scanned: the library would take longer for it than a scan may, and hear of no time-out.
var errCrowded = errors.New("too much of it looks like a secret")

// stepsMax is how many line ends, and bytes of a last line, the library may look at to tell where in a text its matches are: about ten seconds.
const stepsMax = 10_000_000_000

// crowds reports whether that would be more. The library looks at every line end of the text for each match, and for one in a last line
// that has none at the rest of it.
func (r *rule) crowds(text string) bool {
	const least = 4 // bytes of a match
	ends, last := strings.Count(text, "\n"), text[strings.LastIndexByte(text, '\n')+1:]
	more := func(text string, each int) bool {
		most := stepsMax / (each + 1)
		return len(text)/least > most && len(r.find().FindAllStringIndex(text, most+1)) > most
	}
	return r.find != nil && (more(text, ends) || more(last, ends+len(last)))
}

// find returns what the library finds in a text.
func (d *detector) find(ctx context.Context, path, text string) []report.Finding {
	all := d.library.DetectContext(ctx, detect.Fragment{Raw: text, FilePath: path})
	for _, a := range d.lines {
		line, matches := "", false
		all = slices.DeleteFunc(all, func(f report.Finding) bool {
			if f.Line != line { // one line after the other: it is looked at once
				line, matches = f.Line, a.RegexAllowed(f.Line)
			}
			word, _ := a.ContainsStopWord(f.Secret)
			if a.MatchCondition == config.AllowlistMatchAnd {
				return matches && (word || len(a.StopWords) == 0) && (len(a.Paths) == 0 || a.PathAllowed(path))
			}
			return matches || word
		})
	}
	for i := range all {
		all[i].RuleID = d.rule
	}
	return all
}
