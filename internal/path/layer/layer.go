package layer

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"

	"golang.org/x/sys/unix"

	"sallyport/internal/base/beneath"
	"sallyport/internal/base/git"
	"sallyport/internal/base/whole"
)

// Layer is the read-only tree of one tree id, made once and shared by every workspace on it:
// a full one, or what differs from an older one, with all that one stands on.
type Layer struct {
	Trees  []string // folders, lowest first; the lowest has an empty .git for a mount
	Index  string   // git index with the stat data of Trees
	Ignore string   // folder with the .gitignore files alone

	chain  []git.OID // whose Trees are
	ignore git.OID   // whose Ignore is
}

// note lies in every layer: what it stands on, and what choosing among layers takes.
type note struct {
	Parents []git.OID `json:"parents,omitempty"` // the layers below, lowest first; none = a full one
	Ignore  git.OID   `json:"ignore,omitempty"`  // the layer below that has the .gitignore files; "" = itself
	Project string    `json:"project"`           // name of the host's repository that has the tree
	Files   int       `json:"files"`             // about; of the whole tree
	Edits   int       `json:"edits,omitempty"`   // paths that differ from the layers below; 0 = nobody counted
	Bytes   int64     `json:"bytes"`             // of disk, without the layers below
}

const noteName = "layer.json"

// ask is a layer that is wanted.
type ask struct {
	host   git.Dir
	tree   git.OID
	commit git.OID // has that tree; "" = none is known
}

func (k *Store) path(tree git.OID) string {
	return filepath.Join(k.Root, string(tree))
}

// Of describes the layer of the last tree of a chain, lowest first; the .gitignore files of one of it count.
func (k *Store) Of(chain []git.OID, ignore git.OID) Layer {
	l := Layer{chain: chain, ignore: ignore}
	for _, tree := range chain {
		l.Trees = append(l.Trees, filepath.Join(k.path(tree), "tree"))
	}
	l.Index = filepath.Join(k.path(chain[len(chain)-1]), "index")
	l.Ignore = filepath.Join(k.path(ignore), "ignore")
	return l
}

// readNote reads the note of the layer at path; one that an older version made has none, and is full.
func readNote(path string) (note, error) {
	var n note
	data, err := os.ReadFile(filepath.Join(path, noteName))
	if errors.Is(err, os.ErrNotExist) {
		_, err = os.Lstat(filepath.Join(path, "tree"))
		return n, err
	}
	if err != nil {
		return n, err
	}
	if err := json.Unmarshal(data, &n); err != nil {
		return n, fmt.Errorf("read the note of layer %s: %w", filepath.Base(path), err)
	}
	return n, nil
}

// open returns the layer of a tree; os.ErrNotExist if it, or one that it stands on, is not there.
func (k *Store) open(tree git.OID) (Layer, note, error) {
	n, err := readNote(k.path(tree))
	if err != nil {
		return Layer{}, n, err
	}
	if n.Ignore == "" {
		n.Ignore = tree
	}
	l := k.Of(append(n.Parents[:len(n.Parents):len(n.Parents)], tree), n.Ignore)
	for _, folder := range l.Trees {
		if _, err := os.Lstat(folder); err != nil {
			return Layer{}, n, err
		}
	}
	return l, n, nil
}

// Open returns the layer of a tree, making it if there is none: as what differs from a cached one where
// one is near, commit being one that has the tree, or "". It stays until release is called; after that
// the record of a workspace or of a layer on it keeps it. A crash leaves nothing half: a
// layer appears by one rename, after its files are on disk.
func (k *Store) Open(ctx context.Context, host git.Dir, tree, commit git.OID) (l Layer, release func(), err error) {
	if !tree.Valid() {
		return Layer{}, nil, fmt.Errorf("%q is no tree", tree)
	}
	release = k.pins.Hold(tree)
	if l, _, err = k.open(tree); errors.Is(err, os.ErrNotExist) {
		err = k.busy.Alone(ctx, k.path(tree), func() error {
			if l, _, err = k.open(tree); !errors.Is(err, os.ErrNotExist) {
				return err
			}
			if err := k.make(ctx, ask{host, tree, commit}); err != nil {
				return err
			}
			l, _, err = k.open(tree)
			return err
		})
	}
	if err == nil {
		err = k.NoteUse(tree)
	}
	if err != nil {
		release()
		return Layer{}, nil, fmt.Errorf("make the layer of tree %.12s: %w", tree, err)
	}
	return l, release, nil
}

// NoteUse notes that a layer is of use now, to the minute.
func (k *Store) NoteUse(tree git.OID) error { return whole.NoteUse(k.ops, "layer:use", k.path(tree)) }

