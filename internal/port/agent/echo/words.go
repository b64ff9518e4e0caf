package echo

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"sallyport/internal/base/problem"
	"sallyport/internal/port/agent"
	"sallyport/internal/port/tool"
)

const (
	recallMax = 32 << 10
	toolMax   = 24 * time.Hour
	help      = "I repeat what you say. I also know: /remember WORDS, /recall, /tool SECONDS, /say WORDS, /ask QUESTION | OPTION | OPTION, " +
		"/remind WHEN WORDS (2026-02-04T09:00, or 90m for again and again), /tasks, /cancel ID, /fail WORDS, /change LINES. " +
		"LINES are of these kinds: " + changeLines + ".\n" +
		"A card is answered to sallyport, and I do not hear it: the number of an option, or approve, refuse: WHY, change: WHAT; CONFIRM HOST for the host; " +
		"confirm (CODE, for the host) or rollback for what is on trial. The card's own number before it, such as 12 2, says which card is meant."
)

// words are those that do something. What went wrong with what a person wrote is an answer; an error fails the turn.
var words = map[string]func(ctx context.Context, t *talk, rest string) (string, error){
	"/help":     func(context.Context, *talk, string) (string, error) { return help, nil },
	"/remember": remember,
	"/recall":   recall,
	"/tool":     busy,
	"/say": func(ctx context.Context, t *talk, rest string) (string, error) {
		if rest == "" {
			return "What am I to say? Write /say WORDS.", nil
		}
		return "", t.call(ctx, tool.SendMessage, tool.Message{Text: rest}, func(tool.Result) {})
	},
	"/ask":    ask,
	"/remind": remind,
	"/tasks":  tasks,
	"/cancel": func(ctx context.Context, t *talk, rest string) (string, error) {
		if rest == "" {
			return "Which task? Write /cancel ID; /tasks names them.", nil
		}
		return t.told(ctx, tool.CancelTask, tool.Cancel{Task: rest})
	},
	"/change": changes,
	"/fail": func(_ context.Context, _ *talk, rest string) (string, error) {
		return "", errors.New("echo was told to fail: " + rest)
	},
}

// file is the note that echo keeps in the memory folder.
func (t *talk) file() string { return filepath.Join(t.memory, Name+".md") }

func remember(_ context.Context, t *talk, rest string) (string, error) {
	if rest == "" {
		return "What am I to remember? Write /remember WORDS.", nil
	}
	if err := t.remember(rest); err != nil {
		return "", fmt.Errorf("write into the memory folder: %w", err)
	}
	return "I remember: " + rest, nil
}

func recall(_ context.Context, t *talk, _ string) (string, error) {
	text, err := t.recall()
	if err != nil {
		return "", fmt.Errorf("read the memory folder: %w", err)
	}
	if text == "" {
		return "I remember nothing.", nil
	}
	return "I remember:\n" + text, nil
}

// busy is a tool that takes its time.
func busy(ctx context.Context, t *talk, rest string) (string, error) {
	seconds, err := strconv.ParseFloat(rest, 64)
	length := time.Duration(seconds * float64(time.Second))
	if err != nil || !(seconds >= 0 && seconds <= toolMax.Seconds()) {
		return "How long? Write /tool SECONDS, at most a day.", nil
	}
	id := t.begin("execute", "wait for "+length.String(), length)
	limit := time.NewTimer(length)
	defer limit.Stop()
	select {
	case <-limit.C:
		t.show.Ended(id, false)
		return "I was busy for " + length.String() + ".", nil
	case <-ctx.Done():
		t.show.Ended(id, true)
		return "", context.Cause(ctx)
	}
}

func ask(ctx context.Context, t *talk, rest string) (string, error) {
	parts := strings.Split(rest, "|")
	for i := range parts {
		parts[i] = strings.TrimSpace(parts[i])
	}
	if parts[0] == "" {
		return "What am I to ask? Write /ask QUESTION, or /ask QUESTION | OPTION | OPTION.", nil
	}
	return t.told(ctx, tool.AskUserQuestion, tool.Question{Question: parts[0], Options: parts[1:]})
}

func remind(ctx context.Context, t *talk, rest string) (string, error) {
	when, text, _ := strings.Cut(rest, " ")
	s := tool.Schedule{Text: strings.TrimSpace(text), ProcessAfter: when}
	if s.Text == "" {
		return "When, and of what? Write /remind 2026-02-04T09:00 WORDS, or /remind 90m WORDS for again and again.", nil
	}
	if _, err := time.ParseDuration(when); err == nil {
		s.ProcessAfter, s.Interval = "", when
	}
	return t.told(ctx, tool.ScheduleTask, s)
}

func tasks(ctx context.Context, t *talk, _ string) (says string, err error) {
	err = t.call(ctx, tool.ListTasks, tool.Nothing{}, func(r tool.Result) {
		lines := []string{r.Text}
		for _, task := range r.Tasks {
			lines = append(lines, strings.TrimSpace(fmt.Sprintf("%s: %s: %s %s", task.ID, task.Next, task.Text, task.Repeat)))
		}
		says = strings.Join(lines, "\n")
	})
	return says, err
}

// told is what the host says to a call.
func (t *talk) told(ctx context.Context, verb tool.Name, args any) (says string, err error) {
	err = t.call(ctx, verb, args, func(r tool.Result) { says = strings.TrimSpace(r.Text + " " + r.ID) })
	return says, err
}

// call asks the host. What it refuses is said in the conversation; a host that does not answer fails the turn.
func (t *talk) call(ctx context.Context, verb tool.Name, args any, take func(tool.Result)) error {
	if t.socket == "" {
		t.say("I have no tools here.")
		return nil
	}
	r, err := t.ask(ctx, verb, args)
	if err == nil {
		take(r)
		return nil
	}
	return t.refused(err)
}

// refused says in the conversation why the host did not do what it was asked for; that it does not answer fails the turn.
func (t *talk) refused(err error) error {
	if err == nil {
		return nil
	}
	said := problem.Of(err)
	if said.Kind == problem.Unavailable || said.Kind == problem.Internal {
		return err
	}
	t.say("I could not: " + said.Text)
	return nil
}

// ask is one call, shown as a tool.
func (t *talk) ask(ctx context.Context, verb tool.Name, args any) (tool.Result, error) {
	raw, err := json.Marshal(args)
	if err != nil {
		return tool.Result{}, err
	}
	id := t.begin("other", string(verb), 0)
	r, err := tool.Ask(ctx, t.socket, tool.Request{Verb: verb, Args: raw})
	t.show.Ended(id, err != nil)
	return r, err
}

// begin shows that a tool begins.
func (t *talk) begin(kind, title string, length time.Duration) (id string) {
	t.calls++
	id = strconv.Itoa(t.calls)
	t.show.Began(agent.Tool{ID: id, Kind: kind, Title: title, Name: Name, Timeout: length})
	return id
}
