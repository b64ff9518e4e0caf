// Package store is the port to the database: one transaction type that embeds what each step asks.
package store

import (
	"context"
	"time"

	"sallyport/internal/base/audit"
	"sallyport/internal/base/id"
	"sallyport/internal/base/lock"
	"sallyport/internal/base/problem"
	"sallyport/internal/path/approval"
	"sallyport/internal/path/checkpoint"
	"sallyport/internal/path/landing"
	"sallyport/internal/path/proposal"
	"sallyport/internal/path/request"
	"sallyport/internal/path/session"
	"sallyport/internal/path/trial"
	"sallyport/internal/rule/budget"
	"sallyport/internal/rule/trust"
	"sallyport/internal/who/person"
)

// ErrMoved refuses a move that is not possible, or that another made first.
var ErrMoved = problem.New(problem.Conflict, "the change has moved on")

// Change is the row of the one aggregate. State is a string here: package change owns its meaning.
type Change struct {
	ID         id.Change       `json:"id"`
	State      string          `json:"state"`
	Request    request.Request `json:"request"`
	Base       string          `json:"base,omitempty"`    // commit, once prepared
	UID        uint32          `json:"uid"`               // of its sandboxes; 0 = the user's own
	Attempts   int             `json:"attempts"`          // of the present state
	Problem    string          `json:"problem,omitempty"` // problem.Kind of Reason, if it did not go well
	Reason     string          `json:"reason,omitempty"`  // why it is where it is, for a person
	Next       string          `json:"next,omitempty"`    // a command to run
	Outcome    string          `json:"outcome,omitempty"` // how it ended without anything to land; package change owns the words
	Blocked    string          `json:"blocked,omitempty"` // why it is blocked (SV-091); package change owns the words; "" = it is not
	RevertedBy id.Change       `json:"reverted_by,omitempty"`
	Cancel     bool            `json:"cancel_requested,omitempty"`
	Chosen     id.Checkpoint   `json:"last_checkpoint_id,omitempty"` // what is offered, or was restored last (SV-048)
	From       string          `json:"start_from,omitempty"`         // commit that a session starts from; "" = the base
	Identity   id.Session      `json:"identity,omitempty"`           // of the session that is resumed (RM-025)
	Resumes    int             `json:"resumes,omitempty"`            // how often a person had it resumed
	Rollbacks  int             `json:"rollback_count"`               // to a checkpoint of its own (SV-048)
	Created    time.Time       `json:"created"`
	Moved      time.Time       `json:"moved"` // last change of state
	Due        time.Time       `json:"due"`   // zero = nothing to do by itself
	Holder     string          `json:"holder,omitempty"`
	Fence      int64           `json:"fence"`
	Until      time.Time       `json:"until"` // of the lease on the next step
}

// Filter narrows a list of changes.
type Filter struct {
	Top    string   // repository's work tree; "" = all
	States []string // nil = all
	Limit  int      // 0 = 100
}

// ChangeTx is what moving a change asks of a transaction.
type ChangeTx interface {
	AddChange(ctx context.Context, c Change) error
	// Change returns one; a problem.NotFound error naming it if there is none.
	Change(ctx context.Context, id id.Change) (Change, error)
	// Changes returns newest first.
	Changes(ctx context.Context, f Filter) ([]Change, error)
	// MoveChange writes c if the stored row still has state from and c's fence; ErrMoved otherwise. While the holder stays the same its
	// lease never gets shorter.
	MoveChange(ctx context.Context, from string, c Change) error
	// ClaimDue takes the lease on the change that is due longest, and raises its fence; false if none is due and free.
	ClaimDue(ctx context.Context, holder string, now time.Time, ttl time.Duration) (Change, bool, error)
	// RenewClaim extends a claimed change's lease; lock.ErrLost if holder or fence differ.
	RenewClaim(ctx context.Context, c Change, now time.Time, ttl time.Duration) error
	// ReleaseClaims ends the leases of every holder but this one: called at start, by the only daemon of a home.
	ReleaseClaims(ctx context.Context, holder string) error
	// NextDue returns when the next change is due or its lease runs out; false if nothing is.
	NextDue(ctx context.Context) (time.Time, bool, error)
	// RequestCancel marks a change so that the step that holds it stops.
	RequestCancel(ctx context.Context, id id.Change) error
	// NextUID returns a number from 0 that no earlier change had.
	NextUID(ctx context.Context) (uint32, error)
}

// HomeTx keeps what concerns the home as a whole.
type HomeTx interface {
	// Owner returns the home's owner; false before SetOwner.
	Owner(ctx context.Context) (person.Owner, bool, error)
	// SetOwner is called once, by the process that makes the home.
	SetOwner(ctx context.Context, o person.Owner) error
}

// AuditTx reads the audit log.
type AuditTx interface {
	// Entries returns entries after a sequence number, oldest first; change "" = all; limit 0 = 1000.
	Entries(ctx context.Context, change string, after int64, limit int) ([]audit.Entry, error)
}

// Tx is one transaction.
type Tx interface {
	ChangeTx
	HomeTx
	AuditTx
	audit.Tx
	session.Tx
	budget.Tx
	checkpoint.Tx
	proposal.Tx
	approval.Tx
	ApprovalList
	landing.Tx
	LandingByID
	trial.Tx
	trust.Tx
	lock.Tx
}

// LandingByID reads one journal row.
type LandingByID interface {
	// Landing returns one; false if there is none.
	Landing(ctx context.Context, id id.Landing) (landing.Landing, bool, error)
}

// ApprovalList lists approvals.
type ApprovalList interface {
	// Approvals returns newest first; pending only, or all.
	Approvals(ctx context.Context, pendingOnly bool, limit int) ([]approval.Approval, error)
}

// DB is an open database.
type DB interface {
	// InTx runs do in one durable transaction that commits if do returns nil. Concurrent
	// callers may share a commit; each sees its own savepoint. do may not touch the world.
	InTx(ctx context.Context, do func(Tx) error) error
	// Read runs do on a consistent snapshot; writing in it is an error.
	Read(ctx context.Context, do func(Tx) error) error
	// VerifyAudit reads the whole audit log and holds it against what was written down beside the
	// database, and against expected, a mark that somebody kept, or nil. What is wrong with
	// the log stands in the report; an error says that it could not be read.
	VerifyAudit(ctx context.Context, expected *audit.Mark) (audit.Report, error)
	Close() error
}
