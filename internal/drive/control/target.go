package control

import (
	"context"

	"sallyport/internal/base/git"
	"sallyport/internal/base/id"
	"sallyport/internal/rule/trust"
)

// Targets knows what runs a repository's code, and starts and asks it on the host.
type Targets interface {
	// Of returns what restarts and is probed for a repository, judged by the words at base; the zero Target if there is
	// none that may run. unproven says in words that the repository proposes one that nobody trusts; "" otherwise.
	Of(ctx context.Context, host git.Dir, p git.Project, base git.OID) (t trust.Target, unproven string, err error)
	// Restart starts the target again, and returns when its command has ended. An error is a problem that names the
	// command, its exit and the last line of its output. It may be called again after a crash in the middle.
	Restart(ctx context.Context, t trust.Target, p git.Project, change id.Change) error
	// Probe waits until the target answers for as long as its probe wants; at once and nil if nothing is asked.
	Probe(ctx context.Context, t trust.Target, p git.Project) error
	// Ask asks once.
	Ask(ctx context.Context, t trust.Target, p git.Project) error
}
