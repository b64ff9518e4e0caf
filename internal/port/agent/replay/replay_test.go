package replay_test

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"

	"sallyport/internal/base/problem"
	"sallyport/internal/port/agent"
	"sallyport/internal/port/agent/agenttest"
	"sallyport/internal/port/agent/replay"
)

const whole = `
steps:
  - say: looking
  - run: go test ./...
    expect: fail
  - when: failed
    replace: {path: sum.go, old: a - b, new: a + b}
  - write:
      path: new/file
      content: |
        two
        lines
      mode: "0755"
  - rename: {from: a, to: b}
  - delete: old
  - run: go test ./...
    expect: pass
`

func TestTheDriverHoldsThePortsPromises(t *testing.T) {
	agenttest.Run(t, replay.New(), agent.Task{Script: []byte(whole)})
}

func TestAScriptArrivesAsItIsWritten(t *testing.T) {
	p, err := replay.New().Program(agent.Task{Script: []byte(whole)})
	if err != nil {
		t.Fatal(err)
	}
	var got agent.Script
	if err := json.Unmarshal(p.Stdin, &got); err != nil {
		t.Fatal(err)
	}
	want := agent.Script{Steps: []agent.Step{
		{Say: "looking"},
		{Run: "go test ./...", Expect: "fail"},
		{When: "failed", Replace: &agent.Replace{Path: "sum.go", Old: "a - b", New: "a + b"}},
		{Write: &agent.Write{Path: "new/file", Content: "two\nlines\n", Mode: "0755"}},
		{Rename: &agent.Rename{From: "a", To: "b"}},
		{Delete: "old"},
		{Run: "go test ./...", Expect: "pass"},
	}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%+v", got)
	}
}

func TestAScriptThatIsNotMeantSoIsRefusedWithItsPlace(t *testing.T) {
	for text, want := range map[string]string{
		"steps: []":                      "no steps",
		"":                               "no script",
		"{}":                             "no steps",
		"steps:\n - say: x\n   shout: y": "3:",
		"stepz:\n - say: x":              "1:",
		"steps:\n - write: {path: x, contents: y}":  "2:",
		"steps:\n - say: x\n - {}":                  "step 2",
		"steps:\n - say: x\n   run: y":              "2 verbs",
		"steps:\n - say: ''":                        "without a text",
		"steps:\n - run: x\n   when: sometimes":     `"sometimes"`,
		"steps:\n - run: x\n   expect: maybe":       `"maybe"`,
		"steps:\n - say: x\n   expect: pass":        "without run",
		"steps:\n - write: {path: x, mode: '9'}":    `"9"`,
		"steps:\n - write: {path: x, mode: '4755'}": `"4755"`,
		"steps:\n - write: {content: x}":            "no path",
		"steps:\n - replace: {path: x, new: y}":     "needs path and old",
		"steps:\n - rename: {from: x}":              "needs from and to",
		"steps:\n - await: resume":                  `"resume"`,
		"steps:\n - await: ''":                      "without a text",
		"steps:\n - await: tell\n   say: x":         "2 verbs",
		"steps:\n - await: tell\n   timeout: soon":  `"soon"`,
		"steps:\n - await: tell\n   timeout: 0s":    `"0s"`,
		"steps:\n - await: tell\n   timeout: -5s":   `"-5s"`,
		"steps:\n - await: tell\n   timeout: 2h":    `"2h"`,
		"steps:\n - await: tell\n   timeouts: 5s":   "3:",
		"steps:\n - say: x\n   timeout: 5s":         "timeout without await",
		"steps:\n - await: tell\n   expect: pass":   "without run",
		"steps: {": "not valid",
		"- x":      "not valid",
	} {
		_, err := replay.New().Program(agent.Task{Script: []byte(text)})
		if p := problem.KindOf(err); p != problem.Usage || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: kind %q, %v; want %q in it", text, p, err, want)
		}
	}
}

func TestOnlyAScriptThatAwaitsAMessageReadsMessages(t *testing.T) {
	for _, row := range []struct {
		script string
		asked  bool // by the person
		want   bool
		steps  []agent.Step
	}{
		{"steps: [{say: x}]", false, false, []agent.Step{{Say: "x"}}},
		{"steps: [{say: x}]", true, true, []agent.Step{{Say: "x"}}},
		{"steps: [{say: x}, {await: checkpoint_violation, timeout: 90s}]", false, true,
			[]agent.Step{{Say: "x"}, {Await: "checkpoint_violation", Timeout: 90 * time.Second}}},
		{"steps: [{await: tell, when: failed}]", false, true, []agent.Step{{Await: "tell", When: "failed"}}},
	} {
		p, err := replay.New().Program(agent.Task{Script: []byte(row.script), Messages: row.asked})
		if err != nil || p.Messages != row.want {
			t.Errorf("%s: %t, %v", row.script, p.Messages, err)
			continue
		}
		var got agent.Script
		if err := json.Unmarshal(p.Stdin, &got); err != nil || !reflect.DeepEqual(got.Steps, row.steps) {
			t.Errorf("%s: %+v, %v", row.script, got, err)
		}
		if strings.Count(string(p.Stdin), "\n") != 1 {
			t.Errorf("%q is not one line", p.Stdin)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(whole))
	f.Fuzz(func(t *testing.T, text []byte) {
		script, err := replay.Parse(text)
		if err != nil && problem.KindOf(err) != problem.Usage {
			t.Errorf("kind %q", problem.KindOf(err))
		}
		if err == nil && len(script.Steps) == 0 {
			t.Error("a script without steps")
		}
	})
}
