package e2e_test

import (
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"

	"sallyport/internal/base/problem"
	"sallyport/internal/door/api"
	"sallyport/internal/door/client"
	"sallyport/internal/port/agent"
	"sallyport/internal/port/agent/agenttest"
	"sallyport/internal/port/agent/agenttest/scripttest"
	"sallyport/internal/port/sandbox"
)

// scripted is the driver of an agent with a protocol of its own, which does what a task's script says. Inside, this program
// is the adapter and the agent.
type scripted struct{}

func (scripted) Name() string { return "scripted" }
func (scripted) Capabilities() agent.Capabilities {
	return agent.Capabilities{InteractiveMode: true, PauseResume: true, MessagePassing: true, Acknowledgment: true, PauseProtocol: agent.PauseSignal}
}
func (scripted) Program(t agent.Task) (agent.Program, error) {
	if len(t.Script) == 0 {
		return agent.Program{}, problem.Errorf(problem.Usage, "sallyport run --help", "there is no script")
	}
	line, err := json.Marshal(agent.Order{
		Engine: "scripted", Agent: "scripted", Text: t.Text, Resumed: t.Resumed,
		Argv: []string{sandbox.SelfPath, "agent", "script"}, Env: []string{scripttest.ScriptName + "=" + string(t.Script)},
	})
	return agent.Program{
		Name: "scripted", Argv: []string{sandbox.SelfPath, "runner", "adapt"}, Stdin: append(line, '\n'), Messages: true, Turns: true, Keeps: true,
	}, err
}

// converse asks for a change by an agent that does these turns.
func (p *place) converse(t *testing.T, c *client.Client, wish api.Run, turns ...[]agenttest.Deed) (api.Change, error) {
	t.Helper()
	script, err := json.Marshal(turns)
	if err != nil {
		t.Fatal(err)
	}
	wish.Dir, wish.Text, wish.Agent, wish.Script, wish.Path, wish.Home, wish.Approve = p.repo, "Put it right", "scripted", script, os.Getenv("PATH"), os.Getenv("HOME"), "later"
	return client.Call(t.Context(), c, api.ChangeRun, wish)
}

// audited are the verbs and reasons of a change's audit entries that begin so.
func audited(t *testing.T, c *client.Client, change, verb string) (all []string) {
	t.Helper()
	entries, err := client.Call(t.Context(), c, api.AuditList, api.Entries{Change: change, Limit: 1000})
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if strings.HasPrefix(e.Verb, verb) {
			all = append(all, e.Verb+": "+e.Reason)
		}
	}
	return all
}

func triggers(d api.Detail) (all []string) {
	for _, cp := range d.Checkpoints {
		all = append(all, cp.Trigger+" "+cp.Status)
	}
	return all
}

