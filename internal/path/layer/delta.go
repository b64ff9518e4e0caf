package layer

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

	"sallyport/internal/base/beneath"
	"sallyport/internal/base/disk"
	"sallyport/internal/base/git"
	"sallyport/internal/base/whole"
)

const (
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
// if there is none, or if this disk does not hold what differs. What it stands on stays until release, which is never nil.
func (k *Store) layOver(ctx context.Context, a ask, temp string) (n note, release func(), err error) {
	p, release, err := k.nearest(ctx, a)
	if err != nil {
		return note{}, func() {}, err
	}
	if Showable(a.host, p.edits, a.tree) != nil {
		return note{}, release, errNoParent // git says what is wrong with it
	}
	if err := whole.EmptyFolder(k.ops, "layer:clear", temp); err != nil {
		return note{}, release, err
	}
	tree := filepath.Join(temp, "tree")
	if err := k.ops.Do("layer:folder", func() error { return OwnFolder(tree, ourselves()) }); err != nil {
		return note{}, release, err
	}
	err = k.advance(ctx, a, p, temp)
	if errors.Is(err, ErrNoWhiteouts) {
		return note{}, release, errNoParent
	}
	if err != nil {
		return note{}, release, err
	}

	n = note{Parents: p.chain, Ignore: p.ignore, Files: p.note.Files + growth(p.edits), Edits: len(p.edits)}
	if slices.ContainsFunc(p.edits, func(e git.Edit) bool { return path.Base(e.Path) == ".gitignore" }) {
		n.Ignore = ""
		n.Files, err = k.writeIgnoreFiles(ctx, a.host, a.tree, filepath.Join(temp, "ignore"))
	}
	return n, release, err
}

// advance writes what differs from the parent below temp, over it. It writes an index of the new tree as well, with the stat data of
// all files: the parent's, with what was written in its place. Git would read every folder for that.
func (k *Store) advance(ctx context.Context, a ask, p parent, temp string) error {
	tree := filepath.Join(temp, "tree")
	s := Showing{Host: a.host, Op: "layer:lay", Tree: a.tree, Edits: p.edits}
	if err := Lay(ctx, k.ops, s, Layout{Top: tree, Owner: ourselves(), Overlay: true}); err != nil {
		return err
	}
	raw, err := os.ReadFile(p.Index)
	if err != nil {
		return err
	}
	index, err := git.ParseIndex(raw, a.tree.Format())
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
	return k.ops.Do("layer:index", func() error { return os.WriteFile(filepath.Join(temp, "index"), raw, 0o644) })
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

// nearest returns the cached layer with the least difference to what is wanted, or one that it stands on, which stays until release is
// called. Few are compared: those of the commit's own ancestors first, then what was used last.
func (k *Store) nearest(ctx context.Context, a ask) (best parent, release func(), err error) {
	before, err := ancestors(ctx, a)
	if err != nil {
		return parent{}, nil, err
	}
	project := filepath.Base(a.host.Path)
	for _, tree := range before { // mostly the first, and then nobody has to look at all that there are
		n, err := readNote(k.path(tree))
		if err != nil || n.Project != project || tree == a.tree {
			continue
		}
		if p, leave, err := k.compare(ctx, a, tree); err == nil && len(p.edits) <= nearEdits {
			return k.lower(ctx, a, p, leave)
		} else if err == nil {
			leave()
		}
		break
	}
	found, err := k.cached(ctx)
	if err != nil {
		return parent{}, nil, err
	}
	found = slices.DeleteFunc(found, func(c cached) bool { return c.note.Project != project || c.tree == a.tree })
	far := func(c cached) int {
		if n := slices.Index(before, c.tree); n >= 0 {
			return n
		}
		return historyMax
	}
	slices.SortStableFunc(found, func(a, b cached) int {
		return cmp.Or(cmp.Compare(far(a), far(b)), b.used.Compare(a.used))
	})
	for _, c := range found[:min(len(found), parentsMax)] {
		p, leave, err := k.compare(ctx, a, c.tree)
		if err != nil {
			if ctx.Err() != nil {
				return parent{}, nil, err
			}
			continue // its objects or its files are not there any more
		}
		if best.chain != nil && len(p.edits) >= len(best.edits) || p.far() {
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
	return k.lower(ctx, a, best, release)
}

// far reports whether so much differs that a layer is best made by itself.
func (p parent) far() bool { return len(p.edits) > min(EditsMax, max(nearEdits, p.note.Files/2)) }

// lower returns what a new layer stands on instead of the nearest one: that, without those on its top that together hold half as much as
// what is below them, or more. What they hold is written again as one, so each of a stack holds at least twice as much as all that stand
// on it. A stack is as high as the logarithm of what differs, and no base is copied as a whole because many came after it.
func (k *Store) lower(ctx context.Context, a ask, p parent, release func()) (parent, func(), error) {
	sizes := make([]int64, 0, len(p.chain))
	for _, tree := range p.chain[1:] {
		n, err := readNote(k.path(tree))
		if err != nil {
			release()
			return parent{}, nil, err
		}
		sizes = append(sizes, int64(n.Edits))
	}
	keep := 1 + git.Geometric(sizes)
	if keep == len(p.chain) {
		return p, release, nil
	}
	defer release()
	under, leave, err := k.compare(ctx, a, p.chain[keep-1])
	if err == nil && under.far() {
		leave()
		err = errNoParent
	}
	return under, leave, err
}

// compare opens a cached layer and finds the difference.
func (k *Store) compare(ctx context.Context, a ask, tree git.OID) (parent, func(), error) {
	release := k.pins.Hold(tree)
	l, n, err := k.open(tree)
	var edits []git.Edit
	if err == nil {
		edits, err = a.host.Edits(ctx, tree, a.tree)
	}
	if err != nil {
		release()
		return parent{}, nil, err
	}
	return parent{l, n, edits}, release, nil
}

// ancestors returns the trees that the branch had, by first parents, the last first.
func ancestors(ctx context.Context, a ask) ([]git.OID, error) {
	if a.commit == "" {
		return nil, nil
	}
	out, err := a.host.Run(ctx, git.Cmd{Args: []string{"rev-list", "--first-parent", fmt.Sprintf("--max-count=%d", historyMax),
		"--no-commit-header", "--format=%T", string(a.commit)}})
	if err != nil {
		return nil, err
	}
	var trees []git.OID
	for _, tree := range strings.Fields(string(out)) {
		trees = append(trees, git.OID(tree))
	}
	return trees, nil
}

// ProbeDeltas tries in a folder whether a new base can be laid over an older one: whether a deletion can be
// written. If not, every base is checked out whole, which the error says.
func ProbeDeltas(ops disk.Ops, root string) error {
	return ops.Do("delta:probe", func() error {
		folder, err := os.MkdirTemp(root, ".probe-")
		if err != nil {
			return err
		}
		l := Layout{Top: folder, Owner: ourselves(), Overlay: true, made: map[string]bool{}}
		return errors.Join(l.hide("deleted"), beneath.RemoveAll(folder))
	})
}
