package layer

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"time"

	"sallyport/internal/base/beneath"
	"sallyport/internal/base/disk"
	"sallyport/internal/base/git"
	"sallyport/internal/base/pattern"
	"sallyport/internal/base/whole"
	"sallyport/internal/port/sandbox"
)

// StockKind says which commands left a stock.
type StockKind string

const (
	Setup  StockKind = "setup"  // once per base and what it depends on: caches, and paths that the base ignores
	Checks StockKind = "checks" // from time to time: caches alone
)

// StockID names a stock. All of a family are good for the same; the generation tells them apart.
type StockID struct {
	Family     string // 32 hexadecimal digits: what it was made with, as 16, and by which commands
	Generation string // 12
}

// kin reports whether two families were made with the same, by whatever commands.
func kin(a, b string) bool { return a[:len(a)/2] == b[:len(b)/2] }

// String is the name of its folder.
func (s StockID) String() string { return s.Family + "-" + s.Generation }

var stockForm = pattern.Of(`^([0-9a-f]{32})-([0-9a-f]{12})$`)

// parseStock reads the name of a folder.
func parseStock(name string) (StockID, bool) {
	parts := stockForm().FindStringSubmatch(name)
	if parts == nil {
		return StockID{}, false
	}
	return StockID{Family: parts[1], Generation: parts[2]}, true
}

// StockNote lies in every stock: of what it was made.
type StockNote struct {
	Kind     StockKind `json:"kind"`
	Project  string    `json:"project"`          // name of the host's repository of it
	Branch   string    `json:"branch,omitempty"` // of the change that it was made for
	Base     git.OID   `json:"base"`             // commit that the commands ran on
	Tree     git.OID   `json:"tree"`
	Commands []string  `json:"commands"`
	Needs    string    `json:"needs,omitempty"` // of a setup, a digest of what its base depends on; "" = it is for that one commit
	On       string    `json:"on,omitempty"`    // name of the stock whose caches lie below
	Made     time.Time `json:"made"`
	Bytes    int64     `json:"bytes"` // of disk, without the stock below
	// Roots are the highest paths that hold what the commands left and nothing of the tree.
	Roots   []string `json:"roots,omitempty"`
	LeftOut []string `json:"left_out,omitempty"` // paths that the commands wrote and the base does not ignore, at most LeftOutMax
	Lost    int      `json:"lost,omitempty"`     // how many there were
}

const stockNoteName = "layer.json"

// LeftOutMax is how many paths a note names that were left out.
const LeftOutMax = 20

// Stock is what commands left that ran on a base which a person has: never what an agent, or the checks of a proposal,
// wrote. It is read-only from the moment it has its name.
type Stock struct {
	ID   StockID
	Note StockNote

	path string
}

// None reports whether there is no stock.
func (s Stock) None() bool { return s.path == "" }

// Cache is the layer of the folder of caches.
func (s Stock) Cache() string { return filepath.Join(s.path, "cache") }

// tree holds what stands at paths that the base ignores.
func (s Stock) tree() string { return filepath.Join(s.path, "tree") }

func (k *Stocks) path(name string) string { return filepath.Join(k.Root, name) }

// Tree is where the files of the stock of a name lie.
func (k *Stocks) Tree(name string) string { return Stock{path: k.path(name)}.tree() }

// errNote says that a note cannot be read.
var errNote = errors.New("it is not as it was written")

// open returns the stock of a name; os.ErrNotExist if there is none.
func (k *Stocks) open(id StockID) (Stock, error) {
	s := Stock{ID: id, path: k.path(id.String())}
	data, err := os.ReadFile(filepath.Join(s.path, stockNoteName))
	if err != nil {
		return Stock{}, err
	}
	if err := json.Unmarshal(data, &s.Note); err != nil {
		return Stock{ID: id, path: s.path}, fmt.Errorf("read the note of stock %s: %w: %w", id, errNote, err)
	}
	return s, nil
}

