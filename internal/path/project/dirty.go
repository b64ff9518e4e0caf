package project

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"sallyport/internal/base/beneath"
	"sallyport/internal/base/conversion"
	"sallyport/internal/base/git"
	"sallyport/internal/base/id"
	"sallyport/internal/base/inert"
	"sallyport/internal/base/problem"
	"sallyport/internal/base/whole"
	"sallyport/internal/path/repository"
)

// IncludeDirtyMax is how many uncommitted paths can be taken along.
const IncludeDirtyMax = 50_000

// Dirty returns the person's uncommitted paths against head: staged, unstaged, untracked
// and not ignored; in path order. A file that differs only as git's conversions make it differ is none of them. Nothing of theirs is
// written, and nothing that their repository configures runs.
func (o *Reader) Dirty(ctx context.Context, project git.Project, head git.OID, converts conversion.Settings) ([]string, error) {
	d, err := o.dirty(ctx, project, head, converts)
	if err != nil {
		return nil, fmt.Errorf("find the uncommitted changes in %s: %w", project.Top, err)
	}
	return d.paths(), nil
}

// A commit of uncommitted files is known by these two.
const dirtySays = "Uncommitted changes taken along"

var dirtyBy = git.Signature{Name: "sallyport", Email: "sallyport@localhost"}

// IsDirty reports whether a commit is one that IncludeDirty made.
func IsDirty(ctx context.Context, host git.Dir, commit git.OID) (bool, error) {
	said, err := host.Run(ctx, git.Cmd{Args: []string{"log", "--max-count=1", "--no-show-signature", "--format=%ce%n%B", string(commit), "--"}})
	return strings.TrimSpace(string(said)) == dirtyBy.Email+"\n"+dirtySays, err
}

// IncludeDirty makes a commit of the host's own on head, in the host's repository, from
// the person's uncommitted files as they are on disk, and returns it; head itself if
// there are none. Running it twice over the same files gives the same commit. Nothing is
// copied before look has seen what it would be.
//
// Errors: problem.Refused naming a path that cannot be taken along; look's own.
func (o *Reader) IncludeDirty(ctx context.Context, project git.Project, change id.Change, head git.OID, at time.Time, converts conversion.Settings,
	look func(host git.Dir, writes []git.Write) error) (git.OID, error) {
	d, err := o.dirty(ctx, project, head, converts)
	if err != nil {
		return "", fmt.Errorf("find the uncommitted changes in %s: %w", project.Top, err)
	}
	for _, path := range slices.Sorted(maps.Keys(d.converted)) {
		return "", problem.Errorf(problem.Refused, "git -C "+inert.Path(project.Top)+" status -- "+inert.Path(path),
			"%q cannot be taken along: git converts it between its store and the checkout (%s); commit it, or stash it", path, d.converted[path])
	}
	for _, path := range slices.Sorted(maps.Keys(d.untold)) {
		return "", problem.Errorf(problem.Refused, "git -C "+inert.Path(project.Top)+" status -- "+inert.Path(path),
			"whether %q is changed cannot be told yet: git converts it (%s), and it was written at the same time as git's index; let your git look at it, and try again", path, d.untold[path])
	}
	paths := d.paths()
	if len(paths) == 0 {
		return head, nil
	}
	if len(paths) > IncludeDirtyMax {
		return "", problem.Errorf(problem.Refused, "git -C "+inert.Path(project.Top)+" status",
			"%s has %d uncommitted paths; --include-dirty takes at most %d along", project.Top, len(paths), IncludeDirtyMax)
	}
	top, err := beneath.Real(project.Top, unix.O_RDONLY|unix.O_DIRECTORY)
	if err != nil {
		return "", err
	}
	defer unix.Close(top)
	host, err := o.Repositories.Open(ctx, project, head)
	if err != nil {
		return "", err
	}
	in := git.Import{
		Ref: repository.BaseRef(change), From: head, Parents: []git.OID{head}, Message: dirtySays + "\n",
		Author: dirtyBy, Committer: dirtyBy,
	}
	in.Author.At, in.Committer.At = at, at
	for _, path := range paths {
		w := git.Write{Path: path}
		if !d.unstaged[path] {
			if w, err = theirFile(project.Top, top, path); err != nil {
				return "", err
			}
		}
		in.Writes = append(in.Writes, w)
	}
	if err := look(host, in.Writes); err != nil {
		return "", err
	}
	made, err := host.Import(ctx, "dirty:import", in)
	return made.OID, err
}

// theirFile describes what is at a path of a person's work tree, which has a name, read when it is its turn.
func theirFile(name string, top int, path string) (git.Write, error) {
	w := git.Write{Path: path}
	refuse := func(why string) (git.Write, error) {
		return w, problem.Errorf(problem.Refused, "git -C "+inert.Path(name)+" status -- "+inert.Path(path),
			"--include-dirty cannot take %q along: %s", path, why)
	}
	if strings.HasSuffix(path, "/") {
		return refuse("that is a git repository of its own")
	}
	fd, err := beneath.Look(top, path)
	if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENOTDIR) || errors.Is(err, unix.ELOOP) {
		return w, nil // deleted, or something above it is no folder any more
	}
	if err != nil {
		return refuse(err.Error())
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return w, err
	}
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFREG:
		w.Mode = git.File
		if st.Mode&0o100 != 0 {
			w.Mode = git.Executable
		}
		w.Data = func() (io.ReadCloser, int64, error) {
			fd, err := beneath.Open(top, path, unix.O_RDONLY)
			if err != nil {
				return nil, 0, err
			}
			f := os.NewFile(uintptr(fd), path)
			st, err := f.Stat()
			if err != nil || !st.Mode().IsRegular() {
				f.Close()
				return nil, 0, errors.Join(err, fmt.Errorf("%q is not a regular file any more", path))
			}
			return f, st.Size(), nil
		}
	case unix.S_IFLNK:
		target, err := beneath.Link(fd, "")
		if err != nil {
			return w, err
		}
		w.Mode, w.Data = git.Symlink, git.Text(target)
	case unix.S_IFDIR: // a folder in the place of a file: what is in it is listed by itself
	default:
		return refuse("that is a " + beneath.Special(st.Mode))
	}
	return w, nil
}

