package workspace

import (
	"context"
)

// Worn tells when something was left that Tend may have to look at: a workspace went.
func (m *Manager) Worn() <-chan struct{} { return m.worn }

// Tend keeps what every change adds to at a size that does not grow with their number: the bases of a project that are held, the packs
// of the host's own, the layers. Nothing is lost by it: what a ref or a workspace needs stays. It costs next to nothing as long as
// there is little, and may be called at any time.
func (m *Manager) Tend(ctx context.Context) error {
	if err := m.Repositories.Tend(ctx); err != nil {
		return err
	}
	return m.Layers.Shed(ctx)
}
