package group

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"golang.org/x/sys/unix"

	"sallyport/internal/base/beneath"
	"sallyport/internal/base/disk"
	"sallyport/internal/base/git"
	"sallyport/internal/base/inert"
	"sallyport/internal/base/problem"
)

// HandEdit is one file of a group that is otherwise in the person's work tree than in a commit: drift, until they commit it. The path
// is one from the top of the home.
type HandEdit struct {
	Difference
	Why string // why it cannot be committed, one clause; "" if it can
}

// FindHandEdits returns what a person has changed below a group's folder and not committed, by path. It reads only. What is staged and
// stands in the work tree as it was committed is no edit; what the repository or its owner ignores is none either. home is the folder
// whose git configuration counts; "" = that of the repository's owner.
func FindHandEdits(ctx context.Context, p git.Project, home string, commit git.OID, folder Folder) ([]HandEdit, error) {
	l, err := openLive(ctx, p)
	if err != nil {
		return nil, err
	}
	defer l.Close()
	committed, err := l.committed(ctx, commit, folder)
	if err != nil {
		return nil, err
	}
	names, left, err := l.names(ctx, home, folder)
	if err != nil {
		return nil, err
	}

	for name := range committed {
		if !left[name] {
			names[name] = true
		}
	}
	if len(names) > FilesMax {
		return nil, folder.tooMuch(p, "it has more than %d files", FilesMax)
	}
	var all []HandEdit
	for _, name := range slices.Sorted(maps.Keys(names)) {
		e, err := l.look(name, committed[name])
		if err != nil {
			return nil, err
		}
		if e.Why != "" || e.Old != e.New {
			all = append(all, e)
		}
	}
	return all, nil
}

// DraftHandEdits drafts a commit of what a person has changed below a group's folder, and of nothing else. A draft without edits says
// that there is nothing to commit. Errors: problem.Refused naming what no commit can hold; problem.Conflict if a program writes there.
func DraftHandEdits(ctx context.Context, p git.Project, home string, host git.Dir, base git.OID, folder Folder, by By) (Draft, error) {
	edits, err := FindHandEdits(ctx, p, home, base, folder)
	if err != nil || len(edits) == 0 {
		return Draft{Base: base}, err
	}
	if len(edits) > editsMax {
		return Draft{}, folder.tooMuch(p, "%d files are changed; %d is the limit", len(edits), editsMax)
	}
	for _, e := range edits {
		if e.Why != "" {
			return Draft{}, problem.Errorf(problem.Refused, "ls -ld "+inert.Path(path.Join(p.Top, e.Path)), "%s cannot be committed: %s",
				inert.Path(e.Path), e.Why)
		}
	}
	l, err := openLive(ctx, p)
	if err != nil {
		return Draft{}, err
	}
	defer l.Close()

	writes, bytes := make([]git.Write, len(edits)), int64(0)
	for i, e := range edits {
		writes[i] = git.Write{Path: e.Path, Mode: e.New.Mode}
		if e.New.Absent() {
			continue
		}
		writes[i].Data = func() (io.ReadCloser, int64, error) {
			r, size, err := l.read(e.Path, e.New.Mode)
			if bytes += size; err == nil && bytes > handMax {
				err = errors.Join(folder.tooMuch(p, "what is changed has more than %d bytes", int64(handMax)), r.Close())
			}
			return r, size, err
		}
	}
	d, err := commit(ctx, host, base, writes, "Edit the group "+string(folder)+" by hand\n", by)
	if err != nil {
		return Draft{}, err
	}
	return d, asFound(p, d, edits)
}

// asFound refuses a draft that holds something else than what was found.
func asFound(p git.Project, d Draft, edits []HandEdit) error {
	found := map[git.Edit]bool{}
	for _, e := range edits {
		found[e.Edit] = true
	}
	for _, e := range d.Edits {
		if !found[e] {
			return problem.Errorf(problem.Conflict, "git -C "+inert.Path(p.Top)+" status",
				"some program writes to %s while it is to be committed; try again once it is done", inert.Path(e.Path))
		}
	}
	if len(d.Edits) != len(edits) {
		return problem.Errorf(problem.Conflict, "git -C "+inert.Path(p.Top)+" status",
			"some program writes to the group's folder while it is to be committed; try again once it is done")
	}
	return nil
}