// uncommitted is what differs from a commit in a person's index and work tree.
type uncommitted struct {
	changed  map[string]bool // staged or not
	unstaged map[string]bool // taken out of the index: stays out even if a file is there
	staged   map[string]bool

	converted map[string]string // what git would store in other bytes, or may: why
	untold    map[string]string // what was written together with the index, so that only git's own filter could tell: why
}

func (u uncommitted) paths() []string {
	var out []string
	for p := range u.changed {
		out = append(out, p)
	}
	slices.Sort(out)
	return out
}

// dirty compares with a private copy of the index, in our own git directory.
func (o *Reader) dirty(ctx context.Context, project git.Project, head git.OID, converts conversion.Settings) (uncommitted, error) {
	u := uncommitted{changed: map[string]bool{}, unstaged: map[string]bool{}, staged: map[string]bool{}, converted: map[string]string{},
		untold: map[string]string{}}
	host, err := o.Repositories.Open(ctx, project, head)
	if err != nil {
		return u, err
	}
	folder := o.Folder
	if err := whole.MakeFolder(o.Ops, folder); err != nil {
		return u, err
	}
	private := ""
	err = o.Ops.Do("dirty:index", func() error {
		private, err = copyIndex(filepath.Join(project.GitDir, "index"), folder)
		return err
	})
	if private != "" {
		defer func() { _ = o.Ops.Do("dirty:clear", func() error { return os.Remove(private) }) }()
	}
	if err != nil {
		return u, err
	}
	raw, at, err := theirIndex(private)
	if err != nil {
		return u, err
	}
	index, err := git.ParseIndex(raw, project.ObjectFormat)
	if err != nil {
		return u, err
	}
	if index.Split {
		return u, problem.Errorf(problem.Refused, "git -C "+inert.Path(project.Top)+" update-index --no-split-index",
			"the index of %s is split, and sallyport reads only a whole one", project.Top)
	}
	if err := u.compare(ctx, host, project.Top, private, index, head); err != nil {
		return u, err
	}
	return u, u.convert(ctx, host, project, head, converts, index, at)
}

// indexMax is the size of the largest index that is read: several million files.
const indexMax = 1 << 30

// copyIndex copies an index with its time of change, by which git tells files that
// changed right after it was written. An index that does not exist is an empty one.
func copyIndex(from, folder string) (string, error) {
	f, err := os.CreateTemp(folder, "index-")
	if err != nil {
		return "", err
	}
	defer f.Close()
	fd, err := unix.Open(from, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if errors.Is(err, unix.ENOENT) {
		return f.Name(), os.Remove(f.Name())
	}
	if err != nil {
		return f.Name(), &os.PathError{Op: "open", Path: from, Err: err}
	}
	src := os.NewFile(uintptr(fd), from)
	defer src.Close()
	st, err := src.Stat()
	if err != nil {
		return f.Name(), err
	}
	if !st.Mode().IsRegular() || st.Size() > indexMax {
		return f.Name(), problem.Errorf(problem.Refused, "ls -l "+inert.Path(from), "%s is not a regular file of at most %d bytes", from, int64(indexMax))
	}
	if _, err := io.Copy(f, io.LimitReader(src, indexMax)); err != nil {
		return f.Name(), err
	}
	return f.Name(), os.Chtimes(f.Name(), st.ModTime(), st.ModTime())
}

func (u uncommitted) compare(ctx context.Context, host git.Dir, top, private string, index *git.Index, head git.OID) error {
	run := func(args ...string) ([]string, error) {
		out, err := host.Do(ctx, "dirty:compare", git.Cmd{
			Args: args, Dir: top, Env: []string{"GIT_INDEX_FILE=" + private, "GIT_WORK_TREE=" + top},
			Config: []string{"core.bare=false", "core.fileMode=true", "core.symlinks=true", "core.ignoreCase=false"},
		})
		if err != nil {
			return nil, err
		}
		return strings.FieldsFunc(string(out), func(r rune) bool { return r == 0 }), nil
	}
	staged, err := run("diff-index", "--cached", "--raw", "-z", "--no-renames", "--ignore-submodules=all", string(head))
	if err != nil {
		return err
	}
	for i := 0; i+1 < len(staged); i += 2 {
		u.changed[staged[i+1]], u.staged[staged[i+1]] = true, true
		u.unstaged[staged[i+1]] = strings.HasSuffix(staged[i], " D")
	}
	// One walk for both: what is not as the index has it, which git reads where its times say nothing, and what is in no index.
	worked, err := run("ls-files", "-t", "--modified", "--others", "--exclude-standard", "-z")
	if err != nil {
		return err
	}
	for _, found := range worked {
		kind, p, _ := strings.Cut(found, " ")
		if kind == "C" && index.Entry(p).Mode == git.Submodule {
			continue
		}
		u.changed[p] = true
		delete(u.unstaged, p)
	}
	return nil
}
