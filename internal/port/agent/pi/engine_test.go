package pi_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"sallyport/internal/port/agent"
	"sallyport/internal/port/agent/agenttest"
	"sallyport/internal/port/agent/agenttest/scripttest"
	"sallyport/internal/port/agent/pi"
)

// order is for a fake pi that does these turns.
func order(t *testing.T, turns ...[]agenttest.Deed) agent.Order {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return agent.Order{
		Engine: pi.Name, Agent: "pi", Argv: []string{self, "--mode", "rpc"}, Env: []string{scripttest.Script(turns)},
		Wire: agent.Messages, Base: agent.ModelBase, Model: "claude-known", Text: "Put it right",
	}
}

func TestTheEngineHoldsThePortsPromises(t *testing.T) {
	agenttest.Engine(t, agenttest.Subject{
		Steers: true, Loads: true, Scripted: true,
		Make: func(t *testing.T, _, _ string, turns [][]agenttest.Deed) (agent.Engine, agent.Order) {
			return pi.Engine{}, order(t, turns...)
		},
	})
}

// desk is a workspace and a home folder for one pi.
type desk struct {
	t         *testing.T
	dir, home string
	show      *agenttest.Shown
}

func newDesk(t *testing.T) *desk {
	d := &desk{t: t, dir: t.TempDir(), home: t.TempDir(), show: &agenttest.Shown{}}
	t.Chdir(d.dir)
	t.Setenv("HOME", d.home)
	return d
}

func (d *desk) open(o agent.Order, last string) agent.Conversation {
	d.t.Helper()
	talk, err := pi.Engine{}.Open(d.t.Context(), o, last, d.show)
	if err != nil {
		d.t.Fatal(err)
	}
	d.t.Cleanup(func() { _ = talk.Close() }) // closed already is as good
	return talk
}

// prompt is a turn of a new conversation.
func (d *desk) prompt(o agent.Order) (string, error) {
	d.t.Helper()
	return d.open(o, "").Prompt(d.t.Context(), "Work")
}

// kept is what the fake noted in its home folder.
func (d *desk) kept(name string) string {
	raw, _ := os.ReadFile(filepath.Join(d.home, name)) // none is as good
	return string(raw)
}

func (d *desk) put(path, text string) {
	d.t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		d.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		d.t.Fatal(err)
	}
}

const (
	erring  = `{"type":"message_end","message":{"role":"assistant","content":[],"stopReason":"error","errorMessage":"429 {\"error\":{\"message\":\"a budget is used up\"}}"}}` + "\n"
	begins  = `{"type":"agent_start"}` + "\n"
	ends    = `{"type":"agent_end","messages":[]}` + "\n"
	retries = `{"type":"auto_retry_start","attempt":1,"maxAttempts":3,"delayMs":2000,"errorMessage":"429 {\"error\":{\"message\":\"a budget is used up\"}}"}` + "\n"
	gaveUp  = `{"type":"auto_retry_end","success":false,"attempt":3,"finalError":"429"}` + "\n"
	sumsUp  = `{"type":"compaction_start","reason":"overflow"}` + "\n"
	summed  = `{"type":"compaction_end","reason":"overflow","aborted":false,"willRetry":true}` + "\n"
	stuck   = `{"type":"compaction_end","reason":"overflow","aborted":false,"willRetry":false,"errorMessage":"Context overflow recovery failed: no"}` + "\n"
)

func print(lines ...string) agenttest.Deed { return agenttest.Deed{Print: strings.Join(lines, "")} }

