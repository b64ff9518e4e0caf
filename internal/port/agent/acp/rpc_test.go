package acp

import (
	"bytes"
	"strings"
	"testing"

	"sallyport/internal/port/agent"
)

func TestWhatIsNoMessageIsNotTakenForOne(t *testing.T) {
	for line, want := range map[string]bool{
		`{"jsonrpc":"2.0","id":1,"result":{}}`: true,
		`{"id":"a","method":"x"}`:              true,
		`{"method":"x"}`:                       true,
		` {"method":"x"} `:                     true,
		`{"id":null,"method":"x"}`:             true,
		``:                                     false,
		`[]`:                                   false,
		`17`:                                   false,
		`null`:                                 false,
		`{}`:                                   false,
		`{"result":{}}`:                        false,
		`{"id":null,"result":{}}`:              false,
		`{"id":{"a":1},"method":"x"}`:          false,
		`{"id":[1],"method":"x"}`:              false,
		`{"id":"` + strings.Repeat("x", idMax) + `"}`: false,
		`{"method":5}`:                       false,
		`{"method":"x"`:                      false,
		`{"method":"x"} {"method":"y"}`:      false,
		"{\"method\":\"x\"}\x00":             false,
		strings.Repeat(`{"params":`, 20_000): false,
		`{"method":"x","params":` + strings.Repeat("[", 20_000) + strings.Repeat("]", 20_000) + `}`: false,
	} {
		if _, err := read([]byte(line)); (err == nil) != want {
			t.Errorf("%.60q: %v", line, err)
		}
	}
}

// FuzzWhatAnAgentSays holds that no line of an agent breaks what reads it, or is answered by more than a line.
func FuzzWhatAnAgentSays(f *testing.F) {
	for _, seed := range []string{
		`{"jsonrpc":"2.0","id":1,"result":{"stopReason":"end_turn"}}`,
		`{"jsonrpc":"2.0","id":"a","method":"session/request_permission","params":{"sessionId":"s","toolCall":{"toolCallId":"1","kind":"edit","title":"x"},"options":[{"optionId":"now","kind":"allow_once"}]}}`,
		`{"method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"tool_call","toolCallId":"1","kind":"edit","status":"in_progress","locations":[{"path":"/srv/a"}]}}}`,
		`{"method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"\u0000\ud800"}}}}`,
		`{"method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"plan","entries":[{"content":"x","status":"completed"}]}}}`,
		`{"jsonrpc":"2.0","id":1,"error":{"code":401,"message":"{\"error\":{\"message\":\"x\"}}","data":{"details":"y"}}}`,
		`{"id":4,"method":"craft/drainMidTurnQueue"}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		m, err := read(line)
		if err != nil {
			return
		}
		talk, p := play(t, agent.Order{Agent: "qwen", Denied: []string{"execute"}})
		talk.session, talk.turn = "s", newTurn()
		_, done := talk.conn.send("session/prompt", nil)
		talk.conn.take(m)
		select {
		case a := <-done:
			if a.fault != nil {
				if text := a.fault.Error(); strings.ContainsAny(text, "\n\x1b\x00") || len(text) > 2<<10 {
					t.Errorf("%q", text)
				}
			}
		default:
		}
		if len(talk.conn.out) > 2 {
			t.Errorf("%d messages for a question and at most one answer", len(talk.conn.out))
		}
		if len(p.show.String()) > 8*len(line)+1024 || bytes.ContainsRune([]byte(p.show.String()), 0x1b) && !bytes.Contains(line, []byte("1b")) && !bytes.Contains(line, []byte("1B")) {
			t.Errorf("shown: %q", p.show)
		}
	})
}