// Open returns exactly one, which stays until release is called; none if it is not there.
func (k *Stocks) Open(id StockID) (s Stock, release func(), err error) {
	release = k.pins.Hold(id.String())
	if s, err = k.open(id); err == nil {
		err = whole.NoteUse(k.ops, "layer:use", s.path)
	}
	if err == nil {
		return s, release, nil
	}
	release()
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return Stock{}, func() {}, err
}

// Shown returns the one of a name, which a workspace shows, which keeps it; none if it shows none.
func (k *Stocks) Shown(name string) (Stock, error) {
	id, ok := parseStock(name)
	if !ok {
		return Stock{}, nil
	}
	return k.open(id)
}

// Latest returns the youngest of a family that serves, else of its kin, which stays until release is called; none if there is none.
func (k *Stocks) Latest(family string, serves func(Stock) (bool, error)) (Stock, func(), error) {
	all, err := k.all()
	if err != nil {
		return Stock{}, func() {}, err
	}
	all = slices.DeleteFunc(all, func(s Stock) bool { return !kin(s.ID.Family, family) })
	slices.SortStableFunc(all, func(a, b Stock) int {
		if own := a.ID.Family == family; own != (b.ID.Family == family) {
			if own {
				return -1
			}
			return 1
		}
		return b.Note.Made.Compare(a.Note.Made)
	})
	for _, s := range all {
		if s.Note.Base == "" {
			continue
		}
		if ok, err := serves(s); err != nil {
			return Stock{}, func() {}, err
		} else if ok {
			return k.Open(s.ID)
		}
	}
	return Stock{}, func() {}, nil
}

// all reads what there is.
func (k *Stocks) all() ([]Stock, error) {
	entries, err := os.ReadDir(k.path(""))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	var all []Stock
	for _, e := range entries {
		id, ok := parseStock(e.Name())
		if !ok {
			continue // being made
		}
		s, err := k.open(id)
		if errors.Is(err, fs.ErrNotExist) {
			continue // it went meanwhile
		}
		if err != nil && !errors.Is(err, errNote) { // such a one serves nothing, and goes with its age
			return nil, err
		}
		all = append(all, s)
	}
	return all, nil
}

// Room is where a stock is made.
type Room struct {
	Cache sandbox.Cache // for the commands' sandbox: it takes what they write there; none where overlays cannot be shown

	ops  disk.Ops
	temp string
	note *StockNote
}

// Make makes a stock that is not there: run has the commands run, and an error of run leaves nothing. Below is the stock
// whose caches lie below, or none. A crash leaves nothing half: a stock appears by one rename, after its files
// are on disk. It stays until release is called.
func (k *Stocks) Make(ctx context.Context, id StockID, n StockNote, owner sandbox.Owner, below Stock, run func(Room) error) (s Stock,
	release func(), err error) {
	release = k.pins.Hold(id.String())
	path := k.path(id.String())
	err = k.busy.Alone(ctx, path, func() error {
		if s, err = k.open(id); !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		if err := k.fill(ctx, path, n, owner, below, run); err != nil {
			return errors.Join(err, whole.Remove(k.ops, "stock:clear", whole.Fresh(path)))
		}
		s, err = k.open(id)
		return err
	})
	if err != nil {
		release()
		return Stock{}, func() {}, err
	}
	return s, release, nil
}

