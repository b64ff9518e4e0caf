// Package scripttest is an agent for tests with a protocol of its own: a program that does what a script says, turn by turn,
// and the engine that drives it. It is the first subject of the engines' contract suite, and what adapters are tested with.
package scripttest

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"sallyport/internal/port/agent/agenttest"
)

// ScriptName is the environment variable with the program's script: [][]agenttest.Deed as JSON.
const ScriptName = "SALLYPORT_TEST_SCRIPT"

// Script returns turns as an entry of an environment.
func Script(turns [][]agenttest.Deed) string {
	raw, err := json.Marshal(turns)
	if err != nil {
		panic(err) // plain data
	}
	return ScriptName + "=" + string(raw)
}

// heard is what the program is told, a line each.
type heard struct {
	Do   string `json:"do"` // open, prompt, steer, stop
	Text string `json:"text,omitempty"`
}

// told is what the program tells, a line each.
type told struct {
	Session string `json:"session,omitempty"` // answer to open
	Loaded  bool   `json:"loaded,omitempty"`
	Say     string `json:"say,omitempty"`
	Think   string `json:"think,omitempty"`
	Kind    string `json:"kind,omitempty"` // of a tool call
	Title   string `json:"title,omitempty"`
	Over    bool   `json:"over,omitempty"` // a turn is
	Error   string `json:"error,omitempty"`
}

// player is the program.
type player struct {
	turns   [][]agenttest.Deed
	inbox   chan heard
	session string
	done    int // turns
}

// Play is the program: it takes words on stdin and does one turn of its script for each prompt. It returns its status.
func Play() int {
	p := &player{inbox: make(chan heard, 16)}
	if err := json.Unmarshal([]byte(os.Getenv(ScriptName)), &p.turns); err != nil {
		fmt.Fprintln(os.Stderr, "script:", err)
		return 2
	}
	go func() { // ends with stdin
		defer close(p.inbox)
		lines := bufio.NewScanner(os.Stdin)
		lines.Buffer(nil, 4<<20)
		for lines.Scan() {
			var h heard
			if json.Unmarshal(lines.Bytes(), &h) == nil {
				p.inbox <- h
			}
		}
	}()
	for h := range p.inbox {
		switch h.Do {
		case "open":
			p.open(h.Text)
		case "prompt":
			p.prompt(h.Text)
		}
	}
	return 0
}

func (p *player) tell(t told) {
	line, err := json.Marshal(t)
	if err != nil {
		panic(err)
	}
	fmt.Printf("%s\n", line)
}

// file is where a session is kept: how many turns of it are done, and what was said in them.
func (p *player) file() string {
	return filepath.Join(os.Getenv("HOME"), ".scripted", p.session)
}

func (p *player) open(last string) {
	p.session = last
	if raw, err := os.ReadFile(p.file()); last != "" && err == nil {
		p.done = strings.Count(string(raw), "\n")
		p.tell(told{Session: last, Loaded: true})
		return
	}
	p.session, p.done = fmt.Sprintf("s%d", time.Now().UnixNano()), 0
	if err := os.MkdirAll(filepath.Dir(p.file()), 0o700); err != nil {
		p.tell(told{Error: err.Error()})
		return
	}
	p.tell(told{Session: p.session})
}

// prompt does the next turn of the script; what comes after the last is the last again.
func (p *player) prompt(text string) {
	first, _, _ := strings.Cut(text, "\n")
	p.tell(told{Say: "told: " + first + "\n"})
	var deeds []agenttest.Deed
	if len(p.turns) > 0 {
		deeds = p.turns[min(p.done, len(p.turns)-1)]
	}
	if err := p.write(p.file(), first+"\n", os.O_APPEND); err != nil {
		p.tell(told{Error: err.Error()})
		return
	}
	p.done++
	for _, d := range deeds {
		over, err := p.play(d)
		if err != nil {
			p.tell(told{Error: err.Error()})
			return
		}
		if over {
			break
		}
	}
	p.tell(told{Over: true})
}

func (p *player) write(path, text string, how int) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|how, 0o644)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	return errors.Join(err, f.Close())
}

// play does one deed; over says that the turn was interrupted.
func (p *player) play(d agenttest.Deed) (over bool, err error) {
	switch {
	case d.Say != "":
		p.tell(told{Say: d.Say})
	case d.Think != "":
		p.tell(told{Think: d.Think})
	case d.Write != "":
		p.tell(told{Kind: "edit", Title: d.Write})
		if err := os.MkdirAll(filepath.Dir(d.Write), 0o755); err != nil {
			return false, err
		}
		return false, p.write(d.Write, d.Content, os.O_TRUNC)
	case d.Delete != "":
		p.tell(told{Kind: "delete", Title: d.Delete})
		return false, os.RemoveAll(d.Delete)
	case d.Await != "":
		for {
			if _, err := os.Stat(d.Await); err == nil {
				return false, nil
			}
			time.Sleep(5 * time.Millisecond) // of the agent's, which has nothing else to wait by
		}
	case d.Hang, d.Steered:
		for h := range p.inbox {
			switch {
			case h.Do == "stop":
				return true, nil
			case h.Do == "steer" && d.Steered:
				p.tell(told{Say: "steered: " + h.Text + "\n"})
				return false, nil
			}
		}
		return true, nil
	case d.Fail != "":
		return false, errors.New(d.Fail)
	case d.Die:
		os.Exit(3)
	case d.Leave:
		cmd := exec.Command("/bin/sh", "-c", "exec sleep 600")
		cmd.SysProcAttr = &unix.SysProcAttr{Setsid: true}
		return false, cmd.Start()
	case d.Print != "":
		for range max(d.Times, 1) {
			if _, err := io.WriteString(os.Stdout, d.Print); err != nil {
				return false, err
			}
		}
	}
	return false, nil
}
