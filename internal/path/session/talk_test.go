package session_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"sallyport/internal/path/session"
	"sallyport/internal/port/sandbox"
	"sallyport/internal/rule/policy"
)

// spoken is a session whose program is a function, behind a pipe and a pump as a sandbox has them.
type spoken struct {
	*session.Talk
	dir   string
	ended chan error // one value, when the session is over
}

// speak starts a session in the bubble of a test.
func speak(t *testing.T, program func(in *io.PipeReader, say func(string))) spoken {
	t.Helper()
	r := running(t, func(ctx context.Context, spec sandbox.Spec) sandbox.Exit {
		in, stdin := io.Pipe()
		go func() { _, _ = io.Copy(stdin, spec.Stdin); stdin.Close() }()
		defer in.Close()
		program(in, func(line string) { io.WriteString(spec.Stdout, line+"\n") })
		return sandbox.Exit{}
	})
	r.Program.Stdin, r.Program.Messages, r.Talk = nil, true, session.NewTalk()
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

func (s spoken) over(t *testing.T) {
	t.Helper()
	if err := <-s.ended; err != nil {
		t.Error(err)
	}
}

// listen calls do with every message that comes, until there are no more.
func listen(t *testing.T, in io.Reader, do func(m map[string]any)) {
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var m map[string]any
		if err := json.Unmarshal(lines.Bytes(), &m); err != nil {
			t.Errorf("the message %q: %v", lines.Text(), err)
		}
		do(m)
	}
}

func ack(checkpoint, action string) string {
	return fmt.Sprintf(`{"type":"violation_ack","checkpoint_id":%q,"understood":true,"corrective_action":%q}`, checkpoint, action)
}

var broken = session.Violated{
	Severity: policy.Error, CheckpointID: "chk-1", Timestamp: time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC),
	Violations:   []policy.Violation{{File: "a\nb", Constraint: "forbidden_area", Message: "<no>", Suggestion: "put it back", Severity: policy.Error}},
	FilesChanged: []string{"a\nb"}, ActionTaken: session.ActionReverted, RequiresAck: true,
}

func TestAnAgentThatAnswersAViolationIsHeard(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		got := make(chan string, 9)
		s := speak(t, func(in *io.PipeReader, say func(string)) {
			line, _ := bufio.NewReader(in).ReadString('\n')
			got <- line
			say(ack("chk-1", "undo"))
		})
		if d := s.Violated(t.Context(), broken); d != (session.Delivery{Delivered: true, Acknowledged: true, AgentResponse: "undo"}) {
			t.Errorf("%+v", d)
		}
		s.over(t)
		const want = `{"type":"checkpoint_violation","severity":"error","checkpoint_id":"chk-1","timestamp":"2026-03-04T05:06:07Z",` +
			`"violations":[{"file":"a\nb","constraint":"forbidden_area","message":"<no>","suggestion":"put it back","severity":"error"}],` +
			`"files_changed":["a\nb"],"action_taken":"reverted","requires_acknowledgment":true}` + "\n"
		if line := <-got; line != want {
			t.Errorf("it read %s, want %s", line, want)
		}
		all := lines(t, s.dir)
		if out := texts(all, "stdout"); len(out) != 1 || out[0] != ack("chk-1", "undo") {
			t.Errorf("the transcript has %q", out)
		}
		if !slices.Contains(texts(all, "event"), "sent checkpoint_violation chk-1") {
			t.Errorf("events %q", texts(all, "event"))
		}
	})
}

func TestAnAnswerHoldsNoSecret(t *testing.T) {
	const key = "ghp_wJ8rT2xKq9LmN4vB7cD1fG5hY3sA6zE0uPiO" // of nobody
	synctest.Test(t, func(t *testing.T) {
		s := speak(t, func(in *io.PipeReader, say func(string)) {
			_, _ = bufio.NewReader(in).ReadString('\n')
			say(ack("chk-1", "took "+key+" out"))
		})
		if d := s.Violated(t.Context(), broken); !d.Acknowledged || d.AgentResponse != "took [secret: github-token] out" {
			t.Errorf("%+v", d)
		}
		s.over(t)
	})
}

