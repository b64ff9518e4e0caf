package control

import (
	"context"
	"io"
	"time"

	"sallyport/internal/base/audit"
	"sallyport/internal/base/id"
	"sallyport/internal/path/approval"
	"sallyport/internal/path/checkpoint"
	"sallyport/internal/path/landing"
	"sallyport/internal/path/proposal"
	"sallyport/internal/path/request"
	"sallyport/internal/path/session"
	"sallyport/internal/path/trial"
	"sallyport/internal/port/sandbox"
	"sallyport/internal/rule/budget"
	"sallyport/internal/rule/credential"
	"sallyport/internal/store"
)

// Detail is all there is to know of one change.
type Detail struct {
	Change      store.Change
	Sessions    []session.Session
	Checkpoints []checkpoint.Checkpoint
	Proposal    *proposal.Proposal
	Approval    *approval.Approval // the latest
	Landing     *landing.Landing   // the latest; of a trial the one that is tried
	Trial       *trial.Trial       // nil if it needs none
	Undoing     *landing.Landing   // that takes a trial's landing back
	Progress    *Progress          // while an agent works
	Asked       []session.Asked    // of the network, by its sessions and checks
	Uses        []budget.Use       // of models, by model
}

// Receipt is the answer to an accepted request.
type Receipt struct {
	Change store.Change
	// Uncommitted are the person's uncommitted paths that are not in the copy; as stored, unescaped.
	Uncommitted []string
	// Included are those that are in it: what is changed in them cannot land before they are committed.
	Included []string
}

// Progress is what is known of a working agent.
type Progress struct {
	FilesChanged int       `json:"files_changed"`
	OutputBytes  int64     `json:"output_bytes"`
	Since        time.Time `json:"since"`
}

// Notice is one line of a change's live stream. A stream begins with the present
// state; a slow reader may miss progress and output lines, never the last state.
type Notice struct {
	Seq    int64     `json:"seq"` // grows within one daemon's life
	Change id.Change `json:"change"`
	At     time.Time `json:"at"`
	Kind   string    `json:"kind"` // state, progress, checkpoint, event, check, round, output, trial, egress, missed
	State  State     `json:"state,omitempty"`
	Text   string    `json:"text,omitempty"` // for a person; output: as the agent wrote it, unescaped

	Progress   *Progress              `json:"progress,omitempty"`
	Checkpoint *checkpoint.Checkpoint `json:"checkpoint,omitempty"`
	Asked      *session.Asked         `json:"asked,omitempty"` // of egress: what was asked since the last one of its kind
}

// NoticeEgress says what was asked of the network: the first time at once, then counted.
const NoticeEgress = "egress"

// NoticeMissed says what a reader was too slow for.
const NoticeMissed = "missed"

// PutBack is what a smart or per-file rollback did.
type PutBack struct {
	Checkpoint checkpoint.Checkpoint // taken after it
	Reverted   []string              // as stored, unescaped
	Kept       int                   // changed paths that stayed as they are
}

