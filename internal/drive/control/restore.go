package control

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"sallyport/internal/base/audit"
	"sallyport/internal/base/git"
	"sallyport/internal/base/id"
	"sallyport/internal/base/problem"
	"sallyport/internal/drive/ledger"
	"sallyport/internal/path/change"
	"sallyport/internal/path/checkpoint"
	"sallyport/internal/store"
)

// PutBack returns files of a working change to its last valid checkpoint, as it was when this was asked. What
// stood there is a checkpoint before it goes, so nothing is lost by it.
func (c *Controller) PutBack(ctx context.Context, change id.Change, by audit.Actor, paths []string, violating bool) (done PutBack, err error) {
	s, err := c.supervised(ctx, change, by)
	if err != nil {
		return PutBack{}, err
	}
	err = s.please(ctx, func(ctx context.Context) error {
		return s.hold(ctx, func() error {
			to, err := s.c.valid(ctx, s.host, s.row) // before what stands becomes that itself
			if err != nil {
				return err
			}
			stood, err := s.record(ctx, checkpoint.OnDemand)
			if err != nil {
				return err
			}
			only, err := s.chosen(stood, paths, violating)
			if err != nil {
				return err
			}
			done, err = s.returned(ctx, stood, to, only, by)
			return err
		})
	})
	return done, err
}

// chosen is what is to go back of what stands: nil means all.
func (s *supervisor) chosen(stood checkpoint.Taken, paths []string, violating bool) ([]string, error) {
	show := "sallyport checkpoint show " + string(stood.Checkpoint.ID)
	if violating {
		if stood.Checkpoint.Status == checkpoint.Valid {
			return nil, problem.Errorf(problem.Conflict, show, "%s breaks no rule: there is nothing to restore", s.row.ID)
		}
		if stood.Whole {
			return nil, nil
		}
		return stood.Breaking, nil
	}
	for _, path := range paths {
		if !slices.ContainsFunc(changedPaths(stood), func(p string) bool { return p == path || strings.HasPrefix(p, path+"/") }) {
			return nil, problem.Errorf(problem.NotFound, show, "%q has not changed in %s", path, s.row.ID)
		}
	}
	if len(paths) == 0 {
		return nil, problem.Errorf(problem.Usage, "sallyport rollback --help", "name the files to restore")
	}
	return paths, nil
}

// changedPaths are the paths that differ from the base, or that break a rule.
func changedPaths(t checkpoint.Taken) []string {
	paths := slices.Clone(t.Breaking)
	for _, e := range t.Edits {
		if !slices.Contains(t.Breaking, e.Path) {
			paths = append(paths, e.Path)
		}
	}
	slices.Sort(paths)
	return paths
}

// returned puts paths back, records what stands then, and says what became of the changes.
func (s *supervisor) returned(ctx context.Context, stood checkpoint.Taken, to git.OID, only []string, by audit.Actor) (PutBack, error) {
	if err := s.restore(ctx, to, only); err != nil {
		return PutBack{}, err
	}
	if s.again {
		return PutBack{}, s.startsAgain()
	}
	left, err := s.record(ctx, checkpoint.Restored)
	if err != nil {
		return PutBack{}, err
	}
	s.failed = 0
	done := PutBack{Checkpoint: left.Checkpoint}
	same := map[string]git.Entry{}
	for _, e := range left.Edits {
		same[e.Path] = e.New
	}
	was := map[string]git.Entry{}
	for _, e := range stood.Edits {
		was[e.Path] = e.New
	}
	for _, path := range changedPaths(stood) {
		if is, there := same[path]; there && is == was[path] && !slices.Contains(stood.Breaking, path) {
			done.Kept++
		} else {
			done.Reverted = append(done.Reverted, path)
		}
	}
	m := ledger.Move{By: by, Subject: string(left.Checkpoint.ID), Reason: fmt.Sprintf("%d files restored, %d changes kept", len(done.Reverted), done.Kept), Digests: map[string]string{"commit": string(to)}}
	if len(done.Reverted) == 0 {
		return PutBack{}, problem.Errorf(problem.Conflict, "sallyport checkpoint show "+string(left.Checkpoint.ID), "no file of %s was restored: the named files are as in the last valid checkpoint already", s.row.ID)
	}
	if err := s.amend(ctx, m, "restored files", func(*change.Row) {}); err != nil {
		return done, err
	}
	s.c.Feed.Publish(change.Notice{Change: s.row.ID, At: ledger.Now(), Kind: "event", Text: fmt.Sprintf("%s restored %d of %d changed files from the last valid checkpoint (%s)", by.Name, len(done.Reverted), len(done.Reverted)+done.Kept, left.Checkpoint.ID)})
	return done, nil
}

