package secret

import (
	"slices"
	"sync"

	"github.com/zricethezav/gitleaks/v8/config"
)

// source is where a sieve has the library's rules from.
type source struct {
	cfg   config.Config                           // all of them; an outline of them tells no expression
	texts map[string]string                       // each rule's expression, if cfg is an outline
	exact func(rule string) config.Config         // a rule as it is, those that it requires, and what is allowed everywhere
	allow func() (everywhere []*config.Allowlist) // for all rules
}

// loaded is the source of rules that were compiled already.
func loaded(cfg config.Config) source {
	return source{cfg: cfg,
		exact: func(string) config.Config { return cfg },
		allow: func() []*config.Allowlist { return cfg.Allowlists },
	}
}

func (s source) expression(rule config.Rule) string {
	if text, ok := s.texts[rule.RuleID]; ok {
		return text
	}
	return rule.Regex.String()
}

// builtIn is the sieve of the library's rules as they are, and ours. It is made once, for all scanners. Compiling all expressions takes most
// of the time until a daemon answers, and hardly a text is looked at by any of them: each is compiled when it is first used.
var builtIn = sync.OnceValues(func() (*sieve, error) {
	quiet()
	from, err := library()
	if err != nil {
		return nil, err
	}
	return newSieve(from), nil
})

// library is the source of the library's rules as they are.
func library() (source, error) {
	rules, err := parse([]byte(config.DefaultConfig))
	if err != nil {
		return source{}, err
	}
	s := source{texts: map[string]string{}}
	for _, r := range rules.Rules {
		if r.Regex != "" {
			s.texts[r.ID] = r.Regex
		}
	}
	if s.cfg, err = outline(rules).Translate(); err != nil {
		return source{}, err
	}
	everywhere := sync.OnceValue(func() config.Config { return must(only(rules, nil)) })
	s.allow = func() []*config.Allowlist { return everywhere().Allowlists }
	var one sync.Mutex // the library writes to what it translates
	s.exact = func(rule string) config.Config {
		wanted := map[string]bool{rule: true}
		for _, required := range s.cfg.Rules[rule].RequiredRules {
			wanted[required.RuleID] = true
		}
		allow := s.allow()
		one.Lock()
		defer one.Unlock()
		cfg := must(only(rules, wanted))
		cfg.Allowlists = allow
		return cfg
	}
	return s, nil
}

// must is of the built-in rules, each of which a test uses.
func must(of *config.ViperConfig) config.Config {
	cfg, err := of.Translate()
	if err != nil {
		panic("the built-in rules cannot be used: " + err.Error())
	}
	return cfg
}

// nothing is an expression that takes no time to compile, for one that is compiled later.
const nothing = "x"

// outline is rules without their expressions, but for those of paths, and otherwise the same.
func outline(rules *config.ViperConfig) *config.ViperConfig {
	out := *rules
	out.Rules = slices.Clone(rules.Rules)
	for i := range out.Rules {
		r := &out.Rules[i]
		if r.SecretGroup = 0; r.Regex != "" {
			r.Regex = nothing
		}
		r.Keywords = slices.Clone(r.Keywords)
		if r.AllowList != nil {
			list := *r.AllowList
			hollow(&list.Regexes, &list.Paths, &list.StopWords)
			r.AllowList = &list
		}
		r.Allowlists = slices.Clone(r.Allowlists)
		for n, of := range r.Allowlists {
			list := *of
			hollow(&list.Regexes, &list.Paths, &list.StopWords)
			r.Allowlists[n] = &list
		}
	}
	if out.AllowList != nil {
		list := *out.AllowList
		hollow(&list.Regexes, &list.Paths, &list.StopWords)
		out.AllowList = &list
	}
	out.Allowlists = slices.Clone(rules.Allowlists)
	for n, of := range out.Allowlists {
		list := *of
		hollow(&list.Regexes, &list.Paths, &list.StopWords)
		out.Allowlists[n] = &list
	}
	return &out
}

// hollow leaves one word or expression for any number of them: whether there are any is all that an outline tells.
func hollow(lists ...*[]string) {
	for _, list := range lists {
		if len(*list) > 0 {
			*list = []string{nothing}
		}
	}
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
