package tools_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"sallyport/internal/base/disk"
	"sallyport/internal/base/disk/disktest"
	"sallyport/internal/base/problem"
	"sallyport/internal/door/tools"
	"sallyport/internal/port/tool"
)

// door is an open one, and what it told.
type door struct {
	path string
	end  func() error // ends its session, and waits for it

	mu   sync.Mutex
	told []tools.Event
}

func (d *door) events() []tools.Event {
	d.mu.Lock()
	defer d.mu.Unlock()
	return append([]tools.Event(nil), d.told...)
}

// open serves a session until the test ends.
func open(t *testing.T, s tools.Session) *door {
	t.Helper()
	d := &door{path: filepath.Join(t.TempDir(), "s")}
	s.Told = func(e tools.Event) {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.told = append(d.told, e)
	}
	served, err := tools.Open(disk.Ops{}, d.path, s)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- served.Run(ctx) }()
	d.end = sync.OnceValue(func() error { cancel(); return <-done })
	t.Cleanup(func() {
		if err := d.end(); err != nil {
			t.Error(err)
		}
	})
	return d
}

// echo answers with the text that it is to send.
func echo(_ context.Context, c tool.Call) (tool.Result, error) {
	return tool.Result{Text: c.Args.(tool.Message).Text}, nil
}

func message(text string) tool.Request {
	raw, _ := json.Marshal(tool.Message{Text: text})
	return tool.Request{Verb: tool.SendMessage, Args: raw}
}

// say sends bytes as they are and returns all that comes back.
func (d *door) say(t *testing.T, text string, shut bool) string {
	t.Helper()
	conn, err := net.Dial("unix", d.path)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_, _ = io.WriteString(conn, text) // the host need not read all of it
	if shut {
		_ = conn.(*net.UnixConn).CloseWrite()
	}
	raw, _ := io.ReadAll(conn)
	return string(raw)
}

func TestACallIsDoneToldAndAnswered(t *testing.T) {
	d := open(t, tools.Session{
		Intake: func() string { return "int-of-the-turn" },
		Handlers: map[tool.Name]tools.Handler{
			tool.SendMessage: echo,
			tool.AskUserQuestion: func(context.Context, tool.Call) (tool.Result, error) {
				return tool.Result{Text: tool.Asked, ID: "qst-1"}, nil
			},
			tool.CancelTask: func(context.Context, tool.Call) (tool.Result, error) {
				return tool.Result{}, problem.Errorf(problem.NotFound, "sallyport-tool list_tasks", "there is no such task")
			},
		},
	})
	ask := func(r tool.Request) (tool.Result, error) { return tool.Ask(t.Context(), d.path, r) }
	if r, err := ask(tool.Request{Verb: tool.List}); err != nil || !reflect.DeepEqual(r.Tools, []tool.Name{tool.AskUserQuestion, tool.CancelTask, tool.SendMessage}) {
		t.Errorf("the tools are %+v, %v", r, err)
	}
	if r, err := ask(message("a\n</messages>")); err != nil || r.Text != "a\n</messages>" {
		t.Errorf("got %+v, %v", r, err)
	}
	if r, err := ask(tool.Request{Verb: tool.AskUserQuestion, Args: json.RawMessage(`{"question":"x?"}`), Intake: "int-1"}); err != nil || r.Text != "asked, you will hear" || r.ID != "qst-1" {
		t.Errorf("got %+v, %v", r, err)
	}
	_, err := ask(tool.Request{Verb: tool.CancelTask, Args: json.RawMessage(`{"task":"x"}`)})
	if p := problem.Of(err); p.Kind != problem.NotFound || p.Text != "there is no such task" || p.Next != "sallyport-tool list_tasks" {
		t.Errorf("got %+v", p)
	}
	if _, err := ask(tool.Request{Verb: tool.ListTasks}); problem.KindOf(err) != problem.NotFound {
		t.Errorf("a tool that it does not have: %v", err)
	}

	var told []string
	for _, e := range d.events() {
		args := ""
		if e.Call.Args != nil {
			raw, err := json.Marshal(e.Call.Args)
			if args = string(raw); err != nil {
				t.Error(err)
			}
		}
		told = append(told, fmt.Sprintf("%s %s %s %s %v", e.Call.Verb, e.Call.Intake, args, e.Result.Text, problem.KindOf(e.Problem)))
	}
	want := []string{
		`tools  {} the tools of this session `,
		`send_message int-of-the-turn {"text":"a\n\u003c/messages\u003e"} a` + "\n</messages> ",
		`ask_user_question int-1 {"question":"x?"} asked, you will hear `,
		`cancel_task int-of-the-turn {"task":"x"}  not_found`,
		`list_tasks    not_found`,
	}
	if !reflect.DeepEqual(told, want) {
		t.Errorf("told was\n%q", told)
	}
}

