package workspace

import (
	"bytes"
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
	"sallyport/internal/base/git"
	"sallyport/internal/base/whole"
	"sallyport/internal/path/repository"
	"sallyport/internal/port/sandbox"
)

// editsMax is how many edits are laid over a base; more are checked out as a layer of their own.
const editsMax = 5000

// Materialize makes a throw-away workspace that shows exactly a commit's tree, and no
// empty folder beside it. spec.Base is a commit whose layer is likely there: only the
// difference is written. Discard takes it away.
func (m *Manager) Materialize(ctx context.Context, spec Spec, commit git.OID) (Workspace, error) {
	w, err := m.materialize(ctx, spec, commit)
	if err != nil {
		return Workspace{}, fmt.Errorf("show %.12s: %w", commit, err)
	}
	return w, nil
}

// Discard takes a materialized workspace away; it does nothing to a prepared one.
func (m *Manager) Discard(ctx context.Context, w Workspace) error {
	if filepath.Dir(w.path) != filepath.Join(m.root, "shown") {
		return fmt.Errorf("%s is no throw-away workspace", w.path)
	}
	return m.discard(ctx, w.path)
}

func (m *Manager) materialize(ctx context.Context, spec Spec, commit git.OID) (Workspace, error) {
	defer m.Repositories.Hold(spec.Base)() // until its record names it
	host, err := m.Repository(ctx, spec.Project, spec.Base)
	if err != nil {
		return Workspace{}, err
	}
	s := showing{host: host, commit: commit, op: "shown:lay"}
	baseTree, err := host.Tree(ctx, spec.Base)
	if err != nil {
		return Workspace{}, err
	}
	if s.tree, err = host.Tree(ctx, commit); err != nil {
		return Workspace{}, err
	}
	if s.edits, err = host.Edits(ctx, baseTree, s.tree); err != nil {
		return Workspace{}, err
	}
	if err := showable(host, s.edits, commit); err != nil {
		return Workspace{}, err
	}
	if len(s.edits) <= editsMax {
		w, err := m.show(ctx, spec, s, baseTree)
		if !errors.Is(err, errNoWhiteouts) {
			return w, err
		}
	}
	s.edits = nil
	return m.show(ctx, spec, s, s.tree)
}

// showing is a tree to be shown as edits over a layer.
type showing struct {
	host   git.Dir
	op     string // under which the edits are laid
	commit git.OID
	tree   git.OID
	edits  []git.Edit
}

// errNoWhiteouts says that a deletion cannot be written into an upper folder here.
var errNoWhiteouts = errors.New("whiteouts cannot be made on this file system")

func (m *Manager) show(ctx context.Context, spec Spec, s showing, under git.OID) (Workspace, error) {
	commit := s.commit
	if len(s.edits) > 0 {
		commit = spec.Base
	}
	layer, release, err := m.Layer(ctx, s.host, under, commit)
	if err != nil {
		return Workspace{}, err
	}
	defer release()
	shown := filepath.Join(m.root, "shown")
	if err := whole.MakeFolder(m.ops, shown); err != nil {
		return Workspace{}, err
	}
	home := ""
	err = m.ops.Do("shown:name", func() error {
		home, err = os.MkdirTemp(shown, string(spec.Change)+"-")
		return err
	})
	if err != nil {
		return Workspace{}, err
	}
	r := record{Strategy: m.strategy, Base: s.commit, Owner: spec.Owner, Objects: []string{repository.ViewObjects(s.host, spec.Base)}, Setup: spec.Setup}
	r.on(layer)
	err = m.fill(home, r, layer, func(gitDir string) error {
		index := filepath.Join(gitDir, "index")
		if err := copyOne(layer.Index, index, 0o644, true); err != nil {
			return err
		}
		if err := updateIndex(ctx, s, index); err != nil {
			return err
		}
		upon, err := s.lend(ctx, spec.Base, gitDir)
		if err != nil {
			return err
		}
		return m.makeAgentGit(gitDir, s.host, spec, upon)
	})
	if err == nil && len(s.edits) > 0 {
		l := layout{top: filepath.Join(home, "tree"), owner: spec.Owner}
		if m.strategy == Overlay {
			l.top, l.overlay = filepath.Join(home, "upper"), true
		}
		err = m.lay(ctx, s, l)
	}
	if err != nil {
		return Workspace{}, errors.Join(err, m.discard(context.WithoutCancel(ctx), home))
	}
	spec.Base = s.commit
	return m.workspace(spec, home, r), nil
}

