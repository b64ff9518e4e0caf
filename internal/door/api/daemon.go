package api

import (
	"fmt"
	"time"
)

// Daemon is what a running daemon says of itself.
type Daemon struct {
	PID     int       `json:"pid"`
	Build   string    `json:"build"`
	API     int       `json:"api"`
	Home    string    `json:"home"`
	Started time.Time `json:"started"`
	Working int       `json:"working"` // changes that something is being done for
	Doing   []string  `json:"doing"`   // the first of them: id and state
	Waiting int       `json:"waiting"` // changes that wait for a person
	Alerts  []Alert   `json:"alerts,omitempty"`
	Sandbox Sandbox   `json:"sandbox"`
	Keeper  *Keeper   `json:"keeper,omitempty"` // of a daemon that sallyport serve keeps up
	// Host is the change of the host itself that is under way.
	Host *HostChange `json:"host_change,omitempty"`
	Open bool        `json:"permissions_off"` // whoever speaks on a platform is heard (CH-059)
	// Settings are the files of the home that do not load.
	Settings []Unloaded `json:"settings,omitempty"`
}

// Unloaded is a file of the home's settings that does not load.
type Unloaded struct {
	File    string    `json:"file"`
	Since   time.Time `json:"since,omitzero"`
	Line    int       `json:"line,omitempty"` // of the first thing that is wrong; none where the file cannot be read
	Problem string    `json:"problem"`        // file, line and path of what is wrong
	InForce string    `json:"in_force"`       // what counts instead
	Next    string    `json:"next"`           // how it is corrected
}

// HostChange is a change of the host itself, from before its files move until it is kept or gone back. Releases are digests, equal where only
// settings or the template change.
type HostChange struct {
	Change  string    `json:"change"`
	Step    string    `json:"step"` // armed, handed, ready 1, ready 2, asked, confirmed, back
	Old     string    `json:"old"`  // what ran before, and runs after going back
	New     string    `json:"new"`  // what is on trial
	Due     time.Time `json:"due"`  // then it goes back by itself, by the wall clock
	LeftMS  int64     `json:"left_ms"`
	Tries   int       `json:"tries"`             // wrong codes; the fifth has it go back
	Why     string    `json:"why,omitempty"`     // it goes back
	Problem string    `json:"problem,omitempty"` // why its record cannot be read; then no more is said
}

// Left returns how long it is until it goes back by itself.
func (h *HostChange) Left() time.Duration { return time.Duration(h.LeftMS) * time.Millisecond }

// Against whom keeper, record and code of a change of the host hold (SM-903, SM-923).
const (
	AgainstHostile = "hostile" // a version that means harm, too
	AgainstFaulty  = "faulty"  // a version with a mistake
)

// Keeper is the parent of a daemon.
type Keeper struct {
	Against string `json:"against"` // AgainstHostile, or AgainstFaulty: keeper and daemon are one user

	// What a version on trial may use at the most, with all that it starts. Both are 0 where nothing limits it.
	TrialMemory    int64 `json:"trial_memory"`    // bytes, with swap
	TrialProcesses int64 `json:"trial_processes"` // with threads

	PID      int       `json:"pid"`
	Release  string    `json:"release"`       // digest of the programs that the daemon runs from
	Restarts int       `json:"restarts"`      // daemons that were started in place of one that had ended unasked
	Why      string    `json:"why,omitempty"` // how the last of these ended
	At       time.Time `json:"at,omitzero"`   // when, UTC
}

// Limits says in words what a version on trial may use.
func (k *Keeper) Limits() string {
	if k.TrialMemory == 0 {
		return "a version on trial has no limits of memory and processes, as this keeper can make no control group here"
	}
	return fmt.Sprintf("a version on trial may use %.1f GiB of memory and %d processes", float64(k.TrialMemory)/(1<<30), k.TrialProcesses)
}

// Sandbox is the policy that holds programs here, as it was tried when the daemon started or a doctor
// last asked (CW-906).
type Sandbox struct {
	Works   bool   `json:"works"`             // no program runs where it does not
	Policy  string `json:"policy"`            // what holds, in words; empty if nothing does
	Problem string `json:"problem,omitempty"` // why nothing runs
	Next    string `json:"next,omitempty"`    // a command to run then
}

// Try is a line of the sandbox's self-test: something that must not work in it.
type Try struct {
	Name    string `json:"name"`
	Held    bool   `json:"held"`    // it failed inside, as it must
	Control string `json:"control"` // where the same works; "" = nowhere on this machine
	Detail  string `json:"detail"`  // how it failed, or what worked
}

// Check is one line of a doctor's report.
type Check struct {
	Name   string `json:"name"`
	OK     bool   `json:"ok"`
	Needed bool   `json:"needed"` // without it nothing runs; otherwise something is slower or absent
	Detail string `json:"detail"`
	Fix    string `json:"fix,omitempty"`
	Stuck  bool   `json:"stuck,omitempty"` // a change that should move by itself and does not

	Refused bool `json:"refused,omitempty"` // a repository in which no change can be made as it stands
	Ignored bool `json:"ignored,omitempty"` // what a repository says and does not count
	Limited bool `json:"limited,omitempty"` // files of a repository that no change may touch

	Mark string `json:"mark,omitempty"` // what it is instead of absent: no key, over
}

// InFolder asks about the repository that a folder lies in, as a request there would.
type InFolder struct {
	Dir string `json:"dir"` // absolute
}

// Repository is one in which changes can be made.
type Repository struct {
	Top      string   `json:"top"`
	Branch   string   `json:"branch"`
	Converts []string `json:"converts,omitempty"` // what in it makes git convert files: a change to one of those is refused
	Ignored  []string `json:"ignored,omitempty"`  // what it says that does not count, and how it would
}

// Doctor is what works on this machine, for this home.
type Doctor struct {
	Checks   []Check `json:"checks"`
	Tries    []Try   `json:"tries"`    // of the self-test
	Driver   string  `json:"driver"`   // of the sandbox
	Strategy string  `json:"strategy"` // how workspaces are copied
	Freezer  string  `json:"freezer"`
	Memory   string  `json:"memory"` // what limits it
	OwnUID   bool    `json:"own_uid"`
}
