package proposal

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"

	"sallyport/internal/base/git"
	"sallyport/internal/base/id"
	"sallyport/internal/base/inert"
	"sallyport/internal/path/repository"
)

// Reapplied is a change's edits on another commit than the one that they were made on.
type Reapplied struct {
	Onto   git.OID
	Commit git.OID // Onto with what applies
	Writes int     // paths that differ there
	Not    []Unapplied
}

// Unapplied is an edit that does not fit: its path is as Onto has it.
type Unapplied struct {
	Path  string
	Why   Misfit
	Hunks string // both sides where they meet, of a text; an agent's and the branch's words
}

// Misfit is why an edit does not fit, as it is told to the agent that made it.
type Misfit string

const (
	Blocked   Misfit = "a file is there now where its folder was"
	Covered   Misfit = "a folder is there now"
	GoneThere Misfit = "you changed it, and it was deleted there"
	GoneHere  Misfit = "you deleted it, and it was changed there"
	NoFile    Misfit = "both sides changed it, and it is no ordinary file"
	TooLarge  Misfit = "both sides changed it, and it is too large to merge"
	SameLines Misfit = "both sides changed the same lines"
	NoLines   Misfit = "both sides changed it, and it cannot be merged line by line"
)

const (
	mergeBytesMax = 1 << 20  // of a file that both sides changed; a larger one does not apply
	hunkBytesMax  = 4 << 10  // of one file, told to the agent
	hunksBytesMax = 24 << 10 // of all
)

// Reapplying is what edits are put on another commit with.
type Reapplying struct {
	Host   git.Dir // that holds Onto
	Change id.Change
	Branch string
	Edits  []git.Edit
	Onto   git.OID
	Author git.Signature // of the host's own commits; its At counts
	Keep   string        // name below the change's refs that keeps the outcome; "" = redo
}

// Reapply puts the edits of a proposal on another commit, path by path: as they are where the branch did not move, merged line by
// line where both changed a text, and not at all where that does not fit. Nothing lands by it: a new card follows.
func Reapply(ctx context.Context, r Reapplying) (Reapplied, error) {
	m := merging{Reapplying: r, Reapplied: Reapplied{Onto: r.Onto}}
	if err := m.sort(ctx); err != nil {
		return Reapplied{}, err
	}
	if err := m.merge(ctx); err != nil {
		return Reapplied{}, err
	}

	m.Writes, m.Commit = len(m.put), r.Onto
	var err error
	if len(m.put) > 0 {
		m.Commit, err = m.commitOf(ctx, cmp.Or(r.Keep, "redo"), r.Onto, []git.OID{r.Onto}, m.put)
	}
	return m.Reapplied, err
}

// merging is a reapply under way.
type merging struct {
	Reapplying
	Reapplied

	put  []git.Write // what applies
	both []collision // texts that both sides changed
}

// collision is a path that both sides changed.
type collision struct {
	git.Edit
	there git.Entry
}

// sort says of each edit whether it applies as it is, is there already, or meets a change of the branch's.
func (m *merging) sort(ctx context.Context) error {
	var paths, above []string
	for _, e := range m.Edits {
		paths = append(paths, e.Path)
		for up := path.Dir(e.Path); up != "."; up = path.Dir(up) {
			above = append(above, up)
		}
	}
	there, err := m.Host.Lookup(ctx, m.Reapplying.Onto, append(slices.Clone(paths), above...))
	if err != nil {
		return err
	}
	is, gone := map[string]git.Entry{}, map[string]bool{}
	for i, p := range append(paths, above...) {
		is[p] = there[i]
	}
	for _, e := range m.Edits {
		gone[e.Path] = e.New.Absent() && is[e.Path] == e.Old
	}
	for _, e := range m.Edits {
		at := is[e.Path]
		switch {
		case at == e.New:
		case !e.New.Absent() && blocked(e.Path, is, gone):
			m.Not = append(m.Not, Unapplied{Path: e.Path, Why: Blocked})
		case at == e.Old:
			m.put = append(m.put, git.Write{Path: e.Path, Mode: e.New.Mode, OID: e.New.OID})
		case at.Mode == git.Folder && e.New.Absent():
		case at.Mode == git.Folder:
			m.Not = append(m.Not, Unapplied{Path: e.Path, Why: Covered})
		case at.Absent():
			m.Not = append(m.Not, Unapplied{Path: e.Path, Why: GoneThere})
		case e.New.Absent():
			m.Not = append(m.Not, Unapplied{Path: e.Path, Why: GoneHere})
		case !plain(at) || !plain(e.New) || !e.Old.Absent() && !plain(e.Old):
			m.Not = append(m.Not, Unapplied{Path: e.Path, Why: NoFile})
		default:
			m.both = append(m.both, collision{e, at})
		}
	}
	return nil
}

