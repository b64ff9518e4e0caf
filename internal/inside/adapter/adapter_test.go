package adapter_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"sallyport/internal/inside/adapter"
	"sallyport/internal/port/agent"
)

// played is an engine without a program: a turn is a function.
type played struct {
	open   func(last string) (loaded bool, err error)
	turn   func(ctx context.Context, words string, show agent.Show) (string, error)
	steers bool

	mu     sync.Mutex
	show   agent.Show
	last   string
	loaded bool
	closed int
	words  []string
}

func (p *played) Open(_ context.Context, _ agent.Order, last string, show agent.Show) (agent.Conversation, error) {
	p.show, p.last = show, last
	if p.open != nil {
		var err error
		if p.loaded, err = p.open(last); err != nil {
			return nil, err
		}
	}
	return p, nil
}

func (p *played) Session() string { return "session-1" }
func (p *played) Loaded() bool    { return p.loaded }
func (p *played) Close() error    { p.closed++; return nil }

func (p *played) Steer(_ context.Context, text string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.steers {
		p.words = append(p.words, "steered: "+text)
	}
	return p.steers
}

func (p *played) Prompt(ctx context.Context, text string) (string, error) {
	p.mu.Lock()
	p.words = append(p.words, text)
	p.mu.Unlock()
	return p.turn(ctx, text, p.show)
}

func (p *played) told() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.words)
}

// host is the other side of an adapter that runs.
type host struct {
	t     *testing.T
	stdin *io.PipeWriter
	ended chan os.Signal
	code  chan int
	home  string

	mu    sync.Mutex
	lines []string
}

// drive starts an adapter in a bubble.
func drive(t *testing.T, p *played, o agent.Order, home string) *host {
	t.Helper()
	o.Engine, o.Agent = "played", "codex"
	if o.Text == "" && !o.Chat {
		o.Text = "Do it"
	}
	in, stdin := io.Pipe()
	out, stdout := io.Pipe()
	t.Cleanup(func() { stdin.Close() })
	h := &host{t: t, stdin: stdin, ended: make(chan os.Signal, 1), code: make(chan int, 1), home: home}
	go func() { // ends with the adapter
		lines := bufio.NewScanner(out)
		lines.Buffer(nil, 1<<20)
		for lines.Scan() {
			h.mu.Lock()
			h.lines = append(h.lines, lines.Text())
			h.mu.Unlock()
		}
	}()
	go func() {
		h.code <- adapter.Run(context.Background(), adapter.Options{Engines: map[string]agent.Engine{"played": p}, In: in, Out: stdout, Home: home, Ended: h.ended})
		stdout.Close()
	}()
	line, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	h.say(string(line))
	return h
}

// say writes a line to the adapter's stdin and waits until nothing moves.
func (h *host) say(line string) {
	h.t.Helper()
	if _, err := io.WriteString(h.stdin, line+"\n"); err != nil {
		h.t.Fatal(err)
	}
	synctest.Wait()
}

func (h *host) tell(id, text string) {
	h.t.Helper()
	line, _ := json.Marshal(map[string]string{"type": "tell", "id": id, "text": text})
	h.say(string(line))
}

// heard are the lines that begin as an answer does, in order.
func (h *host) heard() (all []string) {
	synctest.Wait()
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, l := range h.lines {
		if strings.HasPrefix(l, "{") {
			all = append(all, l)
		}
	}
	return all
}

func (h *host) shown() string {
	synctest.Wait()
	h.mu.Lock()
	defer h.mu.Unlock()
	return strings.Join(h.lines, "\n")
}

// finish ends stdin and returns the status.
func (h *host) finish() int {
	h.t.Helper()
	h.stdin.Close()
	synctest.Wait()
	select {
	case code := <-h.code:
		synctest.Wait()
		return code
	default:
		h.t.Fatalf("it does not end: %s", h.shown())
		return 0
	}
}

func is(t *testing.T, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("it is\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// done is a turn that is over at once.
func done(context.Context, string, agent.Show) (string, error) { return "done", nil }

// until is a turn that lasts until gate is closed.
func until(gate chan struct{}) func(context.Context, string, agent.Show) (string, error) {
	return func(context.Context, string, agent.Show) (string, error) { <-gate; return "done", nil }
}

func bubble(t *testing.T, test func(t *testing.T)) { t.Helper(); synctest.Test(t, test) }

func TestEachTurnHasItsEndAndTheLastEndsWithStdin(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p := &played{turn: done}
		h := drive(t, p, agent.Order{}, t.TempDir())
		h.tell("t1", "more")
		is(t, h.heard(), `{"type":"turn_end","turn":1,"outcome":"done","says":"done"}`, `{"id":"t1","type":"tell_ack"}`, `{"type":"turn_end","turn":2,"outcome":"done","says":"done"}`)
		is(t, p.told(), "Do it", "more")
		if code := h.finish(); code != 0 || p.closed != 1 {
			t.Errorf("status %d, closed %d times", code, p.closed)
		}
	})
}