func TestAViolationWithoutAnAnswerIsSentThreeTimes(t *testing.T) {
	for _, row := range []struct {
		name     string
		answerTo int // which of the messages is answered
		want     session.Delivery
		sent     []time.Duration
		took     time.Duration
	}{
		{"never", 0, session.Delivery{Delivered: true}, []time.Duration{0, 5 * time.Second, 10 * time.Second}, 15 * time.Second},
		{"the second", 2, session.Delivery{Delivered: true, Acknowledged: true, AgentResponse: "yes"}, []time.Duration{0, 5 * time.Second}, 5 * time.Second},
	} {
		t.Run(row.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				var at []time.Duration
				s := speak(t, func(in *io.PipeReader, say func(string)) {
					listen(t, in, func(map[string]any) {
						if at = append(at, time.Since(began)); len(at) == row.answerTo {
							say(ack("chk-1", "yes"))
						}
						if len(at) == 3 || len(at) == row.answerTo {
							time.Sleep(time.Hour)
							in.Close()
						}
					})
				})
				if d := s.Violated(t.Context(), broken); d != row.want {
					t.Errorf("%+v, want %+v", d, row.want)
				}
				if took := time.Since(began); took != row.took {
					t.Errorf("it took %s, want %s", took, row.took)
				}
				s.over(t)
				if !slices.Equal(at, row.sent) {
					t.Errorf("sent at %s, want %s", at, row.sent)
				}
			})
		})
	}
}

func TestAnAgentThatDoesNotUnderstandIsNotTakenForOneThatDoes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := speak(t, func(in *io.PipeReader, say func(string)) {
			listen(t, in, func(map[string]any) {
				say(`{"type":"violation_ack","checkpoint_id":"chk-1","understood":false,"corrective_action":"what?"}`)
				in.Close()
			})
		})
		if d := s.Violated(t.Context(), broken); d != (session.Delivery{Delivered: true, AgentResponse: "what?"}) {
			t.Errorf("%+v", d)
		}
		s.over(t)
	})
}

func TestAnAgentThatNeverReadsHoldsNobodyUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		read := make(chan struct{})
		var got []string
		s := speak(t, func(in *io.PipeReader, _ func(string)) {
			<-read
			in.Read(make([]byte, 1)) // the one message that the pump had in its hand
			time.Sleep(time.Minute)
			listen(t, io.MultiReader(strings.NewReader("{"), in), func(m map[string]any) {
				got = append(got, fmt.Sprint(m["type"], " ", m["checkpoint_id"], m["text"]))
				if m["text"] == "last" {
					time.Sleep(time.Minute)
					in.Close()
				}
			})
		})
		for _, row := range []struct {
			name string
			ask  func(context.Context) any
			want any
			took time.Duration
		}{
			{"violation", func(ctx context.Context) any { return s.Violated(ctx, broken) }, session.Delivery{}, 15 * time.Second},
			{"tell", func(ctx context.Context) any { return s.Tell(ctx, "withdrawn") }, session.Delivery{}, 5 * time.Second},
			{"pause", func(ctx context.Context) any { return s.Pause(ctx, "chk-2") }, session.Answer{Timeout: true, LatencyMS: 10_000}, 10 * time.Second},
			{"impatient violation", func(ctx context.Context) any {
				ctx, cancel := context.WithTimeout(ctx, time.Second)
				defer cancel()
				return s.Violated(ctx, broken)
			}, session.Delivery{}, time.Second},
			{"impatient pause", func(ctx context.Context) any {
				ctx, cancel := context.WithTimeout(ctx, time.Second)
				defer cancel()
				return s.Pause(ctx, "chk-2")
			}, session.Answer{LatencyMS: 1000}, time.Second},
		} {
			began := time.Now()
			if got := row.ask(t.Context()); got != row.want || time.Since(began) != row.took {
				t.Errorf("%s: %+v after %s, want %+v after %s", row.name, got, time.Since(began), row.want, row.took)
			}
		}
		s.Resume("chk-2") // its pause was taken back
		close(read)
		synctest.Wait()
		if d := s.Tell(t.Context(), "late"); d != (session.Delivery{}) {
			t.Errorf("half read: %+v", d)
		}
		time.Sleep(time.Minute)
		if d := s.Tell(t.Context(), "last"); !d.Delivered {
			t.Errorf("once it reads: %+v", d)
		}
		s.over(t)
		if want := []string{"checkpoint_violation chk-1<nil>", "tell <nil>last"}; !slices.Equal(got, want) {
			t.Errorf("it got %q, want %q: what was not delivered is taken back", got, want)
		}
	})
}

