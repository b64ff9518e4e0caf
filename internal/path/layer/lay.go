package layer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"sallyport/internal/base/beneath"
	"sallyport/internal/base/disk"
	"sallyport/internal/base/git"
	"sallyport/internal/base/problem"
	"sallyport/internal/port/sandbox"
)

// EditsMax is how many edits are laid over a base; more are checked out as a layer of their own.
const EditsMax = 5000

// Showing is a tree to be shown as edits over a layer.
type Showing struct {
	Host   git.Dir
	Op     string // under which the edits are laid
	Commit git.OID
	Tree   git.OID
	Edits  []git.Edit
}

// ErrNoWhiteouts says that a deletion cannot be written into an upper folder here.
var ErrNoWhiteouts = errors.New("whiteouts cannot be made on this file system")

// Showable refuses edits whose outcome no workspace shows.
func Showable(host git.Dir, edits []git.Edit, commit git.OID) error {
	for _, e := range edits {
		if e.New.Mode == git.Submodule || !PlainPath(e.Path) {
			return problem.Errorf(problem.Refused, host.Command("show "+string(commit)),
				"%q is a submodule, or not a plain path, so no workspace can hold it", e.Path)
		}
	}
	return nil
}

// Lay writes edits into an upper folder that no overlay is mounted on yet, or into a copy.
func Lay(ctx context.Context, ops disk.Ops, s Showing, l Layout) error {
	gone, err := emptied(ctx, s)
	if err != nil {
		return err
	}
	l.made = map[string]bool{}
	return ops.Do(s.Op, func() error {
		for _, p := range gone {
			if err := l.hide(p); err != nil {
				return err
			}
		}
		var writes []git.Edit
		var blobs []git.OID
		for _, e := range s.Edits {
			if !e.New.Absent() {
				writes, blobs = append(writes, e), append(blobs, e.New.OID)
			}
		}
		i := 0
		return s.Host.Blobs(ctx, blobs, func(_ git.OID, _ int64, r io.Reader) error {
			i++
			return l.write(writes[i-1], r)
		})
	})
}

// emptied returns what has to be hidden: deleted paths, or the highest folder above
// them that the new tree does not have. What a new entry takes the place of is hidden by that.
func emptied(ctx context.Context, s Showing) ([]string, error) {
	var gone []string
	above := map[string]git.Entry{}
	for _, e := range s.Edits {
		if !e.New.Absent() {
			continue
		}
		gone = append(gone, e.Path)
		for p := path.Dir(e.Path); p != "."; p = path.Dir(p) {
			above[p] = git.Entry{}
		}
	}
	folders := make([]string, 0, len(above))
	for p := range above {
		folders = append(folders, p)
	}
	entries, err := s.Host.Lookup(ctx, s.Tree, folders)
	if err != nil {
		return nil, err
	}
	for i, p := range folders {
		above[p] = entries[i]
	}
	added := map[string]bool{} // what a new entry stands at
	for _, e := range s.Edits {
		if !e.New.Absent() {
			added[e.Path] = true
		}
	}
	var hide []string
	for _, p := range gone {
		highest, covered := p, false
		for up := path.Dir(p); up != "."; up = path.Dir(up) {
			covered = covered || added[up]
			if above[up].Absent() {
				highest = up
			}
		}
		if !covered && !hasBelow(s.Edits, p) {
			hide = append(hide, highest)
		}
	}
	slices.Sort(hide)
	return slices.Compact(hide), nil
}

// hasBelow reports whether an edit puts something below p, which then is a folder.
func hasBelow(edits []git.Edit, p string) bool {
	i, _ := slices.BinarySearchFunc(edits, p+"/", func(e git.Edit, p string) int { return strings.Compare(e.Path, p) })
	for ; i < len(edits) && strings.HasPrefix(edits[i].Path, p+"/"); i++ {
		if !edits[i].New.Absent() {
			return true
		}
	}
	return false
}

// PlainPath reports whether a path of a tree stays below the top when it is joined to it.
func PlainPath(p string) bool {
	for part := range strings.SplitSeq(p, "/") {
		if part == "" || part == "." || part == ".." || strings.EqualFold(part, ".git") {
			return false
		}
	}
	return true
}

// Layout writes into an upper folder or a plain copy, which is the host's own until it is shown.
type Layout struct {
	Top     string
	Owner   sandbox.Owner
	Overlay bool
	made    map[string]bool // folders known to be folders
}

// parents sees to it that a path lies in real folders, and in no link.
func (l *Layout) parents(p string) error {
	folder := path.Dir(p)
	if folder == "." || l.made[folder] {
		return nil
	}
	if err := l.parents(folder); err != nil {
		return err
	}
	l.made[folder] = true
	name := filepath.Join(l.Top, folder)
	st, err := os.Lstat(name)
	if err == nil && st.IsDir() {
		return nil
	}
	if err == nil {
		if err := os.Remove(name); err != nil { // a file of the base, which becomes a folder
			return err
		}
	}
	return OwnFolder(name, l.Owner)
}

// hide takes what the base has at p out of sight.
func (l *Layout) hide(p string) error {
	if err := l.parents(p); err != nil {
		return err
	}
	name := filepath.Join(l.Top, p)
	if !l.Overlay {
		return beneath.RemoveAll(name)
	}
	err := unix.Mknod(name, unix.S_IFCHR, 0) // an ordinary user may make this one device
	switch err {
	case unix.EPERM, unix.EINVAL, unix.ENOSYS, unix.EOPNOTSUPP: // a container's rule, an old kernel, a file system without devices
		return fmt.Errorf("%w: %w", ErrNoWhiteouts, err)
	}
	return err
}

func (l *Layout) write(e git.Edit, r io.Reader) error {
	if err := l.parents(e.Path); err != nil {
		return err
	}
	name := filepath.Join(l.Top, e.Path)
	if !l.Overlay {
		if err := beneath.RemoveAll(name); err != nil {
			return err
		}
	}
	if e.New.Mode == git.Symlink {
		target, err := io.ReadAll(r)
		if err != nil {
			return err
		}
		if err := os.Symlink(string(target), name); err != nil {
			return err
		}
		return own(name, l.Owner)
	}
	mode := os.FileMode(0o644)
	if e.New.Mode == git.Executable {
		mode = 0o755
	}
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL|unix.O_NOFOLLOW, mode)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, r)
	if err == nil {
		err = f.Chmod(mode) // whatever the umask
	}
	if closed := f.Close(); err == nil {
		err = closed
	}
	if err != nil {
		return err
	}
	return own(name, l.Owner)
}