// lend copies the tree that is shown, as one commit upon the base, into the git directory beside it, and returns that commit. What
// stood between the two, invalid checkpoints among it, is not for everybody.
func (s showing) lend(ctx context.Context, base git.OID, gitDir string) (git.OID, error) {
	if s.commit == base {
		return base, nil
	}
	upon, err := s.host.Upon(ctx, "shown:commit", s.commit, base)
	if err != nil {
		return "", err
	}
	folder := filepath.Join(gitDir, "objects", "pack")
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return "", err
	}
	_, err = s.host.Do(ctx, "shown:objects", git.Cmd{
		Args:  []string{"pack-objects", "--revs", "-q", filepath.Join(folder, "pack")},
		Stdin: strings.NewReader(fmt.Sprintf("%s\n^%s\n", upon, base)),
	})
	return upon, err
}

// updateIndex brings a copy of a layer's index to the tree that is shown.
func updateIndex(ctx context.Context, s showing, index string) error {
	if len(s.edits) == 0 {
		return nil
	}
	var in bytes.Buffer
	for _, e := range s.edits {
		if e.New.Absent() {
			fmt.Fprintf(&in, "0 %s\t%s\x00", e.Old.OID, e.Path)
		}
	}
	for _, e := range s.edits {
		if !e.New.Absent() {
			fmt.Fprintf(&in, "%s %s\t%s\x00", e.New.Mode, e.New.OID, e.Path)
		}
	}
	_, err := s.host.Do(ctx, "shown:index", git.Cmd{
		Args: []string{"update-index", "-z", "--index-info"}, Stdin: &in,
		Env: []string{"GIT_INDEX_FILE=" + index},
	})
	return err
}

// lay writes edits into an upper folder that no overlay is mounted on yet, or into a copy.
func (m *Manager) lay(ctx context.Context, s showing, l layout) error {
	gone, err := emptied(ctx, s)
	if err != nil {
		return err
	}
	l.made = map[string]bool{}
	return m.ops.Do(s.op, func() error {
		for _, p := range gone {
			if err := l.hide(p); err != nil {
				return err
			}
		}
		var writes []git.Edit
		var blobs []git.OID
		for _, e := range s.edits {
			if !e.New.Absent() {
				writes, blobs = append(writes, e), append(blobs, e.New.OID)
			}
		}
		i := 0
		return s.host.Blobs(ctx, blobs, func(_ git.OID, _ int64, r io.Reader) error {
			i++
			return l.write(writes[i-1], r)
		})
	})
}

// emptied returns what has to be hidden: deleted paths, or the highest folder above
// them that the new tree does not have. What a new entry takes the place of is hidden by that.
func emptied(ctx context.Context, s showing) ([]string, error) {
	var gone []string
	above := map[string]git.Entry{}
	for _, e := range s.edits {
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
	entries, err := s.host.Lookup(ctx, s.tree, folders)
	if err != nil {
		return nil, err
	}
	for i, p := range folders {
		above[p] = entries[i]
	}
	added := map[string]bool{} // what a new entry stands at
	for _, e := range s.edits {
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
		if !covered && !hasBelow(s.edits, p) {
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

// plainPath reports whether a path of a tree stays below the top when it is joined to it.
func plainPath(p string) bool {
	for part := range strings.SplitSeq(p, "/") {
		if part == "" || part == "." || part == ".." || strings.EqualFold(part, ".git") {
			return false
		}
	}
	return true
}

// layout writes into an upper folder or a plain copy, which is the host's own until it is shown.
type layout struct {
	top     string
	owner   sandbox.Owner
	overlay bool
	made    map[string]bool // folders known to be folders
}

// parents sees to it that a path lies in real folders, and in no link.
func (l *layout) parents(p string) error {
	folder := path.Dir(p)
	if folder == "." || l.made[folder] {
		return nil
	}
	if err := l.parents(folder); err != nil {
		return err
	}
	l.made[folder] = true
	name := filepath.Join(l.top, folder)
	st, err := os.Lstat(name)
	if err == nil && st.IsDir() {
		return nil
	}
	if err == nil {
		if err := os.Remove(name); err != nil { // a file of the base, which becomes a folder
			return err
		}
	}
	return ownFolder(name, l.owner)
}

// hide takes what the base has at p out of sight.
func (l *layout) hide(p string) error {
	if err := l.parents(p); err != nil {
		return err
	}
	name := filepath.Join(l.top, p)
	if !l.overlay {
		return beneath.RemoveAll(name)
	}
	err := unix.Mknod(name, unix.S_IFCHR, 0) // an ordinary user may make this one device
	switch err {
	case unix.EPERM, unix.EINVAL, unix.ENOSYS, unix.EOPNOTSUPP: // a container's rule, an old kernel, a file system without devices
		return fmt.Errorf("%w: %w", errNoWhiteouts, err)
	}
	return err
}

func (l *layout) write(e git.Edit, r io.Reader) error {
	if err := l.parents(e.Path); err != nil {
		return err
	}
	name := filepath.Join(l.top, e.Path)
	if !l.overlay {
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
		return own(name, l.owner)
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
	return own(name, l.owner)
}