func TestWhatWaitsForAProgramIsBounded(t *testing.T) {
	for name, row := range map[string]struct {
		text string
		room int // messages, with the one in the pump's hand
	}{
		"by number": {"x", 64 + 1},
		"by size":   {strings.Repeat("x", session.TellBytesMax), 15 + 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				end := make(chan struct{})
				s := speak(t, func(*io.PipeReader, func(string)) { <-end })
				s.AnswerWithin = time.Hour
				var waiting sync.WaitGroup
				for range row.room {
					waiting.Go(func() {
						if d := s.Tell(t.Context(), row.text); d.Delivered {
							t.Errorf("%+v", d)
						}
					})
					synctest.Wait() // the pump has the first one before the second comes
				}
				began := time.Now()
				if d := s.Tell(t.Context(), row.text); d.Delivered || time.Since(began) != 0 {
					t.Errorf("one too many: %+v after %s", d, time.Since(began))
				}
				if a := s.Pause(t.Context(), "chk-1"); row.text == "x" && (a != session.Answer{Timeout: true}) {
					t.Errorf("a pause without room: %+v", a)
				}
				close(end)
				waiting.Wait()
				if time.Since(began) > 10*time.Second {
					t.Errorf("the end of the session was noticed after %s", time.Since(began))
				}
				s.over(t)
			})
		})
	}
}

func TestOnlyAnAnswerToWhatWasAskedCounts(t *testing.T) {
	good := ack("chk-1", "undo")
	paused := `{"type":"pause_ack","checkpoint_id":"chk-1","status":"paused","pending_operations":[]}`
	heard := session.Delivery{Delivered: true, Acknowledged: true, AgentResponse: "undo"}
	mute := session.Delivery{Delivered: true}
	for name, row := range map[string]struct {
		before string // printed unasked, as the first thing
		answer string
		want   session.Delivery
	}{
		"the right one":              {"", good, heard},
		"with spaces":                {"", " \t" + good + " \r", heard},
		"twice":                      {"", good + "\n" + ack("chk-1", "other"), heard},
		"among a lot else":           {"", "working\n{}\n{\"type\":1}\n[]\nnull\n" + good, heard},
		"before it is asked":         {good, "", mute},
		"of another checkpoint":      {"", ack("chk-2", "undo"), mute},
		"of no checkpoint":           {"", `{"type":"violation_ack","understood":true}`, mute},
		"to another question":        {"", paused, mute},
		"of an unknown type":         {"", strings.Replace(good, "violation_ack", "violation_nack", 1), mute},
		"understood is no bool":      {"", strings.Replace(good, "true", `"true"`, 1), mute},
		"two objects on a line":      {"", good + good, mute},
		"in a list":                  {"", "[" + good + "]", mute},
		"half of it":                 {"", good[:len(good)-1], mute},
		"text before it":             {"", "ok " + good, mute},
		"a line of more than 16 KiB": {"", ack("chk-1", strings.Repeat("x", session.LineBytesMax)), mute},
		"the end of a long line":     {"", strings.Repeat("x", session.LineBytesMax) + good, mute},
		"a deep one":                 {"", strings.Replace(good, "{", `{"x":`+strings.Repeat("[", 40)+strings.Repeat("]", 40)+",", 1), mute},
		"invalid UTF-8":              {"", strings.Replace(good, "undo", "un\xffdo", 1), mute},
		"a NUL":                      {"", strings.Replace(good, "undo", "un\x00do", 1), mute},
		"an escaped NUL":             {"", strings.Replace(good, "undo", `un\u0000do`, 1), mute},
		"very long words":            {"", ack("chk-1", strings.Repeat("ä", 5000)), session.Delivery{Delivered: true, Acknowledged: true, AgentResponse: strings.Repeat("ä", 2048)}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := speak(t, func(in *io.PipeReader, say func(string)) {
					if row.before != "" {
						say(row.before)
					}
					n := 0
					listen(t, in, func(map[string]any) {
						if n++; row.answer != "" {
							say(row.answer)
						}
						if n == 3 || row.want.Acknowledged {
							time.Sleep(time.Hour)
							in.Close()
						}
					})
				})
				synctest.Wait() // what is printed unasked is printed
				if d := s.Violated(t.Context(), broken); d != row.want {
					t.Errorf("%+v, want %+v", d, row.want)
				}
				s.over(t)
			})
		})
	}
}

