// Package tools is the program by which an agent asks its host for things: sallyport-tool, on the PATH in a sandbox.
//
// To an agent that speaks MCP it is a server on its standard input and output. To any other it is a plain program: a tool
// and its arguments as words, JSON on the standard output, a status that tells the kind of an error. Both say the same
// calls at the session's socket, and know only the tools that the host says the session has.
package tools

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"

	"sallyport/internal/base/problem"
	"sallyport/internal/port/agent"
	"sallyport/internal/port/tool"
)

// Variables in which the host says what no argument said.
const (
	VariableSocket = agent.ToolsVariable // path of the session's socket
	VariableIntake = "SALLYPORT_INTAKE"  // what the turn is for, as the host named it
)

// Statuses of the program; the same as those of sallyport.
const (
	statusError   = 1
	statusUsage   = 2
	statusRefused = 4
)

// statuses maps what went wrong to a status; what is not here is an error.
var statuses = map[problem.Kind]int{problem.Usage: statusUsage, problem.NotFound: statusUsage, problem.Refused: statusRefused, problem.Denied: statusRefused}

// Process is what Main needs of a process.
type Process struct {
	Args   []string // without the program's name
	Getenv func(string) string
	In     io.ReadCloser
	Out    io.WriteCloser
	Err    io.Writer
}

// System is this process.
func System() Process {
	return Process{Args: os.Args[1:], Getenv: os.Getenv, In: os.Stdin, Out: os.Stdout, Err: os.Stderr}
}

// Main runs the program and returns its status.
func Main(ctx context.Context, p Process) int {
	c := caller{socket: p.Getenv(VariableSocket), intake: p.Getenv(VariableIntake)}
	words := p.Args
	for len(words) > 1 && (words[0] == "--socket" || words[0] == "--intake") {
		if words[0] == "--socket" {
			c.socket = words[1]
		} else {
			c.intake = words[1]
		}
		words = words[2:]
	}

	err := c.run(ctx, p, words)
	if err == nil {
		return 0
	}
	said := problem.Of(err)
	if len(words) > 0 && words[0] == "mcp" { // its output belongs to the protocol
		fmt.Fprintln(p.Err, "sallyport-tool:", said.Text)
	} else {
		_, _ = p.Out.Write(tool.Encode(tool.Result{}, err)) // who does not read it has left
	}
	if status, known := statuses[said.Kind]; known {
		return status
	}
	return statusError
}

// caller asks at one session's socket.
type caller struct{ socket, intake string }

func (c caller) run(ctx context.Context, p Process, words []string) error {
	if c.socket == "" {
		return problem.Errorf(problem.Usage, "sallyport-tool --socket PATH --help",
			"no socket is named; give --socket PATH before the tool, or set %s", VariableSocket)
	}
	has, err := c.list(ctx)
	if err != nil {
		return err
	}
	switch {
	case len(words) == 1 && words[0] == "mcp":
		return c.serveMCP(ctx, p, has)
	case len(words) == 0, words[0] == "--help", words[0] == "-h", words[0] == "help":
		_, err := io.WriteString(p.Out, help(has))
		return err
	}

	at := slices.IndexFunc(has, func(d tool.Definition) bool { return string(d.Name) == words[0] })
	if at < 0 {
		return problem.Errorf(problem.NotFound, "sallyport-tool --help", "there is no tool %q here", words[0])
	}
	if len(words) == 2 && (words[1] == "--help" || words[1] == "-h") {
		_, err := io.WriteString(p.Out, help(has[at:at+1]))
		return err
	}
	args, err := arguments(has[at], words[1:])
	if err != nil {
		return err
	}
	r, err := c.ask(ctx, has[at].Name, args)
	if err != nil {
		return err
	}
	line, err := json.Marshal(r)
	if err == nil {
		_, err = p.Out.Write(append(line, '\n'))
	}
	return err
}

func (c caller) ask(ctx context.Context, verb tool.Name, args json.RawMessage) (tool.Result, error) {
	return tool.Ask(ctx, c.socket, tool.Request{Verb: verb, Args: args, Intake: c.intake})
}

// list returns the tools that the session has. One that this program does not know belongs to another build of the host.
func (c caller) list(ctx context.Context) ([]tool.Definition, error) {
	r, err := c.ask(ctx, tool.List, nil)
	if err != nil {
		return nil, err
	}
	var all []tool.Definition
	for _, name := range r.Tools {
		d, known := tool.Find(name)
		if !known {
			return nil, problem.Errorf(problem.Internal, "", "the host names a tool that this program does not know: %q", name)
		}
		all = append(all, d)
	}
	return all, nil
}

// arguments makes the arguments of a tool from words: --name value, again for a list, and --name key=value for texts by name.
func arguments(d tool.Definition, words []string) (json.RawMessage, error) {
	wrong := func(format string, args ...any) error {
		return problem.Errorf(problem.Usage, "sallyport-tool "+string(d.Name)+" --help", format, args...)
	}
	args := map[string]any{}
	for ; len(words) > 0; words = words[1:] {
		name, value, joined := strings.Cut(words[0], "=")
		property, known := d.Schema.Properties[strings.TrimPrefix(name, "--")]
		if !known || !strings.HasPrefix(name, "--") {
			return nil, wrong("%s has no argument %q", d.Name, name)
		}
		if !joined {
			if len(words) == 1 {
				return nil, wrong("%s has no value", name)
			}
			words = words[1:]
			value = words[0]
		}

		name = strings.TrimPrefix(name, "--")
		before, again := args[name].([]string)
		switch {
		case property.Type == "object":
			key, words, both := strings.Cut(value, "=")
			if !both {
				return nil, wrong("--%s is given as NAME=TEXT", name)
			}
			named, _ := args[name].(map[string]string)
			if named == nil {
				named = map[string]string{}
			}
			named[key], args[name] = words, named
		case property.Type == "array":
			args[name] = append(before, value)
		case args[name] != nil || again:
			return nil, wrong("--%s stands there twice", name)
		default:
			args[name] = value
		}
	}
	raw, err := json.Marshal(args)
	if err != nil {
		return nil, wrong("the arguments cannot be written: %w", err)
	}
	_, err = d.Decode(raw) // so that it is said here what is wrong, and costs no call
	return raw, err
}

// help says what tools there are and what they take.
func help(has []tool.Definition) string {
	var b strings.Builder
	b.WriteString("sallyport-tool asks the host of this session for something, and prints its answer as JSON.\n")
	for _, d := range has {
		fmt.Fprintf(&b, "\n  sallyport-tool %s%s\n      %s\n", d.Name, usage(d.Schema), d.Description)
		for _, name := range slices.Sorted(maps.Keys(d.Schema.Properties)) {
			fmt.Fprintf(&b, "      --%s: %s\n", name, d.Schema.Properties[name].Description)
		}
	}
	b.WriteString("\nStatus: 0 done, 2 the call is wrong, 4 refused, 1 anything else.\n")
	return b.String()
}

func usage(s *jsonschema.Schema) string {
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		word := "--" + name + " TEXT"
		switch {
		case s.Properties[name].Type == "array":
			word = "[" + word + "]…"
		case s.Properties[name].Type == "object":
			word = "--" + name + " NAME=TEXT …"
		case !slices.Contains(s.Required, name):
			word = "[" + word + "]"
		}
		b.WriteString(" " + word)
	}
	return b.String()
}
