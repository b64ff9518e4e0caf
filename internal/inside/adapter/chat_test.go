package adapter_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"sallyport/internal/port/agent"
)

// wake waits until an adapter of a conversation stands ready.
func wake(t *testing.T, p *played, o agent.Order) *host {
	t.Helper()
	o.Chat, o.MaxTurns = true, 1
	return drive(t, p, o, t.TempDir())
}

const interruption = `{"type":"interrupt"}`

func TestAConversationBeginsWithWordsAndHasAnyNumberOfTurns(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p := &played{turn: done}
		h := wake(t, p, agent.Order{})
		time.Sleep(time.Hour)
		is(t, h.heard())
		for _, id := range []string{"a", "b", "c"} {
			h.tell(id, "and "+id)
		}
		is(t, p.told(), "and a", "and b", "and c")
		is(t, h.heard(), `{"id":"a","type":"tell_ack"}`, `{"type":"turn_end","turn":1,"outcome":"done","says":"done"}`,
			`{"id":"b","type":"tell_ack"}`, `{"type":"turn_end","turn":2,"outcome":"done","says":"done"}`,
			`{"id":"c","type":"tell_ack"}`, `{"type":"turn_end","turn":3,"outcome":"done","says":"done"}`)
		if code := h.finish(); code != 0 || p.closed != 1 {
			t.Errorf("status %d, closed %d times", code, p.closed)
		}
	})
}

func TestWhatAnAgentSaysIsToldAsItComes(t *testing.T) {
	bubble(t, func(t *testing.T) {
		step := make(chan func(agent.Show))
		p := &played{turn: func(_ context.Context, _ string, show agent.Show) (string, error) {
			for do := range step {
				do(show)
			}
			return "", nil
		}}
		h := wake(t, p, agent.Order{})
		h.tell("t1", "go")
		do := func(f func(agent.Show)) { step <- f; synctest.Wait() }

		do(func(s agent.Show) { s.Say("Hel") })
		is(t, h.heard()[1:])
		time.Sleep(200 * time.Millisecond)
		is(t, h.heard()[1:], `{"type":"text","turn":1,"number":1,"text":"Hel"}`)
		do(func(s agent.Show) { s.Say("lo.\nHow <are>") })
		is(t, h.heard()[2:], `{"type":"text","turn":1,"number":2,"text":"lo."}`)
		do(func(s agent.Show) { s.Think("hm"); s.Note("a note"); s.Say(" you \xf0\x9f") })
		do(func(s agent.Show) { s.Say("\x99\x82\x00\n\n") })
		is(t, h.heard()[3:], `{"type":"text","turn":1,"number":3,"text":"\nHow <are> you 🙂�"}`)
		do(func(s agent.Show) {
			s.Began(agent.Tool{ID: "x", Kind: "execute", Title: "sleep 5\x1b", Timeout: 5 * time.Second})
			s.Began(agent.Tool{ID: "y", Kind: "read", Title: "a.txt"})
			s.Ended("x", false)
			s.Ended("x", true)
			s.Ended("z", true)
			s.Say("\n\nDone.")
		})
		close(step)
		is(t, h.heard()[4:],
			`{"type":"tool","turn":1,"id":"call-1","kind":"execute","title":"sleep 5\\x1b","timeout_ms":5000}`,
			`{"type":"tool","turn":1,"id":"call-2","kind":"read","title":"a.txt"}`,
			`{"type":"tool","turn":1,"id":"call-1","kind":"execute","title":"sleep 5\\x1b","timeout_ms":5000,"over":true}`,
			`{"type":"text","turn":1,"number":4,"text":"\n\nDone."}`,
			`{"type":"tool","turn":1,"id":"call-2","kind":"read","title":"a.txt","over":true,"failed":true}`,
			`{"type":"turn_end","turn":1,"outcome":"done"}`)
		if lines := h.shown(); !strings.Contains(lines, "\nHow <are>\n") || !strings.Contains(lines, "\n[read] a.txt\n") {
			t.Errorf("a person is shown\n%s", lines)
		}
		h.finish()
	})
}