func (s *supervisor) startsAgain() error {
	return problem.Errorf(problem.Unavailable, "sallyport change watch "+string(s.row.ID),
		"the files of %s could not be restored while its agent worked: sallyport starts the agent again, on a new copy that holds them", s.row.ID)
}

// RestoreTo makes an unlanded change's tree that of one of its checkpoints: while its agent
// works, on the copy that the next session gets, or as what a person is asked about.
func (c *Controller) RestoreTo(ctx context.Context, ref id.Checkpoint, by audit.Actor) (checkpoint.Checkpoint, error) {
	if err := c.Owner.MayDecide(by); err != nil {
		return checkpoint.Checkpoint{}, err
	}
	cp, err := c.Checkpoint(ctx, ref)
	if err != nil {
		return checkpoint.Checkpoint{}, err
	}
	row, err := c.Row(ctx, cp.Change)
	if err != nil {
		return checkpoint.Checkpoint{}, err
	}
	if cp.Base != git.OID(row.Base) {
		return checkpoint.Checkpoint{}, problem.Errorf(problem.Conflict, "sallyport checkpoint list "+string(row.ID),
			"%s was taken on an earlier commit of %s than %s stands on now: restoring it would undo what the branch got since", cp.ID, row.Request.Branch, row.ID)
	}
	if s := c.watching(cp.Change); s != nil {
		return s.restoreTo(ctx, cp, by)
	}
	switch row.State {
	case change.AwaitingApproval:
		return cp, c.submissions.OfferAgain(ctx, row, cp, by)
	case change.Paused, change.Blocked:
		row, err = c.InTx(ctx, row, func(tx store.Tx, row *change.Row) error {
			row.From, row.Chosen, row.Rollbacks = string(cp.Commit), cp.ID, row.Rollbacks+1
			return c.Move(ctx, tx, row, ledger.Move{Event: change.Resume, By: by, Verb: "restored", Subject: string(cp.ID), Reason: "the agent starts again from " + string(cp.ID)})
		})
		return cp, err
	}
	return checkpoint.Checkpoint{}, problem.Errorf(problem.Conflict, "sallyport change show "+string(row.ID),
		"%s is %s: only a change that an agent works on, or that waits for a person, can be restored to a checkpoint", row.ID, row.State)
}

func (s *supervisor) restoreTo(ctx context.Context, to checkpoint.Checkpoint, by audit.Actor) (taken checkpoint.Checkpoint, err error) {
	err = s.please(ctx, func(ctx context.Context) error {
		return s.hold(ctx, func() error {
			if _, err := s.record(ctx, checkpoint.OnDemand); err != nil {
				return err
			}
			if err := s.restore(ctx, to.Commit, nil); err != nil {
				return err
			}
			m := ledger.Move{By: by, Subject: string(to.ID), Digests: map[string]string{"commit": string(to.Commit), "tree": string(to.Tree)}}
			if err := s.amend(ctx, m, "restored", func(row *change.Row) {
				row.Chosen, row.Rollbacks = to.ID, row.Rollbacks+1
			}); err != nil {
				return err
			}
			if s.again {
				return s.startsAgain()
			}
			left, err := s.record(ctx, checkpoint.Restored)
			if err != nil {
				return err
			}
			if left.Checkpoint.Tree != to.Tree { // proven by the restore; closed all the same
				return fmt.Errorf("the tree of %s is %.12s after it was restored to %s, which is %.12s", s.row.ID, left.Checkpoint.Tree, to.ID, to.Tree)
			}
			s.failed, taken = 0, left.Checkpoint
			s.c.Feed.Publish(change.Notice{Change: s.row.ID, At: ledger.Now(), Kind: "event", Text: by.Name + " restored all files from " + string(to.ID)})
			return nil
		})
	})
	return taken, err
}
