package dispatch_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"sallyport/internal/base/git"
	"sallyport/internal/base/id"
	"sallyport/internal/chat/conversation"
	"sallyport/internal/chat/message"
	"sallyport/internal/drive/control"
	"sallyport/internal/drive/dispatch"
	"sallyport/internal/drive/drivetest"
	"sallyport/internal/drive/live"
	"sallyport/internal/inside/adapter"
	"sallyport/internal/path/layer"
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
		s := &scene{Home: h, repo: git.Dir{Path: filepath.Join(h.Parts.Home, "home", ".git")}, atOnce: 4}
		s.turn = func(_ context.Context, words string, _ *stage) (string, error) { return "heard: " + last(words), nil }
		h.Repo = filepath.Join(h.Parts.Home, "home")
		if err := os.Mkdir(h.Repo, 0o700); err != nil {
			t.Fatal(err)
		}
		h.Git("init", "-q", "-b", "main")
		var all []group.Beginning
		for _, g := range groups {
			all = append(all, group.Beginning{Folder: group.Folder(g)})
		}
		files, err := group.NewHome(all)
		if err != nil {
			t.Fatal(err)
		}
		by := group.By{Ref: "refs/heads/main", Author: git.Signature{Name: "Ann", Email: "ann@example.org", At: time.Now()}}
		by.Committer = by.Author
		if _, err := group.MakeHome(t.Context(), s.repo, files, by); err != nil {
			t.Fatal(err)
		}
		h.Parts.Agents = map[string]agent.Driver{"echo": talking{s}}
		h.Cage.Program = s.run
		test(t, s)
	})
}

// talking is a driver whose program is an adapter in a conversation.
type talking struct{ *scene }

func (talking) Name() string                     { return "echo" }
func (talking) Capabilities() agent.Capabilities { return agent.Capabilities{} }

func (p talking) Program(t agent.Task) (agent.Program, error) {
	line, err := json.Marshal(agent.Order{Engine: "echo", Agent: "echo", Chat: t.Chat, System: t.System, Resumed: t.Resumed})
	return agent.Program{Name: "echo", Argv: []string{"adapt"}, Stdin: append(line, '\n'), Messages: true, Turns: true, Keeps: true, Chat: true, Steers: p.steer != nil}, err
}

func (s *scene) run(spec sandbox.Spec, killed <-chan struct{}) int {
	s.mu.Lock()
	s.starts = append(s.starts, spec)
	s.mu.Unlock()
	ended, stop := make(chan os.Signal, 1), make(chan struct{})
	defer close(stop)
	go func() { // ends with the program
		select {
		case <-killed:
			ended <- os.Kill
		case <-stop:
		}
	}()
	return adapter.Run(context.Background(), adapter.Options{
		Engines: map[string]agent.Engine{"echo": &player{scene: s}}, In: late{spec.Stdin, s.pipe}, Out: spec.Stdout, Home: spec.Home, Ended: ended,
	})
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

func (p *player) Session() string { return "the only one" }
func (p *player) Loaded() bool    { return p.loaded }
func (p *player) Close() error    { return nil }

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

// last is the text of the last message of a batch.
func last(words string) string {
	_, after, _ := strings.Cut(words[max(strings.LastIndex(words, "<message "), 0):], ">")
	text, _, _ := strings.Cut(after, "</message>")
	return text
}

// lives is one life of the host; end stops it.
func (s *scene) lives() (d *dispatch.Dispatcher, end func()) {
	s.T.Helper()
	c := control.New(s.Parts)
	s.control = c
	state := filepath.Join(s.Parts.Home, "state")
	for _, dir := range []string{"groups", "sockets"} {
		if err := os.MkdirAll(filepath.Join(state, dir), 0o700); err != nil {
			s.T.Fatal(err)
		}
	}
	d = dispatch.New(dispatch.Parts{
		Ledger: c.Ledger, Runtime: c.Runtime, Owner: s.Parts.Owner, Home: s.repo, Changes: c,
		Trees:  layer.New(layer.Config{Root: filepath.Join(state, "trees"), Whole: true, Standing: func(func(git.OID)) error { return nil }}),
		Folder: filepath.Join(state, "groups"), Zone: func() *time.Location { return time.UTC }, Extra: s.extra,
		Self: sandbox.Owner{UID: uint32(os.Geteuid()), GID: uint32(os.Getegid())}, AtOnce: s.atOnce, PromptOf: 10, Swaps: s.swaps,
		Desk: live.Desk{Folder: filepath.Join(state, "sockets"), Log: c.Log, Open: func(_ string, _ sandbox.Owner, has map[tool.Name]live.Handler, intake func() string) (func(context.Context) error, error) {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.desk, s.intake = has, intake
			return func(ctx context.Context) error { <-ctx.Done(); return nil }, nil
		}},
	})
	ctx, cancel := context.WithCancel(context.Background())
	runs := []func(context.Context) error{d.Run}
	if s.drives {
		runs = append(runs, c.Run)
	}
	ran := make(chan error, len(runs))
	for _, run := range runs {
		go func() { ran <- run(ctx) }()
	}
	end = sync.OnceFunc(func() {
		cancel()
		for range runs {
			if err := <-ran; err != nil {
				s.T.Errorf("run: %v", err)
			}
		}
	})
	s.T.Cleanup(end)
	return d, end
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
