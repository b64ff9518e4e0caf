package modeltest_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"sallyport/internal/port/agent"
	"sallyport/internal/port/agent/agenttest/modeltest"
)

// asks are requests as clients make them, by wire: a path and a body that offers a tool to run commands and says words.
var asks = map[agent.Wire]struct{ path, whole, body string }{
	agent.Responses: {"/v1/responses", "/v1/responses", `{"model":"m1","stream":%t,"instructions":"be good","tools":[{"type":"function","name":"exec_command","parameters":
		{"type":"object","properties":{"cmd":{"type":"string"},"login":{"type":"boolean"}},"required":["cmd","login"]}}],
		"input":[{"type":"message","role":"user","content":[{"type":"input_text","text":%q}]},
		{"type":"function_call","call_id":"c","name":"exec_command","arguments":"{}"},{"type":"function_call_output","call_id":"c","output":"the result"}]}`},
	agent.Chat: {"/model/chat/completions", "/model/chat/completions", `{"model":"m1","stream":%t,"stream_options":{"include_usage":true},"tools":[{"type":"function","function":{"name":"bash",
		"parameters":{"type":"object","properties":{"command":{"type":"string"},"description":{"type":"string"}},"required":["command","description"]}}}],
		"messages":[{"role":"system","content":"be good"},{"role":"user","content":%q},{"role":"tool","tool_call_id":"c","content":"the result"}]}`},
	agent.Messages: {"/v1/messages", "/v1/messages", `{"model":"m1","stream":%t,"system":"be good","tools":[{"name":"run","input_schema":{"type":"object","properties":{"command":{"type":"string"}}}}],
		"messages":[{"role":"user","content":[{"type":"text","text":%q},{"type":"tool_result","tool_use_id":"c","content":[{"type":"text","text":"the result"}]}]}]}`},
	agent.Gemini: {"/v1beta/models/m1:streamGenerateContent", "/v1beta/models/m1:generateContent", `{"x":%t,"systemInstruction":{"parts":[{"text":"be good"}]},
		"tools":[{"functionDeclarations":[{"name":"run_shell_command","parametersJsonSchema":{"type":"object","properties":{"command":{"type":"string"}}}}]}],
		"contents":[{"role":"user","parts":[{"text":%q}]},{"role":"user","parts":[{"functionResponse":{"name":"x","response":{"output":"the result"}}}]}]}`},
}

// ask makes a request; a cut answer is an error.
func ask(t *testing.T, s *modeltest.Server, wire agent.Wire, stream bool, words string) (status int, text string, err error) {
	t.Helper()
	a := asks[wire]
	path := a.whole
	if stream {
		path = a.path
	}
	resp, err := http.Post(s.URL+path, "application/json", strings.NewReader(fmt.Sprintf(a.body, stream, words)))
	if err != nil {
		return 0, "", err
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	return resp.StatusCode, string(raw), err
}

func each(t *testing.T, test func(t *testing.T, wire agent.Wire, stream bool)) {
	for wire := range asks {
		for _, stream := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s stream=%t", wire, stream), func(t *testing.T) { test(t, wire, stream) })
		}
	}
}