func TestATurnOfAConversationSaysNoMoreThanItMay(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p := &played{turn: func(_ context.Context, _ string, show agent.Show) (string, error) {
			show.Say(strings.Repeat("all \"work\" \x01 and no play\n", 3_000))
			show.Say("And more.\n")
			return "", nil
		}}
		h := wake(t, p, agent.Order{})
		for turn := 1; turn <= 3; turn++ { // nothing is used up by what was said before
			h.tell("t"+strings.Repeat("x", turn), "go")
			text := h.text(t, turn)
			if len(text) < agent.TextBytesMax || len(text) > agent.TextBytesMax+200 || strings.Count(text, "was cut") != 1 || !strings.HasSuffix(text, "\n\n(What follows was cut: one turn says at most 64 KiB.)") {
				t.Fatalf("turn %d says %d bytes: %q", turn, len(text), text[max(0, len(text)-80):])
			}
		}
		if lines := h.shown(); !strings.HasSuffix(lines, `{"type":"turn_end","turn":3,"outcome":"done"}`) {
			t.Error("it does not end")
		}
		h.finish()
	})
}

func TestATurnOfAConversationIsInterrupted(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p := &played{turn: func(ctx context.Context, words string, show agent.Show) (string, error) {
			if words == "wait" {
				show.Say("I wait.")
				<-ctx.Done()
				return "", ctx.Err()
			}
			return "done", nil
		}}
		h := wake(t, p, agent.Order{})
		h.say(interruption) // there is nothing to interrupt
		h.tell("t1", "wait")
		h.tell("t2", "more")
		h.say(interruption)
		is(t, h.heard(), `{"id":"t1","type":"tell_ack"}`, `{"type":"text","turn":1,"number":1,"text":"I wait."}`, `{"type":"turn_end","turn":1,"outcome":"cancelled","more":true}`,
			`{"id":"t2","type":"tell_ack"}`, `{"type":"turn_end","turn":2,"outcome":"done","says":"done"}`)
		if code := h.finish(); code != 0 {
			t.Errorf("status %d", code)
		}
	})
}

func TestAnAgentThatHeedsNoInterruptionIsEnded(t *testing.T) {
	bubble(t, func(t *testing.T) {
		gate := make(chan struct{})
		defer close(gate)
		p := &played{turn: until(gate)}
		h := wake(t, p, agent.Order{})
		h.tell("t1", "go")
		h.tell("t2", "more")
		h.say(interruption)
		time.Sleep(10*time.Second - time.Nanosecond)
		is(t, h.heard(), `{"id":"t1","type":"tell_ack"}`)
		time.Sleep(time.Nanosecond)
		is(t, h.heard()[1:], `{"type":"turn_end","turn":1,"outcome":"cancelled","reason":"the agent did not stop when it was interrupted"}`)
		if code := <-h.code; code != 1 || p.closed != 1 {
			t.Errorf("status %d, closed %d times", code, p.closed)
		}
	})
}

// TestAToolThatIsOffFailsItsTurnByName is CH-097 as far as the agent's protocol tells the tool's name.
func TestAToolThatIsOffFailsItsTurnByName(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p := &played{turn: func(ctx context.Context, words string, show agent.Show) (string, error) {
			show.Began(agent.Tool{ID: "1", Kind: "other", Title: "Ask", Name: "AskUserQuestion"})
			if words == "wait" {
				<-ctx.Done()
				return "", ctx.Err()
			}
			return "asked", nil
		}}
		h := wake(t, p, agent.Order{Off: []string{"AskUserQuestion"}})
		for i, words := range []string{"wait", "go"} {
			h.tell("t"+words, words)
			all := h.heard()
			if end := all[len(all)-1]; !strings.Contains(end, `"outcome":"failed","reason":"the agent used the tool \"AskUserQuestion\", which is off here"`) {
				t.Errorf("%d: %q", i, end)
			}
		}
		h.finish()
	})
}

