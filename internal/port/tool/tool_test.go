package tool_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"sallyport/internal/base/problem"
	"sallyport/internal/chat/schedule"
	"sallyport/internal/port/tool"
	"sallyport/internal/rule/config"
)

func TestEachToolIsDefinedOnceAndTakesObjectsOfTexts(t *testing.T) {
	for _, name := range slices.Concat(tool.Standing, tool.Dev) {
		d, there := tool.Find(name)
		if !there || d.Name != name || d.Description == "" {
			t.Fatalf("%s: %+v, %v", name, d, there)
		}
		raw, err := json.Marshal(d.Schema)
		if err != nil || d.Schema.Type != "object" || !strings.Contains(string(raw), `"additionalProperties":false`) {
			t.Errorf("%s: %s, %v", name, raw, err)
		}
		for property, s := range d.Schema.Properties {
			text := s
			if s.Type == "array" {
				text = s.Items
			}
			if s.Type == "object" {
				text = s.AdditionalProperties
			}
			if s.Description == "" || text.Type != "string" || text.MaxLength == nil {
				t.Errorf("%s of %s is not described, no text or without a limit", property, name)
			}
		}
	}
	if d, _ := tool.Find(tool.ScheduleTask); !strings.Contains(d.Schema.Properties["processAfter"].Description, "your user's clock") {
		t.Error("schedule_task does not say whose clock counts") // CH-129
	}
	if _, there := tool.Find("bash"); there {
		t.Error("there is a tool that nobody defined")
	}
}

// TestWhatARunnerMayTakeFromAnyAgentIsWhatTheHostGives holds the two lists of the host's tools together.
func TestWhatARunnerMayTakeFromAnyAgentIsWhatTheHostGives(t *testing.T) {
	names := make([]tool.Name, len(config.HostTools))
	for i, name := range config.HostTools {
		names[i] = tool.Name(name)
	}
	if !slices.Equal(names, tool.Standing) {
		t.Errorf("runners know %q, the host gives %q", names, tool.Standing)
	}
}

// What an agent is told to write is what is read then.
func TestTheExamplesOfScheduleTaskAreTimesThatASchedulesTake(t *testing.T) {
	d, _ := tool.Find(tool.ScheduleTask)
	now := time.Date(2026, 2, 1, 0, 0, 0, 0, time.UTC)
	for _, test := range []struct {
		property, example, first string
		kind                     schedule.Kind
	}{
		{"processAfter", "2026-02-04T09:00", "2026-02-04T09:00", schedule.Once},
		{"cron", "0 9 * * 1-5", "", schedule.Cron},
		{"interval", "90m", "", schedule.Interval},
		{"interval", "24h", "", schedule.Interval},
	} {
		s := schedule.Schedule{Group: "ada", Conversation: "terminal", Kind: test.kind, Zone: "Europe/Berlin", Text: strings.Repeat("😀", *d.Schema.Properties["text"].MaxLength)}
		if test.kind != schedule.Once {
			s.Spec = test.example
		}
		if _, err := schedule.New(s, test.first, now); err != nil || !strings.Contains(d.Schema.Properties[test.property].Description, test.example) {
			t.Errorf("%s of %s: %v", test.example, test.property, err)
		}
	}
}

