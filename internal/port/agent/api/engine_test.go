package api_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"sallyport/internal/base/disk/disktest"
	"sallyport/internal/port/agent"
	"sallyport/internal/port/agent/agenttest"
	"sallyport/internal/port/agent/agenttest/modeltest"
	"sallyport/internal/port/agent/api"
)

// shown is what a person was shown.
type shown struct {
	mu    sync.Mutex
	lines []string
}

func (s *shown) add(line string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lines = append(s.lines, line)
}
func (s *shown) Say(text string)         { s.add("say " + text) }
func (s *shown) Think(text string)       { s.add("think " + text) }
func (s *shown) Tool(kind, title string) { s.add("tool " + kind + " " + title) }
func (s *shown) Began(t agent.Tool)      { s.Tool(t.Kind, t.Title) }
func (s *shown) Ended(string, bool)      {}
func (s *shown) Note(text string)        { s.add("note " + text) }
func (s *shown) has(text string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.ContainsFunc(s.lines, func(l string) bool { return strings.Contains(l, text) })
}

// desk is one workspace with its model.
type desk struct {
	t      *testing.T
	wire   agent.Wire
	model  *modeltest.Server
	engine api.Engine
	show   *shown
	order  agent.Order
}

var bases = map[agent.Wire]string{agent.Messages: "", agent.Chat: "/v1", agent.Responses: "/v1"}

// onEachWire runs a test with an empty workspace against a model of every wire.
func onEachWire(t *testing.T, test func(t *testing.T, d *desk)) {
	for wire := range bases {
		t.Run(string(wire), func(t *testing.T) { test(t, newDesk(t, wire)) })
	}
}

func newDesk(t *testing.T, wire agent.Wire) *desk {
	d := &desk{t: t, wire: wire, model: modeltest.Start(t), show: &shown{}, engine: api.Engine{Dir: t.TempDir(), Home: t.TempDir()}}
	d.order = agent.Order{Engine: "api", Agent: "api", Wire: wire, Base: d.model.URL + bases[wire], Model: "m1"}
	return d
}

// waits lets no time pass between two tries, and says how much it would have been.
func (d *desk) waits() *[]time.Duration {
	waited, restore := api.Waits()
	d.t.Cleanup(restore)
	return waited
}

func (d *desk) open(last string) agent.Conversation {
	d.t.Helper()
	c, err := d.engine.Open(d.t.Context(), d.order, last, d.show)
	if err != nil {
		d.t.Fatal(err)
	}
	d.t.Cleanup(func() { c.Close() })
	return c
}

func (d *desk) write(name, text string) {
	d.t.Helper()
	if err := os.WriteFile(filepath.Join(d.engine.Dir, name), []byte(text), 0o644); err != nil {
		d.t.Fatal(err)
	}
}

func (d *desk) file(name string) string {
	raw, err := os.ReadFile(filepath.Join(d.engine.Dir, name))
	if err != nil {
		return err.Error()
	}
	return string(raw)
}

func TestTheEngineHoldsThePortsPromises(t *testing.T) {
	for wire := range bases {
		t.Run(string(wire), func(t *testing.T) {
			agenttest.Engine(t, agenttest.Subject{Steers: true, Loads: true, Make: func(t *testing.T, _, _ string, turns [][]agenttest.Deed) (agent.Engine, agent.Order) {
				s := modeltest.Start(t)
				return modeltest.Play(s, api.Engine{}, turns), agent.Order{Engine: "api", Agent: "api", Wire: wire, Base: s.URL + bases[wire], Model: "m1"}
			}})
		})
	}
}