func TestAnAnswerToAMessageThatWasNotReadDoesNotCount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		end := make(chan struct{})
		s := speak(t, func(in *io.PipeReader, say func(string)) {
			time.Sleep(time.Second)
			say(ack("chk-1", "undo"))
			say(`{"type":"pause_ack","checkpoint_id":"chk-1","status":"paused"}`)
			<-end
		})
		go s.Tell(t.Context(), "in the pump's hand")
		synctest.Wait()
		var both sync.WaitGroup
		both.Go(func() {
			if d := s.Violated(t.Context(), broken); d != (session.Delivery{}) {
				t.Errorf("%+v", d)
			}
		})
		both.Go(func() {
			if a := s.Pause(t.Context(), "chk-1"); a.Acknowledged {
				t.Errorf("%+v", a)
			}
		})
		both.Wait()
		close(end)
		s.over(t)
	})
}

func TestAPauseIsAnsweredAndEndedByAResume(t *testing.T) {
	for name, row := range map[string]struct {
		status string
		want   session.Answer
	}{
		"paused":         {"paused", session.Answer{Acknowledged: true, LatencyMS: 300}},
		"another status": {"busy", session.Answer{Timeout: true, LatencyMS: 10_000}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var got []string
				s := speak(t, func(in *io.PipeReader, say func(string)) {
					listen(t, in, func(m map[string]any) {
						if m["type"] == "tell" {
							in.Close()
							return
						}
						line, _ := json.Marshal(m)
						got = append(got, string(line))
						if m["type"] == "resume" {
							return
						}
						time.Sleep(300 * time.Millisecond)
						say(fmt.Sprintf(`{"type":"pause_ack","checkpoint_id":"chk-1","status":%q,"pending_operations":["x",{}]}`, row.status))
					})
				})
				s.Resume("chk-1") // nobody paused
				if a := s.Pause(t.Context(), "chk-1"); a != row.want {
					t.Errorf("%+v, want %+v", a, row.want)
				}
				s.Resume("chk-2") // nor for that one
				s.Resume("chk-1")
				s.Resume("chk-1") // it goes on already
				s.Tell(t.Context(), "end")
				s.over(t)
				want := []string{`{"checkpoint_id":"chk-1","reason":"checkpoint_validation","timeout_ms":10000,"type":"pause_request"}`, `{"checkpoint_id":"chk-1","type":"resume"}`}
				if !slices.Equal(got, want) {
					t.Errorf("it got %q, want %q", got, want)
				}
			})
		})
	}
}

func TestAnAgentThatStandsIsResumedThroughAFullQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		full := make(chan struct{})
		resumed := false
		s := speak(t, func(in *io.PipeReader, say func(string)) {
			n := 0
			listen(t, in, func(m map[string]any) {
				if n++; n == 1 {
					<-full
				}
				if resumed = resumed || m["type"] == "resume"; resumed {
					in.Close()
				}
			})
		})
		ctx, cancel := context.WithCancel(t.Context())
		go s.Pause(ctx, "chk-1")
		synctest.Wait()
		for range 70 {
			go s.Tell(ctx, "x")
		}
		synctest.Wait()
		s.Resume("chk-1")
		close(full)
		s.over(t)
		cancel()
		if !resumed {
			t.Error("it stands for ever")
		}
	})
}