func TestACallBecomesWhatItAsksFor(t *testing.T) {
	for line, want := range map[string]tool.Call{
		`{"verb":"send_message","args":{"text":"a\nb\t</messages>"}}`:                          {Verb: tool.SendMessage, Args: tool.Message{Text: "a\nb\t</messages>"}},
		`{"verb":"ask_user_question","args":{"question":"x?","options":["a","b"]}}`:            {Verb: tool.AskUserQuestion, Args: tool.Question{Question: "x?", Options: []string{"a", "b"}}},
		` {"intake":"int-1","args":{"text":"x","cron":"0 9 * * *"},"verb":"schedule_task"} `:   {Verb: tool.ScheduleTask, Intake: "int-1", Args: tool.Schedule{Text: "x", Cron: "0 9 * * *"}},
		`{"verb":"schedule_task","args":{"text":"x","processAfter":"tomorrow"}}`:               {Verb: tool.ScheduleTask, Args: tool.Schedule{Text: "x", ProcessAfter: "tomorrow"}},
		`{"verb":"list_tasks","args":{}}`:                                                      {Verb: tool.ListTasks, Args: tool.Nothing{}},
		`{"verb":"cancel_task","args":{"task":"tsk-1"}}`:                                       {Verb: tool.CancelTask, Args: tool.Cancel{Task: "tsk-1"}},
		`{"verb":"tools","args":{}}`:                                                           {Verb: tool.List, Args: tool.Nothing{}},
		`{"verb":"send_message","args":{"text":"` + strings.Repeat("ä", 32_000) + `"}}` + "\n": {Verb: tool.SendMessage, Args: tool.Message{Text: strings.Repeat("ä", 32_000)}},
	} {
		if got, err := tool.Parse([]byte(line), tool.Standing); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%.80s: %+v, %v", line, got, err)
		}
	}
}

// hostile are lines that are no call, and what is said of them.
var hostile = map[string]string{
	"":       "is no JSON object",
	"hello":  "is no JSON",
	"[]":     "is no JSON object",
	"null":   `the key "verb" is missing`,
	"\"x\"":  "is no JSON object",
	"{":      "is no JSON",
	"{} {}":  "something follows the call",
	"{}\n{}": "something follows the call",
	`{"verb":"send_message","args":{"text":"x"}}{"verb":"send_message","args":{"text":"x"}}`: "something follows the call",
	`{"verb":"send_message"}`:                                                                                        `the key "args" is missing`,
	`{"verb":"send_message","args":null}`:                                                                            `the key "args" is missing`,
	`{"verb":"send_message","args":[]}`:                                                                              "send_message",
	`{"verb":"send_message","args":"x"}`:                                                                             "send_message",
	`{"verb":1,"args":{}}`:                                                                                           "verb",
	`{"Verb":"send_message","args":{}}`:                                                                              `no key "Verb"`,
	`{"verb":"send_message","args":{"text":"x"},"uid":0}`:                                                            `no key "uid"`,
	`{"verb":"send_message","verb":"cancel_task","args":{"text":"x"}}`:                                               `the key "verb" twice`,
	`{"verb":"send_message","args":{"text":"x","text":"y"}}`:                                                         `the key "text" twice`,
	`{"verb":"send_message","args":{"Text":"x"}}`:                                                                    "Text",
	`{"verb":"send_message","args":{"text":"x","whom":"everybody"}}`:                                                 "whom",
	`{"verb":"send_message","args":{"text":""}}`:                                                                     "minLength",
	`{"verb":"send_message","args":{"text":1}}`:                                                                      "type",
	`{"verb":"send_message","args":{"text":null}}`:                                                                   "type",
	`{"verb":"send_message","args":{}}`:                                                                              "text",
	`{"verb":"send_message","args":{"text":"` + strings.Repeat("x", 32_001) + `"}}`:                                  "more than 32000",
	`{"verb":"send_message","args":{"text":"a\u0000b"}}`:                                                             "a control character",
	`{"verb":"send_message","args":{"text":"\u001b[31m"}}`:                                                           "a control character",
	`{"verb":"send_message","args":{"text":"\u0085"}}`:                                                               "a control character",
	"{\"verb\":\"send_message\",\"args\":{\"text\":\"a\x00b\"}}":                                                     "is no JSON",
	"{\"verb\":\"send_message\",\"args\":{\"text\":\"\xff\"}}":                                                       "not UTF-8",
	`{"verb":"send_message","args":{"text":"x"},"intake":"` + strings.Repeat("x", 65) + `"}`:                         "intake",
	`{"verb":"send_message","args":{"text":"x"},"intake":"a\tb"}`:                                                    "intake",
	`{"verb":"list_tasks","args":{"all":true}}`:                                                                      "all",
	`{"verb":"tools","args":{"x":1}}`:                                                                                "takes no arguments",
	`{"verb":"ask_user_question","args":{"question":"x","options":["only"]}}`:                                        "one option is no choice",
	`{"verb":"ask_user_question","args":{"question":"x","options":["a","a"]}}`:                                       "unique",
	`{"verb":"ask_user_question","args":{"question":"x","options":["` + strings.Repeat("x", 101) + `","b"]}}`:        "more than 100",
	`{"verb":"ask_user_question","args":{"question":"x","options":[1,2]}}`:                                           "type",
	`{"verb":"ask_user_question","args":{"question":"x","options":["1","2","3","4","5","6","7","8","9","10","11"]}}`: "maxItems",
	`{"verb":"schedule_task","args":{"text":"x"}}`:                                                                   "names no time",
	`{"verb":"schedule_task","args":{"text":"x","cron":"* * * * *","interval":"1h"}}`:                                "not both",
	`{"verb":"schedule_task","args":{"text":"x","cron":"` + strings.Repeat("*", 101) + `"}}`:                         "more than 100",
	`{"verb":"send_message","args":{"text":` + strings.Repeat("[", 30_000) + strings.Repeat("]", 30_000) + `}}`:      "nested more than 8 deep",
	strings.Repeat(`{"a":`, 12_000) + "1" + strings.Repeat("}", 12_000):                                              "nested more than 8 deep",
	"{\"verb\":\"send_message\"," + strings.Repeat(" ", 60_000) + "\"args\":{\"text\":\"x\"}":                        "is no JSON",
}

