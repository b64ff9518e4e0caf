package agenttest

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"golang.org/x/sys/unix"

	"sallyport/internal/port/agent"
)

// Deed is one thing that a scripted agent does in a turn; exactly one of the verbs is set. Every engine's agent can be made
// to do the first five, by way of its model; the rest is of a program that means no good.
type Deed struct {
	Say     string `json:"say,omitempty"`
	Write   string `json:"write,omitempty"` // path in the workspace
	Content string `json:"content,omitempty"`
	Hang    bool   `json:"hang,omitempty"`    // until the turn is interrupted
	Steered bool   `json:"steered,omitempty"` // waits until it is told something in the middle of the turn
	Fail    string `json:"fail,omitempty"`    // its model gives up, for this reason

	Think  string `json:"think,omitempty"`
	Delete string `json:"delete,omitempty"`
	Await  string `json:"await,omitempty"` // a file that is to be there
	Die    bool   `json:"die,omitempty"`
	Leave  bool   `json:"leave,omitempty"` // starts a process that wants to stay
	Print  string `json:"print,omitempty"` // raw, to its stdout
	Times  int    `json:"times,omitempty"` // how often Print is
}

// Subject is an engine to hold to the port's promises.
type Subject struct {
	// Make returns the engine, and the order for an agent that does these turns, one for each time that it is prompted. It
	// works in dir, which is where this process stands, and home is its home folder, as HOME says.
	Make func(t *testing.T, dir, home string, turns [][]Deed) (agent.Engine, agent.Order)
	// Steers says that it takes words in the middle of a turn; Loads that it goes on with its own session; Scripted
	// that its program does every deed.
	Steers, Loads, Scripted bool
	// Anew says that it starts its program for each turn: a session has its name once the first has begun, and one whose
	// program died in a turn has another.
	Anew bool
	// Kept is a pattern of files below its home folder: it goes on after a kill with what it has written there, not at once.
	Kept string
	// Patience is how long any turn may take; 0 = a minute.
	Patience time.Duration
}

// Engine holds an engine to the promises of agent.Engine, with its agent's real program.
func Engine(t *testing.T, s Subject) {
	if s.Patience == 0 {
		s.Patience = time.Minute
	}
	t.Run("a turn edits a file, and what it says is shown", s.edits)
	t.Run("what it is told next is another turn of the same conversation", s.goesOn)
	t.Run("words in the middle of a turn reach it, or are not taken", s.steered)
	t.Run("a turn that is interrupted is over, and the conversation goes on", s.interrupted)
	t.Run("a model that gives up is an error of one line", s.failed)
	t.Run("a program that cannot be started is an error", s.absent)
	t.Run("after Close no process is left", s.closed)
	t.Run("after a kill it is gone on with, or says that it cannot be", s.killed)
	t.Run("an agent that dies in a turn is an error of one line", s.died)
	if s.Scripted {
		t.Run("what makes no sense is an error, and is bounded", s.hostile)
	}
}

// stage is one conversation of a test.
type stage struct {
	dir, home string
	engine    agent.Engine
	order     agent.Order
	show      *Shown
	talk      agent.Conversation
}

func (s Subject) stage(t *testing.T, turns ...[]Deed) *stage {
	t.Helper()
	g := &stage{dir: t.TempDir(), home: t.TempDir(), show: &Shown{}}
	t.Chdir(g.dir)
	t.Setenv("HOME", g.home)
	g.engine, g.order = s.Make(t, g.dir, g.home, turns)
	return g
}

func (s Subject) open(t *testing.T, g *stage, last string) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	limit := time.AfterFunc(s.Patience, cancel)
	defer limit.Stop()
	var err error
	if g.talk, err = g.engine.Open(ctx, g.order, last, g.show); err != nil {
		t.Fatalf("open: %v", err)
	}
	t.Cleanup(func() { _ = g.talk.Close() }) // closed already is as good
}

// prompt waits for a turn at most as long as the subject's patience.
func (s Subject) prompt(t *testing.T, g *stage, text string) (says string, err error) {
	t.Helper()
	return s.await(t, s.begin(context.Background(), g, text))
}

