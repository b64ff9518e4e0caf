package land

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"sallyport/internal/base/audit"
	"sallyport/internal/base/git"
	"sallyport/internal/base/id"
	"sallyport/internal/base/inert"
	"sallyport/internal/base/problem"
	"sallyport/internal/drive/grounds"
	"sallyport/internal/drive/ledger"
	"sallyport/internal/path/change"
	"sallyport/internal/path/landing"
	"sallyport/internal/path/proposal"
	"sallyport/internal/path/repository"
	"sallyport/internal/path/request"
	"sallyport/internal/rule/config"
	"sallyport/internal/store"
)

// otherRules says that other rules stand on the branch than those that the approval names.
type otherRules struct{ head git.OID } // of the branch

func (o *otherRules) Error() string {
	return fmt.Sprintf("the rules at its commit %.12s are others than those that were approved", o.head)
}

// unchecked says that nobody has looked yet at the tree that a landing would result in: a check has not passed there, or
// what is marked there was not shown.
type unchecked struct {
	grounds.Offer // its base is the branch's head
	approved      proposal.Proposal
}

func (u *unchecked) Error() string {
	return fmt.Sprintf("sallyport has not looked yet at the tree that would land (%.12s)", u.Tree)
}

// redResult is why a change does not land on its branch as it is now: a check failed on what results.
type redResult struct {
	unchecked
	results []proposal.CheckResult
	why     error
}

func (r *redResult) Error() string { return r.why.Error() }
func (r *redResult) Unwrap() error { return r.why }

// assured returns nil if the checks have passed on exactly the tree that a computed landing results in, and all that is marked
// there was shown. It says in the landing which tree the checks ran on. Errors: *unchecked, *otherRules.
func (ls *Landings) assured(ctx context.Context, row change.Row, p proposal.Proposal, l *landing.Landing) error {
	if row.Request.Kind == request.Revert || len(l.Edits) == 0 {
		return nil // what goes back has been there before; where nothing moves there is nothing to check
	}
	host, err := ls.Workspaces.EnsureRepository(ctx, row.Request.Project, l.Head)
	if err != nil {
		return err
	}
	o := grounds.Offer{Host: host, Base: l.Head, Edits: l.Edits}
	if o.Judging, err = ls.Grounds.At(ctx, row.Request.Project, host, l.Head); err != nil {
		return err
	}
	if o.Policy = o.Judging.Digest(row.Request); o.Policy != p.Policy {
		return &otherRules{l.Head}
	}
	if err := ls.result(ctx, row, p, *l, &o); err != nil {
		return fmt.Errorf("compute what %s results in: %w", row.ID, err)
	}
	if v, known := ls.resultVerdict(row.ID, o); o.Tree != p.Tree && (!known || v.why != nil || unshown(p, o, v.fresh)) {
		return &unchecked{o, p}
	}
	if len(o.Judging.ChecksOf(row.Request)) > 0 {
		l.Checked = o.Tree
	}
	return nil
}

// result makes the tree that a computed landing results in, in the host's repository, to be looked at.
func (ls *Landings) result(ctx context.Context, row change.Row, p proposal.Proposal, l landing.Landing, o *grounds.Offer) error {
	if l.Head == p.Base && len(l.Skip) == 0 {
		o.Commit, o.Tree = p.Commit, p.Tree
		return nil
	}
	who := ls.Author
	who.At = row.Created
	ref := repository.RefRoot(row.ID) + "result"
	made, err := o.Host.Import(ctx, "result:import", git.Import{
		Ref: ref, From: l.Head, Parents: []git.OID{l.Head}, Writes: git.Writes(l.Edits),
		Message: "what " + string(row.ID) + " results in\n", Author: who, Committer: who,
	})
	if err != nil {
		return err
	}
	o.Commit, o.Tree = made.OID, made.Tree
	return repository.DropRefs(ctx, o.Host, map[string]git.OID{ref: made.OID}) // it is needed for as long as somebody looks at it: no cleaning is that quick
}

// resultVerdict is what the checks said of exactly this tree by exactly these rules.
func (ls *Landings) resultVerdict(change id.Change, o grounds.Offer) (v verdict, known bool) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	v, known = ls.results[change]
	return v, known && v.tree == o.Tree && v.policy == o.Policy
}

// judgeResult looks at what a landing would result in, once for a tree: it computes what is marked there and runs the checks.
// Errors: *redResult for a check that fails; *unseen for a mark that the person was not shown.
func (ls *Landings) judgeResult(ctx context.Context, row change.Row, u *unchecked) error {
	v, known := ls.resultVerdict(row.ID, u.Offer)
	if !known {
		var err error
		if v, err = ls.lookAtResult(ctx, row, u); err != nil {
			return err
		}
	}
	if v.why != nil {
		next, words := onward(row)
		return &redResult{*u, v.results, problem.Errorf(problem.Refused, next, "%s, and on the tree that would land %s; %s",
			unlike(row, u), failed(v.results), words)}
	}
	if unshown(u.approved, u.Offer, v.fresh) {
		return ls.unseenIn(row, u, v)
	}
	return nil
}

