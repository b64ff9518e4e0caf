package modeltest

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// tool is what an agent offers.
type tool struct {
	name   string
	group  string // in which it is offered, on the responses wire; "" = none
	free   bool   // takes free text (a custom tool of the responses wire)
	schema schema
}

type schema struct {
	Properties map[string]property `json:"properties"`
	Required   []string            `json:"required"`
}

type property struct {
	Type any `json:"type"` // a word, or several
}

// kind is the word in lower case, as not every wire writes it.
func (p property) kind() string {
	word, _ := p.Type.(string)
	return strings.ToLower(word)
}

// meanings are names of tools by what they do, and names of their arguments; the first that is offered is taken.
var meanings = map[string]struct {
	tools []string
	args  map[string][]string
}{
	"shell": {[]string{"exec_command", "shell_command", "shell", "run_shell_command", "bash", "run"},
		map[string][]string{"command": {"command", "cmd"}}},
	"write": {[]string{"write_file", "write"},
		map[string][]string{"path": {"path", "file_path", "filePath"}, "content": {"content"}}},
	"read": {[]string{"read_file", "read"},
		map[string][]string{"path": {"path", "file_path", "filePath", "absolute_path"}}},
	"edit": {[]string{"edit_file", "edit", "replace"},
		map[string][]string{"path": {"path", "file_path", "filePath"}, "old": {"old", "old_string", "oldString", "oldText"},
			"new": {"new", "new_string", "newString", "newText"}}},
}

// resolve makes a call of what the agent offers.
func (c Call) resolve(id string, offered []tool) (call, error) {
	if c.Mean == "" {
		at := slices.IndexFunc(offered, func(t tool) bool { return t.name == c.Name })
		if at < 0 && c.Name != "" { // agents put the name of a server before those of its tools
			if at = slices.IndexFunc(offered, func(t tool) bool { return strings.HasSuffix(t.name, "_"+c.Name) }); at >= 0 {
				c.Name = offered[at].name
			}
		}
		out := call{id: id, name: c.Name, args: c.Input, free: c.Input != "" && at >= 0 && offered[at].free}
		if at >= 0 {
			out.group = offered[at].group
		}
		if c.Args == nil && c.Input != "" {
			return out, nil
		}
		args, err := text(c.Args)
		out.args = args
		return out, err
	}
	m := meanings[c.Mean]
	for _, name := range m.tools {
		at := slices.IndexFunc(offered, func(t tool) bool { return strings.EqualFold(t.name, name) })
		if at < 0 {
			continue
		}
		args, err := text(offered[at].schema.fill(m.args, c.args))
		return call{id: id, name: offered[at].name, args: args}, err
	}
	if c.Mean == "shell" {
		return call{}, fmt.Errorf("no tool runs a command among %s", names(offered))
	}
	return Shell(c.command()).resolve(id, offered)
}

func text(args any) (string, error) {
	switch a := args.(type) {
	case string:
		return a, nil
	case json.RawMessage:
		return string(a), nil
	case nil:
		return "{}", nil
	}
	raw, err := json.Marshal(args)
	return string(raw), err
}

// fill gives each argument the name that the schema has for it, and what else is required a value that says nothing.
func (s schema) fill(known map[string][]string, values map[string]string) map[string]any {
	out := map[string]any{}
	if _, several := s.Properties["edits"]; several && values["old"] != "" {
		out["edits"] = []map[string]string{{"oldText": values["old"], "newText": values["new"]}}
	}
	for key, value := range values {
		for _, name := range known[key] {
			p, ok := s.Properties[name]
			if !ok {
				continue
			}
			out[name] = value
			if p.kind() == "array" {
				out[name] = []string{"bash", "-lc", value}
			}
			break
		}
	}
	for _, name := range s.Required {
		if _, ok := out[name]; ok {
			continue
		}
		switch s.Properties[name].kind() {
		case "boolean":
			out[name] = false
		case "number", "integer":
			out[name] = 1
		default:
			out[name] = "as asked"
		}
	}
	return out
}

// command does with a shell what the agent has no tool for.
func (c Call) command() string {
	path := quote(c.args["path"])
	switch c.Mean {
	case "write":
		return "mkdir -p \"$(dirname " + path + ")\" && printf %s " + quote(c.args["content"]) + " > " + path
	case "edit":
		// An edit is a line's here: sed's own characters are escaped.
		esc := strings.NewReplacer("/", `\/`, "&", `\&`, ".", `\.`, "*", `\*`, "[", `\[`, "$", `\$`, "^", `\^`, "\n", `\n`)
		return "sed -i " + quote("s/"+esc.Replace(c.args["old"])+"/"+esc.Replace(c.args["new"])+"/") + " " + path
	}
	return "cat " + path
}

func quote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

func names(offered []tool) string {
	var out []string
	for _, t := range offered {
		out = append(out, t.name)
	}
	return strings.Join(out, " ")
}