func TestTheModelsWorkIsDone(t *testing.T) {
	onEachWire(t, func(t *testing.T, d *desk) {
		d.model.Converse("", modeltest.Turn{Think: "hm", Text: "I make it.", Calls: []modeltest.Call{modeltest.Write("a/b.txt", "one\n"), modeltest.Shell("cat a/b.txt; exit 3")}},
			modeltest.Do(modeltest.Edit("a/b.txt", "one", "two"), modeltest.Read("a/b.txt")), modeltest.Say("It is made."))
		says, err := d.open("").Prompt(t.Context(), "make a/b.txt")
		if err != nil || says != "It is made." || d.file("a/b.txt") != "two\n" {
			t.Fatalf("%q, %v, %q", says, err, d.file("a/b.txt"))
		}
		results := d.model.Told("", "tool")
		for _, want := range []string{"one\n", "exit status 3", "changed in 1 place", "two"} {
			if !strings.Contains(results, want) {
				t.Errorf("%q is not in what the model was told: %s", want, results)
			}
		}
		for _, want := range []string{"say I mak", "tool edit write_file a/b.txt", "tool execute run cat", "say It is"} {
			if !d.show.has(want) {
				t.Errorf("%q was not shown: %q", want, d.show.lines)
			}
		}
		all := d.model.Requests()
		last := all[len(all)-1]
		if len(all) != 3 || last.Model != "m1" || !last.Stream || !strings.Contains(d.model.Told("", "system"), "careful") {
			t.Errorf("%d requests, the last %+v", len(all), last)
		}
		if d.model.Told("", "user") != "make a/b.txt" && d.model.Told("", "user") != "make a/b.txt\n" {
			t.Errorf("the person said %q", d.model.Told("", "user"))
		}
	})
}

func TestWhatPassesIsAskedAgainAndWhatStaysEndsTheTurn(t *testing.T) {
	onEachWire(t, func(t *testing.T, d *desk) {
		waits := d.waits()
		d.model.Converse("", modeltest.Turn{Status: 429, RetryAfter: "7"}, modeltest.Turn{Status: 500}, modeltest.Turn{Status: 529},
			modeltest.Turn{Text: "first half|second half", Cut: true}, modeltest.Say("Here."))
		says, err := d.open("").Prompt(t.Context(), "x")
		if err != nil || says != "Here." {
			t.Fatalf("%q %v", says, err)
		}
		if w := *waits; len(w) != 4 || w[0].Seconds() != 7 || w[1] <= 0 || w[2] <= w[1]/2 {
			t.Errorf("it waited %v", w)
		}
		for _, row := range []struct {
			status int
			want   string
			final  bool
		}{{401, "key is missing or not valid", false}, {403, "may not do this", false}, {400, "answered 400", false}, {404, "answered 404", false}, {429, "too many requests", true}} {
			before := len(d.model.Requests())
			d.model.Converse("", modeltest.Turn{Status: row.status, Message: "no\nway \x1b[2J", Final: row.final})
			_, err := d.open("").Prompt(t.Context(), "x")
			if err == nil || !strings.Contains(err.Error(), row.want) || strings.ContainsAny(err.Error(), "\n\x1b") || len(d.model.Requests()) != before+1 {
				t.Errorf("%d: %v after %d requests", row.status, err, len(d.model.Requests())-before)
			}
		}
	})
}

func TestAskingAgainHasAnEnd(t *testing.T) {
	d := newDesk(t, agent.Messages)
	waits := d.waits()
	d.model.Converse("", modeltest.Turn{Status: 503, Times: 100})
	_, err := d.open("").Prompt(t.Context(), "x")
	if err == nil || !strings.Contains(err.Error(), "asked 6 times") || len(*waits) != 5 {
		t.Errorf("%v, waited %v", err, *waits)
	}
	d.model.Converse("", modeltest.Turn{Status: 429, RetryAfter: "100000"})
	_, err = d.open("").Prompt(t.Context(), "x")
	if err == nil || !strings.Contains(err.Error(), "asks to wait") || len(*waits) != 5 {
		t.Errorf("%v, waited %v", err, *waits)
	}
	d.order.Base = "http://127.0.0.1:1"
	_, err = d.open("").Prompt(t.Context(), "x")
	if err == nil || !strings.Contains(err.Error(), "cannot be reached: connect: connection refused") {
		t.Errorf("%v", err)
	}
}

