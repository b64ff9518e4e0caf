package codex

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"sallyport/internal/port/agent"
	"sallyport/internal/port/agent/child"
)

// patienceMax is more than codex takes to end.
const patienceMax = 3 * time.Second

// Engine is the inside: it starts codex for each turn.
type Engine struct {
	Home string // the agent's home folder; "" = $HOME
	// Patience is how long its process has to end by itself once its turn is over or was interrupted, and what it has left
	// behind may hold its output open; 0 = 3 s.
	Patience time.Duration
}

var _ agent.Engine = Engine{}

// Open finds the thread that is to be gone on with; codex itself starts with the first words.
func (e Engine) Open(_ context.Context, o agent.Order, last string, show agent.Show) (agent.Conversation, error) {
	if len(o.Argv) == 0 {
		return nil, errors.New("no program is named")
	}
	if info, err := os.Stat(o.Argv[0]); err != nil {
		return nil, err
	} else if !info.Mode().IsRegular() || info.Mode()&0o111 == 0 {
		return nil, fmt.Errorf("%q is no program", o.Argv[0])
	}
	if e.Home == "" {
		e.Home = os.Getenv("HOME")
	}
	if e.Patience <= 0 {
		e.Patience = patienceMax
	}
	dir, err := os.Getwd()
	if err != nil {
		return nil, fmt.Errorf("find the workspace: %w", err)
	}
	t := &talk{order: o, show: show, home: e.Home, codexHome: filepath.Join(e.Home, ".codex"), dir: dir, patience: e.Patience}
	if last == "" && o.Resumed != nil { // killed in its first turn
		last = noted(t.home)
	}
	if recorded(t.codexHome, last) {
		t.thread, t.loaded = last, true
	}
	dirs := projects(dir)
	for _, project := range dirs {
		if _, err := os.Lstat(filepath.Join(project, ".codex")); err == nil && project != t.home {
			show.Note("codex does not read what the repository has in " + filepath.Join(project, ".codex") +
				": it could start programs and choose another model")
		}
	}
	if t.server, err = o.ToolServer(); err != nil {
		show.Note(err.Error())
	}
	return t, t.configure()
}

// talk is one thread.
type talk struct {
	order           agent.Order
	show            agent.Show
	home, codexHome string
	dir             string
	server          []string // of the host's tools
	patience        time.Duration

	mu     sync.Mutex
	thread string // "" = it is still to begin
	loaded bool
	closed bool
	child  *child.Child // of the turn that is under way
}

func (t *talk) Session() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.thread
}

func (t *talk) Loaded() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.loaded
}

// Steer takes nothing: codex reads words only before a turn.
func (t *talk) Steer(context.Context, string) bool { return false }

// Close ends a turn that is under way.
func (t *talk) Close() error {
	t.mu.Lock()
	t.closed = true
	c := t.child
	t.mu.Unlock()
	if c == nil {
		return nil
	}
	return c.Close()
}

var (
	errClosed   = errors.New("the conversation is closed")
	errNoThread = errors.New("codex cannot go on with its own session")
)

// Prompt is one turn: of the thread that there is, or of a new one if codex has lost it.
func (t *talk) Prompt(ctx context.Context, text string) (says string, err error) {
	if thread := t.Session(); thread != "" {
		says, err := t.turn(ctx, thread, text)
		if !errors.Is(err, errNoThread) {
			return says, err
		}
		t.show.Note(err.Error() + "; it starts a new one")
		t.mu.Lock()
		t.thread, t.loaded = "", false
		t.mu.Unlock()
		text = anew(t.order, text)
	}
	return t.turn(ctx, "", text)
}

// anew is what a thread is told that does not know what was asked for.
func anew(o agent.Order, text string) string {
	if !strings.Contains(text, o.Text) {
		text = "You have worked on this request, and do not remember it:\n\n" + o.Text + "\n\nThe files are as you left them. Now you are told:\n\n" + text
	}
	if o.Resumed != nil && o.Resumed.Transcript != "" && !strings.Contains(text, o.Resumed.Transcript) {
		text += "\n\nWhat was said and done before, from its end, as it was written down:\n\n" + o.Resumed.Transcript
	}
	return text
}

