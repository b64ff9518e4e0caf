package tools_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"sallyport/internal/base/disk"
	"sallyport/internal/base/problem"
	door "sallyport/internal/door/tools"
	"sallyport/internal/inside/tools"
	"sallyport/internal/port/tool"
)

// host serves a session with some tools on a real socket. Each answers with what it was asked.
func host(t *testing.T, has ...tool.Name) (socket string, calls <-chan tool.Call) {
	t.Helper()
	socket = filepath.Join(t.TempDir(), "s")
	heard := make(chan tool.Call, 100)
	handlers := map[tool.Name]door.Handler{}
	for _, name := range has {
		handlers[name] = func(_ context.Context, c tool.Call) (tool.Result, error) {
			switch args := c.Args.(type) {
			case tool.Question:
				return tool.Result{Text: tool.Asked, ID: "qst-1"}, nil
			case tool.Nothing:
				return tool.Result{Text: "one task", Tasks: []tool.Task{{ID: "tsk-1", Text: "cook", Next: "Feb 4, 2026, 9:00 AM"}}}, nil
			case tool.Cancel:
				return tool.Result{}, problem.Errorf(problem.Kind(args.Task), "", "it is %s", args.Task)
			}
			return tool.Result{Text: "sent"}, nil
		}
	}
	d, err := door.Open(disk.Ops{}, socket, door.Session{Handlers: handlers, Told: func(e door.Event) {
		if e.Call.Verb != tool.List {
			heard <- e.Call
		}
	}, Limits: door.Limits{Burst: 1_000}})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- d.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return socket, heard
}

type shut struct{ io.Writer }

func (shut) Close() error { return nil }

// run runs the plain program.
func run(t *testing.T, env map[string]string, args ...string) (status int, out string) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	status = tools.Main(t.Context(), tools.Process{
		Args: args, Getenv: func(name string) string { return env[name] }, In: io.NopCloser(strings.NewReader("")), Out: shut{&stdout}, Err: &stderr,
	})
	if stderr.Len() > 0 {
		t.Errorf("%q says %q", args, stderr.String())
	}
	return status, stdout.String()
}

func TestAPlainProgramMakesTheSameCalls(t *testing.T) {
	socket, calls := host(t, tool.Standing...)
	env := map[string]string{tools.VariableSocket: socket, tools.VariableIntake: "int-1"}
	for _, test := range []struct {
		args []string
		call tool.Call
		out  string
	}{
		{[]string{"send_message", "--text", "two\nlines"}, tool.Call{Verb: tool.SendMessage, Intake: "int-1", Args: tool.Message{Text: "two\nlines"}}, `{"text":"sent"}`},
		{[]string{"send_message", "--text=--text"}, tool.Call{Verb: tool.SendMessage, Intake: "int-1", Args: tool.Message{Text: "--text"}}, `{"text":"sent"}`},
		{[]string{"--intake", "int-2", "ask_user_question", "--options", "a", "--question", "x?", "--options=b"}, tool.Call{Verb: tool.AskUserQuestion, Intake: "int-2", Args: tool.Question{Question: "x?", Options: []string{"a", "b"}}}, `{"text":"asked, you will hear","id":"qst-1"}`},
		{[]string{"schedule_task", "--text", "x", "--processAfter", "2026-02-04T09:00"}, tool.Call{Verb: tool.ScheduleTask, Intake: "int-1", Args: tool.Schedule{Text: "x", ProcessAfter: "2026-02-04T09:00"}}, `{"text":"sent"}`},
		{[]string{"list_tasks"}, tool.Call{Verb: tool.ListTasks, Intake: "int-1", Args: tool.Nothing{}}, `{"text":"one task","tasks":[{"id":"tsk-1","text":"cook","next":"Feb 4, 2026, 9:00 AM"}]}`},
	} {
		status, out := run(t, env, test.args...)
		if status != 0 || out != test.out+"\n" {
			t.Errorf("%q: status %d, %q", test.args, status, out)
			continue
		}
		if got := <-calls; !reflect.DeepEqual(got, test.call) {
			t.Errorf("%q: the host heard %+v", test.args, got)
		}
	}
}