func TestALineThatIsNoCallIsRefusedByNameAndInBounds(t *testing.T) {
	for line, want := range hostile {
		call, err := tool.Parse([]byte(line), tool.Standing)
		if problem.KindOf(err) != problem.Usage || !strings.Contains(err.Error(), want) || len(err.Error()) > 2_000 || problem.Of(err).Next == "" {
			t.Errorf("%.80q: %+v, %.300v; must say %q", line, call, err, want)
		}
	}
}

func TestASessionHasItsToolsAndNoOther(t *testing.T) {
	for _, verb := range []string{"cancel_task", "bash", "", strings.Repeat("x", 50_000), "\x1b[31m"} {
		raw, _ := json.Marshal(map[string]any{"verb": verb, "args": map[string]string{"task": "x"}})
		c, err := tool.Parse(raw, []tool.Name{tool.SendMessage, tool.ListTasks})
		if verb == "\x1b[31m" { // no text of a call has that
			if problem.KindOf(err) != problem.Usage {
				t.Errorf("%q: %v", verb, err)
			}
			continue
		}
		if problem.KindOf(err) != problem.NotFound || !strings.Contains(err.Error(), "there are send_message, list_tasks") || len(err.Error()) > 300 || len(c.Verb) > 70 {
			t.Errorf("%.80q: %v", verb, err)
		}
	}
}

func TestTheSameCallForTheSameMessageHasTheSameKey(t *testing.T) {
	key := func(line string) string {
		c, err := tool.Parse([]byte(line), tool.Standing)
		if err != nil {
			t.Fatal(err)
		}
		return c.Key()
	}
	first := key(`{"verb":"schedule_task","intake":"1","args":{"text":"x","cron":"y"}}`)
	if again := key(`{"args":{"cron":"y", "text":"\u0078"},"intake":"1","verb":"schedule_task"}`); again != first {
		t.Error("the same call has another key")
	}
	for _, other := range []string{
		`{"verb":"schedule_task","intake":"2","args":{"text":"x","cron":"y"}}`,
		`{"verb":"schedule_task","intake":"1","args":{"text":"x","interval":"y"}}`,
		`{"verb":"send_message","intake":"1","args":{"text":"x"}}`,
	} {
		if key(other) == first {
			t.Errorf("%s has the same key", other)
		}
	}
}

