package e2e_test

import (
	"bytes"
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sallyport/internal/base/disk/disktest"
	"sallyport/internal/base/problem"
	"sallyport/internal/door/api"
	"sallyport/internal/door/client"
	"sallyport/internal/port/agent/agenttest/modeltest"
)

// modelKey looks like no key that anybody's rules know: what finds it knows that it is held.
const modelKey = "mellow-otter-" + "4711-4712-4713"

// atModel is a home whose api agent asks the model at url.
func atModel(url string) map[string]string {
	return map[string]string{"sallyport.yaml": "agents:\n  api: {wire: messages, base: '" + url + "', model: test-model, rounds: 2}\n"}
}

// hire asks for a change by the api agent.
func (p *place) hire(ctx context.Context, c *client.Client, text string, keys api.Keys) (api.Change, error) {
	return client.Call(ctx, c, api.ChangeRun, api.Run{Dir: p.repo, Text: text, Agent: "api", Keys: keys, Path: os.Getenv("PATH"), Home: os.Getenv("HOME"), Approve: "later"})
}

// holding names every file below dir that holds a text.
func holding(t *testing.T, dir, text string) (files []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		raw, err := os.ReadFile(path)
		if bytes.Contains(raw, []byte(text)) {
			files = append(files, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// TestAKeyIsHandedOverUsedOutsideAndForgotten: a named agent works with the person's key, which no file, no answer and
// nothing inside ever holds; a daemon that dies forgets it, its change waits, says how to hand the key over, and goes on.
func TestAKeyIsHandedOverUsedOutsideAndForgotten(t *testing.T) {
	if !apart(t) {
		return
	}
	model := modeltest.Start(t)
	model.Require("x-api-key", modelKey)
	gate := modeltest.NewGate()
	// The model is on this machine, where one may be asked without a key; this one is not. What the agent prints of its surroundings ends in the transcript: the key would be found there.
	model.Converse("", modeltest.Do(modeltest.Shell("cat /proc/*/environ /proc/*/cmdline 2>/dev/null | tr '\\0' '\\n'; grep -rs mellow-otter /home /workspace /tmp /etc; env; true")),
		modeltest.Turn{Text: "Wait.", Before: gate}, modeltest.Do(modeltest.Write("ok.txt", "done\n")), modeltest.Say("Done."))
	w := newWorld(t)
	w.configure(t, atModel(model.URL))
	d := w.begin(t, []string{w.bin, "daemon", "run", "--home", w.home})
	c := d.client(t, w.place)
	want, err := client.Call(t.Context(), c, api.KeyWanted, api.WhoWants{Agent: "api", Dir: w.repo})
	if err != nil || strings.Join(want.Keys, " ") != "ANTHROPIC_API_KEY" || !want.Held || len(want.Bases) != 0 {
		t.Fatalf("it wants %+v, %v", want, err)
	}
	if _, err := w.hire(t.Context(), c, "Put it right", api.Keys{"HOME": "x"}); problem.KindOf(err) != problem.Usage {
		t.Errorf("a key that nobody asked for is taken: %v", err)
	}
	ch, err := w.hire(t.Context(), c, "Put it right", api.Keys{"ANTHROPIC_API_KEY": modelKey})
	if err != nil {
		t.Fatal(err)
	}
	w.change = ch.ID
	await(t, "the model to be asked twice", func() (bool, error) {
		select {
		case <-gate.Reached():
			return true, nil
		default:
			return false, nil
		}
	})
	if err := d.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	d.end(t, w.place)
	nobody(t)
	gate.Open()

	c = w.start(t)
	var at api.Change
	await(t, "the change to wait for its key, or to rest", func() (bool, error) {
		d, err := client.Call(t.Context(), c, api.ChangeShow, ch.ID)
		at = d.Change
		return at.State == api.Blocked || at.State == api.AwaitingApproval || api.Final(at.State), err
	})
	if at.State != api.Blocked || at.BlockedReason != api.CredentialMissing || !strings.Contains(at.Reason, "$ANTHROPIC_API_KEY") || at.Next != "ANTHROPIC_API_KEY=… sallyport change resume "+ch.ID {
		t.Fatalf("%s (%s): %s, next %q\n%s", at.State, at.BlockedReason, at.Reason, at.Next, w.said())
	}
	if err := client.Do(t.Context(), c, api.KeyGive, api.GiveKeys{Of: ch.ID, Keys: api.Keys{"ANTHROPIC_API_KEY": modelKey}}); err != nil {
		t.Fatal(err)
	}
	at = rest(t, c, ch.ID, nil)
	if at.State != api.AwaitingApproval {
		t.Fatalf("%s: %s\n%s\n%s", at.State, at.Reason, transcript(t, c, ch.ID), w.said())
	}
	if err := approve(t.Context(), c, ch.ID); err != nil {
		t.Fatal(err)
	}
	if at := rest(t, c, ch.ID, nil); at.State != api.Finalized {
		t.Errorf("%s: %s", at.State, at.Reason)
	}
	if err := client.Do(t.Context(), c, api.KeyGive, api.GiveKeys{Of: ch.ID, Keys: api.Keys{"ANTHROPIC_API_KEY": modelKey}}); problem.KindOf(err) != problem.Conflict {
		t.Errorf("a change that has ended takes a key: %v", err)
	}
	await(t, "the key to be forgotten", func() (bool, error) { // right after the end was written; its request went with a key, so it wants one
		got, err := client.Call(t.Context(), c, api.KeyWanted, api.WhoWants{Of: ch.ID})
		return !got.Held, err
	})
	w.stop(t, c)
	for _, file := range append(holding(t, w.home, modelKey), holding(t, w.repo, modelKey)...) {
		t.Errorf("the key stands in %s", file)
	}
	if n := len(model.Requests()); n < 4 {
		t.Errorf("the model was asked %d times", n)
	}
}

func TestAnAgentWithoutItsKeyOrItsProgramIsRefusedBeforeAnyWork(t *testing.T) {
	if !apart(t) {
		return
	}
	w := newWorld(t)
	w.configure(t, map[string]string{"sallyport.yaml": "agents:\n  api: {key: $OUR_MODEL_KEY}\n"})
	c := w.start(t)
	defer w.stop(t, c)
	run := api.Run{Dir: w.repo, Text: "x", Path: "/nowhere", Home: os.Getenv("HOME"), Approve: "later"}
	for name, test := range map[string]struct {
		agent string
		kind  problem.Kind
		text  string
		next  string
	}{
		"no key":         {"api", problem.Unavailable, "api has no key: $OUR_MODEL_KEY is set neither in your shell nor where the daemon was started", "OUR_MODEL_KEY=… sallyport run --agent api …"},
		"no such agent":  {"nobody", problem.Usage, `there is no agent "nobody"; there are codex,`, "sallyport agent list"},
		"no agent named": {"", problem.Usage, "no agent is named", "sallyport agent list"},
	} {
		run.Agent = test.agent
		_, err := client.Call(t.Context(), c, api.ChangeRun, run)
		if p := problem.Of(err); p.Kind != test.kind || !strings.Contains(p.Text, test.text) || p.Next != test.next {
			t.Errorf("%s: %v (next %q)", name, err, p.Next)
		}
	}
	if all, err := client.Call(t.Context(), c, api.ChangeList, api.Filter{}); err != nil || len(all) != 0 {
		t.Errorf("%d changes were begun, %v", len(all), err)
	}
}

func TestATryOfAnAgentSaysInOneLineWhatIsWrong(t *testing.T) {
	if !apart(t) {
		return
	}
	model := modeltest.Start(t)
	model.TakeAll()
	w := newWorld(t)
	w.configure(t, atModel(model.URL))
	c := w.start(t)
	defer w.stop(t, c)
	try := api.TestAgent{Place: api.Place{Dir: w.repo, Path: os.Getenv("PATH"), Home: os.Getenv("HOME")}, Agent: "api", Keys: api.Keys{"ANTHROPIC_API_KEY": modelKey}}
	for _, test := range []struct {
		name    string
		home    string
		turn    modeltest.Turn
		change  func(*api.TestAgent)
		problem string
		text    string
	}{
		{name: "it works", home: model.URL, turn: modeltest.Say("ready"), text: "api works"},
		{name: "the key is refused", home: model.URL, turn: modeltest.Turn{Status: 401, Message: "invalid x-api-key", Times: 9}, problem: "key_refused", text: "its model refuses the key"},
		{name: "the model is unknown", home: model.URL, turn: modeltest.Turn{Status: 404, Message: "model: test-model not found", Times: 9}, problem: "model_unknown", text: "its endpoint does not know the model"},
		{name: "no key", home: "https://models.example.org", change: func(r *api.TestAgent) { r.Keys = nil }, problem: "no_key", text: "api has no key: $ANTHROPIC_API_KEY is set neither in your shell nor where the daemon was started"},
		{name: "not installed", home: model.URL, change: func(r *api.TestAgent) { r.Agent, r.Keys, r.Path = "acp:no-such-agent-here", nil, "/nowhere" }, problem: "not_installed", text: "is not on this machine"},
	} {
		t.Run(test.name, func(t *testing.T) {
			disktest.Put(t, filepath.Join(w.home, "sallyport.yaml"), atModel(test.home)["sallyport.yaml"], 0o600)
			model.Converse("", test.turn)
			asked := try
			if test.change != nil {
				test.change(&asked)
			}
			got, err := client.Call(t.Context(), c, api.AgentTry, asked)
			if err != nil || got.Problem != test.problem || got.OK != (test.problem == "") || !strings.Contains(got.Text, test.text) || strings.ContainsAny(got.Text, "\n\r") {
				t.Errorf("%+v, %v\n%s", got, err, w.said())
			}
			if strings.Contains(got.Text+got.Says, modelKey) {
				t.Errorf("the key is told: %+v", got)
			}
		})
	}
	if _, err := client.Call(t.Context(), c, api.AgentTry, api.TestAgent{Place: try.Place, Agent: "nobody"}); problem.KindOf(err) != problem.Usage {
		t.Errorf("an agent that there is not: %v", err)
	}
	left, err := filepath.Glob(filepath.Join(w.home, ".state", "probe-*"))
	if err != nil || len(left) != 0 {
		t.Errorf("left behind: %q, %v", left, err)
	}
}

// TestTheListOfAgentsRunsAProgramInASandboxAlone: what says its version there can neither write to the person's home nor ask a net.
func TestTheListOfAgentsRunsAProgramInASandboxAlone(t *testing.T) {
	if !apart(t) {
		return
	}
	w := newWorld(t)
	bin := filepath.Join(w.dir, "tools", "bin")
	if err := os.MkdirAll(bin, 0o755); err != nil {
		t.Fatal(err)
	}
	mark := filepath.Join(w.dir, "ran")
	for name, script := range map[string]string{
		"codex":  "#!/bin/sh\ntouch " + mark + " \"$HOME/ran\"\necho codex-cli 0.169.0\n",
		"gemini": "#!/bin/sh\nexit 3\n",
		"pi":     "#!/bin/sh\necho no number at all\n",
	} {
		disktest.Put(t, filepath.Join(bin, name), script, 0o755)
	}
	c := w.start(t)
	defer w.stop(t, c)
	all, err := client.Call(t.Context(), c, api.AgentList, api.Place{Dir: w.repo, Path: bin, Home: w.dir + "/person"})
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]api.Agent{}
	for _, a := range all {
		got[a.Name] = a
	}
	if a := got["codex"]; !a.Installed || a.Version != "0.169.0" || a.Path != filepath.Join(bin, "codex") || a.Problem != "" || a.Endpoint != "https://api.openai.com/v1" {
		t.Errorf("codex: %+v", a)
	}
	if a := got["gemini"]; !a.Installed || a.Version != "" || !strings.Contains(a.Problem, "its version is not known") {
		t.Errorf("gemini: %+v", a)
	}
	if a := got["pi"]; !a.Installed || a.Version != "" || a.Problem == "" {
		t.Errorf("pi: %+v", a)
	}
	if a := got["qwen"]; a.Installed || a.Install == "" {
		t.Errorf("qwen: %+v", a)
	}
	if a := got["api"]; !a.Installed || a.KeyFrom != "" || !a.Capabilities.PauseResume {
		t.Errorf("api: %+v", a)
	}
	if _, err := os.Stat(mark); err == nil {
		t.Error("a program ran on the machine itself")
	}
}