func TestAPersonsWordsArriveOnceAndAreAcknowledgedByName(t *testing.T) {
	for name, row := range map[string]struct {
		answer string // %s: the message's id
		want   session.Delivery
	}{
		"named":        {`{"type":"tell_ack","id":"%s","response":"I do"}`, session.Delivery{Delivered: true, Acknowledged: true, AgentResponse: "I do"}},
		"not named":    {`{"type":"tell_ack","x":"%s"}`, session.Delivery{Delivered: true}},
		"another name": {`{"type":"tell_ack","id":"%s0"}`, session.Delivery{Delivered: true}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := 0
				s := speak(t, func(in *io.PipeReader, say func(string)) {
					listen(t, in, func(m map[string]any) {
						if m["text"] == "end" {
							in.Close()
							return
						}
						n++
						at, err := time.Parse(time.RFC3339Nano, fmt.Sprint(m["timestamp"]))
						if m["type"] != "tell" || m["text"] != "use <b>\n\x1b \"quotes\"" || err != nil || at.IsZero() || len(m) != 4 {
							t.Errorf("%v", m)
						}
						say(fmt.Sprintf(row.answer, m["id"]))
					})
				})
				d := s.Tell(t.Context(), "use <b>\n\x1b \"quotes\"")
				if d.Acknowledged == d.At.IsZero() {
					t.Errorf("answered at %s: %+v", d.At, d)
				}
				if d.At = (time.Time{}); d != row.want {
					t.Errorf("%+v, want %+v", d, row.want)
				}
				if d := s.Tell(t.Context(), strings.Repeat("x", session.TellBytesMax+1)); d != (session.Delivery{}) {
					t.Errorf("too long: %+v", d)
				}
				s.Tell(t.Context(), "end")
				s.over(t)
				if n != 1 {
					t.Errorf("it was told %d times", n)
				}
			})
		})
	}
}

func TestNobodyWaitsForAnAgentThatIsGoneOrDeaf(t *testing.T) {
	for name, program := range map[string]func(in *io.PipeReader){
		"it ends":          func(*io.PipeReader) { time.Sleep(time.Second) },
		"it closes stdin":  func(in *io.PipeReader) { time.Sleep(time.Second); in.Close(); time.Sleep(time.Hour) },
		"it was so before": func(in *io.PipeReader) { in.Close(); time.Sleep(time.Hour) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := speak(t, func(in *io.PipeReader, _ func(string)) { program(in) })
				synctest.Wait()
				began := time.Now()
				if d := s.Violated(t.Context(), broken); d != (session.Delivery{}) {
					t.Errorf("%+v", d)
				}
				for range 2 {
					if a := s.Pause(t.Context(), "chk-1"); a.Acknowledged || a.Timeout {
						t.Errorf("%+v", a)
					}
					if d := s.Tell(t.Context(), "x"); d != (session.Delivery{}) {
						t.Errorf("%+v", d)
					}
					s.Resume("chk-1")
				}
				if took := time.Since(began); took > time.Second {
					t.Errorf("it took %s", took)
				}
				s.over(t)
			})
		})
	}
}

func TestTheEndOfASessionIsTheEndOfItsStdin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // which fails if a pump stays behind
		s := speak(t, func(*io.PipeReader, func(string)) {})
		s.over(t)
		if n, err := s.Read(make([]byte, 1)); n != 0 || err != io.EOF {
			t.Errorf("%d, %v", n, err)
		}
	})
}

func TestAProgramThatReadsNoMessagesHasAStdinThatEnds(t *testing.T) {
	for name, talks := range map[string]bool{"with a talk": true, "without": false} {
		synctest.Test(t, func(t *testing.T) {
			var talk *session.Talk
			if talks {
				talk = session.NewTalk()
			}
			r := running(t, func(_ context.Context, spec sandbox.Spec) sandbox.Exit {
				in, err := io.ReadAll(spec.Stdin)
				if string(in) != "in" || err != nil {
					t.Errorf("%s: %q, %v", name, in, err)
				}
				began := time.Now()
				if d := talk.Tell(t.Context(), "x"); d != (session.Delivery{}) || time.Since(began) > 0 {
					t.Errorf("%s: while it runs: %+v after %s", name, d, time.Since(began))
				}
				return sandbox.Exit{}
			})
			r.Talk, r.Program.Messages = talk, !talks
			if _, err := session.Run(t.Context(), r); err != nil {
				t.Fatal(err)
			}
			if d := talk.Tell(t.Context(), "x"); d != (session.Delivery{}) {
				t.Errorf("%s: %+v", name, d)
			}
			if d := talk.Violated(t.Context(), broken); d != (session.Delivery{}) {
				t.Errorf("%s: %+v", name, d)
			}
			if a := talk.Pause(t.Context(), "chk-1"); a.Acknowledged || a.Timeout != !talks {
				t.Errorf("%s: %+v", name, a)
			}
			talk.Resume("chk-1")
		})
	}
}

