package pi_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sallyport/internal/port/agent"
	"sallyport/internal/port/agent/agenttest"
	"sallyport/internal/port/agent/agenttest/modeltest"
	"sallyport/internal/port/agent/pi"
)

// What follows is with the program that people have, on a model that does what it is told.

// bases are where each wire is, below the fake model's URL: as the host has it behind agent.ModelBase.
var bases = map[agent.Wire]string{agent.Messages: "", agent.Chat: "/v1", agent.Responses: "/v1", agent.Gemini: ""}

// realOrder is what the driver orders for the pi that is installed.
func realOrder(t *testing.T, home string, wire agent.Wire, url string) agent.Order {
	t.Helper()
	_, path := agenttest.Real(t, "pi")
	p, err := pi.New().Program(agent.Task{
		Agent: "pi", Text: "do it", Path: path, Home: home, Top: t.TempDir(), Settings: agent.Settings{Wire: wire, Model: "test-model"},
	})
	if err != nil {
		t.Fatal(err)
	}
	var o agent.Order
	if err := json.Unmarshal(p.Stdin, &o); err != nil {
		t.Fatal(err)
	}
	o.Base = url + bases[wire]
	o.Env = append(o.Env, "PATH="+path)
	return o
}

func TestTheRealPiHoldsThePortsPromises(t *testing.T) {
	agenttest.Real(t, "pi")
	agenttest.Engine(t, agenttest.Subject{Steers: true, Loads: true, Make: func(t *testing.T, _, home string, turns [][]agenttest.Deed) (agent.Engine, agent.Order) {
		s := modeltest.Start(t)
		return modeltest.Play(s, pi.Engine{}, turns), realOrder(t, home, agent.Messages, s.URL)
	}})
}

func TestTheRealPiAsksOnEachWireWithAKeyThatOpensNothing(t *testing.T) {
	agenttest.Real(t, "pi")
	for wire, path := range map[agent.Wire]string{
		agent.Chat: "/v1/chat/completions", agent.Responses: "/v1/responses", agent.Gemini: "/v1beta/models/test-model:streamGenerateContent",
	} {
		t.Run(string(wire), func(t *testing.T) {
			d := newDesk(t)
			s := modeltest.Start(t, modeltest.Do(modeltest.Write("a.txt", "first")), modeltest.Say("I wrote it."))
			says, err := d.prompt(realOrder(t, d.home, wire, s.URL))
			if err != nil || says != "I wrote it." {
				t.Errorf("%q, %v", says, err)
			}
			if is, err := os.ReadFile("a.txt"); string(is) != "first" {
				t.Errorf("%q, %v", is, err)
			}
			for _, r := range s.Requests() {
				if r.Path != path || r.Model != "test-model" || len(s.Carrying(agent.DummyKey)) != len(s.Requests()) {
					t.Errorf("it asks %s for %s", r.Path, r.Model)
				}
			}
		})
	}
}

// A repository may bring whatever it likes: the model stays the one it was given, nothing of it is run, and it is left as it is.
func TestTheRealPiRunsNothingThatARepositoryBrings(t *testing.T) {
	d := newDesk(t)
	s := modeltest.Start(t, modeltest.Do(modeltest.Shell("echo ran")), modeltest.Say("Done."))
	const run = "import fs from 'node:fs'; fs.writeFileSync('ran', '1'); export default function (pi: any) { fs.writeFileSync('ran', '2'); }\n"
	d.put(".pi/extensions/x.ts", run)
	d.put("brought.ts", run)
	d.put(".pi/npm/node_modules/brought/index.ts", run)
	d.put(".pi/npm/node_modules/brought/package.json", `{"name":"brought","version":"1.0.0","pi":{"extensions":["./index.ts"]}}`)
	d.put(".pi/settings.json", `{"defaultProvider":"openai","defaultModel":"other","enabledModels":["openai/gpt-5"],"extensions":["../brought.ts"],
		"packages":["npm:brought","npm:not-there","git:github.com/x/y"],"npmCommand":["sh","-c","touch ran"],"sessionDir":"kept"}`)
	d.put(".pi/SYSTEM.md", "BROUGHT-SYSTEM")
	d.put(".pi/APPEND_SYSTEM.md", "BROUGHT-APPENDED")
	d.put(".pi/skills/x/SKILL.md", "---\nname: x\ndescription: BROUGHT-SKILL\n---\n")
	d.put(".pi/commands/y.md", "BROUGHT-PROMPT")
	d.put("AGENTS.md", "Words of the repository.")
	talk := d.open(realOrder(t, d.home, agent.Messages, s.URL), "")
	if _, err := talk.Prompt(t.Context(), "/y"); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat("ran"); err == nil {
		t.Error("what the repository brought was run")
	}
	for _, r := range s.Requests() {
		if r.Model != "test-model" {
			t.Errorf("it asks for %s", r.Model)
		}
	}
	if len(s.Carrying("BROUGHT")) != 0 || len(s.Carrying("Words of the repository.")) != len(s.Requests()) {
		t.Errorf("it is told\n%s", s.Told("", "system"))
	}
	if !strings.Contains(d.show.String(), "has a folder .pi") {
		t.Errorf("shown:\n%s", d.show)
	}
	for path, there := range map[string]bool{".pi/commands/y.md": true, ".pi/prompts": false, "kept": false} {
		if _, err := os.Lstat(path); (err == nil) != there {
			t.Errorf("%s: %v", path, err)
		}
	}
}

