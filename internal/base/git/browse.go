package git

import (
	"context"
	"maps"
	"slices"
)

// Browser looks around in one tree through one process: for questions that are not
// known beforehand. Each folder is read once. It is for one goroutine; close it.
type Browser struct {
	root    OID
	session *Session
	err     error
}

// Browse opens a commit or tree for looking around.
func (d Dir) Browse(ctx context.Context, treeish OID) (*Browser, error) {
	s := d.Session(ctx)
	root, err := s.tree(treeish)
	if err != nil {
		s.Close()
		return nil, err
	}
	return &Browser{root: root, session: s}, nil
}

// Entry returns what is at a path, folders included; false if nothing is.
func (b *Browser) Entry(path string) (Entry, bool) {
	if path == "" {
		return Entry{Mode: Folder, OID: b.root}, true
	}
	if b.err != nil {
		return Entry{}, false
	}
	found, err := b.session.Lookup(b.root, []string{path})
	if err != nil {
		b.err = err
		return Entry{}, false
	}
	return found[0], !found[0].Absent()
}

// Names returns the sorted names in a folder ("" = top); none if it is no folder.
func (b *Browser) Names(folder string) []string {
	e, ok := b.Entry(folder)
	if !ok || e.Mode != Folder {
		return nil
	}
	in, err := b.session.entries(e.OID)
	if err != nil {
		b.err = err
	}
	return slices.Sorted(maps.Keys(in))
}

// Err returns the first failure to read. After one, answers are worth nothing.
func (b *Browser) Err() error { return b.err }

// Close gives the process back.
func (b *Browser) Close() { b.session.Close() }
