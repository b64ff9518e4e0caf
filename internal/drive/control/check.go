package control

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"sallyport/internal/base/audit"
	"sallyport/internal/base/id"
	"sallyport/internal/base/problem"
	"sallyport/internal/drive/judge"
	"sallyport/internal/drive/ledger"
	"sallyport/internal/drive/live"
	"sallyport/internal/path/change"
	"sallyport/internal/path/proposal"
	"sallyport/internal/path/request"
	"sallyport/internal/path/session"
	"sallyport/internal/port/sandbox"
	"sallyport/internal/store"
)

// tailBytes is how much of a check's output a card keeps: its end, where the reason stands.
const tailBytes = 4 << 10

// check runs every check, the request's and the repository's own, each in a sandbox of its own on
// exactly the proposed tree: not on the agent's workspace, whose ignored files are the agent's to
// make. It stops at the first that does not succeed, which is why; an err is the machine's fault.
func (c *Controller) check(ctx context.Context, row change.Row, o judge.Offer) (results []proposal.CheckResult, why, err error) {
	if row.Request.Kind == request.Revert {
		return nil, nil, nil // what goes back has been there before; nothing may stand in its way
	}
	commands := o.Judging.ChecksOf(row.Request)
	if len(commands) == 0 {
		return nil, nil, nil
	}
	with, err := c.stocked(ctx, row, o.Judging, o.Commit)
	var failed *setupFailed
	if errors.As(err, &failed) { // what it proposes to depend on is not to be had
		r := proposal.CheckResult{Command: failed.command, Took: failed.run.took, Why: failed.run.why(), Tail: failed.run.tail}
		return []proposal.CheckResult{r}, problem.Errorf(problem.Refused, "sallyport change show "+string(row.ID), "%w", failed), nil
	}
	if err != nil {
		return nil, nil, err
	}
	defer with.release()
	for _, command := range commands {
		c.Feed.Publish(change.Notice{Change: row.ID, At: ledger.Now(), Kind: "check", Text: command})
		r, err := c.checkOne(ctx, row, o, with, command)
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
func (c *Controller) checkOne(ctx context.Context, row change.Row, o judge.Offer, with stocked, command string) (proposal.CheckResult, error) {
	spec := c.spec(row)
	if !with.setup.None() {
		spec.Setup = with.setup.ID.String()
	}
	shown, err := c.Workspaces.Materialize(ctx, spec, o.Commit)
	if err != nil {
		return proposal.CheckResult{}, err
	}
	defer c.discard(ctx, shown)
	name := id.NewSession("check")
	way, err := c.openWay(ctx, row, live.Outgoing{Session: name, Check: true})
	if err != nil {
		return proposal.CheckResult{}, err
	}
	defer way.Close()
	in := confined{judging: o.Judging, way: way, tree: shown.Tree, cache: shown.Cache(with.setup, with.checks)}
	run, err := c.shellOf(ctx, row, name, in, command)
	if err != nil {
		return proposal.CheckResult{}, err
	}
	r := proposal.CheckResult{Command: command, OK: run.ok(), Took: run.took, Tail: run.tail, With: with.words()}
	if !r.OK {
		r.Why = run.why() + unfetched(run.tail, o.Judging.SetupsOf(row.Request))
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

// environment is a sandbox with what this change's programs may see, and no tree or program yet.
func (c *Controller) environment(ctx context.Context, row change.Row, j judge.Judging, way live.Way, caches bool) (sandbox.Spec, error) {
	s := c.surroundings(row, j, way, caches)
	for _, share := range s.Shares {
		if sandbox.Below(share, c.Home) || sandbox.Below(c.Home, share) {
			return sandbox.Spec{}, problem.Errorf(problem.Refused, "sallyport run --help", "--share %q would show the agent sallyport's own home %s", share, c.Home)
		}
	}
	return session.Environment(ctx, s)
}

// surroundings are what this change's programs may see; caches says that there is a folder for them.
func (c *Controller) surroundings(row change.Row, j judge.Judging, way live.Way, caches bool) session.Surroundings {
	limits := c.Settings.Limits
	limits.DiskBytes = j.Watch(row.Request).UpperBytesMax
	if row.Request.Timeout > 0 {
		limits.Timeout = row.Request.Timeout
	}
	return session.Surroundings{
		Owner: c.owner(row), Limits: limits,
		Path: row.Request.Path, Home: row.Request.Home, Top: row.Request.Project.Top,
		Shares:   slices.Concat(c.Settings.Shares, row.Request.Shares),
		Profiles: slices.Concat(c.Settings.Profiles, j.Profiles, row.Request.Profiles),
		Way:      way, Caches: caches, SetUp: len(j.SetupsOf(row.Request)) > 0,
	}
}

// passed writes an audit entry for every check of a proposal that succeeded; the one that did not
// is what refuses the change.
func (c *Controller) passed(ctx context.Context, tx store.Tx, row change.Row, p proposal.Proposal) error {
	for _, r := range p.Card.Checks {
		if !r.OK {
			continue
		}
		row.Reason = r.Command
		if err := c.Append(ctx, tx, &row, ledger.Move{By: audit.Host, Digests: digests(p)}, "passed a check", p.At); err != nil {
			return err
		}
	}
	return nil
}

// tail keeps the last max bytes written to it.
type tail struct {
	max int
	buf []byte
}

func (t *tail) Write(p []byte) (int, error) {
	t.buf = append(t.buf, p...)
	if extra := len(t.buf) - t.max; extra > 0 {
		t.buf = append(t.buf[:0], t.buf[extra:]...)
	}
	return len(p), nil
}

func (t *tail) String() string { return strings.ToValidUTF8(string(t.buf), "\uFFFD") }