func TestATurnHasAnEnd(t *testing.T) {
	d := newDesk(t, agent.Chat)
	d.engine.Questions, d.engine.Calls = 3, 5
	for range 10 {
		d.model.Converse("", modeltest.Do(modeltest.Shell("true")), modeltest.Do(modeltest.Shell("true")), modeltest.Do(modeltest.Shell("true")), modeltest.Say("no"))
	}
	if _, err := d.open("").Prompt(t.Context(), "x"); err == nil || !strings.Contains(err.Error(), "after 3 requests") {
		t.Errorf("%v", err)
	}
	c := modeltest.Shell("echo >> count")
	d.model.Converse("", modeltest.Do(c, c, c, c, c, c, c))
	if _, err := d.open("").Prompt(t.Context(), "x"); err == nil || !strings.Contains(err.Error(), "after 5 tool calls") || d.file("count") != strings.Repeat("\n", 5) {
		t.Errorf("%v %q", err, d.file("count"))
	}
}

func TestWordsInTheMiddleOfATurnComeBeforeTheNextQuestion(t *testing.T) {
	onEachWire(t, func(t *testing.T, d *desk) {
		gate := modeltest.NewGate()
		d.model.Converse("", modeltest.Turn{Text: "half|half", Calls: []modeltest.Call{modeltest.Shell("true")}, Middle: gate}, modeltest.Say("All."))
		c := d.open("")
		if c.Steer(t.Context(), "too early") {
			t.Error("it took words with no turn under way")
		}
		done := d.prompt(t.Context(), c, "x")
		<-gate.Reached()
		if !c.Steer(t.Context(), "and y") || !c.Steer(t.Context(), "and z") {
			t.Error("it took no words")
		}
		gate.Open()
		if r := <-done; r.err != nil || r.says != "All." {
			t.Errorf("%+v", r)
		}
		if told := d.model.Told("", "user"); !strings.Contains(told, "and y\n\nand z") {
			t.Errorf("it was told %q", told)
		}
		if c.Steer(t.Context(), "too late") {
			t.Error("it took words after its turn")
		}
	})
}

func TestWordsThatComeWithTheLastAnswerAreAnswered(t *testing.T) {
	d := newDesk(t, agent.Responses)
	gates := []*modeltest.Gate{modeltest.NewGate(), modeltest.NewGate()}
	d.model.Converse("", modeltest.Turn{Text: "half|half", Middle: gates[0]}, modeltest.Turn{Text: "half|half", Middle: gates[1]}, modeltest.Say("Also that."))
	c := d.open("")
	done := d.prompt(t.Context(), c, "x")
	for i := range 2 {
		gate := gates[i]
		<-gate.Reached()
		if !c.Steer(t.Context(), "also y") {
			t.Error("it takes no words")
		}
		gate.Open()
	}
	if r := <-done; r.err != nil || r.says != "Also that." {
		t.Errorf("%+v", r)
	}
}

type result struct {
	says string
	err  error
}

func (d *desk) prompt(ctx context.Context, c agent.Conversation, text string) <-chan result {
	done := make(chan result, 1)
	go func() {
		says, err := c.Prompt(ctx, text)
		done <- result{says, err}
	}()
	return done
}