func TestAScriptIsPlayedOnEveryWire(t *testing.T) {
	each(t, func(t *testing.T, wire agent.Wire, stream bool) {
		s := modeltest.Start(t,
			modeltest.Turn{Think: "hm", Text: "I look.", Calls: []modeltest.Call{modeltest.Shell("ls 'a b'")}, Usage: modeltest.Usage{Input: 11, Cached: 22, Output: 33}},
			modeltest.Turn{Status: 429, RetryAfter: "1", Times: 2}, modeltest.Say("That was it."))
		var texts []string
		for _, want := range []int{200, 429, 429, 200, 200} {
			status, text, err := ask(t, s, wire, stream, "please")
			if err != nil || status != want {
				t.Fatalf("%d %s %v, want %d", status, text, err, want)
			}
			texts = append(texts, text)
		}
		first := texts[0]
		joined := strings.NewReplacer(`\"`, `"`, `\\u0026`, "&").Replace(first)
		if !strings.Contains(joined, "ls ") || !strings.Contains(joined, "call_1_1") || strings.Count(first, "33") == 0 {
			t.Errorf("the first turn is %s", first)
		}
		if !strings.Contains(texts[4], "nothing more") && !strings.Contains(texts[4], "more to do") {
			t.Errorf("after the last turn: %s", texts[4])
		}
		all := s.Requests()
		if len(all) != 5 || all[0].Turn != 1 || all[2].Turn != 2 || all[3].Turn != 3 || all[4].Turn != 0 || all[0].Model != "m1" || all[0].Stream != stream {
			t.Errorf("%+v", all)
		}
		for role, want := range map[string]string{"system": "be good", "user": "please", "tool": "the result"} {
			if got := s.Told("", role); !strings.Contains(got, want) {
				t.Errorf("%s was told %q", role, got)
			}
		}
		if s.Left("") != 0 {
			t.Errorf("%d turns are left", s.Left(""))
		}
	})
}

func TestEveryDataLineOfAStreamIsJSONAndNamesItself(t *testing.T) {
	for wire := range asks {
		s := modeltest.Start(t, modeltest.Turn{Think: "hm", Text: "héllo", Calls: []modeltest.Call{
			{Name: "any", Args: map[string]int{"n": 1}}, {Name: "broken", Args: "{no"}, {Name: "none"}}})
		_, text, err := ask(t, s, wire, true, "x")
		if err != nil {
			t.Fatal(err)
		}
		name := ""
		for line := range strings.Lines(text) {
			line = strings.TrimSpace(line)
			if kind, ok := strings.CutPrefix(line, "event: "); ok {
				name = kind
			}
			data, ok := strings.CutPrefix(line, "data: ")
			if !ok || data == "[DONE]" {
				continue
			}
			var event struct {
				Type string `json:"type"`
			}
			if err := json.Unmarshal([]byte(data), &event); err != nil {
				t.Errorf("%s: %s: %v", wire, data, err)
			}
			if (wire == agent.Responses || wire == agent.Messages) && (event.Type == "" || event.Type != name) {
				t.Errorf("%s: event %q has the data of %q", wire, name, event.Type)
			}
		}
	}
}

func TestACutAnswerIsBrokenInTheMiddle(t *testing.T) {
	each(t, func(t *testing.T, wire agent.Wire, stream bool) {
		s := modeltest.Start(t, modeltest.Turn{Text: "first half|second half", Cut: true})
		_, text, err := ask(t, s, wire, stream, "x")
		if err == nil || strings.Contains(text, "second half") {
			t.Errorf("%q, %v", text, err)
		}
		if stream && !strings.Contains(text, "first half") {
			t.Errorf("nothing came before the cut: %q", text)
		}
	})
}

func TestAnAnswerStandsAtAGateUntilItIsOpened(t *testing.T) {
	for _, middle := range []bool{false, true} {
		gate := modeltest.NewGate()
		turn := modeltest.Turn{Text: "first half|second half", Before: gate}
		if middle {
			turn = modeltest.Turn{Text: "first half|second half", Middle: gate}
		}
		s := modeltest.Start(t, turn)
		got := make(chan string, 1)
		go func() {
			_, text, err := ask(t, s, agent.Chat, true, "x")
			got <- fmt.Sprint(text, err)
		}()
		<-gate.Reached()
		select {
		case text := <-got:
			t.Fatalf("it did not wait: %s", text)
		default:
		}
		gate.Open()
		if text := <-got; !strings.Contains(text, "second half") {
			t.Errorf("%s", text)
		}
	}
}

