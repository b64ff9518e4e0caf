package dispatch_test

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"sallyport/internal/base/git"
	"sallyport/internal/base/git/gittest"
	"sallyport/internal/base/id"
	"sallyport/internal/chat/conversation"
	"sallyport/internal/chat/message"
	"sallyport/internal/drive/control"
	"sallyport/internal/drive/dispatch"
	"sallyport/internal/drive/drivetest"
	"sallyport/internal/drive/live"
	"sallyport/internal/port/agent"
	"sallyport/internal/port/sandbox"
	"sallyport/internal/port/tool"
	"sallyport/internal/store"
	"sallyport/internal/who/group"
)

// scene is a home with groups whose agents are played: each turn is a function.
type scene struct {
	*drivetest.Home
	repo   git.Dir
	atOnce int
	extra  live.Extra
	turn   func(ctx context.Context, words string, s *stage) (string, error)

	mu      sync.Mutex
	words   []string // of every turn
	starts  []sandbox.Spec
	systems []string                   // what each session was told once
	desk    map[tool.Name]live.Handler // of the session that was started last
	intake  func() string              // the message that its turn is for
	later   func(d *dispatch.Dispatcher, chat id.Chat)
	opens   error
	begins  func(ctx context.Context) // what a program does until it takes words
	forgets bool                      // agents load no session of their own
	swaps   dispatch.Swaps
	steer   func(words string) bool // gives an agent words in the middle of its turn; nil = it takes none
	pipe    time.Duration           // that a program takes to read what the host says to it

	control *control.Controller // of this life
	drives  bool                // it moves changes too
}

// stage is what an agent shows and asks in a turn.
type stage struct {
	agent.Show
	*scene
}

// ask has the agent use a tool of the host.
func (s *stage) ask(name tool.Name, args any) (tool.Result, error) {
	s.mu.Lock()
	do, intake := s.desk[name], s.intake
	s.mu.Unlock()
	return do(context.Background(), tool.Call{Verb: name, Intake: intake(), Args: args})
}

// play runs a test in a home in which time passes only when everybody waits for it.
func play(t *testing.T, groups []string, test func(t *testing.T, s *scene)) {
	t.Helper()
	drivetest.Bubble(t, func(t *testing.T, h *drivetest.Home) {
		s := &scene{Home: h, atOnce: 4}
		s.turn = func(_ context.Context, words string, _ *stage) (string, error) {
			return "heard: " + drivetest.Last(words), nil
		}
		s.repo = drivetest.Groups(h, drivetest.Talking{Steers: func() bool { return s.steer != nil }}, groups)
		h.Cage.Program = s.run
		test(t, s)
	})
}

func (s *scene) run(spec sandbox.Spec, killed <-chan struct{}) int {
	s.mu.Lock()
	s.starts = append(s.starts, spec)
	s.mu.Unlock()
	return drivetest.Adapt(spec, late{spec.Stdin, s.pipe}, killed, &player{scene: s})
}

// late is a pipe that takes its time.
type late struct {
	io.Reader
	by time.Duration
}

func (l late) Read(p []byte) (int, error) {
	time.Sleep(l.by)
	return l.Reader.Read(p)
}

// player is the engine and the conversation of one session.
type player struct {
	*scene
	drivetest.Talk
	show   agent.Show
	loaded bool
}

func (p *player) Open(ctx context.Context, o agent.Order, last string, show agent.Show) (agent.Conversation, error) {
	p.mu.Lock()
	p.systems = append(p.systems, o.System)
	p.mu.Unlock()
	if p.begins != nil {
		p.begins(ctx)
	}
	p.show, p.loaded = show, last != "" && !p.forgets
	return p, p.opens
}

func (p *player) Loaded() bool { return p.loaded }

func (p *player) Steer(_ context.Context, words string) bool { return p.steer != nil && p.steer(words) }

func (p *player) Prompt(ctx context.Context, words string) (string, error) {
	p.mu.Lock()
	p.words = append(p.words, words)
	p.mu.Unlock()
	text, err := p.turn(ctx, words, &stage{p.show, p.scene})
	if err == nil {
		p.show.Say(text)
	}
	return text, err
}

// lives is one life of the host; end stops it.
func (s *scene) lives() (d *dispatch.Dispatcher, end func()) {
	s.T.Helper()
	c := control.New(s.Parts)
	s.control = c
	on := drivetest.Dispatches(s.Home, c, s.repo)
	on.Extra, on.AtOnce, on.Swaps = s.extra, s.atOnce, s.swaps
	on.Desk.Open = func(_ string, _ sandbox.Owner, has map[tool.Name]live.Handler, intake func() string) (func(context.Context) error, error) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.desk, s.intake = has, intake
		return func(ctx context.Context) error { <-ctx.Done(); return nil }, nil
	}
	d = dispatch.New(on)
	runs := []func(context.Context) error{d.Run}
	if s.drives {
		runs = append(runs, c.Run)
	}
	return d, drivetest.Lives(s.T, context.WithoutCancel(gittest.Restart(s.T)), runs...)
}

// chatWith is the chat with a group at the owner's terminal.
func (s *scene) chatWith(d *dispatch.Dispatcher, with group.Folder) conversation.Chat {
	s.T.Helper()
	chat, err := d.Open(s.T.Context(), with, "1000")
	if err != nil {
		s.T.Fatal(err)
	}
	return chat
}

// say says something to a group and waits until nothing moves.
func (s *scene) say(d *dispatch.Dispatcher, to, text string) message.In {
	s.T.Helper()
	m, err := d.Say(s.T.Context(), dispatch.Said{Group: group.Folder(to), Text: text, Account: "1000", Name: "ann", By: s.By()})
	if err != nil {
		s.T.Fatal(err)
	}
	synctest.Wait()
	return m
}

// now is a message as it stands.
func (s *scene) now(of id.Message) (m message.In) {
	s.T.Helper()
	s.Tx(func(ctx context.Context, tx store.Tx) (err error) {
		m, err = tx.In(ctx, of)
		return err
	})
	return m
}

// is holds that a message stands so.
func (s *scene) is(of id.Message, want message.Status) message.In {
	s.T.Helper()
	synctest.Wait()
	m := s.now(of)
	if m.Status != want {
		s.T.Errorf("%q is %s (%s), want %s", m.Text, m.Status, m.Reason, want)
	}
	return m
}

// sent is what a chat has been sent, with the lane of what is no talk.
func (s *scene) sent(chat id.Chat) (all []string) {
	s.T.Helper()
	s.Tx(func(ctx context.Context, tx store.Tx) error {
		outs, err := tx.Outs(ctx, chat, 0, 0, 1000)
		for _, o := range outs {
			if o.Lane != message.Talk {
				o.Text = fmt.Sprintf("%s: %s", o.Lane, o.Text)
			}
			all = append(all, o.Text)
		}
		return err
	})
	return all
}

// chat is the row of one.
func (s *scene) chat(of id.Chat) (c conversation.Chat) {
	s.T.Helper()
	s.Tx(func(ctx context.Context, tx store.Tx) (err error) {
		c, err = tx.Chat(ctx, of)
		return err
	})
	return c
}

func (s *scene) told() []string {
	synctest.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.words)
}

func (s *scene) started() int {
	synctest.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.starts)
}

func same(t *testing.T, what string, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s:\n%s\nwant\n%s", what, strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}