func TestTheStatusOfThePlainProgramTellsTheKind(t *testing.T) {
	socket, calls := host(t, tool.SendMessage, tool.CancelTask, tool.AskUserQuestion)
	for what, test := range map[string]struct {
		args   []string
		status int
		kind   string
		heard  int
	}{
		"refused by the host":    {[]string{"cancel_task", "--task", "refused"}, 4, "refused", 1},
		"denied by the host":     {[]string{"cancel_task", "--task", "denied"}, 4, "denied", 1},
		"not there":              {[]string{"cancel_task", "--task", "not_found"}, 2, "not_found", 1},
		"unavailable":            {[]string{"cancel_task", "--task", "unavailable"}, 1, "unavailable", 1},
		"a kind that nobody has": {[]string{"cancel_task", "--task", "odd"}, 1, "internal", 1},
		"a tool it has not":      {[]string{"list_tasks"}, 2, "not_found", 0},
		"no such argument":       {[]string{"send_message", "--to", "x"}, 2, "usage", 0},
		"a bare word":            {[]string{"send_message", "x"}, 2, "usage", 0},
		"a word for a flag":      {[]string{"send_message", "text", "x"}, 2, "usage", 0},
		"no value":               {[]string{"send_message", "--text"}, 2, "usage", 0},
		"no argument":            {[]string{"send_message"}, 2, "usage", 0},
		"twice":                  {[]string{"send_message", "--text", "a", "--text", "b"}, 2, "usage", 0},
		"too long":               {[]string{"send_message", "--text", strings.Repeat("x", 100_000)}, 2, "usage", 0},
		"no socket there":        {[]string{"--socket", socket + "x", "send_message", "--text", "x"}, 1, "unavailable", 0},
		"no socket named":        {[]string{"--socket", "", "send_message", "--text", "x"}, 2, "usage", 0},
	} {
		status, out := run(t, map[string]string{tools.VariableSocket: socket}, test.args...)
		var said struct{ Error struct{ Kind, Text string } }
		if err := json.Unmarshal([]byte(out), &said); err != nil || status != test.status || said.Error.Kind != test.kind || said.Error.Text == "" || strings.Count(out, "\n") != 1 {
			t.Errorf("%s: status %d, %.300q, %v", what, status, out, err)
		}
		if n := len(calls); n != test.heard {
			t.Errorf("%s: the host heard %d calls", what, n)
		}
		for len(calls) > 0 {
			<-calls
		}
	}
}

func TestHelpTellsTheToolsThatTheSessionHas(t *testing.T) {
	socket, _ := host(t, tool.SendMessage, tool.ScheduleTask)
	for _, args := range [][]string{{}, {"--help"}} {
		status, out := run(t, map[string]string{tools.VariableSocket: socket}, args...)
		if status != 0 || !strings.Contains(out, "sallyport-tool send_message --text TEXT [--to TEXT]\n") || !strings.Contains(out, "[--processAfter TEXT]") ||
			!strings.Contains(out, "by your user's clock") || strings.Contains(out, "cancel_task") {
			t.Errorf("%q: status %d,\n%s", args, status, out)
		}
	}
	if status, out := run(t, map[string]string{tools.VariableSocket: socket}, "schedule_task", "--help"); status != 0 || strings.Contains(out, "send_message") || !strings.Contains(out, "--cron") {
		t.Errorf("status %d,\n%s", status, out)
	}
}

// speak has the SDK's own client speak with the program over pipes. What it returns ends the agent's side, and gives the status.
func speak(t *testing.T, args ...string) (*mcp.ClientSession, func() int) {
	t.Helper()
	fromAgent, toProgram := io.Pipe()
	fromProgram, toAgent := io.Pipe()
	ended := make(chan int, 1)
	go func() {
		status := tools.Main(context.Background(), tools.Process{Args: args, Getenv: func(string) string { return "" }, In: fromAgent, Out: toAgent, Err: io.Discard})
		toAgent.Close()
		ended <- status
	}()
	client := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil)
	session, err := client.Connect(t.Context(), &mcp.IOTransport{Reader: fromProgram, Writer: toProgram}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return session, func() int {
		session.Close()
		return <-ended
	}
}

