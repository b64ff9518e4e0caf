package config

import (
	"bytes"
	"time"

	"github.com/goccy/go-yaml/ast"

	"sallyport/internal/base/inert"
	"sallyport/internal/base/problem"
)

// State is the front matter of a change's state.md: a copy of what the database holds, for people
// to read. Of it only ExecutionMode is ever read back, when the change is resumed (SV-041).
type State struct {
	ExecutionMode ExecutionMode     `json:"execution_mode" jsonschema:"deterministic or interactive; read when the change is resumed."`
	Change        string            `json:"change" jsonschema:"The change's id."`
	LeftOut       int               `json:"checkpoints_left_out" jsonschema:"Older checkpoints that are not listed here."`
	Checkpoints   []StateCheckpoint `json:"checkpoints" jsonschema:"Its checkpoints, the oldest first."`
}

// StateCheckpoint is one record of a checkpoint (SV-040, SV-042).
type StateCheckpoint struct {
	ID         string    `json:"checkpoint_id"`
	Timestamp  time.Time `json:"timestamp"`
	Status     string    `json:"validation_status" jsonschema:"valid, invalid or skipped."`
	Severity   string    `json:"severity" jsonschema:"The worst of its violations; empty without one."`
	Violations int       `json:"violations" jsonschema:"How many."`
	Trigger    string    `json:"trigger" jsonschema:"Why it was taken."`
	Previous   string    `json:"previous_checkpoint_id"`
	SinceLast  int       `json:"files_changed_since_last"`
	Total      int       `json:"files_changed_total"`
	Files      []string  `json:"files_changed" jsonschema:"Against the base; at most the first 20."`
}

// ParseState reads execution_mode from a state.md, "" if it says nothing; name stands in messages.
// Errors: problem.Usage if there is no front matter, or the mode is none.
func ParseState(name string, data []byte) (ExecutionMode, error) {
	front, ok := frontMatter(data)
	if !ok {
		return "", problem.Errorf(problem.Usage, edit(name), "%s has no front matter between two lines of ---", inert.Path(name))
	}
	var mode struct {
		ExecutionMode ExecutionMode `json:"execution_mode"`
	}
	b := &binder{}
	n := b.document(front)
	if len(b.found) == 0 && n != nil {
		mapping, ok := n.(*ast.MappingNode)
		if !ok {
			b.note(n, "", "it must hold keys, and is %s", kind(n))
		} else {
			b.only(mapping, "execution_mode", &mode)
		}
	}
	if len(b.found) > 0 {
		return "", source{name, edit(name), true}.refuse(b.found)
	}
	return mode.ExecutionMode, nil
}

// LoadState reads execution_mode from the state.md at path, "" if there is none.
func LoadState(path string) (ExecutionMode, error) {
	data, _, err := read(path)
	if err != nil || data == nil {
		return "", err
	}
	return ParseState(path, data)
}

// frontMatter is what stands between a first line of --- and the next, with empty lines in the
// place of the first, so that lines keep their numbers.
func frontMatter(data []byte) ([]byte, bool) {
	rest, ok := bytes.CutPrefix(data, []byte("---\n"))
	if !ok {
		return nil, false
	}
	front, _, ok := bytes.Cut(append([]byte("\n"), rest...), []byte("\n---\n"))
	if !ok {
		return nil, false
	}
	return append(front, '\n'), true
}