func TestAnInterruptedTurnEndsAndTheConversationGoesOn(t *testing.T) {
	onEachWire(t, func(t *testing.T, d *desk) {
		gate := modeltest.NewGate()
		d.model.Converse("", modeltest.Do(modeltest.Shell("echo > begun; exec sleep 1000"), modeltest.Write("never", "")), modeltest.Turn{Text: "half|half", Middle: gate}, modeltest.Say("On."))
		begun := filepath.Join(d.engine.Dir, "begun") // its other end says that the command runs
		if err := syscall.Mkfifo(begun, 0o600); err != nil {
			t.Fatal(err)
		}
		c := d.open("")
		why := errors.New("a person said so")
		ctx, stop := context.WithCancelCause(t.Context())
		done := d.prompt(ctx, c, "x")
		if _, err := os.ReadFile(begun); err != nil {
			t.Fatal(err)
		}
		stop(why)
		if r := <-done; !errors.Is(r.err, why) {
			t.Errorf("%+v", r)
		}
		ctx, stop = context.WithCancelCause(t.Context())
		done = d.prompt(ctx, c, "y")
		<-gate.Reached()
		stop(why)
		if r := <-done; !errors.Is(r.err, why) {
			t.Errorf("%+v", r)
		}
		says, err := c.Prompt(t.Context(), "z")
		if err != nil || says != "On." {
			t.Errorf("%q %v", says, err)
		}
		if told := d.model.Told("", "tool"); !strings.Contains(told, "interrupted)") || !strings.Contains(told, "interrupted before it ended") {
			t.Errorf("it was told %q", told)
		}
		if _, err := os.Stat(filepath.Join(d.engine.Dir, "never")); err == nil {
			t.Error("a call was made after the interruption")
		}
	})
}

// A session is killed by leaving its conversation where it is; another engine on the same home goes on.
func TestAKilledSessionGoesOnExactlyWhereItWas(t *testing.T) {
	onEachWire(t, func(t *testing.T, d *desk) {
		gate := modeltest.NewGate()
		d.model.Converse("", modeltest.Do(modeltest.Shell("echo made > made")), modeltest.Turn{Before: gate}, modeltest.Say("On."))
		killed := d.open("")
		ctx, kill := context.WithCancel(t.Context())
		done := d.prompt(ctx, killed, "the request")
		<-gate.Reached()
		kept, err := os.ReadFile(filepath.Join(d.engine.Home, ".sallyport/api.json"))
		if err != nil {
			t.Fatal(err)
		}
		kill()
		<-done
		disktest.Put(t, filepath.Join(d.engine.Home, ".sallyport/api.json"), kept, 0o600)

		d.order.Resumed, d.order.Model = &agent.Resumed{Why: "the daemon died"}, ""
		again := d.open(killed.Session())
		if !again.Loaded() || again.Session() != killed.Session() {
			t.Fatalf("it is %q and was %q", again.Session(), killed.Session())
		}
		if says, err := again.Prompt(t.Context(), "go on"); err != nil || says != "On." {
			t.Fatalf("%q %v", says, err)
		}
		last := d.model.Requests()[2]
		if last.Model != "m1" || len(last.Messages) < 4 {
			t.Errorf("%+v", last)
		}
		user, tool := d.model.Told("", "user"), d.model.Told("", "tool")
		if !strings.Contains(user, "the request") || !strings.Contains(user, "go on") || !strings.Contains(tool, "no output") {
			t.Errorf("it remembers %q and %q", user, tool)
		}
		for _, other := range []string{"", "api-0000"} {
			if c := d.open(other); c.Loaded() {
				t.Errorf("%q is loaded", other)
			}
		}
	})
}

// TestAPipeInThePlaceOfWhatIsKeptHoldsNobodyUp holds that a command of the agent cannot keep every later session of it from beginning.
func TestAPipeInThePlaceOfWhatIsKeptHoldsNobodyUp(t *testing.T) {
	onEachWire(t, func(t *testing.T, d *desk) {
		path := filepath.Join(d.engine.Home, ".sallyport/api.json")
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), syscall.Mkfifo(path, 0o600), syscall.Mkfifo(path+".new", 0o600)); err != nil {
			t.Fatal(err)
		}
		if c := d.open("api-1"); c.Loaded() {
			t.Error("it is loaded")
		}
		if raw, err := os.ReadFile(path); err != nil || !json.Valid(raw) {
			t.Errorf("it keeps %q, %v", raw, err)
		}
	})
}

