package acp

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"sallyport/internal/port/agent"
)

func TestAPermissionIsAnsweredByItsKindAndForThisOnce(t *testing.T) {
	const (
		usual   = `[{"optionId":"ever","kind":"allow_always"},{"optionId":"now","kind":"allow_once"},{"optionId":"later","kind":"allow_once"},{"optionId":"no","kind":"reject_once"}]`
		always  = `[{"optionId":"ever","kind":"allow_always"},{"optionId":"never","kind":"reject_always"},{"optionId":"no","kind":"reject_once"}]`
		only    = `[{"optionId":"ever","kind":"allow_always"},{"optionId":"never","kind":"reject_always"}]`
		allowed = `{"outcome":{"optionId":"now","outcome":"selected"}}`
		refused = `{"outcome":{"optionId":"no","outcome":"selected"}}`
		left    = `{"outcome":{"outcome":"cancelled"}}`
	)
	for name, row := range map[string]struct{ call, options, want string }{
		"an edit":                         {`{"toolCallId":"1","kind":"edit"}`, usual, allowed},
		"a command":                       {`{"toolCallId":"1","kind":"execute"}`, usual, allowed},
		"a kind that is denied":           {`{"toolCallId":"1","kind":"fetch"}`, usual, refused},
		"a kind that was told before":     {`{"toolCallId":"told"}`, usual, refused},
		"a kind that nobody knows":        {`{"toolCallId":"1","kind":"conquer"}`, usual, refused},
		"no kind at all":                  {`{"toolCallId":"1"}`, usual, refused},
		"a kind that is no word":          {`{"toolCallId":"1","kind":{"a":1}}`, usual, refused},
		"no call":                         {`null`, usual, refused},
		"nothing that holds once":         {`{"toolCallId":"1","kind":"edit"}`, always, refused},
		"nothing but what holds for ever": {`{"toolCallId":"1","kind":"edit"}`, only, left},
		"no options":                      {`{"toolCallId":"1","kind":"edit"}`, `[]`, left},
		"options of another shape":        {`{"toolCallId":"1","kind":"edit"}`, `{"a":1}`, left},
	} {
		t.Run(name, func(t *testing.T) {
			talk, p := ready(t, agent.Order{Denied: []string{"fetch"}})
			m, done := prompted(t.Context(), talk, p, "Work")
			p.update(`{"sessionUpdate":"tool_call","toolCallId":"told","kind":"fetch","status":"pending"}`)
			p.says(`{"jsonrpc":"2.0","id":"q1","method":"session/request_permission","params":{"sessionId":"s","toolCall":%s,"options":%s}}`, row.call, row.options)
			if a := p.hears(""); string(a.Result) != row.want || string(a.ID) != `"q1"` {
				t.Errorf("%s is answered with %s %s %v, not %s", a.ID, a.Result, a.Params, a.Error, row.want)
			}
			p.answers(m, `{"stopReason":"end_turn"}`)
			if end := <-done; end.err != nil {
				t.Error(end.err)
			}
			if is, want := strings.Contains(p.show.String(), "refused: "), row.want != allowed; is != want {
				t.Errorf("that it was refused is shown: %t\n%s", is, p.show)
			}
		})
	}
}

