package secret

import (
	"fmt"
	"regexp/syntax"
	"slices"
	"strings"
	"sync"

	"github.com/rs/zerolog"
	"github.com/spf13/viper"
	"github.com/zricethezav/gitleaks/v8/config"
	"github.com/zricethezav/gitleaks/v8/logging"

	"sallyport/internal/base/problem"
)

// Limits of a base's `.gitleaks.toml`.
const (
	tomlBytesMax       = 512 << 10
	tomlRulesMax       = 1000
	expressionBytesMax = 1000 // of a rule that is not one of the library's own
	expressionsMax     = 5000 // of rules and allowlists together
	// compiledMax bounds what all expressions come to when they are compiled, in instructions: a few bytes, as `\pL{1000}`, become
	// very many. One takes some tens of bytes.
	compiledMax = 300_000
)

// quiet silences the library's log, which would hold secrets at its finest level.
var quiet = sync.OnceFunc(func() { logging.Logger = zerolog.Nop() })

// loadRules returns the library's rules as the base's `.gitleaks.toml` shapes them. The default rules always stay, but
// for those that a trusted file disables by name: a file that only adds a rule must not take all others away. What would loosen
// them is left out unless it is trusted; loose says whether there was any.
func loadRules(toml []byte, trusted bool) (cfg config.Config, loose bool, err error) {
	quiet()
	defer func() { // the library panics on an expression that does not compile
		if p := recover(); p != nil {
			err = badToml("a regular expression in it does not compile")
		}
	}()
	defaults, err := parseDefault()
	if err != nil {
		return cfg, false, fmt.Errorf("read the default rules: %w", err)
	}
	if len(toml) > tomlBytesMax {
		return cfg, false, badToml("it is larger than %d bytes", tomlBytesMax)
	}
	own, err := parse(toml)
	if err != nil {
		return cfg, false, badToml("it is not TOML that gitleaks can read")
	}
	if own.Extend.Path != "" || own.Extend.URL != "" {
		return cfg, false, badToml("it extends another file, which sallyport does not read; only useDefault works")
	}
	if len(own.Rules) > tomlRulesMax {
		return cfg, false, badToml("it has more than %d rules", tomlRulesMax)
	}
	if err := checkExpressions(own, defaults); err != nil {
		return cfg, false, err
	}
	if !trusted {
		loose = tighten(own, defaults)
	}
	extend(own, defaults)
	cfg, err = own.Translate()
	if err != nil {
		return cfg, loose, badToml("%s", err)
	}
	return cfg, loose, nil
}

// tighten takes out of a file what would loosen the default rules, and says whether there was any. A rule that has the name of a
// default one becomes one more beside it.
func tighten(own, defaults *config.ViperConfig) (loose bool) {
	loose = len(own.Extend.DisabledRules)+len(own.Allowlists) > 0 || own.AllowList != nil
	own.Extend.DisabledRules, own.Allowlists, own.AllowList = nil, nil, nil
	known := map[string]bool{}
	for _, r := range defaults.Rules {
		known[r.ID] = true
	}
	kept := own.Rules[:0]
	for _, r := range own.Rules {
		if len(r.Required) > 0 { // it would find less, and compare all that the rules find with each other
			loose, r.Required = true, nil
		}
		if known[r.ID] {
			loose = true
			if r.Regex == "" && r.Path == "" {
				continue
			}
			r.ID += "-of-the-repository"
		}
		kept = append(kept, r)
	}
	own.Rules = kept
	return loose
}

func badToml(format string, args ...any) error {
	return problem.Errorf(problem.Refused, "sallyport secret scan", ".gitleaks.toml at the base cannot be used: "+format, args...)
}

// parse never uses the library's global reader: two scanners may be made at once.
func parse(toml []byte, as ...viper.DecoderConfigOption) (*config.ViperConfig, error) {
	v := viper.New()
	v.SetConfigType("toml")
	if err := v.ReadConfig(strings.NewReader(string(toml))); err != nil {
		return nil, err
	}
	vc := &config.ViperConfig{}
	if err := v.Unmarshal(vc, as...); err != nil {
		return nil, err
	}
	return vc, nil
}