func TestATurnIsOverWhenPiStandsStillAndNotBefore(t *testing.T) {
	last := agenttest.Deed{Say: "It is done."}
	for name, test := range map[string]struct {
		deeds []agenttest.Deed
		shown string
		err   string
	}{
		"it tries again":                       {[]agenttest.Deed{print(erring, ends, retries, begins), last}, "note: the model's endpoint takes no more requests at the moment: there were too many, or a budget is used up: 429 a budget is used up; pi asks again in 2s", ""},
		"it tries again, asked meanwhile":      {[]agenttest.Deed{print(erring, ends), {Await: awaitBusy}, print(retries, begins), last}, "asks again", ""},
		"it waits before it tries again":       {[]agenttest.Deed{print(erring, ends, retries), {Await: awaitIdle}, print(begins), last}, "asks again", ""},
		"it gives up waiting":                  {[]agenttest.Deed{print(erring, ends, retries, gaveUp)}, "", "a budget is used up"},
		"it gives up trying":                   {[]agenttest.Deed{print(erring, ends, retries, begins, erring, ends, gaveUp)}, "", "a budget is used up"},
		"it sums up and goes on":               {[]agenttest.Deed{print(erring, ends, sumsUp, summed, begins), last}, "sums it up", ""},
		"it sums up, stands still and goes on": {[]agenttest.Deed{print(erring, ends, sumsUp, summed), {Await: awaitIdle}, {Await: awaitIdle}, print(begins), last}, "sums it up", ""},
		"it cannot sum up":                     {[]agenttest.Deed{print(erring, ends, sumsUp, stuck)}, "Context overflow recovery failed", "a budget is used up"},
		"it is busy after its end":             {[]agenttest.Deed{print(ends), {Await: awaitBusy}, {Await: awaitBusy}, print(begins), last}, "", ""},
		"an end that nobody expects":           {[]agenttest.Deed{print(ends, ends, ends), {Await: awaitBusy}, print(begins), last}, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDesk(t)
			// It is asked once when it has taken the words: what is awaited after that is about an end.
			says, err := d.prompt(order(t, append([]agenttest.Deed{{Await: awaitBusy}}, test.deeds...)))
			switch {
			case test.err == "" && (err != nil || says != "It is done."):
				t.Errorf("%q, %v", says, err)
			case test.err != "" && (err == nil || !strings.Contains(err.Error(), test.err)):
				t.Errorf("%v", err)
			}
			if !strings.Contains(d.show.String(), test.shown) {
				t.Errorf("shown:\n%s", d.show)
			}
		})
	}
}

func TestWordsThatLieThereWhenPiStandsStillAreDelivered(t *testing.T) {
	d := newDesk(t)
	talk := d.open(order(t, []agenttest.Deed{{Await: awaitBusy}, print(ends), {Await: awaitLeft}}, []agenttest.Deed{{Say: "I read them."}}), "")
	if says, err := talk.Prompt(t.Context(), "Work"); err != nil || says != "I read them." {
		t.Errorf("%q, %v", says, err)
	}
}

func TestATurnThatIsInterruptedBeforeItBeganIsOver(t *testing.T) {
	d := newDesk(t)
	talk := d.open(order(t, []agenttest.Deed{{Hang: true}}, []agenttest.Deed{{Say: "On."}}), "")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := talk.Prompt(ctx, "Work"); !errors.Is(err, context.Canceled) || d.kept("aborted") != "yes\n" {
		t.Errorf("%v, aborted: %q", err, d.kept("aborted"))
	}
	if says, err := talk.Prompt(t.Context(), "Go on"); err != nil || says != "On." {
		t.Errorf("%q, %v", says, err)
	}
}

func TestARequestThatPiRefusesIsAFailedTurn(t *testing.T) {
	d := newDesk(t)
	talk := d.open(order(t, []agenttest.Deed{{Say: "Here."}}), "")
	if _, err := talk.Prompt(t.Context(), "refuse this"); err == nil || !strings.Contains(err.Error(), "No API key found") {
		t.Errorf("%v", err)
	}
	if says, err := talk.Prompt(t.Context(), "Go on"); err != nil || says != "Here." {
		t.Errorf("%q, %v", says, err)
	}
}

