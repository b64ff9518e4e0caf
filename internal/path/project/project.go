// Package project reads what is a person's: whether a commit of theirs can be worked on, and what they have not committed.
//
// Nothing of theirs is written, and nothing that their repository configures runs.
package project

import (
	"sync"

	"sallyport/internal/base/disk"
	"sallyport/internal/base/git"
	"sallyport/internal/path/repository"
)

// Config says what of a project a workspace may hold, and where a copy of an index lies for a moment.
type Config struct {
	Repositories *repository.Store
	Folder       string // absolute; for copies of indexes
	Ops          disk.Ops
	Entries      int   // files at most that a base may have
	PathBytes    int64 // of all their paths together, at most
}

// Reader reads what is a person's: whether a commit of theirs can be worked on, and what they have not committed.
type Reader struct {
	Config

	mu   sync.Mutex
	fit  map[git.OID]fitness
	last map[string]git.OID // by the project's git directory: the tree that was looked at last
}

// New returns a reader; it touches nothing.
func New(c Config) *Reader {
	return &Reader{Config: c, fit: map[git.OID]fitness{}, last: map[string]git.OID{}}
}
