package daemon

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"sallyport/internal/base/disk"
	"sallyport/internal/base/git"
	"sallyport/internal/base/inert"
	"sallyport/internal/base/problem"
	"sallyport/internal/door/client"
	"sallyport/internal/rule/config"
	"sallyport/internal/who/group"
)

// A home is a git repository with its configuration, its template and its groups tracked, and .state beside them, which
// is the host's alone. makeState makes that folder, once, and returns its path.
func (d *Daemon) makeState() (string, error) {
	if err := client.NoProject(d.Home); err != nil {
		return "", err
	}
	state := filepath.Join(d.Home, ".state")
	err := d.Ops.Do("home:make", func() error { return os.MkdirAll(state, 0o700) })
	if err != nil {
		return "", unwritable(d.Home, err)
	}
	for _, folder := range []string{d.Home, state} {
		info, err := os.Lstat(folder)
		if err != nil {
			return "", unwritable(d.Home, err)
		}
		if st, ok := info.Sys().(*syscall.Stat_t); !ok || int(st.Uid) != os.Geteuid() {
			return "", problem.Errorf(problem.Refused, fmt.Sprintf("ls -ldn %q", folder),
				"the folder %q belongs to another user: a home is served by the user who made it", folder)
		}
		if err := config.OnlyOwner(folder, info); err != nil { // what is in a home says what agents may do, and what git does
			return "", err
		}
	}
	if err := config.OnlyOwnerAbove(d.Home); err != nil {
		return "", err
	}
	if st, err := os.Stat(state); err != nil || st.Mode().Perm()&0o077 != 0 {
		return "", problem.Errorf(problem.Refused, fmt.Sprintf("chmod 700 %q", state), "the folder %q can be read by others", state)
	}
	return state, nil
}

// makeRepository makes the home's git repository, once; only the daemon that holds the home does.
func (d *Daemon) makeRepository(ctx context.Context, state string) error {
	if _, err := os.Stat(filepath.Join(d.Home, ".git")); err == nil {
		if err := guarded(d.Home); err != nil {
			return err
		}
		return errors.Join(closeRepository(d.Ops, d.Home), d.mendRepository(ctx))
	}
	defer syscall.Umask(syscall.Umask(0o077)) // nobody else gets to what git makes below, whatever mode that has
	// The repository is made aside and moved into place, so that a home has a whole one or none.
	apart := filepath.Join(state, "git.new")
	err := d.Ops.Do("home:clear", func() error {
		if err := os.RemoveAll(apart); err != nil {
			return err
		}
		return os.Mkdir(apart, 0o700)
	})
	if err != nil {
		return unwritable(d.Home, err)
	}
	aside := filepath.Join(apart, ".git") // by this name git knows that it has a work tree
	if err := d.firstCommit(ctx, aside); err != nil {
		return fmt.Errorf("make the home %q: %w", d.Home, err)
	}
	err = d.Ops.Do("home:commit", func() error {
		// It holds what the settings and the memories of groups ever said, and the home itself may be open to others.
		if err := os.Chmod(aside, 0o700); err != nil {
			return err
		}
		if err := os.Rename(aside, filepath.Join(d.Home, ".git")); err != nil {
			return err
		}
		return os.Remove(apart)
	})
	if err != nil {
		return unwritable(d.Home, err)
	}
	return nil
}

// guarded refuses a home in whose repository somebody else may write: what is committed there says what groups run.
func guarded(home string) error {
	top, err := os.Lstat(home)
	if err != nil || top.Mode().Perm()&0o011 == 0 {
		return err // nobody else gets there
	}
	for _, name := range []string{"", "config", "HEAD", "packed-refs", "objects", "refs", "refs/heads", "refs/heads/main"} {
		path := filepath.Join(home, ".git", name)
		info, err := os.Lstat(path)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err == nil {
			err = config.OnlyOwner(path, info)
		}
		if err != nil {
			return problem.Errorf(problem.Refused, "chmod -R go-w "+inert.Path(filepath.Join(home, ".git")),
				"somebody else could say what the groups of this home run: %w", err)
		}
	}
	return nil
}

// closeRepository has nobody but its owner enter a home's repository: an earlier build left that to the umask.
func closeRepository(ops disk.Ops, home string) error {
	folder := filepath.Join(home, ".git")
	info, err := os.Lstat(folder)
	if err != nil || !info.IsDir() || info.Mode().Perm()&0o077 == 0 {
		return err // a repository of another form is a person's matter
	}
	return ops.Do("home:close", func() error { return os.Chmod(folder, 0o700) })
}

// mendRepository has a home's repository know its work tree: an earlier build made it bare.
func (d *Daemon) mendRepository(ctx context.Context) error {
	repo := git.Dir{Path: filepath.Join(d.Home, ".git"), Ops: d.Ops}
	settings, err := os.ReadFile(filepath.Join(repo.Path, "config"))
	if err != nil || !bytes.Contains(settings, []byte("bare = true")) {
		return nil // a repository of another form is a person's matter
	}
	_, err = repo.Do(ctx, "home:mend", git.Cmd{Args: []string{"config", "core.bare", "false"}})
	return err
}

// firstCommit writes the files of a new home where none are, and a repository at aside that tracks them.
func (d *Daemon) firstCommit(ctx context.Context, aside string) error {
	repo := git.Dir{Path: aside, Ops: d.Ops}
	if _, err := repo.Do(ctx, "home:init", git.Cmd{Args: []string{"init", "--quiet", "--template=", "--initial-branch=main", d.Home},
		Dir: d.Home, Env: []string{"GIT_DIR=" + aside}}); err != nil {
		return err
	}
	files, err := group.NewHome([]group.Beginning{{Folder: group.First}})
	if err != nil {
		return err
	}
	for i := range files {
		if files[i].Text, err = d.ensureFile(files[i]); err != nil {
			return unwritable(d.Home, err)
		}
	}
	by := group.By{Ref: "refs/heads/main", Author: git.Signature{Name: "sallyport", Email: "sallyport@localhost", At: time.Now()}}
	by.Committer = by.Author
	if _, err := group.MakeHome(ctx, repo, files, by); err != nil {
		return err
	}
	_, err = repo.Do(ctx, "home:index", git.Cmd{Args: []string{"read-tree", "HEAD"}})
	return err
}

// ensureFile writes a file of a new home, whole, unless one is there, and returns what the file says.
func (d *Daemon) ensureFile(f config.File) (string, error) {
	path := filepath.Join(d.Home, f.Name)
	_, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		err = d.Ops.Do("home:file", func() error {
			if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
				return err
			}
			aside := filepath.Join(d.Home, ".state", "file.new")
			if err := os.WriteFile(aside, []byte(f.Text), 0o600); err != nil {
				return err
			}
			return os.Rename(aside, path)
		})
	}
	if err != nil {
		return "", err
	}
	text, err := os.ReadFile(path)
	return string(text), err
}

func unwritable(home string, err error) error {
	return problem.Errorf(problem.Unavailable, "sallyport init DIR", "the home %q cannot be written: %w", home, err)
}

// firstUID is where the uids of a home's sandboxes begin. They lie above what systems hand
// out to people and containers, and two homes on one machine seldom share any.
func firstUID(home string) uint32 {
	h := fnv.New32a()
	h.Write([]byte(home))
	return 0x70000000 + h.Sum32()%0x0800<<16
}