func TestWordsThatPiRefusesAreNotTaken(t *testing.T) {
	d := newDesk(t)
	talk := d.open(order(t, []agenttest.Deed{{Write: "begun", Content: "x"}, {Await: awaitRefuse}, {Say: "On."}}), "")
	if talk.Steer(t.Context(), "too early") {
		t.Error("words were taken with no turn under way")
	}
	done := make(chan error, 1)
	go func() {
		_, err := talk.Prompt(t.Context(), "Work")
		done <- err
	}()
	for _, err := os.Stat("begun"); err != nil; _, err = os.Stat("begun") {
		runtime.Gosched()
	}
	if talk.Steer(t.Context(), "And this") {
		t.Error("words that pi refused were taken")
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
	if talk.Steer(t.Context(), "too late") {
		t.Error("words were taken after the turn")
	}
}

func TestWordsForAPiThatIsGoneAreNotTaken(t *testing.T) {
	d := newDesk(t)
	talk := d.open(order(t, []agenttest.Deed{{Die: true}}), "")
	if _, err := talk.Prompt(t.Context(), "Work"); err == nil || !strings.Contains(err.Error(), "Reached heap limit") {
		t.Errorf("%v", err)
	}
	if talk.Steer(t.Context(), "And this") {
		t.Error("words were taken")
	}
}

func TestQuestionsOfExtensionsAreAnsweredByKindAndAtOnce(t *testing.T) {
	const calls, writes = `{"type":"tool_execution_start","toolCallId":"x1","toolName":"bash","args":{"command":"ls"}}` + "\n",
		`{"type":"tool_execution_start","toolCallId":"x2","toolName":"write","args":{"path":"a"}}` + "\n"
	asks := func(method string) string {
		return `{"type":"extension_ui_request","id":"q1","method":"` + method + `","title":"May it?","message":"{}"}` + "\n"
	}
	for name, test := range map[string]struct {
		deeds  []agenttest.Deed
		denied []string
		answer string
	}{
		"about a call that is allowed":       {[]agenttest.Deed{print(calls, asks("confirm"))}, nil, `"confirmed":true`},
		"about a call that is denied":        {[]agenttest.Deed{print(calls, asks("confirm"))}, []string{"execute"}, `"confirmed":false`},
		"about calls of which one is denied": {[]agenttest.Deed{print(calls, writes, asks("confirm"))}, []string{"edit"}, `"confirmed":false`},
		"about nothing":                      {[]agenttest.Deed{print(asks("confirm"))}, nil, `"confirmed":false`},
		"a choice":                           {[]agenttest.Deed{print(calls, asks("select"))}, nil, `"cancelled":true`},
		"a text":                             {[]agenttest.Deed{print(calls, asks("input"))}, nil, `"cancelled":true`},
		"a long text":                        {[]agenttest.Deed{print(calls, asks("editor"))}, nil, `"cancelled":true`},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDesk(t)
			o := order(t, append(test.deeds, agenttest.Deed{Await: awaitAnswer}, agenttest.Deed{Say: "On."}))
			o.Denied = test.denied
			if _, err := d.prompt(o); err != nil {
				t.Fatal(err)
			}
			if got := d.kept("answers"); !strings.Contains(got, test.answer) || !strings.Contains(got, `"id":"q1"`) || strings.Count(got, "\n") != 1 {
				t.Errorf("it was told %q", got)
			}
			if !strings.Contains(d.show.String(), "note: an extension asks May it?") {
				t.Errorf("shown:\n%s", d.show)
			}
		})
	}
}

func TestALongMessageIsShownOnceAndAsItComesIfItCanBe(t *testing.T) {
	const piece, times = "0123456789abcdef", 20 << 10
	long := agenttest.Deed{Print: piece, Times: times}
	// As pi writes it, and with what is new at the end.
	update := func(all agenttest.Deed, delta string) []agenttest.Deed {
		return []agenttest.Deed{
			print(`{"type":"message_update","assistantMessageEvent":{"type":"text_delta","contentIndex":0,"delta":"` + delta + `","partial":{"content":[{"type":"text","text":"`), all,
			print(`"}]}},"message":{"role":"assistant","content":[{"type":"text","text":"`), all, print("\"}]}}\n"),
		}
	}
	behind := func(all agenttest.Deed, delta string) []agenttest.Deed {
		return []agenttest.Deed{
			print(`{"type":"message_update","message":{"role":"assistant","content":[{"type":"text","text":"`), all,
			print(`"}]},"assistantMessageEvent":{"type":"text_delta","contentIndex":0,"delta":"` + delta + `"}}` + "\n"),
		}
	}
	d := newDesk(t)
	says, err := d.prompt(order(t, slices.Concat(
		update(print(piece), piece), behind(print(piece), piece), update(long, piece), behind(long, "not read"), update(long, "not in order"),
		[]agenttest.Deed{print(`{"type":"message_end","message":{"role":"assistant","stopReason":"stop","content":[{"type":"text","text":"`), long, print("END\"}]}}\n")},
		[]agenttest.Deed{print(`{"type":"agent_end","messages":["`), long, print("\"]}\n")},
	)))
	if err != nil || !strings.HasSuffix(says, "END") || len(says) > 64<<10 {
		t.Errorf("%d bytes, %v", len(says), err)
	}
	if got := strings.TrimSpace(d.show.String()); got != strings.Repeat(piece, times)+"END" {
		t.Errorf("%d bytes are shown of %d", len(got), len(piece)*times+3)
	}
}