// Verbs is what doors ask of the controller; every verb checks who asks.
type Verbs interface {
	// Request accepts a wish: on return it has a row and will end in a visible outcome.
	// Of r.Project only Top need be set, to any folder in the repository; of the rest the controller
	// sets what the repository says.
	Request(ctx context.Context, r request.Request, keys credential.Keys) (Receipt, error)
	// Examine looks at the repository that a folder lies in as a request there would, and writes nothing.
	Examine(ctx context.Context, folder string) (Examined, error)
	// Wanting says which keys the agent of a new change wants: of the one that is named, or that the repository names.
	Wanting(ctx context.Context, r request.Request) (Wanted, error)
	// WantedBy says the same of a change; ref is its id or a session's.
	WantedBy(ctx context.Context, ref string) (Wanted, error)
	// Give takes keys for an open change; one that waits for its key goes on.
	Give(ctx context.Context, change id.Change, by audit.Actor, keys credential.Keys) error
	// Spending says what models used in the last hour and day and, with a change, by it, and how much of the budgets that is.
	Spending(ctx context.Context, change id.Change) (Spending, error)
	List(ctx context.Context, f store.Filter) ([]store.Change, error)
	Show(ctx context.Context, change id.Change) (Detail, error)
	// Watch sends notices until ctx ends; the channel is closed after a state in which nothing happens by itself was sent.
	Watch(ctx context.Context, change id.Change) (<-chan Notice, error)
	Cancel(ctx context.Context, change id.Change, by audit.Actor, reason string) error
	// Pause stops the agent of a change where it stands, until Resume. Errors: conflict if none runs.
	Pause(ctx context.Context, change id.Change, by audit.Actor, reason string) error
	// Resume lets a paused or blocked change go on: its agent if it still stands there, else a new session.
	Resume(ctx context.Context, change id.Change, by audit.Actor) error
	// Tell hands a person's words to a running agent (SV-086). Errors: conflict if none runs or it reads no messages.
	Tell(ctx context.Context, change id.Change, by audit.Actor, text string) (session.Delivery, error)
	// RestoreTo makes an unlanded change's tree that of one of its checkpoints, byte for byte (SV-048). What stood
	// there is a checkpoint before it goes. It returns the checkpoint that was taken after it.
	RestoreTo(ctx context.Context, ref id.Checkpoint, by audit.Actor) (checkpoint.Checkpoint, error)
	// PutBack returns files of a working change to its last valid checkpoint: the paths that are named (files, or folders
	// with all below), or, with violating, those that break a rule now (SV-049).
	PutBack(ctx context.Context, change id.Change, by audit.Actor, paths []string, violating bool) (PutBack, error)
	// ResumeSession lets the agent of a session go on: at once if it stands, else in a new run with its identity,
	// its transcript and its last tree (RM-025). Errors: not found without state, conflict if it works or has landed.
	ResumeSession(ctx context.Context, s id.Session, by audit.Actor, keys credential.Keys) (store.Change, error)
	// Redo has an unlanded change made anew on its branch as it is now: what was offered last is applied there where it fits,
	// the agent is told where not, and a new card follows. Errors: conflict if there is nothing to do again.
	Redo(ctx context.Context, change id.Change, by audit.Actor, keys credential.Keys) (store.Change, error)
	// Branch writes what was offered last as a branch of the project, whose name is "" for sallyport/<change>. Errors: conflict if
	// nothing was offered, or if there is such a branch.
	Branch(ctx context.Context, change id.Change, name string, by audit.Actor) (Branched, error)
	// CheckpointNow takes a checkpoint of a running agent's workspace at once (SV-043).
	CheckpointNow(ctx context.Context, change id.Change, by audit.Actor) (checkpoint.Checkpoint, error)
	// Diff writes the unified diff of what is proposed or was landed; without a proposal, of the last checkpoint.
	Diff(ctx context.Context, change id.Change, w io.Writer) error
	// Export writes the same as a patch with binary data that `git apply` takes.
	Export(ctx context.Context, change id.Change, w io.Writer) error
	// Transcript opens the transcript (JSONL) of a session of the change, the last one if session is "".
	Transcript(ctx context.Context, change id.Change, session id.Session) (io.ReadCloser, error)
	// Shell runs an interactive shell in the change's sandbox; t is a pty slave. It returns its exit status.
	Shell(ctx context.Context, change id.Change, by audit.Actor, t Terminal) (int, error)
	Approvals(ctx context.Context, pendingOnly bool) ([]approval.Approval, error)
	// Approval returns one with its proposal; ref is an approval id or the id of a change with one.
	Approval(ctx context.Context, ref string) (approval.Approval, proposal.Proposal, error)
	// ApproveAs records by's yes to exactly the digest they read, with what they have the commit say; exactly once.
	ApproveAs(ctx context.Context, ref id.Approval, read proposal.Digest, by audit.Actor, w Words) error
	Refuse(ctx context.Context, ref id.Approval, by audit.Actor, reason string) error
	// Confirm keeps what is on trial (SM-122). Errors: conflict if nobody was asked yet, or if rollback or the end of the
	// time was first; confirming what is confirmed changes nothing and is no error.
	Confirm(ctx context.Context, change id.Change, by audit.Actor) error
	// Rollback asks for the undoing of a finalized change: a new change of kind revert, which it returns. What is on
	// trial goes back at once (SM-123), and its own row is returned.
	Rollback(ctx context.Context, change id.Change, by audit.Actor, reason string, approve request.Approve) (store.Change, error)
	Checkpoints(ctx context.Context, change id.Change) ([]checkpoint.Checkpoint, error)
	Checkpoint(ctx context.Context, ref id.Checkpoint) (checkpoint.Checkpoint, error)
	// CheckpointDiff writes the unified diff between two checkpoints of one change; from "" is its base.
	CheckpointDiff(ctx context.Context, from, to id.Checkpoint, w io.Writer) error
	// CheckpointExport writes what a checkpoint differs in from its base, as a patch with binary data that `git apply` takes.
	CheckpointExport(ctx context.Context, ref id.Checkpoint, w io.Writer) error
	Audit(ctx context.Context, change id.Change, after int64, limit int) ([]audit.Entry, error)
	// AuditVerify reads the whole audit log and reports what is not as it was written; expected is a mark that somebody kept, or nil.
	AuditVerify(ctx context.Context, expected *audit.Mark) (audit.Report, error)
}

// Terminal is the far side of an interactive shell. Whoever made the pty holds its
// master, sets its size there, and closes both ends.
type Terminal struct {
	Slave sandbox.Terminal
	Raw   bool // whoever reads the master passes on what drives a terminal; else nothing but text is shown
}

// Names by which doors, that know no store, hand a list's filter in and take its rows.
type (
	Row    = store.Change
	Filter = store.Filter
)