func TestACallWithoutAResultGetsOneWhenTheSessionGoesOn(t *testing.T) {
	onEachWire(t, func(t *testing.T, d *desk) {
		kept := `{"session":"api-1","wire":"chat","model":"m1","said":[{"role":"user","text":"do it"},{"role":"tool","id":"stray","text":"of nobody"},
			{"role":"assistant","calls":[{"id":"c1","name":"run","args":"{\"command\":\"true\"}"},{"id":"c2","name":"run","args":"{cut"}]},{"role":"tool","id":"c1","text":"fine"}]}`
		if err := os.MkdirAll(filepath.Join(d.engine.Home, ".sallyport"), 0o700); err != nil {
			t.Fatal(err)
		}
		disktest.Put(t, filepath.Join(d.engine.Home, ".sallyport/api.json"), kept, 0o600)
		d.order.Resumed = &agent.Resumed{Why: "killed"}
		c := d.open("api-1")
		d.model.Converse("", modeltest.Say("On."))
		if _, err := c.Prompt(t.Context(), "go on"); err != nil || !c.Loaded() {
			t.Fatal(err)
		}
		told := d.model.Told("", "tool")
		if strings.Count(told, "interrupted before it ended") != 1 || !strings.Contains(told, "fine") || strings.Contains(told, "of nobody") {
			t.Errorf("%q", told)
		}
		for _, r := range d.model.Requests() {
			if !json.Valid(r.Body) || strings.Contains(string(r.Body), "{cut") {
				t.Errorf("%s", r.Body)
			}
		}
	})
}

func TestWhatIsKeptAndCannotBeReadIsNoConversation(t *testing.T) {
	d := newDesk(t, agent.Chat)
	d.order.Resumed = &agent.Resumed{}
	for _, text := range []string{"", "{", `{"session":"api-1","said":[{"role":"god"}]}`, `{"session":"api-1","said":7}`} {
		path := filepath.Join(d.engine.Home, ".sallyport/api.json")
		_ = os.MkdirAll(filepath.Dir(path), 0o700)
		disktest.Put(t, path, text, 0o600)
		if d.open("api-1").Loaded() {
			t.Errorf("%q is a conversation", text)
		}
	}
}

func TestAModelThatKnowsNoStreamsIsUnderstood(t *testing.T) {
	onEachWire(t, func(t *testing.T, d *desk) {
		d.model.NoStreams()
		d.model.Converse("", modeltest.Do(modeltest.Write("x", "y")), modeltest.Say("Made."))
		says, err := d.open("").Prompt(t.Context(), "x")
		if err != nil || says != "Made." || d.file("x") != "y" || !d.show.has("say Made.") {
			t.Errorf("%q %v", says, err)
		}
	})
}

func TestTheModelIsTheUsualOneOrTheFirstThatThereIs(t *testing.T) {
	usual := map[agent.Wire]string{agent.Messages: "claude-sonnet-4-5", agent.Chat: "gpt-5", agent.Responses: "gpt-5"}
	onEachWire(t, func(t *testing.T, d *desk) {
		d.order.Model = ""
		for _, row := range []struct {
			there []string
			want  string
		}{{[]string{"local-1", "local-2"}, "local-1"}, {[]string{"x", usual[d.wire]}, usual[d.wire]}, {nil, usual[d.wire]}} {
			d.model.Models(row.there...)
			if _, err := d.open("").Prompt(t.Context(), "x"); err != nil {
				t.Fatal(err)
			}
			all := d.model.Requests()
			if got := all[len(all)-1].Model; got != row.want {
				t.Errorf("of %q it takes %q", row.there, got)
			}
		}
	})
}

