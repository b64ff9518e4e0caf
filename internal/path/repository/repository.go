package repository

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"sallyport/internal/base/git"
	"sallyport/internal/base/problem"
	"sallyport/internal/base/whole"
)

// OwnAttributes stand above every .gitattributes of a tree: what is checked out of,
// hashed or compared in a repository of ours are the bytes as they are.
const OwnAttributes = "* -text -eol -crlf -filter -ident -working-tree-encoding\n"

// ownConfig is all the configuration a repository of ours has. Objects are for
// sandboxes to read, whatever the umask of the host.
const ownConfig = `[core]
	sharedRepository = 0644
	hooksPath = /dev/null
	attributesFile = /dev/null
	excludesFile = /dev/null
	fsmonitor = false
	logAllRefUpdates = false
[gc]
	auto = 0
[maintenance]
	auto = false
`

// Open returns the host's own bare repository for a project, made once, with what each of the commits reaches. It holds that by
// itself: nothing that becomes of the project takes it away.
//
// Errors: problem.NotFound for a commit that is neither the project's nor the host's.
func (r *Store) Open(ctx context.Context, project git.Project, commits ...git.OID) (git.Dir, error) {
	host := r.Host(project)
	err := r.busy.Alone(ctx, host.Path, func() error {
		if !whole.Exists(host.Path) {
			if err := r.makeRepository(ctx, project, host.Path); err != nil {
				return fmt.Errorf("make the host's repository for %s: %w", project.Top, err)
			}
		}
		if err := r.borrowOnlyBases(ctx, project, host); err != nil {
			return fmt.Errorf("bring the host's repository for %s up to date: %w", project.Top, err)
		}
		for _, commit := range commits {
			if err := r.hold(ctx, host, project, commit); err != nil {
				return fmt.Errorf("copy the history of commit %.12s from %s: %w", commit, project.Top, err)
			}
		}
		return nil
	})
	return host, err
}

func (r *Store) path(project git.Project) string {
	sum := sha256.Sum256([]byte(project.CommonDir))
	return filepath.Join(r.Root, hex.EncodeToString(sum[:8])+".git")
}

func (r *Store) makeRepository(ctx context.Context, project git.Project, path string) error {
	if err := whole.MakeFolder(r.ops, filepath.Dir(path)); err != nil {
		return err
	}
	temp := whole.Fresh(path)
	if err := whole.Remove(r.ops, "repository:clear", temp); err != nil {
		return err
	}
	for _, dir := range []string{temp, filepath.Join(temp, basesFolder)} {
		if err := r.makeBare(ctx, project, dir); err != nil {
			return err
		}
	}
	return r.ops.Do("repository:commit", func() error { return whole.Commit(temp, path) })
}

// makeBare makes a bare repository of ours at dir.
func (r *Store) makeBare(ctx context.Context, project git.Project, dir string) error {
	if _, err := git.InitBare(ctx, r.ops, dir, project.ObjectFormat); err != nil {
		return err
	}
	return r.ops.Do("repository:configure", func() error {
		config, err := os.ReadFile(filepath.Join(dir, "config"))
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(dir, "config"), append(config, ownConfig...), 0o644); err != nil {
			return err
		}
		for _, folder := range []string{"info", "objects", "objects/info", "objects/pack"} {
			if err := os.MkdirAll(filepath.Join(dir, folder), 0o755); err != nil {
				return err
			}
			if err := os.Chmod(filepath.Join(dir, folder), 0o755); err != nil {
				return err
			}
		}
		return os.WriteFile(filepath.Join(dir, "info", "attributes"), []byte(OwnAttributes), 0o644)
	})
}

// borrowOnlyBases sees to it that the host's repository borrows what bases reach and nothing else, and leaves out what the project leaves
// out by info/exclude. One that an older sallyport made borrowed the project's objects: what its refs reach becomes its own first.
func (r *Store) borrowOnlyBases(ctx context.Context, project git.Project, host git.Dir) error {
	exclude, err := ReadPlain(filepath.Join(project.CommonDir, "info", "exclude"))
	if err != nil {
		return err
	}
	if !hasPattern(exclude) {
		exclude = nil
	}
	if err := whole.SetFile(r.ops, "repository:exclude", filepath.Join(host.Path, "info", "exclude"), exclude); err != nil {
		return err
	}
	list := filepath.Join(host.Path, "objects", "info", "alternates")
	borrowed, err := os.ReadFile(list)
	if err == nil && string(borrowed) == basesBorrowed {
		return nil
	}
	if err != nil && !os.IsNotExist(err) {
		return err
	}
	if len(borrowed) > 0 {
		if _, err := host.Do(ctx, "repository:own", git.Cmd{Args: []string{"repack", "-a", "-d", "-q"}}); err != nil {
			return err
		}
	}
	if bases := r.basesIn(host).Path; !whole.Exists(filepath.Join(bases, "info", "attributes")) {
		if err := r.makeBare(ctx, project, bases); err != nil {
			return err
		}
	}
	return whole.SetFile(r.ops, "repository:borrow", list, []byte(basesBorrowed))
}

// hasPattern reports whether a file of patterns ignores anything: the one that git puts into a new repository has comments only.
func hasPattern(text []byte) bool {
	for line := range bytes.Lines(text) {
		if line = bytes.TrimRight(line, "\r\n"); len(line) > 0 && line[0] != '#' {
			return true
		}
	}
	return false
}

// plainMax is the size of the longest file of a project's git directory that is read as a whole.
const plainMax = 4 << 20

// ReadPlain reads a small regular file of a person's git directory; nil if there is none.
func ReadPlain(path string) ([]byte, error) {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENOTDIR) {
		return nil, nil
	}
	if err != nil {
		return nil, problem.Errorf(problem.Refused, "ls -l "+path, "%s cannot be read: %w", path, err)
	}
	f := os.NewFile(uintptr(fd), path)
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !st.Mode().IsRegular() || st.Size() > plainMax {
		return nil, problem.Errorf(problem.Refused, "ls -l "+path, "%s is not a regular file of at most %d bytes", path, plainMax)
	}
	return io.ReadAll(io.LimitReader(f, plainMax))
}