// TestWhatAnAgentIsToldOfAViolation is the wording: file, rule, why, and the way out.
func TestWhatAnAgentIsToldOfAViolation(t *testing.T) {
	const message = `{"type":"checkpoint_violation","checkpoint_id":"ckpt-002-0a","action_taken":"%s","requires_acknowledgment":true,"violations":[` +
		`{"file":"a b.txt","constraint":"forbidden_area","message":"the policy forbids it","suggestion":"put it back","severity":"error"},{"file":"","constraint":"too_many_files","message":"900 files","severity":"error"}],"omitted":{"violations":3}}`
	for action, want := range map[string]string{
		"none":     "The files are as you left them.",
		"reverted": "The host reverted files to how they were when they last broke no rule: read them again before you go on.",
	} {
		bubble(t, func(t *testing.T) {
			p := &played{turn: done}
			h := drive(t, p, agent.Order{}, t.TempDir())
			h.say(fmt.Sprintf(message, action))
			is(t, p.told()[1:], `Your work was checked at ckpt-002-0a and breaks rules of this repository, so it cannot be kept as it is:
- a b.txt: rule forbidden_area: the policy forbids it. What to do: put it back.
- the change as a whole: rule too_many_files: 900 files.
- and 3 more.
`+want+`
Correct this. Where you may not change a file, find another way. Then go on with your task.`)
			if !strings.Contains(h.heard()[1], `"type":"violation_ack"`) || !strings.Contains(h.heard()[1], `"checkpoint_id":"ckpt-002-0a"`) {
				t.Errorf("%q", h.heard())
			}
			h.finish()
		})
	}
}

// TestWordsInTheMiddleOfATurnAreTheNextOnes holds that nothing is acknowledged before the agent has it, and nothing twice.
func TestWordsInTheMiddleOfATurnAreTheNextOnes(t *testing.T) {
	bubble(t, func(t *testing.T) {
		gate := make(chan struct{})
		p := &played{turn: until(gate)}
		h := drive(t, p, agent.Order{}, t.TempDir())
		h.tell("t1", "one")
		h.tell("t1", "one")
		h.tell("t2", "two")
		is(t, h.heard())
		close(gate)
		is(t, h.heard(), `{"type":"turn_end","turn":1,"outcome":"done","says":"done","more":true}`, `{"id":"t1","type":"tell_ack"}`, `{"id":"t2","type":"tell_ack"}`, `{"type":"turn_end","turn":2,"outcome":"done","says":"done"}`)
		is(t, p.told(), "Do it", "one\n\ntwo")
		h.tell("t1", "one") // the answer was lost
		is(t, h.heard()[4:], `{"id":"t1","type":"tell_ack"}`)
		is(t, p.told(), "Do it", "one\n\ntwo")
		h.finish()
	})
}

func TestAnAgentThatCanBeSteeredIsToldAtOnce(t *testing.T) {
	bubble(t, func(t *testing.T) {
		gate := make(chan struct{})
		p := &played{turn: until(gate), steers: true}
		h := drive(t, p, agent.Order{}, t.TempDir())
		h.tell("t1", "one")
		is(t, h.heard(), `{"id":"t1","type":"tell_ack"}`)
		close(gate)
		is(t, h.heard()[1:], `{"type":"turn_end","turn":1,"outcome":"done","says":"done"}`)
		is(t, p.told(), "Do it", "steered: one")
		h.finish()
	})
}

func TestAPauseIsAnsweredWhileTheAgentWorks(t *testing.T) {
	bubble(t, func(t *testing.T) {
		gate := make(chan struct{})
		h := drive(t, &played{turn: until(gate)}, agent.Order{}, t.TempDir())
		h.say(`{"type":"pause_request","checkpoint_id":"ckpt-001","reason":"checkpoint_validation","timeout_ms":10000}`)
		is(t, h.heard(), `{"checkpoint_id":"ckpt-001","pending_operations":[],"status":"paused","type":"pause_ack"}`)
		h.say(`{"type":"resume","checkpoint_id":"ckpt-001"}`)
		h.say(`nonsense`)
		close(gate)
		if code := h.finish(); code != 0 {
			t.Errorf("status %d", code)
		}
	})
}

