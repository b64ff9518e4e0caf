package workspace

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"

	"golang.org/x/sys/unix"

	"sallyport/internal/git"
)

// Layer is the read-only tree of one tree id, made once and shared by every workspace on it.
type Layer struct {
	Tree   string // folder with the files and an empty .git for a mount
	Index  string // git index with the stat data of Tree
	Ignore string // folder with the .gitignore files alone
}

func (m *Manager) layerOf(path string) Layer {
	return Layer{Tree: filepath.Join(path, "tree"), Index: filepath.Join(path, "index"), Ignore: filepath.Join(path, "ignore")}
}

// Layer returns the layer of a tree, making it if there is none. A crash leaves
// nothing half: a layer appears by one rename, after its files are on disk.
func (m *Manager) Layer(ctx context.Context, host git.Dir, tree git.OID) (Layer, error) {
	if !tree.Valid() {
		return Layer{}, fmt.Errorf("%q is no tree", tree)
	}
	path := filepath.Join(m.root, "layers", string(tree))
	if exists(path) {
		return m.layerOf(path), nil
	}
	err := m.alone(ctx, path, func() error {
		if exists(path) {
			return nil
		}
		if err := m.folder(filepath.Dir(path)); err != nil {
			return err
		}
		return m.makeLayer(ctx, host, tree, path)
	})
	if err != nil {
		return Layer{}, fmt.Errorf("make the layer of tree %.12s: %w", tree, err)
	}
	return m.layerOf(path), nil
}

func (m *Manager) makeLayer(ctx context.Context, host git.Dir, tree git.OID, path string) error {
	temp := fresh(path)
	if err := m.remove("layer:clear", temp); err != nil {
		return err
	}
	if err := m.folder(temp); err != nil {
		return err
	}
	made := m.layerOf(temp)
	if err := m.checkout(ctx, host, tree, made.Tree, made.Index); err != nil {
		return err
	}
	if err := m.ignoreFiles(ctx, host, tree, made.Ignore); err != nil {
		return err
	}
	return m.ops.Do("layer:commit", func() error { return commitFolder(temp, path) })
}

// checkout writes a tree into a new folder, bytes as they are, and an index with its
// stat data. The folder gets an empty .git for a mount.
func (m *Manager) checkout(ctx context.Context, host git.Dir, tree git.OID, folder, index string) error {
	err := m.ops.Do("layer:folder", func() error {
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
	return m.ops.Do("layer:modes", func() error { return openModes(folder) })
}

// openModes gives every file the mode that git would give it under umask 022, whatever
// the host's umask is, and adds the mount's folder.
func openModes(folder string) error {
	if err := os.Mkdir(filepath.Join(folder, ".git"), 0o755); err != nil && !os.IsExist(err) {
		return err
	}
	return filepath.WalkDir(folder, func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.Type()&fs.ModeSymlink != 0 {
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

// ignoreFiles writes the .gitignore files of a tree alone into a new folder.
func (m *Manager) ignoreFiles(ctx context.Context, host git.Dir, tree git.OID, folder string) error {
	var paths []string
	var blobs []git.OID
	err := host.List(ctx, tree, func(p string, e git.Entry, _ int64) error {
		if path.Base(p) == ".gitignore" && plainPath(p) && (e.Mode == git.File || e.Mode == git.Executable) {
			paths, blobs = append(paths, p), append(blobs, e.OID)
		}
		return nil
	})
	if err != nil {
		return err
	}
	return m.ops.Do("layer:ignore", func() error {
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