func TestWhatIsAskedOutsideATurnOrOnceItIsCancelledIsNotAllowed(t *testing.T) {
	const ask = `{"jsonrpc":"2.0","id":0,"method":"session/request_permission","params":{"sessionId":"s","toolCall":{"toolCallId":"1","kind":"edit"},"options":[{"optionId":"now","kind":"allow_once"}]}}`
	talk, p := ready(t, agent.Order{})
	p.says(ask)
	if a := p.hears(""); !strings.Contains(string(a.Result), "cancelled") {
		t.Errorf("between turns it is answered with %s", a.Result)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	m, done := prompted(ctx, talk, p, "Work")
	why := errors.New("somebody wants it to stop")
	cancel(why)
	p.hears("session/cancel")
	p.says(ask)
	if a := p.hears(""); !strings.Contains(string(a.Result), "cancelled") {
		t.Errorf("once it is cancelled it is answered with %s", a.Result)
	}
	p.answers(m, `{"stopReason":"cancelled"}`)
	if end := <-done; !errors.Is(end.err, why) {
		t.Errorf("the turn ended with %v", end.err)
	}
}

func TestFilesAndTerminalsOfItsClientAreNotThere(t *testing.T) {
	_, p := ready(t, agent.Order{})
	for _, method := range []string{"fs/write_text_file", "fs/read_text_file", "terminal/create", "craft/drainMidTurnQueue", "no/such"} {
		p.says(`{"jsonrpc":"2.0","id":7,"method":%q,"params":{"sessionId":"s","path":"/etc/passwd","content":"x"}}`, method)
		if a := p.hears(""); a.Error == nil || a.Error.Code != noMethod {
			t.Errorf("%s is answered with %s", method, a.Result)
		}
	}
}

func TestAKindThatIsRefusedAndUsedWithoutAskingEndsTheTurn(t *testing.T) {
	for name, statuses := range map[string][]string{
		"acp:x":    {"pending", "in_progress"},
		"gemini":   {"completed"},
		"opencode": {"pending", "in_progress", "completed"}, // it asks in progress
	} {
		talk, p := ready(t, agent.Order{Agent: name, Denied: []string{"execute"}})
		m, done := prompted(t.Context(), talk, p, "Work")
		p.update(`{"sessionUpdate":"tool_call","toolCallId":"1","kind":"edit","title":"a.txt","status":"completed"}`)
		for i, status := range statuses {
			p.settled() // nothing was cancelled yet
			kind := ""
			if i == 0 {
				kind = `"kind":"execute",`
			}
			p.update(`{"sessionUpdate":"tool_call_update","toolCallId":"2",` + kind + `"title":"make","status":"` + status + `"}`)
		}
		p.hears("session/cancel")
		p.answers(m, `{"stopReason":"cancelled"}`)
		if end := <-done; end.err == nil || !strings.Contains(end.err.Error(), `"execute"`) {
			t.Errorf("%s: the turn ended with %v", name, end.err)
		}
	}
}

func TestAToolThatWasRefusedFailsNoTurnUnlessItIsUsed(t *testing.T) {
	for _, row := range []struct {
		status, reason string
		fails          bool
	}{{"failed", "end_turn", false}, {"failed", "cancelled", false}, {"in_progress", "end_turn", false}, {"completed", "end_turn", true}} {
		talk, p := ready(t, agent.Order{Denied: []string{"execute"}})
		m, done := prompted(t.Context(), talk, p, "Work")
		p.update(`{"sessionUpdate":"tool_call","toolCallId":"2","kind":"execute","title":"make","status":"pending"}`)
		p.says(`{"jsonrpc":"2.0","id":1,"method":"session/request_permission","params":{"sessionId":"s","toolCall":{"toolCallId":"2"},"options":[{"optionId":"no","kind":"reject_once"}]}}`)
		p.hears("")
		p.update(`{"sessionUpdate":"tool_call_update","toolCallId":"2","status":"` + row.status + `"}`)
		if row.fails {
			p.hears("session/cancel")
		}
		p.answers(m, `{"stopReason":"`+row.reason+`"}`)
		if end := <-done; (end.err != nil) != row.fails {
			t.Errorf("%+v: %v", row, end.err)
		}
		if strings.Contains(p.show.String(), "failed: ") {
			t.Errorf("%+v: what was refused is told to have failed\n%s", row, p.show)
		}
	}
}

func TestHowATurnEnded(t *testing.T) {
	for answer, want := range map[string]string{
		`{"stopReason":"end_turn"}`:          "",
		`{"stopReason":"max_tokens"}`:        "limit of tokens",
		`{"stopReason":"max_turn_requests"}`: "limit of requests",
		`{"stopReason":"refusal"}`:           "refused to go on",
		`{"stopReason":"cancelled"}`:         "by itself",
		`{"stopReason":"weird"}`:             "does not know: weird",
		`{"stopReason":17}`:                  "does not know",
		`{}`:                                 "does not know",
		`null`:                               "does not know",
		`[1]`:                                "does not know",
	} {
		talk, p := ready(t, agent.Order{})
		m, done := prompted(t.Context(), talk, p, "Work")
		p.answers(m, answer)
		end := <-done
		if (end.err == nil) != (want == "") || end.err != nil && !strings.Contains(end.err.Error(), want) {
			t.Errorf("%s: %v", answer, end.err)
		}
	}
}

func TestAFailedTurnThatLooksDoneHasFailed(t *testing.T) {
	const (
		broken  = `{"sessionUpdate":"session_info_update","_meta":{"codex":{"threadStatus":{"type":"systemError"}}}}`
		trouble = `{"sessionUpdate":"session_info_update","_meta":{"codex":{"error":{"message":"unexpected status 403 Forbidden: no","willRetry":false}}}}`
		retried = `{"sessionUpdate":"session_info_update","_meta":{"codex":{"error":{"message":"Reconnecting... 1/5","willRetry":true}}}}`
		text    = `{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"exceeded retry limit, last status: 429 Too Many Requests"}}`
		fine    = `{"sessionUpdate":"agent_message_chunk","messageId":"1","content":{"type":"text","text":"Done."}}`
		used    = `{"stopReason":"end_turn","usage":{"inputTokens":1}}`
		unused  = `{"stopReason":"end_turn","usage":null}`
	)
	for name, row := range map[string]struct {
		agent   string
		updates []string
		answer  string
		want    string
	}{
		"done":                     {"codex-acp", []string{retried, fine}, used, ""},
		"the thread is in error":   {"codex-acp", []string{text, broken}, used, "(429)"},
		"nothing was used":         {"codex-acp", []string{trouble, fine}, unused, "(403)"},
		"nothing is said of it":    {"codex-acp", []string{retried}, unused, "it did not say why"},
		"of an agent without this": {"gemini", []string{text, broken}, unused, ""},
	} {
		talk, p := ready(t, agent.Order{Agent: row.agent})
		m, done := prompted(t.Context(), talk, p, "Work")
		for _, u := range row.updates {
			p.update(u)
		}
		p.answers(m, row.answer)
		if end := <-done; (end.err == nil) != (row.want == "") || end.err != nil && !strings.Contains(end.err.Error(), row.want) {
			t.Errorf("%s: %v", name, end.err)
		}
	}
}

func TestAnAgentThatDoesNotStopIsEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		talk, p := ready(t, agent.Order{})
		ctx, cancel := context.WithCancel(t.Context())
		_, done := prompted(ctx, talk, p, "Work")
		cancel()
		p.hears("session/cancel")
		begun := time.Now()
		if end := <-done; end.err == nil || !strings.Contains(end.err.Error(), "did not stop") || time.Since(begun) != cancelMax {
			t.Errorf("after %s: %v", time.Since(begun), end.err)
		}
		<-p.done
		if _, err := talk.Prompt(t.Context(), "Go on"); err == nil {
			t.Error("it took another turn")
		}
	})
}

