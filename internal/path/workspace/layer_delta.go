package workspace

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"sallyport/internal/base/disk"
	"sallyport/internal/base/git"
	"sallyport/internal/port/sandbox"
)

const (
	// layersMax is how many layers stand on each other. One more is full again: every layer costs each
	// look-up of a name that is not there, and a mount takes so many without a thought for its options' length.
	layersMax = 20
	// parentsMax is how many cached layers a new one is compared with.
	parentsMax = 8
	// nearEdits is a difference so small that no nearer layer is looked for, and no tree is too small for.
	nearEdits = 200
	// historyMax is how far back an ancestor is looked for.
	historyMax = 200
)

// errNoParent says that a layer is best made by itself.
var errNoParent = errors.New("no layer to stand on")

// parent is a cached layer that a new one can stand on.
type parent struct {
	Layer
	note  note
	edits []git.Edit // from it to the new one
}

// layOver makes a layer at temp from a cached one that is near, writing only what differs; errNoParent
// if there is none, or if this disk does not hold what differs.
func (m *Manager) layOver(ctx context.Context, a ask, temp string) (note, error) {
	p, release, err := m.nearest(ctx, a)
	if err != nil {
		return note{}, err
	}
	defer release()
	if showable(a.host, p.edits, a.tree) != nil {
		return note{}, errNoParent // git says what is wrong with it
	}
	if len(p.chain) >= layersMax {
		return m.flatten(ctx, a, p, temp)
	}
	if err := m.emptyFolder(temp); err != nil {
		return note{}, err
	}
	tree := filepath.Join(temp, "tree")
	if err := m.ops.Do("layer:folder", func() error { return ownFolder(tree, ourselves()) }); err != nil {
		return note{}, err
	}
	err = m.advance(ctx, a, p, temp, true)
	if errors.Is(err, errNoWhiteouts) {
		return note{}, errNoParent
	}
	if err != nil {
		return note{}, err
	}
	n := note{Parents: p.chain, Ignore: p.ignore, Files: p.note.Files + growth(p.edits)}
	if slices.ContainsFunc(p.edits, func(e git.Edit) bool { return path.Base(e.Path) == ".gitignore" }) {
		n.Ignore = ""
		n.Files, err = m.ignoreFiles(ctx, a.host, a.tree, filepath.Join(temp, "ignore"))
	}
	return n, err
}

// flatten makes a full layer from one that stands on too many. Where blocks can be shared that is a copy of
// what they show, else git checks it out as fast as anything is copied.
func (m *Manager) flatten(ctx context.Context, a ask, p parent, temp string) (note, error) {
	if !m.sharesBlocks() {
		return note{}, errNoParent
	}
	if err := m.emptyFolder(temp); err != nil {
		return note{}, err
	}
	tree := filepath.Join(temp, "tree")
	if err := m.ops.Do("layer:copy", func() error { return copyBase(p.Trees, tree, ourselves(), true) }); err != nil {
		return note{}, err
	}
	if err := m.advance(ctx, a, p, temp, false); err != nil {
		return note{}, err
	}
	files, err := m.ignoreFiles(ctx, a.host, a.tree, filepath.Join(temp, "ignore"))
	return note{Files: files}, err
}

// advance writes what differs from the parent below temp, over it or into a copy of it, and an index of the new tree
// with the stat data of all files: the parent's, with what was written in its place. Git would read every folder for that.
func (m *Manager) advance(ctx context.Context, a ask, p parent, temp string, over bool) error {
	tree := filepath.Join(temp, "tree")
	s := showing{host: a.host, op: "layer:lay", tree: a.tree, edits: p.edits}
	if err := m.lay(ctx, s, layout{top: tree, owner: ourselves(), overlay: over}); err != nil {
		return err
	}
	raw, err := os.ReadFile(p.Index)
	if err != nil {
		return err
	}
	index, err := git.ParseIndex(raw, formatOf(a.tree))
	if err != nil {
		return err
	}
	set := make(map[string]git.Staged, len(p.edits))
	for _, e := range p.edits {
		staged := git.Staged{Entry: e.New}
		if !e.New.Absent() {
			if staged.Stat, err = statOf(filepath.Join(tree, e.Path)); err != nil {
				return err
			}
		}
		set[e.Path] = staged
	}
	if raw, err = index.Replace(set); err != nil {
		return err
	}
	return m.ops.Do("layer:index", func() error { return os.WriteFile(filepath.Join(temp, "index"), raw, 0o644) })
}

