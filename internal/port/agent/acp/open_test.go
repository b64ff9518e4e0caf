package acp

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"sallyport/internal/port/agent"
)

// opening opens a conversation; its end comes over the channel.
func opening(talk *talk, last string) <-chan error {
	done := make(chan error, 1)
	go func() { done <- talk.open(context.Background(), last) }()
	return done
}

func TestAnAgentThatNeverAnswersDoesNotStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		talk, p := play(t, agent.Order{})
		begun := time.Now()
		err := <-opening(talk, "")
		if err == nil || !strings.Contains(err.Error(), "did not answer") || time.Since(begun) != startMax {
			t.Errorf("after %s: %v", time.Since(begun), err)
		}
		p.hears("initialize")
	})
}

func TestWhatAnAgentIsGreetedWith(t *testing.T) {
	talk, p := play(t, agent.Order{})
	done := opening(talk, "")
	hello := p.hears("initialize")
	for _, want := range []string{`"protocolVersion":1`, `"readTextFile":false`, `"writeTextFile":false`, `"terminal":false`} {
		if !strings.Contains(string(hello.Params), want) {
			t.Errorf("%s is not in %s", want, hello.Params)
		}
	}
	p.answers(hello, `{"protocolVersion":2}`)
	if err := <-done; err == nil || !strings.Contains(err.Error(), "version 2") {
		t.Errorf("%v", err)
	}
}

func TestASessionWithoutANameThatMakesSenseIsNone(t *testing.T) {
	for _, answer := range []string{`{}`, `null`, `{"sessionId":""}`, `{"sessionId":5}`, fmt.Sprintf(`{"sessionId":%q}`, strings.Repeat("x", 1000))} {
		talk, p := play(t, agent.Order{})
		done := opening(talk, "")
		p.answers(p.hears("initialize"), `{"protocolVersion":1}`)
		p.answers(p.hears("session/new"), answer)
		if err := <-done; err == nil {
			t.Errorf("%s is a session", answer)
		}
	}
}

func TestAnOldSessionIsGoneOnWithWhereTheAgentCan(t *testing.T) {
	const (
		resumes = `{"protocolVersion":1,"agentCapabilities":{"loadSession":true,"sessionCapabilities":{"resume":{}}}}`
		loads   = `{"protocolVersion":1,"agentCapabilities":{"loadSession":true}}`
		neither = `{"protocolVersion":1}`
	)
	for name, row := range map[string]struct{ agent, hello, method string }{
		"it resumes":                     {"acp:x", resumes, "session/resume"},
		"it loads":                       {"acp:x", loads, "session/load"},
		"it does neither":                {"acp:x", neither, ""},
		"its transcript is not reliable": {"gemini", loads, ""},
	} {
		for _, works := range []bool{true, false} {
			talk, p := play(t, agent.Order{Agent: row.agent})
			done := opening(talk, "old")
			p.answers(p.hears("initialize"), row.hello)
			if row.method != "" {
				m := p.hears(row.method)
				p.says(`{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"old","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"of the past"}}}}`)
				if works {
					p.answers(m, `{}`)
				} else {
					p.fails(m, `{"code":-32603,"message":"there is no such session"}`)
				}
			}
			if row.method == "" || !works {
				p.answers(p.hears("session/new"), `{"sessionId":"new"}`)
			}
			if err := <-done; err != nil {
				t.Fatal(err)
			}
			want := "new"
			if row.method != "" && works {
				want = "old"
			}
			if talk.session != want || talk.Loaded() != (want == "old") || (talk.Session() != "") != (row.method != "") {
				t.Errorf("%s, %t: session %q, kept as %q, loaded %t", name, works, talk.session, talk.Session(), talk.Loaded())
			}
			if strings.Contains(p.show.String(), "of the past") {
				t.Errorf("%s: it is shown %s", name, p.show)
			}
		}
	}
}

func TestOnlyALoginThatNeedsNobodyIsTried(t *testing.T) {
	const demand = `{"code":-32000,"message":"Authentication required"}`
	for name, row := range map[string]struct {
		logins string
		tried  []string
		works  bool
	}{
		"a key works":           {`[{"id":"oauth-personal"},{"id":"some-api-key"},{"id":"vertex-ai"}]`, []string{"some-api-key"}, true},
		"no key works":          {`[{"id":"a-key"},{"id":"b-key"}]`, []string{"a-key", "b-key"}, false},
		"there are only people": {`[{"id":"oauth-personal"},{"id":"browser"}]`, nil, false},
		"there are too many":    {`[{"id":"key1"},{"id":"key2"},{"id":"key3"},{"id":"key4"}]`, []string{"key1", "key2", "key3"}, false},
	} {
		talk, p := play(t, agent.Order{})
		done := opening(talk, "")
		p.answers(p.hears("initialize"), `{"protocolVersion":1,"authMethods":`+row.logins+`}`)
		p.fails(p.hears("session/new"), demand)
		for i, id := range row.tried {
			m := p.hears("authenticate")
			if !strings.Contains(string(m.Params), `"`+id+`"`) {
				t.Errorf("%s: it logs in with %s", name, m.Params)
			}
			p.answers(m, `{}`)
			m = p.hears("session/new")
			if row.works && i == len(row.tried)-1 {
				p.answers(m, `{"sessionId":"s"}`)
				continue
			}
			p.fails(m, demand)
		}
		if err := <-done; (err == nil) != row.works || err != nil && !strings.Contains(err.Error(), "nobody can inside a sandbox") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestTheModelThatIsWantedIsSetOrTheAgentDoesNotStart(t *testing.T) {
	for name, row := range map[string]struct {
		agent, session, method, want string
	}{
		"by an option":          {"acp:x", `{"sessionId":"s","configOptions":[{"id":"mode","category":"mode"},{"id":"llm","category":"model"}]}`, "session/set_config_option", `"configId":"llm"`},
		"by its own method":     {"acp:x", `{"sessionId":"s"}`, "session/set_model", `"modelId":"m1"`},
		"it is the one already": {"acp:x", `{"sessionId":"s","models":{"currentModelId":"m1"}}`, "", ""},
		"it was told otherwise": {"gemini", `{"sessionId":"s"}`, "", ""},
	} {
		for _, works := range []bool{true, false} {
			talk, p := play(t, agent.Order{Agent: row.agent, Model: "m1"})
			done := opening(talk, "")
			p.answers(p.hears("initialize"), `{"protocolVersion":1}`)
			p.answers(p.hears("session/new"), row.session)
			if row.method != "" {
				m := p.hears(row.method)
				if !strings.Contains(string(m.Params), row.want) {
					t.Errorf("%s: %s", name, m.Params)
				}
				if works {
					p.answers(m, `{}`)
				} else {
					p.fails(m, `{"code":-32602,"message":"no such model"}`)
				}
			}
			err := <-done
			if want := works || row.method == ""; (err == nil) != want || err != nil && !strings.Contains(err.Error(), `"m1"`) {
				t.Errorf("%s, %t: %v", name, works, err)
			}
		}
	}
}

func TestASessionOfCodexHasATitleBeforeItAsksAModelForOne(t *testing.T) {
	talk, p := play(t, agent.Order{Agent: "codex-acp"})
	done := opening(talk, "")
	p.answers(p.hears("initialize"), `{"protocolVersion":1,"agentCapabilities":{"sessionCapabilities":{"title":{}}}}`)
	p.answers(p.hears("session/new"), `{"sessionId":"s"}`)
	p.answers(p.hears("session/set_title"), `{}`)
	if err := <-done; err != nil {
		t.Fatal(err)
	}
}
