package standing

import (
	"context"
	"fmt"
	"slices"

	"sallyport/internal/base/git"
	"sallyport/internal/drive/ledger"
	"sallyport/internal/path/change"
	"sallyport/internal/path/landing"
	"sallyport/internal/path/request"
	"sallyport/internal/store"
	"sallyport/internal/who/group"
)

// origin finds where the group and the template were brought together last: where the group was made, or refreshed since, and what the
// template has been given of the group after that. given are the commits that gave it. What was rolled back, or is on another branch, does
// not count.
func (m merging) origin(ctx context.Context, p git.Project, head git.OID) (o group.Origin, given []git.OID, err error) {
	d := p.Common(m.Ops)
	if o.Commit, err = group.Made(ctx, d, head, m.folder); err != nil {
		return o, nil, err
	}
	all, err := m.brought(ctx)
	if err != nil {
		return o, nil, err
	}
	since := func(b brought) (bool, error) {
		if there, err := d.Contains(ctx, head, b.NewCommit); err != nil || !there {
			return false, err
		}
		old, err := d.Contains(ctx, o.Commit, b.NewCommit)
		return !old, err
	}

	for _, b := range all { // the newest first
		counts, err := since(b)
		if err != nil {
			return o, nil, err
		}
		if counts && b.request.Refresh {
			o.Commit = b.request.Head
			break
		}
	}
	o.Met = map[string]git.Entry{}
	for _, b := range slices.Backward(all) {
		counts, err := since(b)
		if err != nil {
			return o, nil, err
		}
		if counts && !b.request.Refresh {
			given = append(given, b.NewCommit)
			for _, e := range b.Edits {
				o.Met[e.Path] = e.New
			}
		}
	}
	return o, given, nil
}

// brought is a landing that brought a group and the template together: a refresh of the one, or a promotion to the other.
type brought struct {
	landing.Landing
	request request.Request
}

// brought are those that are kept, the newest first.
func (m merging) brought(ctx context.Context) (all []brought, err error) {
	err = m.DB.Read(ctx, func(tx store.Tx) error {
		all = nil
		rows, err := tx.Changes(ctx, change.Filter{Top: m.Home, States: []change.State{change.Finalized}, Limit: ledger.LookedMax})
		if err != nil {
			return err
		}
		for _, row := range rows {
			r := row.Request
			of := r.Group
			if r.Promotes != "" {
				swap, err := tx.Change(ctx, r.Promotes)
				if err != nil {
					return err
				}
				of = swap.Request.Group
			}
			if of != string(m.folder) || r.Promotes == "" && !r.Refresh {
				continue
			}
			l, ok, err := tx.LandingOf(ctx, row.ID)
			if err != nil {
				return err
			}
			if ok && l.State == landing.Landed {
				all = append(all, brought{l, r})
			}
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("find what brought the group %s and the template together: %w", m.folder, err)
	}
	return all, nil
}
