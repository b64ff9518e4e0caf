// Package layer is the trees that workspaces stand on: read-only from the moment they have their names, made once and shared.
//
// A layer is the tree of a commit, whole or as what differs from an older one. A stock is what commands left on a base: caches, and
// paths that the base ignores. What nothing stands on goes by age, room and number; what stands on one the stores are told.
package layer

import (
	"time"

	"sallyport/internal/base/disk"
	"sallyport/internal/base/git"
	"sallyport/internal/base/lock"
)

// Config says where layers lie, and which of them stay that nothing stands on.
type Config struct {
	Root       string // absolute
	Ops        disk.Ops
	Keep       time.Duration // after the last use
	QuotaBytes int64         // of disk, all layers together
	Whole      bool          // no layer stands on another: who shows one shows a single folder
	Spares     int           // layers of one project that nothing needs to stand on; 0 = 16

	// Standing calls each with the tree of every layer that a workspace stands on. One without a record is of a crash, or is being
	// made, which holds its layer. An error says that not all are known: then none goes.
	Standing func(each func(tree git.OID)) error
}

// Store makes, opens and evicts the layers of one home.
type Store struct {
	Config
	ops disk.Ops

	busy lock.Keyed[string] // paths that are being made
	pins lock.Pins[git.OID] // layers that somebody holds whom no record names yet
}

// New returns a store; it touches nothing.
func New(c Config) *Store {
	if c.Spares <= 0 {
		c.Spares = 16
	}
	return &Store{Config: c, ops: c.Ops}
}

// Chain returns what a layer is made of, lowest first, and the tree of it that has the .gitignore files.
func (l Layer) Chain() (chain []git.OID, ignore git.OID) { return l.chain, l.ignore }
