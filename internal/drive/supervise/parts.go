package supervise

import (
	"context"

	"sallyport/internal/base/git"
	"sallyport/internal/drive/check"
	"sallyport/internal/drive/ledger"
	"sallyport/internal/drive/live"
	"sallyport/internal/drive/stock"
	"sallyport/internal/drive/work"
	"sallyport/internal/path/change"
	"sallyport/internal/path/session"
	"sallyport/internal/path/workspace"
	"sallyport/internal/rule/config"
	"sallyport/internal/who/person"
)

// Parts is what supervisors stand on.
type Parts struct {
	*ledger.Ledger
	Owner      person.Owner
	Workspaces *workspace.Manager
	Opener     work.Opener
	Runtime    live.Runtime
	Stocks     *stock.Stocks
	Checker    *check.Checker
	Takes      *Checkpointer
	Changes    string // folder of what is kept of each change for people to read
	// Listen watches a workspace and tells when something happens in it; without a watch the clock alone says when to look.
	Listen func(ctx context.Context, w session.Watched) (*session.Watch, error)
	// RedoWords say to an agent what has become of its files when its change was made anew; "" if nothing has.
	RedoWords func(ctx context.Context, row change.Row) (string, error)
	// Binds is what binds the agent of a swap as it binds its group's.
	Binds func(ctx context.Context, row change.Row) (config.Runner, error)
	// Fits says why what the agent of a swap proposes, a commit upon the base, could not be what its group runs.
	Fits       func(ctx context.Context, row change.Row, commit git.OID) error
	Tidy       func(ctx context.Context, row change.Row) // clears up after a change that has ended
	Desk       live.Desk                                 // where the agents of swaps ask their host for things
	Originator Originator                                // whom those agents speak with
}
