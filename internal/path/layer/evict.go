package layer

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"sallyport/internal/base/beneath"
	"sallyport/internal/base/git"
	"sallyport/internal/base/whole"
)

// Info tells of one cached base layer.
type Info struct {
	Tree     git.OID
	Bytes    int64 // of disk, without the layers that it stands on
	Depth    int   // layers in all: 1 = a full one
	LastUsed time.Time
	InUse    bool // a workspace or another layer stands on it: it is never evicted

	held  bool      // by a workspace, or by somebody who is making one
	below []git.OID // what it stands on

	project string // name of the host's repository that has the tree
}

// cached is a layer that is there, whole or not.
type cached struct {
	tree git.OID
	note note
	used time.Time
}

// cached lists the layers.
func (k *Store) cached(ctx context.Context) ([]cached, error) {
	entries, err := os.ReadDir(k.Root)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	var found []cached
	for _, e := range entries {
		tree := git.OID(e.Name())
		if !tree.Valid() {
			continue // being made
		}
		path := k.path(tree)
		n, err := readNote(path)
		if err == nil && n.Bytes == 0 {
			n.Bytes, err = beneath.AllocatedBelow(ctx, path)
		}
		var st os.FileInfo
		if err == nil {
			st, err = os.Lstat(path)
		}
		if errors.Is(err, os.ErrNotExist) {
			continue // evicted meanwhile
		}
		if err != nil {
			return nil, err
		}
		found = append(found, cached{tree, n, st.ModTime()})
	}
	return found, nil
}

// All lists the cached base layers, the one that was used longest ago first.
func (k *Store) All(ctx context.Context) (all []Info, err error) {
	err = k.pins.Still(func(held func(git.OID) bool) error {
		all, err = k.all(ctx, held)
		return err
	})
	return all, err
}

// all is called while nobody can begin to hold one, so that no layer comes into use meanwhile.
func (k *Store) all(ctx context.Context, held func(git.OID) bool) ([]Info, error) {
	found, err := k.cached(ctx)
	if err != nil {
		return nil, fmt.Errorf("list the base layers: %w", err)
	}
	used := map[git.OID]bool{}
	if err := k.Standing(func(tree git.OID) { used[tree] = true }); err != nil {
		return nil, fmt.Errorf("find the base layers that are in use: %w", err)
	}
	var out []Info
	for _, c := range found {
		out = append(out, Info{Tree: c.tree, Bytes: c.note.Bytes, Depth: len(c.note.Parents) + 1, LastUsed: c.used, held: used[c.tree] ||
			held(c.tree), below: c.note.Parents, project: c.note.Project})
	}
	slices.SortStableFunc(out, func(a, b Info) int { return a.LastUsed.Compare(b.LastUsed) })
	return weigh(out), nil
}

// weigh says of each layer whether it is in use.
func weigh(layers []Info) []Info {
	used := map[git.OID]bool{}
	for _, l := range layers {
		for _, below := range l.below {
			used[below] = true
		}
	}
	for i, l := range layers {
		layers[i].InUse = l.held || used[l.Tree]
	}
	return layers
}

// surplus returns the layer that goes first of those that are there, longest unused first; false if all may stay.
func surplus(layers []Info, keep time.Duration, quota int64, spares int) (Info, bool) {
	held, spare := int64(0), map[string]int{}
	for _, l := range layers {
		held += l.Bytes
		if !l.InUse {
			spare[l.project]++
		}
	}
	i := slices.IndexFunc(layers, func(l Info) bool {
		old := keep >= 0 && time.Since(l.LastUsed) >= keep
		return !l.InUse && (old || quota >= 0 && held > quota || spare[l.project] > spares)
	})
	if i < 0 {
		return Info{}, false
	}
	return layers[i], true
}

// Surplus returns those of the cached layers that Trim would remove now, in that order.
func (k *Store) Surplus(ctx context.Context) ([]Info, error) {
	return k.surplus(ctx, k.Keep, k.QuotaBytes)
}

func (k *Store) surplus(ctx context.Context, keep time.Duration, quota int64) ([]Info, error) {
	layers, err := k.All(ctx)
	if err != nil {
		return nil, err
	}
	var goes []Info
	for {
		l, ok := surplus(layers, keep, quota, k.Spares)
		if !ok {
			return goes, nil
		}
		goes = append(goes, l)
		layers = weigh(slices.DeleteFunc(layers, func(o Info) bool { return o.Tree == l.Tree }))
	}
}

// Trim evicts by the cache's own bounds.
func (k *Store) Trim(ctx context.Context) (freed int64, err error) {
	return k.Evict(ctx, k.Keep, k.QuotaBytes)
}

// Evict removes cached base layers that nothing stands on, the one used longest ago first: those not
// used for keep, then as many as it takes for all together to have at most quota bytes, and for each project to have few. A
// negative one is no limit. It returns the bytes of disk that were freed.
func (k *Store) Evict(ctx context.Context, keep time.Duration, quota int64) (freed int64, err error) {
	goes, err := k.surplus(ctx, keep, quota)
	if err != nil {
		return 0, err
	}
	for _, l := range goes {
		if ctx.Err() != nil {
			return freed, context.Cause(ctx)
		}
		gone, err := k.evict(ctx, l.Tree)
		if err != nil {
			return freed, fmt.Errorf("evict the layer of tree %.12s: %w", l.Tree, err)
		}
		if gone { // else it came into use
			freed += l.Bytes
		}
	}
	return freed, context.Cause(ctx)
}

// Shed evicts layers once there are many for the projects that have any.
func (k *Store) Shed(ctx context.Context) error {
	entries, err := os.ReadDir(k.Root)
	if errors.Is(err, os.ErrNotExist) || len(entries) < 3*k.Spares {
		return nil
	}
	if err == nil {
		_, err = k.Evict(ctx, -1, -1)
	}
	return err
}

// evict removes a layer unless something stands on it by now. It goes from its name by one rename.
func (k *Store) evict(ctx context.Context, tree git.OID) (gone bool, err error) {
	path := k.path(tree)
	err = k.busy.Alone(ctx, path, func() error {
		if err := whole.Remove(k.ops, "layer:clear", whole.Fresh(path)); err != nil {
			return err
		}
		if gone, err = k.retire(ctx, tree); err != nil || !gone {
			return err
		}
		return whole.Remove(k.ops, "layer:remove", whole.Fresh(path))
	})
	return gone, err
}

// retire takes a layer's name away if nothing stands on it, and nothing can come to stand on it meanwhile.
func (k *Store) retire(ctx context.Context, tree git.OID) (gone bool, err error) {
	err = k.pins.Still(func(held func(git.OID) bool) error {
		layers, err := k.all(ctx, held)
		if err != nil || !slices.ContainsFunc(layers, func(l Info) bool { return l.Tree == tree && !l.InUse }) {
			return err
		}
		gone = true
		path := k.path(tree)
		return k.ops.Do("layer:retire", func() error { return os.Rename(path, whole.Fresh(path)) })
	})
	return gone, err
}
