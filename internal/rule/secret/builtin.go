package secret

import (
	"slices"
	"sync"

	"github.com/zricethezav/gitleaks/v8/config"

	"sallyport/internal/base/pattern"
)

// entry is what a sieve has to know of a built-in rule before a text is looked at by it, which hardly any text is. To read the library's
// file and all expressions for that would take most of the time until a daemon answers.
type entry struct {
	id                             string
	from, to                       int        // its expression within the library's file; of ours, and of a rule of paths alone: 0
	words                          [][]string // of each of its anchors
	keywords                       []string
	path                           string
	whole, lines, pathOnly, pathed bool
}

// builtIn is the sieve of the library's rules as they are, and ours. It is made once, for all scanners.
var builtIn = sync.OnceValue(func() *sieve {
	quiet()
	rules := slices.Clone(ours())
	for _, e := range tabled[len(ownRules):] {
		r := ofLibrary(e.id, sync.OnceValue(func() config.Config { return library().exact(e.id) }))
		r.words, r.keywords, r.whole, r.lines, r.pathOnly, r.pathed = e.words, e.keywords, e.whole, e.lines, e.pathOnly, e.pathed
		if e.path != "" {
			r.path = pattern.Of(e.path)()
		}
		if e.pathOnly {
			r.find = nil
		}
		r.anchors = sync.OnceValues(func() ([]anchor, int) { return anchors(config.DefaultConfig[e.from:e.to]) })
		rules = append(rules, r)
	}
	return newSieve(rules, func() []*config.Allowlist { return library().allow() })
})

// libraries are the library's rules, read and not compiled.
type libraries struct {
	rules *config.ViperConfig
	allow func() []*config.Allowlist // for all rules
	one   sync.Mutex                 // the library writes to what it translates
}

var library = sync.OnceValue(func() *libraries {
	rules, err := parseDefault()
	if err != nil {
		panic("the built-in rules cannot be used: " + err.Error())
	}
	return &libraries{rules: rules, allow: sync.OnceValue(func() []*config.Allowlist { return must(only(rules, nil)).Allowlists })}
})

// exact is a rule as it is, those that it requires, and what is allowed everywhere.
func (l *libraries) exact(rule string) config.Config {
	wanted := map[string]bool{rule: true}
	for _, r := range l.rules.Rules {
		for _, required := range r.Required {
			if r.ID == rule {
				wanted[required.ID] = true
			}
		}
	}
	allow := l.allow()
	l.one.Lock()
	defer l.one.Unlock()
	cfg := must(only(l.rules, wanted))
	cfg.Allowlists = allow
	return cfg
}

// must is of the built-in rules, each of which a test uses.
func must(of *config.ViperConfig) config.Config {
	cfg, err := of.Translate()
	if err != nil {
		panic("the built-in rules cannot be used: " + err.Error())
	}
	return cfg
}

// only is some of the rules, with what is allowed in them; nil: what is allowed in all rules, and no rule.
func only(rules *config.ViperConfig, wanted map[string]bool) *config.ViperConfig {
	out := *rules
	out.Rules, out.Allowlists = nil, nil
	for _, r := range rules.Rules {
		if wanted[r.ID] {
			r.Keywords, r.Allowlists = slices.Clone(r.Keywords), slices.Clip(r.Allowlists)
			out.Rules = append(out.Rules, r)
		}
	}
	for _, of := range rules.Allowlists {
		list := *of
		list.TargetRules = slices.DeleteFunc(slices.Clone(of.TargetRules), func(rule string) bool { return !wanted[rule] })
		if everywhere := len(of.TargetRules) == 0; everywhere && wanted == nil || len(list.TargetRules) > 0 {
			out.Allowlists = append(out.Allowlists, &list)
		}
	}
	if wanted != nil {
		out.AllowList = nil
	}
	return &out
}
