package repository

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"sallyport/internal/base/git"
	"sallyport/internal/base/whole"
)

// Tend keeps what every change adds to at a size that does not grow with their number: the bases of a project that are held, and
// the packs of the host's own. Nothing is lost by it: what a ref or a workspace needs stays.
func (r *Store) Tend(ctx context.Context) error {
	hosts, err := r.All()
	if err != nil {
		return err
	}
	for _, host := range hosts {
		if err := r.shed(ctx, host); err != nil {
			return fmt.Errorf("let go of bases in %q: %w", host.Path, err)
		}
		if err := r.mergePacks(ctx, host); err != nil {
			return fmt.Errorf("make fewer packs of those in %q: %w", host.Path, err)
		}
	}
	return nil
}

// shed lets go of bases that no workspace is shown, the ones used longest ago first, as far as another one reaches them: what refs
// name is held all the same.
func (r *Store) shed(ctx context.Context, host git.Dir) error {
	entries, err := os.ReadDir(filepath.Join(host.Path, viewsFolder))
	if os.IsNotExist(err) || len(entries) < 2*r.Most {
		return nil
	}
	if err != nil {
		return err
	}
	return r.busy.Alone(ctx, host.Path, func() error {
		views, err := r.sweepBases(host)
		if err != nil || len(views) < 2*r.Most {
			return err
		}
		shown, err := r.shownBases(host)
		if err != nil {
			return err
		}
		great, err := greatest(ctx, host, views)
		if err != nil {
			return err
		}
		for _, v := range views[r.Most:] {
			if shown[v] || slices.Contains(great, v) || r.pins.Held(v) {
				continue
			}
			if err := r.dropView(ctx, host, v); err != nil {
				return err
			}
		}
		return nil
	})
}

// ownPack is a pack of the host's own objects.
type ownPack struct {
	name  string // without what follows the dot
	bytes int64
}

// ownPacks lists the packs that are whole and that nobody is about to name, the largest first.
func ownPacks(folder string) ([]ownPack, error) {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return nil, err
	}
	var packs []ownPack
	for _, e := range entries {
		name, ok := strings.CutSuffix(e.Name(), ".idx")
		if !ok || !strings.HasPrefix(name, "pack-") || whole.Exists(filepath.Join(folder, name+".keep")) {
			continue
		}
		st, err := os.Stat(filepath.Join(folder, name+".pack"))
		if err != nil {
			return nil, err
		}
		packs = append(packs, ownPack{name, st.Size()})
	}
	slices.SortFunc(packs, func(a, b ownPack) int {
		return cmp.Or(cmp.Compare(b.bytes, a.bytes), cmp.Compare(a.name, b.name))
	})
	return packs, nil
}

// mergePacks makes one pack of the smaller ones of the host's own, and of its loose objects: each that stays is at least twice as large as
// all that are smaller. The new one is whole, and on disk, before the first of the others goes. Git looks again when one that it was about
// to read is gone, so nobody has to wait.
func (r *Store) mergePacks(ctx context.Context, host git.Dir) error {
	folder := filepath.Join(host.Path, "objects/pack")
	packs, err := ownPacks(folder)
	if os.IsNotExist(err) || len(packs) <= r.Most {
		return nil
	}
	if err != nil {
		return err
	}
	sizes := make([]int64, len(packs))
	for i, p := range packs {
		sizes[i] = p.bytes
	}
	small := packs[git.Geometric(sizes):]
	var list strings.Builder
	for _, p := range small {
		list.WriteString(p.name + ".pack\n")
	}
	out, err := host.Do(ctx, "repository:merge", git.Cmd{
		Args:  []string{"pack-objects", "--stdin-packs", "--unpacked", "--delta-base-offset", "--non-empty", "-q", filepath.Join(folder, "pack")},
		Stdin: strings.NewReader(list.String()),
	})
	if err != nil {
		return err
	}
	made := "pack-" + strings.TrimSpace(string(out))
	if !whole.Exists(filepath.Join(folder, made+".idx")) {
		return fmt.Errorf("git made no pack of the name %q", made)
	}
	if err := r.ops.Do("repository:sync", func() error { return whole.Sync(folder) }); err != nil {
		return err
	}
	for _, p := range small {
		if p.name == made {
			continue
		}
		err := r.ops.Do("repository:drop", func() error {
			for _, kind := range []string{".idx", ".rev", ".pack"} {
				if err := os.Remove(filepath.Join(folder, p.name+kind)); err != nil && !os.IsNotExist(err) {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	_, err = host.Do(ctx, "repository:loose", git.Cmd{Args: []string{"prune-packed", "-q"}})
	return err
}
