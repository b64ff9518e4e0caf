package codex

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"sallyport/internal/base/inert"
	"sallyport/internal/base/pattern"
	"sallyport/internal/port/agent"
)

// event is one line of codex's output.
type event struct {
	Type     string `json:"type"`
	ThreadID string `json:"thread_id"`
	Message  string `json:"message"` // of an error
	Error    *struct {
		Message string `json:"message"`
	} `json:"error"`
	Item item `json:"item"`
}

// item is something that codex does, or says. Its fields are read one by one: what one version of codex has made of one of
// them does not hide the others.
type item struct {
	ID, Type, Text, Message, Command, Status string
	Query, Server, Tool                      string
	ExitCode                                 *int
	Changes                                  []fileChange
	Items                                    []todo
}

type fileChange struct {
	Path string `json:"path"`
	Kind string `json:"kind"` // add, delete, update
}

// tool is the kind of tool that makes such a change.
func (f fileChange) tool() string {
	if f.Kind == "delete" {
		return "delete"
	}
	return "edit"
}

type todo struct {
	Text      string `json:"text"`
	Completed bool   `json:"completed"`
}

// UnmarshalJSON takes of an item what it can.
func (i *item) UnmarshalJSON(raw []byte) error {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(raw, &fields); err != nil {
		return err
	}
	for name, to := range map[string]any{
		"id": &i.ID, "type": &i.Type, "text": &i.Text, "message": &i.Message, "command": &i.Command, "status": &i.Status, "query": &i.Query,
		"server": &i.Server, "tool": &i.Tool, "exit_code": &i.ExitCode, "changes": &i.Changes, "items": &i.Items,
	} {
		if field, ok := fields[name]; ok {
			_ = json.Unmarshal(field, to) // what is not as expected is as good as not there
		}
	}
	return nil
}

// parse reads a line; what is no event is an error.
func parse(line []byte) (e event, err error) {
	if err := json.Unmarshal(line, &e); err != nil {
		return event{}, fmt.Errorf("what it wrote is no event: %w", err)
	}
	return e, nil
}

const (
	oddMax    = 20        // kinds of events that nobody knows, in a turn; more are not told
	wordsMax  = 256 << 10 // bytes of one text of codex
	todosMax  = 100
	filesMax  = 50 // of one change
	wordyMost = 2 << 10
)

// report is what one turn has come to.
type report struct {
	show   agent.Show
	odd    map[string]bool // what was told about, once
	begun  func(thread string)
	denied []string // kinds of tools that are refused

	started   bool   // a thread is
	says      string // its last words
	trouble   string // the last error that it told of; it may have gone on
	failed    string // why its turn failed
	over      bool   // its turn
	completed bool
	done      int    // of its list, when it was last shown
	unasked   string // kind of a tool that is refused and was used: codex asks nobody
}

// take shows an event.
func (r *report) take(e event) {
	switch e.Type {
	case "thread.started":
		r.started = true
		if proper(e.ThreadID) {
			r.begun(e.ThreadID)
		} else {
			r.strange("thread", "codex's session cannot go on later: it has no usable name")
		}
	case "turn.started", "item.plan.delta":
		r.started = true
	case "turn.completed":
		r.completed = !r.over // what has failed has failed
		r.over = true
	case "turn.failed":
		if r.over {
			return
		}
		r.over, r.failed = true, r.trouble
		if e.Error != nil && e.Error.Message != "" {
			r.failed = brief(e.Error.Message)
		}
		if r.failed == "" {
			r.failed = "codex does not say why"
		}
	case "error":
		r.trouble = brief(e.Message)
		r.show.Note("codex: " + r.trouble)
	case "item.started":
		r.begins(e.Item)
	case "item.updated":
		if e.Item.Type == "todo_list" {
			r.list(e.Item.Items)
		}
	case "item.completed":
		r.ends(e.Item)
	case "":
		r.strange("", "codex wrote a line that is no event")
	default:
		r.strange(e.Type, "codex reports an event that sallyport does not know: "+brief(e.Type))
	}
}

