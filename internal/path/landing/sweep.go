package landing

import (
	"context"
	"os"
	"path/filepath"
	"strings"

	"sallyport/internal/base/beneath"
	"sallyport/internal/base/git"
	"sallyport/internal/base/id"
)

// Desk is a folder that a landing has left in a repository, in its git directory or in its work tree.
type Desk struct {
	Landing id.Landing
	beneath.Place
	Kept  bool // a person's own bytes are in it: it is theirs
	Aside bool // objects that git was killed over, of a landing of any home: ClearAside takes them
}

// Desks returns what landings have left in a repository, open ones included. Only folders that belong to
// the repository's owner, to root or to us, and no links, count.
func Desks(p git.Project) ([]Desk, error) {
	var all []Desk
	theirs := map[id.Landing]bool{} // slots in the work tree stay with the desk that tells of them
	for _, in := range []struct{ folder, prefix string }{{p.GitDir, "sallyport-"}, {p.Top, ".sallyport-"}} {
		entries, err := os.ReadDir(in.folder)
		if err != nil {
			return nil, err
		}
		for _, e := range entries {
			name, ok := strings.CutPrefix(e.Name(), in.prefix)
			if !ok {
				continue
			}
			name, kept := strings.CutPrefix(name, "kept-")
			for _, suffix := range []string{".new", ".part", ".old"} {
				name = strings.TrimSuffix(name, suffix)
			}
			l, err := id.ParseLanding(name)
			if err != nil {
				continue
			}
			at, folder, err := beneath.PlaceOf(filepath.Join(in.folder, e.Name()))
			if err != nil || !folder || at.UID != p.UID && at.UID != 0 && int(at.UID) != os.Geteuid() {
				continue
			}
			theirs[l] = theirs[l] || kept
			all = append(all, Desk{Landing: l, Place: at})
		}
	}
	if entries, err := os.ReadDir(filepath.Join(p.CommonDir, "objects")); err == nil {
		for _, e := range entries {
			if at, folder, err := beneath.PlaceOf(filepath.Join(p.CommonDir, "objects", e.Name())); err == nil && folder && isAside(e) {
				l, _ := id.ParseLanding(strings.TrimPrefix(e.Name(), asidePrefix))
				all = append(all, Desk{Landing: l, Place: at, Aside: true})
			}
		}
	}
	for i := range all {
		all[i].Kept = theirs[all[i].Landing]
	}
	return all, nil
}

// Clear removes the desk of a landing whose row is closed: what a crash, or a row that was closed by other means, has left.
// A slot with a person's own bytes is kept as sallyport-kept-<landing>, and left says where. Nothing of the branch, the index or the
// work tree is touched. While another landing holds the repository nothing is done (ErrBusy).
func (l *Lander) Clear(ctx context.Context, closed Landing) (left []string, err error) {
	held, err := l.lock(ctx, closed.Project)
	if err != nil {
		return nil, err
	}
	defer held.Close()
	s, err := openSite(ctx, closed.Project)
	if err != nil {
		return nil, err
	}
	d := &desk{site: s, ops: l.Ops, l: &closed}
	defer d.end()
	r := run{Lander: l, desk: d}
	if err := r.configure(); err != nil {
		return nil, err
	}
	err = r.putAway()
	return d.left, err
}
