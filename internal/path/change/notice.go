package change

import (
	"time"

	"sallyport/internal/base/id"
	"sallyport/internal/path/checkpoint"
	"sallyport/internal/path/session"
)

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
