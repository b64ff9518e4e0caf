package api

import "time"

// Trial is what a landed change goes through before it counts: its target restarts and is asked whether it
// answers, and a person confirms, or everything goes back by itself.
type Trial struct {
	Landing   string     `json:"landing"`           // what goes back
	Host      bool       `json:"host,omitempty"`    // the host itself is on trial: it is confirmed with its code
	Restart   string     `json:"restart,omitempty"` // the command that restarts the target; "" = nothing restarts
	Probe     string     `json:"probe,omitempty"`   // the command or URL that says whether it answers; "" = nothing is asked
	LengthMS  int64      `json:"trial_ms"`          // how long a person has; 0 = nobody is asked
	Handshake string     `json:"handshake_state"`   // SM-136
	Restarts  int        `json:"restarts"`          // that ended with a target that answered
	Started   time.Time  `json:"deadman_started_at"`
	Expires   time.Time  `json:"deadman_expires_at"` // by the wall clock
	LeftMS    int64      `json:"left_ms"`            // by the clock that nobody can set; 0 = decided, or over
	Delivered *time.Time `json:"delivered_at,omitempty"`
	By        *Actor     `json:"by,omitempty"` // who decided; the host for time and probe
	At        *time.Time `json:"at,omitempty"`
	Reason    string     `json:"reason,omitempty"`  // of going back
	Say       string     `json:"message,omitempty"` // what a person is told: the question, or that it was rolled back
	Undoing   string     `json:"undoing,omitempty"`
	Restored  bool       `json:"restored,omitempty"` // the old files are back, compared byte for byte
}

// The handshake of a trial (SM-136); RolledBack is its fourth word: it goes back, or has gone back.
const (
	PendingRestart = "pending_restart" // landed; the target restarts and is probed
	Message1Sent   = "message1_sent"   // it answers; a person was asked to confirm
	Confirmed      = "confirmed"       // decided: it stays
)

// Asks reports whether a person is being asked.
func (t *Trial) Asks() bool { return t != nil && t.Handshake == Message1Sent }

// Left returns how long it is until everything goes back by itself.
func (t *Trial) Left() time.Duration { return time.Duration(t.LeftMS) * time.Millisecond }
