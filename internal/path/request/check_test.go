package request_test

import (
	"strings"
	"testing"

	"sallyport/internal/base/problem"
	"sallyport/internal/path/request"
)

func TestWhoDoesItIsOneOfThem(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*request.Request)
		want   string // in the refusal; "" = it is taken
	}{
		"a command":                   {func(r *request.Request) { r.Agent, r.Argv = "command", []string{"true"} }, ""},
		"a script":                    {func(r *request.Request) { r.Agent, r.Script = "replay", []byte("x") }, ""},
		"an agent by name":            {func(r *request.Request) { r.Agent, r.Model, r.Egress = "codex", "gpt-5", []string{"registries"} }, ""},
		"any other agent":             {func(r *request.Request) { r.Agent = "acp:x --y" }, ""},
		"the repository's":            {func(r *request.Request) { r.Model = "gpt-5" }, ""},
		"a command without one":       {func(r *request.Request) { r.Agent = "command" }, "give a COMMAND after --"},
		"an agent and a command":      {func(r *request.Request) { r.Agent, r.Argv = "pi", []string{"true"} }, `--agent "pi" does the work`},
		"an agent and a script":       {func(r *request.Request) { r.Agent, r.Script = "acp:x", []byte("x") }, `--agent "acp:x" does the work`},
		"a command that has a model":  {func(r *request.Request) { r.Agent, r.Argv, r.Model = "command", []string{"true"}, "m" }, `--model "m" is for a named agent`},
		"an empty host":               {func(r *request.Request) { r.Agent, r.Egress = "pi", []string{" "} }, `--egress " " is empty`},
		"more hosts than may be said": {func(r *request.Request) { r.Agent, r.Egress = "pi", make([]string, request.ListMax+1) }, "--egress is given 257 times"},
	} {
		r := request.Request{Text: "x", Approve: request.Later}
		test.change(&r)
		err := r.Check()
		if test.want == "" && err != nil || test.want != "" && (problem.KindOf(err) != problem.Usage || !strings.Contains(err.Error(), test.want)) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
