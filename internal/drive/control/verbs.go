package control

import (
	"time"

	"sallyport/internal/base/id"
	"sallyport/internal/path/approval"
	"sallyport/internal/path/checkpoint"
	"sallyport/internal/path/landing"
	"sallyport/internal/path/proposal"
	"sallyport/internal/path/session"
	"sallyport/internal/path/trial"
	"sallyport/internal/port/sandbox"
	"sallyport/internal/rule/budget"
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