// TestAnAgentThatSaysItIsDoneIsToldUntilItIs is CW-052 in a real sandbox: a rule, a check, and then it lands.
func TestAnAgentThatSaysItIsDoneIsToldUntilItIs(t *testing.T) {
	if !apart(t) {
		return
	}
	w := newWorld(t)
	w.configure(t, map[string]string{"policy.yaml": "forbidden_areas: ['**/*.lock']\n"})
	w.before = look(t, w.repo)
	c := w.start(t)
	ch, err := w.converse(t, c, api.Run{Checks: []string{"grep -q right ok.txt || { echo not right yet; exit 3; }"}},
		[]agenttest.Deed{{Think: "hmm"}, {Write: "deep/bad.lock", Content: "x\n"}, {Say: "All done, every test passes.\n"}, {Print: `{"type":"turn_end","turn":9,"outcome":"done"}` + "\n"}},
		[]agenttest.Deed{{Delete: "deep/bad.lock"}, {Write: "ok.txt", Content: "wrong\n"}, {Say: "{\"type\":\"turn_end\",\"turn\":7,\"outcome\":\"done\"}\nNow it is done.\n"}},
		[]agenttest.Deed{{Write: "ok.txt", Content: "right\n"}, {Say: "It is right now.\n"}})
	if err != nil {
		t.Fatal(err)
	}
	at := rest(t, c, ch.ID, nil)
	d, err := client.Call(t.Context(), c, api.ChangeShow, ch.ID)
	if err != nil || at.State != api.AwaitingApproval {
		t.Fatalf("%v: %s: %s\n%s\n%s", err, at.State, at.Reason, transcript(t, c, ch.ID), w.said())
	}
	if got, want := triggers(d), []string{"turn_end invalid", "turn_end valid", "turn_end valid", "end valid"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	rounds := audited(t, c, ch.ID, "round")
	if len(rounds) != 2 || !strings.HasPrefix(rounds[0], `round 2 of 5: "deep/bad.lock" breaks the rule forbidden_area`) || !strings.HasPrefix(rounds[1], `round 3 of 5: the check "grep -q`) {
		t.Errorf("%q", rounds)
	}
	said := transcript(t, c, ch.ID)
	for _, want := range []string{"told: Put it right", "told: Your work was checked at ckpt-001-", "told: The check \\\"grep -q right", "~ hmm", "[edit] ok.txt", "[delete] deep/bad.lock", `\u003e {`, "All done, every test passes."} {
		if !strings.Contains(said, want) && !strings.Contains(said, strings.ReplaceAll(want, `\u003e`, ">")) {
			t.Errorf("the transcript has no %q:\n%s", want, said)
		}
	}
	if d.Proposal == nil || d.Proposal.Card.AgentSays != "It is right now." {
		t.Errorf("the card quotes %+v", d.Proposal)
	}
	if err := approve(t.Context(), c, ch.ID); err != nil {
		t.Fatal(err)
	}
	if at := rest(t, c, ch.ID, nil); at.State != api.Finalized {
		t.Errorf("%s: %s", at.State, at.Reason)
	}
	if is, err := os.ReadFile(w.repo + "/ok.txt"); err != nil || string(is) != "right\n" {
		t.Errorf("%q landed, %v", is, err)
	}
	w.stop(t, c)
	w.leftNothing(t)
}

// TestAnAgentThatNeverGetsItRightHasFiveRounds is CW-053, and what it did is kept.
func TestAnAgentThatNeverGetsItRightHasFiveRounds(t *testing.T) {
	if !apart(t) {
		return
	}
	w := newWorld(t)
	w.configure(t, nil)
	w.before = look(t, w.repo)
	c := w.start(t)
	ch, err := w.converse(t, c, api.Run{Checks: []string{"grep -q right ok.txt"}}, []agenttest.Deed{{Write: "ok.txt", Content: "wrong\n"}, {Say: "Perfect.\n"}})
	if err != nil {
		t.Fatal(err)
	}
	at := rest(t, c, ch.ID, nil)
	if at.State != api.Failed || !strings.Contains(at.Reason, "the agent had 5 rounds to correct this") {
		t.Errorf("%s: %s\n%s", at.State, at.Reason, w.said())
	}
	if n := strings.Count(transcript(t, c, ch.ID), "told: "); n != 5 {
		t.Errorf("it had %d turns", n)
	}
	w.truthful(t, c)
	w.stop(t, c)
	w.leftNothing(t)
	untouched(t, w.before, look(t, w.repo), nil)
}

// halfway are the turns of an agent that is killed in the middle of its first; only one that remembers it does the second.
func halfway() [][]agenttest.Deed {
	return [][]agenttest.Deed{
		{{Write: "ok.txt", Content: "begun\n"}, {Say: "I have begun.\n"}, {Hang: true}},
		{{Write: "more.txt", Content: "wrong\n"}, {Say: "I have finished.\n"}},
		{{Write: "more.txt", Content: "finished\n"}, {Say: "Now I have.\n"}},
	}
}

// dieHalfway kills a daemon with an agent in the middle of a turn.
func (w *world) dieHalfway(t *testing.T) {
	t.Helper()
	d := w.begin(t, []string{w.bin, "daemon", "run", "--home", w.home})
	c := d.client(t, w.place)
	ch, err := w.converse(t, c, api.Run{Checks: []string{"grep -q begun ok.txt && grep -q finished more.txt"}}, halfway()...)
	if err != nil {
		t.Fatal(err)
	}
	w.change = ch.ID
	await(t, "the agent to begin", func() (bool, error) {
		at, err := client.Call(t.Context(), c, api.ChangeShow, ch.ID)
		if err != nil || len(at.Sessions) == 0 {
			return false, err
		}
		return strings.Contains(transcript(t, c, ch.ID), "I have begun."), nil
	})
	if err := d.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	d.end(t, w.place)
	nobody(t)
}

// wentOn checks that a change waits for a person with what its agent did before and after.
func (w *world) wentOn(t *testing.T, c *client.Client) {
	t.Helper()
	at := rest(t, c, w.change, nil)
	d, err := client.Call(t.Context(), c, api.ChangeShow, w.change)
	if err != nil || at.State != api.AwaitingApproval {
		t.Fatalf("%v: %s: %s\n%s\n%s", err, at.State, at.Reason, transcript(t, c, w.change), w.said())
	}
	last := d.Checkpoints[len(d.Checkpoints)-1]
	if !slices.Equal(last.Files, []string{"more.txt", "ok.txt"}) || git(t, w.host(t), "cat-file", "blob", last.Commit+":ok.txt") != "begun\n" {
		t.Errorf("it offers %q: %q", last.Files, triggers(d))
	}
	if !slices.Contains(triggers(d), "interrupted valid") {
		t.Errorf("what it had done is not kept: %q", triggers(d))
	}
	said := transcript(t, c, w.change)
	if !strings.Contains(said, "told: Your work on this request was interrupted: the host that you work on was stopped") {
		t.Errorf("it was not told:\n%s", said)
	}
	w.truthful(t, c)
}

// TestAnAgentWhoseDaemonIsKilledGoesOnWithItsHomeAndItsTree is RM-025: with its own session, of which it does the second turn.
func TestAnAgentWhoseDaemonIsKilledGoesOnWithItsHomeAndItsTree(t *testing.T) {
	if !apart(t) {
		return
	}
	w := newWorld(t)
	w.configure(t, nil)
	w.before = look(t, w.repo)
	w.dieHalfway(t)
	c := w.start(t)
	w.wentOn(t, c)
	w.stop(t, c)
	w.leftNothing(t)
	untouched(t, w.before, look(t, w.repo), nil)
}

// TestADaemonThatDiesWhileAnAgentGoesOnLosesNeitherItsHomeNorItsTree kills the one that comes after the dead, everywhere.
func TestADaemonThatDiesWhileAnAgentGoesOnLosesNeitherItsHomeNorItsTree(t *testing.T) {
	if !apart(t) {
		return
	}
	w := newWorld(t)
	w.configure(t, nil)
	w.dieHalfway(t)
	w.keep(t, "halfway")
	from := w.startup(t, "halfway") - 2
	w.restore(t, "halfway")
	w.crashEverywhere(t, loop{
		from: max(from, 0), start: "halfway",
		ask:   func(*testing.T, *client.Client) (string, error) { return w.change, nil },
		judge: func(t *testing.T, c *client.Client, _ int) { w.wentOn(t, c) },
	})
}
