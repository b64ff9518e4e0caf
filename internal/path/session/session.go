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
	Change  id.Change     `json:"change"`
	Attempt int           `json:"attempt"` // from 1; a killed daemon starts the next one
	Agent   string        `json:"agent"`   // driver
	Started time.Time     `json:"started"`
	Ended   *time.Time    `json:"ended,omitempty"`
	Exit    *sandbox.Exit `json:"exit,omitempty"`
	Reason  string        `json:"reason,omitempty"` // why it has ended without an exit: interrupted, or it never ran; with one, why its last turn failed
	From    string        `json:"from,omitempty"`   // commit that its tree was made from anew; "" = the base, or what the last one left
	Dir     string        `json:"dir"`              // .state/sessions/<identity>
}
