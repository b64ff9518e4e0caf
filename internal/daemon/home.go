package daemon

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"sallyport/internal/base/git"
	"sallyport/internal/base/problem"
	"sallyport/internal/door/client"
	"sallyport/internal/rule/config"
)

// A home is a git repository with the configuration files tracked, and .state beside them, which
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
		var st syscall.Stat_t
		if err := syscall.Lstat(folder, &st); err != nil {
			return "", unwritable(d.Home, err)
		}
		if int(st.Uid) != os.Geteuid() {
			return "", problem.Errorf(problem.Refused, fmt.Sprintf("ls -ld %q", folder), "the folder %q belongs to uid %d: a home is served by the user who made it", folder, st.Uid)
		}
	}
	if st, err := os.Stat(state); err != nil || st.Mode().Perm()&0o077 != 0 {
		return "", problem.Errorf(problem.Refused, fmt.Sprintf("chmod 700 %q", state), "the folder %q can be read by others", state)
	}
	return state, nil
}

// makeRepository makes the home's git repository, once; only the daemon that holds the home does.
func (d *Daemon) makeRepository(ctx context.Context, state string) error {
	if _, err := os.Stat(filepath.Join(d.Home, ".git")); err == nil {
		return nil
	}
	// The repository is made aside and moved into place, so that a home has a whole one or none.
	aside := filepath.Join(state, "git.new")
	if err := d.Ops.Do("home:clear", func() error { return os.RemoveAll(aside) }); err != nil {
		return unwritable(d.Home, err)
	}
	if err := d.firstCommit(ctx, aside); err != nil {
		return fmt.Errorf("make the home %q: %w", d.Home, err)
	}
	err := d.Ops.Do("home:commit", func() error { return os.Rename(aside, filepath.Join(d.Home, ".git")) })
	if err != nil {
		return unwritable(d.Home, err)
	}
	return nil
}

// firstCommit writes the default files where none are, and a repository at aside that tracks them.
func (d *Daemon) firstCommit(ctx context.Context, aside string) error {
	repo := git.Dir{Path: aside, Ops: d.Ops}
	if _, err := repo.Do(ctx, "home:init", git.Cmd{Args: []string{"init", "--quiet", "--template=", "--initial-branch=main", d.Home}, Dir: d.Home, Env: []string{"GIT_DIR=" + aside}}); err != nil {
		return err
	}
	in := git.Import{Ref: "refs/heads/main", Message: "The home, as it was made\n"}
	in.Author = git.Signature{Name: "sallyport", Email: "sallyport@localhost", At: time.Now()}
	in.Committer = in.Author
	for _, file := range config.NewHome() {
		path := filepath.Join(d.Home, file.Name)
		if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
			if err := d.Ops.Do("home:file", func() error { return os.WriteFile(path, []byte(file.Text), 0o600) }); err != nil {
				return unwritable(d.Home, err)
			}
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		in.Writes = append(in.Writes, git.Write{Path: file.Name, Mode: git.File, Data: git.Bytes(text)})
	}
	if _, err := repo.Import(ctx, "home:import", in); err != nil {
		return err
	}
	_, err := repo.Do(ctx, "home:index", git.Cmd{Args: []string{"read-tree", "HEAD"}})
	return err
}

func unwritable(home string, err error) error {
	return problem.Errorf(problem.Unavailable, "sallyport --home DIR doctor", "the home %q cannot be written: %w", home, err)
}

// firstUID is where the uids of a home's sandboxes begin. They lie above what systems hand
// out to people and containers, and two homes on one machine seldom share any.
func firstUID(home string) uint32 {
	h := fnv.New32a()
	h.Write([]byte(home))
	return 0x70000000 + h.Sum32()%0x0800<<16
}