func TestToolsThatAreDeniedAreNotOfferedAndNotDone(t *testing.T) {
	d := newDesk(t, agent.Chat)
	d.order.Denied = []string{"execute"}
	d.model.Converse("", modeltest.Do(modeltest.Call{Name: "run", Args: map[string]string{"command": "echo > ran"}}), modeltest.Say("No."))
	if _, err := d.open("").Prompt(t.Context(), "x"); err != nil {
		t.Fatal(err)
	}
	if told := d.model.Told("", "tool"); !strings.Contains(told, "no tool") || slices.Contains(d.model.Requests()[0].Tools, "run") {
		t.Errorf("%q", told)
	}
	if _, err := os.Stat(filepath.Join(d.engine.Dir, "ran")); err == nil {
		t.Error("it ran")
	}
}

func TestNonsenseOfAModelIsAnsweredAndNotSentBack(t *testing.T) {
	onEachWire(t, func(t *testing.T, d *desk) {
		d.model.Converse("", modeltest.Do(modeltest.Call{Name: "no such tool!", Args: "{}"}, modeltest.Call{Name: "run", Args: `{"command":`},
			modeltest.Call{Name: "run", Args: `[1]`}, modeltest.Call{Name: "read_file", Args: `{"path":7}`}), modeltest.Say("Sorry."))
		if says, err := d.open("").Prompt(t.Context(), "x"); err != nil || says != "Sorry." {
			t.Fatalf("%q %v", says, err)
		}
		told := d.model.Told("", "tool")
		for _, want := range []string{"There is no tool", "no JSON object", "is no text"} {
			if !strings.Contains(told, want) {
				t.Errorf("%q is not in %q", want, told)
			}
		}
		if strings.Contains(string(d.model.Requests()[1].Body), `"name":"no such tool!"`) {
			t.Error("a name that no vendor takes was sent back")
		}
	})
}

func TestAnOrderThatCannotBeServedSaysWhatIsWrong(t *testing.T) {
	d := newDesk(t, agent.Chat)
	for _, o := range []agent.Order{{Wire: agent.Gemini, Base: "http://x"}, {Wire: agent.Chat}} {
		if _, err := d.engine.Open(t.Context(), o, "", d.show); err == nil {
			t.Errorf("%+v was taken", o)
		}
	}
}

func TestAnAnswerThatWasTooLongGoesOnAndOneThatIsRefusedEndsTheTurn(t *testing.T) {
	onEachWire(t, func(t *testing.T, d *desk) {
		d.model.Converse("", modeltest.Turn{Text: "half of", End: modeltest.Long},
			modeltest.Turn{Calls: []modeltest.Call{{Name: "write_file", Args: `{"path":"x","content":"cut`}}, End: modeltest.Long}, modeltest.Say("Whole."))
		says, err := d.open("").Prompt(t.Context(), "x")
		if err != nil || says != "Whole." || !strings.Contains(d.model.Told("", "user"), "greatest length") || !strings.Contains(d.model.Told("", "tool"), "do less at once") {
			t.Errorf("%q %v", says, err)
		}
		d.model.Converse("", modeltest.Turn{Text: "no", End: modeltest.Refused})
		if _, err := d.open("").Prompt(t.Context(), "x"); err == nil || !strings.Contains(err.Error(), "refuses") {
			t.Errorf("%v", err)
		}
	})
}

