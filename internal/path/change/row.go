package change

import (
	"context"
	"time"

	"sallyport/internal/base/git"
	"sallyport/internal/base/id"
	"sallyport/internal/base/problem"
	"sallyport/internal/path/request"
)

// ErrMoved refuses a move that is not possible, or that another made first.
var ErrMoved = problem.New(problem.Conflict, "the change has moved on")

// Row is a change as it is stored.
type Row struct {
	ID         id.Change       `json:"id"`
	State      State           `json:"state"`
	Request    request.Request `json:"request"`
	Base       string          `json:"base,omitempty"`    // commit, once prepared
	UID        uint32          `json:"uid"`               // of its sandboxes; 0 = the user's own
	Attempts   int             `json:"attempts"`          // of the present state
	Problem    string          `json:"problem,omitempty"` // problem.Kind of Reason, if it did not go well
	Reason     string          `json:"reason,omitempty"`  // why it is where it is, for a person
	Next       string          `json:"next,omitempty"`    // a command to run
	Outcome    string          `json:"outcome,omitempty"` // how it ended without anything to land; outcome.go has the words
	Blocked    string          `json:"blocked,omitempty"` // why it is blocked (SV-091); outcome.go has the words; "" = it is not
	RevertedBy id.Change       `json:"reverted_by,omitempty"`
	Cancel     bool            `json:"cancel_requested,omitempty"`
	Chosen     id.Checkpoint   `json:"last_checkpoint_id,omitempty"` // what is offered, or was restored last (SV-048)
	From       string          `json:"start_from,omitempty"`         // commit that a session starts from; "" = the base
	Identity   id.Session      `json:"identity,omitempty"`           // of the session that is resumed (RM-025)
	Resumes    int             `json:"resumes,omitempty"`            // how often a person had it resumed
	Rollbacks  int             `json:"rollback_count"`               // to a checkpoint of its own (SV-048)
	Swap       *Swap           `json:"swap,omitempty"`               // of a swap: what its agent has proposed; nil while it works
	Created    time.Time       `json:"created"`
	Moved      time.Time       `json:"moved"` // last change of state
	Due        time.Time       `json:"due"`   // zero = nothing to do by itself
	Holder     string          `json:"holder,omitempty"`
	Fence      int64           `json:"fence"`
	Until      time.Time       `json:"until"` // of the lease on the next step
}

// Swap is what the agent of a swap has proposed. Its words are its own; what lands is the tree of the checkpoint.
type Swap struct {
	Checkpoint id.Checkpoint     `json:"checkpoint_id"`
	Commit     string            `json:"commit_sha"` // of the agent's own branch, as it said
	Summary    string            `json:"overall_summary"`
	Files      map[string]string `json:"per_file_summaries"` // by workspace path
}

// Onto is the commit that what the change offers stands upon; "" while it is not known. A swap's workspace stands on another: what its
// group runs lies there where an agent expects it.
func (c Row) Onto() git.OID {
	if c.Request.Kind == request.Swap && c.Base != "" {
		return c.Request.Head
	}
	return git.OID(c.Base)
}

// Filter narrows a list of changes.
type Filter struct {
	Top    string  // repository's work tree; "" = all
	States []State // nil = all
	Swaps  string  // only changes of what this group runs; "" = all
	Limit  int     // 0 = 100
}

// Tx is what moving a change asks of a transaction.
type Tx interface {
	// AddChange stores a new row. Errors: problem.Conflict also for a second open change of what one group runs (SM-100); one that is to be
	// cancelled does not count.
	AddChange(ctx context.Context, c Row) error
	// Change returns one; a problem.NotFound error naming it if there is none.
	Change(ctx context.Context, id id.Change) (Row, error)
	// Changes returns newest first.
	Changes(ctx context.Context, f Filter) ([]Row, error)
	// MoveChange writes c if the stored row still has state from and c's fence; ErrMoved otherwise. While the holder stays the same its
	// lease never gets shorter.
	MoveChange(ctx context.Context, from State, c Row) error
	// ClaimDue takes the lease on the change that is due longest, and raises its fence; false if none is due and free.
	ClaimDue(ctx context.Context, holder string, now time.Time, ttl time.Duration) (Row, bool, error)
	// ClaimOnly is ClaimDue of this change alone.
	ClaimOnly(ctx context.Context, id id.Change, holder string, now time.Time, ttl time.Duration) (Row, bool, error)
	// RenewClaim extends a claimed change's lease; lock.ErrLost if holder or fence differ.
	RenewClaim(ctx context.Context, c Row, now time.Time, ttl time.Duration) error
	// ReleaseClaims ends the leases of every holder but this one: called at start, by the only daemon of a home.
	ReleaseClaims(ctx context.Context, holder string) error
	// NextDue returns when the next change is due or its lease runs out; false if nothing is.
	NextDue(ctx context.Context) (time.Time, bool, error)
	// RequestCancel marks a change so that the step that holds it stops.
	RequestCancel(ctx context.Context, id id.Change) error
	// NextUID returns a number from 0 that no earlier change had.
	NextUID(ctx context.Context) (uint32, error)
}
