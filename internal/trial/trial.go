// Package trial is what a landed change goes through before it counts: its target restarts, answers a
// probe, and a person confirms, or everything goes back by itself.
//
// The row is the truth (SM-124): timers only say when to look. Confirm, rollback and the end of the
// time race for one compare-and-set, and exactly one of them wins.
package trial

import (
	"time"

	"sallyport/internal/audit"
	"sallyport/internal/deadman"
	"sallyport/internal/id"
	"sallyport/internal/target"
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
	Target    target.Target    `json:"target"`  // as it stood before the change: nothing in the change decides (law 3)
	Digest    string           `json:"target_digest"`
	Handshake Handshake        `json:"handshake_state"`
	Started   deadman.Moment   `json:"deadman_started_at"`
	Expires   deadman.Deadline `json:"deadman_expires_at"`
	Restarts  int              `json:"restarts"`               // that came to an end with a target that answered
	Delivered *time.Time       `json:"delivered_at,omitempty"` // of message 1; its first delivery counts
	By        *audit.Actor     `json:"by,omitempty"`           // who decided; the host for time and probe
	At        *time.Time       `json:"at,omitempty"`
	Reason    string           `json:"reason,omitempty"`   // of going back, as it stands in the commit and is said (SM-139)
	Undoing   id.Landing       `json:"undoing,omitempty"`  // the landing that takes it back
	Restored  bool             `json:"restored,omitempty"` // the old files are back, compared byte for byte
}

// Texts that are fixed.
const (
	Message1   = "I'm back with the new version. Reply `confirm` to keep it, or `rollback` to revert." // SM-121
	Timeout    = "deadman timeout"                                                                     // SM-127: the reason in the commit
	TimeoutSay = "Rolled back to previous version — confirmation timed out."                           // SM-130
)
