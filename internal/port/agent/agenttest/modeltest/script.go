package modeltest

import (
	"errors"
	"fmt"

	"github.com/goccy/go-yaml"
)

// step is a turn as a story's file has it.
type step struct {
	Say     string `yaml:"say"`
	Think   string `yaml:"think"`
	Calls   []act  `yaml:"calls"`
	Status  int    `yaml:"status"`
	Message string `yaml:"message"`
	After   string `yaml:"retry_after"`
	Times   int    `yaml:"times"`
	Cut     bool   `yaml:"cut"`
	Hold    bool   `yaml:"hold"` // no answer, until the server ends
	Input   int64  `yaml:"input_tokens"`
	Output  int64  `yaml:"output_tokens"`
}

// act is a call; exactly one of its fields is set.
type act struct {
	Shell string `yaml:"shell"`
	Read  string `yaml:"read"`
	Write *struct {
		Path    string `yaml:"path"`
		Content string `yaml:"content"`
	} `yaml:"write"`
	Edit *struct {
		Path string `yaml:"path"`
		Old  string `yaml:"old"`
		New  string `yaml:"new"`
	} `yaml:"edit"`
	Tool *struct {
		Name string `yaml:"name"`
		Args any    `yaml:"args"`
	} `yaml:"tool"`
}

// Parse reads a script from YAML: a list of turns with say, think, calls (shell, read, write, edit, tool), or status, or hold.
func Parse(text []byte) ([]Turn, error) {
	var steps []step
	if err := yaml.UnmarshalWithOptions(text, &steps, yaml.Strict()); err != nil {
		return nil, err
	}
	if len(steps) == 0 {
		return nil, errors.New("the script has no turns")
	}
	var turns []Turn
	for i, s := range steps {
		t := Turn{Think: s.Think, Text: s.Say, Status: s.Status, Message: s.Message, RetryAfter: s.After, Times: s.Times, Cut: s.Cut,
			Usage: Usage{Input: s.Input, Output: s.Output}}
		if s.Hold {
			t.Before = NewGate()
		}
		for _, a := range s.Calls {
			c, err := a.call()
			if err != nil {
				return nil, fmt.Errorf("turn %d: %w", i+1, err)
			}
			t.Calls = append(t.Calls, c)
		}
		turns = append(turns, t)
	}
	return turns, nil
}

func (a act) call() (Call, error) {
	switch {
	case a.Shell != "":
		return Shell(a.Shell), nil
	case a.Read != "":
		return Read(a.Read), nil
	case a.Write != nil:
		return Write(a.Write.Path, a.Write.Content), nil
	case a.Edit != nil:
		return Edit(a.Edit.Path, a.Edit.Old, a.Edit.New), nil
	case a.Tool != nil:
		return Call{Name: a.Tool.Name, Args: a.Tool.Args}, nil
	}
	return Call{}, errors.New("a call does nothing")
}
