package repository

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"sallyport/internal/base/git"
	"sallyport/internal/base/inert"
	"sallyport/internal/base/problem"
	"sallyport/internal/base/whole"
)

// Trim removes bases that nothing stands on and that were not used for as long as the cache keeps a layer, and the packs that no
// base is seen through any more. The last one used stays: what comes next grows from it. A base is stood on by a workspace, and by
// a ref of the host's that begins at it. A record that cannot be read stops it.
func (r *Store) Trim(ctx context.Context, host git.Dir) error {
	return r.busy.Alone(ctx, host.Path, func() error {
		views, err := r.sweepBases(host)
		if err != nil {
			return err
		}
		keep, err := r.neededBases(ctx, host, views)
		if err != nil {
			return fmt.Errorf("find the bases that are stood on in %q: %w", host.Path, err)
		}
		if len(keep) < len(views) {
			if err := r.ownBeyond(ctx, host, keep); err != nil {
				return fmt.Errorf("keep what refs reach beyond their bases in %q: %w", host.Path, err)
			}
		}
		seen, err := r.gather(ctx, host, keep)
		if err != nil {
			return err
		}
		for _, v := range views {
			if slices.Contains(keep, v) {
				continue
			}
			if err := r.dropView(ctx, host, v); err != nil {
				return err
			}
		}
		return r.dropPacks(host, func(pack string) bool { return !seen[pack] })
	})
}

// gather sees to it that what all bases share holds what the ones that stay reach, and returns the packs that it takes. A base whose
// packs were superseded by those of one that goes gets them back.
func (r *Store) gather(ctx context.Context, host git.Dir, keep []git.OID) (map[string]bool, error) {
	great, err := greatest(ctx, host, keep)
	if err != nil {
		return nil, err
	}
	seen := map[string]bool{}
	for _, base := range great {
		packs, err := viewPacks(host, base)
		if err != nil {
			return nil, err
		}
		for _, p := range packs {
			seen[p] = true
			if whole.Exists(filepath.Join(r.basesIn(host).Path, "objects/pack", p+".idx")) {
				continue
			}
			err := r.ops.Do("bases:return", func() error {
				return linkPack(filepath.Join(ViewObjects(host, base), "pack"), filepath.Join(r.basesIn(host).Path, "objects/pack"), p)
			})
			if err != nil {
				return nil, err
			}
		}
	}
	return seen, nil
}

// dropView lets go of a base; what refs name of it must be held otherwise.
func (r *Store) dropView(ctx context.Context, host git.Dir, base git.OID) error {
	at := view(host, base)
	return r.busy.Alone(ctx, at, func() error { return whole.Retire(r.ops, "bases", at) })
}

// sweepBases removes what a crash left half made of bases, and returns those that the host's repository holds, the last used first.
func (r *Store) sweepBases(host git.Dir) ([]git.OID, error) {
	entries, err := os.ReadDir(filepath.Join(host.Path, viewsFolder))
	if err != nil && !os.IsNotExist(err) {
		return nil, err
	}
	used := map[git.OID]time.Time{}
	var held []git.OID
	for _, e := range entries {
		base := git.OID(e.Name())
		if !base.Valid() {
			if err := whole.Remove(r.ops, "bases:clear", filepath.Join(host.Path, viewsFolder, e.Name())); err != nil {
				return nil, err
			}
			continue
		}
		info, err := e.Info()
		if err != nil {
			return nil, err
		}
		used[base] = info.ModTime()
		held = append(held, base)
	}
	slices.SortFunc(held, func(a, b git.OID) int { return used[b].Compare(used[a]) })
	return held, nil
}

// neededBases are those of some bases, the last used first, that stay.
func (r *Store) neededBases(ctx context.Context, host git.Dir, held []git.OID) (keep []git.OID, err error) {
	stood, err := r.stoodOn(ctx, host, held)
	if err != nil {
		return nil, err
	}
	for i, base := range held {
		st, err := os.Stat(view(host, base))
		if err != nil {
			return nil, err
		}
		if i == 0 || stood[base] || r.pins.Held(base) || time.Since(st.ModTime()) < r.Keeps {
			keep = append(keep, base)
		}
	}
	return keep, nil
}

