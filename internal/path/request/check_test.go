package request_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"sallyport/internal/base/audit"
	"sallyport/internal/base/problem"
	"sallyport/internal/path/request"
	"sallyport/internal/rule/trust"
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

func TestEachWordOfARequestHasItsBound(t *testing.T) {
	trial := func(d time.Duration) func(*request.Request) { return func(r *request.Request) { r.Trial = &d } }
	for name, test := range map[string]struct {
		change func(*request.Request)
		want   string // in the refusal; "" = it is taken
	}{
		"no words":                   {func(r *request.Request) { r.Text = " \n" }, "say what you want done"},
		"as many words as fit":       {func(r *request.Request) { r.Text = strings.Repeat("x", request.TextBytesMax) }, ""},
		"one more":                   {func(r *request.Request) { r.Text = strings.Repeat("x", request.TextBytesMax+1) }, "--request has 65537 bytes"},
		"words that are no text":     {func(r *request.Request) { r.Text = "\xff" }, "not valid UTF-8"},
		"a message that fits":        {func(r *request.Request) { r.Message = strings.Repeat("x", request.MessageBytesMax) }, ""},
		"one byte more":              {func(r *request.Request) { r.Message = strings.Repeat("x", request.MessageBytesMax+1) }, "--message is no text"},
		"a message that is no text":  {func(r *request.Request) { r.Message = "\xff" }, "--message is no text"},
		"a message without words":    {func(r *request.Request) { r.Message = " " }, "--message needs words"},
		"a script that fits":         {func(r *request.Request) { r.Agent, r.Script = "replay", make([]byte, request.ScriptBytesMax) }, ""},
		"a script that does not":     {func(r *request.Request) { r.Agent, r.Script = "replay", make([]byte, request.ScriptBytesMax+1) }, "script has 1048577 bytes"},
		"the longest time":           {func(r *request.Request) { r.Timeout = request.TimeoutMax }, ""},
		"a longer one":               {func(r *request.Request) { r.Timeout = request.TimeoutMax + 1 }, "--timeout"},
		"less than no time":          {func(r *request.Request) { r.Timeout = -1 }, "--timeout"},
		"no trial":                   {trial(0), ""},
		"the shortest trial":         {trial(trust.TrialMin), ""},
		"a shorter one":              {trial(trust.TrialMin - 1), "--trial"},
		"the longest trial":          {trial(trust.TrialMax), ""},
		"a longer trial":             {trial(trust.TrialMax + 1), "--trial"},
		"a yes at once":              {func(r *request.Request) { r.Approve = request.Yes }, ""},
		"a question":                 {func(r *request.Request) { r.Approve = request.Ask }, ""},
		"neither a yes nor none":     {func(r *request.Request) { r.Approve = "" }, "--approve takes"},
		"a list that is full":        {func(r *request.Request) { r.Checks = slices.Repeat([]string{"true"}, request.ListMax) }, ""},
		"a glob that is none":        {func(r *request.Request) { r.Allow = []string{"["} }, `--allow "["`},
		"one that forbids":           {func(r *request.Request) { r.Forbid = []string{"["} }, `--forbid "["`},
		"a zero byte in a word":      {func(r *request.Request) { r.Setup = []string{"a\x00b"} }, "--setup"},
		"a zero byte in the command": {func(r *request.Request) { r.Argv = []string{"a", "b\x00"} }, "COMMAND holds a zero byte"},
	} {
		r := request.Request{Text: "x", Approve: request.Later}
		test.change(&r)
		err := r.Check()
		if test.want == "" && err != nil || test.want != "" && (problem.KindOf(err) != problem.Usage || !strings.Contains(err.Error(), test.want)) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestTheFirstLineOfARequestIsShort(t *testing.T) {
	for text, want := range map[string]string{
		" \n a\nb": "a", strings.Repeat("ä", 72): strings.Repeat("ä", 72), strings.Repeat("ä", 73): strings.Repeat("ä", 71) + "…",
	} {
		if got := request.FirstLine(text); got != want {
			t.Errorf("%q: %q", text, got)
		}
	}
}

// A person's git configuration names programs, and those run as the repository's owner.
func TestOnlyTheOwnersConfigurationCounts(t *testing.T) {
	r := request.Request{Home: "/home/alice", By: audit.Actor{UID: 1000}}
	if r.Project.UID = 1000; r.ConfigHome() != "/home/alice" {
		t.Errorf("the owner's is %q", r.ConfigHome())
	}
	if r.Project.UID = 1001; r.ConfigHome() != "" {
		t.Errorf("another's is %q", r.ConfigHome())
	}
}
