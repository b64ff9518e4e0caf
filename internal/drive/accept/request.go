package accept

import (
	"context"
	"fmt"

	"sallyport/internal/base/git"
	"sallyport/internal/base/id"
	"sallyport/internal/base/problem"
	"sallyport/internal/drive/ledger"
	"sallyport/internal/drive/live"
	"sallyport/internal/drive/revert"
	"sallyport/internal/drive/work"
	"sallyport/internal/path/change"
	"sallyport/internal/path/request"
	"sallyport/internal/rule/credential"
	"sallyport/internal/store"
	"sallyport/internal/who/group"
)

// TakeRequest accepts a wish: on return it has a row and will end in a visible outcome.
//
// What makes it impossible is said now, before anything is written: a folder that is no
// repository, one in the middle of a merge, a branch that is not
// there, an agent that is not installed, a share or profile that cannot be shown, rules that
// cannot be read. Errors name the thing; their kinds are usage, not_found, refused, unavailable.
//
// Keys are those of the agent's model; they are held in memory until the change ends.
func (rs *Requests) TakeRequest(ctx context.Context, r request.Request, keys credential.Keys) (receipt Receipt, err error) {
	if err := rs.Owner.MayDecide(r.By); err != nil {
		return Receipt{}, err
	}
	r.Kind, r.At = request.Edit, ledger.Now()
	if err := r.Check(); err != nil {
		return Receipt{}, err
	}
	if _, err := git.Version(ctx); err != nil {
		return Receipt{}, err
	}
	if err := rs.locate(ctx, &r); err != nil {
		return Receipt{}, err
	}
	if r.Agent == "" {
		if err := rs.usual(ctx, &r); err != nil {
			return Receipt{}, err
		}
	}
	change := id.NewChange()
	if err := rs.Receive(change, r, keys); err != nil {
		return Receipt{}, err
	}
	defer func() {
		if err != nil {
			rs.Outfits.Keys.Forget(string(change))
		}
	}()
	if r.Keyed, err = rs.Runnable(change, r, work.Asking(r)); err != nil {
		return Receipt{}, err
	}
	if err := rs.possible(ctx, r); err != nil {
		return Receipt{}, err
	}
	if r.CheckedOut {
		dirty, err := rs.Opener.Grounds.Dirty(ctx, r)
		if err != nil {
			return Receipt{}, err
		}
		if r.IncludeDirty {
			receipt.Included = dirty
		} else {
			receipt.Uncommitted = dirty
		}
	}
	receipt.Change, err = rs.Add(ctx, change, r)
	return receipt, err
}

// Add gives an accepted request its row.
func (rs *Requests) Add(ctx context.Context, changeID id.Change, r request.Request) (change.Row, error) {
	if err := rs.secretsIn(ctx, r); err != nil {
		return change.Row{}, err
	}
	if r.Approve == request.Yes && r.Kind != request.Revert {
		if err := rs.Opener.Grounds.Rules.Decidable(); err != nil {
			return change.Row{}, err
		}
	}
	row := change.Row{ID: changeID, State: change.Requested, Request: r, Created: r.At, Moved: r.At, Due: r.At}
	rs.Feed.Keep(row.ID)
	var refused error
	err := rs.DB.InTx(ctx, func(tx store.Tx) error {
		if r.Kind == request.Revert {
			if refused = revert.Alone(ctx, tx, r); refused != nil {
				return refused
			}
		}
		n, err := tx.NextUID(ctx)
		if err != nil {
			return err
		}
		if first := rs.Opener.FirstUID; first != 0 {
			row.UID = first + n%(UIDsPerHome-ResidentsMax-1)
			if r.Kind == request.Swap && r.Worked() { // what its agent keeps is the group's own afterwards
				if row.UID, err = Reside(ctx, tx, first, group.Folder(r.Group)); err != nil {
					return err
				}
			}
		}
		if err := tx.AddChange(ctx, row); err != nil {
			return err
		}
		return rs.Append(ctx, tx, &change.Row{ID: row.ID, Reason: request.FirstLine(r.Text)},
			ledger.Move{By: r.By, Digests: map[string]string{"head": string(r.Head)}}, "requested", r.At)
	})
	if refused != nil {
		return change.Row{}, refused
	}
	if err != nil {
		return change.Row{}, fmt.Errorf("store the request: %w", err)
	}
	rs.Moved(row)
	return row, nil
}

// possible looks at the base as a whole, at the rules in it, and at what the sandbox is to show.
func (rs *Requests) possible(ctx context.Context, r request.Request) error {
	judging, err := rs.fits(ctx, r)
	if err != nil {
		return err
	}
	if _, err := rs.Workspaces.EnsureRepository(ctx, r.Project, r.Head); err != nil {
		return err
	}
	_, err = rs.Defaults.Environment(ctx, rs.Opener.With(change.Row{Request: r}, git.Dir{}, judging).Subject(), live.Way{}, false)
	if problem.KindOf(err) == problem.NotFound {
		return problem.Errorf(problem.Usage, "", "%w", err)
	}
	return err
}