func plain(e git.Entry) bool { return e.Mode == git.File || e.Mode == git.Executable }

// blocked reports whether a file is there where a path needs a folder, and stays.
func blocked(p string, is map[string]git.Entry, gone map[string]bool) bool {
	for up := path.Dir(p); up != "."; up = path.Dir(up) {
		if e := is[up]; !e.Absent() && e.Mode != git.Folder && !gone[up] {
			return true
		}
	}
	return false
}

// merge joins the texts that both sides changed. git does it on three trees that hold these files alone, in the
// host's repository, whose configuration and attributes are the host's.
func (m *merging) merge(ctx context.Context) error {
	if err := m.bound(ctx); err != nil || len(m.both) == 0 {
		return err
	}
	side := func(of func(collision) git.Entry) (writes []git.Write) {
		for _, b := range m.both {
			if e := of(b); !e.Absent() {
				writes = append(writes, git.Write{Path: b.Path, Mode: e.Mode, OID: e.OID})
			}
		}
		return writes
	}
	base, err := m.commitOf(ctx, "merge/base", "", nil, side(func(b collision) git.Entry { return b.Old }))
	if err != nil {
		return err
	}
	theirs, err := m.commitOf(ctx, "merge/branch", "", []git.OID{base}, side(func(b collision) git.Entry { return b.there }))
	if err != nil {
		return err
	}
	ours, err := m.commitOf(ctx, "merge/change", "", []git.OID{base}, side(func(b collision) git.Entry { return b.New }))
	if err != nil {
		return err
	}
	tree, conflicts, err := m.mergeTree(ctx, theirs, ours)
	if err != nil {
		return err
	}
	if err := m.collect(ctx, tree, conflicts, strings.NewReplacer(string(theirs), m.Branch, string(ours), "your edit")); err != nil {
		return err
	}
	root := repository.RefRoot(m.Change) + "merge/"
	return repository.DropRefs(ctx, m.Host, map[string]git.OID{root + "base": base, root + "branch": theirs, root + "change": ours})
}

// mergeTree merges two commits and returns the tree, with marks where they conflict, and the paths where they do.
func (m *merging) mergeTree(ctx context.Context, theirs, ours git.OID) (tree git.OID, conflicts map[string]bool, err error) {
	out, err := m.Host.Do(ctx, "redo:merge", git.Cmd{
		Args:   []string{"merge-tree", "--write-tree", "-z", "--name-only", string(theirs), string(ours)},
		Config: []string{"merge.renames=false", "merge.directoryRenames=false", "merge.conflictStyle=merge"},
	})
	var failed *git.Failure
	if err != nil && (!errors.As(err, &failed) || failed.Code != 1) { // 1: there are conflicts
		return "", nil, fmt.Errorf("merge: %w", err)
	}
	fields := strings.Split(string(out), "\x00")
	if tree = git.OID(fields[0]); !tree.Valid() {
		return "", nil, fmt.Errorf("merge: unexpected answer %.100q", out)
	}
	conflicts = map[string]bool{}
	for _, name := range fields[1:] {
		if name == "" { // messages follow
			break
		}
		conflicts[name] = true
	}
	return tree, conflicts, nil
}

