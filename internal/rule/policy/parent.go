package policy

import (
	"fmt"
	"strings"
	"unicode"

	"sallyport/internal/base/git"
	"sallyport/internal/base/inert"
)

// parents judges the folders a path lies in, as they are after the change: a link
// among them would carry the path elsewhere (SV-065).
func (v *validator) parents(c Change) {
	if c.gone() || clean(c.Path) != "" {
		return
	}
	for i := 1; i < len(c.Path); i++ {
		if c.Path[i] != '/' {
			continue
		}
		folder := c.Path[:i]
		constraint, known := v.blocked[folder]
		if !known {
			constraint = v.blocks(folder)
			v.blocked[folder] = constraint
		}
		switch constraint {
		case "":
			continue
		case SymlinkedParent:
			v.add(c.Path, SymlinkedParent, Critical, fmt.Sprintf("it leads through the symbolic link %s", inert.Path(folder)),
				"use the path that the link points to")
		case SubmoduleChange:
			v.add(c.Path, SubmoduleChange, Error, fmt.Sprintf("it is inside the submodule %s", inert.Path(folder)),
				"change the submodule in its own repository")
		default:
			v.add(c.Path, PathConflict, Error, fmt.Sprintf("%s is not a folder", inert.Path(folder)), "use another name")
		}
		return
	}
}

// blocks returns the constraint that what lies below p breaks; "" if p is a folder or nothing.
func (v *validator) blocks(p string) string {
	mode := git.Mode("")
	if c, ok := v.at[p]; ok {
		if c.gone() {
			return ""
		}
		mode = c.New.Mode
		if mode == "" {
			return PathConflict // a fifo, or what could not be read
		}
	} else if e, ok := v.in.Base(p); ok {
		mode = e.Mode
	}
	switch mode {
	case "", git.Folder:
		return ""
	case git.Symlink:
		return SymlinkedParent
	case git.Submodule:
		return SubmoduleChange
	}
	return PathConflict
}

// collisions judges each new name against its siblings after the change: two that
// differ by case alone are one file on some machines, and one review is not the other.
func (v *validator) collisions() {
	made := map[string]map[string]bool{} // folder, then new names in it
	for _, c := range v.changes {
		if !v.isNew(c) {
			continue
		}
		v.eachPart(c.Path, func(folder, name string) {
			if made[folder] == nil {
				made[folder] = map[string]bool{}
			}
			made[folder][name] = true
		})
	}
	other := map[string]string{} // path of a new name, then the sibling it collides with
	for folder, names := range made {
		v.collide(folder, names, other)
	}
	for _, c := range v.changes {
		if !v.isNew(c) {
			continue
		}
		v.eachPart(c.Path, func(folder, name string) {
			if sibling := other[join(folder, name)]; sibling != "" {
				v.add(c.Path, CaseCollision, Error,
					fmt.Sprintf("%s differs from %s by case alone", inert.Path(join(folder, name)), inert.Path(join(folder, sibling))), "use one spelling")
			}
		})
	}
}

func (v *validator) isNew(c Change) bool {
	return c.Old.Absent() && !c.gone() && clean(c.Path) == ""
}

// eachPart calls do for every component of p that is not in the base.
func (v *validator) eachPart(p string, do func(folder, name string)) {
	from := 0
	for i := 0; i <= len(p); i++ {
		if i < len(p) && p[i] != '/' {
			continue
		}
		folder := strings.TrimSuffix(p[:from], "/")
		if !v.inBase(p[:i]) {
			do(folder, p[from:i])
		}
		from = i + 1
	}
}

// inBase reports whether the base has p, as an entry or as a folder; asked once a path.
func (v *validator) inBase(p string) bool {
	there, known := v.based[p]
	if !known {
		_, there = v.in.Base(p)
		there = there || len(v.in.Names(p)) > 0
		v.based[p] = there
	}
	return there
}

// collide compares the new names of one folder with each other and with the base's that stay.
func (v *validator) collide(folder string, names map[string]bool, other map[string]string) {
	spelled := map[string][]string{}
	for name := range names {
		key := fold(name)
		spelled[key] = append(spelled[key], name)
	}
	for _, name := range v.in.Names(folder) {
		key := fold(name)
		if mine := spelled[key]; len(mine) > 0 && !names[name] && v.stays(join(folder, name)) {
			spelled[key] = append(mine, name)
		}
	}
	for _, all := range spelled {
		if len(all) < 2 {
			continue
		}
		for _, name := range all {
			for _, sibling := range all { // the least one: the same whatever the order
				k := join(folder, name)
				if sibling != name && (other[k] == "" || sibling < other[k]) {
					other[k] = sibling
				}
			}
		}
	}
}

// stays reports whether the base's p, or anything below it, is there after the change.
func (v *validator) stays(p string) bool {
	if c, ok := v.at[p]; ok {
		return !c.gone()
	}
	below := v.in.Names(p)
	for _, name := range below {
		if v.stays(join(p, name)) {
			return true
		}
	}
	return len(below) == 0
}

// fold maps all spellings of a name that differ by case alone to one.
func fold(name string) string {
	return strings.Map(func(r rune) rune {
		least := r
		for f := unicode.SimpleFold(r); f != r; f = unicode.SimpleFold(f) {
			least = min(least, f)
		}
		return least
	}, name)
}
