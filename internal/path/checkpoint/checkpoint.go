// Package checkpoint is an immutable, validated snapshot of a workspace: a commit under refs/sallyport/.
package checkpoint

import (
	"fmt"
	"time"

	"sallyport/internal/base/git"
	"sallyport/internal/base/id"
	"sallyport/internal/path/repository"
	"sallyport/internal/path/workspace"
	"sallyport/internal/rule/policy"
)

// Status is a checkpoint's verdict; skipped never counts as valid (SV-040).
type Status string

const (
	Valid   Status = "valid"
	Invalid Status = "invalid"
	Skipped Status = "skipped"
)

// Trigger is why it was taken.
type Trigger string

const (
	AtEnd       Trigger = "end"
	OnDemand    Trigger = "demand"
	Interval    Trigger = "interval"    // so much time has passed (SV-021)
	Changes     Trigger = "changes"     // so much has changed (SV-021)
	TurnEnded   Trigger = "turn_end"    // the agent waits for words
	Restored    Trigger = "restored"    // files went back to an earlier checkpoint (SV-048, SV-049)
	Interrupted Trigger = "interrupted" // the daemon died under the session; its work is kept
)

// Checkpoint is one recorded snapshot.
type Checkpoint struct {
	ID           id.Checkpoint        `json:"checkpoint_id"`
	Change       id.Change            `json:"change"`
	Number       int                  `json:"number"` // from 1
	Previous     id.Checkpoint        `json:"previous_checkpoint_id,omitempty"`
	At           time.Time            `json:"timestamp"`
	Trigger      Trigger              `json:"trigger"`
	Base         git.OID              `json:"base"`   // commit
	Commit       git.OID              `json:"commit"` // parent: the previous checkpoint, or the base
	Tree         git.OID              `json:"tree"`
	FilesChanged []string             `json:"files_changed"`            // against the base; the first ones, if there are very many
	FilesTotal   int                  `json:"files_changed_total"`      // 0 in records of before it was kept: see Total
	SinceLast    int                  `json:"files_changed_since_last"` // paths of its tree that differ from Commit's parent (SV-042)
	Status       Status               `json:"validation_status"`
	Violations   []policy.Violation   `json:"violations"`
	Severity     policy.Severity      `json:"severity,omitempty"` // the worst
	LeftOver     []workspace.LeftOver `json:"left_over,omitempty"`
	Session      id.Session           `json:"session,omitempty"`
}

// Ref is where the nth checkpoint of a change is kept.
func Ref(change id.Change, n int) string {
	return fmt.Sprintf("%scheckpoints/%d", repository.RefRoot(change), n)
}

// ValidRef names the last valid checkpoint of a change; only it can be proposed.
func ValidRef(change id.Change) string { return repository.RefRoot(change) + "valid" }
