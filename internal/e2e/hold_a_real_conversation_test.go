package e2e_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sallyport/internal/base/disk/disktest"
	"sallyport/internal/door/api"
	"sallyport/internal/door/client"
	"sallyport/internal/port/agent"
	"sallyport/internal/port/agent/agenttest"
	"sallyport/internal/port/agent/agenttest/modeltest"
)

// A real agent holds ten turns. It is killed with its host in the sixth, and goes on.

func TestTheRealCodexHoldsAConversation(t *testing.T) {
	talks(t, real{name: "codex", model: "gpt-5.5", wire: agent.Responses, base: "/v1", remembers: true})
}

func TestTheRealGeminiHoldsAConversation(t *testing.T) {
	talks(t, real{name: "gemini", model: "test-model", wire: agent.Gemini})
}

// TestTheAgentOfOursHoldsAConversation is the same without any program but ours.
func TestTheAgentOfOursHoldsAConversation(t *testing.T) {
	talks(t, real{name: "api", model: "test-model", wire: agent.Messages, remembers: true})
}

// turnsHeld is how many turns a conversation has, and killedIn in which of them its host dies.
const turnsHeld, killedIn = 10, 6

func talks(t *testing.T, r real) {
	path := found(t, r)
	if !apart(t) {
		return
	}
	gate := modeltest.NewGate()
	var script []modeltest.Turn
	for n := 1; n <= turnsHeld; n++ {
		if n == killedIn {
			script = append(script, modeltest.Turn{Text: "never said", Before: gate})
		}
		script = append(script, modeltest.Say(fmt.Sprintf("answer %d", n)))
	}
	s := newTalk(t, newWorld(t), r, path, script...)
	d, c := s.opens(t)

	var said []string
	say := func(n int) {
		t.Helper()
		text := fmt.Sprintf("question number %d", n)
		s.tellsAnn(t, c, text)
		said = append(said, text)
	}
	settled := func() {
		t.Helper()
		await(t, fmt.Sprintf("the answer to %q", said[len(said)-1]), func() (bool, error) {
			all, err := client.Call(t.Context(), c, api.MessageList, api.Messages{Group: "ann"})
			if err != nil || len(all) == 0 {
				return false, err
			}
			last := all[len(all)-1]
			if last.Tries > 1 || last.Status == "dead" {
				t.Fatalf("%s: %s\n%s", last.Status, last.Reason, s.said())
			}
			return last.Status == "completed", nil
		})
	}
	for n := 1; n <= turnsHeld; n++ {
		say(n)
		if n == killedIn {
			<-gate.Reached()
			if err := d.Process.Kill(); err != nil {
				t.Fatal(err)
			}
			d.end(t, s.place)
			d, c = s.runs(t)
		}
		settled()
	}

	s.remembered(t)
	s.stop(t, c)
	s.leftNothing(t)
	s.keyless(t)
}

// found is the PATH with which a real agent is found; the test is skipped where there is none.
func found(t *testing.T, r real) (path string) {
	t.Helper()
	known, err := agent.Lookup(r.name)
	if err != nil {
		t.Fatal(err)
	}
	if len(known.Programs) == 0 {
		return os.Getenv("PATH")
	}
	_, path = agenttest.Real(t, r.name)
	return path
}

// newTalk is a world whose home knows the agent, its key in a file, and its model, which does what the script says.
func newTalk(t *testing.T, w *world, r real, path string, script ...modeltest.Turn) *stage {
	t.Helper()
	known, err := agent.Lookup(r.name)
	if err != nil {
		t.Fatal(err)
	}
	at := slices.IndexFunc(known.Endpoints, func(e agent.Endpoint) bool { return e.Wire == r.wire })
	s := &stage{world: w, real: r, where: known.Endpoints[at], path: path, key: keyBegin + keyEnd}
	s.server = modeltest.Start(t, script...)
	s.server.Require(s.where.Header, s.where.Prefix+s.key)
	disktest.Put(t, s.keyFile(), s.key+"\n", 0o600)
	s.configure(t, map[string]string{"sallyport.yaml": fmt.Sprintf("agents: {%s: {key: 'file:%s', base: '%s', model: '%s', wire: %s}}\n", r.name, s.keyFile(), s.server.URL+s.base, r.model, r.wire)})
	return s
}

func (s *stage) keyFile() string { return filepath.Join(s.dir, "model.key") }