type turned struct {
	says string
	err  error
}

func (s Subject) begin(ctx context.Context, g *stage, text string) <-chan turned {
	done := make(chan turned, 1)
	go func() {
		says, err := g.talk.Prompt(ctx, text)
		done <- turned{says, err}
	}()
	return done
}

func (s Subject) await(t *testing.T, done <-chan turned) (string, error) {
	t.Helper()
	limit := time.NewTimer(s.Patience)
	defer limit.Stop()
	select {
	case d := <-done:
		return d.says, d.err
	case <-limit.C:
		t.Fatalf("a turn was not over in %s", s.Patience)
		return "", nil
	}
}

func (g *stage) holds(t *testing.T, path, want string) {
	t.Helper()
	if is, err := os.ReadFile(filepath.Join(g.dir, path)); err != nil || strings.TrimSpace(string(is)) != want {
		t.Errorf("%s holds %q (%v), not %q\nshown:\n%s", path, is, err, want, g.show)
	}
}

// oneLine fails unless an error is there and can be shown as it is.
func oneLine(t *testing.T, err error) {
	t.Helper()
	if err == nil {
		t.Fatal("there is no error")
	}
	if text := err.Error(); strings.ContainsAny(text, "\n\x00\x1b") || len(text) > 4<<10 || !utf8.ValidString(text) || strings.Contains(text, "goroutine ") {
		t.Errorf("%d bytes: %q", len(text), text[:min(len(text), 300)])
	}
}

func (s Subject) edits(t *testing.T) {
	g := s.stage(t, []Deed{{Write: "a.txt", Content: "first\n"}, {Say: "I wrote the file."}})
	s.open(t, g, "")
	if g.talk.Loaded() {
		t.Error("a new conversation says that it was loaded")
	}
	says, err := s.prompt(t, g, "Write the file")
	if err != nil {
		t.Fatal(err)
	}
	g.holds(t, "a.txt", "first")
	if !strings.Contains(says, "I wrote the file.") || !strings.Contains(g.show.String(), "I wrote the file.") {
		t.Errorf("it says %q and shows\n%s", says, g.show)
	}
	if !g.show.tools() {
		t.Errorf("no tool call was shown\n%s", g.show)
	}
}

func (s Subject) goesOn(t *testing.T) {
	g := s.stage(t, []Deed{{Write: "a.txt", Content: "first\n"}}, []Deed{{Write: "a.txt", Content: "second\n"}})
	s.open(t, g, "")
	session := g.talk.Session()
	for i, want := range []string{"first", "second"} {
		if _, err := s.prompt(t, g, "Turn "+strconv.Itoa(i)); err != nil {
			t.Fatal(err)
		}
		g.holds(t, "a.txt", want)
	}
	if g.talk.Session() != session && session != "" {
		t.Errorf("its session was %q and is %q", session, g.talk.Session())
	}
}

func (s Subject) steered(t *testing.T) {
	if !s.Steers {
		g := s.stage(t, []Deed{{Hang: true}})
		s.open(t, g, "")
		ctx, cancel := context.WithCancel(context.Background())
		done := s.begin(ctx, g, "Work")
		if g.talk.Steer(ctx, "And this") {
			t.Error("it takes words in the middle of a turn; its subject says that it takes none")
		}
		cancel()
		_, _ = s.await(t, done) // interrupted is as good as done
		return
	}
	g := s.stage(t, []Deed{{Write: "begun", Content: "yes\n"}, {Steered: true}, {Write: "b.txt", Content: "steered\n"}})
	s.open(t, g, "")
	done := s.begin(context.Background(), g, "Work")
	until(t, s.Patience, "the turn to begin", func() bool { _, err := os.Stat("begun"); return err == nil })
	until(t, s.Patience, "words to be taken", func() bool { return g.talk.Steer(context.Background(), "And this") })
	if _, err := s.await(t, done); err != nil {
		t.Fatal(err)
	}
	g.holds(t, "b.txt", "steered")
}

