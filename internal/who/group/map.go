package group

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"

	"sallyport/internal/base/git"
	"sallyport/internal/base/inert"
	"sallyport/internal/base/problem"
	"sallyport/internal/rule/right"
)

// Mapping is what the edits of a workspace are in the home.
type Mapping struct {
	Head   git.OID     // that the edits were made on, without what a group runs at the template's paths
	Commit git.OID     // Head with the edits at their targets, and with nothing else
	Edits  []git.Edit  // from Head to Commit
	Paths  []Mapped    // what is changed in the workspace, by path
	Class  right.Class // of the whole; "" if nothing is changed
	Lossy  bool        // some path is a migration
	Others bool        // some path is another group's
	Rules  bool        // the rules change
}

// linkBytesMax bounds where a link leads: PATH_MAX.
const linkBytesMax = 4096

// Map puts what was changed from base to commit in the workspace of a group's change, an Overlay upon head, where it belongs in the
// home: as a commit upon head with exactly these edits, kept by the ref of by's. A rename is changed on both of its sides.
//
// head is the one that the overlay was made from. What has moved in the home since then shows where the commit lands, as the drift of
// any change (SM-162): Map itself compares with nothing newer, so that nothing newer is ever overwritten.
//
// Errors: problem.Refused, naming the path, for what no change may have, for two paths that stand for one, and for a link that would
// lead elsewhere from its target; problem.Conflict if base is no overlay of head.
func Map(ctx context.Context, host git.Dir, folder Folder, base, commit, head git.OID, by By) (Mapping, error) {
	edits, err := host.EditsMax(ctx, base, commit, FilesMax)
	if errors.Is(err, git.ErrFar) {
		return Mapping{}, problem.Errorf(problem.Refused, folder.show(), "the change of the group %s has more than %d files and folders", folder, FilesMax)
	}
	if err != nil {
		return Mapping{}, fmt.Errorf("compare what was changed of the group %s with its base: %w", folder, err)
	}
	m := mapping{folder: folder, host: host, Mapping: Mapping{Head: head}}
	if err := m.place(edits); err != nil {
		return Mapping{}, err
	}
	if err := m.apart(); err != nil {
		return Mapping{}, err
	}
	if err := m.links(ctx); err != nil {
		return Mapping{}, err
	}
	if err := m.stands(ctx); err != nil {
		return Mapping{}, err
	}
	if err := m.make(ctx, by); err != nil {
		return Mapping{}, err
	}
	return m.Mapping, nil
}

// mapping is a Map under way. Edits are in the order of Paths until the commit is made.
type mapping struct {
	Mapping
	folder Folder
	host   git.Dir
}

// place finds the target of every edit, and what the whole reaches.
func (m *mapping) place(edits []git.Edit) error {
	var host, runs bool
	for _, e := range edits {
		to, err := Target(m.folder, e.Path)
		if err != nil {
			return err
		}
		if to.Path != e.Path { // Target reads it as another path; a file of this one would land elsewhere than it is shown
			return m.folder.refuseChange(e.Path, "it has a backslash, which separates folders on some systems")
		}
		m.Paths = append(m.Paths, to)
		m.Edits = append(m.Edits, git.Edit{Path: to.Target, Old: e.Old, New: e.New})
		host, runs = host || to.Class != right.Group, runs || to.Runs
		m.Lossy, m.Others, m.Rules = m.Lossy || to.Lossy, m.Others || to.Others, m.Rules || to.Rules
	}
	switch {
	case host && runs:
		m.Class = right.Combined
	case host:
		m.Class = right.Host
	case len(edits) > 0:
		m.Class = right.Group
	}
	return nil
}

// apart refuses two changed paths that stand for one (SM-167), or for one on a file system that knows fewer names. The rules compare the
// names of the workspace; here those are compared that meet at their targets only.
func (m *mapping) apart() error {
	refuse := func(one, other Mapped, at string) error {
		return problem.Errorf(problem.Refused, m.folder.show(), "%s and %s cannot be changed together: both stand for %s in the home; change one of them",
			inert.Path(one.Path), inert.Path(other.Path), inert.Path(at))
	}
	at := map[string]Mapped{}
	for _, p := range m.Paths {
		if other, twice := at[p.Target]; twice {
			return refuse(other, p, p.Target)
		}
		at[p.Target] = p
	}

	type place struct {
		Mapped
		at    string
		whole bool // a file is there, no folder
	}
	seen := map[string][]place{} // by how it looks
	for i, p := range m.Paths {
		if m.Edits[i].New.Absent() {
			continue
		}
		for mine := (place{p, p.Target, true}); mine.at != "."; mine = (place{p, path.Dir(mine.at), false}) {
			key, known := lookOf(mine.at), false
			for _, other := range seen[key] {
				same := other.at == mine.at && !other.whole && !mine.whole
				if other.Relocated() != p.Relocated() && !same {
					return refuse(other.Mapped, p, mine.at)
				}
				known = known || other.Relocated() == p.Relocated() && same
			}
			if !known {
				seen[key] = append(seen[key], mine)
			}
		}
	}
	return nil
}

