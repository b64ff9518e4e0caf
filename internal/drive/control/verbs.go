package control

import (
	"sallyport/internal/path/checkpoint"
	"sallyport/internal/port/sandbox"
)

// PutBack is what a smart or per-file rollback did.
type PutBack struct {
	Checkpoint checkpoint.Checkpoint // taken after it
	Reverted   []string              // as stored, unescaped
	Kept       int                   // changed paths that stayed as they are
}

// Terminal is the far side of an interactive shell. Whoever made the pty holds its
// master, sets its size there, and closes both ends.
type Terminal struct {
	Slave sandbox.Terminal
	Raw   bool // whoever reads the master passes on what drives a terminal; else nothing but text is shown
}
