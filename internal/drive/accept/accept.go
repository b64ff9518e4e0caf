// Package accept turns what somebody asks for into a change with a row of its own, or says at once why that cannot be.
package accept

import (
	"context"

	"sallyport/internal/base/disk"
	"sallyport/internal/base/git"
	"sallyport/internal/drive/ledger"
	"sallyport/internal/drive/live"
	"sallyport/internal/drive/work"
	"sallyport/internal/path/change"
	"sallyport/internal/path/landing"
	"sallyport/internal/path/workspace"
	"sallyport/internal/rule/trust"
	"sallyport/internal/who/person"
)

// Parts are what requests stand on.
type Parts struct {
	*ledger.Ledger
	Owner      person.Owner
	Lander     *landing.Lander
	Workspaces *workspace.Manager
	Opener     work.Opener
	Defaults   live.Defaults
	Outfits    live.Outfitter
	Budget     *live.Budget
	Network    live.Network
	Targets    Targets
	Ops        disk.Ops
}

// Targets knows what stands behind a repository.
type Targets interface {
	// Of returns the target that counts at a commit, and says what of the repository's words does not count, and why.
	Of(ctx context.Context, dir git.Dir, p git.Project, commit git.OID) (trust.Target, string, error)
}

// Requests takes what is asked for.
type Requests struct{ Parts }

// New returns Requests.
func New(p Parts) *Requests { return &Requests{p} }

// Receipt is the answer to an accepted request.
type Receipt struct {
	Change change.Row
	// Uncommitted are the person's uncommitted paths that are not in the copy; as stored, unescaped.
	Uncommitted []string
	// Included are those that are in it: what is changed in them cannot land before they are committed.
	Included []string
}