func TestAConversationThatIsTooLongForTheModelIsShortened(t *testing.T) {
	onEachWire(t, func(t *testing.T, d *desk) {
		d.write("long.txt", strings.Repeat("0123456789abcde\n", 2000))
		read := modeltest.Do(modeltest.Read("long.txt"), modeltest.Read("long.txt"), modeltest.Read("long.txt"), modeltest.Read("long.txt"), modeltest.Read("long.txt"), modeltest.Read("long.txt"), modeltest.Read("long.txt"), modeltest.Read("long.txt"))
		d.model.Converse("", read, modeltest.Turn{Status: 400, Message: "the context is more than this model takes"}, modeltest.Say("Short."))
		says, err := d.open("").Prompt(t.Context(), "x")
		if err != nil || says != "Short." {
			t.Fatalf("%q %v", says, err)
		}
		all := d.model.Requests()
		if len(all) != 3 || len(all[2].Body) > len(all[1].Body)*2/3 {
			t.Errorf("%d requests, of %d and %d bytes", len(all), len(all[1].Body), len(all[2].Body))
		}
		d.model.Converse("", modeltest.Turn{Status: 400, Message: "the context is too long", Times: 100})
		if _, err := d.open("").Prompt(t.Context(), "x"); err == nil || !strings.Contains(err.Error(), "too long") {
			t.Errorf("%v", err)
		}
	})
}

func TestTheModelOfAConversationHasTheHostsTools(t *testing.T) {
	onEachWire(t, func(t *testing.T, d *desk) {
		socket, calls := agenttest.Host(t)
		d.order.Chat, d.order.Tools, d.order.System, d.order.Off = true, socket, "You are called Tulip4711.", []string{"write_file", "cancel_task"}
		d.model.Converse("",
			modeltest.Do(modeltest.Call{Name: "send_message", Args: map[string]string{"text": "in the middle"}}, modeltest.Call{Name: "send_message", Args: map[string]string{"words": "x"}}, modeltest.Call{Name: "cancel_task", Args: map[string]string{"task": "t"}}),
			modeltest.Say("Done."))
		if says, err := d.open("").Prompt(t.Context(), "Say something"); says != "Done." || err != nil {
			t.Errorf("%q, %v", says, err)
		}
		if text := agenttest.Sent(calls); text != "in the middle" || len(calls) > 0 {
			t.Errorf("the host was told %q, and %d more", text, len(calls))
		}
		results := d.model.Told("", "tool")
		for _, want := range []string{`"the host has it"`, "the call of send_message cannot be taken", `There is no tool "cancel_task"`} {
			if !strings.Contains(strings.ReplaceAll(results, `\"`, `"`), want) {
				t.Errorf("the model is not told %s: %s", want, results)
			}
		}
		if len(d.model.Carrying("Tulip4711")) != 2 || len(d.model.Carrying("write_file")) > 0 || len(d.model.Carrying("schedule_task")) == 0 || len(d.model.Carrying("careful software engineer")) > 0 {
			t.Error("it was not told who it is, or which tools it has")
		}
		if !d.show.has("tool other send_message") {
			t.Errorf("it is shown %q", d.show.lines)
		}
	})
}

func TestAHostThatDoesNotAnswerLeavesAnAgentItsOwnTools(t *testing.T) {
	d := newDesk(t, agent.Messages)
	d.order.Chat, d.order.Tools = true, filepath.Join(t.TempDir(), "none")
	d.model.Converse("", modeltest.Say("Hello."))
	if says, err := d.open("").Prompt(t.Context(), "Hello"); says != "Hello." || err != nil || !d.show.has("the tools of the host cannot be used") {
		t.Errorf("%q, %v: %q", says, err, d.show.lines)
	}
}

// TestTheModelThatProposesItsWorkIsToldToCommit holds it for who has tools of the host beside a request, and for nobody else.
func TestTheModelThatProposesItsWorkIsToldToCommit(t *testing.T) {
	for _, proposes := range []bool{true, false} {
		d := newDesk(t, agent.Messages)
		if proposes {
			d.order.Tools, _ = agenttest.Host(t)
		}
		d.model.Converse("", modeltest.Say("Done."))
		if _, err := d.open("").Prompt(t.Context(), "Change it"); err != nil {
			t.Fatal(err)
		}
		if told := len(d.model.Carrying("your commit is what you propose")) == 1; told != proposes {
			t.Errorf("it proposes: %t; it is told: %t", proposes, told)
		}
	}
}
