// Package rehearsal is what a host and the program that tries a candidate for it say to each other (SM-913).
//
// A rehearsal is one sandbox. In it stands a home: the candidate's files, its programs as the current release, and a copy of the
// state that holds nobody's words. The host's own program there is the keeper of that home and its only user: it has the candidate's
// daemon start, answer, start again and end. What it found is one Report on its stdout.
package rehearsal

import (
	"os"
	"time"

	"golang.org/x/sys/unix"

	"sallyport/internal/port/sandbox"
)

// Variable is in the environment of every program of a rehearsal.
const Variable = "SALLYPORT_REHEARSAL"

// Here reports whether this process takes part in the rehearsal of a home. A variable alone makes no rehearsal: the home stands where
// only a sandbox has it, the mark is there, which nobody inside can make, and system calls are filtered.
func Here(home string) bool {
	if os.Getenv(Variable) == "" || home != sandbox.Mountpoint {
		return false
	}
	var at unix.Statfs_t
	if err := unix.Statfs(sandbox.RehearsalMark, &at); err != nil || at.Flags&unix.ST_RDONLY == 0 {
		return false
	}
	mode, err := unix.PrctlRetInt(unix.PR_GET_SECCOMP, 0, 0, 0, 0)
	return err == nil && mode == unix.SECCOMP_MODE_FILTER
}

// Order is what is to be rehearsed, as the rehearser's one argument in JSON.
type Order struct {
	Home    string        `json:"home"`    // inside
	Program string        `json:"program"` // the candidate's sallyport, inside
	Ready   time.Duration `json:"ready"`   // until a daemon that was started answers
	Answer  time.Duration `json:"answer"`  // until an agent has answered
	End     time.Duration `json:"end"`     // until a daemon that was asked to end has
}

// Report is what came of it.
type Report struct {
	Done   []Step   `json:"done"`             // in order
	Failed *Failure `json:"failed,omitempty"` // nil: all of it went well
}

// Step is one thing that was tried, and how long it took.
type Step struct {
	Name string        `json:"name"` // one of the below
	Took time.Duration `json:"took"`
}

// Steps of a rehearsal, in order. The first is the host's own, before the sandbox of a rehearsal is there; the next is the whole of a
// start: the settings load, the database is brought up to date.
const (
	Runner = "runner" // only where the sallyport-runner is another one
	Start  = "start"
	Answer = "answer"
	End    = "end"
	Again  = "start again"
	Last   = "end again"
	Back   = "go back" // only where the schema of the database is another one
)

// Failure is the step that did not go well.
type Failure struct {
	Step string `json:"step"`
	Why  string `json:"why"`  // a clause
	Tail string `json:"tail"` // the end of what the candidate's programs printed; at most TailBytes
}

// TailBytes bounds what is told of a candidate's output.
const TailBytes = 4 << 10

// StatusFault is the exit status of a rehearser that could not do its work: nothing is said about the candidate then.
const StatusFault = 3
