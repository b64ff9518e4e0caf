package workspace

import (
	"sync"

	"sallyport/internal/base/disk"
	"sallyport/internal/base/git"
	"sallyport/internal/path/repository"
)

// ProjectsConfig says what of a project a workspace may hold, and where a copy of an index lies for a moment.
type ProjectsConfig struct {
	Repositories *repository.Store
	Folder       string // absolute; for copies of indexes
	Ops          disk.Ops
	Entries      int   // files at most that a base may have
	PathBytes    int64 // of all their paths together, at most
}

// Projects reads what is a person's: whether a commit of theirs can be worked on, and what they have not committed.
type Projects struct {
	ProjectsConfig

	mu   sync.Mutex
	fit  map[git.OID]fitness
	last map[string]git.OID // by the project's git directory: the tree that was looked at last
}

// NewProjects returns a reader; it touches nothing.
func NewProjects(c ProjectsConfig) *Projects {
	return &Projects{ProjectsConfig: c, fit: map[git.OID]fitness{}, last: map[string]git.OID{}}
}
