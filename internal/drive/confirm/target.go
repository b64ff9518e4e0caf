package confirm

import (
	"context"
	"fmt"

	"sallyport/internal/base/git"
	"sallyport/internal/base/id"
	"sallyport/internal/base/inert"
	"sallyport/internal/base/problem"
	"sallyport/internal/path/change"
	"sallyport/internal/path/landing"
	"sallyport/internal/path/proposal"
	"sallyport/internal/path/request"
	"sallyport/internal/path/trial"
	"sallyport/internal/rule/trust"
	"sallyport/internal/who/group"
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

// Terms returns what a landing on head goes through, judged by the words at head: those from before the change.
func (c *Confirmer) Terms(ctx context.Context, row change.Row, l landing.Landing) (p trial.Terms, err error) {
	made, err := c.Proposal(ctx, row.ID)
	if err != nil {
		return p, err
	}
	release := ""
	if made != nil && made.Card.Host != nil {
		release = made.Card.Host.Release
	}
	return c.terms(ctx, row, l, release)
}

// terms are those of a landing, with the release that the host would run by; "" = the one that it runs by.
func (c *Confirmer) terms(ctx context.Context, row change.Row, l landing.Landing, release string) (p trial.Terms, err error) {
	if len(l.Edits) == 0 && release == "" {
		return p, nil // nothing moves, and nothing could go back
	}
	host, err := c.Workspaces.EnsureRepository(ctx, row.Request.Project, l.Head)
	if err != nil {
		return p, err
	}
	swap, err := c.swapOf(ctx, row)
	if err != nil {
		return p, err
	}
	if isHost(row.Request, len(others(swap, l.Edits)) > 0, release) {
		p.Target = hostTarget(swap, l.Edits, release)
	} else if swap.Kind == request.Swap {
		p.Target, p.Unproven = groupTarget(swap, l.Edits)
	} else if p.Target, p.Unproven, err = c.Targets.Of(ctx, host, row.Request.Project, l.Head); err != nil {
		return p, fmt.Errorf("find what runs the code of %q: %w", row.Request.Project.Top, err)
	}
	if !l.WorkTree && !p.Target.None() && len(l.Edits) > 0 { // it would restart other code, and prove that
		p.Target, p.Unproven = trust.Target{}, fmt.Sprintf("%q is not checked out in %q, so nothing is restarted or probed", l.Branch, l.Project.Top)
	}
	switch {
	case p.Target.Host, row.Request.Kind == request.Swap: // nothing keeps it but a person's word (SM-901)
		p.Length = trust.TrialDefault
	case row.Request.Kind == request.Revert: // a person wants the old version: nobody is asked again
	case row.Request.Trial != nil:
		p.Length = *row.Request.Trial
	default:
		p.Length = p.Target.Trial
	}
	return p, nil
}

// swapOf is the request of the swap that a change is, or that it undoes; the zero one if it is neither.
func (c *Confirmer) swapOf(ctx context.Context, row change.Row) (r request.Request, err error) {
	for row.Request.Kind == request.Revert {
		if row, err = c.Row(ctx, row.Request.Reverts); err != nil {
			return r, err
		}
	}
	if row.Request.Kind != request.Swap {
		return r, nil
	}
	return row.Request, nil
}

// groupTarget is what restarts for a change of what a group runs. Where something else goes back with it, or alone, it says that the host does not.
func groupTarget(swap request.Request, edits []git.Edit) (t trust.Target, unproven string) {
	strange := others(swap, edits)
	if len(strange) < len(edits) {
		t = trust.Target{Group: swap.Group, Chat: swap.Chat, Trial: trust.TrialDefault}
	}
	if len(strange) == 0 {
		return t, ""
	}
	which := inert.Path(strange[0])
	if len(strange) > 1 {
		which = fmt.Sprintf("%d paths of the host's, such as %s", len(strange), which)
	}
	return t, fmt.Sprintf("the host does not restart for %s, and no trial follows: what sallyport brings back has been there before", which)
}

// others are the edited paths that are no files of the group that asked for the change.
func others(swap request.Request, edits []git.Edit) (paths []string) {
	for _, e := range edits {
		if !group.Folder(swap.Group).Holds(e.Path) {
			paths = append(paths, e.Path)
		}
	}
	return paths
}

// hostTarget is the host itself. A group whose files are among what moves has to answer as well.
func hostTarget(swap request.Request, edits []git.Edit, release string) trust.Target {
	t := trust.Target{Host: true, Release: release, Chat: swap.Chat, Trial: trust.TrialDefault}
	if swap.Kind == request.Swap && len(others(swap, edits)) < len(edits) {
		t.Group = swap.Group
	}
	return t
}

// Foretell says what happens on the host once a proposal has landed, by the words of now: for its card.
func (c *Confirmer) Foretell(ctx context.Context, row change.Row, p proposal.Proposal) (then []string, err error) {
	r := row.Request
	release := ""
	if p.Card.Host != nil {
		release = p.Card.Host.Release
	}
	ahead, err := c.terms(ctx, row, landing.Landing{Project: r.Project, Branch: r.Branch, WorkTree: r.CheckedOut, Head: p.Base, Edits: p.Edits}, release)
	if err != nil {
		return nil, err
	}
	t := ahead.Target
	if then, err = c.goesOn(ctx, r, then); err != nil {
		return nil, err
	}
	if t.Host {
		then = append(then, trying{c}.foretellHost(p)...)
	}
	switch {
	case t.Group != "":
		then = append(then, "sallyport restarts the agent of "+t.Group+" on its new files, and it must answer")
	case t.Restart != "":
		then = append(then, "sallyport restarts the target: "+t.Restart)
	}
	switch {
	case t.Probe.Command != "":
		then = append(then, "the target must answer: "+t.Probe.Command)
	case t.Probe.HTTP != "":
		then = append(then, "the target must answer: GET "+t.Probe.HTTP)
	}
	if ahead.Unproven != "" {
		then = append(then, ahead.Unproven)
	}
	if ahead.Length > 0 && t.Host {
		then = append(then, fmt.Sprintf("it is on trial for %s: confirm it with the code that whoever approves it is given, or the old host comes back", ahead.Length))
	} else if ahead.Length > 0 {
		then = append(then, fmt.Sprintf("it is on trial for %s: confirm it, or sallyport rolls it back", ahead.Length))
	}
	return then, nil
}

// goesOn says that a host goes on by what was built of a source that goes back.
func (c *Confirmer) goesOn(ctx context.Context, r request.Request, then []string) ([]string, error) {
	if r.Kind != request.Revert {
		return then, nil
	}
	undone, err := c.Proposal(ctx, r.Reverts)
	if err != nil || undone == nil || undone.Card.Host == nil || undone.Card.Host.Release == "" {
		return then, err
	}
	return append(then, fmt.Sprintf("the host goes on by the release that it runs by, and so do sandboxes by its image: sallyport upgrade has it run by another, such as the one before %.12s", undone.Card.Host.Release)), nil
}

// startAgain restarts the target of a trial and waits until it answers.
func (c *Confirmer) startAgain(ctx context.Context, row change.Row, t trial.Trial) error {
	if t.Target.Host && (t.Target.Group == "" || t.Handshake == trial.RolledBack) { // its keeper has started it, and everything with it
		return nil
	}
	if t.Target.Group != "" {
		of := group.Folder(t.Target.Group)
		if t.Handshake == trial.RolledBack || row.Request.Kind == request.Revert { // no model takes part in a way back (SM-922)
			return c.Chats.Begin(ctx, of, t.Target.Chat)
		}
		return c.Chats.Renew(ctx, of, t.Target.Chat)
	}
	if t.Target.Restart != "" {
		if err := c.Targets.Restart(ctx, t.Target, row.Request.Project, row.ID); err != nil {
			return err
		}
	}
	return c.Targets.Probe(ctx, t.Target, row.Request.Project)
}

// ask asks the target of a trial once whether it answers still.
func (c *Confirmer) ask(ctx context.Context, row change.Row, t trial.Trial) error {
	if t.Target.Group != "" {
		return c.Chats.Ask(ctx, group.Folder(t.Target.Group), t.Target.Chat)
	}
	return c.Targets.Ask(ctx, t.Target, row.Request.Project)
}

// checkInPlace refuses to start the old version where it is not: a person may have switched to another branch since it landed, and
// what is restarted runs from the work tree.
func (c *Confirmer) checkInPlace(ctx context.Context, row change.Row) error {
	p, branch := row.Request.Project, row.Request.Branch
	site, err := c.Lander.Inspect(ctx, p, branch)
	if err == nil && !site.CheckedOut {
		err = problem.Errorf(problem.Refused, "git -C "+inert.Path(p.Top)+" switch "+inert.Path(branch),
			"the branch %q is not checked out in %q any more, so the old version cannot be started there", branch, p.Top)
	}
	return err
}