func TestAnAgentThatSpeaksMCPHasExactlyTheToolsOfItsSession(t *testing.T) {
	socket, calls := host(t, tool.SendMessage, tool.AskUserQuestion, tool.CancelTask)
	session, end := speak(t, "--socket", socket, "--intake", "int-1", "mcp")
	listed, err := session.ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, l := range listed.Tools {
		names = append(names, l.Name)
		d, _ := tool.Find(tool.Name(l.Name))
		want, _ := json.Marshal(d.Schema)
		var schema any
		_ = json.Unmarshal(want, &schema)
		if !reflect.DeepEqual(l.InputSchema, schema) || l.Description != d.Description {
			t.Errorf("%s is told as %q, %+v", l.Name, l.Description, l.InputSchema)
		}
	}
	slices.Sort(names)
	if !reflect.DeepEqual(names, []string{"ask_user_question", "cancel_task", "send_message"}) {
		t.Errorf("the tools are %q", names)
	}

	call := func(name string, args any) (string, bool) {
		t.Helper()
		r, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: name, Arguments: args})
		if err != nil {
			return "protocol: " + err.Error(), true
		}
		return r.Content[0].(*mcp.TextContent).Text, r.IsError
	}
	if text, failed := call("send_message", map[string]any{"text": "in\nmid-turn"}); failed || text != `{"text":"sent"}` {
		t.Errorf("got %q, %v", text, failed)
	}
	if got := <-calls; !reflect.DeepEqual(got, tool.Call{Verb: tool.SendMessage, Intake: "int-1", Args: tool.Message{Text: "in\nmid-turn"}}) {
		t.Errorf("the host heard %+v", got)
	}
	if text, failed := call("ask_user_question", map[string]any{"question": "x?"}); failed || text != `{"text":"asked, you will hear","id":"qst-1"}` {
		t.Errorf("got %q, %v", text, failed)
	}
	<-calls
	for what, test := range map[string]struct {
		name string
		args any
		want string
	}{
		"what the host refuses":  {"cancel_task", map[string]any{"task": "refused"}, "refused: it is refused"},
		"what does not fit":      {"send_message", map[string]any{"text": "x", "whom": "everybody"}, "usage: the call of send_message cannot be taken"},
		"no arguments":           {"send_message", nil, "usage: the call of send_message cannot be taken"},
		"too much":               {"send_message", map[string]any{"text": strings.Repeat("x", 100_000)}, "usage: the call of send_message cannot be taken"},
		"another session's tool": {"schedule_task", map[string]any{"text": "x", "cron": "* * * * *"}, "unknown tool"},
		"a verb that is no tool": {"tools", map[string]any{}, "unknown tool"},
	} {
		if text, failed := call(test.name, test.args); !failed || !strings.Contains(text, test.want) {
			t.Errorf("%s: %q, %v", what, text, failed)
		}
	}
	if status := end(); status != 0 {
		t.Errorf("it ended with %d", status)
	}
}

func TestManyCallsAtOnceEachGetTheirOwnAnswer(t *testing.T) {
	socket, _ := host(t, tool.CancelTask)
	session, end := speak(t, "--socket", socket, "mcp")
	kinds := []string{"refused", "denied", "conflict", "not_found"}
	answers := make(chan string, 40)
	for i := range cap(answers) {
		go func() {
			kind := kinds[i%len(kinds)]
			r, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: "cancel_task", Arguments: map[string]any{"task": kind}})
			switch {
			case err != nil:
				answers <- err.Error()
			case r.Content[0].(*mcp.TextContent).Text != kind+": it is "+kind && !strings.Contains(r.Content[0].(*mcp.TextContent).Text, "calls are under way"):
				answers <- kind + " got " + r.Content[0].(*mcp.TextContent).Text
			default:
				answers <- ""
			}
		}()
	}
	for range cap(answers) {
		if wrong := <-answers; wrong != "" {
			t.Error(wrong)
		}
	}
	end()
}

func TestAnAgentWhoseHostIsGoneIsToldByTheStatus(t *testing.T) {
	var stderr bytes.Buffer
	status := tools.Main(t.Context(), tools.Process{
		Args: []string{"--socket", filepath.Join(t.TempDir(), "none"), "mcp"}, Getenv: func(string) string { return "" },
		In: io.NopCloser(strings.NewReader("")), Out: shut{io.Discard}, Err: &stderr,
	})
	if status != 1 || !strings.Contains(stderr.String(), "the host does not answer") {
		t.Errorf("status %d, %q", status, stderr.String())
	}
}