func (k *Stocks) fill(ctx context.Context, path string, n StockNote, owner sandbox.Owner, below Stock, run func(Room) error) error {
	temp := whole.Fresh(path)
	if err := whole.MakeFolder(k.ops, filepath.Dir(path)); err != nil {
		return err
	}
	if err := whole.EmptyFolder(k.ops, "layer:clear", temp); err != nil {
		return err
	}
	cache, work := filepath.Join(temp, "cache"), filepath.Join(temp, "work")
	room := Room{ops: k.ops, temp: temp, note: &n}
	if k.Overlay {
		room.Cache = sandbox.Cache{Upper: cache, Work: work}
	}
	if !below.None() && k.Overlay {
		n.On, room.Cache.Layers = below.ID.String(), []string{below.Cache()}
	}
	err := k.ops.Do("stock:folders", func() error {
		return errors.Join(OwnFolder(cache, owner), OwnFolder(work, owner), OwnFolder(filepath.Join(temp, "tree"), ourselves()))
	})
	if err != nil {
		return err
	}
	if err := run(room); err != nil {
		return err
	}
	if err := whole.Remove(k.ops, "stock:clear", work); err != nil {
		return err
	}
	if err := k.ops.Do("stock:seal", func() error { return seal(temp) }); err != nil {
		return fmt.Errorf("seal what the commands left: %w", err)
	}
	if n.Bytes, err = beneath.AllocatedBelow(ctx, temp); err != nil {
		return err
	}
	data, err := json.Marshal(n)
	if err != nil {
		return err
	}
	err = k.ops.Do("stock:note", func() error { return os.WriteFile(filepath.Join(temp, stockNoteName), data, 0o644) })
	if err != nil {
		return err
	}
	return k.ops.Do("stock:commit", func() error { return whole.Commit(temp, path) })
}

// Source is a throw-away workspace, on which nothing runs any more.
type Source interface {
	// New returns the paths of what stands in it and not in its base: the files and links that the base ignores, and all else that
	// differs from the base.
	New(ctx context.Context) (ignored, others []string, err error)
	// OpenSide opens the folder that they are in; restore, which must be called, puts back what opening it took.
	OpenSide() (fd int, restore func(), err error)
	// Host is the host's repository that holds the base.
	Host() git.Dir
}

// Take moves what the commands left in a throw-away workspace into the stock: files and links at paths that the base ignores and does
// not have. All else they wrote stays out of it, and the note names it.
func (r Room) Take(ctx context.Context, w Source) error {
	new, others, err := w.New(ctx)
	if err != nil {
		return err
	}
	r.note.Lost += len(others)
	r.note.LeftOut = append(r.note.LeftOut, others[:min(len(others), LeftOutMax-len(r.note.LeftOut))]...)
	if r.note.Roots, err = rootsOf(ctx, w.Host(), r.note.Tree, new); err != nil {
		return err
	}
	from, restore, err := w.OpenSide()
	if err != nil {
		return err
	}
	defer restore()
	defer closeFD(from)
	return r.ops.Do("stock:take", func() error { return moveAll(from, filepath.Join(r.temp, "tree"), new) })
}

// rootsOf returns the highest paths above some, or themselves, that a tree does not have.
func rootsOf(ctx context.Context, host git.Dir, tree git.OID, paths []string) ([]string, error) {
	has := map[string]bool{".": true}
	var folders []string
	for _, p := range paths {
		for up := path.Dir(p); up != "."; up = path.Dir(up) {
			if _, known := has[up]; known {
				break
			}
			has[up] = false
			folders = append(folders, up)
		}
	}
	found, err := host.Lookup(ctx, tree, folders)
	if err != nil {
		return nil, err
	}
	for i, f := range folders {
		has[f] = !found[i].Absent()
	}
	var roots []string
	for _, p := range paths {
		for !has[path.Dir(p)] {
			p = path.Dir(p)
		}
		roots = append(roots, p)
	}
	slices.Sort(roots)
	return slices.Compact(roots), nil
}

// Fits reports whether what a stock shows stands beside all that a tree has: it takes the place of nothing, and stands in folders
// that the tree has too.
func Fits(ctx context.Context, host git.Dir, s Stock, tree git.OID) (bool, error) {
	if s.Note.Tree == tree {
		return true, nil
	}
	var above []string
	for _, root := range s.Note.Roots {
		if folder := path.Dir(root); folder != "." {
			above = append(above, folder)
		}
	}
	found, err := host.Lookup(ctx, tree, append(above, s.Note.Roots...))
	if err != nil {
		return false, fmt.Errorf("compare what commands left with tree %.12s: %w", tree, err)
	}
	for i, e := range found {
		if i < len(above) && e.Mode != git.Folder || i >= len(above) && !e.Absent() {
			return false, nil
		}
	}
	return true, nil
}
