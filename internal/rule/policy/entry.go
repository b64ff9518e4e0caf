package policy

import (
	"fmt"
	"strings"

	"sallyport/internal/base/git"
	"sallyport/internal/base/inert"
)

// entry judges what a path is: its type, its mode, its other names.
func (v *validator) entry(c Change) {
	v.fact(c)
	if c.Old == c.New {
		return
	}
	if c.New.Mode == git.Submodule || c.Old.Mode == git.Submodule {
		v.submodule(c)
	}
	if c.New.Absent() {
		return
	}
	switch c.New.Mode {
	case git.File, git.Submodule:
	case git.Executable:
		v.executableAdded(c)
	case git.Symlink:
		v.symlink(c)
	default:
		v.add(c.Path, ModeChange, Error, fmt.Sprintf("mode %q is not one of a file, an executable or a link", c.New.Mode), undo(c))
	}
}

// submodule judges a path that is or was one. What is written inside its folder takes its place in the tree.
func (v *validator) submodule(c Change) {
	const way = "; what is in a submodule is changed in its own repository, and only a person has this one point to it"
	inside := ""
	if c.New.Absent() {
		for _, other := range v.changes {
			if strings.HasPrefix(other.Path, c.Path+"/") && !other.gone() {
				inside = other.Path
				break
			}
		}
	}
	switch {
	case inside != "":
		v.add(c.Path, SubmoduleChange, Error, fmt.Sprintf("it is a submodule, and files were written inside its folder, such as %s",
			inert.Path(inside)), "remove them"+way)
	case c.Old.Mode != git.Submodule:
		v.add(c.Path, SubmoduleChange, Error, "a submodule is added here", undo(c)+way)
	case c.New.Absent():
		v.add(c.Path, SubmoduleChange, Error, "the submodule is removed", undo(c)+way)
	case c.New.Mode == git.Submodule:
		v.add(c.Path, SubmoduleChange, Error, "the submodule points to another commit", undo(c)+way)
	default:
		v.add(c.Path, SubmoduleChange, Error, "the submodule is replaced by a file or a link", undo(c)+way)
	}
}

// fact judges what the walk saw, also of a path whose tree entry did not change.
func (v *validator) fact(c Change) {
	f := c.Fact
	if f.Special != "" {
		v.add(c.Path, SpecialFile, Critical, fmt.Sprintf("it is a %s, not a file", f.Special), "remove it")
	}
	if f.HardLinks > 1 {
		v.add(c.Path, HardLink, Critical, fmt.Sprintf("it has %d names: a write to one changes the others", f.HardLinks),
			"make it a file of its own: copy it and move the copy over it")
	}
	if f.SetID {
		v.add(c.Path, SetID, Critical, "it has the setuid or setgid bit", "take the bit away: chmod ug-s")
	}
	if f.Unreadable != "" {
		v.add(c.Path, Unreadable, Error, "the host cannot read it, so it cannot judge it: "+f.Unreadable, "make it readable, or remove it")
	}
}

func (v *validator) executableAdded(c Change) {
	if v.rules.Executables != Refuse || c.Old.Mode == git.Executable {
		return
	}
	for _, list := range v.executable {
		if !list.allow(c.Path) {
			v.add(c.Path, NewExecutable, Warning, "it is a new executable, and the policy refuses those",
				"take the bit away: chmod -x; or name it in allow_executable")
			return
		}
	}
}

func (v *validator) symlink(c Change) {
	if !v.rules.AllowSymlinks {
		v.add(c.Path, Symlink, Critical, fmt.Sprintf("it is a new or changed symbolic link to %s", inert.Path(c.Fact.LinkTarget)),
			"put a copy of the file there")
		return
	}
	if why := v.escapes(c); why != "" {
		v.add(c.Path, Symlink, Critical, fmt.Sprintf("the symbolic link to %s %s", inert.Path(c.Fact.LinkTarget), why),
			"link to a path inside the repository, or put a copy of the file there")
	}
}

// linkless are files that git itself reads: a link in their place is read outside the tree.
var linkless = map[string]bool{".gitmodules": true, ".gitattributes": true, ".gitignore": true, ".mailmap": true}

// escapes says why a link does not surely stay inside the tree; "" if it does.
//
// Only leading ".." is taken, and nothing on the way may be a link itself: then
// what the target says is also where it leads.
func (v *validator) escapes(c Change) string {
	target := c.Fact.LinkTarget
	folder, name := cut(c.Path)
	switch {
	case target == "":
		return "has no known target"
	case linkless[strings.ToLower(name)]:
		return "stands where git reads a file"
	case target[0] == '/' || strings.ContainsAny(target, "\\\x00"):
		return "is not relative"
	}
	up := true
	at := folder
	for _, part := range strings.Split(target, "/") {
		switch {
		case part == "" || part == ".":
			continue
		case part == ".." && up && at != "":
			at, _ = cut(at)
			continue
		case part == ".." && up:
			return "leads out of the repository"
		case part == "..":
			return `has ".." after a name`
		case isGitDir(part):
			return "leads into a git directory"
		}
		up = false
		at = join(at, part)
		if v.holdsLink(at) {
			return "leads through another link, " + inert.Path(at)
		}
	}
	return ""
}

// holdsLink reports whether p is a link, or a submodule, after the change.
func (v *validator) holdsLink(p string) bool {
	if c, ok := v.at[p]; ok {
		return c.New.Mode == git.Symlink || c.New.Mode == git.Submodule
	}
	e, ok := v.in.Base(p)
	return ok && (e.Mode == git.Symlink || e.Mode == git.Submodule)
}

// cut returns the folder ("" = top) and the last component of a path.
func cut(p string) (folder, name string) {
	if i := strings.LastIndexByte(p, '/'); i >= 0 {
		return p[:i], p[i+1:]
	}
	return "", p
}

func join(folder, name string) string {
	if folder == "" {
		return name
	}
	return folder + "/" + name
}