// stoodOn are the bases that workspaces are shown, and those at which what refs name begins.
func (r *Store) stoodOn(ctx context.Context, host git.Dir, held []git.OID) (map[git.OID]bool, error) {
	stood, err := r.shownBases(host)
	if err != nil {
		return nil, err
	}
	refs, err := host.Refs(ctx, "refs/")
	if err != nil {
		return nil, err
	}
	var list strings.Builder
	for _, oid := range refs {
		stood[oid] = true
		list.WriteString(string(oid) + "\n")
	}
	for _, base := range held {
		list.WriteString("^" + string(base) + "\n")
	}
	out, err := host.Run(ctx, git.Cmd{Args: []string{"rev-list", "--boundary", "--stdin"}, Stdin: strings.NewReader(list.String())})
	if err != nil {
		return nil, err
	}
	for line := range strings.Lines(string(out)) {
		if base, ok := strings.CutPrefix(strings.TrimSpace(line), "-"); ok {
			stood[git.OID(base)] = true
		}
	}
	return stood, nil
}

// shownBases are the bases that workspaces are shown.
func (r *Store) shownBases(host git.Dir) (map[git.OID]bool, error) {
	shown := map[git.OID]bool{}
	err := r.Shown(func(objects string) {
		if above, base, ok := r.baseShown(objects); ok && above == host.Path {
			shown[base] = true
		}
	})
	return shown, err
}

// ownBeyond copies what refs reach beyond the bases that stay into the host's own objects: git writes no object that one of its
// repositories holds already, be it by another base.
func (r *Store) ownBeyond(ctx context.Context, host git.Dir, keep []git.OID) error {
	refs, err := host.Refs(ctx, "refs/")
	if err != nil {
		return err
	}
	var list strings.Builder
	beyond := false
	for _, oid := range refs {
		beyond = beyond || !slices.Contains(keep, oid)
		list.WriteString(string(oid) + "\n")
	}
	for _, base := range keep {
		list.WriteString("^" + string(base) + "\n")
	}
	if !beyond {
		return nil
	}
	_, err = host.Take(ctx, "bases:own", host, list.String())
	return err
}

// tornAfter is how old a file must be that git writes before it has its name, for nobody to be at work on it.
const tornAfter = time.Hour

// dropPacks removes packs of what all bases share, each by its index first, and what a crash left of one.
func (r *Store) dropPacks(host git.Dir, goes func(pack string) bool) error {
	folder := filepath.Join(host.Path, basesFolder, "objects", "pack")
	entries, err := os.ReadDir(folder)
	if os.IsNotExist(err) {
		return nil
	}
	if err != nil {
		return err
	}
	slices.SortStableFunc(entries, func(a, b os.DirEntry) int { return indexFirst(a.Name(), b.Name()) })
	for _, e := range entries {
		name, _, _ := strings.Cut(e.Name(), ".")
		gone := strings.HasPrefix(name, "pack-") && goes(name)
		if strings.HasPrefix(name, "tmp_") {
			info, err := e.Info()
			gone = err == nil && time.Since(info.ModTime()) > tornAfter
		}
		if !gone {
			continue
		}
		err := r.ops.Do("bases:drop", func() error { return os.Remove(filepath.Join(folder, e.Name())) })
		if err != nil && !os.IsNotExist(err) {
			return problem.Errorf(problem.Unavailable, "ls -l "+inert.Path(folder), "remove a pack of bases that are gone: %w", err)
		}
	}
	return nil
}

// indexFirst orders the files of packs so that git never finds an index whose pack is gone.
func indexFirst(a, b string) int {
	x, y := strings.HasSuffix(a, ".idx"), strings.HasSuffix(b, ".idx")
	switch {
	case x == y:
		return strings.Compare(a, b)
	case x:
		return -1
	}
	return 1
}
