// Package repository is the host's own bare repository of each project.
//
// It holds what the bases of changes reach, copied once, so that nothing that becomes of a project takes a base away; and every
// checkpoint. An agent is shown the view of its base and nothing else of it. Nothing is lost by tending it: what a ref names, or a
// workspace is shown, stays.
package repository

import (
	"context"
	"path/filepath"
	"strings"
	"time"

	"sallyport/internal/base/disk"
	"sallyport/internal/base/git"
	"sallyport/internal/base/lock"
	"sallyport/internal/base/whole"
)

// Config says where the host's repositories lie, and how long what they copy stays.
type Config struct {
	Root    string // absolute
	Ops     disk.Ops
	History int           // commits at most that are copied with a base; 0 = 10,000
	Most    int           // of what every change adds to, so much beside each other before it becomes less; 0 = 32
	Keeps   time.Duration // a base that nothing stands on stays so long after its last use

	// Shown calls each with every folder of objects that somebody is shown: its base is stood on. An error says that not all are known.
	Shown func(each func(objects string)) error
}

// mostDefault bounds two things. Bases of a project that no workspace is shown: from twice as many on those go that are more than
// this, at once. And packs of the host's own: every change adds one, and every process of git opens all of them.
const mostDefault = 32

// Store makes, opens and tends the host's own repositories of one home.
type Store struct {
	Config
	ops disk.Ops

	busy lock.Keyed[string] // paths that are being made
	pins lock.Pins[git.OID] // bases that somebody holds whom no record names yet
}

// New returns a store; it touches nothing.
func New(c Config) *Store {
	if c.History <= 0 {
		c.History = historyDefault
	}
	if c.Most <= 0 {
		c.Most = mostDefault
	}
	return &Store{Config: c, ops: c.Ops}
}

// Hold keeps a base until release is called.
func (r *Store) Hold(base git.OID) (release func()) { return r.pins.Hold(base) }

// Showing returns the repository that shows a folder of objects, if it is one of this store's and holds a commit.
func (r *Store) Showing(ctx context.Context, objects string, commit git.OID) (host git.Dir, ok bool) {
	above, _, ok := r.baseShown(objects)
	if !ok || !whole.Exists(above) {
		return git.Dir{}, false
	}
	host = git.Dir{Path: above, Ops: r.ops}
	there, err := holds(ctx, host, commit)
	return host, err == nil && there
}

// baseShown returns the path of the repository and the base that a folder of objects is the view of.
func (r *Store) baseShown(objects string) (above string, base git.OID, ok bool) {
	above, name, ok := strings.Cut(objects, "/"+viewsFolder+"/")
	name, _, _ = strings.Cut(name, "/")
	return above, git.OID(name), ok && filepath.Dir(above) == r.Root
}