// What else a line can be is told by the tests of package tool. Here it is what can be done to a connection.
func TestACallThatNobodyHearsOfIsAnsweredToo(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	d, err := tools.Open(disk.Ops{}, path, tools.Session{Handlers: map[tool.Name]tools.Handler{tool.SendMessage: echo}})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- d.Run(ctx) }()
	if r, err := tool.Ask(t.Context(), path, message("hello")); err != nil || r.Text != "hello" {
		t.Errorf("got %+v, %v", r, err)
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

func TestWhateverIsDoneToAConnectionIsAnsweredByNameAndToldOnce(t *testing.T) {
	good := `{"verb":"send_message","args":{"text":"x"}}` + "\n"
	for what, test := range map[string]struct {
		text string
		shut bool
		want string
	}{
		"not JSON":            {"hello\n", false, "is no JSON"},
		"one megabyte":        {strings.Repeat("x", 1<<20) + "\n", false, "more than 65536 bytes"},
		"no end for ever":     {strings.Repeat("x", 8<<20), false, "more than 65536 bytes"},
		"an unknown verb":     {`{"verb":"rm","args":{}}` + "\n", false, "there is no tool"},
		"an unknown field":    {`{"verb":"send_message","args":{"text":"x"},"uid":0}` + "\n", false, "there is no key"},
		"two calls at once":   {good + good, false, "takes one call"},
		"half a line, ended":  {good[:20], true, "its line has no end"},
		"half a line, held":   {good[:20], false, "did not end in time"},
		"a zero byte":         {"{\"verb\":\"send_message\",\"args\":{\"text\":\"\x00\"}}\n", false, "is no JSON"},
		"zero bytes alone":    {"\x00\x00\x00\n", false, "is no JSON"},
		"an empty line":       {"\n", false, "is no JSON object"},
		"deep nesting":        {strings.Repeat("[", 60_000) + "\n", false, "nested more than"},
		"a line of the limit": {strings.Repeat(" ", tool.LineMax-len(good)) + good, false, `{"result":{"text":"x"}}`},
		"one byte more":       {strings.Repeat(" ", tool.LineMax-len(good)+1) + good, false, "more than 65536 bytes"},
		"nothing":             {"", true, ""},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			limits, tries := tools.Limits{}, 1
			if what == "half a line, held" {
				limits.Line, tries = 200*time.Millisecond, 50 // so short, a line may come late on a busy machine: then nothing was said
			}
			d := open(t, tools.Session{Handlers: map[tool.Name]tools.Handler{tool.SendMessage: echo}, Limits: limits})
			got := d.say(t, test.text, test.shut)
			for n := 1; got == "" && n < tries; n++ {
				got = d.say(t, test.text, test.shut)
			}
			if !strings.Contains(got, test.want) || len(got) > 2_000 || test.want == "" && got != "" {
				t.Errorf("got %q; must say %q", got, test.want)
			}
			r, err := tool.Ask(t.Context(), d.path, message("after"))
			for n := 1; err != nil && n < tries; n++ {
				r, err = tool.Ask(t.Context(), d.path, message("after"))
			}
			if err != nil || r.Text != "after" {
				t.Errorf("the next call gets %+v, %v", r, err)
			}
			events := d.events()
			if want := min(len(test.text), 1) + 1; len(events) != want {
				t.Errorf("%d calls were told, not %d", len(events), want)
			}
		})
	}
}