// TestWhatWasSaidBeforeTheEndOfStdinIsDone is law 4: no words are swallowed.
func TestWhatWasSaidBeforeTheEndOfStdinIsDone(t *testing.T) {
	bubble(t, func(t *testing.T) {
		gate := make(chan struct{})
		p := &played{turn: until(gate)}
		h := drive(t, p, agent.Order{}, t.TempDir())
		h.tell("t1", "one")
		h.stdin.Close()
		synctest.Wait()
		close(gate)
		if code := h.finish(); code != 0 {
			t.Errorf("status %d", code)
		}
		is(t, p.told(), "Do it", "one")
	})
}

func TestAFailedTurnIsToldAndIsTheStatus(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p := &played{turn: func(context.Context, string, agent.Show) (string, error) {
			return "", errors.New("no key\n\x1b[2Jat all")
		}}
		h := drive(t, p, agent.Order{}, t.TempDir())
		if all := h.heard(); len(all) != 1 || !strings.Contains(all[0], `"outcome":"failed","reason":"no key\\n\\x1b[2Jat all"`) {
			t.Errorf("%q", all)
		}
		if code := h.finish(); code != 1 || !strings.Contains(h.shown(), `sallyport: no key\n`) {
			t.Errorf("status %d: %s", code, h.shown())
		}
	})
}

func TestAnAgentThatDoesNotStartIsAFailedTurn(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p := &played{open: func(string) (bool, error) { return false, errors.New("no such program") }}
		h := drive(t, p, agent.Order{}, t.TempDir())
		is(t, h.heard(), `{"type":"turn_end","turn":1,"outcome":"failed","reason":"codex did not start: no such program"}`)
		h.tell("t1", "hello?")
		if code := h.finish(); code != 1 {
			t.Errorf("status %d", code)
		}
	})
}

func TestAnAgentThatNeverComesUpIsGivenUp(t *testing.T) {
	bubble(t, func(t *testing.T) {
		gate := make(chan struct{})
		defer close(gate)
		p := &played{open: func(string) (bool, error) { <-gate; return false, nil }}
		h := drive(t, p, agent.Order{}, t.TempDir())
		time.Sleep(2*time.Minute - time.Nanosecond)
		is(t, h.heard())
		time.Sleep(time.Nanosecond)
		is(t, h.heard(), `{"type":"turn_end","turn":1,"outcome":"failed","reason":"codex did not take a request within 2m0s"}`)
		h.finish()
	})
}

func TestASignalInterruptsATurnAndEndsTheAdapter(t *testing.T) {
	for name, obeys := range map[string]bool{"that stops": true, "that does not": false} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				gate := make(chan struct{})
				defer close(gate)
				p := &played{turn: func(ctx context.Context, _ string, _ agent.Show) (string, error) {
					if obeys {
						<-ctx.Done()
						return "", ctx.Err()
					}
					<-gate
					return "", nil
				}}
				h := drive(t, p, agent.Order{}, t.TempDir())
				h.ended <- syscall.SIGTERM
				if !obeys {
					time.Sleep(10 * time.Second)
				}
				synctest.Wait()
				select {
				case code := <-h.code:
					if all := h.heard(); code != 143 || len(all) != 1 || !strings.Contains(all[0], `"outcome":"cancelled"`) || p.closed != 1 {
						t.Errorf("status %d, closed %d times: %q", code, p.closed, all)
					}
				default:
					t.Error("it does not end")
				}
			})
		})
	}
}

func TestAnAdapterTakesNoMoreTurnsThanItIsToldTo(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p := &played{turn: done}
		h := drive(t, p, agent.Order{MaxTurns: 2}, t.TempDir())
		h.tell("t1", "one")
		h.tell("t2", "two")
		is(t, p.told(), "Do it", "one")
		if all := h.heard(); len(all) != 3 {
			t.Errorf("%q", all)
		}
		if len(h.code) != 0 {
			t.Error("it ended before stdin did")
		}
		if code := h.finish(); code != 0 {
			t.Errorf("status %d", code)
		}
	})
}

