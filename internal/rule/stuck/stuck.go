package stuck

import (
	"fmt"
	"slices"
	"time"

	"sallyport/internal/base/inert"
)

// Now is the moment of a sweep, on both clocks.
type Now struct {
	Up   time.Duration // since boot, without the time that the machine slept
	Wall time.Time
}

// Session is what the host knows of a chat session. Times are Up; 0 is never.
type Session struct {
	Running     bool          // its sandbox
	Woken       bool          // by the sweep that asks: it is not judged yet (CH-101)
	Started     time.Duration // its sandbox
	Event       time.Duration // the last event of its agent; what the host pushed into the turn is none (CH-099)
	Tools       []Tool        // in flight, the oldest first
	Door        Door
	Interrupted time.Duration // when the host had its turn interrupted
	Fence       int64         // the claim that this run of the host has on the session
	Rows        []Row         // in process
}

// Tool is one that the agent has begun and not ended; the row of CH-094.
type Tool struct {
	Name     string // the agent's own, where it tells one; else what kind of tool it is
	Started  time.Duration
	Declared time.Duration // how long it said that it may take, such as the time-out of Bash; 0 for nothing said
}

// Door is the session's way out, as the host counts it.
type Door struct {
	Open  int           // requests without the end of their answer
	Moved time.Duration // when a request began, or a byte of one moved, either way
	Until time.Duration // how long a server that limits rates said to wait, by Retry-After
}

// Row is a message that the session has in process.
type Row struct {
	ID      string
	Claimed time.Duration // when its agent had it
	Told    time.Duration // when it was said to a program that is not ready to take it yet; 0 = the agent has it
	Fence   int64         // the claim under which it was taken
	Tries   int           // that have failed
	Pushed  bool          // into a turn that was under way: that turn was not this message's
	Due     time.Time
}

// Act is what is to be done with a session.
type Act string

const (
	Leave     Act = "leave"
	Interrupt Act = "interrupt" // its turn, through the adapter
	Kill      Act = "kill"      // its sandbox
)

// Verdict is what a sweep does: the act first, then the rows, in one transaction under the fence.
type Verdict struct {
	Act     Act
	Because string // in plain words; "" if there is nothing to be done
	Rows    []Reset
}

// Reset is what a row becomes: pending, due at Due, or dead.
type Reset struct {
	ID     string
	Dead   bool
	Tries  int
	Due    time.Time // UTC
	Reason string    // for the log, and for the sender of a dead one
}

// Judge decides on one session. It holds for CH-090 to CH-093, 097, 099, 101, 102.
func Judge(now Now, s Session) Verdict {
	held, left, lost := s.split()
	switch {
	case lost && s.Running:
		return Verdict{Act: Kill, Because: "another run of the host has taken over the messages of this session"}
	case lost:
		return Verdict{Act: Leave}
	}
	rows := retry(now, left, "the host ended in the middle of the turn")
	if !s.Running {
		return Verdict{Act: Leave, Rows: slices.Concat(retry(now, held, "the agent's sandbox ended in the middle of the turn"), rows)}
	}
	if s.Woken {
		return Verdict{Act: Leave, Rows: rows}
	}

	act, because := s.judge(now.Up, held)
	if act == Kill {
		rows = slices.Concat(Return(now, held, because), rows)
	}
	return Verdict{Act: act, Because: because, Rows: rows}
}

// split parts the rows by their claim: those of this run, and those that an earlier run left in process. lost is said if a later run
// has one: then none of them is ours to touch.
func (s Session) split() (held, left []Row, lost bool) {
	for _, row := range s.Rows {
		switch {
		case row.Fence > s.Fence:
			return nil, nil, true
		case row.Fence == s.Fence:
			held = append(held, row)
		default:
			left = append(left, row)
		}
	}
	return held, left, false
}

// judge decides on a sandbox that runs.
func (s Session) judge(up time.Duration, rows []Row) (Act, string) {
	if len(s.Tools) > 0 {
		return s.judgeTools(up)
	}
	if up-s.sign(up) > Silence {
		if len(rows) == 0 {
			return Kill, fmt.Sprintf("the agent had nothing to do for %s", words(Silence))
		}
		return Kill, fmt.Sprintf("the agent gave no sign of life for %s", words(Silence))
	}
	for _, row := range rows {
		if row.Told > 0 {
			if up-row.Told > StartMax {
				return Kill, fmt.Sprintf("the agent's program was not ready for the message within %s", words(StartMax))
			}
			continue
		}
		if !row.Pushed && up-row.Claimed > ClaimGrace && s.Event <= row.Claimed && s.Door.Moved <= row.Claimed && s.Door.Open == 0 && s.Door.Until < up {
			return Kill, fmt.Sprintf("the agent did nothing with the message for %s", words(ClaimGrace))
		}
	}
	return Leave, ""
}

// judgeTools decides on a sandbox in which tools run. Each has a budget of its own, and one within it explains any silence; the first that
// is beyond it ends the turn for all.
func (s Session) judgeTools(up time.Duration) (Act, string) {
	late := func(t Tool) bool { return up-t.Started-Budget(t.Declared) >= ToolSlack }
	var left []Tool // that were to stop
	for _, t := range s.Tools {
		if slices.Contains(ToolsOff, t.Name) {
			return Kill, fmt.Sprintf("the agent began the tool %s, which is off here", t.label())
		}
		if s.Interrupted > t.Started {
			left = append(left, t)
		}
	}
	over := slices.IndexFunc(s.Tools, late)
	switch stays := slices.IndexFunc(left, late); {
	case len(left) > 0 && up-s.Interrupted < InterruptGrace:
		return Leave, ""
	case stays >= 0:
		return Kill, fmt.Sprintf("the agent's tool %s ran longer than %s and did not stop when the host interrupted the turn",
			left[stays].label(), words(Budget(left[stays].Declared)))
	case len(left) > 0:
		return Kill, fmt.Sprintf("the agent's tool %s did not stop when the host interrupted the turn", left[0].label())
	case over >= 0:
		return Interrupt, fmt.Sprintf("the agent's tool %s runs longer than %s", s.Tools[over].label(), words(Budget(s.Tools[over].Declared)))
	}
	return Leave, ""
}

// label is what a person is told that the tool is.
func (t Tool) label() string { return inert.Short(t.Name, 60) }

// sign returns when the agent last gave a sign of life. A request that is open and does not move is none after Silence, or a stream that
// hangs would hold its session for ever. A server's word to wait counts, within bounds.
func (s Session) sign(up time.Duration) time.Duration {
	wait := min(s.Door.Until, s.Door.Moved+WaitMax)
	return min(up, max(s.Started, s.Event, s.Door.Moved, wait))
}
