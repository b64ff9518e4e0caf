package session

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"
)

// FuzzAnswer feeds a talk with output of any kind: it takes nothing for an answer that
// is not one JSON object, bounds what it keeps, and never fails.
func FuzzAnswer(f *testing.F) {
	for _, seed := range []string{
		"", "{", "{}", "working\n", "null\n",
		`{"type":"violation_ack","checkpoint_id":"chk-1","understood":true,"corrective_action":"undo"}` + "\n",
		`{"type":"pause_ack","checkpoint_id":"chk-1","status":"paused","pending_operations":[{"x":["\"}]"]}]}` + "\r\n",
		`{"type":"tell_ack","id":"tell-1","response":"\u0000\ud800"}` + "\n",
		`{"x":"\\","type":"tell_ack","id":"\u00e4"}` + "\n{\"type\":\"tell_ack\",\"id\":\"tell-1\"}\n",
		`{"_ack":` + strings.Repeat("[", 33) + strings.Repeat("]", 33) + `,"type":"tell_ack","id":"tell-1"}` + "\n",
		`{"type":"violation_ack","checkpoint_id":"chk-1","corrective_action":"` + strings.Repeat("ä", 3000) + `"}` + "\n",
		strings.Repeat(`{"type":"tell_ack","id":"tell-1"}`+"\n", 2),
		`{"_ack":1e999,"type":"TELL_ACK"}` + "\n",
	} {
		f.Add([]byte(seed), uint(7))
	}
	f.Fuzz(func(t *testing.T, output []byte, cut uint) {
		talk := NewTalk()
		talk.open(nil, func(string) {})
		waiters := []*waiter{talk.expect(violationAck, "chk-1"), talk.expect(pauseAck, "chk-1"), talk.expect(tellAck, "tell-1")}
		for _, w := range waiters {
			w.begun = true
		}
		var whole []string
		out := cutter{give: func(line []byte, uncut bool) {
			if uncut {
				whole = append(whole, string(line))
				talk.hear(line)
			}
		}}
		at := 0
		if len(output) > 0 {
			at = int(cut % uint(len(output)))
		}
		out.Write(output[:at]) // the same in one piece or two
		out.Write(output[at:])
		out.end()
		for _, line := range whole {
			if len(line) > LineBytesMax {
				t.Errorf("a line of %d bytes was heard", len(line))
			}
			a, ok := parseAnswer([]byte(line))
			if !ok {
				continue
			}
			var object map[string]any
			if err := json.Unmarshal([]byte(line), &object); err != nil {
				t.Errorf("%q is no object: %v", line, err)
			}
			if max(len(a.Action), len(a.Response)) > ResponseBytesMax || !utf8.ValidString(a.Action+a.Response) || strings.ContainsRune(a.Action+a.Response+a.ID+a.CheckpointID, 0) {
				t.Errorf("%+v", a)
			}
		}
		for _, w := range waiters {
			if is(w.done) && (w.answer.Type != w.kind || w.answer.ID != w.id && w.answer.CheckpointID != w.id) {
				t.Errorf("%+v was taken for %s %s", w.answer, w.kind, w.id)
			}
		}
	})
}
