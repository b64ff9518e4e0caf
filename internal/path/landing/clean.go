package landing

import (
	"errors"
	"path"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"sallyport/internal/base/git"
	"sallyport/internal/base/inert"
	"sallyport/internal/base/problem"
)

// step is what one edit asks of the work tree and the index, and what was there before.
type step struct {
	git.Edit
	Live   bool       `json:"live"`  // the file must change; false: it is as approved already
	Index  bool       `json:"index"` // the index entry must change
	Staged git.Staged `json:"staged"`
	Perm   uint32     `json:"perm"` // of the old file: permission bits, owner, group
	UID    uint32     `json:"uid"`
	GID    uint32     `json:"gid"`
}

func (s *step) replaces() bool { return !s.Old.Absent() && !s.New.Absent() }
func (s *step) adds() bool     { return s.Old.Absent() && !s.New.Absent() }
func (s *step) deletes() bool  { return s.New.Absent() }

// untouched reports whether f is the old file, as it was when the landing was computed.
func (s *step) untouched(f found, fileMode bool) bool {
	return f.is(s.Old, fileMode) && f.Stat.Mode&0o7777 == s.Perm && f.Stat.Uid == s.UID && f.Stat.Gid == s.GID
}

func (s *site) dirty(next, format string, args ...any) error {
	return problem.Case(ErrDirty, next, format, args...)
}

// clean looks at each edited path in the work tree and the index. Both must hold what head
// holds, or already what was approved; ErrDirty names what does not (SM-103).
func (s *site) clean(x *git.Index, edits []git.Edit) ([]step, error) {
	steps := make([]step, len(edits))
	for i, e := range edits {
		st := &steps[i]
		st.Edit = e
		if err := s.checkedHere(x, e.Path); err != nil {
			return nil, err
		}
		f, err := s.work.look(e.Path)
		var way *inWay
		if errors.As(err, &way) && slices.ContainsFunc(folders([]string{e.Path}), func(up string) bool { return deleted(up, edits) }) {
			f, err = found{}, nil // what is in the way goes first; whether it is as expected is its own edit's matter
		}
		if err != nil {
			return nil, s.unreadable(e.Path, err)
		}
		if err := s.cleanLive(st, f, edits); err != nil {
			return nil, err
		}
		if err := s.cleanIndex(x, st, edits); err != nil {
			return nil, err
		}
	}
	return steps, nil
}

// checkedHere refuses a path that the work tree leaves out: its file is not there to be replaced.
func (s *site) checkedHere(x *git.Index, p string) error {
	switch {
	case !x.Entry(p).SkipWorktree:
		return nil
	case s.set["core.sparsecheckout"]:
		return s.oddState(s.command("sparse-checkout add "+inert.Path(path.Dir(p))),
			"the change touches %s, which the sparse checkout of %q leaves out: add its folder", inert.Path(p), s.Top)
	}
	return s.oddState(s.command("update-index --no-skip-worktree "+inert.Path(p)),
		"the change touches %s, which git is told to leave alone (skip-worktree)", inert.Path(p))
}

// unreadable says why a path could not be looked at.
func (s *site) unreadable(p string, err error) error {
	var way *inWay
	switch {
	case errors.As(err, &way):
		return s.dirty("ls -ld "+inert.Path(s.Top+"/"+way.path), "%[1]s is in the way of %[2]s: %[1]s %[3]s", inert.Path(way.path), inert.Path(p), way.why)
	case errors.Is(err, errChanging):
		return s.dirty(s.command("status"), "some program is writing to %s", inert.Path(p))
	}
	return s.dirty("ls -l "+inert.Path(s.Top+"/"+p), "%s cannot be read (%v)", inert.Path(p), err)
}

func (s *site) cleanLive(st *step, f found, edits []git.Edit) error {
	p := st.Path
	if f.isFolder() {
		return s.cleanFolder(st, edits)
	}
	switch {
	case f.is(st.New, s.work.fileMode):
		return nil
	case f.is(st.Old, s.work.fileMode):
		st.Live = true
	case !f.Exists:
		return s.dirty(s.command("status -- "+inert.Path(p)), "%s is deleted in the work tree, and that is not committed", inert.Path(p))
	case st.Old.Absent():
		return s.dirty("mv -i "+inert.Path(s.Top+"/"+p)+" "+inert.Path(s.Top+"/"+p+".mine"),
			"%s is an untracked file in the work tree, and a new file is to land there", inert.Path(p))
	default:
		return s.dirty(s.command("diff -- "+inert.Path(p)), "%s has changes in the work tree that are not committed", inert.Path(p))
	}
	if st.adds() {
		return s.cleanParents(p, edits)
	}
	st.Perm, st.UID, st.GID = f.Stat.Mode&0o7777, f.Stat.Uid, f.Stat.Gid
	return nil
}

