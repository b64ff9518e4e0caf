// Package tool defines what an agent may ask its host for from inside its sandbox, and how it is said.
//
// Each tool is defined once: its name, its words for the agent, the schema of its arguments and their limits. The host
// decodes by it, the program inside the sandbox lists by it.
//
// What crosses the wall is one call on one connection of the session's own unix socket: one line of JSON to the host,
// one line back, each of at most LineMax bytes. Any program in the sandbox can connect, so the socket says which session
// asks, and nothing more. A call gives rates, not trust.
package tool

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/google/jsonschema-go/jsonschema"

	"sallyport/internal/base/pattern"
)

// Name is a tool's, as an agent calls it.
type Name string

const (
	SendMessage     Name = "send_message"
	AskUserQuestion Name = "ask_user_question"
	ScheduleTask    Name = "schedule_task"
	ListTasks       Name = "list_tasks"
	CancelTask      Name = "cancel_task"

	RequestDevChanges Name = "request_dev_changes"
	RequestSwap       Name = "request_swap"
)

// Standing are the tools of a standing group.
var Standing = []Name{SendMessage, AskUserQuestion, ScheduleTask, ListTasks, CancelTask, RequestDevChanges}

// Dev are those of an agent that changes what a group runs (SM-041).
var Dev = []Name{SendMessage, AskUserQuestion, RequestSwap}

// Message is what send_message takes (CH-083).
type Message struct {
	Text string `json:"text" jsonschema:"What is sent, as it stands."`
	To   string `json:"to,omitempty" jsonschema:"Your dev agent, by its name, if it is to hear this (SM-042). Without it the conversation hears it."`
}

// DevChanges is what request_dev_changes takes (SM-020).
type DevChanges struct {
	Summary      string `json:"summary" jsonschema:"What is to be changed in the code, prompts, hooks or skills that you run on, and why: all that another agent needs to know that has not heard the conversation."`
	DevAgentName string `json:"dev_agent_name,omitempty" jsonschema:"What that agent is called, such as dev-greet-by-name."`
	Message      string `json:"message,omitempty" jsonschema:"The id of the message that wishes it: its sender may confirm the change, or have it taken back."`
}

// Swap is what request_swap takes (SM-051).
type Swap struct {
	PerFileSummaries map[string]string `json:"per_file_summaries" jsonschema:"For each file that you changed, by its path from the top: what changes there."`
	OverallSummary   string            `json:"overall_summary" jsonschema:"What the whole change does, for the person who approves it."`
	CommitSHA        string            `json:"commit_sha" jsonschema:"The commit of your branch that is to land, with all your work in it."`
}

// Question is what ask_user_question takes (CH-096).
type Question struct {
	Question string   `json:"question" jsonschema:"One question, with all that is needed to answer it."`
	Options  []string `json:"options,omitempty" jsonschema:"The answers to choose from, each a few words. Without any the answer is free text."`
}

// Schedule is what schedule_task takes (CH-129).
type Schedule struct {
	Text         string `json:"text" jsonschema:"What is to be done then. You read it as a message, and nothing else of now."`
	ProcessAfter string `json:"processAfter,omitempty" jsonschema:"The first time, by your user's clock and without a zone: 2026-02-04T09:00."`
	Cron         string `json:"cron,omitempty" jsonschema:"When it repeats, as five fields of cron by your user's clock: 0 9 * * 1-5."`
	Interval     string `json:"interval,omitempty" jsonschema:"How often it repeats, such as 90m or 24h. Not together with cron."`
}

// Nothing is what list_tasks takes.
type Nothing struct{}

// Cancel is what cancel_task takes.
type Cancel struct {
	Task string `json:"task" jsonschema:"The id of a task, as list_tasks tells it."`
}

// Limits of arguments, in characters. All of a call has to fit into LineMax bytes.
const (
	textMax     = 32_000
	questionMax = 4_000
	optionsMax  = 10
	optionMax   = 100
	taskTextMax = 4_000 // 16,000 bytes at most: what a schedule takes
	wordMax     = 100
	summaryMax  = 8_000
	filesMax    = 200
	fileMax     = 500
)

// Definition is all there is to say of one tool.
type Definition struct {
	Name        Name
	Description string             // for the agent
	Schema      *jsonschema.Schema // of the arguments: an object of texts, lists of texts and texts by name

	resolved *jsonschema.Resolved
	decode   func(raw []byte) (any, error)
}

// Find returns the definition of a tool.
func Find(name Name) (Definition, bool) {
	all := definitions()
	at := slices.IndexFunc(all, func(d Definition) bool { return d.Name == name })
	if at < 0 {
		return Definition{}, false
	}
	return all[at], true
}

