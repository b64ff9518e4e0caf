package codex_test

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"sallyport/internal/port/agent/agenttest"
	"sallyport/internal/port/agent/agenttest/scripttest"
)

// TestMain makes the test binary codex too: a program that speaks as `codex exec --json` does and does what a script says.
func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == "exec" && os.Args[2] == "--json" {
		os.Exit(play(os.Args[3:]))
	}
	os.Exit(m.Run())
}

// fake is one run of the program.
type fake struct {
	thread, file string
	items        int
}

// play is one turn. The file of a thread has a line for each turn that was begun.
func play(args []string) int {
	f := &fake{}
	var turns [][]agenttest.Deed
	if err := json.Unmarshal([]byte(os.Getenv(scripttest.ScriptName)), &turns); err != nil {
		fmt.Fprintln(os.Stderr, "script:", err)
		return 2
	}
	switch at := slices.Index(args, "resume"); {
	case at >= 0:
		f.thread = args[at+1]
		found, _ := filepath.Glob(filepath.Join(os.Getenv("CODEX_HOME"), "sessions", "*", "*", "*", "rollout-*-"+f.thread+".jsonl"))
		if len(found) == 0 {
			fmt.Fprintln(os.Stderr, "Error: no rollout found for thread id "+f.thread)
			return 1
		}
		if f.file = found[0]; !f.has() {
			fmt.Fprintln(os.Stderr, "Error: rollout is empty")
			return 1
		}
	default:
		f.thread = fmt.Sprintf("fa5e-%d", time.Now().UnixNano())
		dir := filepath.Join(os.Getenv("CODEX_HOME"), "sessions", "2026", "01", "02")
		f.file = filepath.Join(dir, "rollout-now-"+f.thread+".jsonl")
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return 2
		}
	}
	text, err := io.ReadAll(os.Stdin)
	if err != nil || args[len(args)-1] != "-" {
		fmt.Fprintln(os.Stderr, "no words", err)
		return 2
	}
	return f.turn(turns, string(text))
}

func (f *fake) has() bool {
	info, err := os.Stat(f.file)
	return err == nil && info.Size() > 0
}

func (f *fake) tell(line string, args ...any) { fmt.Printf(line+"\n", args...) }

func (f *fake) item(when, kind, rest string) {
	f.tell(`{"type":"item.%s","item":{"id":"item_%d","type":%q%s}}`, when, f.items, kind, rest)
	f.items++
}

func quote(s string) string {
	raw, _ := json.Marshal(s)
	return string(raw)
}

func (f *fake) turn(turns [][]agenttest.Deed, text string) int {
	f.tell(`{"type":"thread.started","thread_id":%q}`, f.thread)
	before, _ := os.ReadFile(f.file)
	n := strings.Count(string(before), "\n")
	first, _, _ := strings.Cut(text, "\n")
	if err := os.WriteFile(f.file, append(before, (first+"\n")...), 0o600); err != nil {
		return 2
	}
	f.tell(`{"type":"turn.started"}`)
	f.item("completed", "agent_message", `,"text":`+quote("told: "+first))
	if len(turns) > 0 {
		for _, d := range turns[min(n, len(turns)-1)] {
			if status := f.play(d); status >= 0 {
				return status
			}
		}
	}
	f.tell(`{"type":"turn.completed","usage":{"input_tokens":1,"cached_input_tokens":0,"output_tokens":1}}`)
	return 0
}

// play does one deed; a status that is not negative ends the program.
func (f *fake) play(d agenttest.Deed) int {
	switch {
	case d.Say != "":
		f.item("completed", "agent_message", `,"text":`+quote(d.Say))
	case d.Think != "":
		f.item("completed", "reasoning", `,"text":`+quote(d.Think))
	case d.Write != "":
		err := os.WriteFile(d.Write, []byte(d.Content), 0o644)
		f.item("completed", "file_change", fmt.Sprintf(`,"changes":[{"path":%q,"kind":"add"}],"status":%q`, d.Write, map[bool]string{true: "completed", false: "failed"}[err == nil]))
	case d.Delete != "":
		_ = os.Remove(d.Delete)
		f.item("completed", "file_change", fmt.Sprintf(`,"changes":[{"path":%q,"kind":"delete"}],"status":"completed"`, d.Delete))
	case d.Hang:
		interrupted := make(chan os.Signal, 1)
		signal.Notify(interrupted, syscall.SIGINT)
		if d.Await == "for ever" { // for no signal that can be caught
			signal.Ignore(syscall.SIGINT, syscall.SIGTERM)
		}
		<-interrupted
		return 1
	case d.Fail != "":
		f.tell(`{"type":"error","message":%s}`, quote(d.Fail))
		f.tell(`{"type":"turn.failed","error":{"message":%s}}`, quote(d.Fail))
		return 1
	case d.Die:
		fmt.Fprintln(os.Stderr, "thread 'main' has panicked")
		return 101
	case d.Leave:
		cmd := exec.Command("/bin/sh", "-c", "exec sleep 600")
		cmd.Stdout = os.Stdout // and holds the end of it up
		cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
		if err := cmd.Start(); err != nil {
			return 2
		}
	case d.Print != "":
		for range max(d.Times, 1) {
			if _, err := io.WriteString(os.Stdout, d.Print); err != nil {
				return 2
			}
		}
	}
	return -1
}
