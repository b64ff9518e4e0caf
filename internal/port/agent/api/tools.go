package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"sallyport/internal/port/agent"
)

// tool is one thing that the model can do.
type tool struct {
	name  string
	kind  string // for a person and for permissions: read, search, edit, execute
	about string // for the model
	args  []arg
	// run does it. The result is for the model; so is an error, which says what to do instead.
	run func(ctx context.Context, w *workshop, a values) (string, error)
	// title is what a person is shown.
	title func(a values) string
	// limit is how long it may take, if it says so.
	limit func(a values) time.Duration
	// ask does it at the host, in the place of all that; given is the schema of its arguments.
	ask   func(ctx context.Context, args json.RawMessage) (string, error)
	given any
}

// arg is one argument of a tool.
type arg struct {
	name     string
	kind     string // string, integer, boolean
	about    string
	required bool
}

// values are arguments that were checked against their tool.
type values map[string]any

func (v values) text(name string) string { s, _ := v[name].(string); return s }
func (v values) number(name string) int  { n, _ := v[name].(int); return n }
func (v values) yes(name string) bool    { b, _ := v[name].(bool); return b }

func (t tool) schema() any {
	if t.given != nil {
		return t.given
	}
	type object = map[string]any
	properties := object{}
	required := []string{}
	for _, a := range t.args {
		properties[a.name] = object{"type": a.kind, "description": a.about}
		if a.required {
			required = append(required, a.name)
		}
	}
	return object{"type": "object", "properties": properties, "required": required, "additionalProperties": false}
}

const (
	argBytesMax = 1 << 20
	resultMax   = 48 << 10 // bytes of what the model is told of one call
)

// parse checks arguments as a model wrote them. Every error is one clause for the model.
func (t tool) parse(args string) (values, error) {
	if strings.TrimSpace(args) == "" {
		args = "{}"
	}
	if len(args) > argsBytesMax {
		return nil, fmt.Errorf("the arguments have %d bytes; %d is the limit", len(args), argsBytesMax)
	}
	var raw map[string]json.RawMessage
	if err := json.Unmarshal([]byte(args), &raw); err != nil || raw == nil {
		return nil, errors.New("the arguments are no JSON object; if they were cut off, do less at once")
	}
	out := values{}
	for _, a := range t.args {
		text, ok := raw[a.name]
		delete(raw, a.name)
		if !ok || string(text) == "null" {
			if a.required {
				return nil, fmt.Errorf("the argument %q is missing", a.name)
			}
			continue
		}
		v, err := a.parse(text)
		if err != nil {
			return nil, err
		}
		out[a.name] = v
	}
	for name := range raw {
		return nil, fmt.Errorf("there is no argument %q", clip(name, 64))
	}
	return out, nil
}

func (a arg) parse(raw json.RawMessage) (any, error) {
	switch a.kind {
	case "integer":
		var n int
		if json.Unmarshal(raw, &n) != nil || n < 0 {
			return nil, fmt.Errorf("the argument %q is no whole number from 0", a.name)
		}
		return n, nil
	case "boolean":
		var b bool
		if json.Unmarshal(raw, &b) != nil {
			return nil, fmt.Errorf("the argument %q is neither true nor false", a.name)
		}
		return b, nil
	}
	var s string
	if json.Unmarshal(raw, &s) != nil {
		return nil, fmt.Errorf("the argument %q is no text", a.name)
	}
	if len(s) > argBytesMax {
		return nil, fmt.Errorf("the argument %q has %d bytes; %d is the limit", a.name, len(s), argBytesMax)
	}
	return s, nil
}

