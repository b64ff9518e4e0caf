package api

import "time"

// What counts of a repository's target.
const (
	CountsHome       = "home"       // the home's file says it
	CountsRepository = "repository" // the repository proposes it and the owner has trusted exactly these words
)

// Target is all that is said of how a repository's code is started again and asked whether it answers.
type Target struct {
	Repo     string       `json:"repo"`               // work tree
	Commit   string       `json:"commit"`             // at which the repository's own words were read
	Counts   string       `json:"counts,omitempty"`   // home or repository; "": nothing is restarted or probed
	Home     *TargetWords `json:"home,omitempty"`     // stands in the home's file
	Proposed *TargetWords `json:"proposed,omitempty"` // the repository's own words, exactly as they stand there
	Trusted  bool         `json:"trusted"`            // exactly what is proposed
	Trust    *Trust       `json:"trust,omitempty"`    // the last, which may be of other words
}

// TargetWords are one target, as it is written, with the defaults of what is not.
type TargetWords struct {
	Digest          string      `json:"digest"`
	Restart         string      `json:"restart,omitempty"`
	RestartWithinMS int64       `json:"restart_within_ms"`
	Probe           *ProbeWords `json:"probe,omitempty"`
	TrialMS         int64       `json:"trial_ms"`           // 0: nobody is asked
	Defaults        []string    `json:"defaults,omitempty"` // keys that are not written, as probe.every
}

// ProbeWords say how one knows that it answers.
type ProbeWords struct {
	Command   string `json:"command,omitempty"`
	HTTP      string `json:"http,omitempty"`
	HealthyMS int64  `json:"healthy_ms"`
	WithinMS  int64  `json:"within_ms"`
	EveryMS   int64  `json:"every_ms"`
	TimeoutMS int64  `json:"timeout_ms"`
}

// Trust is the owner's yes to exactly some words.
type Trust struct {
	Digest string    `json:"digest"`
	By     Actor     `json:"by"`
	At     time.Time `json:"at"`
}

// TrustTarget lets what a repository proposes count.
type TrustTarget struct {
	Repo   string `json:"repo"`   // absolute: any folder in it
	Digest string `json:"digest"` // of the words that were read; its first 32 digits at the least
}

// InRepo names a repository.
type InRepo struct {
	Repo string `json:"repo"` // absolute: any folder in it
}
