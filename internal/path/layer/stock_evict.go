package layer

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"time"

	"sallyport/internal/base/whole"
)

// StockInfo tells of one stock.
type StockInfo struct {
	Stock
	LastUsed time.Time
	InUse    bool // a workspace, a sandbox or another stock stands on it: it is never removed

	held  bool // by a workspace or a sandbox
	stale bool // a younger one of its family and branch has taken its place
}

// All lists what there is, the one that was used longest ago first.
func (k *Stocks) All() (all []StockInfo, err error) {
	err = k.pins.Still(func(held func(string) bool) error {
		all, err = k.infos(held)
		return err
	})
	return all, err
}

// infos is called while nobody can begin to hold one, so that none comes into use meanwhile.
func (k *Stocks) infos(held func(string) bool) ([]StockInfo, error) {
	all, err := k.all()
	if err != nil {
		return nil, fmt.Errorf("list what commands left: %w", err)
	}
	shown := map[string]bool{}
	if err := k.Showing(func(name string) { shown[name] = true }); err != nil {
		return nil, fmt.Errorf("find what is in use of what commands left: %w", err)
	}
	type line struct{ family, branch string } // another branch's younger one may not serve where this does
	latest := map[line]Stock{}
	for _, s := range all {
		if of := (line{s.ID.Family, s.Note.Branch}); s.Note.Made.After(latest[of].Note.Made) {
			latest[of] = s
		}
	}
	var out []StockInfo
	for _, s := range all {
		st, err := os.Lstat(s.path)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		stale := s.Note.Kind == Checks && latest[line{s.ID.Family, s.Note.Branch}].ID != s.ID
		out = append(out, StockInfo{Stock: s, LastUsed: st.ModTime(), held: shown[s.ID.String()] || held(s.ID.String()), stale: stale})
	}
	slices.SortStableFunc(out, func(a, b StockInfo) int { return a.LastUsed.Compare(b.LastUsed) })
	return weighStocks(out), nil
}

// weighStocks says of each whether it is in use.
func weighStocks(all []StockInfo) []StockInfo {
	below := map[string]bool{}
	for _, s := range all {
		below[s.Note.On] = true
	}
	for i, s := range all {
		all[i].InUse = s.held || below[s.ID.String()]
	}
	return all
}

// first is the one that goes first: one that a younger one has replaced or that was not used for long, or while all
// together have too much, the one used longest ago. False if all may stay.
func (k *Stocks) first(all []StockInfo) (StockInfo, bool) {
	bytes := int64(0)
	for _, s := range all {
		bytes += s.Note.Bytes
	}
	i := slices.IndexFunc(all, func(s StockInfo) bool {
		return !s.InUse && (s.stale || time.Since(s.LastUsed) >= k.Keep || bytes > k.QuotaBytes)
	})
	if i < 0 {
		return StockInfo{}, false
	}
	return all[i], true
}

// Surplus returns what Trim would remove now, in that order.
func (k *Stocks) Surplus() (goes []StockInfo, err error) {
	all, err := k.All()
	for err == nil {
		s, ok := k.first(all)
		if !ok {
			break
		}
		goes = append(goes, s)
		all = weighStocks(slices.DeleteFunc(all, func(o StockInfo) bool { return o.ID == s.ID }))
	}
	return goes, err
}

// Trim removes what need not stay, by the bounds of the cache of base layers, which hold for each of the two by itself.
func (k *Stocks) Trim(ctx context.Context) (freed int64, err error) {
	for ctx.Err() == nil {
		all, err := k.All()
		if err != nil {
			return freed, err
		}
		s, ok := k.first(all)
		if !ok {
			return freed, nil
		}
		err = k.busy.Alone(ctx, s.path, func() error {
			if gone, err := k.retire(s); err != nil || !gone {
				return err
			}
			freed += s.Note.Bytes
			return whole.Remove(k.ops, "stock:remove", whole.Fresh(s.path))
		})
		if err != nil {
			return freed, fmt.Errorf("remove what commands left: %w", err)
		}
	}
	return freed, context.Cause(ctx)
}

// retire takes the name of a stock away if it still goes first; nothing can come to stand on it meanwhile.
func (k *Stocks) retire(s StockInfo) (gone bool, err error) {
	err = k.pins.Still(func(held func(string) bool) error {
		all, err := k.infos(held)
		if err != nil {
			return err
		}
		if first, ok := k.first(all); !ok || first.ID != s.ID {
			return nil
		}
		if err := whole.Remove(k.ops, "stock:clear", whole.Fresh(s.path)); err != nil {
			return err
		}
		gone = true
		return k.ops.Do("stock:retire", func() error { return os.Rename(s.path, whole.Fresh(s.path)) })
	})
	return gone, err
}
