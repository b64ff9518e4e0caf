package session

import (
	"time"

	"sallyport/internal/port/agent"
	"sallyport/internal/rule/policy"
)

// Strategy says what becomes of an agent's tree when a checkpoint of it is invalid.
type Strategy string

const (
	Direct Strategy = "direct_worktree"  // it stays, for the agent to mend (SV-020)
	Shadow Strategy = "shadow_workspace" // it goes back to the last valid one (SV-031)
)

// Promotion says what of an invalid tree is kept under Shadow.
type Promotion string

const (
	Atomic      Promotion = "atomic"      // nothing: the whole tree goes back
	Incremental Promotion = "incremental" // the files that break no rule
)

// Supervision is how a working agent is watched and what is done when it breaks a rule (SV-007).
type Supervision struct {
	Strategy         Strategy
	Poll             time.Duration   // how often the workspace is looked at without an event; default 2 s
	Interval         time.Duration   // between checkpoints at the most; default 30 s (SV-021)
	ChangesMax       int             // changed paths since the last checkpoint at the most; default 50 (SV-021)
	Apart            time.Duration   // between checkpoints at the least; 5 s (SV-043)
	Unvalidated      bool            // checkpoints before the last one are recorded as skipped
	RevertOnViolated bool            // Direct: files that break a rule of Error or above go back (SV-025)
	Floor            policy.Severity // a violation of less counts as this; default Warning
	Promotion        Promotion
	KeepOnFailure    bool                // Shadow: the tree of a session that failed is not removed
	Pause            agent.PauseProtocol // message: an agent that reads messages is asked to pause before it is stopped (SV-046); default signal
	UpperBytesMax    int64               // what a workspace may grow by; default 2048 MiB (SV-033)
}

// Filled returns s with the default in the place of every zero.
func (s Supervision) Filled() Supervision {
	for _, d := range []struct {
		to    *time.Duration
		usual time.Duration
	}{{&s.Poll, 2 * time.Second}, {&s.Interval, 30 * time.Second}, {&s.Apart, 5 * time.Second}} {
		if *d.to <= 0 {
			*d.to = d.usual
		}
	}
	if s.ChangesMax <= 0 {
		s.ChangesMax = 50
	}
	if s.UpperBytesMax <= 0 {
		s.UpperBytesMax = 2048 << 20
	}
	if s.Strategy == "" {
		s.Strategy = Direct
	}
	if s.Promotion == "" {
		s.Promotion = Atomic
	}
	if s.Pause == "" {
		s.Pause = agent.PauseSignal
	}
	if s.Floor == "" {
		s.Floor = policy.Warning
	}
	return s
}
