package workspace

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"sallyport/internal/base/git"
	"sallyport/internal/base/whole"
)

// LayerInfo tells of one cached base layer.
type LayerInfo struct {
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

// pin keeps a layer, or a base by its commit, until release is called.
func (m *Manager) pin(tree git.OID) (release func()) {
	m.pinMu.Lock()
	defer m.pinMu.Unlock()
	m.pins[tree]++
	return func() {
		m.pinMu.Lock()
		defer m.pinMu.Unlock()
		if m.pins[tree]--; m.pins[tree] == 0 {
			delete(m.pins, tree)
		}
	}
}

// pinned reports whether somebody holds a layer or a base whom no record names yet.
func (m *Manager) pinned(oid git.OID) bool {
	m.pinMu.Lock()
	defer m.pinMu.Unlock()
	return m.pins[oid] > 0
}

// cached lists the layers.
func (m *Manager) cached(ctx context.Context) ([]cached, error) {
	entries, err := os.ReadDir(filepath.Join(m.root, "layers"))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	var found []cached
	for _, e := range entries {
		tree := git.OID(e.Name())
		if !tree.Valid() {
			continue // being made
		}
		path := m.layerPath(tree)
		n, err := readNote(path)
		if err == nil && n.Bytes == 0 {
			n.Bytes, err = m.diskOf(ctx, path)
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

// Layers lists the cached base layers, the one that was used longest ago first.
func (m *Manager) Layers(ctx context.Context) ([]LayerInfo, error) {
	m.pinMu.Lock()
	defer m.pinMu.Unlock()
	return m.layers(ctx)
}

// layers is called with pinMu held, so that no layer comes into use meanwhile.
func (m *Manager) layers(ctx context.Context) ([]LayerInfo, error) {
	found, err := m.cached(ctx)
	if err != nil {
		return nil, fmt.Errorf("list the base layers: %w", err)
	}
	used, err := m.standing()
	if err != nil {
		return nil, fmt.Errorf("find the base layers that are in use: %w", err)
	}
	for tree := range m.pins {
		used[tree] = true
	}
	var out []LayerInfo
	for _, c := range found {
		out = append(out, LayerInfo{Tree: c.tree, Bytes: c.note.Bytes, Depth: len(c.note.Parents) + 1, LastUsed: c.used, held: used[c.tree], below: c.note.Parents, project: c.note.Project})
	}
	slices.SortStableFunc(out, func(a, b LayerInfo) int { return a.LastUsed.Compare(b.LastUsed) })
	return weigh(out), nil
}

// weigh says of each layer whether it is in use.
func weigh(layers []LayerInfo) []LayerInfo {
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
func surplus(layers []LayerInfo, keep time.Duration, quota int64, spares int) (LayerInfo, bool) {
	held, spare := int64(0), map[string]int{}
	for _, l := range layers {
		held += l.Bytes
		if !l.InUse {
			spare[l.project]++
		}
	}
	i := slices.IndexFunc(layers, func(l LayerInfo) bool {
		old := keep >= 0 && time.Since(l.LastUsed) >= keep
		return !l.InUse && (old || quota >= 0 && held > quota || spare[l.project] > spares)
	})
	if i < 0 {
		return LayerInfo{}, false
	}
	return layers[i], true
}

// Surplus returns those of the cached layers that TrimLayers would remove now, in that order.
func (m *Manager) Surplus(ctx context.Context) ([]LayerInfo, error) {
	return m.surplus(ctx, m.cache.Keep, m.cache.QuotaBytes)
}

func (m *Manager) surplus(ctx context.Context, keep time.Duration, quota int64) ([]LayerInfo, error) {
	layers, err := m.Layers(ctx)
	if err != nil {
		return nil, err
	}
	var goes []LayerInfo
	for {
		l, ok := surplus(layers, keep, quota, m.spares)
		if !ok {
			return goes, nil
		}
		goes = append(goes, l)
		layers = weigh(slices.DeleteFunc(layers, func(o LayerInfo) bool { return o.Tree == l.Tree }))
	}
}

// TrimLayers evicts by the cache's own bounds.
func (m *Manager) TrimLayers(ctx context.Context) (freed int64, err error) {
	return m.EvictLayers(ctx, m.cache.Keep, m.cache.QuotaBytes)
}

// standing returns the trees whose layers a workspace stands on. One without a record is of a crash, or
// is being made, which pins its layer. A record that cannot be read is an error: nobody knows what it keeps.
func (m *Manager) standing() (map[git.OID]bool, error) {
	used := map[git.OID]bool{}
	err := records(m.root, func(r record) {
		used[r.Tree] = true
		for _, below := range r.Layers {
			used[below] = true
		}
	})
	return used, err
}

// EvictLayers removes cached base layers that nothing stands on, the one used longest ago first: those not
// used for keep, then as many as it takes for all together to have at most quota bytes, and for each project to have few. A
// negative one is no limit. It returns the bytes of disk that were freed.
func (m *Manager) EvictLayers(ctx context.Context, keep time.Duration, quota int64) (freed int64, err error) {
	goes, err := m.surplus(ctx, keep, quota)
	if err != nil {
		return 0, err
	}
	for _, l := range goes {
		if ctx.Err() != nil {
			return freed, context.Cause(ctx)
		}
		gone, err := m.evict(ctx, l.Tree)
		if err != nil {
			return freed, fmt.Errorf("evict the layer of tree %.12s: %w", l.Tree, err)
		}
		if gone { // else it came into use
			freed += l.Bytes
		}
	}
	return freed, context.Cause(ctx)
}

// shedLayers evicts layers once there are many for the projects that have any.
func (m *Manager) shedLayers(ctx context.Context) error {
	entries, err := os.ReadDir(filepath.Join(m.root, "layers"))
	if errors.Is(err, os.ErrNotExist) || len(entries) < 3*m.spares {
		return nil
	}
	if err == nil {
		_, err = m.EvictLayers(ctx, -1, -1)
	}
	return err
}

// evict removes a layer unless something stands on it by now. It goes from its name by one rename.
func (m *Manager) evict(ctx context.Context, tree git.OID) (gone bool, err error) {
	path := m.layerPath(tree)
	err = m.busy.Alone(ctx, path, func() error {
		if err := whole.Remove(m.ops, "layer:clear", whole.Fresh(path)); err != nil {
			return err
		}
		if gone, err = m.retire(ctx, tree); err != nil || !gone {
			return err
		}
		return whole.Remove(m.ops, "layer:remove", whole.Fresh(path))
	})
	return gone, err
}

// retire takes a layer's name away if nothing stands on it, and nothing can come to stand on it meanwhile.
func (m *Manager) retire(ctx context.Context, tree git.OID) (bool, error) {
	m.pinMu.Lock()
	defer m.pinMu.Unlock()
	layers, err := m.layers(ctx)
	if err != nil {
		return false, err
	}
	free := slices.ContainsFunc(layers, func(l LayerInfo) bool { return l.Tree == tree && !l.InUse })
	if !free {
		return false, nil
	}
	path := m.layerPath(tree)
	return true, m.ops.Do("layer:retire", func() error { return os.Rename(path, whole.Fresh(path)) })
}
