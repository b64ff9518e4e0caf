// Package session is one agent run in a workspace: identity, transcript, limits, exit.
package session

import (
	"time"

	"sallyport/internal/base/id"
	"sallyport/internal/port/sandbox"
)

// Session is one launch.
type Session struct {
	ID      id.Session    `json:"id"`
	Change  id.Change     `json:"change,omitempty"`
	Chat    id.Chat       `json:"chat,omitempty"` // that it works for, instead of a change
	Attempt int           `json:"attempt"`        // from 1; a killed daemon starts the next one
	Agent   string        `json:"agent"`          // driver
	Started time.Time     `json:"started"`
	Ended   *time.Time    `json:"ended,omitempty"`
	Exit    *sandbox.Exit `json:"exit,omitempty"`
	Reason  string        `json:"reason,omitempty"` // why it has ended without an exit: interrupted, or it never ran; with one, why its last turn failed
	// Interrupted says why it has no exit, to the host; Reason says it to a person.
	Interrupted Interruption `json:"interrupted,omitempty"`
	From        string       `json:"from,omitempty"` // commit that its tree was made from anew; "" = the base, or what the last one left
	Dir         string       `json:"dir"`            // .state/sessions/<identity>
}

// Subject is what it runs for.
func (s Session) Subject() id.Subject {
	if s.Chat != "" {
		return s.Chat.Subject()
	}
	return s.Change.Subject()
}

// Interruption is why a session stands without an exit. The strings are stored.
type Interruption string

const (
	HostStopped Interruption = "host_stopped" // the host was stopped, and nobody saw its end
	NotRestored Interruption = "not_restored" // its tree could not be restored while it worked: another begins from the change's From
	NotRun      Interruption = "not_run"      // it did not run, or not all of it is recorded
	Resumed     Interruption = "resumed"      // a person had it resumed, and it has not begun again
	Redone      Interruption = "redone"       // it is to go on upon its branch as it is now, and has not begun again
)

// ToGoOn reports whether a session was taken up and has not begun to work again: it left nothing that is not kept.
func (s Session) ToGoOn() bool { return s.Interrupted == Resumed || s.Interrupted == Redone }