func TestAnAgentThatDoesNotReadIsLeft(t *testing.T) {
	talk, p := play(t, agent.Order{})
	p.deaf = true
	for range 2 * queueMax {
		p.says(`{"jsonrpc":"2.0","id":1,"method":"fs/read_text_file","params":{}}`)
	}
	<-talk.conn.gone
	if _, err := talk.Prompt(t.Context(), "Work"); err == nil || !strings.Contains(err.Error(), "does not read") {
		t.Errorf("%v", err)
	}
}

func TestAnAgentThatMakesNoSenseIsLeftAndOneThatChatsIsNot(t *testing.T) {
	talk, p := ready(t, agent.Order{})
	m, done := prompted(t.Context(), talk, p, "Work")
	for range strayMax - 1 {
		p.says("Ripgrep is not available.")
	}
	p.update(`{"sessionUpdate":"plan","entries":[]}`)
	p.says("\x00\xff")
	p.answers(m, `{"stopReason":"end_turn"}`)
	if end := <-done; end.err != nil {
		t.Fatal(end.err)
	}
	_, done = prompted(t.Context(), talk, p, "Work")
	for range strayMax {
		p.says("[17]")
	}
	if end := <-done; end.err == nil || !strings.Contains(end.err.Error(), "is not ACP") {
		t.Errorf("%v", end.err)
	}
}

