package landing

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"sallyport/internal/base/disk"
	"sallyport/internal/base/git"
	"sallyport/internal/base/id"
)

// asidePrefix begins the name of a folder among a person's objects that git writes what lands into. Git itself
// uses such folders, and collects them like every temporary file of its own.
const asidePrefix = "tmp_objdir-sallyport-"

func asideName(l id.Landing) string { return path.Join("objects", asidePrefix+string(l)) }

// objects are a person's, and a folder of ours beside them.
type objects struct{ *site }

// bring copies a commit, and what it needs beyond have, from the host's repository to the person's. Git writes
// aside, and what is complete gets a second name among their objects, the index of a pack last: whatever is
// killed meanwhile, what is left half lies in a folder that is known to be ours. Few objects come loose, so that
// their own git counts and packs them as it does after commits of theirs; we never do. It returns what the commit changes.
func (s objects) bring(ctx context.Context, ops disk.Ops, op string, l *Landing, host git.Dir) ([]git.Edit, error) {
	aside := asideName(l.ID)
	theirs := s.Common(ops)
	if fd, err := s.common.open("objects", unix.O_PATH|unix.O_DIRECTORY); err != nil { // they keep them elsewhere, through a link
		return theirs.Bring(ctx, op, host, l.NewCommit, l.Head)
	} else {
		unix.Close(fd)
	}
	if err := ops.Do("git:room", func() error { return s.makeRoom(path.Join(aside, "pack"), -1) }); err != nil {
		return nil, fmt.Errorf("make room for objects in %q: %w", s.CommonDir, err)
	}
	theirs.Objects = path.Join(s.CommonDir, aside)
	edits, err := theirs.Bring(ctx, op, host, l.NewCommit, l.Head)
	if err != nil {
		return nil, errors.Join(err, s.dropAside(ops, aside))
	}
	err = ops.Do("git:link", func() error {
		if err := s.flush(aside); err != nil {
			return err
		}
		if err := s.linkLoose(aside); err != nil {
			return err
		}
		return s.linkPacks(aside)
	})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("add to the objects of %q: %w", s.Top, err), s.dropAside(ops, aside))
	}
	return edits, s.dropAside(ops, aside)
}

// flush brings to disk what git wrote aside. An object that has its name among a person's and is torn would never be written again: their
// git takes it for there.
func (s objects) flush(aside string) error {
	fd, err := s.common.open(aside, unix.O_RDONLY|unix.O_DIRECTORY)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return unix.Syncfs(fd)
}

// linkLoose names the loose objects aside among the person's. Each is whole, whatever becomes of the others. Of their names that which is
// known last is brought to disk: one that is lost with the power is given again, for all of them are looked for until the row is closed.
func (s objects) linkLoose(aside string) error {
	folders, err := s.common.names(aside)
	if err != nil {
		return err
	}
	last := ""
	for _, f := range folders {
		if !f.IsDir() {
			continue
		}
		objects, err := s.common.names(path.Join(aside, f.Name()))
		if err != nil {
			return err
		}
		var names []string
		for _, o := range objects {
			if git.OID(f.Name()+o.Name()).Valid() && o.Type().IsRegular() {
				names = append(names, o.Name())
			}
		}
		if len(names) == 0 {
			continue
		}
		last = path.Join("objects", f.Name())
		if err := s.link(path.Join(aside, f.Name()), last, names); err != nil {
			return err
		}
	}
	return s.syncFolder(last)
}

// linkPacks names the files of the packs aside among the person's, those that git looks for last.
func (s objects) linkPacks(aside string) error {
	names, err := s.packs(aside)
	if err != nil || len(names) == 0 {
		return err
	}
	if err := s.link(path.Join(aside, "pack"), "objects/pack", names); err != nil {
		return err
	}
	return s.syncFolder("objects/pack")
}

// syncFolder brings the names in a folder of the common git directory to disk; "" is none, and one that their git has removed meanwhile
// had nothing of ours any more.
func (s objects) syncFolder(p string) error {
	if p == "" {
		return nil
	}
	fd, err := s.common.open(p, unix.O_RDONLY|unix.O_DIRECTORY)
	if errors.Is(err, unix.ENOENT) {
		return nil
	}
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return unix.Fsync(fd)
}

// link gives files of one folder of the common git directory a second name in another one, in that order, unless they have it.
func (s objects) link(in, among string, names []string) error {
	return again(func() error { return s.linkOnce(in, among, names) })
}