// lookAtResult computes the marks of what a landing would result in, runs the checks there, and remembers both.
func (ls *Landings) lookAtResult(ctx context.Context, row change.Row, u *unchecked) (v verdict, err error) {
	v = verdict{tree: u.Tree, policy: u.Policy}
	if v.fresh, v.proposed, err = ls.resultMarks(ctx, row, u); err != nil {
		return v, err
	}
	if len(u.Judging.ChecksOf(row.Request)) > 0 {
		if err := ls.sayChecking(ctx, row, unlike(row, u)+": the checks run on the tree that would land", "checks what lands", resultDigests(u)); err != nil {
			return v, err
		}
		if v.results, v.why, err = ls.Checks.Check(ctx, row, u.Offer); err != nil {
			return v, err
		}
	}
	if v.why == nil && u.approved.Card.Host != nil {
		if err := ls.rehearseResult(ctx, row, u, &v); err != nil {
			return v, err
		}
	}
	if v.why == nil {
		err := ls.DB.InTx(ctx, func(tx store.Tx) error {
			return ls.RecordPassedChecks(ctx, tx, row, v.results, "passed a check on what lands", resultDigests(u), ledger.Now())
		})
		if err != nil {
			return v, err
		}
	}
	ls.mu.Lock()
	defer ls.mu.Unlock()
	ls.results[row.ID] = v
	return v, nil
}

// rehearseResult tries the host as it would be on the branch as it is now (SM-913), by the release that was approved. That is no other source's:
// where the source has moved on the branch, it stands for nothing that would land.
func (ls *Landings) rehearseResult(ctx context.Context, row change.Row, u *unchecked, v *verdict) error {
	release := u.approved.Card.Host.Release
	if release != "" && row.Request.Release == "" {
		var trees [2]git.Entry
		for i, at := range []git.OID{u.approved.Base, u.Base} {
			found, err := u.Host.Lookup(ctx, at, []string{config.SourceFolder})
			if err != nil {
				return err
			}
			trees[i] = found[0]
		}
		if trees[0] != trees[1] {
			v.results = append(v.results, proposal.CheckResult{Command: "build of the host", Why: "the source of the host has moved on " +
				row.Request.Branch + ", and what was built and approved is of the source before"})
			v.why = problem.Errorf(problem.Refused, "", "the source of the host has moved")
			return nil
		}
	}
	if err := ls.sayChecking(ctx, row, unlike(row, u)+": the host is rehearsed as it would land", "rehearses what lands", resultDigests(u)); err != nil {
		return err
	}
	_, failed, err := ls.Submissions.Host.Rehearse(ctx, row, u.Offer, release)
	if failed != nil {
		v.results = append(v.results, *failed)
		v.why = problem.Errorf(problem.Refused, "", "the %s failed: %s", failed.Command, failed.Why)
	}
	return err
}

// sayChecking tells for what a landing waits, in the row and to who watches.
func (ls *Landings) sayChecking(ctx context.Context, row change.Row, reason, verb string, digests map[string]string) error {
	row.Reason = reason
	err := ls.DB.InTx(ctx, func(tx store.Tx) error {
		if err := tx.MoveChange(ctx, row.State, row); err != nil {
			return err
		}
		return ls.Append(ctx, tx, &row, ledger.Move{By: audit.Host, Digests: digests}, verb, ledger.Now())
	})
	if err == nil {
		ls.Feed.Publish(change.Notice{Change: row.ID, At: ledger.Now(), Kind: "event", Text: row.Reason})
	}
	return err
}

func resultDigests(u *unchecked) map[string]string {
	return map[string]string{"head": string(u.Base), "tree": string(u.Tree), "policy": u.Policy}
}

// unlike says why what would land is not what was checked before.
func unlike(row change.Row, u *unchecked) string {
	if row.Request.IncludeDirty && u.Base == row.Request.Head {
		return "the branch " + row.Request.Branch + " lacks what was uncommitted when " + string(row.ID) + " began"
	}
	return row.Request.Branch + " has moved since " + string(row.ID) + " was checked"
}

// asBranch is the command that makes of a change a branch, which a person can merge as any other.
func asBranch(row change.Row) string { return "sallyport change branch " + string(row.ID) }

const (
	movedSubjectsMax = 5
	movedPathsMax    = 10
	movedCommitsMax  = 1000
)

// movedSince says by what a branch has moved since the base of a change, nil if it has not, and why an edit does not fit it. It reads only.
func (ls *Landings) movedSince(ctx context.Context, row change.Row, edits []git.Edit) (m *proposal.Moved, drift []string, err error) {
	if err := row.Request.Project.Plain(); err != nil {
		return nil, nil, err
	}
	host, err := ls.Workspaces.EnsureRepository(ctx, row.Request.Project, git.OID(row.Base))
	if err != nil {
		return nil, nil, err
	}
	from := row.Onto()
	dirty, err := onUncommitted(ctx, host, row)
	if err != nil {
		return nil, nil, err
	}
	if dirty {
		from = row.Request.Head // what was uncommitted then is no move of the branch
	}
	head, err := row.Request.Project.Common(ls.Ops).Resolve(ctx, "refs/heads/"+row.Request.Branch+"^{commit}")
	if err != nil || head == "" || head == from && !dirty {
		return nil, nil, err // a branch that is gone is the landing's to name
	}
	if _, err := ls.Workspaces.EnsureRepository(ctx, row.Request.Project, head, from); err != nil {
		return nil, nil, err
	}
	if drift, err = inTheWay(ctx, host, row, head, edits); err != nil || head == from {
		return nil, drift, err
	}
	m, err = moves(ctx, host, from, head)
	return m, drift, err
}

