package session_test

import (
	"testing"

	"sallyport/internal/path/session"
	"sallyport/internal/port/sandbox"
)

// TestASessionThatProposedEndedByThat holds that it reads as no fault, and that a limit which came first does.
func TestASessionThatProposedEndedByThat(t *testing.T) {
	killed, limited := sandbox.Exit{Signal: "SIGKILL"}, sandbox.Exit{Limit: &sandbox.Limit{Name: "memory", Value: "1 GiB", Observed: "2 GiB"}}
	for want, s := range map[string]session.Session{
		session.Proposed:                                    {Exit: &killed, Reason: session.Proposed},
		"it was ended by SIGKILL":                           {Exit: &killed},
		"it was ended by SIGKILL: no such model":            {Exit: &killed, Reason: "no such model"},
		session.Describe(limited) + ": " + session.Proposed: {Exit: &limited, Reason: session.Proposed},
	} {
		if got := s.Ending(); got != want || s.Proposed() != (want == session.Proposed) {
			t.Errorf("%+v: %q, and proposed is %t", s, got, s.Proposed())
		}
	}
	if (session.Session{Reason: session.Proposed}).Proposed() {
		t.Error("a session without an end has ended by a proposal")
	}
}