// TestAnAgentGoesOnWithItsOwnSession is the note: written at each turn, read by the next adapter on the same home folder.
func TestAnAgentGoesOnWithItsOwnSession(t *testing.T) {
	resumed := &agent.Resumed{Why: "the host was stopped", Transcript: "told: Do it"}
	for _, c := range []struct {
		name, note, last string
		loaded           bool
		words            string
	}{
		{"with what it knows", `{"engine":"played","agent":"codex","session":"session-1","turns":1}`, "session-1", true,
			"Your work on this request was interrupted: the host was stopped. The files are as they were then: look at them before you go on.\nGo on where you left off. The request was:\n\nDo it"},
		{"of another agent", `{"engine":"played","agent":"pi","session":"session-1","turns":1}`, "", false,
			"Your work on this request was interrupted: the host was stopped. The files are as they were then: look at them before you go on.\nThe request is:\n\nDo it\n\nWhat was said and done before, from its end, as it was written down:\n\ntold: Do it"},
		{"that is not there", "", "", false, ""},
		{"that cannot be read", "{nonsense", "", false, ""},
		{"that is too long", strings.Repeat(" ", 100<<10) + "{}", "", false, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				home := t.TempDir()
				path := filepath.Join(home, ".sallyport", "adapter.json")
				if c.note != "" {
					if err := errors.Join(os.Mkdir(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(c.note), 0o600)); err != nil {
						t.Fatal(err)
					}
				}
				p := &played{turn: done, open: func(last string) (bool, error) { return last != "", nil }}
				h := drive(t, p, agent.Order{Resumed: resumed}, home)
				if p.last != c.last || p.loaded != c.loaded {
					t.Errorf("it goes on with %q: %t", p.last, p.loaded)
				}
				if c.words != "" {
					is(t, p.told(), c.words)
				}
				h.finish()
				raw, err := os.ReadFile(path)
				if want := `{"engine":"played","agent":"codex","session":"session-1","turns":1}`; err != nil || strings.TrimSpace(string(raw)) != want {
					t.Errorf("it notes %q, %v", raw, err)
				}
				if left, _ := filepath.Glob(path + ".*"); len(left) > 0 {
					t.Errorf("%q is left", left)
				}
			})
		})
	}
}

// TestAPipeInThePlaceOfTheNoteHoldsNobodyUp holds that an agent cannot keep every later session of it from beginning.
func TestAPipeInThePlaceOfTheNoteHoldsNobodyUp(t *testing.T) {
	bubble(t, func(t *testing.T) {
		home := t.TempDir()
		path := filepath.Join(home, ".sallyport", "adapter.json")
		if err := errors.Join(os.Mkdir(filepath.Dir(path), 0o700), syscall.Mkfifo(path, 0o600), syscall.Mkfifo(path+".new", 0o600)); err != nil {
			t.Fatal(err)
		}
		h := drive(t, &played{turn: done}, agent.Order{}, home)
		h.finish()
		raw, err := os.ReadFile(path)
		if want := `{"engine":"played","agent":"codex","session":"session-1","turns":1}`; err != nil || strings.TrimSpace(string(raw)) != want {
			t.Errorf("it notes %q, %v", raw, err)
		}
	})
}

func TestAnOrderThatIsNotTheHostsIsRefused(t *testing.T) {
	for name, line := range map[string]string{
		"nothing": "", "no JSON": "hello", "a field of another build": `{"engine":"played","agent":"x","text":"y","max_turns":1,"root":true}`,
		"an engine that there is not": `{"engine":"other","agent":"x","text":"y","max_turns":1}`,
		"too long":                    `{"engine":"played","text":"` + strings.Repeat("x", agent.OrderBytesMax) + `"}`,
	} {
		t.Run(name, func(t *testing.T) {
			var out strings.Builder
			p := &played{turn: done}
			code := adapter.Run(t.Context(), adapter.Options{Engines: map[string]agent.Engine{"played": p}, In: strings.NewReader(line + "\n"), Out: &out, Home: t.TempDir()})
			if code != 2 || !strings.HasPrefix(out.String(), "adapter: ") || len(p.told()) > 0 {
				t.Errorf("status %d: %q", code, out.String())
			}
		})
	}
}

// text is what a turn of a conversation said, from pieces that have no gap.
func (h *host) text(t *testing.T, turn int) string {
	t.Helper()
	var all strings.Builder
	number := 0
	for _, line := range h.heard() {
		var e agent.Text
		if json.Unmarshal([]byte(line), &e) != nil || e.Type != agent.TextType || e.Turn != turn {
			continue
		}
		if number++; e.Number != number || len(line) > 16<<10 {
			t.Fatalf("piece %d of %d bytes comes as number %d", e.Number, len(line), number)
		}
		all.WriteString(e.Text)
	}
	return all.String()
}