// inTheWay says of each path that a commit has otherwise than the edits need it what that is.
func inTheWay(ctx context.Context, host git.Dir, row change.Row, head git.OID, edits []git.Edit) (all []string, err error) {
	paths, err := drifted(ctx, host, head, edits)
	if err != nil || len(paths) == 0 {
		return nil, err
	}
	own, err := ownWork(ctx, host, row, paths)
	for _, path := range paths {
		why := fmt.Sprintf("%s changed on %s since the change began", inert.Path(path), row.Request.Branch)
		if slices.Contains(own, inert.Path(path)) {
			why = fmt.Sprintf("%s lacks your own uncommitted edits of %s, which the change stands on", row.Request.Branch, inert.Path(path))
		}
		all = append(all, why)
	}
	return all, err
}

// moves is what lies between two commits of a branch.
func moves(ctx context.Context, host git.Dir, from, head git.OID) (*proposal.Moved, error) {
	m := &proposal.Moved{Head: head}
	if err := commitsSince(ctx, host, from, head, m); err != nil {
		return nil, err
	}
	changed, err := host.Edits(ctx, from, head)
	if err != nil {
		return nil, err
	}
	for _, e := range changed {
		if m.PathsTotal++; len(m.Paths) < movedPathsMax {
			m.Paths = append(m.Paths, e.Path)
		}
	}
	return m, nil
}

// commitsSince counts the commits that head has and from has not, and reads the newest ones' subjects.
func commitsSince(ctx context.Context, host git.Dir, from, head git.OID, m *proposal.Moved) error {
	out, err := host.Run(ctx, git.Cmd{Args: []string{"log", "-z", "--format=%s", fmt.Sprintf("--max-count=%d", movedCommitsMax),
		string(head), "^" + string(from)}})
	if err != nil {
		return err
	}
	for subject := range strings.SplitSeq(strings.TrimSuffix(string(out), "\x00"), "\x00") {
		if len(out) == 0 {
			break
		}
		if m.Commits++; len(m.Subjects) < movedSubjectsMax {
			m.Subjects = append(m.Subjects, request.FirstLine(subject))
		}
	}
	_, err = host.Run(ctx, git.Cmd{Args: []string{"merge-base", "--is-ancestor", string(from), string(head)}})
	var no *git.Failure
	if m.Rewritten = errors.As(err, &no) && no.Code == 1; m.Rewritten {
		return nil
	}
	return err
}

// drifted names the edits' paths that a commit has otherwise than the edits found and than they leave them.
func drifted(ctx context.Context, host git.Dir, head git.OID, edits []git.Edit) ([]string, error) {
	paths := make([]string, len(edits))
	for i, e := range edits {
		paths[i] = e.Path
	}
	there, err := host.Lookup(ctx, head, paths)
	if err != nil {
		return nil, err
	}
	var drift []string
	for i, e := range edits {
		if now := there[i]; now != e.Old && now != e.New && !(now.Mode == git.Folder && e.Old.Absent()) {
			drift = append(drift, e.Path)
		}
	}
	return drift, nil
}

// AddMoved adds to the card of a change that waits what the branch has become since: the card is a view, and what an approval is
// bound to stays as it is.
func (ls *Landings) AddMoved(ctx context.Context, row change.Row, p *proposal.Proposal) {
	if p != nil && row.State == change.AwaitingApproval {
		ls.FindMoved(ctx, row, p)
		p.Card = p.Card.Redacted(ls.Secrets)
	}
}

// FindMoved puts on a card what the branch has become since the base, and what of that is in the way, in the place of what was found before.
func (ls *Landings) FindMoved(ctx context.Context, row change.Row, p *proposal.Proposal) {
	m, drift, err := ls.movedSince(ctx, row, p.Edits)
	if err != nil {
		if ctx.Err() == nil {
			ls.Log.Warn("sallyport could not find out whether the branch has moved", "change", row.ID, "error", err)
		}
		m, drift = nil, []string{fmt.Sprintf("sallyport could not find out whether %s has moved: %s", row.Request.Branch, problem.Of(err).Text)}
	}
	p.Card.Moved, p.Card.Drift = m, drift
}

// ground is the commit that a change lands on as things are: the head of its branch, or its base where the branch is still to be made.
// "" = a branch that is gone.
func (ls *Landings) ground(ctx context.Context, row change.Row, base git.OID) (git.OID, error) {
	head, err := row.Request.Project.Common(ls.Ops).Resolve(ctx, "refs/heads/"+row.Request.Branch+"^{commit}")
	if err == nil && head == "" && row.Request.From != "" {
		head = base
	}
	return head, err
}