// all are the tools there are.
func all() []tool {
	path := arg{"path", "string", "File or folder, relative to the workspace.", true}
	return []tool{
		{name: "read_file", kind: "read", about: "Read a text file. Long files come in parts: use offset and limit.", args: []arg{path,
			{"offset", "integer", "First line, from 1.", false}, {"limit", "integer", "How many lines at the most.", false}},
			run: readFile, title: titled("path")},
		{name: "list_files", kind: "read", about: "List a folder and the folders below it.", args: []arg{
			{"path", "string", "Folder, relative to the workspace; the workspace itself if it is left out.", false},
			{"depth", "integer", "How many levels of folders; 2 if it is left out.", false}}, run: listFiles, title: titled("path")},
		{name: "search", kind: "search", about: "Find lines that match a regular expression (RE2) in text files.", args: []arg{
			{"pattern", "string", "The regular expression.", true},
			{"path", "string", "File or folder to look in; the workspace if it is left out.", false},
			{"glob", "string", "Only files whose path matches, such as **/*.go.", false}}, run: search, title: titled("pattern")},
		{name: "write_file", kind: "edit", about: "Make a file, or replace all of it. Folders are made as needed.", args: []arg{path,
			{"content", "string", "The whole new content.", true}}, run: writeFile, title: titled("path")},
		{name: "edit_file", kind: "edit", about: "Replace a text in a file. The old text has to be there exactly once, unless all is true.", args: []arg{path,
			{"old", "string", "The text to replace, exactly as it stands in the file.", true}, {"new", "string", "What stands there then.", true},
			{"all", "boolean", "Replace every occurrence.", false}}, run: editFile, title: titled("path")},
		{name: "run", kind: "execute", about: "Run a shell command (sh -c) in the workspace. Its output comes when it has ended; what it leaves in the background is ended.", args: []arg{
			{"command", "string", "The command.", true},
			{"seconds", "integer", "How long it may take; 120 if it is left out, 600 at the most.", false}}, run: run,
			title: titled("command"), limit: runLimit},
	}
}

func titled(name string) func(values) string { return func(v values) string { return v.text(name) } }

// workshop is where tools work.
type workshop struct {
	dir   string   // absolute path of the workspace
	root  *os.Root // of it: no path leads out
	env   []string // of commands
	tools []tool
}

// openWorkshop offers the tools whose kind is not denied.
func openWorkshop(dir string, env, denied []string) (*workshop, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	tools := slices.DeleteFunc(all(), func(t tool) bool { return slices.Contains(denied, t.kind) })
	return &workshop{dir: dir, root: root, env: env, tools: tools}, nil
}

// do does what a call asks for and returns what the model is told.
func (w *workshop) do(ctx context.Context, c call, show agent.Show) (result string, ok bool) {
	at := slices.IndexFunc(w.tools, func(t tool) bool { return t.name == c.Name })
	if at < 0 {
		var names []string
		for _, t := range w.tools {
			names = append(names, t.name)
		}
		return fmt.Sprintf("There is no tool %q. There are: %s.", clip(c.Name, 64), strings.Join(names, ", ")), false
	}
	t := w.tools[at]
	if t.ask != nil {
		show.Began(agent.Tool{ID: c.ID, Kind: t.kind, Title: t.name, Name: t.name})
		result, err := t.ask(ctx, c.object())
		return told(c, result, err, show)
	}
	v, err := t.parse(c.Args)
	if err != nil {
		show.Tool(t.kind, t.name+": "+err.Error())
		return fmt.Sprintf("The call of %s was not understood: %v.", t.name, err), false
	}
	began := agent.Tool{ID: c.ID, Kind: t.kind, Title: t.name + " " + t.title(v), Name: t.name}
	if t.limit != nil {
		began.Timeout = t.limit(v)
	}
	show.Began(began)
	result, err = t.run(ctx, w, v)
	return told(c, result, err, show)
}

// told is what the model is told of a call that is over.
func told(c call, result string, err error, show agent.Show) (string, bool) {
	show.Ended(c.ID, err != nil)
	if err != nil {
		result = strings.TrimSpace(result + "\n" + err.Error())
	}
	return clip(strings.ToValidUTF8(result, "\uFFFD"), resultMax), err == nil
}

// clip is at most limit bytes of a text, whole characters, and says how much was left out.
func clip(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	return fmt.Sprintf("%s… (%d bytes more)", strings.ToValidUTF8(s[:limit], ""), len(s)-limit)
}
