package acp

import (
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"sallyport/internal/base/disk/disktest"
	"sallyport/internal/port/agent"
)

// program puts a program that calls the host's tools on the PATH.
func toolProgram(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), agent.ToolsProgram)
	disktest.Put(t, path, "#!/bin/sh\n", 0o755)
	t.Setenv("PATH", filepath.Dir(path))
	return path
}

func TestTheHostsToolsAreAnMCPServerOfTheSession(t *testing.T) {
	program := toolProgram(t)
	o := agent.Order{Chat: true, Tools: "/run/tools.sock", System: "Be kind.", Off: []string{"AskUserQuestion"}}
	server := `"mcpServers":[{"args":["--socket","/run/tools.sock","mcp"],"command":"` + program + `","env":[],"name":"sallyport"}]`
	for name, row := range map[string]struct {
		served bool
		meta   []string
	}{
		"acp:x": {true, nil}, "gemini": {true, nil}, "codex-acp": {true, nil}, "opencode": {true, nil}, "qwen": {false, nil},
		"claude": {true, []string{`"systemPrompt":{"append":"Be kind.\n\nWork that takes longer than 30 minutes`, `"disallowedTools":["AskUserQuestion"]`, `"title":"a conversation"`}},
	} {
		for _, last := range []string{"", "old"} {
			o.Agent = name
			talk, p := play(t, o)
			done := opening(talk, last)
			p.answers(p.hears("initialize"), `{"protocolVersion":1,"agentCapabilities":{"loadSession":true}}`)
			m := <-p.heard
			if strings.Contains(string(m.Params), server) != row.served || !row.served && !strings.Contains(string(m.Params), `"mcpServers":[]`) {
				t.Errorf("%s begins with %s", name, m.Params)
			}
			for _, want := range row.meta {
				if !strings.Contains(string(m.Params), want) {
					t.Errorf("%s is not told %s: %s", name, want, m.Params)
				}
			}
			p.answers(m, `{"sessionId":"s"}`)
			if err := <-done; err != nil {
				t.Error(err)
			}
			if told := talk.foreword != ""; told != (name == "acp:x" && last == "") {
				t.Errorf("%s is told who it is before its first words: %t", name, told)
			}
		}
	}
}

// TestNoConversationHasToolsThatWaitForNobody is CH-096: they are off whatever a group says, and more by its runner.yaml.
func TestNoConversationHasToolsThatWaitForNobody(t *testing.T) {
	program := filepath.Join(t.TempDir(), "claude-agent-acp")
	disktest.Put(t, program, "#!/bin/sh\n", 0o755)
	task := agent.Task{Agent: "claude", Chat: true, Off: []string{"Bash"}, Path: filepath.Dir(program), Home: t.TempDir(), Top: t.TempDir()}
	p, err := New().Program(task)
	if err != nil {
		t.Fatal(err)
	}
	var o agent.Order
	if err := json.Unmarshal(p.Stdin, &o); err != nil {
		t.Fatal(err)
	}
	if want := []string{"AskUserQuestion", "Bash", "EnterPlanMode", "EnterWorktree", "ExitPlanMode", "ExitWorktree"}; !slices.Equal(o.Off, want) {
		t.Errorf("off are %q", o.Off)
	}
	task.Chat = false
	if p, err := New().Program(task); err != nil || strings.Contains(string(p.Stdin), "AskUserQuestion") {
		t.Errorf("a change: %s, %v", p.Stdin, err)
	}
}

func TestAProgramThatIsNotThereIsToldAndTheSessionBegins(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	talk, p := play(t, agent.Order{Chat: true, Tools: "/run/tools.sock"})
	done := opening(talk, "")
	p.answers(p.hears("initialize"), `{"protocolVersion":1}`)
	m := p.hears("session/new")
	p.answers(m, `{"sessionId":"s"}`)
	if err := <-done; err != nil || !strings.Contains(string(m.Params), `"mcpServers":[]`) || !strings.Contains(p.show.String(), "the tools of the host cannot be used") {
		t.Errorf("%v, %s\n%s", err, m.Params, p.show)
	}
}

