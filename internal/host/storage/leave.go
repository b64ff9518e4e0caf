package storage

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"sallyport/internal/base/audit"
	"sallyport/internal/base/beneath"
	"sallyport/internal/base/git"
	"sallyport/internal/base/id"
	"sallyport/internal/base/leftover"
	"sallyport/internal/base/problem"
	"sallyport/internal/base/whole"
	"sallyport/internal/path/change"
	"sallyport/internal/path/repository"
	"sallyport/internal/store"
)

// Piece is one thing that sallyport has left and that goes when it is uninstalled.
type Piece struct {
	What   string // ref, desk, objects, folder, file, socket, folder of sockets, control group
	Path   string // absolute; of a ref: the git directory and the ref
	Bytes  int64  // of disk; 0 where it has no size of its own
	Remove func(ctx context.Context) error
}

// Leaving is what goes, what stays, and what is lost with it.
type Leaving struct {
	Pieces   []Piece
	Stays    []string    // what looks like sallyport's and is not, or is a person's
	Unlanded []id.Change // ended without landing: their checkpoints go with the home
}

// Leave finds what this home has left in repositories: in the one whose work tree is at top, or in all. It removes nothing;
// the pieces do. Refs of changes that this home does not know, and desks with a person's own bytes, stay.
//
// Errors: problem.Conflict naming a change that is open.
func (s *Steward) Leave(ctx context.Context, top string, by audit.Actor) (Leaving, error) {
	r := &round{Steward: s, now: time.Now(), hand: hand{do: true, by: by}, changes: map[id.Change]change.Row{}}
	all, err := store.Look(ctx, s.DB, store.Tx.Changes, change.Filter{Limit: changesMax})
	if err != nil {
		return Leaving{}, fmt.Errorf("read the changes of the home: %w", err)
	}
	var out Leaving
	var going []change.Row
	for _, row := range all {
		r.changes[row.ID] = row
		state := row.State
		if !state.Final() {
			going = append(going, row)
			continue
		}
		if top == "" && state != change.Finalized && state != change.RolledBack && row.Base != "" {
			something, err := s.holds(ctx, row.ID)
			if err != nil {
				return Leaving{}, err
			}
			if something {
				out.Unlanded = append(out.Unlanded, row.ID)
			}
		}
	}
	if len(going) > 0 {
		return Leaving{}, open(going)
	}
	var errs []error
	commons := map[string]bool{}
	for _, p := range r.projects() {
		if top != "" && p.Top != top {
			continue
		}
		if !commons[p.CommonDir] {
			commons[p.CommonDir] = true
			errs = append(errs, r.leaveRefs(ctx, p, &out))
		}
		desks, err := r.desks(ctx, p) // their rows are closed, for no change is open
		errs = append(errs, err, out.add(ctx, desks))
	}
	return out, errors.Join(errs...)
}

// holds reports whether a change has work that could be kept.
func (s *Steward) holds(ctx context.Context, c id.Change) (something bool, err error) {
	err = s.DB.Read(ctx, func(tx store.Tx) error {
		points, err := tx.Checkpoints(ctx, c)
		if err != nil {
			return err
		}
		_, something, err = tx.Proposal(ctx, c)
		for _, p := range points {
			something = something || len(p.FilesChanged) > 0
		}
		return err
	})
	return something, err
}

// open refuses because of changes that have not ended, and names them all.
func open(going []change.Row) error {
	row := going[0]
	next := "sallyport change cancel " + string(row.ID)
	switch row.State {
	case change.Landing, change.InTrial, change.RollbackFailed:
		next = "sallyport change show " + string(row.ID)
	}
	names := make([]string, 0, len(going))
	for _, c := range going {
		names = append(names, fmt.Sprintf("%s has not ended (%s)", c.ID, c.State.Words()))
	}
	return problem.Errorf(problem.Conflict, next, "nothing is removed before every change has ended: %s", strings.Join(names, ", "))
}