func TestAnAgentThatDoesNotStartFailsTheTurnThatItIsWokenFor(t *testing.T) {
	bubble(t, func(t *testing.T) {
		h := wake(t, &played{open: func(string) (bool, error) { return false, errors.New("no such program") }}, agent.Order{})
		is(t, h.heard())
		h.tell("t1", "hello?")
		is(t, h.heard(), `{"id":"t1","type":"tell_ack"}`, `{"type":"turn_end","turn":1,"outcome":"failed","reason":"codex did not start: no such program"}`)
		if code := <-h.code; code != 1 {
			t.Errorf("status %d", code)
		}
	})
}

// TestAConversationGoesOnUnderItsIdentity holds that an agent that remembers is told nothing of the past, and any other what was said.
func TestAConversationGoesOnUnderItsIdentity(t *testing.T) {
	for _, c := range []struct {
		loads bool
		want  string
	}{
		{true, "hello"},
		{false, "What was said and done before, from its end, as it was written down:\n\nAnn: my name is Ann\n\nhello"},
	} {
		bubble(t, func(t *testing.T) {
			p := &played{turn: done, open: func(last string) (bool, error) { return c.loads && last == "session-1", nil }}
			home := t.TempDir()
			err := errors.Join(os.Mkdir(filepath.Join(home, ".sallyport"), 0o700),
				os.WriteFile(filepath.Join(home, ".sallyport", "adapter.json"), []byte(`{"engine":"played","agent":"codex","session":"session-1","turns":9}`), 0o600))
			if err != nil {
				t.Fatal(err)
			}
			h := drive(t, p, agent.Order{Chat: true, Resumed: &agent.Resumed{Why: "it was idle", Transcript: "Ann: my name is Ann"}}, home)
			h.tell("t1", "hello")
			h.tell("t2", "again")
			is(t, p.told(), c.want, "again")
			h.finish()
		})
	}
}

func TestWordsOfManyMessagesAreWhole(t *testing.T) {
	bubble(t, func(t *testing.T) {
		gate := make(chan struct{})
		p := &played{turn: until(gate)}
		h := wake(t, p, agent.Order{})
		h.tell("t1", "go")
		long := strings.Repeat("x", 512<<10)
		h.tell("t2", long)
		h.tell("t3", "short")
		close(gate)
		synctest.Wait()
		if got := p.told(); len(got) != 3 || got[1] != long || got[2] != "short" {
			t.Errorf("%d turns", len(got))
		}
		h.finish()
	})
}

// TestWordsForATurnGoIntoItOrAreRefused is CH-082 from inside: what the agent does not take in that turn it is not told at all.
func TestWordsForATurnGoIntoItOrAreRefused(t *testing.T) {
	const taken, refused = `{"id":"t2","type":"tell_ack"}`, `{"id":"t2","status":"refused","type":"tell_ack"}`
	for name, c := range map[string]struct {
		steers bool
		turn   int
		want   string
	}{
		"taken":                    {steers: true, turn: 1, want: taken},
		"an agent that takes none": {turn: 1, want: refused},
		"of a turn that is over":   {steers: true, turn: 2, want: refused},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				gate := make(chan struct{})
				p := &played{turn: until(gate), steers: c.steers}
				h := wake(t, p, agent.Order{})
				h.tell("t1", "work")
				h.say(fmt.Sprintf(`{"type":"tell","id":"t2","turn":%d,"text":"and this"}`, c.turn))
				is(t, h.heard(), `{"id":"t1","type":"tell_ack"}`, c.want)
				close(gate)
				is(t, h.heard()[2:], `{"type":"turn_end","turn":1,"outcome":"done","says":"done"}`)
				h.say(`{"type":"tell","id":"t3","turn":1,"text":"late"}`)
				is(t, h.heard()[3:], `{"id":"t3","status":"refused","type":"tell_ack"}`)
				want := []string{"work"}
				if c.want == taken {
					want = append(want, "steered: and this")
				}
				is(t, p.told(), want...)
				h.finish()
			})
		})
	}
}