// make makes a layer that is not there, or that stands on one which is not there.
func (k *Store) make(ctx context.Context, a ask) error {
	path := k.path(a.tree)
	temp := whole.Fresh(path)
	if err := whole.MakeFolder(k.ops, filepath.Dir(path)); err != nil {
		return err
	}
	if err := whole.Remove(k.ops, "layer:clear", path); err != nil {
		return err
	}
	n, release, err := note{}, func() {}, errNoParent
	if !k.Whole {
		n, release, err = k.layOver(ctx, a, temp)
	}
	defer release() // once the note names what it stands on, that stays by itself
	if errors.Is(err, errNoParent) {
		n, err = k.makeFull(ctx, a, temp)
	}
	if err != nil {
		return err
	}
	n.Project = filepath.Base(a.host.Path)
	if n.Bytes, err = beneath.AllocatedBelow(ctx, temp); err != nil {
		return err
	}
	data, err := json.Marshal(n)
	if err != nil {
		return err
	}
	err = k.ops.Do("layer:note", func() error { return os.WriteFile(filepath.Join(temp, noteName), data, 0o644) })
	if err != nil {
		return err
	}
	return k.ops.Do("layer:commit", func() error { return whole.Commit(temp, path) })
}

// makeFull checks a whole tree out.
func (k *Store) makeFull(ctx context.Context, a ask, temp string) (note, error) {
	if err := whole.EmptyFolder(k.ops, "layer:clear", temp); err != nil {
		return note{}, err
	}
	if err := k.checkout(ctx, a.host, a.tree, filepath.Join(temp, "tree"), filepath.Join(temp, "index")); err != nil {
		return note{}, err
	}
	files, err := k.writeIgnoreFiles(ctx, a.host, a.tree, filepath.Join(temp, "ignore"))
	return note{Files: files}, err
}

// checkout writes a tree into a new folder, bytes as they are, and an index with its
// stat data. The folder gets an empty .git for a mount.
func (k *Store) checkout(ctx context.Context, host git.Dir, tree git.OID, folder, index string) error {
	err := k.ops.Do("layer:folder", func() error {
		if err := os.MkdirAll(folder, 0o755); err != nil {
			return err
		}
		return os.Chmod(folder, 0o755)
	})
	if err != nil {
		return err
	}
	env := []string{"GIT_INDEX_FILE=" + index, "GIT_WORK_TREE=" + folder}
	if _, err := host.Do(ctx, "layer:index", git.Cmd{Args: []string{"read-tree", string(tree)}, Env: env, Dir: folder}); err != nil {
		return err
	}
	_, err = host.Do(ctx, "layer:checkout", git.Cmd{
		Args: []string{"checkout-index", "--all", "--index", "--quiet"}, Env: env, Dir: folder,
		Config: []string{"core.bare=false", "core.symlinks=true", "core.fileMode=true", "checkout.workers=0"},
	})
	if err != nil {
		return err
	}
	return k.ops.Do("layer:modes", func() error {
		if err := os.Mkdir(filepath.Join(folder, ".git"), 0o755); err != nil && !os.IsExist(err) {
			return err
		}
		return openModes(folder)
	})
}

// openModes gives every file the mode that git would give it under umask 022, whatever the host's umask is.
func openModes(folder string) error {
	return filepath.WalkDir(folder, func(p string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() && !d.Type().IsRegular() {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		want := fs.FileMode(0o644)
		if d.IsDir() || info.Mode()&0o100 != 0 {
			want = 0o755
		}
		if info.Mode().Perm() == want {
			return nil
		}
		return os.Chmod(p, want)
	})
}

// writeIgnoreFiles writes the .gitignore files of a tree alone into a new folder, and returns how many files the tree has.
func (k *Store) writeIgnoreFiles(ctx context.Context, host git.Dir, tree git.OID, folder string) (files int, err error) {
	var paths []string
	var blobs []git.OID
	err = host.List(ctx, tree, func(p string, e git.Entry, _ int64) error {
		files++
		if path.Base(p) == ".gitignore" && PlainPath(p) && (e.Mode == git.File || e.Mode == git.Executable) {
			paths, blobs = append(paths, p), append(blobs, e.OID)
		}
		return nil
	})
	if err != nil {
		return 0, err
	}
	return files, k.ops.Do("layer:ignore", func() error {
		if err := os.Mkdir(folder, 0o755); err != nil {
			return err
		}
		i := 0
		return host.Blobs(ctx, blobs, func(_ git.OID, _ int64, r io.Reader) error {
			name := filepath.Join(folder, paths[i])
			i++
			if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
				return err
			}
			f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL|unix.O_NOFOLLOW, 0o644)
			if err != nil {
				return err
			}
			_, err = io.Copy(f, r)
			if closed := f.Close(); err == nil {
				err = closed
			}
			return err
		})
	})
}