// turn starts codex with a text and reads what it does until it ends.
func (t *talk) turn(ctx context.Context, thread, text string) (says string, err error) {
	c, err := t.start(thread)
	if err != nil {
		return "", err
	}
	go func() { // ends with the text, or with codex
		_, _ = io.WriteString(c.Stdin, text) // one that does not read says so by what it does
		_ = c.Stdin.Close()
	}()
	r := &report{show: t.show, begun: t.begun, denied: t.order.Denied}
	broken := t.follow(ctx, c, r)
	err = c.Close()
	t.mu.Lock()
	t.child = nil
	t.mu.Unlock()
	switch {
	case r.unasked != "":
		return r.says, fmt.Errorf("codex used a tool of the kind %q without asking first, and its permissions: refuse that kind", r.unasked)
	case r.completed:
		return r.says, err
	case ctx.Err() != nil:
		return r.says, context.Cause(ctx)
	case r.failed != "":
		return r.says, errors.New(explain(r.failed))
	case broken != nil:
		return r.says, broken
	case thread != "" && !r.started:
		return "", fmt.Errorf("%w: %s", errNoThread, c.Fate())
	case r.trouble != "":
		return r.says, errors.New(explain(r.trouble))
	}
	return r.says, fmt.Errorf("codex has ended before its turn was over: %s", c.Fate())
}

// start starts the process of a turn.
func (t *talk) start(thread string) (*child.Child, error) {
	if err := t.configure(); err != nil {
		return nil, err
	}
	argv := append(append([]string{}, t.order.Argv...), "--skip-git-repo-check")
	if thread != "" {
		argv = append(argv, "resume", thread)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return nil, errClosed
	}
	c, err := child.Start(child.Options{Argv: append(argv, "-"), Env: environment(t.order, t.codexHome), Dir: t.dir})
	if err == nil {
		t.child = c
	}
	return c, err
}

// configure writes codex's files.
func (t *talk) configure() error {
	files := map[string][]byte{"config.toml": configuration(t.order, projects(t.dir), t.server)}
	if t.order.Chat {
		files[instructionsName] = []byte(t.order.Foreword(false) + "\n")
	}
	return configure(t.codexHome, files)
}

// begun keeps the name of the thread that has begun.
func (t *talk) begun(thread string) {
	t.mu.Lock()
	known := t.thread == thread
	t.thread = thread
	t.mu.Unlock()
	if known {
		return
	}
	if err := note(t.home, thread); err != nil {
		t.show.Note("codex's session cannot go on if it is killed now: " + err.Error())
	}
}

// follow takes events until codex is gone, does what is refused, or its output makes no sense.
func (t *talk) follow(ctx context.Context, c *child.Child, r *report) error {
	type read struct {
		event event
		err   error
	}
	lines, enough := make(chan read), make(chan struct{})
	defer close(enough)
	go func() { // ends with codex's output, or with enough
		defer close(lines)
		for {
			line, err := c.Line()
			if errors.Is(err, io.EOF) {
				return
			}
			got := read{err: err}
			if err == nil {
				got.event, _ = parse(line) // what is none has no type
			}
			select {
			case lines <- got:
			case <-enough:
				return
			}
			if got.err != nil {
				return
			}
		}
	}()
	var over <-chan time.Time
	gone, stop := c.Done(), ctx.Done()
	for {
		select {
		case got, ok := <-lines:
			if !ok {
				return nil
			}
			if got.err != nil {
				return fmt.Errorf("codex's output cannot be read: %w", got.err)
			}
			ended := r.over
			if r.take(got.event); r.unasked != "" {
				return nil
			}
			if r.over && !ended {
				over = time.After(t.patience)
			}
		case <-gone:
			gone = nil
			over = time.After(t.patience)
		case <-stop:
			stop = nil
			_ = c.Signal(syscall.SIGINT) // gone already is as good
			over = time.After(t.patience)
		case <-over:
			return nil
		}
	}
}