func TestWhatPiDoesIsShown(t *testing.T) {
	call := func(tool, args string) string {
		return `{"type":"tool_execution_start","toolCallId":"x","toolName":"` + tool + `","args":` + args + "}\n"
	}
	d := newDesk(t)
	_, err := d.prompt(order(t, []agenttest.Deed{
		{Think: "Hm."}, print(call("bash", `{"command":"go test"}`), call("grep", `{"pattern":"x+","path":"a"}`), call("ls", `{"path":"b"}`), call("edit", `{"path":"c","edits":[]}`),
			call("other", `{}`), call("read", `17`)),
		print(`{"type":"extension_ui_request","id":"n","method":"notify","message":"Look"}`+"\n", `{"type":"extension_error","error":"broke"}`+"\n"),
		print(`{"type":"message_end","message":{"role":"assistant","content":[],"stopReason":"length"}}` + "\n"),
	}))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"~ Hm.", "[execute] go test", "[search] grep x+", "[read] b", "[edit] c", "[other] other", "[read] read", "note: an extension says: Look",
		"note: an extension failed: broke", "greatest length"} {
		if !strings.Contains(d.show.String(), want) {
			t.Errorf("%q is not in\n%s", want, d.show)
		}
	}
}

func TestASessionThatPiCannotLoadBeginsAnew(t *testing.T) {
	const name = "pi-0123456789abcdef"
	for what, test := range map[string]struct {
		kept, last string
		loaded     bool
		shown      string
	}{
		"kept":            {"{\"role\":\"user\"}\n", name, true, ""},
		"half a line":     {"{\"role\":\"user\"}\n{\"ro", name, true, ""},
		"only half":       {"{\"role\":\"us", name, false, ""},
		"nothing":         {"", name, false, ""},
		"refused":         {"poison\n", name, false, "starts a new one"},
		"another's":       {"{}\n", "../../x", false, ""},
		"of another kind": {"{}\n", "api-0123456789abcdef", false, ""},
	} {
		t.Run(what, func(t *testing.T) {
			d := newDesk(t)
			file := filepath.Join(d.home, ".pi", "agent", "sessions", name+".jsonl")
			d.put(file, test.kept)
			d.put(filepath.Join(d.home, ".pi", "x.jsonl"), "{}\n")
			d.put(filepath.Join(d.home, ".pi", "agent", "sessions", "api-0123456789abcdef.jsonl"), "{}\n")
			talk := d.open(order(t), test.last)
			if talk.Loaded() != test.loaded || (talk.Session() == name) != test.loaded {
				t.Errorf("%s is loaded: %t", talk.Session(), talk.Loaded())
			}
			if test.shown == "" != (d.show.String() == "") || !strings.Contains(d.show.String(), test.shown) {
				t.Errorf("shown: %s", d.show)
			}
			raw, err := os.ReadFile(file)
			if err != nil || test.loaded && !strings.HasSuffix(string(raw), "}\n") {
				t.Errorf("%q %v", raw, err)
			}
		})
	}
}

