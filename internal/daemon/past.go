package daemon

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"sallyport/internal/base/beneath"
	"sallyport/internal/base/keeper"
	"sallyport/internal/base/leftover"
	"sallyport/internal/drive/ledger"
	"sallyport/internal/path/change"
	"sallyport/internal/store"
)

// releasesKept is how many of the newest releases stay in a home, whatever they are for.
const releasesKept = 5

// past are the releases and images of a home that nothing needs any more.
type past struct{ *Daemon }

var _ leftover.Part = past{}

// Left tells of releases beyond the newest five that neither run nor are what a change would have run, and of images that no release names.
func (p past) Left(ctx context.Context) (all []leftover.Item, err error) {
	needed, err := p.needed(ctx)
	if err != nil {
		return nil, err
	}
	releases, images := candidate(p).Releases(), candidate(p).Images()
	going, err := releases.Past(releasesKept, needed...)
	errs := []error{err}
	for _, r := range going {
		errs = append(errs, add(&all, filepath.Join(releases.Dir, r.Digest), "release",
			func(context.Context) (bool, error) { return releases.Remove(r.Digest) }))
	}

	named := map[string]bool{p.image: true}
	stays, err := releases.List()
	for _, r := range stays {
		named[r.Image] = true
	}
	if err != nil {
		return all, errors.Join(append(errs, err)...) // it may name any image
	}
	kept, err := images.List()
	errs = append(errs, err)
	for _, i := range kept {
		if !named[i.Digest] {
			errs = append(errs, add(&all, filepath.Join(images.Dir, i.Digest), "image",
				func(context.Context) (bool, error) { return true, images.Remove(i.Digest) }))
		}
	}
	return all, errors.Join(errs...)
}

func add(all *[]leftover.Item, path, what string, remove func(context.Context) (bool, error)) error {
	at, _, err := beneath.PlaceOf(path)
	if err == nil && at.Path != "" {
		*all = append(*all, leftover.Item{Place: at, What: what, Goes: leftover.InTime, Remove: remove})
	}
	return err
}

// needed are the releases that run, that a keeper may go back to, or that a change which has not ended would have run.
func (p past) needed(ctx context.Context) (digests []string, err error) {
	if p.Line != nil {
		digests = append(digests, p.Line.Release)
	}
	record, is, err := keeper.RecordOf(p.Home)
	if err != nil {
		return nil, fmt.Errorf("nothing goes while it is not known what runs: %w", err)
	}
	if is {
		digests = append(digests, record.Old, record.New)
	}
	err = p.db.Read(ctx, func(tx store.Tx) error {
		rows, err := tx.Changes(ctx, change.Filter{Top: p.Home, States: change.Open(), Limit: ledger.OpenMax})
		for _, row := range rows {
			digests = append(digests, row.Request.Release)
			made, is, err := tx.Proposal(ctx, row.ID)
			if err != nil {
				return err
			}
			if is && made.Card.Host != nil {
				digests = append(digests, made.Card.Host.Release)
			}
		}
		return err
	})
	return digests, err
}