// linkTries is how often a folder may go under our hands: a person's git removes those among its objects that it finds empty.
const linkTries = 5

// again tries anew what a folder was missing for, linkTries times at most.
func again(try func() error) (err error) {
	for range linkTries {
		if err = try(); !errors.Is(err, unix.ENOENT) {
			return err
		}
	}
	return err
}

func (s objects) linkOnce(in, among string, names []string) error {
	from, err := s.common.open(in, unix.O_PATH|unix.O_DIRECTORY)
	if err != nil {
		return err
	}
	defer unix.Close(from)
	if err := s.makeRoom(among, from); err != nil {
		return err
	}
	to, err := s.common.open(among, unix.O_PATH|unix.O_DIRECTORY)
	if err != nil {
		return err
	}
	defer unix.Close(to)
	for _, name := range names {
		if err := unix.Linkat(from, name, to, name, 0); err != nil && !errors.Is(err, unix.EEXIST) {
			return err
		}
	}
	return nil
}

// makeRoom makes a folder of the common git directory, unless it is there.
func (s objects) makeRoom(p string, ours int) error {
	fd, _, err := s.common.makeWay(path.Join(p, "any"), s.UID, s.GID, ours)
	if err == nil {
		unix.Close(fd)
	}
	return err
}

// packs lists the files of the packs aside, each pack before its index.
func (s objects) packs(aside string) ([]string, error) {
	entries, err := s.common.names(path.Join(aside, "pack"))
	if errors.Is(err, unix.ENOENT) {
		return nil, nil
	}
	var names []string
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), "pack-") && e.Type().IsRegular() {
			names = append(names, e.Name())
		}
	}
	slices.SortFunc(names, func(a, b string) int {
		if x, y := strings.HasSuffix(a, ".idx"), strings.HasSuffix(b, ".idx"); x != y {
			if x {
				return 1
			}
			return -1
		}
		return strings.Compare(a, b)
	})
	return names, err
}

// dropAside removes a folder of ours, and first what it gave half: a pack without its index is of no use to anybody.
func (s objects) dropAside(ops disk.Ops, aside string) error {
	if !s.common.has(aside) {
		return nil
	}
	names, err := s.packs(aside)
	if err != nil {
		return err
	}
	err = ops.Do("git:aside", func() error {
		for _, name := range names {
			there := path.Join("objects/pack", name)
			pack := strings.TrimSuffix(there, path.Ext(there))
			if s.common.has(pack+".idx") || !s.twins(path.Join(aside, "pack", name), there) {
				continue
			}
			if err := s.common.unlink(there); err != nil {
				return err
			}
		}
		in, name, err := s.common.parent(aside)
		if err != nil {
			return err
		}
		defer unix.Close(in)
		return removeAll(in, name, nil)
	})
	if err != nil {
		return fmt.Errorf("clear %q: %w", path.Join(s.CommonDir, aside), err)
	}
	return nil
}

// twins reports whether two paths of the git directory name one file.
func (s objects) twins(a, b string) bool {
	var x, y unix.Stat_t
	return s.common.stat(a, &x) == nil && s.common.stat(b, &y) == nil && x.Ino == y.Ino && x.Dev == y.Dev
}

// sweepAside removes what landings that were killed have left among the objects. Whoever imports holds the
// lock that we hold now, so nobody is at work in any of it.
func (s objects) sweepAside(ops disk.Ops) error {
	entries, err := s.common.names("objects")
	if err != nil {
		return nil // they keep them elsewhere: nothing of ours is there
	}
	for _, e := range entries {
		if isAside(e) {
			if err := s.dropAside(ops, path.Join("objects", e.Name())); err != nil {
				return err
			}
		}
	}
	return nil
}

// isAside reports whether an entry of the objects is a folder that a landing had git write into.
func isAside(e os.DirEntry) bool {
	name, ok := strings.CutPrefix(e.Name(), asidePrefix)
	_, err := id.ParseLanding(name)
	return ok && e.IsDir() && err == nil
}

// ClearAside removes what killed landings of any home have left among a project's objects. While another landing
// holds the repository nothing is done (ErrBusy).
func (l *Lander) ClearAside(ctx context.Context, p git.Project) error {
	held, err := l.lock(ctx, p)
	if err != nil {
		return err
	}
	defer held.Close()
	s, err := openSite(ctx, p)
	if err != nil {
		return err
	}
	defer s.close()
	return objects{s}.sweepAside(l.Ops)
}
