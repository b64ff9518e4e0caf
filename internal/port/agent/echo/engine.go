package echo

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"os"
	"strings"
	"sync"

	"sallyport/internal/base/pattern"
	"sallyport/internal/port/agent"
	"sallyport/internal/port/tool"
)

// Engine is the inside.
type Engine struct {
	Memory string // the memory folder; "" = MemoryDir
}

// MemoryDir is where a group's memory is seen inside, writable.
const MemoryDir = "/workspace/agent/memory"

var _ agent.Engine = Engine{}

// sessionForm is a session's name.
var sessionForm = pattern.Of(`^echo-[0-9a-f]{16}$`)

// Open begins a conversation, or goes on with the last: there is nothing to forget.
func (e Engine) Open(_ context.Context, o agent.Order, last string, show agent.Show) (agent.Conversation, error) {
	if !o.Chat && o.Tools == "" {
		return nil, errors.New("echo only answers in conversations")
	}
	t := &talk{socket: o.Tools, show: show, memory: e.Memory, session: last, loaded: sessionForm().MatchString(last)}
	if t.memory == "" {
		t.memory = MemoryDir
	}
	if !t.loaded {
		raw := make([]byte, 8)
		_, _ = rand.Read(raw) // it never fails
		t.session = Name + "-" + hex.EncodeToString(raw)
	}
	if !o.Chat {
		return &dev{talk: t, top: tool.Worktree, again: o.Resumed != nil, done: map[string]string{}}, nil
	}
	for line := range strings.Lines(o.System) {
		if words, ok := strings.CutPrefix(strings.TrimSpace(line), "Greeting:"); ok {
			t.greeting = strings.TrimSpace(words)
		}
	}
	return t, nil
}

// talk is one conversation.
type talk struct {
	socket   string // of the host's tools; "" = there are none
	memory   string
	show     agent.Show
	greeting string // that each turn's answer begins with; {name} is who spoke first
	hello    string // the greeting of this turn, until it is said
	session  string
	loaded   bool
	calls    int    // of tools
	now      string // the message that is being answered

	mu      sync.Mutex
	working bool
	steered []string // batches that came in the middle of the turn
}

var _ agent.Conversation = (*talk)(nil)

func (t *talk) Session() string { return t.session }
func (t *talk) Loaded() bool    { return t.loaded }
func (t *talk) Close() error    { return nil }

// Steer keeps a batch for when what is being answered has its answer.
func (t *talk) Steer(_ context.Context, batch string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.working {
		t.steered = append(t.steered, batch)
	}
	return t.working
}

// begins lets batches come in the middle of the turn, until meanwhile finds none, or the turn ends otherwise.
func (t *talk) begins(working bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.working, t.steered = working, nil
}

// meanwhile are the messages that came in the middle of the turn; without any it takes no more.
func (t *talk) meanwhile() (all []said) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, batch := range t.steered {
		all = append(all, read(batch)...)
	}
	t.steered, t.working = nil, len(all) > 0
	return all
}

// The host asks an agent whether it answers by words that end with these, and nobody reads the answer.
const (
	onTrial = "answer with one word, such as " + ready
	ready   = "ready"
)

// Prompt answers a batch, message by message, and what comes meanwhile.
func (t *talk) Prompt(ctx context.Context, batch string) (says string, err error) {
	all := read(batch)
	if len(all) == 0 && strings.Contains(batch, onTrial) {
		t.show.Say(ready + "\n")
		return ready, nil
	}
	t.hello = ""
	if len(all) > 0 && all[0].sender != "" && !all[0].ofDev() {
		t.hello = strings.ReplaceAll(t.greeting, "{name}", all[0].sender)
	}
	t.begins(true)
	defer t.begins(false)
	for {
		if len(all) == 0 {
			all = t.meanwhile()
		}
		if len(all) == 0 {
			return says, nil
		}
		if ctx.Err() != nil {
			return says, context.Cause(ctx)
		}
		answer, err := t.answer(ctx, all[0])
		if err != nil {
			return says, err
		}
		if all = all[1:]; answer != "" {
			says = answer
			t.say(answer)
		}
	}
}

// say says something, behind the greeting of the turn if it is the first.
func (t *talk) say(words string) {
	if t.hello != "" {
		words, t.hello = t.hello+"\n"+words, ""
	}
	t.show.Say(words + "\n")
}

// answer does what a message asks for, and returns what there is to say to it.
func (t *talk) answer(ctx context.Context, m said) (string, error) {
	if says, ok, err := t.permit(ctx, m); ok || err != nil {
		return says, err
	}
	text := m.text
	t.now = m.id
	word, rest, _ := strings.Cut(strings.TrimSpace(text), " ")
	if do, ok := words[word]; ok {
		return do(ctx, t, strings.TrimSpace(rest))
	}
	if m.ofDev() {
		text = m.sender + " says: " + text
	}
	return text, nil
}

// remember writes a line into the memory folder.
func (t *talk) remember(line string) error {
	f, err := os.OpenFile(t.file(), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteString("- " + strings.ReplaceAll(line, "\n", " ") + "\n")
	return errors.Join(err, f.Close())
}

// recall is what was remembered, at most recallMax bytes of it.
func (t *talk) recall() (string, error) {
	f, err := os.Open(t.file())
	if errors.Is(err, os.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	defer f.Close()
	raw := make([]byte, recallMax)
	n, err := f.Read(raw)
	if n == 0 && err != nil {
		return "", nil // an empty file
	}
	return strings.TrimSpace(strings.ToValidUTF8(string(raw[:n]), "\uFFFD")), nil
}
