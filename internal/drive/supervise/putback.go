package supervise

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
)

// PutBack is what a smart or per-file rollback did.
type PutBack struct {
	Checkpoint checkpoint.Checkpoint // taken after it
	Reverted   []string              // as stored, unescaped
	Kept       int                   // changed paths that stayed as they are
}

// PutBack returns files of a working change to its last valid checkpoint, as it was when this was asked. What
// stood there is a checkpoint before it goes, so nothing is lost by it.
func (ss *Supervisors) PutBack(ctx context.Context, change id.Change, by audit.Actor, paths []string, violating bool) (done PutBack, err error) {
	s, err := ss.supervised(ctx, change, by)
	if err != nil {
		return PutBack{}, err
	}
	err = s.please(ctx, func(ctx context.Context) error {
		return s.hold(ctx, func() error {
			to, err := s.Takes.Valid(ctx, s.Work) // before what stands becomes that itself
			if err != nil {
				return err
			}
			stood, err := s.record(ctx, checkpoint.OnDemand)
			if err != nil {
				return err
			}
			only, err := chosen(s.Row.ID, stood, paths, violating)
			if err != nil {
				return err
			}
			done, err = s.bringBack(ctx, stood, to, only, by)
			return err
		})
	})
	return done, err
}

// chosen is what is to go back of what stands: nil means all.
func chosen(change id.Change, stood checkpoint.Taken, paths []string, violating bool) ([]string, error) {
	show := "sallyport checkpoint show " + string(stood.Checkpoint.ID)
	if violating {
		if stood.Checkpoint.Status == checkpoint.Valid {
			return nil, problem.Errorf(problem.Conflict, show, "%s breaks no rule: there is nothing to restore", change)
		}
		if stood.Whole {
			return nil, nil
		}
		return stood.Breaking, nil
	}
	for _, path := range paths {
		if !slices.ContainsFunc(changedPaths(stood), func(p string) bool { return p == path || strings.HasPrefix(p, path+"/") }) {
			return nil, problem.Errorf(problem.NotFound, show, "%q has not changed in %s", path, change)
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

// bringBack puts paths back, records what stands then, and says what became of the changes.
func (s *supervisor) bringBack(ctx context.Context, stood checkpoint.Taken, to git.OID, only []string, by audit.Actor) (PutBack, error) {
	if err := s.restore(ctx, to, only); err != nil {
		return PutBack{}, err
	}
	if s.again {
		return PutBack{}, startsAgain(s.Row.ID)
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
	m := ledger.Move{By: by, Subject: string(left.Checkpoint.ID),
		Reason: fmt.Sprintf("%d files restored, %d changes kept", len(done.Reverted), done.Kept), Digests: map[string]string{"commit": string(to)}}
	if len(done.Reverted) == 0 {
		return PutBack{}, problem.Errorf(problem.Conflict, "sallyport checkpoint show "+string(left.Checkpoint.ID),
			"no file of %s was restored: the named files are as in the last valid checkpoint already", s.Row.ID)
	}
	if err := s.amend(ctx, m, "restored files", func(*change.Row) {}); err != nil {
		return done, err
	}
	s.Feed.Publish(change.Notice{Change: s.Row.ID, At: ledger.Now(), Kind: "event",
		Text: fmt.Sprintf("%s restored %d of %d changed files from the last valid checkpoint (%s)", by.Name, len(done.Reverted),
			len(done.Reverted)+done.Kept, left.Checkpoint.ID)})
	return done, nil
}

func startsAgain(change id.Change) error {
	return problem.Errorf(problem.Unavailable, "sallyport change watch "+string(change),
		"the files of %s could not be restored while its agent worked: sallyport starts the agent again, on a new copy that holds them", change)
}

// RestoreRunning makes the tree of a change whose agent runs that of a checkpoint. It reports whether there is such an agent.
func (ss *Supervisors) RestoreRunning(ctx context.Context, to checkpoint.Checkpoint, by audit.Actor) (taken checkpoint.Checkpoint, stood bool, err error) {
	s := ss.watching(to.Change)
	if s == nil {
		return checkpoint.Checkpoint{}, false, nil
	}
	taken, err = s.restoreTo(ctx, to, by)
	return taken, true, err
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
				return startsAgain(s.Row.ID)
			}
			left, err := s.record(ctx, checkpoint.Restored)
			if err != nil {
				return err
			}
			if left.Checkpoint.Tree != to.Tree { // proven by the restore; closed all the same
				return fmt.Errorf("the tree of %s is %.12s after it was restored to %s, which is %.12s", s.Row.ID, left.Checkpoint.Tree, to.ID, to.Tree)
			}
			s.failed, taken = 0, left.Checkpoint
			s.Feed.Publish(change.Notice{Change: s.Row.ID, At: ledger.Now(), Kind: "event", Text: by.Name + " restored all files from " + string(to.ID)})
			return nil
		})
	})
	return taken, err
}