// cleanFolder accepts a folder where a file is to land only if it will be empty by then.
func (s *site) cleanFolder(st *step, edits []git.Edit) error {
	p := st.Path
	if st.New.Absent() && needed(p, edits) { // a folder took the file's place, as approved
		return nil
	}
	if !st.Old.Absent() || st.New.Absent() {
		return s.dirty(s.command("status -- "+inert.Path(p)), "%s is a folder in the work tree, and the branch has a file there", inert.Path(p))
	}
	st.Live = true
	return s.vanishes(p, edits)
}

// vanishes refuses a folder that holds anything but what the edits delete.
func (s *site) vanishes(dir string, edits []git.Edit) error {
	entries, err := s.work.names(dir)
	if err != nil {
		return s.unreadable(dir, err)
	}
	for _, e := range entries {
		p := dir + "/" + e.Name()
		if deleted(p, edits) && !e.IsDir() {
			continue
		}
		if e.IsDir() && slices.ContainsFunc(edits, func(e git.Edit) bool { return strings.HasPrefix(e.Path, p+"/") }) {
			if err := s.vanishes(p, edits); err != nil {
				return err
			}
			continue
		}
		return s.dirty("ls -la "+inert.Path(s.Top+"/"+dir), "%s is untracked or ignored, and a file is to land in the place of its folder", inert.Path(p))
	}
	return nil
}

// cleanParents refuses a file in the place of a folder that a new path needs.
func (s *site) cleanParents(p string, edits []git.Edit) error {
	for _, up := range folders([]string{p}) {
		var st unix.Stat_t
		switch err := s.work.stat(up, &st); {
		case errors.Is(err, unix.ENOENT):
			return nil
		case err != nil:
			return s.unreadable(p, &inWay{up, "cannot be passed: " + err.Error()})
		case st.Mode&unix.S_IFMT == unix.S_IFDIR:
			continue
		case deleted(up, edits):
			return nil // it goes before the new path comes
		}
		return s.unreadable(p, &inWay{up, "is not a folder"})
	}
	return nil
}

// cleanRepositories refuses a new path in a folder of the work tree that is a repository of its own, where git would run what it is: one
// that the branch has nothing of.
func (s *site) cleanRepositories(x *git.Index, edits []git.Edit) error {
	var added []string
	for _, e := range edits {
		if e.Old.Absent() {
			added = append(added, e.Path)
		}
	}
	for _, up := range folders(added) {
		if s.repository(up) && len(x.Below(up)) == 0 {
			first := slices.IndexFunc(added, func(p string) bool { return strings.HasPrefix(p, up+"/") })
			return s.dirty("mv -i "+inert.Path(s.Top+"/"+up)+" "+inert.Path(s.Top+"/"+up+".mine"),
				"%s is in the way of %s: it is a git repository of its own, of which this one has nothing", inert.Path(up), inert.Path(added[first]))
		}
	}
	return nil
}

// repository reports whether git takes a folder of the work tree for a repository, or for the top of one. What cannot be looked at is in
// the way of what lands there, which is told elsewhere.
func (s *site) repository(dir string) bool {
	is := func(name string, kind uint32) bool {
		var st unix.Stat_t
		return s.work.stat(dir+"/"+name, &st) == nil && (kind == 0 || st.Mode&unix.S_IFMT == kind)
	}
	switch {
	case is(".git", unix.S_IFDIR):
		return is(".git/HEAD", 0)
	case is(".git", 0):
		return true
	}
	return is("HEAD", 0) && (is("objects", 0) && is("refs", 0) || is("commondir", 0))
}

func (s *site) cleanIndex(x *git.Index, st *step, edits []git.Edit) error {
	st.Staged = x.Entry(st.Path)
	p := inert.Path(st.Path)
	switch {
	case st.Staged.IntentToAdd:
		return s.dirty(s.command("status -- "+p), "%s is added with git add -N and not committed", p)
	case st.Staged.Entry == st.New:
		return nil
	case st.Staged.Entry != st.Old:
		return s.dirty(s.command("diff --cached -- "+p), "%s has staged changes that are not committed", p)
	}
	st.Index = true
	return s.cleanNeighbours(x, st.Path, edits)
}

// cleanNeighbours refuses entries that cannot stand beside a new file: one below its name, one above it.
func (s *site) cleanNeighbours(x *git.Index, p string, edits []git.Edit) error {
	near := x.Below(p)
	for _, up := range folders([]string{p}) {
		if !x.Entry(up).Absent() {
			near = append(near, up)
		}
	}
	for _, n := range near {
		if !deleted(n, edits) {
			return s.dirty(s.command("diff --cached -- "+inert.Path(n)), "%s is staged and not committed, and %s is to land in its place",
				inert.Path(n), inert.Path(p))
		}
	}
	return nil
}