// runs starts a daemon that finds the agent.
func (s *stage) runs(t *testing.T) (*doomed, *client.Client) {
	t.Helper()
	d := s.begin(t, []string{s.bin, "daemon", "run", "--home", s.home}, "PATH="+s.path)
	return d, d.client(t, s.place)
}

// opens starts the first daemon, and makes the group ann, whose agent it is.
func (s *stage) opens(t *testing.T) (*doomed, *client.Client) {
	t.Helper()
	d, c := s.runs(t)
	made, err := client.Call(t.Context(), c, api.GroupCreate, api.NewGroup{Name: "ann", Agent: s.name})
	if err != nil || made.Change == nil {
		t.Fatalf("%+v, %v\n%s", made, err, s.said())
	}
	if at := rest(t, c, made.Change.ID, nil); at.State != api.Finalized {
		t.Fatalf("the group is not made: %s: %s", at.State, at.Reason)
	}
	return d, c
}

// remembered holds that the last thing the model was asked has all that was said before, whoever remembers it.
func (s *stage) remembered(t *testing.T) {
	t.Helper()
	all := s.server.Requests()
	last := string(all[len(all)-1].Body)
	for n := 1; n <= turnsHeld; n++ {
		for _, want := range []string{fmt.Sprintf("question number %d", n), fmt.Sprintf("answer %d", n)} {
			if n == turnsHeld && strings.HasPrefix(want, "answer") {
				continue
			}
			if !strings.Contains(last, want) {
				t.Errorf("at the end its model is not told %q", want)
			}
		}
	}
}

// TestWhatIsSaidInATurnReachesAnAgentThatWorks holds CH-082 with real processes: what is said while the model is asked is in the next thing
// that it is asked, and in the same turn. A host that is killed then answers both, once.
func TestWhatIsSaidInATurnReachesAnAgentThatWorks(t *testing.T) {
	r := real{name: "api", model: "test-model", wire: agent.Messages}
	path := found(t, r)
	if !apart(t) {
		return
	}
	working, killed := modeltest.NewGate(), modeltest.NewGate()
	s := newTalk(t, newWorld(t), r, path,
		modeltest.Turn{Text: "I work.", Calls: []modeltest.Call{modeltest.Shell("true")}, Before: working, Until: "stop, not that file"}, modeltest.Say("I stop."),
		modeltest.Turn{Text: "never said", Before: killed}, modeltest.Say("Both again."))
	d, c := s.opens(t)
	turn := 0
	both := func(status string) (all []api.Message) {
		t.Helper()
		await(t, "both to be "+status, func() (bool, error) {
			var err error
			all, err = client.Call(t.Context(), c, api.MessageList, api.Messages{Group: "ann"})
			if err != nil {
				return false, err
			}
			all = all[2*turn:]
			return len(all) == 2 && all[0].Status == status && all[1].Status == status, nil
		})
		if all[0].Turn != all[1].Turn {
			t.Errorf("they are of turns %d and %d", all[0].Turn, all[1].Turn)
		}
		return all
	}
	said := func(first, second string, gate *modeltest.Gate) {
		t.Helper()
		s.tellsAnn(t, c, first)
		<-gate.Reached()
		s.tellsAnn(t, c, second)
		both("processing")
	}

	said("work", "stop, not that file", working)
	working.Open()
	if all := both("completed"); all[0].Tries+all[1].Tries > 0 {
		t.Errorf("%+v", all)
	}
	requests := s.server.Requests()
	if last := string(requests[len(requests)-1].Body); !strings.Contains(last, "I work.") || strings.Count(last, "stop, not that file") != 1 {
		t.Errorf("the model was asked last: %s", last)
	}

	turn++
	said("work again", "and stop again", killed)
	if err := d.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	d.end(t, s.place)
	_, c = s.runs(t)
	both("completed")
	n := newTerminal()
	n.group = "ann"
	stop := n.watch(t, c)
	await(t, "what was said to be shown", n.sees(func(n *terminal) bool { return n.ready }))
	stop()
	if got := slices.Compact(n.answers()); !slices.Equal(got, []string{"I work.", "I stop.", "Both again."}) {
		t.Errorf("answered %q", got)
	}
	s.stop(t, c)
	s.leftNothing(t)
}

// tellsAnn says something to ann's group.
func (s *stage) tellsAnn(t *testing.T, c *client.Client, text string) {
	t.Helper()
	if _, err := client.Call(t.Context(), c, api.ChatSay, api.Say{Group: "ann", Text: text, Nonce: text}); err != nil {
		t.Fatalf("%v\n%s", err, s.said())
	}
}
