package workspace

import (
	"context"
	"fmt"
	"strings"

	"golang.org/x/sys/unix"

	"sallyport/internal/base/beneath"
	"sallyport/internal/base/git"
)

// prove walks a workspace anew and reads all that differs from the base; ErrNotRestored if
// that is not, path by path, byte by byte and mode by mode, what the commit has.
func (w Workspace) prove(ctx context.Context, host git.Dir, to git.OID, only []string) error {
	g, err := w.goal(ctx, host, to, only)
	if err != nil {
		return err
	}
	side, restore, err := w.OpenSide()
	if err != nil {
		return err
	}
	defer restore()
	defer unix.Close(side)
	var wrong []string
	err = w.ops.Do("restore:prove", func() error { // closed folders are opened for it
		for _, p := range g.paths {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			right, err := g.proven(side, p)
			if err != nil {
				return err
			}
			if !right {
				wrong = append(wrong, p)
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	for _, p := range g.odd {
		if g.want[p].Mode == git.Folder {
			wrong = append(wrong, p)
		}
	}
	switch len(wrong) {
	case 0:
		return nil
	case 1:
		return fmt.Errorf("%q differs: %w", wrong[0], ErrNotRestored)
	}
	return fmt.Errorf("%q and %d more differ: %w", wrong[0], len(wrong)-1, ErrNotRestored)
}

// proven reports whether p is what it shall be. What the walk did not find is as in the base.
func (g goal) proven(side int, p string) (bool, error) {
	e := g.file(p)
	f, found := g.found[p]
	switch {
	case !found:
		return !g.bare[p], nil
	case f.Deleted() || e.Absent():
		return f.Deleted() && e.Absent(), nil
	case f.Mode != e.Mode || f.Fact.HardLinks != 1 || f.Fact.Unreadable != "":
		return false, nil
	case e.Mode == git.Symlink:
		target := f.Fact.LinkTarget
		oid, err := git.HashBlob(e.OID.Format(), int64(len(target)), strings.NewReader(target))
		return oid == e.OID, err
	}
	file, size, err := beneath.File(side, p)
	if err != nil {
		return false, nil
	}
	defer file.Close()
	var st unix.Stat_t
	if err := unix.Fstat(int(file.Fd()), &st); err != nil {
		return false, err
	}
	if st.Mode&0o7777 != modeOf(e.Mode) {
		return false, nil
	}
	oid, err := git.HashBlob(e.OID.Format(), size, file)
	if err != nil {
		return false, nil // somebody writes to it
	}
	return oid == e.OID, nil
}