// parseDefault is parse of the library's own rules, in which no value is written as one of another type: to look for such ones would be two
// thirds of its time.
func parseDefault() (*config.ViperConfig, error) {
	return parse([]byte(config.DefaultConfig), viper.DecodeHook(nil))
}

// checkExpressions bounds what a repository may have us run (the library's own are as long as they are).
func checkExpressions(own, defaults *config.ViperConfig) error {
	known := map[string]bool{}
	for _, r := range defaults.Rules {
		known[r.Regex] = true
	}
	count, compiled := 0, 0
	check := func(where string, expressions ...string) error {
		for _, e := range expressions {
			if len(e) > expressionBytesMax && !known[e] {
				return badToml("an expression of %q is longer than %d characters", where, expressionBytesMax)
			}
			if e == "" || known[e] {
				continue
			}
			n, err := instructions(e)
			if err != nil {
				return badToml("an expression of %q does not compile", where)
			}
			count, compiled = count+1, compiled+n
			if count > expressionsMax || compiled > compiledMax {
				return badToml("its expressions take too much memory: %d and what %d instructions take are the limits, reached in %q",
					expressionsMax, compiledMax, where)
			}
		}
		return nil
	}
	for _, r := range own.Rules {
		if err := check(r.ID, r.Regex, r.Path); err != nil {
			return err
		}
		lists := r.Allowlists
		if r.AllowList != nil { // the older spelling
			lists = append(slices.Clip(lists), r.AllowList)
		}
		for _, a := range lists {
			if err := check(r.ID, slices.Concat(a.Regexes, a.Paths)...); err != nil {
				return err
			}
		}
	}
	lists := own.Allowlists
	if own.AllowList != nil {
		lists = append(slices.Clip(lists), own.AllowList)
	}
	for _, a := range lists {
		if err := check("allowlists", slices.Concat(a.Regexes, a.Paths)...); err != nil {
			return err
		}
	}
	return nil
}

// instructions is how large an expression is when it is compiled.
func instructions(expression string) (int, error) {
	re, err := syntax.Parse(expression, syntax.Perl)
	if err != nil {
		return 0, err
	}
	program, err := syntax.Compile(re.Simplify())
	if err != nil {
		return 0, err
	}
	return len(program.Inst), nil
}

// extend puts the default rules below the base's own, as the library does for useDefault. The library's
// own way counts in a global how often it was used and stops after two.
func extend(own, defaults *config.ViperConfig) {
	at := map[string]int{}
	for i := range own.Rules {
		r := &own.Rules[i]
		if r.AllowList != nil {
			r.Allowlists, r.AllowList = append(r.Allowlists, r.AllowList), nil
		}
		at[r.ID] = i
	}
	for _, base := range defaults.Rules {
		if slices.Contains(own.Extend.DisabledRules, base.ID) {
			continue
		}
		if base.AllowList != nil {
			base.Allowlists, base.AllowList = append(base.Allowlists, base.AllowList), nil
		}
		i, both := at[base.ID]
		if !both {
			own.Rules = append(own.Rules, base)
			continue
		}
		r := &own.Rules[i]
		if r.Description == "" {
			r.Description = base.Description
		}
		if r.Entropy == 0 {
			r.Entropy = base.Entropy
		}
		if r.SecretGroup == 0 {
			r.SecretGroup = base.SecretGroup
		}
		if r.Regex == "" {
			r.Regex = base.Regex
		}
		if r.Path == "" {
			r.Path = base.Path
		}
		r.Tags = slices.Concat(base.Tags, r.Tags)
		r.Keywords = slices.Concat(base.Keywords, r.Keywords)
		r.Allowlists = slices.Concat(base.Allowlists, r.Allowlists)
		if len(r.Required) == 0 {
			r.Required = base.Required
		}
	}
	for _, vc := range []*config.ViperConfig{own, defaults} {
		if vc.AllowList != nil {
			vc.Allowlists, vc.AllowList = append(vc.Allowlists, vc.AllowList), nil
		}
	}
	own.Allowlists = append(own.Allowlists, defaults.Allowlists...)
	own.Extend = config.Extend{}
}
