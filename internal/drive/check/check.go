// Package check runs the commands that judge a change, each in a sandbox of its own, and remembers what they said of a tree.
package check

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"sallyport/internal/base/git"
	"sallyport/internal/base/id"
	"sallyport/internal/base/problem"
	"sallyport/internal/drive/grounds"
	"sallyport/internal/drive/ledger"
	"sallyport/internal/drive/live"
	"sallyport/internal/drive/stock"
	"sallyport/internal/drive/work"
	"sallyport/internal/path/change"
	"sallyport/internal/path/proposal"
	"sallyport/internal/path/request"
	"sallyport/internal/port/sandbox"
)

// Parts is what checks are run with.
type Parts struct {
	*ledger.Ledger
	Opener work.Opener
	Stocks *stock.Stocks
	Ways   live.Ways
	Runner live.CommandRunner
}

// Checker runs checks.
type Checker struct {
	Parts

	mu       sync.Mutex
	verdicts map[id.Change]Verdict // of the last trees of sessions that have ended
}

// New returns a checker that remembers nothing.
func New(p Parts) *Checker { return &Checker{Parts: p, verdicts: map[id.Change]Verdict{}} }

// Check runs every check, the request's and the repository's own, each in a sandbox of its own on
// exactly the proposed tree: not on the agent's workspace, whose ignored files are the agent's to
// make. It stops at the first that does not succeed, which is why; an err is the machine's fault.
func (c *Checker) Check(ctx context.Context, row change.Row, o grounds.Offer) (results []proposal.CheckResult, why, err error) {
	if row.Request.Kind == request.Revert {
		return nil, nil, nil // what goes back has been there before; nothing may stand in its way
	}
	w := c.Opener.With(row, o.Host, o.Judging)
	commands := w.Checks()
	if len(commands) == 0 {
		return nil, nil, nil
	}
	with, err := c.Stocks.SetUpFor(ctx, w, o.Commit)
	var failed *stock.SetupFailed
	if errors.As(err, &failed) { // what it proposes to depend on is not to be had
		r := proposal.CheckResult{Command: failed.Command, Took: failed.Run.Took, Why: failed.Run.Why(), Tail: failed.Run.Tail}
		return []proposal.CheckResult{r}, problem.Errorf(problem.Refused, "sallyport change show "+string(row.ID), "%w", failed), nil
	}
	if err != nil {
		return nil, nil, err
	}
	defer with.Release()
	for _, command := range commands {
		c.Feed.Publish(change.Notice{Change: row.ID, At: ledger.Now(), Kind: "check", Text: command})
		r, err := c.checkOne(ctx, w, o.Commit, with, command)
		if err != nil {
			return nil, nil, fmt.Errorf("run the check %q: %w", command, err)
		}
		results = append(results, r)
		if !r.OK {
			return results, problem.Errorf(problem.Refused, "sallyport change show "+string(row.ID), "the check %q failed: %s", command, r.Why), nil
		}
	}
	return results, nil, nil
}

// checkOne runs one check. What it writes into the folder of caches goes with its workspace.
func (c *Checker) checkOne(ctx context.Context, w work.Work, commit git.OID, with stock.Found, command string) (proposal.CheckResult, error) {
	shown, err := c.Opener.Show(ctx, w, with.Setup, commit)
	if err != nil {
		return proposal.CheckResult{}, err
	}
	defer c.Opener.Discard(ctx, shown)
	name := id.NewSession("check")
	way, err := c.Ways.Open(ctx, w.Subject(), live.Outgoing{Session: name, Check: true})
	if err != nil {
		return proposal.CheckResult{}, err
	}
	defer way.Close()
	run, err := c.Runner.Run(ctx, w.Subject(), live.Command{Name: name, Line: command, Way: way, Tree: shown.Tree, Cache: shown.Cache(with.Setup, with.Checks)})
	if err != nil {
		return proposal.CheckResult{}, err
	}
	r := proposal.CheckResult{Command: command, OK: run.OK(), Took: run.Took, Tail: run.Tail, With: with.Words()}
	if !r.OK {
		r.Why = run.Why() + unfetched(run.Tail, w.Setups())
	}
	return r, nil
}

// unfetched says what fetches beforehand what a check could not fetch, unless that is among the setups already.
func unfetched(output string, setups []string) string {
	u := sandbox.UnfetchedIn(output)
	if u == nil || slices.Contains(setups, u.Setup) {
		return ""
	}
	return "; " + u.String()
}
