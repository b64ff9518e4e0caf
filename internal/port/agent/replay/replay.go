// Package replay plays a script of edits and commands: an agent that needs no
// model, no account and no network, and is a real process in the sandbox.
package replay

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/token"

	"sallyport/internal/base/problem"
	"sallyport/internal/base/yamltext"
	"sallyport/internal/port/agent"
	"sallyport/internal/port/sandbox"
)

// Driver plays a task's Script.
type Driver struct{}

// New returns the driver.
func New() Driver { return Driver{} }

var _ agent.Driver = Driver{}

func (Driver) Name() string { return "replay" }

// Capabilities says what a script can do; it gets messages if one of its steps awaits one.
func (Driver) Capabilities() agent.Capabilities { return agent.Sandboxed }

// Program checks the script and hands it to our own program inside.
func (Driver) Program(task agent.Task) (agent.Program, error) {
	if task.Chat {
		return agent.Program{}, problem.Errorf(problem.Usage, "sallyport agent list",
			"a script answers nobody, so it cannot serve a conversation; name an agent")
	}
	if len(task.Script) == 0 {
		return agent.Program{}, problem.Errorf(problem.Usage, "sallyport run --help", "the replay agent has no script")
	}
	script, err := Parse(task.Script)
	if err != nil {
		return agent.Program{}, err
	}
	text, err := json.Marshal(script)
	if err != nil {
		return agent.Program{}, fmt.Errorf("encode script: %w", err)
	}
	return agent.Program{
		Name: "replay", Argv: []string{sandbox.InitPath, "runner", "replay"}, Stdin: append(text, '\n'),
		Messages: task.Messages || script.Awaits(),
	}, nil
}

// Types as they are written in YAML; a key that is not here is refused with its line.
type file struct {
	Steps []step `yaml:"steps"`
}

type step struct {
	Say     *string  `yaml:"say"`
	Run     *string  `yaml:"run"`
	Write   *write   `yaml:"write"`
	Replace *replace `yaml:"replace"`
	Delete  *string  `yaml:"delete"`
	Rename  *rename  `yaml:"rename"`
	Await   *string  `yaml:"await"`
	Timeout string   `yaml:"timeout"`
	When    string   `yaml:"when"`
	Expect  string   `yaml:"expect"`
}

type write struct {
	Path    string `yaml:"path"`
	Content string `yaml:"content"`
	Mode    string `yaml:"mode"`
}

type replace struct {
	Path string `yaml:"path"`
	Old  string `yaml:"old"`
	New  string `yaml:"new"`
}

type rename struct {
	From string `yaml:"from"`
	To   string `yaml:"to"`
}

// Limits of a script, which may come from anywhere.
const (
	ScriptBytesMax = 256 << 10
	nestingMax     = 256       // brackets in the text of files count too
	timeoutMax     = time.Hour // of an await
)

// bounded refuses, before it is parsed, what would keep the parser busy or mean more than it shows.
func bounded(text []byte) error {
	const next = "sallyport run --help"
	if why, at := yamltext.Unreadable(text, ScriptBytesMax, nestingMax); why != "" {
		return problem.Errorf(problem.Usage, next, "the replay script is not valid: line %d: %s", 1+bytes.Count(text[:at], []byte("\n")), why)
	}
	for _, t := range lexer.Tokenize(string(text)) {
		switch t.Type {
		case token.AnchorType, token.AliasType, token.MergeKeyType, token.TagType, token.DirectiveType:
			return problem.Errorf(problem.Usage, next,
				"the replay script is not valid: line %d: an anchor, alias, merge key, tag or directive is not allowed", t.Position.Line)
		}
	}
	return nil
}

// Parse reads a script strictly. Errors: problem.Usage, with the line or the step.
func Parse(text []byte) (agent.Script, error) {
	if err := bounded(text); err != nil {
		return agent.Script{}, err
	}
	var f file
	if err := yaml.UnmarshalWithOptions(text, &f, yaml.Strict()); err != nil {
		return agent.Script{}, refuse("%s", strings.TrimSpace(yaml.FormatError(err, false, false)))
	}
	if len(f.Steps) == 0 {
		return agent.Script{}, refuse("it has no steps")
	}
	var script agent.Script
	for i, s := range f.Steps {
		out, err := s.check()
		if err != nil {
			return agent.Script{}, refuse("step %d %w", i+1, err)
		}
		script.Steps = append(script.Steps, out)
	}
	return script, nil
}

func refuse(format string, args ...any) error {
	return problem.Errorf(problem.Usage, "sallyport run --help", "the replay script is not valid: "+format, args...)
}

// check holds a step to exactly one verb with everything it needs.
func (s step) check() (agent.Step, error) {
	out := agent.Step{When: s.When, Expect: s.Expect}
	verbs := 0
	text := func(from *string, to *string) error {
		if from == nil {
			return nil
		}
		if verbs++; *from == "" {
			return fmt.Errorf("has a verb without a text")
		}
		*to = *from
		return nil
	}
	for _, err := range []error{text(s.Say, &out.Say), text(s.Run, &out.Run), text(s.Delete, &out.Delete), text(s.Await, &out.Await)} {
		if err != nil {
			return out, err
		}
	}
	if w := s.Write; w != nil {
		verbs++
		if w.Path == "" {
			return out, fmt.Errorf("writes no path")
		}
		if mode, err := strconv.ParseUint(w.Mode, 8, 32); w.Mode != "" && (err != nil || mode > 0o777) {
			return out, fmt.Errorf("has the mode %q, which is no octal number up to 0777", w.Mode)
		}
		out.Write = &agent.Write{Path: w.Path, Content: w.Content, Mode: w.Mode}
	}
	if r := s.Replace; r != nil {
		verbs++
		if r.Path == "" || r.Old == "" {
			return out, fmt.Errorf("replaces nothing: it needs path and old")
		}
		out.Replace = &agent.Replace{Path: r.Path, Old: r.Old, New: r.New}
	}
	if r := s.Rename; r != nil {
		verbs++
		if r.From == "" || r.To == "" {
			return out, fmt.Errorf("renames nothing: it needs from and to")
		}
		out.Rename = &agent.Rename{From: r.From, To: r.To}
	}
	if s.Timeout != "" {
		limit, err := time.ParseDuration(s.Timeout)
		if err != nil || limit <= 0 || limit > timeoutMax {
			return out, fmt.Errorf("has timeout: %q; write a time up to %s, such as 90s", s.Timeout, timeoutMax)
		}
		out.Timeout = limit
	}
	switch {
	case verbs != 1:
		return out, fmt.Errorf("has %d verbs; write one of say, run, write, replace, delete, rename, await", verbs)
	case s.Await != nil && *s.Await != agent.AwaitViolation && *s.Await != agent.AwaitTell:
		return out, fmt.Errorf("has await: %q; write %s or %s", *s.Await, agent.AwaitViolation, agent.AwaitTell)
	case s.Timeout != "" && s.Await == nil:
		return out, fmt.Errorf("has timeout without await")
	case s.When != "" && s.When != agent.Failed && s.When != agent.Passed:
		return out, fmt.Errorf("has when: %q; write failed or passed", s.When)
	case s.Expect != "" && s.Expect != agent.Pass && s.Expect != agent.Fail:
		return out, fmt.Errorf("has expect: %q; write pass or fail", s.Expect)
	case s.Expect != "" && s.Run == nil:
		return out, fmt.Errorf("has expect without run")
	}
	return out, nil
}
