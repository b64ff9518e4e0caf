package repository

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"sallyport/internal/base/git"
)

// stage is one pack of a base. It and the packs before it hold all that a commit reaches.
type stage struct {
	pack   string  // name without what follows the dot
	commit git.OID // the base itself, or one that it grew from
}

const stagesName = "stages"

// stagesOf reads the stages of a held base, the oldest first. Of a base that an older sallyport copied nobody knows in which order
// its packs came: there all of them are one stage.
func stagesOf(host git.Dir, base git.OID) ([]stage, error) {
	if base == "" {
		return nil, nil
	}
	data, err := os.ReadFile(filepath.Join(view(host, base), stagesName))
	if err != nil && !os.IsNotExist(err) {
		return nil, err
	}
	var stages []stage
	for line := range strings.Lines(string(data)) {
		pack, commit, _ := strings.Cut(strings.TrimSpace(line), " ")
		if !git.OID(commit).Valid() || filepath.Base(pack) != pack {
			return nil, fmt.Errorf("the line %q of the stages of base %.12s names no pack and commit", line, base)
		}
		stages = append(stages, stage{pack, git.OID(commit)})
	}
	if len(stages) > 0 {
		return stages, nil
	}
	packs, err := viewPacks(host, base)
	for _, pack := range packs {
		stages = append(stages, stage{pack, base})
	}
	return stages, err
}

// writeStages writes the stages of a base into its view.
func writeStages(view string, stages []stage) error {
	var b strings.Builder
	for _, s := range stages {
		fmt.Fprintf(&b, "%s %s\n", s.pack, s.commit)
	}
	return os.WriteFile(filepath.Join(view, stagesName), []byte(b.String()), 0o644)
}

// viewPacks returns the names of a view's packs, without what follows the dot.
func viewPacks(host git.Dir, base git.OID) ([]string, error) {
	entries, err := os.ReadDir(filepath.Join(ViewObjects(host, base), "pack"))
	if err != nil {
		return nil, err
	}
	var packs []string
	for _, e := range entries {
		if name, ok := strings.CutSuffix(e.Name(), ".pack"); ok {
			packs = append(packs, name)
		}
	}
	return packs, nil
}

// lasting returns the stages of a held base that the next one is seen through as well. What the others hold is packed again with what
// is new, as one: so each pack is at least twice as large as all that come after it, however many bases grow from each other, and
// an object is packed again about as often as the number of packs grows by one. What came first, the whole, is never packed again.
func lasting(host git.Dir, base git.OID, stages []stage) ([]stage, error) {
	first := 0
	for first < len(stages) && stages[first].commit == stages[0].commit {
		first++
	}
	sizes := make([]int64, len(stages)-first)
	for i, s := range stages[first:] {
		st, err := os.Stat(filepath.Join(ViewObjects(host, base), "pack", s.pack+".pack"))
		if err != nil {
			return nil, err
		}
		sizes[i] = st.Size()
	}
	return stages[:first+git.Geometric(sizes)], nil
}

// supersede removes from what all bases share the packs of stages whose objects the newest base has in its own pack. Views that show
// them have them by names of their own.
func (r *Store) supersede(host git.Dir, stages []stage) error {
	gone := make(map[string]bool, len(stages))
	for _, s := range stages {
		gone[s.pack] = true
	}
	return r.dropPacks(host, func(pack string) bool { return gone[pack] })
}

// greatest returns those of some bases that no other of them reaches: what these are seen through holds all that any of them reaches.
func greatest(ctx context.Context, host git.Dir, bases []git.OID) ([]git.OID, error) {
	if len(bases) < 2 {
		return bases, nil
	}
	args := []string{"merge-base", "--independent"}
	for _, b := range bases {
		args = append(args, string(b))
	}
	out, err := host.Run(ctx, git.Cmd{Args: args})
	if err != nil {
		return nil, fmt.Errorf("find the bases that no other one reaches: %w", err)
	}
	var great []git.OID
	for _, oid := range strings.Fields(string(out)) {
		great = append(great, git.OID(oid))
	}
	return slices.Clip(great), nil
}