// bound leaves out what is too large to merge.
func (m *merging) bound(ctx context.Context) error {
	var small []collision
	for _, b := range m.both {
		large := false
		sides := slices.DeleteFunc([]git.OID{b.Old.OID, b.New.OID, b.there.OID}, func(o git.OID) bool { return o == "" })
		err := m.Host.Blobs(ctx, sides, func(_ git.OID, size int64, _ io.Reader) error {
			large = large || size > mergeBytesMax
			return nil
		})
		if err != nil {
			return err
		}
		if large {
			m.Not = append(m.Not, Unapplied{Path: b.Path, Why: TooLarge})
		} else {
			small = append(small, b)
		}
	}
	m.both = small
	return nil
}

// collect takes what was merged, and what was not, out of the tree of a merge.
func (m *merging) collect(ctx context.Context, tree git.OID, conflicts map[string]bool, names *strings.Replacer) error {
	paths := make([]string, len(m.both))
	for i, b := range m.both {
		paths[i] = b.Path
	}
	found, err := m.Host.Lookup(ctx, tree, paths)
	if err != nil {
		return err
	}
	told := 0
	for i, b := range m.both {
		switch e := found[i]; {
		case !conflicts[b.Path] && plain(e):
			if e != b.there {
				m.put = append(m.put, git.Write{Path: b.Path, Mode: e.Mode, OID: e.OID})
			}
		default:
			u := Unapplied{Path: b.Path, Why: SameLines}
			if u.Hunks, err = m.hunks(ctx, e, min(hunkBytesMax, hunksBytesMax-told)); err != nil {
				return err
			}
			if u.Hunks = names.Replace(u.Hunks); u.Hunks == "" {
				u.Why = NoLines
			}
			told += len(u.Hunks)
			m.Not = append(m.Not, u)
		}
	}
	return nil
}

// hunks are the places of a merged text where both sides meet, as git marks them; "" for what is no text.
func (m *merging) hunks(ctx context.Context, e git.Entry, most int) (string, error) {
	if !plain(e) || most <= 0 {
		return "", nil
	}
	blob, err := m.Host.Blob(ctx, e.OID)
	if err != nil {
		return "", err
	}
	defer blob.Close()
	text, err := io.ReadAll(io.LimitReader(blob, 2*mergeBytesMax+hunkBytesMax))
	if err != nil || bytes.IndexByte(text, 0) >= 0 {
		return "", err
	}
	var out strings.Builder
	inside := false
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, "<<<<<<< ") {
			inside = true
		}
		if inside {
			out.WriteString(line)
		}
		if strings.HasPrefix(line, ">>>>>>> ") {
			inside = false
		}
		if out.Len() > most {
			return strings.ToValidUTF8(out.String()[:most], "\uFFFD") + "\n… (cut)\n", nil
		}
	}
	return strings.ToValidUTF8(out.String(), "\uFFFD"), nil
}

// commitOf makes a commit of the host's own below the change's refs.
func (m *merging) commitOf(ctx context.Context, name string, from git.OID, parents []git.OID, writes []git.Write) (git.OID, error) {
	made, err := m.Host.Import(ctx, "redo:import", git.Import{
		Ref: repository.RefRoot(m.Change) + name, From: from, Parents: parents, Writes: writes,
		Message: name + " of " + string(m.Change) + "\n", Author: m.Author, Committer: m.Author,
	})
	return made.OID, err
}

// Words tell an agent which of its edits did not apply.
func (r Reapplied) Words(branch string) string {
	if len(r.Not) == 0 {
		return "All your edits were applied there."
	}
	var b strings.Builder
	fmt.Fprintf(&b, "Your other edits were applied there. These were not; the files are as %s has them. Make these edits again where they are still wanted:\n", branch)
	for _, u := range r.Not {
		fmt.Fprintf(&b, "\n- %s: %s\n", inert.Path(u.Path), u.Why)
		if u.Hunks != "" {
			b.WriteString(u.Hunks)
		}
	}
	return b.String()
}
