package landing

import (
	"time"

	"sallyport/internal/base/conversion"
	"sallyport/internal/base/git"
	"sallyport/internal/base/id"
	"sallyport/internal/base/problem"
)

// State is where a landing's journal row stands.
type State string

const (
	Journaled State = "journaled" // computed and written down; nothing in the repository has moved
	Landed    State = "landed"    // end: branch, work tree and index hold the new entries, verified
	Undone    State = "undone"    // end: everything is as it was, verified
	Stranded  State = "stranded"  // neither could be reached; said loudly, retried until it Ended: a person left it as it stands
)

// Landing is a journal row: all that finishing or undoing takes, after any crash.
type Landing struct {
	ID        id.Landing    `json:"id"`
	Change    id.Change     `json:"change"`
	State     State         `json:"state"`
	Project   git.Project   `json:"project"`
	Branch    string        `json:"branch"`            // short name
	WorkTree  bool          `json:"work_tree"`         // the branch is checked out in Project.Top
	New       bool          `json:"new,omitempty"`     // the branch is not there before it has landed; Head is what it stands on
	Head      git.OID       `json:"head"`              // of the branch when it was computed; the compare of compare-and-set
	Edits     []git.Edit    `json:"edits"`             // relative to Head; path by path
	Skip      []string      `json:"skip"`              // approved paths that already were as approved
	NewTree   git.OID       `json:"new_tree"`          // Head's tree with Edits applied
	Checked   git.OID       `json:"checked,omitempty"` // tree that the checks passed on; "" = none ran. Another NewTree does not land
	NewCommit git.OID       `json:"new_commit"`        // made before the row is written; parent Head; Head itself if all was skipped
	Message   string        `json:"message"`
	Author    git.Signature `json:"author"`
	Committer git.Signature `json:"committer"`
	Signing   *git.Signing  `json:"-"`       // how the commit is signed, before the row is written; nil = it is not
	Back      bool          `json:"-"`       // it takes back what has landed, and is not judged anew
	Home      string        `json:"-"`       // whose configuration of git counts, before the row is written; "" = the owner's
	Staging   string        `json:"staging"` // folder on the work tree's file system that holds replaced and coming files
	Started   time.Time     `json:"started"`
	Ended     *time.Time    `json:"ended,omitempty"`
	Reason    string        `json:"reason,omitempty"` // of Undone and Stranded; of Landed if a person edited a path meanwhile

	stored []conversion.Settings // by which git converts none of the edits, before the row is written
}

// Unfinished reports whether it has begun and is still to be finished or undone.
func (l Landing) Unfinished() bool {
	return l.State == Journaled || l.State == Stranded && l.Ended == nil
}

// Classes of errors of a landing that did not begin. A person reads a case of one (problem.Case), which names the path or the state
// and the way out.
var (
	ErrOddState = problem.New(problem.Refused, "nothing can land in the repository as it stands") // merge, rebase, bisect, locked index …
	ErrDrift    = problem.New(problem.Refused, "the branch has changed a path of the change")     // head differs from base there
	ErrConverts = problem.New(problem.Refused, "what lands would not be what a checkout holds")
	ErrDirty    = problem.New(problem.Refused, "a path of the change has uncommitted work")
	ErrBranch   = problem.New(problem.Refused, "nothing can land on the branch as it stands")     // another branch checked out, or elsewhere
	ErrStale    = problem.New(problem.Refused, "the branch moved after the landing was computed") // compute again
	ErrBusy     = problem.New(problem.Unavailable, "another landing in this repository is under way")
)

// Drift is ErrDrift with the paths.
type Drift struct{ Paths []string }

func (d *Drift) Error() string { return ErrDrift.Error() }
func (d *Drift) Unwrap() error { return ErrDrift }

// Order is what is to be landed.
type Order struct {
	Landing   id.Landing
	Change    id.Change
	Project   git.Project
	Branch    string
	WorkTree  bool // expect the branch to be checked out at Project.Top
	New       bool // a branch that is not there is made, on Base
	Base      git.OID
	Edits     []git.Edit   // approved, relative to Base
	Source    git.OID      // commit with the approved tree, in the host's repository
	Signing   *git.Signing // nil = the commit is not signed
	Message   string
	Author    git.Signature
	Committer git.Signature
	Back      bool   // it takes back what has landed: the files that stood there come back, whatever git would convert by now
	Home      string // folder whose git configuration counts; "" = that of the repository's owner
}