// lookOf is what a path looks like, or is taken for by some file system.
func lookOf(p string) string {
	parts := strings.Split(p, "/")
	for i, part := range parts {
		parts[i] = look(part)
	}
	return strings.Join(parts, "/")
}

// links refuses a link of a group's that leads out of the group, or that moves with its path and would lead elsewhere from there: out of
// the runner, or out of the skills.
func (m *mapping) links(ctx context.Context) error {
	at := map[git.OID][]Mapped{}
	var oids []git.OID
	for i, p := range m.Paths {
		if e := m.Edits[i].New; e.Mode == git.Symlink && p.Class == right.Group {
			if at[e.OID] == nil {
				oids = append(oids, e.OID)
			}
			at[e.OID] = append(at[e.OID], p)
		}
	}
	if len(oids) == 0 {
		return nil
	}
	err := m.host.Blobs(ctx, oids, func(oid git.OID, size int64, r io.Reader) error {
		to, err := io.ReadAll(io.LimitReader(r, linkBytesMax))
		if err != nil {
			return err
		}
		for _, p := range at[oid] {
			if size > linkBytesMax || leavesPart(p.Path, string(to)) {
				return m.folder.refuseChange(p.Path, "the link to "+inert.Short(string(to), 100)+" leads out of "+
					inert.Path(partOf(p.Path))+", and so elsewhere in the home")
			}
		}
		return nil
	})
	if err != nil && problem.KindOf(err) != problem.Refused {
		return fmt.Errorf("read where links lead: %w", err)
	}
	return err
}

// partOf is the folder that a link has to stay in: template/runner, template/skills, or the group's own.
func partOf(p string) string {
	parts := strings.SplitN(p, "/", 3)
	return path.Join(parts[:min(2, len(parts))]...)
}

// leavesPart reports whether a link may lead out of the part that it lies in. It goes up first and down then: up from what may be another
// link it could come to anywhere.
func leavesPart(at, to string) bool {
	depth := strings.Count(at, "/") - 2 // folders below the part that the link lies in; it can stand for the part itself
	if depth < 0 || strings.HasPrefix(to, "/") || strings.ContainsAny(to, "\\\x00") {
		return true
	}
	down := false
	for part := range strings.SplitSeq(to, "/") {
		switch part {
		case "", ".":
		case "..":
			if depth--; depth < 0 || down {
				return true
			}
		default:
			down = true
		}
	}
	return false
}

// stands makes sure that head has what the edits were made on, at their targets: a base that is no overlay of head would have them undo
// what others did.
func (m *mapping) stands(ctx context.Context) error {
	paths := make([]string, len(m.Edits))
	for i, e := range m.Edits {
		paths[i] = e.Path
	}
	found, err := m.host.Lookup(ctx, m.Head, paths)
	if err != nil {
		return fmt.Errorf("read the home at %.12s: %w", m.Head, err)
	}
	for i, e := range m.Edits {
		if found[i].File() != e.Old {
			return problem.Errorf(problem.Conflict, m.host.Command("log "+string(m.Head)+" -- "+inert.Path(e.Path)),
				"%s is another in the home than the change of the group %s began with", inert.Path(e.Path), m.folder)
		}
	}
	return nil
}

// make commits the edits upon head, and proves that nothing else became another.
func (m *mapping) make(ctx context.Context, by By) error {
	writes := git.Writes(m.Edits)
	slices.SortFunc(m.Edits, func(a, b git.Edit) int { return strings.Compare(a.Path, b.Path) })
	var err error
	if m.Commit, err = upon(ctx, m.host, m.Head, writes, "Change the group "+string(m.folder)+"\n", by); err != nil {
		return fmt.Errorf("make what the change of the group %s offers: %w", m.folder, err)
	}

	made, err := m.host.EditsMax(ctx, m.Head, m.Commit, 4*FilesMax)
	if err != nil && !errors.Is(err, git.ErrFar) {
		return fmt.Errorf("read what the change of the group %s offers: %w", m.folder, err)
	}
	for i, e := range made {
		if i >= len(m.Edits) || e != m.Edits[i] {
			return m.folder.refuseChange(e.Path, "it would change with what lies above or below it")
		}
	}
	if err != nil || len(made) != len(m.Edits) {
		return problem.Errorf(problem.Refused, m.folder.show(),
			"the change of the group %s does not fit into the home: a file of it would stand where a folder is", m.folder)
	}
	return nil
}