// TestAnAgentIsToldOnceWhoItIs holds that each is told where it takes it, or else before the first words of a session that is new.
func TestAnAgentIsToldOnceWhoItIs(t *testing.T) {
	o := agent.Order{Chat: true, System: "Be kind.", Tools: "/run/tools.sock"}
	byHand := "--help lists them"
	for name, file := range map[string]string{"gemini": ".gemini/GEMINI.md", "codex-acp": ".codex/AGENTS.md", "opencode": ".config/opencode/sallyport.md", "qwen": ".qwen/QWEN.md"} {
		at := placed(t, name, "")
		at.Order.Chat, at.Order.System, at.Order.Tools = o.Chat, o.System, o.Tools
		if err := dialectOf(name).prepare(at); err != nil {
			t.Fatal(err)
		}
		raw, err := os.ReadFile(filepath.Join(at.home, file))
		if err != nil || !strings.HasPrefix(string(raw), "Be kind.\n") || strings.Contains(string(raw), byHand) != (name == "qwen") {
			t.Errorf("%s: %q, %v", name, raw, err)
		}
	}
	if config := opencodeConfig(placed(t, "opencode", "")); !slices.ContainsFunc(config["instructions"].([]string), func(s string) bool { return strings.HasSuffix(s, "/.config/opencode/sallyport.md") }) {
		t.Errorf("opencode reads %q", config["instructions"])
	}

	toolProgram(t)
	talk, p := ready(t, o)
	for _, row := range []struct{ words, want string }{{"Hello", `is ended after 30 minutes.\n\nHello"`}, {"Again", `"text":"Again"`}} {
		m, done := prompted(t.Context(), talk, p, row.words)
		if !strings.Contains(string(m.Params), row.want) {
			t.Errorf("it is told %s", m.Params)
		}
		p.answers(m, `{"stopReason":"end_turn"}`)
		<-done
	}

	talk, p = play(t, o)
	done := opening(talk, "s")
	p.answers(p.hears("initialize"), `{"protocolVersion":1,"agentCapabilities":{"loadSession":true}}`)
	p.answers(p.hears("session/load"), `{}`)
	if err := <-done; err != nil || talk.foreword != "" {
		t.Errorf("one that goes on is told %q, %v", talk.foreword, err)
	}
}

func TestAToolCallIsSeenToBeginAndToEnd(t *testing.T) {
	talk, p := ready(t, agent.Order{Denied: []string{"fetch"}})
	m, done := prompted(t.Context(), talk, p, "Work")
	p.update(`{"sessionUpdate":"tool_call","toolCallId":"1","kind":"execute","title":"sleep 9","status":"pending","rawInput":{"command":"sleep 9","timeout":600000},"_meta":{"claudeCode":{"toolName":"Bash"}}}`)
	p.update(`{"sessionUpdate":"tool_call_update","toolCallId":"1","status":"in_progress"}`)
	p.update(`{"sessionUpdate":"tool_call","toolCallId":"2","kind":"read","title":"a.txt","status":"completed","rawInput":{"timeout":"soon"}}`)
	p.update(`{"sessionUpdate":"tool_call_update","toolCallId":"1","status":"failed"}`)
	p.says(`{"jsonrpc":"2.0","id":"q1","method":"session/request_permission","params":{"sessionId":"s","toolCall":{"toolCallId":"3","kind":"fetch","title":"x"},"options":[{"optionId":"no","kind":"reject_once"}]}}`)
	p.hears("")
	p.answers(m, `{"stopReason":"end_turn"}`)
	<-done
	want := []agent.Tool{
		{ID: "1", Kind: "execute", Title: "sleep 9", Name: "Bash", Timeout: 10 * time.Minute}, {ID: "2", Kind: "read", Title: "a.txt"}, {ID: "3", Kind: "fetch", Title: "x"},
	}
	if !reflect.DeepEqual(p.show.began, want) || !slices.Equal(p.show.ended, []string{"2 false", "1 true", "3 true"}) {
		t.Errorf("%+v\n%q", p.show.began, p.show.ended)
	}
}
