package stuck_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"sallyport/internal/rule/stuck"
)

// sweep is how often the replayed host looks.
const sweep = 10 * time.Second

// world replays a trace: what happened when, and what the sweeps between made of it.
//
//	TIME wake                  the sandbox starts, by the sweep that comes next
//	TIME claim ID [pushed]     the session takes a message into process
//	TIME event                 the agent says or does something
//	TIME tool NAME [BUDGET]    a tool begins, beside those that run; `done NAME` ends it, `done` all
//	TIME open / bytes / close  a request at the egress door; `wait D` is an answer with Retry-After
//	TIME end                   the turn ends, and its messages are completed
//	TIME exit                  the sandbox ends by itself
//	TIME clock D               somebody sets the wall clock by D
//	TIME asleep D              the machine sleeps for D: only the wall clock goes on
//	TIME fence +N / row-fence +N  this run's claim, or that of the rows, is N later
//	TIME last                  the trace ends
//	hangs TIME BUDGET          from when on the agent hangs, and when it has to be over
//	again                      what is due again is taken again, by a new sandbox, and hangs again
//	= LINE                     what the sweeps did, in order
type world struct {
	t             *testing.T
	s             stuck.Session
	waiting       []stuck.Row
	up            time.Duration
	wall          time.Time
	did           []string
	hangs, budget time.Duration
	again         bool
	acted         []time.Duration
}

const booted = time.Hour // so that no time of a trace is 0

func TestTracesOfSessionsAreJudgedAsWhatTheyWere(t *testing.T) {
	traces, err := filepath.Glob("testdata/*.trace")
	if err != nil || len(traces) < 12 {
		t.Fatalf("only %d traces: %v", len(traces), err)
	}
	for _, trace := range traces {
		t.Run(strings.TrimSuffix(filepath.Base(trace), ".trace"), func(t *testing.T) { replay(t, trace) })
	}
}

func replay(t *testing.T, trace string) {
	text, err := os.ReadFile(trace)
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, up: booted, wall: time.Date(2026, 3, 8, 12, 0, 0, 0, time.UTC), s: stuck.Session{Fence: 1}}
	var want []string
	for line := range strings.Lines(string(text)) {
		words := strings.Fields(line)
		switch {
		case len(words) == 0 || words[0] == "#":
		case words[0] == "=":
			want = append(want, strings.TrimSpace(strings.TrimPrefix(line, "=")))
		case words[0] == "hangs":
			w.hangs, w.budget = w.duration(words[1]), w.duration(words[2])
		case words[0] == "again":
			w.again = true
		default:
			w.runTo(booted + w.duration(words[0]))
			w.do(words[1], words[2:])
		}
	}

	if !slices.Equal(w.did, want) {
		t.Errorf("the sweeps did\n= %s\nwant\n= %s", strings.Join(w.did, "\n= "), strings.Join(want, "\n= "))
	}
	switch late := booted + w.hangs + w.budget + sweep; {
	case w.budget == 0 && len(w.acted) > 0:
		t.Errorf("a session that did not hang was interrupted or killed after %s", w.acted[0]-booted)
	case w.budget > 0 && len(w.acted) == 0:
		t.Error("a session that hung was left so")
	case w.budget > 0 && (w.acted[0] < booted+w.hangs || w.acted[0] > late):
		t.Errorf("the session hung from %s on, and the host acted after %s; its budget is %s", w.hangs, w.acted[0]-booted, w.budget)
	}
}

func (w *world) duration(text string) time.Duration {
	d, err := time.ParseDuration(text)
	if err != nil {
		w.t.Fatal(err)
	}
	return d
}

// runTo sweeps until then.
func (w *world) runTo(then time.Duration) {
	for w.up < then {
		step := min(then-w.up, sweep-w.up%sweep)
		w.up, w.wall = w.up+step, w.wall.Add(step)
		if w.up%sweep == 0 {
			w.sweep()
		}
	}
}

// sweep judges the session, and does what the verdict says, as a host does.
func (w *world) sweep() {
	verdict := stuck.Judge(stuck.Now{Up: w.up, Wall: w.wall}, w.s)
	w.s.Woken = false
	at := fmt.Sprintf("%s %s", w.up-booted, verdict.Act)
	switch verdict.Act {
	case stuck.Interrupt:
		w.did, w.acted = append(w.did, at+": "+verdict.Because), append(w.acted, w.up)
		w.s.Interrupted = w.up
	case stuck.Kill:
		w.did, w.acted = append(w.did, at+": "+verdict.Because), append(w.acted, w.up)
		w.s.Running, w.s.Tools, w.s.Door = false, nil, stuck.Door{}
	}

	for _, reset := range slices.Concat(verdict.Rows, stuck.Clamp(stuck.Now{Up: w.up, Wall: w.wall}, w.waiting)) {
		state := fmt.Sprintf("due in %s", reset.Due.Sub(w.wall))
		if reset.Dead {
			state = "dead: " + reset.Reason
		}
		w.did = append(w.did, fmt.Sprintf("%s %s, %d tries, %s", w.up-booted, reset.ID, reset.Tries, state))
		is := func(row stuck.Row) bool { return row.ID == reset.ID }
		w.s.Rows, w.waiting = slices.DeleteFunc(w.s.Rows, is), slices.DeleteFunc(w.waiting, is)
		if !reset.Dead {
			w.waiting = append(w.waiting, stuck.Row{ID: reset.ID, Tries: reset.Tries, Due: reset.Due})
		}
	}
	if !w.again || w.s.Running || len(w.waiting) == 0 || w.waiting[0].Due.After(w.wall) {
		return
	}
	w.do("wake", nil)
	w.s.Rows, w.waiting = append(w.s.Rows, stuck.Row{ID: w.waiting[0].ID, Tries: w.waiting[0].Tries, Claimed: w.up, Fence: w.s.Fence}), w.waiting[1:]
}

func (w *world) do(verb string, words []string) {
	s := &w.s
	switch verb {
	case "wake":
		s.Running, s.Woken, s.Started, s.Event, s.Interrupted = true, true, w.up, 0, 0
	case "claim":
		s.Rows = append(s.Rows, stuck.Row{ID: words[0], Claimed: w.up, Fence: s.Fence, Pushed: len(words) > 1})
	case "event":
		s.Event = w.up
	case "tool":
		began := stuck.Tool{Name: words[0], Started: w.up}
		if len(words) > 1 {
			began.Declared = w.duration(words[1])
		}
		s.Event, s.Tools = w.up, append(s.Tools, began)
	case "done":
		over := words
		s.Event, s.Tools = w.up, slices.DeleteFunc(s.Tools, func(t stuck.Tool) bool { return len(over) == 0 || t.Name == over[0] })
	case "open":
		s.Door.Open, s.Door.Moved = s.Door.Open+1, w.up
	case "bytes":
		s.Door.Moved = w.up
	case "close":
		s.Door.Open, s.Door.Moved = s.Door.Open-1, w.up
	case "wait":
		s.Door.Open, s.Door.Moved, s.Door.Until = s.Door.Open-1, w.up, w.up+w.duration(words[0])
	case "end":
		s.Event, s.Rows = w.up, nil
	case "exit":
		s.Running, s.Tools, s.Door = false, nil, stuck.Door{}
	case "clock", "asleep":
		w.wall = w.wall.Add(w.duration(words[0]))
	case "fence":
		s.Fence++
	case "row-fence":
		for n := range s.Rows {
			s.Rows[n].Fence++
		}
	case "last":
	default:
		w.t.Fatalf("no verb %q", verb)
	}
}