func TestTheRealPiGoesOnAfterWhatPasses(t *testing.T) {
	d := newDesk(t)
	s := modeltest.Start(t, modeltest.Turn{Text: "half of an answer", Cut: true}, modeltest.Say("Whole."))
	says, err := d.prompt(realOrder(t, d.home, agent.Messages, s.URL))
	if err != nil || says != "Whole." || !strings.Contains(d.show.String(), "pi asks again in") {
		t.Errorf("%q, %v, shown:\n%s", says, err, d.show)
	}
}

func TestTheRealPiSaysWhatIsWrongWithItsModel(t *testing.T) {
	d := newDesk(t)
	s := modeltest.Start(t, modeltest.Fail(401), modeltest.Fail(404), modeltest.Fail(403), modeltest.Say("There."))
	talk := d.open(realOrder(t, d.home, agent.Messages, s.URL), "")
	for _, want := range []string{"refuses the key", "does not know this model", "refuses this request"} {
		if _, err := talk.Prompt(t.Context(), "Work"); err == nil || !strings.Contains(err.Error(), want) || strings.ContainsAny(err.Error(), "\n{") {
			t.Errorf("%v", err)
		}
	}
	if says, err := talk.Prompt(t.Context(), "Work"); err != nil || says != "There." {
		t.Errorf("%q, %v", says, err)
	}
}

func TestTheRealPiLosesNothingAfterAHalfWrittenLine(t *testing.T) {
	d := newDesk(t)
	s := modeltest.Start(t, modeltest.Say("One."), modeltest.Say("Two."), modeltest.Say("Three."))
	o := realOrder(t, d.home, agent.Messages, s.URL)
	o.Denied = []string{"execute"}
	session := ""
	for i, words := range []string{"first words", "second words", "third words"} {
		talk := d.open(o, session)
		if talk.Loaded() != (i > 0) {
			t.Fatalf("%d: loaded: %t\n%s", i, talk.Loaded(), d.show)
		}
		session = talk.Session()
		if _, err := talk.Prompt(t.Context(), words); err != nil {
			t.Fatal(err)
		}
		if err := talk.Close(); err != nil {
			t.Error(err)
		}
		f, err := os.OpenFile(filepath.Join(d.home, ".pi/agent/sessions", session+".jsonl"), os.O_APPEND|os.O_WRONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.WriteString(`{"type":"message","id":"x","mess`); err != nil {
			t.Fatal(err)
		}
		f.Close()
	}
	for _, want := range []string{"first words", "second words", "third words"} {
		if !strings.Contains(s.Told("", "user"), want) {
			t.Errorf("it remembers\n%s", s.Told("", "user"))
		}
	}
	if tools := s.Requests()[0].Tools; slices.Contains(tools, "bash") || !slices.Contains(tools, "edit") {
		t.Errorf("it is offered %q", tools)
	}
}

// TestTheRealPiServesAConversationWithTheHostsTools: it is told once who it is and by which program it asks the host, and calls it in its shell.
func TestTheRealPiServesAConversationWithTheHostsTools(t *testing.T) {
	_, path := agenttest.Real(t, "pi")
	model := modeltest.Start(t, modeltest.Do(modeltest.Shell("sallyport-tool send_message --text 'in the middle'")), modeltest.Say("Done."))
	t.Setenv("PATH", path)
	agenttest.ToolProgram(t)
	socket, calls := agenttest.Host(t)
	d := newDesk(t)
	o := realOrder(t, d.home, agent.Messages, model.URL)
	o.Chat, o.Tools, o.System = true, socket, "You are called Tulip4711."
	o.Env = []string{"PATH=" + os.Getenv("PATH"), agent.ToolsVariable + "=" + socket}
	if says, err := d.prompt(o); says != "Done." || err != nil {
		t.Errorf("%q, %v\n%s", says, err, d.show)
	}
	if text := agenttest.Sent(calls); text != "in the middle" {
		t.Errorf("the host was told %q\n%s", text, d.show)
	}
	if len(model.Carrying("Tulip4711")) < 2 || len(model.Carrying("sallyport-tool --help lists them")) < 2 {
		t.Error("it was not told who it is, or how it asks the host")
	}
	if ends := d.show.Ends(); !strings.Contains(ends, "failed false") {
		t.Errorf("the call is not seen to end: %q\n%s", ends, d.show)
	}
}
