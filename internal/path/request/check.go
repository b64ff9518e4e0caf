package request

import (
	"strings"
	"unicode/utf8"

	"sallyport/internal/base/problem"
	"sallyport/internal/port/agent"
	"sallyport/internal/rule/policy"
	"sallyport/internal/rule/trust"
)

const help = "sallyport run --help"

// Check refuses what cannot be accepted, as usage errors that name the field.
func (r Request) Check() error {
	switch {
	case strings.TrimSpace(r.Text) == "":
		return problem.Errorf(problem.Usage, help, "say what you want done: --request \"…\"")
	case len(r.Text) > TextBytesMax:
		return problem.Errorf(problem.Usage, help, "--request has %d bytes; at most %d are allowed", len(r.Text), TextBytesMax)
	case !utf8.ValidString(r.Text):
		return problem.Errorf(problem.Usage, help, "--request is not valid UTF-8")
	case len(r.Message) > MessageBytesMax || !utf8.ValidString(r.Message):
		return problem.Errorf(problem.Usage, help, "--message is no text of at most %d bytes", MessageBytesMax)
	case r.Message != "" && strings.TrimSpace(r.Message) == "":
		return problem.Errorf(problem.Usage, help, "--message needs words; without it the commit says what --request says")
	case len(r.Script) > ScriptBytesMax:
		return problem.Errorf(problem.Usage, help, "the --replay script has %d bytes; at most %d are allowed", len(r.Script), ScriptBytesMax)
	case len(r.Argv) == 0 && len(r.Script) == 0 && r.Agent != "" && !agent.Named(r.Agent):
		return problem.Errorf(problem.Usage, help, "there is nothing to run: give a COMMAND after --")
	case named(r.Agent) && len(r.Argv)+len(r.Script) > 0:
		return problem.Errorf(problem.Usage, help, "--agent %q does the work: leave out the COMMAND or --replay, or leave out --agent", r.Agent)
	case r.Model != "" && !agent.Named(r.Agent) && r.Agent != "":
		return problem.Errorf(problem.Usage, help, "--model %q is for a named agent: a COMMAND has flags of its own", r.Model)
	case r.Timeout < 0 || r.Timeout > TimeoutMax:
		return problem.Errorf(problem.Usage, help, "--timeout %s is not between 0 and %s", r.Timeout, TimeoutMax)
	case r.Trial != nil && *r.Trial != 0 && (*r.Trial < trust.TrialMin || *r.Trial > trust.TrialMax):
		return problem.Errorf(problem.Usage, help, "--trial %s is neither 0 nor between %s and %s", *r.Trial, trust.TrialMin, trust.TrialMax)
	case r.Approve != Ask && r.Approve != Yes && r.Approve != Later:
		return problem.Errorf(problem.Usage, help, "--approve takes ask, yes or later, not %q", r.Approve)
	}
	for _, list := range []struct {
		flag  string
		words []string
	}{{"--allow", r.Allow}, {"--forbid", r.Forbid}, {"--check", r.Checks}, {"--setup", r.Setup}, {"--share", r.Shares},
		{"--profile", r.Profiles}, {"--egress", r.Egress}, {"--include-ignored", r.IncludeIgnored}} {
		if len(list.words) > ListMax {
			return problem.Errorf(problem.Usage, help, "%s is given %d times; at most %d are allowed", list.flag, len(list.words), ListMax)
		}
		for _, w := range list.words {
			if strings.TrimSpace(w) == "" || strings.ContainsRune(w, 0) {
				return problem.Errorf(problem.Usage, help, "%s %q is empty or holds a zero byte", list.flag, w)
			}
		}
	}
	for _, globs := range []struct {
		flag string
		list []string
	}{{"--allow", r.Allow}, {"--forbid", r.Forbid}, {"--include-ignored", r.IncludeIgnored}} {
		for _, g := range globs.list {
			if err := policy.CheckGlob(g); err != nil {
				return problem.Errorf(problem.Usage, help, "%s %q: %w", globs.flag, g, err)
			}
		}
	}
	for _, w := range r.Argv {
		if strings.ContainsRune(w, 0) {
			return problem.Errorf(problem.Usage, help, "COMMAND holds a zero byte")
		}
	}
	return nil
}

// named reports whether there is an agent of that name.
func named(name string) bool {
	_, err := agent.Lookup(name)
	return err == nil
}
