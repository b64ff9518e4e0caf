package change

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"sallyport/internal/audit"
	"sallyport/internal/id"
	"sallyport/internal/problem"
	"sallyport/internal/proposal"
	"sallyport/internal/request"
	"sallyport/internal/sandbox"
	"sallyport/internal/session"
	"sallyport/internal/store"
)

// tailBytes is how much of a check's output a card keeps: its end, where the reason stands.
const tailBytes = 4 << 10

// check runs every check, the request's and the repository's own, each in a sandbox of its own on
// exactly the proposed tree: not on the agent's workspace, whose ignored files are the agent's to
// make. It stops at the first that does not succeed, which is why; an err is the machine's fault.
func (c *Controller) check(ctx context.Context, row store.Change, o offer) (results []proposal.CheckResult, why, err error) {
	if row.Request.Kind == request.Revert {
		return nil, nil, nil // what goes back has been there before; nothing may stand in its way
	}
	for _, command := range slices.Concat(row.Request.Checks, o.judging.Checks) {
		c.feed.publish(Notice{Change: row.ID, At: now(), Kind: "check", Text: command})
		r, err := c.checkOne(ctx, row, o, command)
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

func (c *Controller) checkOne(ctx context.Context, row store.Change, o offer, command string) (proposal.CheckResult, error) {
	shown, err := c.Workspaces.Materialize(ctx, c.spec(row), o.commit)
	if err != nil {
		return proposal.CheckResult{}, err
	}
	defer c.discard(ctx, shown)
	name := id.NewSession("check")
	way, err := c.wayOut(ctx, row, Outgoing{Session: name, Check: true})
	if err != nil {
		return proposal.CheckResult{}, err
	}
	defer way.Close()
	spec, err := c.environment(ctx, row, o.judging, way)
	if err != nil {
		return proposal.CheckResult{}, err
	}
	spec.ID = string(name)
	out := &tail{max: tailBytes}
	clean := c.Secrets.Redactor(out) // before the beginning is cut off, or the rest of a secret would stay
	both := &together{to: clean}
	spec.Tree, spec.Argv, spec.Stdout, spec.Stderr = shown.Tree, []string{"/bin/sh", "-c", command}, both, both
	began := time.Now()
	process, err := c.Sandbox.Start(ctx, spec)
	if err != nil {
		return proposal.CheckResult{}, err
	}
	exit, err := process.Wait()
	if err != nil {
		return proposal.CheckResult{}, err
	}
	if err := clean.Close(); err != nil {
		return proposal.CheckResult{}, err
	}
	if ctx.Err() != nil {
		return proposal.CheckResult{}, context.Cause(ctx)
	}
	r := proposal.CheckResult{Command: command, OK: exit.Code == 0 && exit.Limit == nil, Took: time.Since(began).Round(time.Millisecond), Tail: out.String()}
	if !r.OK {
		r.Why = session.Describe(exit)
	}
	return r, nil
}

// environment is a sandbox with what this change's programs may see, and no tree or program yet.
func (c *Controller) environment(ctx context.Context, row store.Change, j Judging, way Way) (sandbox.Spec, error) {
	limits := c.Settings.Limits
	limits.DiskBytes = supervision(row.Request, j).UpperBytesMax
	if row.Request.Timeout > 0 {
		limits.Timeout = row.Request.Timeout
	}
	shares := slices.Concat(c.Settings.Shares, row.Request.Shares)
	for _, share := range shares {
		if sandbox.Below(share, c.Home) || sandbox.Below(c.Home, share) {
			return sandbox.Spec{}, problem.Errorf(problem.Refused, "sallyport run --help", "--share %q would show sallyport's own home %s", share, c.Home)
		}
	}
	return session.Environment(ctx, session.Surroundings{
		Owner: c.owner(row), Limits: limits,
		Path: row.Request.Path, Home: row.Request.Home, Top: row.Request.Project.Top,
		Shares:   shares,
		Profiles: slices.Concat(c.Settings.Profiles, j.Profiles, row.Request.Profiles),
		Way:      way,
	})
}

// passed writes an audit entry for every check of a proposal that succeeded; the one that did not
// is what refuses the change.
func (c *Controller) passed(ctx context.Context, tx store.Tx, row store.Change, p proposal.Proposal) error {
	for _, r := range p.Card.Checks {
		if !r.OK {
			continue
		}
		row.Reason = r.Command
		if err := c.append(ctx, tx, &row, Move{By: audit.Host, Digests: digests(p)}, "passed a check", p.At); err != nil {
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
