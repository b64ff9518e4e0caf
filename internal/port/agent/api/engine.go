package api

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"

	"sallyport/internal/base/pattern"
	"sallyport/internal/port/agent"
	"sallyport/internal/port/sandbox"
)

const (
	// QuestionsMax is how often a model is asked in one turn.
	QuestionsMax = 50
	// CallsMax is how many calls of tools one turn has.
	CallsMax = 200
)

// Engine is the inside: the model's hands.
type Engine struct {
	Dir  string // workspace; "" = where the process stands
	Home string // "" = $HOME
	// Questions and Calls are of one turn; 0 = QuestionsMax, CallsMax.
	Questions, Calls int
	// ContextBytes is what a model is reminded of; 0 has a default.
	ContextBytes int
}

var _ agent.Engine = Engine{}

// Open loads what was kept of the conversation named last.
func (e Engine) Open(ctx context.Context, o agent.Order, last string, show agent.Show) (agent.Conversation, error) {
	w, ok := wires[o.Wire]
	if !ok {
		return nil, fmt.Errorf("the agent api does not speak %q; it speaks chat, messages and responses", o.Wire)
	}
	if o.Base == "" {
		return nil, errors.New("the agent api has no model that it may ask: sallyport agent list says what is missing")
	}
	dir, home := e.Dir, e.Home
	if home == "" {
		home = os.Getenv("HOME")
	}
	stood := ""
	if dir == "" {
		here, err := os.Getwd()
		if err != nil {
			return nil, fmt.Errorf("find the workspace: %w", err)
		}
		if dir = here; sandbox.Below(here, sandbox.Mountpoint) {
			dir = sandbox.Mountpoint
			stood = strings.TrimPrefix(here, dir+"/")
		}
	}
	t := &talk{
		home: home, show: show, model: o.Model, client: newClient(w, o.Base, show.Note),
		questions: orElse(e.Questions, QuestionsMax), calls: orElse(e.Calls, CallsMax), room: orElse(e.ContextBytes, contextBytesMax),
		kept: newKept(o.Wire),
	}
	if last != "" {
		k, err := load(home, last)
		switch {
		case err == nil:
			k.Wire, t.loaded = o.Wire, true
			t.kept = k
		case !errors.Is(err, os.ErrNotExist):
			show.Note("the agent cannot read what it kept of the conversation: " + err.Error())
		}
	}
	var err error
	if t.shop, err = openWorkshop(dir, o.Env, o.Denied); err != nil {
		return nil, fmt.Errorf("open the workspace: %w", err)
	}
	if err := t.shop.fit(ctx, o); err != nil {
		show.Note(err.Error())
	}
	switch t.system = system(dir, stood); {
	case o.Chat:
		t.system = conversing(dir) + "\n\n" + o.Foreword(false)
	case o.Tools != "":
		t.system += "\n" + proposing
	}
	return t, t.save()
}

func orElse(n, usual int) int {
	if n > 0 {
		return n
	}
	return usual
}

// system is what the model is told first, the same in every turn; stood is the folder in dir that the person stood in.
func system(dir, stood string) string {
	text := `You are a careful software engineer who works alone on a copy of a repository in ` + dir +
		`. Nobody answers questions: decide, and say what you decided.
Look before you change: read files that say how this repository is worked on (AGENTS.md, README, CONTRIBUTING) and the code around your change. Change what was asked for and nothing else, in the style that is there. Where the repository has tests, run those that matter before you say you are done.
Paths are relative to the workspace. You are in a sandbox, and its network is closed but for what its owner lets through. Do not commit: your files are looked at as they are. They are checked by rules that you cannot see; when you are told that one is broken, correct it, by other means if need be.
When you have finished, say in a few sentences what you did and what is left open. Claim nothing that you have not seen.`
	if stood != "" && stood != dir {
		text += "\nThe person who asks stands in the folder " + stood + "."
	}
	return text
}

// proposing is what the model of an agent is told that proposes its work itself.
const proposing = `What you are asked says whom you ask and when you commit, and that goes before what is said here: by your tools you are answered, and your commit is what you propose.`

// conversing is what the model of a conversation is told before the group's own prompts.
func conversing(dir string) string {
	return `You are an assistant in a conversation with people. What they say comes as messages; what you say at the end of your turn is sent to them.
You stand in the folder ` + dir + `; AGENTS.md there says who you are: read it first. Paths are relative to it. You are in a sandbox, and its network is closed but for what its owner lets through. Claim nothing that you have not seen.`
}

var errClosed = errors.New("the conversation is closed")

// talk is one conversation.
type talk struct {
	home   string
	show   agent.Show
	client *client
	shop   *workshop
	system string
	loaded bool

	questions, calls, room int

	mu      sync.Mutex
	working bool
	steered []string                // words for the next question
	stop    context.CancelCauseFunc // of the turn that is under way
	closed  bool

	// What follows belongs to the one who prompts.
	kept  kept
	model string
}

var _ agent.Conversation = (*talk)(nil)

func (t *talk) Session() string { return t.kept.Session }
func (t *talk) Loaded() bool    { return t.loaded }

// Close ends the conversation and a turn that is under way. Commands end with their calls.
func (t *talk) Close() error {
	t.mu.Lock()
	already := t.closed
	t.closed = true
	if t.stop != nil {
		t.stop(errClosed)
	}
	t.mu.Unlock()
	if already {
		return nil
	}
	t.client.http.CloseIdleConnections()
	return t.shop.root.Close()
}

