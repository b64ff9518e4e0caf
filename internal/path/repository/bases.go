package repository

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"sallyport/internal/base/git"
	"sallyport/internal/base/inert"
	"sallyport/internal/base/problem"
	"sallyport/internal/base/whole"
)

// The host's repository of a project holds two kinds of objects, in two folders:
//
//	objects/                        what the host writes: checkpoints, computed trees
//	bases/objects/pack/             what bases reach: one pack for each time something new was copied
//	bases/views/<commit>/objects/   packs by hard link: those, and only those, that one base reaches
//	bases/views/<commit>/stages     what these packs are, the oldest first
//	bases/views/<commit>/shallow    the commits of it whose parents were not copied; no file: none
//
// Packs are copied from the project once, and nothing of the project's is relied on afterwards. An agent is shown the view of its
// base and nothing else: no stash, no deleted branch, nothing that was only ever added, no other change's checkpoint.
const (
	basesFolder = "bases"
	viewsFolder = "bases/views"
)

// usedStep is how exactly it is known when a base was last used.
const usedStep = time.Hour

// basesBorrowed is the one line of the host's own alternates; a home may be moved.
const basesBorrowed = "../bases/objects\n"

// basesIn is the git directory of what bases reach.
func (r *Store) basesIn(host git.Dir) git.Dir {
	return git.Dir{Path: filepath.Join(host.Path, basesFolder), Ops: r.ops}
}

// view is where what one base reaches is, made or not.
func view(host git.Dir, base git.OID) string {
	return filepath.Join(host.Path, viewsFolder, string(base))
}

// ViewObjects is the folder of it that an agent is shown.
func ViewObjects(host git.Dir, base git.OID) string {
	return filepath.Join(view(host, base), "objects")
}

// ViewShallow returns the commits of a view whose parents are not in it.
func ViewShallow(host git.Dir, base git.OID) ([]byte, error) {
	data, err := os.ReadFile(filepath.Join(view(host, base), "shallow"))
	if os.IsNotExist(err) {
		return nil, nil
	}
	return data, err
}

// hold sees to it that the host's repository holds what a commit reaches. The commit is the project's, or one that the host made itself.
//
// Errors: problem.NotFound if neither has it.
func (r *Store) hold(ctx context.Context, host git.Dir, project git.Project, commit git.OID) error {
	if !commit.Valid() {
		return fmt.Errorf("%q is not the id of a commit", commit)
	}
	if st, err := os.Stat(view(host, commit)); err == nil {
		if time.Since(st.ModTime()) < usedStep {
			return nil
		}
		return r.ops.Do("bases:use", func() error { return os.Chtimes(view(host, commit), time.Time{}, time.Now()) })
	}
	if err := project.Plain(); err != nil { // git would wait for ever on what is no file
		return err
	}
	source := project.Common(r.ops)
	there, err := holds(ctx, source, commit)
	if err == nil && !there {
		source = host
		there, err = holds(ctx, host, commit)
	}
	if err != nil {
		return err
	}
	if !there {
		return problem.Errorf(problem.NotFound, "git -C "+inert.Path(project.Top)+" reflog", "the commit %.12s is not in %q any more", commit, project.Top)
	}
	depth := r.History
	if partial, err := promised(project); err != nil || partial {
		if err != nil {
			return err
		}
		depth = 1
	}
	return r.grow(ctx, copying{host: host, source: source, depth: depth}, commit)
}

// promised reports whether a clone is partial: of older commits than the one that is checked out it may lack anything.
func promised(project git.Project) (bool, error) {
	entries, err := os.ReadDir(filepath.Join(project.CommonDir, "objects", "pack"))
	if os.IsNotExist(err) {
		return false, nil
	}
	return slices.ContainsFunc(entries, func(e os.DirEntry) bool { return strings.HasSuffix(e.Name(), ".promisor") }), err
}

// sight is what the view of a base is made of.
type sight struct {
	base   git.OID
	near   git.OID // the view that has the packs of the stages; "" = there are none
	stages []stage
	pack   string // what comes upon the stages, of those that all bases share
	cut    []git.OID
}

// reveal makes the view of a base: its packs are there already. It comes last, under its name by one rename, after the cut of
// its history is known to the host's own git.
func (r *Store) reveal(ctx context.Context, host git.Dir, s sight) error {
	at := view(host, s.base)
	temp := whole.Fresh(at)
	if err := whole.Remove(r.ops, "bases:clear", temp); err != nil {
		return err
	}
	slices.Sort(s.cut)
	shallow := lines(slices.Compact(s.cut))
	if err := r.cut(host, shallow); err != nil {
		return err
	}
	err := r.ops.Do("bases:view", func() error { return s.lay(r.basesIn(host), host, temp, shallow) })
	if err != nil {
		return fmt.Errorf("make the history of commit %.12s readable for an agent: %w", s.base, err)
	}
	return r.ops.Do("bases:commit", func() error { return whole.Commit(temp, at) })
}

// lay lays out a view under a name of its own.
func (s sight) lay(bases, host git.Dir, temp, shallow string) error {
	for _, folder := range []string{"", "objects", "objects/info", "objects/pack"} {
		if err := os.MkdirAll(filepath.Join(temp, folder), 0o755); err != nil {
			return err
		}
		if err := os.Chmod(filepath.Join(temp, folder), 0o755); err != nil { // whatever the umask
			return err
		}
	}
	to := filepath.Join(temp, "objects/pack")
	for _, under := range s.stages {
		if err := linkPack(filepath.Join(ViewObjects(host, s.near), "pack"), to, under.pack); err != nil {
			return err
		}
	}
	if err := linkPack(filepath.Join(bases.Path, "objects/pack"), to, s.pack); err != nil {
		return err
	}
	if err := writeStages(temp, append(slices.Clip(s.stages), stage{s.pack, s.base})); err != nil || shallow == "" {
		return err
	}
	return os.WriteFile(filepath.Join(temp, "shallow"), []byte(shallow), 0o644)
}

// linkPack gives a pack a second name, its index last; it may have it already.
func linkPack(from, to, pack string) error {
	for _, kind := range []string{".pack", ".rev", ".idx"} {
		err := os.Link(filepath.Join(from, pack+kind), filepath.Join(to, pack+kind))
		if err != nil && !os.IsExist(err) && !(kind == ".rev" && os.IsNotExist(err)) { // older gits make none
			return err
		}
	}
	return nil
}

// cut adds to where history ends for the host's own git, which sees all bases at once.
func (r *Store) cut(host git.Dir, shallow string) error {
	if shallow == "" {
		return nil
	}
	for _, dir := range []string{host.Path, filepath.Join(host.Path, basesFolder)} {
		path := filepath.Join(dir, "shallow")
		old, err := os.ReadFile(path)
		if err != nil && !os.IsNotExist(err) {
			return err
		}
		all := slices.Sorted(strings.Lines(string(old) + shallow))
		if err := whole.SetFile(r.ops, "bases:cut", path, []byte(strings.Join(slices.Compact(all), ""))); err != nil {
			return err
		}
	}
	return nil
}

// lines writes one id a line.
func lines(oids []git.OID) string {
	var b strings.Builder
	for _, oid := range oids {
		b.WriteString(string(oid) + "\n")
	}
	return b.String()
}