func TestATurnIsGivenUntilSomethingIsSaid(t *testing.T) {
	s := modeltest.Start(t, modeltest.Turn{Text: "I work.", Until: "stop it"}, modeltest.Say("I stop."))
	for _, row := range [][2]string{{"work", "I work."}, {"go on", "I work."}, {"please stop it", "I stop."}, {"stop it", modeltest.Over}} {
		if _, text, err := ask(t, s, agent.Chat, false, row[0]); err != nil || !strings.Contains(text, row[1]) {
			t.Errorf("%s: %s %v", row[0], text, err)
		}
	}
}

func TestConversationsHaveScriptsOfTheirOwn(t *testing.T) {
	s := modeltest.Start(t, modeltest.Say("of nobody"))
	s.Converse("marker-a", modeltest.Say("answer a"))
	s.Converse("marker-b", modeltest.Say("answer b"))
	for _, row := range [][2]string{{"say marker-b", "answer b"}, {"say marker-a", "answer a"}, {"say", "of nobody"}, {"marker-a again", modeltest.Over}} {
		_, text, err := ask(t, s, agent.Chat, false, row[0])
		if err != nil || !strings.Contains(text, row[1]) {
			t.Errorf("%s: %s %v", row[0], text, err)
		}
	}
}

func TestARequestBesideTheWorkTakesNoTurn(t *testing.T) {
	s := modeltest.Start(t, modeltest.Say("the turn"))
	const aside = `{"model":"m","messages":[{"role":"user","content":"a title please"}]}`
	post := func() string {
		resp, err := http.Post(s.URL+"/v1/chat/completions", "application/json", strings.NewReader(aside))
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		raw, _ := io.ReadAll(resp.Body)
		return string(raw)
	}
	if text := post(); strings.Contains(text, "the turn") || s.Left("") != 1 {
		t.Errorf("%s, %d left", text, s.Left(""))
	}
	s.TakeAll()
	if text := post(); !strings.Contains(text, "the turn") {
		t.Error(text)
	}
}

func TestWhatComesWithoutTheKeyIsRefusedAndEveryRequestIsKept(t *testing.T) {
	s := modeltest.Start(t, modeltest.Say("in"))
	s.Require("Authorization", "Bearer the-key")
	s.Models("m1", "m2")
	if status, _, err := ask(t, s, agent.Responses, true, "x"); err != nil || status != http.StatusUnauthorized {
		t.Errorf("%d %v", status, err)
	}
	for _, path := range []string{"/v1/models", "/v1/models/m2", "/v1/models/none", "/telemetry?who=me"} {
		req, err := http.NewRequest(http.MethodGet, s.URL+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer the-key")
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		raw, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		there := path == "/v1/models" || path == "/v1/models/m2"
		if there != (resp.StatusCode == 200) || there && !strings.Contains(string(raw), `"id":"m2"`) {
			t.Errorf("%s: %d %s", path, resp.StatusCode, raw)
		}
	}
	if n := len(s.Carrying("the-key")); n != 4 {
		t.Errorf("%d requests carry the key", n)
	}
	if n := len(s.Carrying("who=me")); n != 1 || s.Left("") != 1 {
		t.Errorf("%d, %d", n, s.Left(""))
	}
	ctx, stop := context.WithCancel(t.Context())
	if err := s.Await(ctx, 5); err != nil {
		t.Error(err)
	}
	stop()
	if err := s.Await(ctx, 6); err == nil {
		t.Error("it did not wait")
	}
}

func TestWhatAnAgentHasNoToolForIsDoneByAShell(t *testing.T) {
	s := modeltest.Start(t, modeltest.Do(modeltest.Write("a b.txt", "it's"), modeltest.Read("x"), modeltest.Edit("x", "a/b", "c")))
	_, text, err := ask(t, s, agent.Gemini, false, "x")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"run_shell_command", "'a b.txt'", "cat 'x'", "sed -i"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in %s", want, text)
		}
	}
}
