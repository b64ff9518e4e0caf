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

// FuzzTurnEnd feeds a program's output of any kind to who hears the end of its turns: what counts is one JSON object of known
// fields and bounded texts, the numbers only grow, and one waits at the most.
func FuzzTurnEnd(f *testing.F) {
	for _, seed := range []string{
		"", "{", "turn_end\n", `{"type":"turn_end","turn":1,"outcome":"done"}` + "\n",
		`{"type":"turn_end","turn":1,"outcome":"failed","reason":"no\u0000","says":"\ud800"}` + "\n",
		`{"type":"turn_end","turn":2,"outcome":"done"}}` + "\n", `{"type":"turn_end","turn":2,"outcome":"done"}{}` + "\n",
		`{"type":"turn_end","turn":2,"outcome":"done","more":true}` + "\n" + `{"type":"turn_end","turn":1,"outcome":"done"}` + "\n",
		`{"TYPE":"turn_end","Turn":3,"outcome":"cancelled"}{}` + "\n",
		`{"type":"turn_end","turn":1e9,"outcome":"done","says":"` + strings.Repeat("ä", 3000) + `"}` + "\n",
		`{"type":"turn_end","turn":1,"outcome":"done","reason":` + strings.Repeat("[", 40) + strings.Repeat("]", 40) + `}` + "\n",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, output []byte) {
		talk := NewTalk()
		talk.open(nil, func(string) {})
		last := 0
		out := cutter{give: func(line []byte, whole bool) {
			e, ok := parseTurnEnd(line)
			if !ok || !whole {
				return
			}
			var object map[string]any
			if err := json.Unmarshal(line, &object); err != nil || len(line) > LineBytesMax {
				t.Errorf("%q is no object: %v", line, err)
			}
			if e.Turn < 1 || e.Turn > turnMax || len(e.Says) > 4<<10 || !utf8.ValidString(e.Says+e.Reason) || strings.ContainsAny(e.Reason, "\n\x00\x1b") || strings.ContainsRune(e.Says, 0) {
				t.Errorf("%+v", e)
			}
			talk.turnOver(e)
			if e.Turn <= turnOfChange {
				last = max(last, e.Turn)
			}
			if len(talk.turns) > 1 || talk.turn != last {
				t.Errorf("%d wait, the last is %d of %d", len(talk.turns), talk.turn, last)
			}
		}}
		out.Write(output)
		out.end()
	})
}