var definitions = sync.OnceValue(func() []Definition {
	text := func(most int) func(*jsonschema.Schema) {
		return func(s *jsonschema.Schema) { s.MinLength, s.MaxLength = new(1), new(most) }
	}
	options := func(s *jsonschema.Schema) {
		s.Type, s.Types, s.MaxItems, s.UniqueItems = "array", nil, new(optionsMax), true
		text(optionMax)(s.Items)
	}
	summaries := func(s *jsonschema.Schema) {
		s.MinProperties, s.MaxProperties = new(1), new(filesMax)
		text(fileMax)(s.AdditionalProperties)
	}
	return []Definition{
		define(SendMessage, "Send a message to the conversation now, before your turn ends. What you say at the end of the turn is sent without this.",
			bounds{"text": text(textMax), "to": text(wordMax)}, func(Message) error { return nil }),
		define(AskUserQuestion, "Ask the people of the conversation a question. It answers at once that the question was asked; the answer reaches you later as a message.",
			bounds{"question": text(questionMax), "options": options}, fitsQuestion),
		define(ScheduleTask, "Have something done later, once or again and again. All times are by your user's clock.",
			bounds{"text": text(taskTextMax), "processAfter": text(wordMax), "cron": text(wordMax), "interval": text(wordMax)}, fitsSchedule),
		define(ListTasks, "List what is scheduled in this conversation, with the next time of each.",
			nil, func(Nothing) error { return nil }),
		define(CancelTask, "Cancel a scheduled task.",
			bounds{"task": text(wordMax)}, func(Cancel) error { return nil }),
		define(RequestDevChanges, "Have the code that you run on changed: your runner, prompts, hooks or skills, which you cannot write. A dev agent makes the change on a copy, asks you what it needs to know, and proposes it; a person approves what lands. It answers at once; what comes of it you will hear.",
			bounds{"summary": text(summaryMax), "dev_agent_name": text(wordMax), "message": text(wordMax)}, func(DevChanges) error { return nil }),
		define(RequestSwap, "Propose what you have changed and committed. It ends your turn: nothing that you do afterwards is part of it. First ask who asked for the change whether it is OK to submit it.",
			bounds{"overall_summary": text(summaryMax), "commit_sha": text(wordMax), "per_file_summaries": summaries}, fitsSwap),
	}
})

// bounds narrow the properties of a schema.
type bounds map[string]func(*jsonschema.Schema)

// define makes a definition from the struct that the arguments become. fits judges what no schema can say; its error is one clause.
func define[T any](name Name, about string, in bounds, fits func(T) error) Definition {
	s, err := jsonschema.For[T](nil)
	if err != nil {
		panic("the schema of " + string(name) + ": " + err.Error()) // held by a test
	}
	for property, narrow := range in {
		narrow(s.Properties[property])
	}
	resolved, err := s.Resolve(nil)
	if err != nil {
		panic("the schema of " + string(name) + ": " + err.Error()) // held by a test
	}
	return Definition{Name: name, Description: about, Schema: s, resolved: resolved, decode: func(raw []byte) (any, error) {
		args, err := strictly[T](raw)
		if err == nil {
			err = fits(args)
		}
		return args, err
	}}
}

func fitsQuestion(q Question) error {
	if len(q.Options) == 1 {
		return errors.New("options: one option is no choice; give two or more, or none for free text")
	}
	return nil
}

// commitForm is an object's name, whole or not.
var commitForm = pattern.Of(`^[0-9a-f]{7,64}$`)

// blank reports whether there is nothing in a text to read.
func blank(s string) bool { return strings.TrimSpace(s) == "" }

// fitsSwap holds SM-052: what is proposed is said in words.
func fitsSwap(s Swap) error {
	switch {
	case blank(s.OverallSummary):
		return errors.New("overall_summary: it is empty")
	case !commitForm().MatchString(s.CommitSHA):
		return errors.New("commit_sha: it is no commit's name; git rev-parse HEAD says the one of your last commit")
	}
	for path, words := range s.PerFileSummaries {
		if blank(path) || blank(words) {
			return fmt.Errorf("per_file_summaries: %q has no words", path)
		}
	}
	return nil
}

func fitsSchedule(s Schedule) error {
	switch {
	case s.Cron != "" && s.Interval != "":
		return errors.New("give cron or interval, not both")
	case s.ProcessAfter == "" && s.Cron == "" && s.Interval == "":
		return fmt.Errorf("it names no time; give processAfter, cron or interval")
	}
	return nil
}
