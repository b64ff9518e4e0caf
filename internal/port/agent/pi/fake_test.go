package pi_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"sallyport/internal/port/agent/agenttest"
	"sallyport/internal/port/agent/agenttest/scripttest"
)

// TestMain makes the test binary pi too: a program that speaks as `pi --mode rpc` does and does what a script says.
func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == "--mode" && os.Args[2] == "rpc" {
		os.Exit(play(os.Args[3:]))
	}
	os.Exit(m.Run())
}

// What a Deed can await of the fake, beside the port's own: what it is told next, of these kinds.
const (
	awaitIdle   = "asked, it is idle"    // get_state
	awaitBusy   = "asked, it is busy"    // get_state
	awaitLeft   = "asked, it holds more" // get_state: words lie there that nothing will deliver
	awaitAnswer = "answer"               // of a dialog; it is written to the file answers
	awaitRefuse = "steer, refused"
	awaitAbort  = "abort" // it is written to the file aborted
)

// told is a command.
type told struct {
	ID, Type, Message, StreamingBehavior, Provider, ModelID string
}

// fake is the program.
type fake struct {
	turns   [][]agenttest.Deed
	inbox   chan string // lines
	session string
	model   string
	said    []string // messages
	busy    bool
	left    int
	steered []string
}

func play(args []string) int {
	f := &fake{inbox: make(chan string, 16), session: after(args, "--session"), model: after(args, "--model")}
	if err := json.Unmarshal([]byte(os.Getenv(scripttest.ScriptName)), &f.turns); err != nil {
		fmt.Fprintln(os.Stderr, "script:", err)
		return 2
	}
	note("args", strings.Join(args, " "))
	if raw, err := os.ReadFile(f.session); err == nil {
		if strings.Contains(string(raw), "poison") {
			fmt.Fprintln(os.Stderr, "Stored session working directory does not exist")
			return 1
		}
		f.said = strings.Split(strings.TrimSpace(string(raw)), "\n")
	}
	go func() { // ends with stdin
		defer close(f.inbox)
		in := bufio.NewReader(os.Stdin)
		for {
			line, err := in.ReadString('\n')
			if err != nil {
				return
			}
			f.inbox <- line
		}
	}()
	for line := range f.inbox {
		f.hear(line, "")
	}
	return 0
}

func after(args []string, flag string) string {
	return args[slices.Index(args, flag)+1]
}