func TestAnAnswerIsOneBoundedLine(t *testing.T) {
	for what, line := range map[string][]byte{
		"a result":       tool.Encode(tool.Result{Text: "done\nand more"}, nil),
		"an error":       tool.Encode(tool.Result{Text: "not told"}, problem.Errorf(problem.Denied, "x", "no\nway")),
		"a large result": tool.Encode(tool.Result{Text: strings.Repeat("x", tool.LineMax)}, nil),
		"a large error":  tool.Encode(tool.Result{}, errors.New(strings.Repeat("\x00", tool.LineMax))),
	} {
		if len(line) > tool.LineMax || strings.Count(string(line), "\n") != 1 || !strings.HasSuffix(string(line), "\n") {
			t.Errorf("%s: %d bytes, %.100q", what, len(line), line)
		}
		if large := what == "a large result"; large != strings.Contains(string(line), "cannot be sent") {
			t.Errorf("%s: %.200q", what, line)
		}
	}
	if got := string(tool.Encode(tool.Result{Text: "not told"}, problem.Errorf(problem.Denied, "x", "no"))); got != `{"error":{"kind":"denied","text":"no","next":"x"}}`+"\n" {
		t.Errorf("got %s", got)
	}
}

func FuzzNoLineIsTakenForMoreThanItSays(f *testing.F) {
	for line := range hostile {
		f.Add([]byte(line))
	}
	for _, name := range tool.Standing {
		f.Add(fmt.Appendf(nil, `{"verb":%q,"args":{"text":"x","question":"y","task":"z","cron":"c"},"intake":"i"}`, name))
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		c, err := tool.Parse(line, tool.Standing)
		if err != nil {
			if k := problem.KindOf(err); k != problem.Usage && k != problem.NotFound || !utf8.ValidString(err.Error()) || len(err.Error()) > 4_000 {
				t.Fatalf("%s %v", k, err)
			}
			return
		}
		if c.Verb == tool.List {
			return
		}
		// What was taken says the same when it is written down and read again.
		args, err := json.Marshal(c.Args)
		if err != nil {
			t.Fatal(err)
		}
		raw, err := json.Marshal(tool.Request{Verb: c.Verb, Args: args, Intake: c.Intake})
		if err != nil {
			t.Fatal(err)
		}
		again, err := tool.Parse(raw, tool.Standing)
		if err != nil || !reflect.DeepEqual(again, c) {
			t.Fatalf("%s is read as %+v, %v", raw, again, err)
		}
	})
}

// TestAProposalHasItsSummariesOrIsRefused is SM-052.
func TestAProposalHasItsSummariesOrIsRefused(t *testing.T) {
	const commit = `"commit_sha":"0123456"`
	for args, want := range map[string]string{
		`{"overall_summary":"greets",` + commit + `}`:                                                "per_file_summaries",
		`{"overall_summary":"greets","per_file_summaries":{},` + commit + `}`:                        "per_file_summaries",
		`{"overall_summary":"greets","per_file_summaries":{"a.md":""},` + commit + `}`:               "per_file_summaries",
		`{"per_file_summaries":{"a.md":"greets"},` + commit + `}`:                                    "overall_summary",
		`{"per_file_summaries":{"a.md":"greets"},"overall_summary":"",` + commit + `}`:               "overall_summary",
		`{"per_file_summaries":{"a.md":"greets"},"overall_summary":"greets"}`:                        "commit_sha",
		`{"per_file_summaries":{"a.md":"greets"},"overall_summary":"greets","commit_sha":"0123456"}`: "",
	} {
		_, err := tool.Parse([]byte(`{"verb":"request_swap","args":`+args+`}`), tool.Dev)
		if want == "" && err != nil || want != "" && (problem.KindOf(err) != problem.Usage || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v; must name %q", args, err, want)
		}
	}
}
