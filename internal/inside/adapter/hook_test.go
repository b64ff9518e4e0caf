package adapter_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sallyport/internal/base/disk/disktest"
	"sallyport/internal/inside/adapter"
	"sallyport/internal/port/agent"
)

// onTrial are words whose turn shows whether the agent answers.
const onTrial = "do you answer?"

// hooked is one conversation with hooks that are programs: it tells each of the words and returns the lines of each turn, and what the
// agent was told.
func hooked(t *testing.T, hooks map[string]string, turn func(ctx context.Context, words string, show agent.Show) (string, error), o agent.Order, words ...string) (turns [][]string, told []string) {
	t.Helper()
	dir := t.TempDir()
	for name, script := range hooks {
		disktest.Put(t, filepath.Join(dir, name), "#!/bin/sh\n"+script+"\n", 0o755)
	}
	p := &played{turn: turn, steers: true}
	in, host := io.Pipe()
	out, shown := io.Pipe()
	status := make(chan int, 1)
	go func() {
		status <- adapter.Run(t.Context(), adapter.Options{Engines: map[string]agent.Engine{"played": p}, In: in, Out: shown, Home: t.TempDir(), Hooks: dir})
		shown.Close()
	}()
	o.Engine, o.Agent, o.Chat = "played", "codex", true
	order, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprintf(host, "%s\n", order)

	lines := bufio.NewScanner(out)
	for i, text := range words {
		line, _ := json.Marshal(map[string]any{"type": "tell", "id": fmt.Sprint(i), "text": text, "trial": text == onTrial})
		fmt.Fprintf(host, "%s\n", line)
		var all []string
		for lines.Scan() {
			all = append(all, lines.Text())
			if strings.Contains(lines.Text(), agent.TurnEndType) {
				break
			}
		}
		turns = append(turns, all)
	}
	host.Close()
	for lines.Scan() {
	}
	<-status
	return turns, p.told()
}

// spoken is what the host is told of a turn: the words, and its end.
func spoken(t *testing.T, lines []string) (text string, end agent.TurnEnd) {
	t.Helper()
	for _, line := range lines {
		var e agent.Text
		if json.Unmarshal([]byte(line), &e) == nil && e.Type == agent.TextType {
			text += e.Text
		}
	}
	if err := json.Unmarshal([]byte(lines[len(lines)-1]), &end); err != nil {
		t.Fatal(err)
	}
	return text, end
}

func saying(text string) func(context.Context, string, agent.Show) (string, error) {
	return func(_ context.Context, _ string, show agent.Show) (string, error) {
		show.Say(text)
		return text, nil
	}
}

func TestHooksOfAGroupChangeWordsOnBothWays(t *testing.T) {
	note := filepath.Join(t.TempDir(), "note")
	turns, told := hooked(t, map[string]string{
		"on-start":    `cat >> ` + note + `; echo '{"text":"Today is Monday."}'`,
		"on-message":  `cat >> ` + note + `; echo '{"text":"changed"}'`,
		"before-send": `cat >> ` + note + `; echo '{"text":"Good day."}'`,
	}, saying("Hi.\n"), agent.Order{}, "hello", "again")
	is(t, told, "Today is Monday.\n\nchanged", "changed")
	for i, lines := range turns {
		if text, end := spoken(t, lines); text != "Good day." || end.Says != "Good day." || end.Outcome != agent.TurnDone {
			t.Errorf("turn %d says %q, ends %+v", i+1, text, end)
		}
	}
	raw, err := os.ReadFile(note)
	if want := `{"hook":"on-message","text":"hello"}{"hook":"on-start","agent":"codex"}{"hook":"before-send","text":"Hi."}` +
		`{"hook":"on-message","text":"again"}{"hook":"before-send","text":"Hi."}`; err != nil || string(raw) != want {
		t.Errorf("they are given %s, %v", raw, err)
	}
}

func TestAHookThatSaysNothingOrDropsIsHeeded(t *testing.T) {
	turns, told := hooked(t, map[string]string{"on-message": `grep -q secret && echo '{"drop":true}' || echo '{}'`}, saying("Hi."), agent.Order{}, "a secret", "hello")
	is(t, told, "hello")
	if text, end := spoken(t, turns[0]); text != "" || end.Turn != 1 || end.Outcome != agent.TurnDone {
		t.Errorf("a turn of nothing says %q, ends %+v", text, end)
	}
	if text, _ := spoken(t, turns[1]); text != "Hi." {
		t.Errorf("it says %q", text)
	}
	turns, _ = hooked(t, map[string]string{"before-send": `echo '{"drop":true}'`}, saying("Hi."), agent.Order{}, "hello")
	if text, end := spoken(t, turns[0]); text != "" || end.Says != "" {
		t.Errorf("what is dropped says %q, ends %+v", text, end)
	}
}

