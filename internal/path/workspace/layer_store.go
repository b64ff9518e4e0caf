package workspace

import (
	"time"

	"sallyport/internal/base/disk"
	"sallyport/internal/base/git"
	"sallyport/internal/base/lock"
)

// LayerConfig says where layers lie, and which of them stay that nothing stands on.
type LayerConfig struct {
	Root       string // absolute
	Ops        disk.Ops
	Keep       time.Duration // after the last use
	QuotaBytes int64         // of disk, all layers together
	Spares     int           // layers of one project that nothing needs to stand on; 0 = 16

	// Standing calls each with the tree of every layer that a workspace stands on. One without a record is of a crash, or is being
	// made, which holds its layer. An error says that not all are known: then none goes.
	Standing func(each func(tree git.OID)) error
}

// LayerStore makes, opens and evicts the layers of one home.
type LayerStore struct {
	LayerConfig
	ops disk.Ops

	busy lock.Keyed[string] // paths that are being made
	pins lock.Pins[git.OID] // layers that somebody holds whom no record names yet
}

// NewLayerStore returns a store; it touches nothing.
func NewLayerStore(c LayerConfig) *LayerStore {
	if c.Spares <= 0 {
		c.Spares = 16
	}
	return &LayerStore{LayerConfig: c, ops: c.Ops}
}

// Chain returns what a layer is made of, lowest first, and the tree of it that has the .gitignore files.
func (l Layer) Chain() (chain []git.OID, ignore git.OID) { return l.chain, l.ignore }