func (s Subject) interrupted(t *testing.T) {
	g := s.stage(t, []Deed{{Write: "begun", Content: "yes\n"}, {Hang: true}}, []Deed{{Write: "c.txt", Content: "after\n"}})
	s.open(t, g, "")
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	done := s.begin(ctx, g, "Work")
	until(t, s.Patience, "the turn to begin", func() bool { _, err := os.Stat("begun"); return err == nil })
	cancel()
	_, _ = s.await(t, done)
	if _, err := s.prompt(t, g, "Go on"); err != nil {
		t.Fatalf("after an interrupted turn: %v", err)
	}
	g.holds(t, "c.txt", "after")
}

func (s Subject) failed(t *testing.T) {
	g := s.stage(t, []Deed{{Fail: "the key is not valid"}})
	s.open(t, g, "")
	_, err := s.prompt(t, g, "Work")
	oneLine(t, err)
}

func (s Subject) absent(t *testing.T) {
	g := s.stage(t, []Deed{{Say: "x"}})
	if len(g.order.Argv) == 0 {
		t.Skip("it needs no program")
	}
	g.order.Argv = []string{filepath.Join(g.dir, "no-such-program")}
	talk, err := g.engine.Open(t.Context(), g.order, "", g.show)
	if err == nil {
		_ = talk.Close()
	}
	oneLine(t, err)
}

func (s Subject) closed(t *testing.T) {
	deeds := []Deed{{Write: "a.txt", Content: "x\n"}}
	if s.Scripted {
		deeds = append(deeds, Deed{Leave: true})
	}
	g := s.stage(t, deeds)
	s.open(t, g, "")
	if _, err := s.prompt(t, g, "Work"); err != nil {
		t.Fatal(err)
	}
	if s.Scripted && !s.Anew && len(g.processes()) < 2 {
		t.Fatalf("only %v run", g.processes())
	}
	if err := g.talk.Close(); err != nil {
		t.Error(err)
	}
	until(t, s.Patience, "all processes to be gone", func() bool { return len(g.processes()) == 0 })
	if err := g.talk.Close(); err != nil {
		t.Errorf("the second time: %v", err)
	}
}

func (s Subject) killed(t *testing.T) {
	g := s.stage(t, []Deed{{Write: "begun", Content: "yes\n"}, {Hang: true}}, []Deed{{Write: "d.txt", Content: "again\n"}})
	s.open(t, g, "")
	last := g.talk.Session()
	done := s.begin(context.Background(), g, "Work")
	until(t, s.Patience, "the turn to begin", func() bool { _, err := os.Stat("begun"); return err == nil })
	if s.Anew && s.Loads {
		until(t, s.Patience, "its session to have a name", func() bool { last = g.talk.Session(); return last != "" })
	}
	until(t, s.Patience, "its session to be on the disk", func() bool {
		files, _ := filepath.Glob(filepath.Join(os.Getenv("HOME"), s.Kept))
		return s.Kept == "" || slices.ContainsFunc(files, func(f string) bool { raw, _ := os.ReadFile(f); return bytes.Contains(raw, []byte("begun")) })
	})
	until(t, s.Patience, "all processes to be gone", func() bool {
		all := g.processes()
		for _, pid := range all {
			_ = unix.Kill(pid, unix.SIGKILL)
		}
		return len(all) == 0
	})
	if len(g.order.Argv) == 0 {
		_ = g.talk.Close() // it lives in this process: to leave it is as near to a kill as it comes
	}
	_, err := s.await(t, done)
	if len(g.order.Argv) > 0 {
		oneLine(t, err)
	}
	_ = g.talk.Close()
	if s.Loads && last == "" {
		t.Fatal("its session has no name to go on from")
	}
	s.open(t, g, last)
	if g.talk.Loaded() != s.Loads {
		t.Fatalf("it goes on with its own session: %t", g.talk.Loaded())
	}
	if _, err := s.prompt(t, g, "Go on"); err != nil {
		t.Fatal(err)
	}
	if s.Loads || !s.Scripted {
		g.holds(t, "d.txt", "again")
	}
}