func (f Folder) tooMuch(p git.Project, format string, args ...any) error {
	return problem.Errorf(problem.Refused, "git -C "+inert.Path(p.Top)+" status -- "+f.path(), "the group %s has too much: %s", f, fmt.Sprintf(format, args...))
}

// live is the work tree of a home.
type live struct {
	git.Project
	top      int  // open folder
	fileMode bool // the right to be executed means something here
}

func openLive(ctx context.Context, p git.Project) (*live, error) {
	set, err := p.Own(ctx, "core.filemode")
	if err != nil {
		return nil, fmt.Errorf("read the configuration of %q: %w", p.Top, err)
	}
	top, err := beneath.Real(p.Top, unix.O_RDONLY|unix.O_DIRECTORY)
	if err != nil {
		return nil, problem.Errorf(problem.Unavailable, "ls -ld "+inert.Path(p.Top), "the home %q cannot be opened: %w", p.Top, err)
	}
	return &live{Project: p, top: top, fileMode: set["core.filemode"] != "false"}, nil
}

func (l *live) Close() { _ = unix.Close(l.top) } // nothing was written

// committed returns what a commit has below a group's folder, by path from the top; nothing for a group that it does not have.
func (l *live) committed(ctx context.Context, commit git.OID, folder Folder) (map[string]git.Entry, error) {
	d := l.Common(disk.Ops{})
	tree, err := FindTree(ctx, d, commit, folder)
	if problem.KindOf(err) == problem.NotFound {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	below, err := list(ctx, d, folder, tree)
	if err != nil {
		return nil, err
	}
	all := map[string]git.Entry{}
	for p, e := range below {
		all[path.Join(folder.path(), p)] = e
	}
	return all, nil
}

// listMax is how long git may look for files in a group's folder: a .gitignore that is no file would hold it up for ever.
const listMax = 30 * time.Second

// names returns the paths below a group's folder that git has in its index, or would take into it, and those that the owner told
// git to leave alone (sparse checkout, skip-worktree).
func (l *live) names(ctx context.Context, home string, folder Folder) (names, left map[string]bool, err error) {
	ctx, done := context.WithTimeoutCause(ctx, listMax, fmt.Errorf("git did not list %s within %s", folder.path(), listMax))
	defer done()
	ignore, err := l.excludes(ctx, home)
	if err != nil {
		return nil, nil, err
	}
	out, err := l.Worktree(disk.Ops{}).Run(ctx, git.Cmd{
		Args: []string{"ls-files", "-t", "--cached", "--others", "--exclude-standard", "-z", "--", folder.path() + "/"},
		Dir:  l.Top, Env: []string{"GIT_WORK_TREE=" + l.Top}, Config: append(ignore, "core.bare=false"),
	})
	if err != nil {
		return nil, nil, fmt.Errorf("list the files of the group %s: %w", folder, err)
	}
	names, left = map[string]bool{}, map[string]bool{}
	for record := range strings.SplitSeq(string(out), "\x00") {
		tag, name, ok := strings.Cut(record, " ")
		if !ok {
			continue
		}
		if tag == "S" {
			left[name] = true
			continue
		}
		names[name] = true
	}
	return names, left, nil
}

// excludes has git read what the owner ignores everywhere.
func (l *live) excludes(ctx context.Context, home string) ([]string, error) {
	set, home, err := l.Settings(ctx, home, "core.excludesfile")
	if err != nil {
		return nil, fmt.Errorf("read the configuration of %q: %w", l.Top, err)
	}
	file, named := set["core.excludesfile"]
	if !named {
		file = path.Join(home, ".config/git/ignore")
	}
	if below, ok := strings.CutPrefix(file, "~/"); ok {
		file = path.Join(home, below)
	}
	if file == "" {
		return nil, nil
	}
	return []string{"core.excludesFile=" + file}, nil
}

// look compares one path of the work tree with a commit.
func (l *live) look(name string, old git.Entry) (HandEdit, error) {
	now, why, err := l.entry(name)
	if err != nil {
		return HandEdit{}, err
	}
	if why == "" && old.Mode == git.Submodule {
		why = "it is a submodule"
	}
	if !l.fileMode && isFile(now) {
		now.Mode = git.File
		if isFile(old) {
			now.Mode = old.Mode
		}
	}
	return HandEdit{differ(git.Edit{Path: name, Old: old, New: now}), why}, nil
}

// entry returns what git would store of a path; absent if nothing is there.
func (l *live) entry(name string) (e git.Entry, why string, err error) {
	switch {
	case strings.HasSuffix(name, "/"):
		return git.Entry{}, "it is a git repository of its own", nil
	case !utf8.ValidString(name):
		return git.Entry{}, "its name is not UTF-8", nil
	}
	fd, err := beneath.Look(l.top, name)
	switch {
	case errors.Is(err, unix.ENOENT), errors.Is(err, unix.ENOTDIR):
		return git.Entry{}, "", nil
	case errors.Is(err, unix.ELOOP):
		return git.Entry{}, "it is reached through a symbolic link", nil
	case errors.Is(err, unix.EXDEV):
		return git.Entry{}, "it is on another file system than the home", nil
	case err != nil:
		return git.Entry{}, "", fmt.Errorf("look at %q: %w", name, err)
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return git.Entry{}, "", fmt.Errorf("look at %q: %w", name, err)
	}

	switch kind := st.Mode & unix.S_IFMT; {
	case kind == unix.S_IFDIR:
		return git.Entry{}, "", nil // what is in it has names of its own
	case kind == unix.S_IFLNK:
		e.Mode = git.Symlink
	case kind != unix.S_IFREG:
		return git.Entry{}, "it is neither a file nor a link", nil
	case st.Size > handFileMax:
		return git.Entry{}, fmt.Sprintf("it has %d bytes; %d is the limit", st.Size, int64(handFileMax)), nil
	case st.Mode&0o100 != 0:
		e.Mode = git.Executable
	default:
		e.Mode = git.File
	}
	r, size, err := l.read(name, e.Mode)
	if err != nil {
		return git.Entry{}, "", err
	}
	defer r.Close()
	if e.OID, err = git.HashBlob(l.ObjectFormat, size, r); err != nil {
		return git.Entry{}, "", fmt.Errorf("read %q: %w", name, err)
	}
	return e, "", nil
}

// read opens what git would store of a file or a link. The way to it is looked up anew, through no link.
func (l *live) read(name string, mode git.Mode) (io.ReadCloser, int64, error) {
	if mode == git.Symlink {
		fd, err := beneath.Look(l.top, name)
		if err != nil {
			return nil, 0, fmt.Errorf("read %q: %w", name, err)
		}
		defer unix.Close(fd)
		to, err := beneath.Link(fd, "")
		return io.NopCloser(strings.NewReader(to)), int64(len(to)), err
	}
	fd, err := beneath.Open(l.top, name, unix.O_RDONLY)
	if err != nil {
		return nil, 0, fmt.Errorf("read %q: %w", name, err)
	}
	f := os.NewFile(uintptr(fd), name)
	st, err := f.Stat()
	if err == nil && (!st.Mode().IsRegular() || st.Size() > handFileMax) {
		err = problem.Errorf(problem.Conflict, "ls -ld "+inert.Path(path.Join(l.Top, name)), "%s is another file than it was a moment ago", inert.Path(name))
	}
	if err != nil {
		return nil, 0, errors.Join(err, f.Close())
	}
	return f, st.Size(), nil
}
