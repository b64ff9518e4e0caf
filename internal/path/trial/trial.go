// Package trial is what a landed change goes through before it counts: its target restarts, answers a
// probe, and a person confirms, or everything goes back by itself.
//
// The row is the truth (SM-124): timers only say when to look. Confirm, rollback and the end of the
// time race for one compare-and-set, and exactly one of them wins.
package trial

import (
	"time"

	"sallyport/internal/base/audit"
	"sallyport/internal/base/deadman"
	"sallyport/internal/base/id"
	"sallyport/internal/rule/trust"
)

// Handshake is how far host and person are (SM-136).
type Handshake string

const (
	PendingRestart Handshake = "pending_restart" // landed; the target restarts and is probed
	Message1Sent   Handshake = "message1_sent"   // it answers; the person was asked to confirm
	Confirmed      Handshake = "confirmed"       // decided: it stays
	RolledBack     Handshake = "rolled_back"     // decided: it goes back, or has gone back
)

// Decided reports whether a winner is written down.
func (h Handshake) Decided() bool { return h == Confirmed || h == RolledBack }

// Trial is the row. Until it is decided only the step of its change writes it, but for the decision.
type Trial struct {
	Change    id.Change        `json:"change"`
	Landing   id.Landing       `json:"landing"` // what goes back
	Target    trust.Target     `json:"target"`  // as it stood before the change: nothing in the change decides (law 3)
	Digest    string           `json:"target_digest"`
	Length    time.Duration    `json:"length"` // how long a person has to confirm; 0 = nobody is asked
	Handshake Handshake        `json:"handshake_state"`
	Started   deadman.Moment   `json:"deadman_started_at"`
	Expires   deadman.Deadline `json:"deadman_expires_at"`     // set at Started, so In is at most trust.TrialMax (SM-126)
	Restarts  int              `json:"restarts"`               // that came to an end with a target that answered
	Delivered *time.Time       `json:"delivered_at,omitempty"` // of message 1; its first delivery counts
	By        *audit.Actor     `json:"by,omitempty"`           // who decided; the host for time and probe
	At        *time.Time       `json:"at,omitempty"`
	Reason    string           `json:"reason,omitempty"`    // of going back, as it stands in the commit and is said (SM-139)
	TimedOut  bool             `json:"timed_out,omitempty"` // it goes back because its time was over
	Undoing   id.Landing       `json:"undoing,omitempty"`   // the landing that takes it back
	Restored  bool             `json:"restored,omitempty"`  // the old files are back, compared byte for byte
}

// Decision ends a trial; exactly one is written.
type Decision struct {
	To       Handshake // Confirmed or RolledBack
	By       audit.Actor
	At       time.Time
	Reason   string
	TimedOut bool
}

// TimeOut is the host's decision once the time is over.
func TimeOut() Decision {
	return Decision{To: RolledBack, By: audit.Host, Reason: Timeout, TimedOut: true}
}

// Why is a decision's reason in a person's words.
func (d Decision) Why() string { return why(d.Reason, d.TimedOut) }

// Why is what ended a trial, in a person's words.
func (t Trial) Why() string { return why(t.Reason, t.TimedOut) }

func why(reason string, timedOut bool) string {
	if timedOut {
		return TimeoutWhy
	}
	return reason
}

// Decide returns t with a decision.
func (t Trial) Decide(d Decision) Trial {
	t.Handshake, t.By, t.At, t.Reason, t.TimedOut = d.To, &d.By, &d.At, d.Reason, d.TimedOut
	return t
}

// Begin returns the trial of a landing from now on: until message 1 is out it has WindowMin or length, or as long
// as the target's own words allow it to come up, and never more than trust.TrialMax (SM-108, SM-126).
func Begin(change id.Change, landing id.Landing, t trust.Target, length time.Duration, now deadman.Moment) Trial {
	in := min(max(WindowMin, length, t.Allows()), trust.TrialMax)
	return Trial{
		Change: change, Landing: landing, Target: t, Digest: t.Digest(), Length: length, Handshake: PendingRestart,
		Started: now, Expires: deadman.Deadline{Set: now, In: in},
	}
}

// WindowMin is how long the deadman gives a target to come up, at the least (SM-108).
const WindowMin = 2 * time.Minute

// Asked returns t once message 1 is out. Nobody has it yet: the time that is left can only shrink, to its length.
func (t Trial) Asked(now deadman.Moment) Trial {
	t.Handshake = Message1Sent
	t.Expires.In = min(t.Expires.In, max(now.Since(t.Started), 0)+t.Length)
	return t
}

// Heard returns t once message 1 was delivered: its whole length is left from then, but the cap from the start
// stays (SM-125, SM-126). Only the first delivery counts, and none that comes too late.
func (t Trial) Heard(now deadman.Moment) Trial {
	if t.Handshake != Message1Sent || t.Delivered != nil || t.Expires.Left(now) == 0 {
		return t
	}
	at := now.Wall
	t.Delivered = &at
	t.Expires.In = min(now.Since(t.Started)+t.Length, trust.TrialMax)
	return t
}

// RestartsWanted is how often the target has to come up and answer before anybody is asked (SM-917). A group that only begins on its old
// files, and is asked nothing, has nothing to show a second time.
func (t Trial) RestartsWanted() int {
	if t.Target.Restart != "" || t.Target.Host || t.Target.Group != "" && t.Length > 0 {
		return 2
	}
	return 1
}

// Question is message 1: what became of the target, and what is to be answered. Of a target that restarted and answers it is SM-121's.
func (t Trial) Question() string {
	switch {
	case t.Target.Host:
		return Message1 + withCode
	case t.Target.Group != "":
		return Message1
	case t.Target.None():
		return "It has landed, and nothing was restarted or probed: the trial waits for your word alone. " + reply
	case t.Target.Restart == "":
		return "It has landed, and answers; nothing restarted it. " + reply
	case t.Target.Probe.None():
		return "It has landed and was restarted; nothing asked whether it answers. " + reply
	}
	return Message1
}

// Said is what a person is told of a trial that went back.
func (t Trial) Said() string {
	if t.TimedOut {
		return TimeoutSay
	}
	return "Rolled back to previous version — " + t.Reason
}

// Texts that are fixed.
const (
	reply      = "Reply `confirm` to keep it, or `rollback` to revert."
	Message1   = "I'm back with the new version. " + reply                                                              // SM-121, of what restarted and answers
	withCode   = " This is the host itself: confirm takes the code that whoever approved it was given, `confirm CODE`." // SM-122
	Timeout    = "deadman timeout"                                                                                      // SM-127: the reason in the commit
	TimeoutWhy = "nobody confirmed it in time"                                                                          // of Timeout, to people
	TimeoutSay = "Rolled back to previous version — confirmation timed out."                                            // SM-130
)