func (s Subject) died(t *testing.T) {
	g := s.stage(t, []Deed{{Write: "begun", Content: "yes\n"}, {Hang: true}})
	if len(g.order.Argv) == 0 {
		t.Skip("it has no program")
	}
	s.open(t, g, "")
	done := s.begin(context.Background(), g, "Work")
	until(t, s.Patience, "the turn to begin", func() bool { _, err := os.Stat("begun"); return err == nil })
	for _, pid := range g.processes() {
		_ = unix.Kill(pid, unix.SIGKILL)
	}
	_, err := s.await(t, done)
	oneLine(t, err)
	if s.Anew {
		return
	}
	if _, err := s.prompt(t, g, "Go on"); err == nil && len(g.processes()) == 0 {
		t.Error("a turn of an agent that is gone went well")
	}
}

func (s Subject) hostile(t *testing.T) {
	for name, deeds := range map[string][]Deed{
		"a line without an end":   {{Print: strings.Repeat("x", 64<<10), Times: 1 << 10}},
		"garbage":                 {{Print: "\x00\xff\x1b[2J garbage \xc3\x28\n"}},
		"a number for an object":  {{Print: "17\n"}},
		"deep JSON":               {{Print: `{"x":`, Times: 100_000}, {Print: "1"}, {Print: "}", Times: 100_000}, {Print: "\n"}},
		"half a line and the end": {{Print: `{"say":"x`}},
	} {
		t.Run(name, func(t *testing.T) {
			g := s.stage(t, append(deeds, Deed{Die: true}))
			s.open(t, g, "")
			_, err := s.prompt(t, g, "Work")
			oneLine(t, err)
			if err := g.talk.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	t.Run("a flood of words", func(t *testing.T) {
		g := s.stage(t, []Deed{{Print: `{"say":"all work and no play\n"}` + "\n", Times: 60_000}})
		s.open(t, g, "")
		says, err := s.prompt(t, g, "Work")
		if err != nil || len(says) > 1<<20 {
			t.Errorf("%d bytes, %v", len(says), err)
		}
	})
}

// processes are those whose home folder is the stage's.
func (g *stage) processes() (pids []int) {
	all, _ := filepath.Glob("/proc/[0-9]*/environ")
	for _, path := range all {
		env, err := os.ReadFile(path)
		if err != nil || !bytes.Contains(append([]byte{0}, env...), []byte("\x00HOME="+g.home+"\x00")) {
			continue
		}
		if pid, err := strconv.Atoi(filepath.Base(filepath.Dir(path))); err == nil && pid != os.Getpid() {
			pids = append(pids, pid)
		}
	}
	return pids
}

// until polls until ready, or fails.
func until(t *testing.T, patience time.Duration, what string, ready func() bool) {
	t.Helper()
	limit := time.NewTimer(patience)
	defer limit.Stop()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !ready() {
		select {
		case <-limit.C:
			t.Fatalf("waited %s for %s", patience, what)
		case <-tick.C:
		}
	}
}

// Shown keeps what an engine shows, up to a bound.
type Shown struct {
	mu    sync.Mutex
	text  strings.Builder
	calls int
	ends  []string
}

var _ agent.Show = (*Shown)(nil)

func (s *Shown) add(kind, text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.text.Len() < 1<<20 {
		s.text.WriteString("\n" + kind + text + "\n")
	}
}

// Say takes words in pieces.
func (s *Shown) Say(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.text.Len() < 1<<20 {
		s.text.WriteString(text)
	}
}

func (s *Shown) Think(text string)  { s.add("~ ", text) }
func (s *Shown) Note(text string)   { s.add("note: ", text) }
func (s *Shown) Began(t agent.Tool) { s.Tool(t.Kind, t.Title) }

// Ended keeps the end of a tool call: a person is shown none.
func (s *Shown) Ended(id string, failed bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.ends) < 1000 {
		s.ends = append(s.ends, fmt.Sprintf("%s, failed %t", id, failed))
	}
}

// Ends are the tool calls that are over, and how, a line for each.
func (s *Shown) Ends() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Join(s.ends, "\n")
}

// Tool keeps that a tool was used.
func (s *Shown) Tool(kind, title string) {
	s.add("["+kind+"] ", title)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls++
}

func (s *Shown) tools() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.calls > 0
}

// String is all of it.
func (s *Shown) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}