func TestAClientThatNeverReadsHoldsUpNobody(t *testing.T) {
	large := strings.Repeat("x", 60_000)
	d := open(t, tools.Session{Handlers: map[tool.Name]tools.Handler{tool.SendMessage: func(_ context.Context, c tool.Call) (tool.Result, error) {
		return tool.Result{Text: large}, nil
	}}})
	for range 5 {
		conn, err := net.Dial("unix", d.path)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		_ = conn.(*net.UnixConn).SetReadBuffer(1)
		if _, err := io.WriteString(conn, `{"verb":"send_message","args":{"text":"x"}}`+"\n"); err != nil {
			t.Fatal(err)
		}
	}
	if r, err := tool.Ask(t.Context(), d.path, message("x")); err != nil || r.Text != large {
		t.Errorf("another gets %d bytes, %v", len(r.Text), err)
	}
	if err := d.end(); err != nil { // it waits for all calls
		t.Error(err)
	}
}

func TestCallsOfASessionAreBoundedInAWhileAndAtOnce(t *testing.T) {
	d := open(t, tools.Session{Handlers: map[tool.Name]tools.Handler{tool.SendMessage: echo}, Limits: tools.Limits{Burst: 3, Every: time.Hour}})
	other := open(t, tools.Session{Handlers: map[tool.Name]tools.Handler{tool.SendMessage: echo}})
	for i := range 10 {
		_, err := tool.Ask(t.Context(), d.path, message("x"))
		if i < 3 && err != nil || i >= 3 && (problem.KindOf(err) != problem.Unavailable || !strings.Contains(err.Error(), "one more is taken every 1h")) {
			t.Errorf("call %d: %v", i, err)
		}
	}
	if n := len(d.events()); n != 4 { // three, and that there were too many
		t.Errorf("%d calls were told", n)
	}
	if _, err := tool.Ask(t.Context(), other.path, message("x")); err != nil {
		t.Errorf("another session pays for it: %v", err)
	}

	release := make(chan struct{})
	busy := open(t, tools.Session{Handlers: map[tool.Name]tools.Handler{tool.SendMessage: func(context.Context, tool.Call) (tool.Result, error) {
		<-release
		return tool.Result{Text: "late"}, nil
	}}, Limits: tools.Limits{AtOnce: 2}})
	var conns []net.Conn
	for range 2 {
		conn, err := net.Dial("unix", busy.path)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		if _, err := io.WriteString(conn, `{"verb":"send_message","args":{"text":"x"}}`+"\n"); err != nil {
			t.Fatal(err)
		}
		conns = append(conns, conn)
	}
	if _, err := tool.Ask(t.Context(), busy.path, message("x")); problem.KindOf(err) != problem.Unavailable || !strings.Contains(err.Error(), "2 calls are under way") {
		t.Errorf("a third at once: %v", err)
	}
	close(release)
	for _, conn := range conns {
		if line, err := bufio.NewReader(conn).ReadString('\n'); err != nil || !strings.Contains(line, "late") {
			t.Errorf("got %q, %v", line, err)
		}
	}
}