func TestItsOwnStdinComesBeforeAnyMessage(t *testing.T) {
	first := strings.Repeat("script ", 20_000) + "\n"
	r := running(t, func(_ context.Context, spec sandbox.Spec) sandbox.Exit {
		in := bufio.NewReader(spec.Stdin)
		a, _ := in.ReadString('\n')
		b, _ := in.ReadString('\n')
		if a != first || !strings.Contains(b, `"text":"early"`) {
			t.Errorf("%d bytes, then %q", len(a), b)
		}
		in.ReadByte() // until the session ends or somebody says more: neither comes from here
		return sandbox.Exit{}
	})
	r.Program.Stdin, r.Program.Messages, r.Talk = []byte(first), true, session.NewTalk()
	r.Talk.AnswerWithin = 5 * time.Second // from before the session has begun
	told := make(chan session.Delivery)
	go func() {
		told <- r.Talk.Tell(t.Context(), "early")
		r.Talk.Tell(t.Context(), "more")
	}()
	over := make(chan error)
	go func() {
		_, err := session.Run(t.Context(), r)
		over <- err
	}()
	if d := <-told; !d.Delivered || d.Acknowledged {
		t.Errorf("%+v", d)
	}
	if err := <-over; err != nil {
		t.Error(err)
	}
}

func TestAVeryLongViolationIsCutAndSaysSo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := broken
		v.Violations, v.FilesChanged, v.RequiresAck = nil, nil, false
		for i := range 10_000 {
			file := fmt.Sprintf("folder/%d/%s", i, strings.Repeat("x", 50))
			v.Violations = append(v.Violations, policy.Violation{File: file, Constraint: "forbidden_area", Severity: policy.Error})
			v.FilesChanged = append(v.FilesChanged, file)
		}
		empty := session.Violated{CheckpointID: "chk-2"}
		var got []map[string]any
		s := speak(t, func(in *io.PipeReader, _ func(string)) {
			listen(t, in, func(m map[string]any) {
				if got = append(got, m); len(got) == 2 {
					time.Sleep(time.Second)
					in.Close()
				}
			})
		})
		for _, v := range []session.Violated{v, empty} {
			if d := s.Violated(t.Context(), v); d != (session.Delivery{Delivered: true}) {
				t.Errorf("%+v", d)
			}
		}
		s.over(t)
		violations, files := got[0]["violations"].([]any), got[0]["files_changed"].([]any)
		omitted, _ := got[0]["omitted"].(map[string]any)
		if len(violations) < 100 || len(files) < 100 ||
			omitted["violations"] != float64(10_000-len(violations)) || omitted["files_changed"] != float64(10_000-len(files)) {
			t.Errorf("%d violations, %d files, omitted %v", len(violations), len(files), omitted)
		}
		if m := got[1]; fmt.Sprintf("%v %v %v %v", m["violations"], m["files_changed"], m["action_taken"], m["omitted"]) != "[] [] none <nil>" {
			t.Errorf("%v", m)
		}
		if len(v.Violations) != 10_000 || v.Type != "" {
			t.Error("the caller's own was changed")
		}
	})
}

func TestManyMaySpeakAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := speak(t, func(in *io.PipeReader, say func(string)) {
			listen(t, in, func(m map[string]any) {
				switch m["type"] {
				case "checkpoint_violation":
					say(ack(fmt.Sprint(m["checkpoint_id"]), fmt.Sprint("for ", m["checkpoint_id"])))
				case "pause_request":
					say(fmt.Sprintf(`{"type":"pause_ack","checkpoint_id":%q,"status":"paused"}`, m["checkpoint_id"]))
				case "tell":
					if m["text"] == "end" {
						in.Close()
						return
					}
					say(fmt.Sprintf(`{"type":"tell_ack","id":%q,"response":%q}`, m["id"], m["text"]))
				}
			})
		})
		var all sync.WaitGroup
		for i := range 20 {
			name := fmt.Sprint("chk-", i)
			all.Go(func() {
				v := broken
				v.CheckpointID = name
				if d := s.Violated(t.Context(), v); d.AgentResponse != "for "+name {
					t.Errorf("%s: %+v", name, d)
				}
			})
			all.Go(func() {
				if a := s.Pause(t.Context(), name); !a.Acknowledged {
					t.Errorf("%s: %+v", name, a)
				}
				s.Resume(name)
			})
			all.Go(func() {
				if d := s.Tell(t.Context(), name); d.AgentResponse != name {
					t.Errorf("%s: %+v", name, d)
				}
			})
		}
		all.Wait()
		s.Tell(t.Context(), "end")
		s.over(t)
	})
}
