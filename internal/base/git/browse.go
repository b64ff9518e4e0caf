package git

import (
	"context"
	"io"
	"maps"
	"slices"
)

// Browser looks around in one tree through one process: for questions that are not
// known beforehand. Each folder is read once. It is for one goroutine; close it.
type Browser struct {
	root    OID
	reader  *reader
	folders map[string]map[string]Entry
	err     error
}

// Browse opens a commit or tree for looking around.
func (d Dir) Browse(ctx context.Context, treeish OID) (*Browser, error) {
	root, err := d.Tree(ctx, treeish)
	if err != nil {
		return nil, err
	}
	r, err := d.reader(ctx)
	if err != nil {
		return nil, err
	}
	return &Browser{root: root, reader: r, folders: map[string]map[string]Entry{}}, nil
}

// Entry returns what is at a path, folders included; false if nothing is.
func (b *Browser) Entry(path string) (Entry, bool) {
	if path == "" {
		return Entry{Mode: Folder, OID: b.root}, true
	}
	up, last := split(path)
	e, ok := b.folder(up)[last]
	return e, ok
}

// Names returns the sorted names in a folder ("" = top); none if it is no folder.
func (b *Browser) Names(folder string) []string {
	return slices.Sorted(maps.Keys(b.folder(folder)))
}

// Err returns the first failure to read. After one, answers are worth nothing.
func (b *Browser) Err() error { return b.err }

// Close ends the process.
func (b *Browser) Close() { b.reader.close() }

func (b *Browser) folder(name string) map[string]Entry {
	if f, ok := b.folders[name]; ok || b.err != nil {
		return f
	}
	f := map[string]Entry{}
	if e, ok := b.Entry(name); ok && e.Mode == Folder {
		b.err = b.reader.next(e.OID, func(_ string, _ int64, body io.Reader) error {
			return parseTree(body, len(b.root)/2, f)
		})
	}
	b.folders[name] = f
	return f
}