// leaveRefs finds the refs of this home's changes in a project.
func (r *round) leaveRefs(ctx context.Context, p git.Project, out *Leaving) error {
	dir := p.Common(r.Ops)
	if there, err := repository.HasRepository(dir); err != nil || !there {
		out.Stays = append(out.Stays, fmt.Sprintf("%q is gone, or closed to you: what is in it stays", p.CommonDir))
		return nil
	}
	refs, err := dir.Refs(ctx, "refs/sallyport/")
	if err != nil {
		return fmt.Errorf("read the refs of %q: %w", p.CommonDir, err)
	}
	unknown := map[string]bool{}
	for _, ref := range slices.Sorted(maps.Keys(refs)) {
		c, ok := changeOf(ref)
		if _, known := r.changes[c]; !ok || !known {
			unknown[strings.Join(strings.Split(ref, "/")[:3], "/")] = true
			continue
		}
		oid := refs[ref]
		out.Pieces = append(out.Pieces, Piece{What: "ref", Path: p.CommonDir + " " + ref, Remove: func(ctx context.Context) error {
			if err := r.recordDone(ctx, c, "forgotten", "uninstalled: "+ref+" in "+p.CommonDir, map[string]string{"commit": string(oid)}); err != nil {
				return err
			}
			return repository.DropRefs(ctx, dir, map[string]git.OID{ref: oid})
		}})
	}
	for _, below := range slices.Sorted(maps.Keys(unknown)) {
		out.Stays = append(out.Stays, fmt.Sprintf("%s in %q stays: no change of this home has that id", below, p.CommonDir))
	}
	return nil
}

// add has leftovers go, but those that stay.
func (l *Leaving) add(ctx context.Context, items []leftover.Item) error {
	for _, it := range items {
		if it.Stays != "" {
			l.Stays = append(l.Stays, fmt.Sprintf("%q stays: %s", it.Path, it.Stays))
			continue
		}
		piece := Piece{What: it.What, Path: it.Path, Remove: func(ctx context.Context) error {
			_, err := it.Remove(ctx)
			return err
		}}
		if it.Ino != 0 {
			var err error
			if piece.Bytes, err = beneath.Allocated(ctx, it.Path); err != nil {
				return err
			}
		}
		l.Pieces = append(l.Pieces, piece)
	}
	return nil
}

// Machine finds what this home has on the machine outside its folder: sockets of its daemons that are gone, and what its parts tell of.
func (s *Steward) Machine(ctx context.Context) ([]Piece, error) {
	var out Leaving
	for _, runtime := range s.Runtime {
		if s.Socket == "" {
			break
		}
		it, dead := s.deadSocket(ctx, filepath.Join(runtime, hashOf(s.Socket)))
		if dead {
			if err := out.add(ctx, []leftover.Item{it}); err != nil {
				return nil, err
			}
		}
		if !whole.Exists(filepath.Join(runtime, hashOf(s.Socket))) && runtime != filepath.Dir(filepath.Dir(s.Socket)) {
			continue // an empty one there is not of this home's making
		}
		if above, folder, _ := beneath.PlaceOf(runtime); folder && int(above.UID) == os.Geteuid() && onlyOurs(runtime, hashOf(s.Socket)) {
			out.Pieces = append(out.Pieces, Piece{What: "folder of sockets", Path: runtime,
				Remove: func(context.Context) error { return s.removeEmpty(runtime) }})
		}
	}
	items, err := s.partsLeft(ctx)
	items = slices.DeleteFunc(items, func(it leftover.Item) bool { return strings.HasPrefix(it.Path, s.State+"/") }) // it goes with the home
	return out.Pieces, errors.Join(err, out.add(ctx, items))
}

// onlyOurs reports whether a folder of sockets holds none of another home's.
func onlyOurs(runtime, ours string) bool {
	entries, err := os.ReadDir(runtime)
	return err == nil && !slices.ContainsFunc(entries, func(e os.DirEntry) bool { return e.Name() != ours })
}

// removeEmpty removes a folder of sockets, unless a daemon has come to it meanwhile.
func (s *Steward) removeEmpty(runtime string) error {
	err := s.Ops.Do("sweep:runtime", func() error { return os.Remove(runtime) })
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENOTEMPTY) {
		return nil
	}
	return err
}

// hashOf is the name of the folder that a socket lies in.
func hashOf(socket string) string {
	parts := strings.Split(socket, "/")
	return parts[max(len(parts)-2, 0)]
}
