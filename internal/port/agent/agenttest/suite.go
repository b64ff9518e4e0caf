// Package agenttest is what every driver of an agent has to hold.
package agenttest

import (
	"strings"
	"testing"

	"sallyport/internal/base/problem"
	"sallyport/internal/port/agent"
	"sallyport/internal/port/sandbox"
)

// Run holds a driver to the port's promises. Task is one that it takes.
func Run(t *testing.T, driver agent.Driver, task agent.Task) {
	t.Run("its name is a word", func(t *testing.T) {
		if name := driver.Name(); name == "" || strings.Trim(name, "abcdefghijklmnopqrstuvwxyz") != "" {
			t.Errorf("%q", name)
		}
	})
	t.Run("a task becomes a program", func(t *testing.T) {
		p, err := driver.Program(task)
		if err != nil {
			t.Fatal(err)
		}
		if p.Name == "" || len(p.Argv) == 0 || p.Argv[0] == "" {
			t.Errorf("%+v", p)
		}
		for _, b := range p.Binds {
			if b.Writable || sandbox.Below(task.Home, b.Source) || task.Top != "" && sandbox.Below(task.Top, b.Source) {
				t.Errorf("it shows %+v", b)
			}
		}
		again, err := driver.Program(task)
		if err != nil || strings.Join(again.Argv, "\x00") != strings.Join(p.Argv, "\x00") {
			t.Errorf("the second time it is %q, %v", again.Argv, err)
		}
	})
	t.Run("its capabilities agree with one another and with its programs", func(t *testing.T) {
		c := driver.Capabilities()
		switch c.PauseProtocol {
		case agent.PauseSignal, agent.PauseMessage, agent.PauseNone:
		default:
			t.Errorf("it pauses by %q", c.PauseProtocol)
		}
		if c.PauseResume != (c.PauseProtocol != agent.PauseNone) || c.Acknowledgment && !c.MessagePassing ||
			c.PauseProtocol == agent.PauseMessage && !c.Acknowledgment {
			t.Errorf("%+v", c)
		}
		told := task
		told.Messages = true
		p, err := driver.Program(told)
		if err != nil || p.Messages != c.MessagePassing {
			t.Errorf("a program that reads messages: %t, %v; %+v", p.Messages, err, c)
		}
		if p.Messages && len(p.Stdin) > 0 && p.Stdin[len(p.Stdin)-1] != '\n' {
			t.Errorf("the first message would be part of the last line of its stdin %q", p.Stdin)
		}
	})
	t.Run("it serves a conversation, or refuses it with a way out", func(t *testing.T) {
		talks := task
		talks.Chat, talks.Text, talks.System, talks.Tools = true, "", "Be kind.", "/run/tools.sock"
		p, err := driver.Program(talks)
		if err != nil {
			if problem.KindOf(err) != problem.Usage || problem.Of(err).Next == "" {
				t.Errorf("%v", err)
			}
			return
		}
		if !p.Chat || !p.Turns || !p.Messages || !p.Keeps {
			t.Errorf("%+v", p)
		}
	})
	t.Run("a task that is not its own is refused with a way out", func(t *testing.T) {
		_, err := driver.Program(agent.Task{Path: task.Path, Home: task.Home, Top: task.Top})
		if p := problem.KindOf(err); p != problem.Usage {
			t.Fatalf("kind %q, %v", p, err)
		}
		if problem.Of(err).Next == "" {
			t.Errorf("no next step: %v", err)
		}
	})
}
