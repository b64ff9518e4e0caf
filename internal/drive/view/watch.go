package view

import (
	"context"

	"sallyport/internal/base/id"
	"sallyport/internal/drive/confirm"
	"sallyport/internal/path/change"
	"sallyport/internal/path/trial"
	"sallyport/internal/store"
)

// Watch sends the present state, then notices until ctx ends or nothing more happens by itself. The first to watch a
// change that was accepted a moment ago gets all that happened to it.
func (v *Views) Watch(ctx context.Context, changeID id.Change) (<-chan change.Notice, error) {
	sub, whole := v.Feed.Watch(changeID) // before reading, so that nothing falls between
	queue, err := v.first(ctx, changeID)
	if err != nil {
		v.Feed.Unsubscribe(sub)
		return nil, err
	}
	if whole {
		queue = v.Feed.Next(ctx, sub)
	}
	out := make(chan change.Notice)
	go func() { // owned by ctx: it ends with it, or with the change
		defer close(out)
		defer v.Feed.Unsubscribe(sub)
		asked := false
		for ; queue != nil; queue = v.Feed.Next(ctx, sub) {
			for _, n := range queue {
				asks := n.Kind == "trial" && n.State == change.InTrial
				if asks && asked {
					continue
				}
				select {
				case <-ctx.Done():
					return
				case out <- n:
				}
				if asks {
					asked = true
					v.Confirm.RecordDelivery(changeID)
				}
				if n.Rests() {
					return
				}
			}
		}
	}()
	return out, nil
}

// first is what somebody who begins to watch is told: the present state, and message 1 while its answer is waited for.
func (v *Views) first(ctx context.Context, changeID id.Change) (all []change.Notice, err error) {
	err = v.DB.Read(ctx, func(tx store.Tx) error {
		row, err := tx.Change(ctx, changeID)
		if err != nil {
			return err
		}
		all = []change.Notice{{Change: changeID, At: row.Moved, Kind: "state", State: row.State, Text: row.Reason}}
		if t, ok, err := tx.Trial(ctx, changeID); err != nil {
			return err
		} else if ok && row.State == change.InTrial && t.Handshake == trial.Message1Sent {
			all = append(all, confirm.Message1(t))
		}
		return nil
	})
	return all, err
}