// note appends a line to a file in the fake's home folder.
func note(name, line string) {
	f, err := os.OpenFile(filepath.Join(os.Getenv("HOME"), name), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err == nil {
		fmt.Fprintln(f, line)
		f.Close()
	}
}

func tell(line string, args ...any) { fmt.Printf(line+"\n", args...) }

func quote(s string) string {
	raw, _ := json.Marshal(s)
	return string(raw)
}

// keep is what a session's file gets.
func (f *fake) keep(role, text string) {
	line := fmt.Sprintf(`{"role":%q,"text":%s}`, role, quote(text))
	f.said = append(f.said, line)
	_ = os.MkdirAll(filepath.Dir(f.session), 0o700)
	_ = os.WriteFile(f.session, []byte(strings.Join(f.said, "\n")+"\n"), 0o600)
}

// hear does one command; it returns whether it was what a turn awaits.
func (f *fake) hear(line, awaited string) bool {
	var c told
	if err := json.Unmarshal([]byte(line), &c); err != nil {
		tell(`{"type":"response","command":"parse","success":false,"error":"Failed to parse command"}`)
		return false
	}
	ok := func(data string) {
		tell(`{"id":%q,"type":"response","command":%q,"success":true%s}`, c.ID, c.Type, data)
	}
	switch c.Type {
	case "get_state":
		busy, left := f.busy && awaited != awaitIdle && awaited != awaitLeft, f.left
		if awaited == awaitLeft {
			left = 1
		}
		ok(fmt.Sprintf(`,"data":{"model":{"id":%q,"provider":"anthropic"},"isStreaming":%t,"isCompacting":false,"messageCount":%d,"pendingMessageCount":%d}`, f.model, busy, len(f.said), left))
		return awaited == awaitIdle || awaited == awaitBusy || awaited == awaitLeft
	case "get_available_models":
		ok(`,"data":{"models":[{"id":"claude-known","provider":"anthropic"},{"id":"test-model","provider":"sallyport"}]}`)
	case "set_model":
		note("model", c.Provider+"/"+c.ModelID)
		ok(`,"data":{}`)
	case "extension_ui_response":
		note("answers", strings.TrimSpace(line))
		return awaited == awaitAnswer
	case "abort":
		note("aborted", "yes")
		ok("")
		return true
	case "prompt":
		switch {
		case f.busy && c.StreamingBehavior == "":
			tell(`{"id":%q,"type":"response","command":"prompt","success":false,"error":"Agent is already processing."}`, c.ID)
		case awaited == awaitRefuse || strings.HasPrefix(c.Message, "refuse this"):
			tell(`{"id":%q,"type":"response","command":"prompt","success":false,"error":"No API key found for anthropic."}`, c.ID)
			return true
		case f.busy:
			f.steered = append(f.steered, c.Message)
			ok("")
			return awaited == "steer"
		default:
			ok("")
			f.turn(c.Message)
		}
	}
	return false
}

// await does commands until the one that a turn waits for.
func (f *fake) await(what string) (heard bool) {
	for line := range f.inbox {
		if f.hear(line, what) {
			return true
		}
	}
	os.Exit(0)
	return false
}

func (f *fake) turn(text string) {
	n := 0
	for _, m := range f.said {
		if strings.HasPrefix(m, `{"role":"user"`) {
			n++
		}
	}
	f.busy = true
	tell(`{"type":"agent_start"}`)
	tell(`{"type":"turn_start"}`)
	f.keep("user", text)
	tell(`{"type":"message_end","message":{"role":"user","content":%s}}`, quote(text))
	stop, failure := "stop", ""
	if len(f.turns) > 0 {
		for _, d := range f.turns[min(n, len(f.turns)-1)] {
			if d.Fail != "" {
				stop, failure = "error", d.Fail
				break
			}
			if over := f.play(d); over {
				stop = "aborted"
				break
			}
		}
	}
	if stop != "stop" {
		tell(`{"type":"message_end","message":{"role":"assistant","content":[],"stopReason":%q,"errorMessage":%s}}`, stop, quote(failure))
	}
	f.busy = false
	tell(`{"type":"turn_end","message":{},"toolResults":[]}`)
	tell(`{"type":"agent_end","messages":[{"role":"user","content":%s}]}`, quote(text))
}

func (f *fake) say(text string) {
	tell(`{"type":"message_start","message":{"role":"assistant","content":[]}}`)
	half := len(text) / 2
	for i, piece := range []string{text[:half], text[half:]} {
		partial := fmt.Sprintf(`{"role":"assistant","content":[{"type":"text","text":%s}]}`, quote(text[:half+i*(len(text)-half)]))
		tell(`{"type":"message_update","message":%s,"assistantMessageEvent":{"type":"text_delta","contentIndex":0,"delta":%s,"partial":%s}}`, partial, quote(piece), partial)
	}
	f.keep("assistant", text)
	tell(`{"type":"message_end","message":{"role":"assistant","content":[{"type":"text","text":%s}],"stopReason":"stop","usage":{"input":1,"output":1,"cost":{"total":0}}}}`, quote(text))
}

// play does one deed; over says that the turn was interrupted.
func (f *fake) play(d agenttest.Deed) (over bool) {
	switch {
	case d.Say != "":
		f.say(d.Say)
	case d.Think != "":
		tell(`{"type":"message_update","message":{},"assistantMessageEvent":{"type":"thinking_delta","contentIndex":0,"delta":%s}}`, quote(d.Think))
	case d.Write != "":
		tell(`{"type":"tool_execution_start","toolCallId":"c1","toolName":"write","args":{"path":%s,"content":%s}}`, quote(d.Write), quote(d.Content))
		err := os.WriteFile(d.Write, []byte(d.Content), 0o644)
		f.keep("assistant", "wrote")
		tell(`{"type":"tool_execution_end","toolCallId":"c1","toolName":"write","result":{"content":[]},"isError":%t}`, err != nil)
	case d.Delete != "":
		tell(`{"type":"tool_execution_start","toolCallId":"c2","toolName":"bash","args":{"command":%s}}`, quote("rm -r "+d.Delete))
		_ = os.RemoveAll(d.Delete)
		tell(`{"type":"tool_execution_end","toolCallId":"c2","toolName":"bash","result":{},"isError":false}`)
	case d.Hang:
		f.await(awaitAbort)
		return true
	case d.Steered:
		f.await("steer")
	case d.Await != "":
		f.await(d.Await)
	case d.Die:
		fmt.Fprintln(os.Stderr, "FATAL ERROR: Reached heap limit")
		os.Exit(134)
	case d.Leave:
		cmd := exec.Command("/bin/sh", "-c", "exec sleep 600")
		cmd.Stdout = os.Stdout // and holds the end of it up
		cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
		if err := cmd.Start(); err != nil {
			os.Exit(2)
		}
	case d.Print != "":
		for range max(d.Times, 1) {
			if _, err := io.WriteString(os.Stdout, d.Print); err != nil {
				os.Exit(2)
			}
		}
	}
	return false
}
