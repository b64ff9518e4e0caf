package workspace

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
	stale bool // a younger one of its family has taken its place
}

// pinStock keeps a stock until release is called.
func (m *Manager) pinStock(name string) (release func()) {
	m.pinMu.Lock()
	defer m.pinMu.Unlock()
	m.stockPins[name]++
	return func() {
		m.pinMu.Lock()
		defer m.pinMu.Unlock()
		if m.stockPins[name]--; m.stockPins[name] == 0 {
			delete(m.stockPins, name)
		}
	}
}

// Stocks lists what there is, the one that was used longest ago first.
func (m *Manager) Stocks() ([]StockInfo, error) {
	m.pinMu.Lock()
	defer m.pinMu.Unlock()
	return m.stocks()
}

// stocks is called with pinMu held, so that none comes into use meanwhile.
func (m *Manager) stocks() ([]StockInfo, error) {
	all, err := m.openStocks()
	if err != nil {
		return nil, fmt.Errorf("list what commands left: %w", err)
	}
	held := map[string]bool{}
	if err := records(m.root, func(r record) { held[r.Setup] = true }); err != nil {
		return nil, fmt.Errorf("find what is in use of what commands left: %w", err)
	}
	for name := range m.stockPins {
		held[name] = true
	}
	latest := map[string]Stock{}
	for _, s := range all {
		if s.Note.Made.After(latest[s.ID.Family].Note.Made) {
			latest[s.ID.Family] = s
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
		stale := s.Note.Kind == Checks && latest[s.ID.Family].ID != s.ID
		out = append(out, StockInfo{Stock: s, LastUsed: st.ModTime(), held: held[s.ID.String()], stale: stale})
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

// surplusStock is the one that goes first: one that a younger one has replaced or that was not used for long, or while all
// together have too much, the one used longest ago. False if all may stay.
func (m *Manager) surplusStock(all []StockInfo) (StockInfo, bool) {
	bytes := int64(0)
	for _, s := range all {
		bytes += s.Note.Bytes
	}
	i := slices.IndexFunc(all, func(s StockInfo) bool {
		return !s.InUse && (s.stale || time.Since(s.LastUsed) >= m.cache.Keep || bytes > m.cache.QuotaBytes)
	})
	if i < 0 {
		return StockInfo{}, false
	}
	return all[i], true
}

// SurplusStocks returns what TrimStocks would remove now, in that order.
func (m *Manager) SurplusStocks() (goes []StockInfo, err error) {
	all, err := m.Stocks()
	for err == nil {
		s, ok := m.surplusStock(all)
		if !ok {
			break
		}
		goes = append(goes, s)
		all = weighStocks(slices.DeleteFunc(all, func(o StockInfo) bool { return o.ID == s.ID }))
	}
	return goes, err
}

// TrimStocks removes what need not stay, by the bounds of the cache of base layers, which hold for each of the two by itself.
func (m *Manager) TrimStocks(ctx context.Context) (freed int64, err error) {
	for ctx.Err() == nil {
		all, err := m.Stocks()
		if err != nil {
			return freed, err
		}
		s, ok := m.surplusStock(all)
		if !ok {
			return freed, nil
		}
		err = m.busy.Alone(ctx, s.path, func() error {
			if gone, err := m.retireStock(s); err != nil || !gone {
				return err
			}
			freed += s.Note.Bytes
			return whole.Remove(m.ops, "stock:remove", whole.Fresh(s.path))
		})
		if err != nil {
			return freed, fmt.Errorf("remove what commands left: %w", err)
		}
	}
	return freed, context.Cause(ctx)
}

// retireStock takes the name of a stock away if it still goes first; nothing can come to stand on it meanwhile.
func (m *Manager) retireStock(s StockInfo) (gone bool, err error) {
	m.pinMu.Lock()
	defer m.pinMu.Unlock()
	all, err := m.stocks()
	if err != nil {
		return false, err
	}
	if first, ok := m.surplusStock(all); !ok || first.ID != s.ID {
		return false, nil
	}
	if err := whole.Remove(m.ops, "stock:clear", whole.Fresh(s.path)); err != nil {
		return false, err
	}
	return true, m.ops.Do("stock:retire", func() error { return os.Rename(s.path, whole.Fresh(s.path)) })
}