// strange tells of a kind of thing once.
func (r *report) strange(kind, text string) {
	if r.odd == nil {
		r.odd = map[string]bool{}
	}
	if r.odd[kind] || len(r.odd) >= oddMax {
		return
	}
	r.odd[kind] = true
	r.show.Note(text)
}

// uses notes that codex uses a tool of a kind.
func (r *report) uses(kind string) {
	if r.unasked == "" && slices.Contains(r.denied, kind) {
		r.unasked = kind
	}
}

// begin shows a tool that codex has begun to use.
func (r *report) begin(i item, kind, title, name string) {
	r.uses(kind)
	r.show.Began(agent.Tool{ID: i.ID, Kind: kind, Title: title, Name: name})
}

// tool shows a tool that codex has used.
func (r *report) tool(kind, title string) {
	r.uses(kind)
	r.show.Tool(kind, title)
}

// begins shows what codex has begun to do.
func (r *report) begins(i item) {
	switch i.Type {
	case "command_execution":
		r.begin(i, "execute", command(i.Command), "shell")
	case "file_change":
		for _, f := range i.Changes {
			r.uses(f.tool())
		}
	case "mcp_tool_call":
		r.begin(i, "other", i.Server+" "+i.Tool, i.Tool)
	case "collab_tool_call":
		r.begin(i, "other", "another agent: "+i.Tool, i.Tool)
	case "todo_list":
		r.list(i.Items)
	}
}

// ends shows what codex has done or said.
func (r *report) ends(i item) {
	switch i.Type {
	case "agent_message", "plan":
		text := inert.Cut(i.Text, wordsMax)
		r.says = inert.Cut(text, agent.SaysBytesMax)
		r.show.Say(strings.TrimRight(text, "\n") + "\n")
	case "reasoning":
		r.show.Think(strings.TrimRight(inert.Cut(i.Text, wordsMax), "\n") + "\n")
	case "command_execution":
		r.show.Ended(i.ID, i.Status == "failed" || i.Status == "declined")
		if i.ExitCode != nil && *i.ExitCode != 0 {
			r.show.Note(fmt.Sprintf("the command ended with status %d", *i.ExitCode))
		} else if i.Status == "failed" || i.Status == "declined" {
			r.show.Note("the command was not run to its end")
		}
	case "file_change":
		r.files(i)
	case "mcp_tool_call", "collab_tool_call":
		r.show.Ended(i.ID, i.Status == "failed")
		if i.Status == "failed" {
			r.show.Note("the call of " + i.Tool + " failed")
		}
	case "web_search":
		r.tool("search", i.Query)
	case "todo_list":
		r.list(i.Items)
	case "error":
		r.show.Note("codex: " + brief(i.Message))
	default:
		r.strange("item "+i.Type, "codex does something that sallyport does not know: "+brief(i.Type))
	}
}

func (r *report) files(i item) {
	for at, f := range i.Changes {
		if at == filesMax {
			r.show.Note(fmt.Sprintf("and %d more files", len(i.Changes)-at))
			break
		}
		r.tool(f.tool(), f.Path)
	}
	if i.Status == "failed" || i.Status == "declined" {
		r.show.Note("the files were not changed")
	}
}

// list shows how far codex is by its own list, when that has changed.
func (r *report) list(items []todo) {
	done, next := 0, ""
	for _, i := range items[:min(len(items), todosMax)] {
		if i.Completed {
			done++
		} else if next == "" {
			next = i.Text
		}
	}
	if len(items) == 0 || done == r.done && done > 0 {
		return
	}
	r.done = done
	title := fmt.Sprintf("%d of %d done", done, len(items))
	if next != "" {
		title += ", next: " + next
	}
	r.show.Tool("think", title)
}

// shell is how codex runs a command.
var shell = pattern.Of(`^(?:/usr)?(?:/bin/)?(?:ba|z|da)?sh -l?c `)

// command is a command line without the shell that codex runs each in.
func command(line string) string {
	words := line[len(shell().FindString(line)):]
	if len(words) == len(line) {
		return line
	}
	if inner, err := agent.Words(words); err == nil && len(inner) == 1 {
		return inner[0]
	}
	return words
}

// brief is a text of codex as one short line.
func brief(s string) string { return inert.Line(inert.Cut(strings.TrimSpace(s), wordyMost)) }
