// Package command runs any program that edits files.
package command

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"sallyport/internal/base/problem"
	"sallyport/internal/port/agent"
	"sallyport/internal/port/sandbox"
)

// Driver runs a task's Argv.
type Driver struct{}

// New returns the driver.
func New() Driver { return Driver{} }

var _ agent.Driver = Driver{}

func (Driver) Name() string { return "command" }

// Capabilities says what any program can do; it gets messages only if the person says that it reads them (SV-081).
func (Driver) Capabilities() agent.Capabilities { return agent.Sandboxed }

// Program finds Argv[0] as the person's shell would in their folder, and says
// where it is inside. A program of their repository is the one of the copy.
func (Driver) Program(task agent.Task) (agent.Program, error) {
	const usage = "sallyport run --help"
	if task.Chat {
		return agent.Program{}, problem.Errorf(problem.Usage, "sallyport agent list",
			"a command takes no words, so it cannot serve a conversation; name an agent")
	}
	if len(task.Argv) == 0 || task.Argv[0] == "" {
		return agent.Program{}, problem.Errorf(problem.Usage, usage, "no command is named: write it after --")
	}
	person := sandbox.Person{Path: task.Path, Home: task.Home, Top: task.Top, Image: task.Image}
	name := task.Argv[0]
	path, err := person.Find(name, filepath.Join(task.Top, task.Workdir))
	if errors.Is(err, os.ErrPermission) {
		return agent.Program{}, problem.Errorf(problem.NotFound, "ls -l "+quote(name), "the command %q cannot be run: %w", name, err)
	}
	if err != nil && task.Image != "" {
		return agent.Program{}, person.Lacking(fmt.Sprintf("the command %q", name), err)
	}
	if errors.Is(err, os.ErrNotExist) && !strings.Contains(name, "/") {
		return agent.Program{}, problem.Errorf(problem.NotFound, "command -v "+quote(name),
			"the command %q is not on this machine: no folder of PATH has it", name)
	}
	if err != nil {
		return agent.Program{}, problem.Errorf(problem.NotFound, "command -v "+quote(name), "the command %q is not on this machine: %w", name, err)
	}
	in, err := person.Install(path)
	if task.Image != "" && errors.Is(err, os.ErrNotExist) {
		return agent.Program{}, person.Lacking(fmt.Sprintf("what the command %q needs", name), err)
	}
	if err != nil {
		return agent.Program{}, problem.Errorf(problem.NotFound, usage, "the command %q cannot be shown in a sandbox: %w", name, err)
	}
	return agent.Program{
		Name:  filepath.Base(name),
		Argv:  append([]string{in.Path}, task.Argv[1:]...),
		Dirs:  in.Dirs,
		Binds: in.Binds,

		Messages: task.Messages,
	}, nil
}

// quote makes a name one word of a shell.
func quote(name string) string {
	out := []byte{'\''}
	for i := range len(name) {
		if name[i] == '\'' {
			out = append(out, `'\''`...)
			continue
		}
		out = append(out, name[i])
	}
	return string(append(out, '\''))
}
