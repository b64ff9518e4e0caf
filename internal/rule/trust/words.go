// Package trust is what runs a repository's code: how it is started again, and how one knows that it answers.
//
// Restart and probe are commands of the host's own. They stand in the home's sallyport.yaml, or a
// repository proposes them and the home's owner has trusted exactly these words (SM-925).
package trust

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"time"

	"sallyport/internal/base/id"
)

// Target says how the code of one repository is started again and asked whether it answers.
// The zero Target has nothing to restart and nothing to ask.
type Target struct {
	Restart string        `json:"restart,omitempty"` // for sh -c, in the repository's work tree; "" = nothing restarts
	Within  time.Duration `json:"within,omitempty"`  // how long a restart may take; 0 = WithinDefault
	Probe   Probe         `json:"probe"`
	Trial   time.Duration `json:"trial"` // how long a person has to confirm, TrialMin to TrialMax; 0 = nobody is asked
	// Group is the folder of the group that starts again in the place of a command: its sessions end after their turn, the one of Chat
	// begins on its files as they are, and answers by taking a turn. "" = it is a repository's.
	Group string  `json:"group,omitempty"`
	Chat  id.Chat `json:"chat,omitempty"`
	// Host says that the host itself starts again: its keeper ends it and starts it, twice, and Chat is where it then speaks.
	Host    bool   `json:"host,omitempty"`
	Release string `json:"release,omitempty"` // of a host: digest of the release that it starts with; "" = the one that it ran by
	// Proposed says that these are words of the repository's own, which the owner has trusted: its commands run as
	// the repository's owner, never as root for another, and it asks this machine's own addresses only.
	Proposed bool `json:"proposed,omitempty"`
}

// Probe asks a target whether it answers. One of Command and HTTP is set, or neither: then nothing is asked.
type Probe struct {
	Command string        `json:"command,omitempty"` // for sh -c; exit status 0 = it answers
	HTTP    string        `json:"http,omitempty"`    // http:// URL; a status of 200–299 = it answers; redirects are not followed
	Healthy time.Duration `json:"healthy,omitempty"` // how long it must answer without a miss before it counts; 0 = HealthyDefault
	Within  time.Duration `json:"within,omitempty"`  // how long it may take to answer for the first time; 0 = AnswerDefault
	Every   time.Duration `json:"every,omitempty"`   // between two tries; 0 = EveryDefault
	Timeout time.Duration `json:"timeout,omitempty"` // of one try; 0 = TimeoutDefault
}

// Defaults and bounds.
const (
	WithinDefault  = time.Minute
	HealthyDefault = 3 * time.Second
	AnswerDefault  = 30 * time.Second
	EveryDefault   = time.Second
	TimeoutDefault = 5 * time.Second
	TimeoutMax     = 30 * time.Second
	MissesMax      = 3               // tries in a row that a target which has answered may miss: then it has stopped
	TrialDefault   = 2 * time.Minute // SM-108
	TrialMin       = 10 * time.Second
	TrialMax       = 10 * time.Minute // SM-126
)

// None reports whether there is nothing to restart and nothing to ask.
func (t Target) None() bool { return !t.Restarts() && t.Probe.None() }

// Restarts reports whether there is something to restart.
func (t Target) Restarts() bool { return t.Restart != "" || t.Group != "" || t.Host }

// Asks reports whether there is something to ask: a group's session always is.
func (t Target) Asks() bool { return !t.Probe.None() || t.Group != "" }

// GroupAllows is how long a group may take to come up twice, each time with a turn of its agent.
const GroupAllows = 4 * time.Minute

// Allows returns how long coming up twice may take by its own words, 0 if they name no limit.
func (t Target) Allows() time.Duration {
	if t.Group != "" {
		return GroupAllows
	}
	if t.Within == 0 && t.Probe.Within == 0 {
		return 0
	}
	t = t.Filled()
	var once time.Duration
	if t.Restart != "" {
		once = t.Within
	}
	if !t.Probe.None() {
		once += t.Probe.Within + t.Probe.Healthy
	}
	return 2 * once
}

// None reports whether nothing is asked.
func (p Probe) None() bool { return p.Command == "" && p.HTTP == "" }

// Filled returns t with its defaults in the place of what is 0.
func (t Target) Filled() Target {
	t.Within = orElse(t.Within, WithinDefault)
	t.Probe = t.Probe.Filled()
	return t
}

// Filled returns p with its defaults in the place of what is 0.
func (p Probe) Filled() Probe {
	p.Healthy = orElse(p.Healthy, HealthyDefault)
	p.Within = orElse(p.Within, AnswerDefault)
	p.Every = orElse(p.Every, EveryDefault)
	p.Timeout = orElse(p.Timeout, TimeoutDefault)
	return p
}

func orElse(d, usual time.Duration) time.Duration {
	if d == 0 {
		return usual
	}
	return d
}

// Digest names exactly these words and numbers, in lower-case hex.
func (t Target) Digest() string {
	raw, err := json.Marshal(t)
	if err != nil {
		panic(err) // strings and numbers
	}
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:])
}
