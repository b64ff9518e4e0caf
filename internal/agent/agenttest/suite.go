// Package agenttest is what every driver of an agent has to hold.
package agenttest

import (
	"strings"
	"testing"

	"sallyport/internal/agent"
	"sallyport/internal/problem"
	"sallyport/internal/sandbox"
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
