package trial

import (
	"slices"

	"sallyport/internal/base/git"
	"sallyport/internal/who/group"
)

// Moves is what a change moves in its repository, and whose it is.
type Moves struct {
	Group string     // folder of the group that starts again on it; "" = of none
	Edits []git.Edit // none = they are not known
	Back  bool       // it takes back what is on trial
}

// Own reports whether all that moves lies in the folder of the group itself. Then a trial holds that folder, and else the whole repository.
func (m Moves) Own() bool {
	return m.Group != "" && len(m.Edits) > 0 && !slices.ContainsFunc(m.Edits, m.strange)
}

func (m Moves) strange(e git.Edit) bool { return !group.Folder(m.Group).Holds(e.Path) }

// Beside reports whether next may land while what moves in m is on trial in the same repository: it lies outside of the group that is on
// trial, and is none of the same group. What goes back by itself waits for no trial that holds other paths.
func (m Moves) Beside(next Moves) bool {
	switch {
	case len(m.Edits) == 0 || len(next.Edits) == 0 || m.Group != "" && next.Group == m.Group:
		return false
	case m.Own():
		return !slices.ContainsFunc(next.Edits, func(e git.Edit) bool { return !m.strange(e) })
	case next.Back && next.Own():
		return !slices.ContainsFunc(m.Edits, func(e git.Edit) bool { return !next.strange(e) })
	}
	return false
}
