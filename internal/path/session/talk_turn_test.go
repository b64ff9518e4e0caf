package session_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"sallyport/internal/base/disk/disktest"
	"sallyport/internal/path/session"
	"sallyport/internal/port/agent"
	"sallyport/internal/port/sandbox"
)

// turns is speak with a program that tells the end of its turns.
func turns(t *testing.T, program func(in *bufio.Reader, say func(string))) spoken {
	t.Helper()
	r := running(t, func(ctx context.Context, spec sandbox.Spec) sandbox.Exit {
		in, stdin := io.Pipe()
		go func() { _, _ = io.Copy(stdin, spec.Stdin); stdin.Close() }()
		defer in.Close()
		program(bufio.NewReader(in), func(line string) { io.WriteString(spec.Stdout, line+"\n") })
		return sandbox.Exit{}
	})
	r.Program.Stdin, r.Program.Messages, r.Program.Turns, r.Talk = nil, true, true, session.NewTalk()
	s := spoken{r.Talk, r.Session.Dir, make(chan error, 1)}
	live := make(chan struct{})
	r.Live = func(sandbox.Process) { close(live) }
	go func() {
		_, err := session.Run(t.Context(), r)
		s.ended <- err
	}()
	<-live
	return s
}

func turnEnd(n int, more string) string {
	return fmt.Sprintf(`{"type":"turn_end","turn":%d,"outcome":"done"%s}`, n, more)
}

// next is the end of a turn that waits, nil if none does.
func (s spoken) next() *agent.TurnEnd {
	synctest.Wait()
	select {
	case e := <-s.Turns():
		return &e
	default:
		return nil
	}
}

func TestTheEndOfATurnIsHeardOnceAndTheLatestCounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		go_on := make(chan string)
		s := turns(t, func(_ *bufio.Reader, say func(string)) {
			for line := range go_on {
				say(line)
			}
		})
		if !s.Turning() {
			t.Error("its first turn has not begun")
		}
		for _, c := range []struct {
			lines []string
			want  int // turn that is heard; 0 = none
			more  bool
		}{
			{[]string{`turn_end`, `{"type":"turn_end"}`, `{"type":"turn_end","turn":0,"outcome":"done"}`, `{"type":"turn_end","turn":1,"outcome":"perfect"}`,
				`{"type":"turn_end","turn":1,"outcome":"done","tree":"good"}`, `[` + turnEnd(1, "") + `]`, turnEnd(1, "") + turnEnd(1, ""), "words " + turnEnd(1, ""),
				turnEnd(1, `,"says":"`+strings.Repeat("x", agent.SaysBytesMax+1)+`"`), turnEnd(99999, ""), `{"type":"turn_end","turn":1,"outcome":"done","says":{"a":1}}`}, 0, true},
			{[]string{turnEnd(1, "")}, 1, false},
			{[]string{turnEnd(1, "")}, 0, false},
			{[]string{turnEnd(2, `,"more":true`)}, 2, true},
			{[]string{turnEnd(3, ""), turnEnd(5, ""), turnEnd(4, "")}, 5, false},
		} {
			for _, line := range c.lines {
				go_on <- line
			}
			e := s.next()
			if got := e; (got == nil) != (c.want == 0) || got != nil && got.Turn != c.want {
				t.Errorf("after %q: %+v, want turn %d", c.lines, got, c.want)
			}
			if s.next() != nil {
				t.Errorf("after %q there is another", c.lines)
			}
			if s.Turning() != c.more {
				t.Errorf("after %q a turn is under way: %t", c.lines, s.Turning())
			}
		}
		close(go_on)
		s.over(t)
	})
}

func TestAReasonIsOneLineAndHoldsNoSecret(t *testing.T) {
	const key = "ghp_wJ8rT2xKq9LmN4vB7cD1fG5hY3sA6zE0uPiO" // of nobody
	synctest.Test(t, func(t *testing.T) {
		s := turns(t, func(in *bufio.Reader, say func(string)) {
			say(`{"type":"turn_end","turn":1,"outcome":"failed","reason":"no\n\u001b[2J ` + key + `","says":"with ` + key + `"}`)
			_, _ = in.ReadString('\n')
		})
		e := s.next()
		if e == nil || e.Outcome != agent.TurnFailed || strings.ContainsAny(e.Reason, "\n\x1b") || strings.Contains(e.Reason+e.Says, key) || !strings.HasPrefix(e.Reason, "no") {
			t.Errorf("%+v", e)
		}
		s.Finish()
		s.over(t)
	})
}

func TestAProgramWithoutTurnsEndsNone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := speak(t, func(_ *io.PipeReader, say func(string)) { say(turnEnd(1, "")) })
		s.over(t)
		if e := s.next(); e != nil {
			t.Errorf("%+v", e)
		}
	})
}

// TestFinishEndsStdinBehindWhatWasSent holds that no words are swallowed (law 4), and that none follow.
func TestFinishEndsStdinBehindWhatWasSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		read := make(chan string, 9)
		begin := make(chan struct{})
		s := turns(t, func(in *bufio.Reader, say func(string)) {
			say(turnEnd(1, ""))
			<-begin
			for {
				line, err := in.ReadString('\n')
				if err != nil {
					close(read)
					time.Sleep(time.Minute)
					return
				}
				var m struct{ ID, Text string }
				if json.Unmarshal([]byte(line), &m) == nil {
					say(fmt.Sprintf(`{"type":"tell_ack","id":%q}`, m.ID))
					read <- m.Text
				}
			}
		})
		told := make(chan session.Delivery, 2)
		for _, text := range []string{"one", "two"} {
			go func() { told <- s.Tell(t.Context(), text) }()
			synctest.Wait()
		}
		s.Finish()
		s.Finish()
		if d := s.Tell(t.Context(), "too late"); d.Delivered {
			t.Errorf("what comes after the end is delivered: %+v", d)
		}
		close(begin)
		synctest.Wait()
		var all []string
		for text := range read {
			all = append(all, text)
		}
		if !slices.Equal(all, []string{"one", "two"}) || !(<-told).Acknowledged {
			t.Errorf("it read %q", all)
		}
		s.over(t)
	})
}

func TestWordsThatAreTakenBeginATurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := turns(t, func(in *bufio.Reader, say func(string)) {
			say(turnEnd(1, ""))
			line, _ := in.ReadString('\n')
			var m struct{ ID string }
			_ = json.Unmarshal([]byte(line), &m)
			time.Sleep(time.Second)
			say(fmt.Sprintf(`{"type":"tell_ack","id":%q}`, m.ID))
			time.Sleep(time.Second)
			say(turnEnd(2, ""))
			_, _ = in.ReadString('\n')
		})
		if s.next() == nil || s.Turning() {
			t.Fatal("the first turn is not over")
		}
		go s.Tell(t.Context(), "go on")
		synctest.Wait()
		if !s.Turning() {
			t.Error("it was given words, and no turn is under way")
		}
		time.Sleep(1500 * time.Millisecond)
		if !s.Turning() {
			t.Error("it has taken words, and no turn is under way")
		}
		time.Sleep(time.Second)
		if s.next() == nil || s.Turning() {
			t.Error("the second turn is not over")
		}
		s.Finish()
		s.over(t)
	})
}

func TestTheLastWordsOfATurnAreTheAgentsLastWords(t *testing.T) {
	for _, c := range []struct{ name, out, want string }{
		{"its last turn", "[edit] a\n" + turnEnd(1, `,"says":"first"`) + "\n[edit] b\n" + turnEnd(2, `,"says":"I did it.\nAll of it."`) + "\n", "I did it.\nAll of it."},
		{"a turn without words", "some output\n" + turnEnd(1, "") + "\n", "some output"},
		{"answers say nothing", "mine\n" + ack("chk-1", "x") + "\n", "mine"},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			var raw strings.Builder
			for line := range strings.Lines(c.out) {
				text, _ := json.Marshal(session.Line{Stream: "stdout", Text: strings.TrimSuffix(line, "\n")})
				raw.Write(append(text, '\n'))
			}
			disktest.Put(t, filepath.Join(dir, "transcript.jsonl"), raw.String(), 0o600)
			if got, err := session.LastWords(dir); err != nil || got != c.want {
				t.Errorf("%q, %v; want %q", got, err, c.want)
			}
		})
	}
}

func TestTheEndOfATranscriptIsWholeLinesInBounds(t *testing.T) {
	dir := t.TempDir()
	if got, err := session.Tail(dir, 100); got != "" || err != nil {
		t.Errorf("without one: %q, %v", got, err)
	}
	var raw strings.Builder
	long := strings.Repeat("x", 40)
	for i := range 1000 {
		for _, l := range []session.Line{{Stream: "stdout", Text: fmt.Sprintf("line %d %s", i, long)}, {Stream: "stdout", Text: turnEnd(1, "")}, {Stream: "event", Text: "sent tell tell-1"}} {
			text, _ := json.Marshal(l)
			raw.Write(append(text, '\n'))
		}
	}
	raw.WriteString(`{"at":"half a li`)
	disktest.Put(t, filepath.Join(dir, "transcript.jsonl"), raw.String(), 0o600)
	got, err := session.Tail(dir, 100)
	if err != nil || len(got) > 100 || got != "[sent tell tell-1]\nline 999 "+long+"\n[sent tell tell-1]" || strings.Contains(got, "turn_end") {
		t.Errorf("%d bytes: %q, %v", len(got), got, err)
	}
}

// TestWordsForATurnAreForThatOneAlone holds what a host knows of words that it gives in the middle of a turn: they name it, and are the
// agent's only once it has said so.
func TestWordsForATurnAreForThatOneAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		answers := make(chan string)
		read := make(chan int, 3)
		s := turns(t, func(in *bufio.Reader, say func(string)) {
			say(turnEnd(1, ""))
			for answer := range answers {
				line, _ := in.ReadString('\n')
				var m struct {
					ID   string
					Turn int
				}
				_ = json.Unmarshal([]byte(line), &m)
				read <- m.Turn
				if answer != "" {
					say(fmt.Sprintf(answer, m.ID))
				}
			}
		})
		if s.next() == nil {
			t.Fatal("the first turn is not over")
		}
		for answer, want := range map[string]session.Delivery{
			`{"type":"tell_ack","id":"%s"}`:                    {Delivered: true, Acknowledged: true},
			`{"type":"tell_ack","id":"%s","status":"refused"}`: {Delivered: true, Refused: true},
			"": {Delivered: true},
		} {
			told := make(chan session.Delivery, 1)
			go func() { told <- s.Steer(t.Context(), "And this") }()
			answers <- answer
			d := <-told
			if d.At.IsZero() != (answer == "") {
				t.Errorf("%q: answered at %s", answer, d.At)
			}
			if d.At = (time.Time{}); d != want || <-read != 2 {
				t.Errorf("%q: %+v, want %+v", answer, d, want)
			}
		}
		close(answers)
		s.Finish()
		s.over(t)
	})
}
