package session

import (
	"fmt"

	"sallyport/internal/port/sandbox"
)

// Describe says how a program ended, as the end of a sentence, naming the limit if one ended it.
func Describe(e sandbox.Exit) string {
	switch {
	case e.Limit != nil:
		said := fmt.Sprintf("it was ended at its limit of %s: %s (observed: %s)", e.Limit.Name, e.Limit.Value, e.Limit.Observed)
		if setting := e.Limit.Setting(); setting != "" {
			said += "; what raises it: " + setting
		}
		return said
	case e.Signal != "":
		return "it was ended by " + e.Signal
	case e.Code != 0:
		return fmt.Sprintf("it ended with status %d", e.Code)
	}
	return "it ended with status 0"
}

// Proposed is the reason of a session that the host has ended because its agent had proposed.
const Proposed = "it has proposed, and nothing more is wanted of it"

// Proposed reports whether the session has ended by its proposal: that the host ended its processes is no fault then.
func (s Session) Proposed() bool { return s.Reason == Proposed && s.Exit != nil && s.Exit.Limit == nil }

// Ending says how a session that has an exit has ended.
func (s Session) Ending() string {
	switch {
	case s.Proposed():
		return s.Reason
	case s.Reason != "":
		return Describe(*s.Exit) + ": " + s.Reason
	}
	return Describe(*s.Exit)
}