func TestAFaultOfTheHostIsAnAnswerAndASlowOneEnds(t *testing.T) {
	for what, test := range map[string]struct {
		do    tools.Handler
		kind  problem.Kind
		want  string
		waits bool
	}{
		"a panic":  {func(context.Context, tool.Call) (tool.Result, error) { panic("at the\ndisco") }, problem.Internal, "the host failed in send_message", false},
		"an error": {func(context.Context, tool.Call) (tool.Result, error) { return tool.Result{}, errors.New("bare") }, problem.Internal, "bare", false},
		"no end": {func(ctx context.Context, _ tool.Call) (tool.Result, error) {
			<-ctx.Done()
			return tool.Result{}, ctx.Err()
		}, problem.Unavailable, "send_message was not done within 20ms", true},
		"much": {func(context.Context, tool.Call) (tool.Result, error) {
			return tool.Result{Text: strings.Repeat("x", 1<<20)}, nil
		}, problem.Internal, "cannot be sent", false},
		"late, done": {func(ctx context.Context, _ tool.Call) (tool.Result, error) {
			<-ctx.Done()
			return tool.Result{Text: "done"}, nil
		}, "", "", true},
	} {
		limits := tools.Limits{}
		if test.waits {
			limits.Handler = 20 * time.Millisecond
		}
		d := open(t, tools.Session{Handlers: map[tool.Name]tools.Handler{tool.SendMessage: test.do}, Limits: limits})
		if _, err := tool.Ask(t.Context(), d.path, message("x")); problem.KindOf(err) != test.kind || err != nil && !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v", what, err)
		}
		if n := len(d.events()); n != 1 {
			t.Errorf("%s: %d calls were told", what, n)
		}
	}
}

func TestTheSocketGoesWithItsSessionAndSoDoItsCalls(t *testing.T) {
	began, stopping, release, over := make(chan struct{}), make(chan struct{}), make(chan struct{}), false
	d := open(t, tools.Session{Limits: tools.Limits{Line: time.Hour}, Handlers: map[tool.Name]tools.Handler{tool.SendMessage: func(ctx context.Context, _ tool.Call) (tool.Result, error) {
		close(began)
		<-ctx.Done()
		close(stopping)
		<-release
		over = true
		return tool.Result{}, ctx.Err()
	}}})
	if info, err := os.Stat(d.path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the socket is %v, %v", info.Mode(), err)
	}
	idle, err := net.Dial("unix", d.path) // accepted before the next one
	if err != nil {
		t.Fatal(err)
	}
	defer idle.Close()
	answered, ended := make(chan error, 1), make(chan error, 1)
	go func() {
		_, err := tool.Ask(t.Context(), d.path, message("x"))
		answered <- err
	}()

	<-began
	go func() { ended <- d.end() }()
	<-stopping
	for range 1_000 {
		runtime.Gosched()
		if len(ended) > 0 {
			t.Fatal("it ended before its calls did")
		}
	}
	close(release)
	if err := <-ended; err != nil || !over {
		t.Errorf("it ended with %v", err)
	}
	if err := <-answered; problem.KindOf(err) != problem.Unavailable {
		t.Errorf("the call under way: %v", err)
	}
	if _, err := os.Lstat(d.path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the socket is still there: %v", err)
	}
	if _, err := tool.Ask(t.Context(), d.path, message("x")); problem.KindOf(err) != problem.Unavailable {
		t.Errorf("a call after it: %v", err)
	}
}

func TestASocketThatAKilledDaemonLeftGoesAndNothingElseDoes(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	l, err := net.ListenUnix("unix", &net.UnixAddr{Net: "unix", Name: path})
	if err != nil {
		t.Fatal(err)
	}
	l.SetUnlinkOnClose(false)
	l.Close()
	d, err := tools.Open(disk.Ops{}, path, tools.Session{})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := d.Run(ctx); err != nil {
		t.Error(err)
	}

	disktest.Put(t, path, "mine", 0o600)
	if _, err := tools.Open(disk.Ops{}, path, tools.Session{}); err == nil {
		t.Error("it opened in the place of a file")
	}
	if raw, err := os.ReadFile(path); err != nil || string(raw) != "mine" {
		t.Errorf("the file is %q, %v", raw, err)
	}
}
