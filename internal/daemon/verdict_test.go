package daemon

import (
	"io"
	"log"
	"path/filepath"
	"strings"
	"testing"

	"sallyport/internal/door/api"
	"sallyport/internal/port/agent"
	"sallyport/internal/port/egress"
	"sallyport/internal/port/sandbox"
	"sallyport/internal/rule/secret"
)

func TestWhatIsWrongWithAnAgentIsToldFromWhatItSaidAndWhatItAsked(t *testing.T) {
	failed := func(why string) *agent.TurnEnd { return &agent.TurnEnd{Outcome: agent.TurnFailed, Reason: why} }
	model := egress.Decision{Route: "model", Verdict: egress.Allowed}
	const planted = "ghp_" + "9fK2mQx7LbR4vTz1WcN8sYd3HjP6gUe5AoXi"
	long := strings.Repeat("a ", lineBytesMax/2-10) + planted // its middle stands where the line ends
	for name, test := range map[string]struct {
		exit sandbox.Exit
		end  *agent.TurnEnd
		last string
		net  []egress.Decision
		want string // problem
		text string
	}{
		"it works":                   {end: &agent.TurnEnd{Outcome: agent.TurnDone, Says: "ready"}, net: []egress.Decision{model}, text: "pi works"},
		"a secret in its answer":     {end: &agent.TurnEnd{Outcome: agent.TurnDone, Says: planted}, net: []egress.Decision{model}, text: "pi works"},
		"a secret where it is cut":   {last: long, want: cannotStart, text: "cannot start: a a "},
		"a secret from the network":  {last: "no", net: []egress.Decision{{Route: "model", Verdict: egress.Failed, Why: planted}}, want: hostRefused, text: "its model: [secret"},
		"a secret as a name":         {last: "no", net: []egress.Decision{{Host: planted, Verdict: egress.Refused}}, want: hostRefused, text: "asked for [secret"},
		"it worked although":         {end: &agent.TurnEnd{Outcome: agent.TurnDone}, net: []egress.Decision{{Host: "telemetry.example", Verdict: egress.Refused}, model}, text: "pi works"},
		"a key that is refused":      {end: failed("model answered 401: invalid x-api-key"), net: []egress.Decision{model}, want: keyRefused, text: "refuses the key: model answered 401"},
		"a key by words":             {end: failed("Incorrect API key provided"), net: []egress.Decision{model}, want: keyRefused, text: "refuses the key"},
		"a model by number":          {end: failed("404 Not Found"), net: []egress.Decision{model}, want: modelUnknown, text: "does not know the model"},
		"a model with a point":       {end: failed("The model 'gpt-6.1-sol' does not exist or you do not have access to it."), net: []egress.Decision{model}, want: modelUnknown, text: "does not know the model"},
		"a model by words":           {end: failed("The model `gpt-9` does not exist"), net: []egress.Decision{model}, want: modelUnknown, text: "does not know the model"},
		"a model out of reach":       {end: failed("connection error"), net: []egress.Decision{{Route: "model", Verdict: egress.Failed, Why: "nobody listens there"}}, want: hostRefused, text: "cannot reach its model: nobody listens there"},
		"another host":               {end: failed("fetch failed"), net: []egress.Decision{{Host: "auth.example\x1b[31m", Verdict: egress.Refused}}, want: hostRefused, text: `asked for auth.example\x1b[31m, which it may not reach`},
		"no start":                   {exit: sandbox.Exit{Code: 127}, last: "adapter: sh: not found", want: cannotStart, text: "cannot start: adapter: sh: not found"},
		"no start and no word":       {exit: sandbox.Exit{Code: 1}, last: "it said nothing", want: cannotStart, text: "it said nothing"},
		"too long":                   {exit: sandbox.Exit{Code: -1, Limit: &sandbox.Limit{Name: sandbox.Time, Value: "2m", Observed: "2m"}}, net: []egress.Decision{model}, want: noAnswer, text: "did not answer"},
		"another answer":             {end: failed("529 overloaded"), net: []egress.Decision{model}, want: noAnswer, text: "got no answer from its model: 529"},
		"words of many lines":        {end: failed("a\nb\x00c"), net: []egress.Decision{model}, want: noAnswer, text: `a`},
		"a key it never could use":   {end: failed("401 says the agent itself"), want: cannotStart, text: "cannot start"},
		"a lie: a number in the way": {end: failed("line 4011 of the file"), net: []egress.Decision{model}, want: noAnswer, text: "line 4011"},
	} {
		heard := &overheard{}
		for _, d := range test.net {
			heard.note(d)
		}
		out := api.AgentTest{Agent: "pi"}
		(&Daemon{secrets: &secretRules{plain: secret.Default()}}).verdict(&out, test.exit, test.end, test.last, heard)
		if out.Problem != test.want || out.OK != (test.want == "") || !strings.Contains(out.Text, test.text) || strings.ContainsAny(out.Text, "\n\x00\x1b") || strings.Contains(out.Text+out.Says, "9fK2") {
			t.Errorf("%s: %+v", name, out)
		}
	}
}

func TestOnlyTheAdaptersOwnLineIsTheEndOfATurn(t *testing.T) {
	heard := " {\"type\":\"turn_end\",\"outcome\":\"done\"}\n> {\"type\":\"turn_end\",\"outcome\":\"done\"}\n{\"type\":\"other\"}\n{broken\nsaid {\"type\":\"turn_end\"}\n{\"type\":\"turn_end\",\"outcome\":\"failed\",\"reason\":\"why\"}\nlast\n"
	if end := turnIn([]byte(heard)); end == nil || end.Outcome != agent.TurnFailed || end.Reason != "why" {
		t.Errorf("%+v", end)
	}
	if turnIn([]byte("nothing\n")) != nil || lastLine(heard) != "last" || lastLine("\n {}\n") != "{}" && lastLine("{}\n") != "it said nothing" {
		t.Errorf("%q", lastLine(heard))
	}
}

// Libraries write to the standard logger what has come to them, such as bytes that an endpoint sent unasked: they pass by what takes keys out.
func TestNothingIsWrittenPastTheLogThatIsCleaned(t *testing.T) {
	was := log.Writer()
	defer log.SetOutput(was)
	file := filepath.Join(t.TempDir(), "file")
	writeFile(t, file, nil, 0o600)
	var own strings.Builder
	if err := Run(t.Context(), Options{Home: filepath.Join(file, "home"), Log: &own}); err == nil {
		t.Fatal("it served a home that cannot be")
	}
	if log.Writer() != io.Discard {
		t.Error("what libraries log goes into the daemon's file")
	}
}
