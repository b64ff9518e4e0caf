package workspace

import "sallyport/internal/path/layer"

// ErrNoWhiteouts is what a disk says that holds no deletions.
var ErrNoWhiteouts = layer.ErrNoWhiteouts

// Bound makes all of what Tend keeps few as few as n.
func (m *Manager) Bound(n int) { m.Repositories.Most, m.Layers.Spares = n, n }
