package submit

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"

	"sallyport/internal/base/git"
	"sallyport/internal/drive/grounds"
	"sallyport/internal/path/change"
	"sallyport/internal/path/checkpoint"
	"sallyport/internal/path/proposal"
	"sallyport/internal/path/repository"
	"sallyport/internal/path/request"
	"sallyport/internal/path/session"
)

// Offer finds what a change has to offer: its last valid checkpoint, or a revert's computed
// tree. The rules are those that stand at the commit rules. That a checkpoint was valid says nothing by them: it is judged again.
func (s *Submissions) Offer(ctx context.Context, row change.Row, rules git.OID) (grounds.Offer, error) {
	host, err := s.Workspaces.EnsureRepository(ctx, row.Request.Project, git.OID(row.Base), rules)
	if err != nil {
		return grounds.Offer{}, err
	}
	o := grounds.Offer{Host: host, Base: git.OID(row.Base)}
	if o.Judging, err = s.Opener.Grounds.Of(ctx, row, host, rules); err != nil {
		return grounds.Offer{}, err
	}
	switch row.Request.Kind {
	case request.Revert:
		err = s.Reverts.Offer(ctx, row, &o)
	case request.Group:
		err = s.offerDrafted(ctx, row, &o)
	case request.Swap:
		err = s.offerSwap(ctx, row, &o)
	default:
		err = s.offerCheckpoint(ctx, row, &o)
	}
	if err != nil {
		return grounds.Offer{}, err
	}
	o.Policy = o.Judging.Digest(row.Request)
	if o.Edits, err = host.Edits(ctx, o.Base, o.Commit); err != nil {
		return grounds.Offer{}, err
	}
	if o.Tree, err = host.Tree(ctx, o.Commit); err != nil {
		return grounds.Offer{}, err
	}
	var named []git.Named
	if row.Request.Kind != request.Revert { // nothing in the configuration may hold what goes back
		if named, err = row.Request.Project.Named(ctx, row.Request.ConfigHome()); err != nil {
			return grounds.Offer{}, err
		}
	}
	o.Marks, err = proposal.Marks(ctx, host, o.Commit, o.Edits, named)
	return o, err
}

// offerDrafted finds the files of a group that were drafted, and judges them as those of an agent.
func (s *Submissions) offerDrafted(ctx context.Context, row change.Row, o *grounds.Offer) (err error) {
	if o.Commit, err = s.Standing.Drafted(ctx, o.Host, row); err != nil {
		return err
	}
	o.Breaks, err = checkpoint.Judge(ctx, o.Host, o.Base, o.Commit, grounds.Plan(row.Request), o.Judging.Rules, o.Judging.Secrets,
		s.Opener.Grounds.Loading(row, o.Base))
	return err
}

func (s *Submissions) offerCheckpoint(ctx context.Context, row change.Row, o *grounds.Offer) error {
	all, err := s.Checkpoints(ctx, row.ID)
	if err != nil {
		return err
	}
	i := slices.IndexFunc(all, func(cp checkpoint.Checkpoint) bool { return cp.ID == row.Chosen })
	if i < 0 || all[i].Status != checkpoint.Valid || all[i].Base != o.Base { // only valid can be proposed (SV-024, SV-040)
		return fmt.Errorf("%s has no valid checkpoint to offer", row.ID)
	}
	o.From = &all[i]
	if o.Commit, err = repository.Propose(ctx, o.Host, row.ID, o.From.Commit, o.Base); err != nil {
		return err
	}
	o.Breaks, err = checkpoint.Judge(ctx, o.Host, o.Base, o.Commit, grounds.Plan(row.Request), o.Judging.Rules, o.Judging.Secrets,
		s.Opener.Grounds.Loading(row, o.Base))
	if err != nil {
		return err
	}
	if last := all[len(all)-1]; last.ID != o.From.ID {
		o.Note = fmt.Sprintf("this is checkpoint %d of %d; what the agent did after it is not part of this card", o.From.Number, last.Number)
	}
	o.LastWord, err = session.LastWords(filepath.Join(s.SessionsDir, string(o.From.Session)))
	return err
}