func TestWordsInTheMiddleOfATurn(t *testing.T) {
	for outcome, want := range map[string]bool{
		`{"outcome":"injected"}`: true, `{"outcome":"promptRequired"}`: false, `{"outcome":"startedNewTurn"}`: false, `null`: false,
	} {
		talk, p := ready(t, agent.Order{})
		if talk.Steer(t.Context(), "Early") {
			t.Error("it takes words between turns")
		}
		m, done := prompted(t.Context(), talk, p, "Work")
		taken := make(chan bool, 1)
		go func() { taken <- talk.Steer(t.Context(), "And this") }()
		p.answers(p.hears("_session/steering"), outcome)
		if is := <-taken; is != want {
			t.Errorf("%s: taken %t", outcome, is)
		}
		p.answers(m, `{"stopReason":"end_turn"}`)
		<-done
	}
}

func TestWordsForAnAgentThatAsksForThem(t *testing.T) {
	talk, p := ready(t, agent.Order{Agent: "qwen"})
	m, done := prompted(t.Context(), talk, p, "Work")
	if !talk.Steer(t.Context(), "one") || !talk.Steer(t.Context(), "two") {
		t.Fatal("it takes no words")
	}
	const drain = `{"jsonrpc":"2.0","id":5,"method":"craft/drainMidTurnQueue","params":{"sessionId":"s"}}`
	p.says(drain)
	if a := p.hears(""); string(a.Result) != `{"hasQueuedPrompt":false,"messages":["one","two"]}` {
		t.Errorf("it is given %s", a.Result)
	}
	p.says(drain)
	if a := p.hears(""); string(a.Result) != `{"hasQueuedPrompt":false,"messages":[]}` {
		t.Errorf("then it is given %s", a.Result)
	}
	if !talk.Steer(t.Context(), "three") {
		t.Fatal("it takes no words")
	}
	p.answers(m, `{"stopReason":"end_turn"}`) // without asking again
	m = p.hears("session/prompt")
	if !strings.Contains(string(m.Params), "three") {
		t.Errorf("its next turn is %s", m.Params)
	}
	p.answers(m, `{"stopReason":"end_turn"}`)
	if end := <-done; end.err != nil {
		t.Error(end.err)
	}
}

func TestWordsThatWaitOutliveAKill(t *testing.T) {
	talk, p := ready(t, agent.Order{Agent: "qwen"})
	_, done := prompted(t.Context(), talk, p, "Work")
	if !talk.Steer(t.Context(), "And this") {
		t.Fatal("it takes no words")
	}
	p.Close()
	if end := <-done; end.err == nil {
		t.Fatal("a turn of an agent that is gone went well")
	}
	home := talk.at.home
	talk, p = play(t, agent.Order{Agent: "qwen"})
	talk.at.home = home
	opened := opening(talk, "old")
	p.answers(p.hears("initialize"), `{"protocolVersion":1,"agentCapabilities":{"sessionCapabilities":{"resume":{}}}}`)
	p.answers(p.hears("session/resume"), `{}`)
	if err := <-opened; err != nil {
		t.Fatal(err)
	}
	m, done := prompted(t.Context(), talk, p, "Go on")
	p.answers(m, `{"stopReason":"end_turn"}`)
	if m = p.hears("session/prompt"); !strings.Contains(string(m.Params), "And this") {
		t.Errorf("it is told %s", m.Params)
	}
	p.answers(m, `{"stopReason":"end_turn"}`)
	if end := <-done; end.err != nil {
		t.Error(end.err)
	}
	if left, _ := filepath.Glob(filepath.Join(home, ".sallyport/*")); len(left) != 0 {
		t.Errorf("%q is left", left)
	}
}

func TestWordsAsAnotherPromptOfTheSameTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		talk, p := ready(t, agent.Order{Agent: "opencode"})
		first, done := prompted(t.Context(), talk, p, "Work")
		if !talk.Steer(t.Context(), "And this") {
			t.Fatal("it takes no words")
		}
		second := p.hears("session/prompt")
		p.answers(first, `{"stopReason":"end_turn"}`)
		synctest.Wait()
		if len(done) > 0 {
			t.Fatal("the turn is over before the words that were given in it are answered")
		}
		p.update(`{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"Both."}}`)
		p.answers(second, `{"stopReason":"end_turn"}`)
		if end := <-done; end.err != nil || end.says != "Both." {
			t.Errorf("%q, %v", end.says, end.err)
		}
		if talk.Steer(t.Context(), "Late") {
			t.Error("it takes words after the turn")
		}
	})
}
