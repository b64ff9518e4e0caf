package acp_test

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"sallyport/internal/port/agent"
	"sallyport/internal/port/agent/acp"
	"sallyport/internal/port/agent/agenttest"
	"sallyport/internal/port/agent/agenttest/scripttest"
)

// TestMain makes the test binary an agent's program too.
func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == "acp" {
		os.Exit(fake())
	}
	os.Exit(m.Run())
}

func TestTheEngineHoldsTheContractWithAFakeAgent(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	agenttest.Engine(t, agenttest.Subject{
		Steers: true, Loads: true, Scripted: true, Patience: 5 * time.Minute, // a flood takes long on a busy machine
		Make: func(t *testing.T, _, _ string, turns [][]agenttest.Deed) (agent.Engine, agent.Order) {
			return acp.Engine{}, agent.Order{Engine: acp.Name, Agent: "acp:fake", Argv: []string{self, "acp"}, Env: []string{scripttest.Script(turns)}}
		},
	})
}

// envelope is a message of the protocol, read and written without any of the product's code.
type envelope struct {
	ID     json.RawMessage `json:"id,omitempty"`
	Method string          `json:"method,omitempty"`
	Params json.RawMessage `json:"params,omitempty"`
	Result json.RawMessage `json:"result,omitempty"`
}

// faker is an agent that does one turn of its script for each prompt.
type faker struct {
	turns   [][]agenttest.Deed
	inbox   chan envelope
	session string
	done    int
	asked   int
}

// fake is the program.
func fake() int {
	f := &faker{inbox: make(chan envelope, 64)}
	if err := json.Unmarshal([]byte(os.Getenv(scripttest.ScriptName)), &f.turns); err != nil {
		fmt.Fprintln(os.Stderr, "fake agent:", err)
		return 2
	}
	go func() { // ends with stdin
		defer close(f.inbox)
		lines := bufio.NewScanner(os.Stdin)
		lines.Buffer(nil, 4<<20)
		for lines.Scan() {
			var e envelope
			if json.Unmarshal(lines.Bytes(), &e) == nil {
				f.inbox <- e
			}
		}
	}()
	for e := range f.inbox {
		f.serve(e)
	}
	return 0
}

func (f *faker) serve(e envelope) {
	var params struct {
		Session string `json:"sessionId"`
	}
	_ = json.Unmarshal(e.Params, &params)
	switch e.Method {
	case "initialize":
		f.answer(e, `{"protocolVersion":1,"agentCapabilities":{"loadSession":true},"_meta":{"steering":{"supported":true}}}`)
	case "session/new":
		f.session = "fake" + strconv.Itoa(os.Getpid())
		_ = os.WriteFile(f.file(), nil, 0o600)
		f.answer(e, `{"sessionId":"`+f.session+`"}`)
	case "session/load":
		raw, err := os.ReadFile(filepath.Join(os.Getenv("HOME"), filepath.Base(params.Session)))
		if err != nil {
			fmt.Printf(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32603,"message":"there is no such session"}}`+"\n", e.ID)
			return
		}
		f.session, f.done = params.Session, len(raw)
		f.say("what was said before")
		f.answer(e, `{}`)
	case "session/prompt":
		f.prompt(e)
	case "_session/steering":
		f.answer(e, `{"outcome":"promptRequired"}`)
	}
}

func (f *faker) file() string { return filepath.Join(os.Getenv("HOME"), f.session) }

func (f *faker) answer(e envelope, result string) {
	fmt.Printf(`{"jsonrpc":"2.0","id":%s,"result":%s}`+"\n", e.ID, result)
}

func (f *faker) update(u map[string]any) {
	raw, _ := json.Marshal(map[string]any{"jsonrpc": "2.0", "method": "session/update", "params": map[string]any{"sessionId": f.session, "update": u}})
	fmt.Printf("%s\n", raw)
}

func (f *faker) say(text string) {
	f.update(map[string]any{"sessionUpdate": "agent_message_chunk", "content": map[string]string{"type": "text", "text": text}})
}

// prompt does the next turn; what comes after the last is the last again.
func (f *faker) prompt(e envelope) {
	var deeds []agenttest.Deed
	if len(f.turns) > 0 {
		deeds = f.turns[min(f.done, len(f.turns)-1)]
	}
	f.done++
	_ = os.WriteFile(f.file(), []byte(strings.Repeat("x", f.done)), 0o600)
	reason := "end_turn"
	for _, d := range deeds {
		over, err := f.play(d)
		if err != nil {
			fmt.Printf(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32603,"message":"Internal error","data":{"details":%q}}}`+"\n", e.ID, err.Error())
			return
		}
		if over {
			reason = "cancelled"
			break
		}
	}
	f.answer(e, `{"stopReason":"`+reason+`"}`)
}

// play does one deed; over says that the turn was cancelled.
func (f *faker) play(d agenttest.Deed) (over bool, err error) {
	switch {
	case d.Say != "":
		f.say(d.Say)
	case d.Write != "":
		if !f.may("edit", d.Write) {
			return true, nil
		}
		return false, os.WriteFile(d.Write, []byte(d.Content), 0o644)
	case d.Hang, d.Steered:
		return f.wait(d.Steered), nil
	case d.Fail != "":
		return false, errors.New("401 " + d.Fail)
	case d.Die:
		os.Exit(3)
	case d.Leave:
		cmd := exec.Command("/bin/sh", "-c", "exec sleep 600")
		cmd.SysProcAttr = &unix.SysProcAttr{Setsid: true}
		return false, cmd.Start()
	case d.Print != "":
		f.print(d)
	}
	return false, nil
}

// print writes what makes no sense, or the suite's flood of words in the words of this protocol.
func (f *faker) print(d agenttest.Deed) {
	var word struct {
		Say string `json:"say"`
	}
	flood := json.Unmarshal([]byte(d.Print), &word) == nil && word.Say != ""
	out := bufio.NewWriter(os.Stdout)
	defer out.Flush()
	for range max(d.Times, 1) {
		if flood {
			fmt.Fprintf(out, `{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":%q,"update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":%q}}}}`+"\n", f.session, word.Say)
			continue
		}
		_, _ = out.WriteString(d.Print)
	}
}

// may asks for a permission.
func (f *faker) may(kind, title string) bool {
	f.asked++
	call := map[string]any{"toolCallId": "call" + strconv.Itoa(f.asked), "kind": kind, "title": title, "status": "pending"}
	raw, _ := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": "ask" + strconv.Itoa(f.asked), "method": "session/request_permission", "params": map[string]any{
		"sessionId": f.session, "toolCall": call,
		"options": []map[string]string{{"optionId": "ever", "kind": "allow_always"}, {"optionId": "now", "kind": "allow_once"}, {"optionId": "no", "kind": "reject_once"}},
	}})
	fmt.Printf("%s\n", raw)
	for e := range f.inbox {
		if string(e.ID) == `"ask`+strconv.Itoa(f.asked)+`"` {
			return strings.Contains(string(e.Result), `"now"`)
		}
	}
	return false
}

// wait waits to be cancelled or, if it may, to be told something.
func (f *faker) wait(steered bool) (over bool) {
	for e := range f.inbox {
		switch {
		case e.Method == "session/cancel":
			return true
		case e.Method == "_session/steering" && steered:
			f.answer(e, `{"outcome":"injected"}`)
			return false
		case e.Method == "_session/steering":
			f.answer(e, `{"outcome":"promptRequired"}`)
		}
	}
	time.Sleep(time.Hour) // its stdin has ended: it is to be killed
	return true
}