// TestATurnThatShowsWhetherAnAgentAnswersFailsWithItsHooks holds that the next turn is as any other again.
func TestATurnThatShowsWhetherAnAgentAnswersFailsWithItsHooks(t *testing.T) {
	for name, c := range map[string]struct {
		hook, script, why string
		told              int
	}{
		"on-start fails":       {"on-start", "echo 'no such module: x' >&2; exit 3", "the hook on-start failed: exit status 3: no such module: x", 0},
		"on-message fails":     {"on-message", "exit 1", "the hook on-message failed: exit status 1", 0},
		"on-message drops":     {"on-message", `echo '{"drop":true}'`, "the hook on-message dropped the words of this turn", 0},
		"before-send fails":    {"before-send", "echo no", "the hook before-send did not answer with one JSON object", 1},
		"before-send drops":    {"before-send", `echo '{"drop":true}'`, "the hook before-send dropped what the agent said", 1},
		"before-send is there": {"before-send", "echo '{}'", "", 1},
	} {
		t.Run(name, func(t *testing.T) {
			turns, told := hooked(t, map[string]string{c.hook: c.script}, saying("ready"), agent.Order{}, onTrial, "hello")
			if _, end := spoken(t, turns[0]); end.Outcome != map[bool]string{true: agent.TurnDone, false: agent.TurnFailed}[c.why == ""] || !strings.HasPrefix(end.Reason, c.why) {
				t.Errorf("it ends %+v", end)
			}
			if _, end := spoken(t, turns[1]); end.Outcome != agent.TurnDone || len(told) < c.told || len(told) > c.told+1 {
				t.Errorf("the next turn ends %+v; the agent was told %q", end, told)
			}
		})
	}
}

// TestAHookThatFailsLeavesTheWordsAndEverybodyIsTold is the promise that no hook swallows a message by an accident.
func TestAHookThatFailsLeavesTheWordsAndEverybodyIsTold(t *testing.T) {
	for name, script := range map[string]string{
		"exit status 3: no idea": "echo no idea >&2; exit 3", "did not answer with one JSON object": "echo hello", "EOF": ":", "unknown field": `echo '{"text":"x","root":true}'`,
		"something follows it": `echo '{}{}'`, "more than 1048576 bytes": "head -c 2000000 /dev/zero", "cannot unmarshal": `echo '{"text":7}'`,
	} {
		for _, hook := range []string{"on-message", "before-send"} {
			turns, told := hooked(t, map[string]string{hook: script}, saying("Hi."), agent.Order{}, "hello")
			is(t, told, "hello")
			text, end := spoken(t, turns[0])
			if !strings.HasPrefix(text, "Hi.\n\n(the hook "+hook+" ") || !strings.Contains(text, name) || !strings.HasSuffix(text, "; the words stand as they were)") || end.Outcome != agent.TurnDone {
				t.Errorf("%s, %s: it says %q, ends %+v", hook, name, text, end)
			}
			if all := strings.Join(turns[0], "\n"); !strings.Contains(all, "\nsallyport: the hook "+hook) {
				t.Errorf("a person is shown\n%s", all)
			}
		}
	}
}

func TestAHookThatLeavesAProcessBehindHoldsNobodyUp(t *testing.T) {
	turns, _ := hooked(t, map[string]string{"before-send": `sleep 300 & echo '{"text":"Good day."}'`}, saying("Hi."), agent.Order{}, "hello")
	if text, _ := spoken(t, turns[0]); text != "Good day." {
		t.Errorf("it says %q", text)
	}
}

// TestWordsInTheMiddleOfATurnDoNotPassAHookBy holds them back for the next turn, where the hook sees them.
func TestWordsInTheMiddleOfATurnDoNotPassAHookBy(t *testing.T) {
	began := make(chan bool, 2)
	gate := make(chan struct{})
	dir := t.TempDir()
	disktest.Put(t, filepath.Join(dir, "on-message"), "#!/bin/sh\necho '{}'\n", 0o755)
	p := &played{steers: true, turn: func(context.Context, string, agent.Show) (string, error) {
		began <- true
		<-gate
		return "", nil
	}}
	in, host := io.Pipe()
	status := make(chan int, 1)
	go func() {
		status <- adapter.Run(t.Context(), adapter.Options{Engines: map[string]agent.Engine{"played": p}, In: in, Out: io.Discard, Home: t.TempDir(), Hooks: dir})
	}()
	fmt.Fprintln(host, `{"engine":"played","agent":"codex","text":"","max_turns":0,"chat":true}`)
	fmt.Fprintln(host, `{"type":"tell","id":"1","text":"one"}`)
	<-began
	fmt.Fprintln(host, `{"type":"tell","id":"2","text":"two"}`)
	fmt.Fprintln(host, `{"type":"resume","checkpoint_id":"it is read once what came before is heard"}`)
	host.Close()
	close(gate)
	<-status
	is(t, p.told(), "one", "two")
}

func TestWhereThereAreNoHooksNothingIsRun(t *testing.T) {
	turns, told := hooked(t, nil, saying("Hi."), agent.Order{}, "hello")
	is(t, told, "hello")
	if text, _ := spoken(t, turns[0]); text != "Hi." {
		t.Errorf("it says %q", text)
	}
}