// Steer keeps words for the next question of a turn that is under way.
func (t *talk) Steer(_ context.Context, text string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.working {
		t.steered = append(t.steered, text)
	}
	return t.working
}

// steering takes the words that came meanwhile; with none, last ends the turn: what comes then is another turn's.
func (t *talk) steering(last bool) (text string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	text = strings.Join(t.steered, "\n\n")
	t.steered = nil
	if last && text == "" {
		t.working = false
	}
	return text
}

// add puts an entry to what was said and keeps it.
func (t *talk) add(e entry) error {
	t.kept.Said = append(t.kept.Said, e)
	return t.save()
}

func (t *talk) save() error {
	if err := t.kept.save(t.home); err != nil {
		return fmt.Errorf("keep the conversation: %w", err)
	}
	return nil
}

// Prompt asks until the model has no more to do.
func (t *talk) Prompt(ctx context.Context, text string) (says string, err error) {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	t.mu.Lock()
	closed := t.closed
	t.working, t.stop = !closed, stop
	t.mu.Unlock()
	if closed {
		return "", errClosed
	}
	defer func() {
		for left := t.steering(true); left != ""; left = t.steering(true) { // nobody asks any more in this turn: the next question has them
			err = errors.Join(err, t.add(entry{Role: roleUser, Text: left}))
		}
	}()
	t.kept.Said = mend(t.kept.Said)
	if err := t.add(entry{Role: roleUser, Text: orBlank(strings.TrimSpace(text))}); err != nil {
		return "", err
	}
	calls := 0
	for range t.questions {
		r, err := t.question(ctx)
		if err != nil {
			return says, err
		}
		if r.text != "" {
			says = r.text
		}
		if err := t.work(ctx, r.calls, &calls); err != nil {
			return says, err
		}
		more := t.steering(len(r.calls) == 0 && r.stop != stopLength)
		switch {
		case more != "":
			err = t.add(entry{Role: roleUser, Text: more})
		case r.stop == stopRefused:
			return says, errors.New("the model refuses to go on")
		case len(r.calls) > 0:
		case r.stop == stopLength:
			err = t.add(entry{Role: roleUser, Text: "Your answer reached its greatest length and was cut off. Go on, with less at once."})
		default:
			return says, nil
		}
		if err != nil {
			return says, err
		}
	}
	return says, fmt.Errorf("the model was not done after %d requests in one turn, the limit", t.questions)
}

// nameForm is what every vendor takes for the name of a tool, and for an id.
var nameForm = pattern.Of(`^[A-Za-z0-9_-]{1,64}$`)

// question asks the model once and keeps its answer.
func (t *talk) question(ctx context.Context) (reply, error) {
	if t.model == "" {
		t.model = t.kept.Model
	}
	if t.model == "" {
		t.model = t.client.choose(ctx)
		t.show.Note("the model is " + t.model)
	}
	t.kept.Model = t.model
	spoken := false
	l := listener{say: func(s string) { spoken = true; t.show.Say(s) }, think: t.show.Think}
	var r reply
	for {
		t.kept.Said = fit(t.kept.Said, t.room)
		var err error
		r, err = t.client.ask(ctx, question{model: t.model, system: t.system, tools: t.shop.tools, said: t.kept.Said}, l)
		var no refusal
		if errors.As(err, &no) && no.long() && t.room/2 >= contextBytesMin {
			t.room = min(t.room, sizeOf(t.kept.Said)) / 2
			t.show.Note("the conversation is too long for the model; old parts of it are left out")
			continue
		}
		if err != nil {
			return reply{}, err
		}
		break
	}
	if spoken {
		t.show.Say("\n")
	}
	r.text = strings.TrimSpace(r.text) // a wire takes no blank text back
	for i, c := range r.calls {
		if !nameForm().MatchString(c.Name) {
			r.calls[i].Name = "unknown"
		}
		if !nameForm().MatchString(c.ID) || t.taken(c.ID, r.calls[:i]) {
			r.calls[i].ID = fmt.Sprintf("call_%d_%d", len(t.kept.Said), i)
		}
	}
	e := entry{Role: roleAssistant, Text: r.text, Calls: r.calls, Opaque: r.opaque}
	if e.Text == "" && len(e.Calls) == 0 {
		e.Text = "(no words)"
	}
	return r, t.add(e)
}

// taken reports whether an id has been given: a result could not be told from another.
func (t *talk) taken(id string, now []call) bool {
	for _, c := range now {
		if c.ID == id {
			return true
		}
	}
	for _, e := range t.kept.Said {
		for _, c := range e.Calls {
			if c.ID == id {
				return true
			}
		}
	}
	return false
}

// work does what the model asks for, one after the other, and keeps each result as it comes.
func (t *talk) work(ctx context.Context, calls []call, count *int) error {
	for _, c := range calls {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if *count++; *count > t.calls {
			return fmt.Errorf("the model was not done after %d tool calls in one turn, the limit", t.calls)
		}
		result, ok := t.shop.do(ctx, c, t.show)
		if err := t.add(entry{Role: roleTool, ID: c.ID, Text: result, Failed: !ok}); err != nil {
			return err
		}
	}
	return nil
}