func TestPiAsksTheModelThatItShouldAndNoOther(t *testing.T) {
	for name, test := range map[string]struct {
		wire        agent.Wire
		model       string
		flags, sets string
		base        string
	}{
		"that pi knows":        {agent.Messages, "claude-known", "--provider anthropic --model claude-known", "", agent.ModelBase},
		"that it does not":     {agent.Messages, "test-model", "--provider anthropic --model test-model", "sallyport/test-model\n", agent.ModelBase},
		"by chat":              {agent.Chat, "test-model", "--provider sallyport --model test-model", "", agent.ModelBase},
		"the usual one":        {agent.Gemini, "", "--provider google --model gemini-2.5-pro", "sallyport/gemini-2.5-pro\n", agent.ModelBase + "/v1beta"},
		"the usual, responses": {agent.Responses, "", "--provider openai --model gpt-5", "sallyport/gpt-5\n", agent.ModelBase},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDesk(t)
			d.put(filepath.Join(d.home, ".pi/agent/auth.json"), `{"anthropic":{"type":"api_key","key":"old"}}`)
			d.put(filepath.Join(d.home, "other"), "somebody's")
			if err := os.Symlink(filepath.Join(d.home, "other"), filepath.Join(d.home, ".pi/agent/models.json")); err != nil {
				t.Fatal(err)
			}
			o := order(t)
			o.Wire, o.Model = test.wire, test.model
			d.open(o, "")
			if !strings.Contains(d.kept("args"), test.flags) || d.kept("model") != test.sets {
				t.Errorf("it was started with %q and told %q", d.kept("args"), d.kept("model"))
			}
			var models struct {
				Providers map[string]struct{ BaseURL, APIKey string }
			}
			if err := json.Unmarshal([]byte(d.kept(".pi/agent/models.json")), &models); err != nil || len(models.Providers) == 0 {
				t.Fatal(err)
			}
			for provider, is := range models.Providers {
				if is.BaseURL != test.base || is.APIKey != agent.DummyKey {
					t.Errorf("%s: %+v", provider, is)
				}
			}
			if d.kept("other") != "somebody's" {
				t.Errorf("it wrote through a link: %s", d.kept("other"))
			}
			if d.kept(".pi/agent/auth.json") != "{}\n" {
				t.Errorf("%s", d.kept(".pi/agent/auth.json"))
			}
		})
	}
}

func TestToolsThatAreDeniedAreNotThere(t *testing.T) {
	for denied, want := range map[string]string{
		"": "", "fetch": "", "execute": " --tools read,edit,write", "edit": " --tools read,bash", "read,execute,edit": " --no-tools",
	} {
		d := newDesk(t)
		o := order(t)
		o.Denied = strings.Split(denied, ",")
		_ = d.open(o, "").Close()
		_, after, _ := strings.Cut(strings.TrimSpace(d.kept("args")), ".jsonl")
		if after != want {
			t.Errorf("%q: %q", denied, after)
		}
	}
}

func TestToolsThatAreOffAreNotThere(t *testing.T) {
	for off, want := range map[string]string{
		"": "", "schedule_task": "", "bash": " --tools read,edit,write", "read,bash,edit,write": " --no-tools",
	} {
		d := newDesk(t)
		o := order(t)
		o.Off = strings.Split(off, ",")
		_ = d.open(o, "").Close()
		_, after, _ := strings.Cut(strings.TrimSpace(d.kept("args")), ".jsonl")
		if after != want {
			t.Errorf("%q: %q", off, after)
		}
	}
}

func TestAnOrderThatCannotBeServedSaysWhatIsWrong(t *testing.T) {
	d := newDesk(t)
	for _, o := range []agent.Order{{Wire: "telepathy", Base: "http://x"}, {Wire: agent.Chat}} {
		if _, err := (pi.Engine{}).Open(t.Context(), o, "", d.show); err == nil {
			t.Errorf("%+v was taken", o)
		}
	}
}

func TestARepositorysFolderForPiIsToldAndLeftAsItIs(t *testing.T) {
	d := newDesk(t)
	d.put(".pi/commands/x.md", "x")
	o := order(t)
	d.open(o, "")
	if !strings.Contains(d.show.String(), "has a folder .pi") {
		t.Errorf("shown: %s", d.show)
	}
}