// statOf is what an index remembers of a file or link.
func statOf(path string) (git.Stat, error) {
	var st unix.Stat_t
	if err := unix.Lstat(path, &st); err != nil {
		return git.Stat{}, &os.PathError{Op: "lstat", Path: path, Err: err}
	}
	return git.Stat{
		CtimeSec: uint32(st.Ctim.Sec), CtimeNsec: uint32(st.Ctim.Nsec), MtimeSec: uint32(st.Mtim.Sec), MtimeNsec: uint32(st.Mtim.Nsec),
		Dev: uint32(st.Dev), Ino: uint32(st.Ino), UID: st.Uid, GID: st.Gid, Size: uint32(st.Size),
	}, nil
}

// growth is how many files more there are after edits.
func growth(edits []git.Edit) int {
	n := 0
	for _, e := range edits {
		if e.Old.Absent() {
			n++
		}
		if e.New.Absent() {
			n--
		}
	}
	return n
}

// nearest returns the cached layer with the least difference to what is wanted, which stays until release is
// called. Few are compared: those of the commit's own ancestors first, then what was used last.
func (m *Manager) nearest(ctx context.Context, a ask) (best parent, release func(), err error) {
	found, err := m.cached(ctx)
	if err != nil {
		return parent{}, nil, err
	}
	project := filepath.Base(a.host.Path)
	found = slices.DeleteFunc(found, func(c cached) bool { return c.note.Project != project || c.tree == a.tree })
	if len(found) == 0 {
		return parent{}, nil, errNoParent
	}
	age, err := ancestors(ctx, a)
	if err != nil {
		return parent{}, nil, err
	}
	far := func(c cached) int {
		if n, ok := age[c.tree]; ok {
			return n
		}
		return historyMax
	}
	slices.SortStableFunc(found, func(a, b cached) int {
		return cmp.Or(cmp.Compare(far(a), far(b)), b.used.Compare(a.used))
	})
	for _, c := range found[:min(len(found), parentsMax)] {
		p, leave, err := m.compare(ctx, a, c)
		if err != nil {
			if ctx.Err() != nil {
				return parent{}, nil, err
			}
			continue // its objects or its files are not there any more
		}
		if best.chain != nil && len(p.edits) >= len(best.edits) || len(p.edits) > min(editsMax, max(nearEdits, c.note.Files/2)) {
			leave()
			continue
		}
		if best.chain != nil {
			release()
		}
		best, release = p, leave
		if len(p.edits) <= nearEdits {
			break
		}
	}
	if best.chain == nil {
		return parent{}, nil, errNoParent
	}
	return best, release, nil
}

// compare opens a cached layer and finds the difference.
func (m *Manager) compare(ctx context.Context, a ask, c cached) (parent, func(), error) {
	release := m.pin(c.tree)
	l, n, err := m.openLayer(c.tree)
	var edits []git.Edit
	if err == nil {
		edits, err = a.host.Edits(ctx, c.tree, a.tree)
	}
	if err != nil {
		release()
		return parent{}, nil, err
	}
	return parent{l, n, edits}, release, nil
}

// ancestors returns how many commits ago, by first parents, the branch had a tree.
func ancestors(ctx context.Context, a ask) (map[git.OID]int, error) {
	age := map[git.OID]int{}
	if a.commit == "" {
		return age, nil
	}
	out, err := a.host.Run(ctx, git.Cmd{Args: []string{"rev-list", "--first-parent", fmt.Sprintf("--max-count=%d", historyMax), "--no-commit-header", "--format=%T", string(a.commit)}})
	if err != nil {
		return nil, err
	}
	for i, tree := range strings.Fields(string(out)) {
		if _, ok := age[git.OID(tree)]; !ok {
			age[git.OID(tree)] = i
		}
	}
	return age, nil
}

// sharesBlocks reports whether copies of files cost no blocks where layers lie.
func (m *Manager) sharesBlocks() bool {
	if m.strategy == Reflink {
		return true
	}
	found, err := Probe(m.ops, m.root, false)
	return err == nil && found == Reflink
}

// ProbeDeltas tries in a folder whether a new base can be laid over an older one: whether a deletion can be
// written. If not, every base is checked out whole, which the error says.
func ProbeDeltas(ops disk.Ops, root string) error {
	return ops.Do("delta:probe", func() error {
		folder, err := os.MkdirTemp(root, ".probe-")
		if err != nil {
			return err
		}
		l := layout{top: folder, owner: ourselves(), overlay: true, made: map[string]bool{}}
		return errors.Join(l.hide("deleted"), removeAll(folder))
	})
}

// ourselves is whom the cache belongs to.
func ourselves() sandbox.Owner {
	return sandbox.Owner{UID: uint32(os.Geteuid()), GID: uint32(os.Getegid())}
}
