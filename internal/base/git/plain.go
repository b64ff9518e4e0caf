package git

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"sallyport/internal/base/inert"
	"sallyport/internal/base/problem"
)

// Plain refuses, by name, a repository in which something that git reads is no file: git waits for
// ever on a FIFO, and so would who waits for git. It opens nothing, so it cannot hang itself. What
// is exchanged after it has looked is not seen.
func (p Project) Plain() error {
	for _, dir := range []string{p.GitDir, p.CommonDir} {
		for _, name := range []string{
			"HEAD", "config", "config.worktree", "index", "packed-refs", "shallow", "commondir", "gitdir",
			"info/attributes", "info/exclude", "info/grafts", "info/sparse-checkout",
		} {
			if err := p.plain(filepath.Join(dir, name)); err != nil {
				return err
			}
		}
	}
	for _, dir := range []string{"objects", "refs"} {
		if err := p.plainBelow(filepath.Join(p.CommonDir, dir)); err != nil {
			return err
		}
	}
	return nil
}

// plainMax is how many entries below objects, or below refs, are looked at: a repository with more
// of them has not been packed for long.
const plainMax = 1_000_000

// plainBelow looks at the kinds of all that lies below a folder. A folder that is a link is git's
// to follow and is not looked into.
func (p Project) plainBelow(dir string) error {
	seen := 0
	return filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) {
			return nil // git says so itself, without waiting
		}
		if err != nil {
			return err
		}
		if seen++; seen > plainMax {
			return problem.Errorf(problem.Refused, "git -C "+inert.Path(p.Top)+" gc", "%q holds more than %d files", dir, plainMax)
		}
		if d.Type().IsRegular() || d.IsDir() {
			return nil
		}
		return p.plain(path)
	})
}

// plain refuses what is there and is neither a file nor a folder, through links.
func (p Project) plain(path string) error {
	info, err := os.Stat(path)
	if err != nil || info.Mode().IsRegular() || info.IsDir() {
		return nil // what is not there, or cannot be looked at, does not make git wait
	}
	return problem.Errorf(problem.Refused, "ls -l "+inert.Path(path), "%q is no regular file (%s), and git would wait on it for ever", path, info.Mode().Type())
}
