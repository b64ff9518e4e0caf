package acp

import (
	"strconv"
	"strings"
	"testing"

	"sallyport/internal/port/agent"
)

func TestWhatAnAgentDoesIsShown(t *testing.T) {
	for name, row := range map[string]struct {
		updates []string
		want    string
		says    string
	}{
		"a message in pieces": {[]string{
			`{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"I am "}}`,
			`{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"here."}}`,
		}, "I am \nhere.\n", "I am here."},
		"two messages": {[]string{
			`{"sessionUpdate":"agent_message_chunk","messageId":"1","content":{"type":"text","text":"One."}}`,
			`{"sessionUpdate":"agent_message_chunk","messageId":"2","content":{"type":"text","text":"Two."}}`,
		}, "One.\n\n\nTwo.\n", "Two."},
		"the last words are those after the last tool": {[]string{
			`{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"Before."}}`,
			`{"sessionUpdate":"tool_call","toolCallId":"1","kind":"read","title":"a.txt","status":"in_progress"}`,
			`{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"After."}}`,
		}, "Before.\n[read] a.txt\nAfter.\n", "After."},
		"a thought": {[]string{`{"sessionUpdate":"agent_thought_chunk","content":{"type":"text","text":"hm"}}`}, "~ hm\n", ""},
		"a tool that is announced, runs and ends is shown once": {[]string{
			`{"sessionUpdate":"tool_call","toolCallId":"1","kind":"execute","title":"Shell","status":"pending"}`,
			`{"sessionUpdate":"tool_call_update","toolCallId":"1","title":"make test","status":"in_progress"}`,
			`{"sessionUpdate":"tool_call_update","toolCallId":"1","status":"completed"}`,
		}, "[execute] make test\n", ""},
		"a tool that failed": {[]string{
			`{"sessionUpdate":"tool_call","toolCallId":"1","kind":"execute","title":"make","status":"in_progress"}`,
			`{"sessionUpdate":"tool_call_update","toolCallId":"1","status":"failed"}`,
			`{"sessionUpdate":"tool_call_update","toolCallId":"1","status":"failed"}`,
		}, "[execute] make\n[execute] failed: make\n", ""},
		"the file of an edit": {[]string{
			`{"sessionUpdate":"tool_call","toolCallId":"1","kind":"edit","title":"Editing","status":"completed","content":[{"type":"diff","path":"/srv/sub/a.go"}]}`,
			`{"sessionUpdate":"tool_call","toolCallId":"2","kind":"edit","title":"Edit b.go","status":"completed","locations":[{"path":"/srv/b.go"}]}`,
			`{"sessionUpdate":"tool_call","toolCallId":"3","kind":"edit","title":"","status":"completed","locations":[{"path":"/srvs/c.go"}]}`,
		}, "[edit] Editing sub/a.go\n[edit] Edit b.go\n[edit] /srvs/c.go\n", ""},
		"a tool without a kind": {[]string{`{"sessionUpdate":"tool_call","toolCallId":"1","title":"x","status":"completed"}`}, "[other] x\n", ""},
		"a plan, when it changes": {[]string{
			`{"sessionUpdate":"plan","entries":[{"content":"look","status":"in_progress"},{"content":"mend","status":"pending"}]}`,
			`{"sessionUpdate":"plan","entries":[{"content":"look","status":"in_progress"},{"content":"mend","status":"pending"}]}`,
			`{"sessionUpdate":"plan","entries":[{"content":"look","status":"completed"},{"content":"mend","status":"in_progress"}]}`,
		}, "~ plan:\n[>] look\n[ ] mend\n\n~ plan:\n[x] look\n[>] mend\n\n", ""},
		"what says nothing": {[]string{
			`{"sessionUpdate":"agent_message_chunk","content":{"type":"image","data":"xxxx"}}`, `{"sessionUpdate":"agent_message_chunk","content":[1]}`,
			`{"sessionUpdate":"agent_message_chunk"}`, `{"sessionUpdate":"brand_new","content":{"type":"text","text":"x"}}`, `null`, `17`, `{"sessionUpdate":5}`,
			`{"sessionUpdate":"user_message_chunk","content":{"type":"text","text":"Work"}}`, `{"sessionUpdate":"plan","entries":{"a":1}}`,
		}, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			talk, p := ready(t, agent.Order{})
			p.update(`{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"between turns"}}`)
			p.settled()
			m, done := prompted(t.Context(), talk, p, "Work")
			p.says(`{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"other","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"another's"}}}}`)
			for _, u := range row.updates {
				p.update(u)
			}
			p.answers(m, `{"stopReason":"end_turn"}`)
			end := <-done
			if end.err != nil || end.says != row.says || p.show.String() != row.want {
				t.Errorf("%v; it says %q, not %q; shown:\n%s\nnot:\n%s", end.err, end.says, row.says, p.show, row.want)
			}
		})
	}
}

func TestWhatATurnHoldsIsBounded(t *testing.T) {
	talk, _ := play(t, agent.Order{})
	u := newTurn()
	for range 100 {
		talk.say(u, update{Content: []byte(`{"type":"text","text":"` + strings.Repeat("é", 5000) + `"}`)})
	}
	if len(u.says) > lastMax || !strings.HasSuffix(u.last(), "é") || strings.Contains(u.last(), "\uFFFD") {
		t.Errorf("%d bytes", len(u.says))
	}
	for i := range 2 * callsMax {
		talk.tool(u, update{Call: strconv.Itoa(i), Title: "t"})
	}
	if _, there := u.calls["0"]; len(u.calls) != callsMax || !there {
		t.Errorf("%d calls", len(u.calls))
	}
	u = newTurn()
	talk.tool(u, update{Call: strings.Repeat("x", idMax+1), Kind: strings.Repeat("k", kindMax+1), Title: strings.Repeat("t", 1<<20)})
	if len(u.calls) != 0 {
		t.Error("a call of any name is kept")
	}
	for range 2 * queuedMax {
		talk.dialect.drains, talk.turn = true, u
		talk.Steer(t.Context(), "x")
	}
	if len(talk.queued) > queuedMax {
		t.Errorf("%d words wait", len(talk.queued))
	}
}
