package workspace

import (
	"context"
	"fmt"
	"path/filepath"

	"sallyport/internal/base/git"
	"sallyport/internal/base/whole"
	"sallyport/internal/path/layer"
	"sallyport/internal/port/sandbox"
)

// Cache is the folder of caches for a sandbox on w: what it writes there is w's and goes with it. Without a stock, or where
// overlays cannot be shown, there is no such folder.
func (w Workspace) Cache(stocks ...layer.Stock) sandbox.Cache {
	c := sandbox.Cache{Upper: filepath.Join(w.path, "cache"), Work: filepath.Join(w.path, "cache-work")}
	for _, s := range stocks {
		if !s.None() {
			c.Layers = append(c.Layers, s.Cache())
		}
	}
	if len(c.Layers) == 0 || w.Strategy != Overlay || !whole.Exists(c.Upper) {
		return sandbox.Cache{}
	}
	return c
}

// StockOf returns the stock that a workspace shows, which keeps it; none if it shows none.
func (m *Manager) StockOf(w Workspace) (layer.Stock, error) { return m.Stocks.Shown(w.Spec.Setup) }

// Host is the host's repository that holds the base.
func (w Workspace) Host() git.Dir { return w.host }

// New returns the paths of what stands in a workspace, on which nothing runs, and not in its base: the files and links that the base ignores,
// and all else that differs from the base.
func (w Workspace) New(ctx context.Context) (ignored, others []string, err error) {
	seen, err := w.survey(ctx)
	if err != nil {
		return nil, nil, err
	}
	var new []string
	for _, f := range seen.found {
		if f.fresh && f.Mode != "" {
			new = append(new, f.Path)
		}
	}
	left, err := w.ignored(ctx, new)
	if err != nil {
		return nil, nil, fmt.Errorf("find what the base ignores: %w", err)
	}
	for _, f := range seen.found {
		if left[f.Path] {
			ignored = append(ignored, f.Path)
		} else {
			others = append(others, f.Path)
		}
	}
	return ignored, others, nil
}
