// Package leftover is what the parts of the host leave behind when they are killed. Each part tells what of its own lies there and how
// one goes; whether and when something goes is decided by whoever owns all leftovers, package storage.
package leftover

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"sallyport/internal/base/beneath"
	"sallyport/internal/base/disk"
)

// When is from when on something may go.
type When int

// The moments.
const (
	AtStart When = iota // before anything has begun; later somebody may be at work on it
	InTime              // once it has not been changed for a grace time
	AtOnce              // at any time: nobody can be at work on it
)

// Item is one thing that is left. Of one that is no file or folder only the path is set of its place.
type Item struct {
	beneath.Place
	What   string // for a person: file, folder, desk, objects, socket, control group, mount
	Goes   When
	Stays  string // why it stays, whatever its age; "" if it may go
	Remove func(context.Context) (gone bool, err error)
}

// Folder reports whether a folder was looked at.
func (i Item) Folder() bool { return i.Mode&unix.S_IFMT == unix.S_IFDIR }

// Part is who may leave something.
type Part interface {
	// Left tells what is there now, and removes nothing.
	Left(ctx context.Context) ([]Item, error)
}

// At is a file or folder as it was looked at. It is removed by the operation op, if it still is that one.
func At(at beneath.Place, goes When, ops disk.Ops, op string) Item {
	item := Item{Place: at, What: "file", Goes: goes}
	remove := at.Unlink
	if item.Folder() {
		item.What, remove = "folder", at.Remove
	}
	item.Remove = func(context.Context) (bool, error) { return true, ops.Do(op, remove) }
	return item
}

// Names are what lies below a folder of the host's own under names that are used for nothing but work in progress.
type Names struct {
	Folder   string   // absolute
	Patterns []string // of paths below it, as path.Match reads them
	Goes     When
	Ops      disk.Ops
	Op       string
}

// Left tells what has such a name. What cannot be looked into has none.
func (n Names) Left(context.Context) ([]Item, error) {
	var all []Item
	for _, pattern := range n.Patterns {
		found, err := fs.Glob(os.DirFS(n.Folder), pattern)
		if err != nil {
			return nil, err
		}
		for _, name := range found {
			at, _, err := beneath.PlaceOf(filepath.Join(n.Folder, name))
			if err != nil {
				return nil, err
			}
			if at.Path != "" { // else it is gone again
				all = append(all, At(at, n.Goes, n.Ops, n.Op))
			}
		}
	}
	return all, nil
}
