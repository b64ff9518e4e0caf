// Package mount decides which folders of this machine a group's agent is shown beside its own.
//
// Two keys open a folder. The owner of the home names roots in sallyport.yaml, which no group reaches; a group's runner.yaml
// wishes for a folder below one. It is shown read-only, unless the root says allowReadWrite: true and the wish says
// readonly: false (CH-025).
//
// All here is decided from what was found, and nothing is looked up. A wish is refused or granted by itself: one that is
// refused takes no other with it.
package mount

import (
	"fmt"
	"path"
	"strings"

	"sallyport/internal/rule/secret"
)

// Root is a folder below which groups may be shown folders.
type Root struct {
	Path  string // absolute and clean, as the owner wrote it
	Real  string // with its links followed; "" = it is not there
	Write bool   // allowReadWrite
}

// Wish is a folder that a group asks to be shown.
type Wish struct {
	Path  string // absolute and clean
	Name  string // of the folder inside
	Write bool   // readonly: false
}

// Closed is a folder of which nothing is ever shown, and which is in nothing that is shown.
type Closed struct{ Path, What string }

// Place is what was found at the path of a wish.
type Place struct {
	Real   string // with its links followed; "" = there is nothing
	Folder bool
}

// Grant says how a wish is granted, or why it is not.
type Grant struct {
	Write   bool
	Note    string // why it is read-only although the wish says otherwise
	Refused string // why it is not shown; a clause
}

func refuse(format string, args ...any) Grant { return Grant{Refused: fmt.Sprintf(format, args...)} }

// Decide judges a wish by its path, by what was found there and by what is closed. What is in the folder is judged by Contents.Judge.
func Decide(w Wish, at Place, roots []Root, closed []Closed) Grant {
	root, ok := nearest(w.Path, roots)
	below := strings.TrimPrefix(strings.TrimPrefix(w.Path, root.Path), "/")
	switch {
	case !ok:
		return refuse("no root in mounts of the home's sallyport.yaml holds it")
	case root.Real == "":
		return refuse("its root %q is not there", root.Path)
	case at.Real == "":
		return refuse("it is not there")
	case at.Real != path.Join(root.Real, below): // whoever can write in a root could lead elsewhere by a link
		return refuse("a link on the way leads to %q; name that folder itself", at.Real)
	case !at.Folder:
		return refuse("it is no folder")
	case at.Real == "/":
		return refuse("it is the whole machine")
	}
	if g := private(at.Real, below, closed); g.Refused != "" {
		return g
	}
	return key(w, at.Real, root, roots)
}

// nearest is the root that decides of a path: the deepest that holds it.
func nearest(p string, roots []Root) (best Root, ok bool) {
	for _, r := range roots {
		if Below(p, r.Path) && (!ok || len(r.Path) > len(best.Path)) {
			best, ok = r, true
		}
	}
	return best, ok
}

// private refuses what is the host's or a person's alone.
func private(real, below string, closed []Closed) Grant {
	for _, c := range closed {
		switch {
		case Below(real, c.Path):
			return refuse("it is %s", part(real == c.Path, c.What))
		case Below(c.Path, real):
			return refuse("%s is in it", c.What)
		}
	}
	if rule, yes := secret.PathRule(real + "/"); yes {
		return refuse("its path has %q, where secrets are kept by custom", rule)
	}
	for name := range strings.SplitSeq(real, "/") {
		if name == ".git" || name == ".state" {
			return refuse("its path has %q, which holds what a program trusts", name)
		}
	}
	for name := range strings.SplitSeq(below, "/") {
		if strings.HasPrefix(name, ".") {
			return refuse("%q is a hidden folder, and such folders hold settings and keys; only a root can name one", name)
		}
	}
	return Grant{}
}

func part(whole bool, what string) string {
	if whole {
		return what
	}
	return "part of " + what
}

// key says whether both keys are there to write. A root within the folder that gives none takes it from the whole.
func key(w Wish, real string, root Root, roots []Root) Grant {
	switch {
	case !w.Write:
		return Grant{}
	case !root.Write:
		return Grant{Note: fmt.Sprintf("its root %q does not say allowReadWrite: true", root.Path)}
	}
	for _, r := range roots {
		if !r.Write && (Below(r.Path, w.Path) || r.Real != "" && Below(r.Real, real)) {
			return Grant{Note: fmt.Sprintf("the root %q in it does not say allowReadWrite: true", r.Path)}
		}
	}
	return Grant{Write: true}
}

// Contents is what was found in a folder that is to be shown. Paths are relative to it; "" = there is none.
type Contents struct {
	Unread     string // why it could not be looked through
	Exit       string // a socket, FIFO or device, which leads out of a sandbox
	Secret     string // a path where secrets are kept by custom
	Mounted    string // a place where something else is mounted
	Repository string // a git directory, or a file that names one
	Deep       string // a folder deeper than a sandbox may have them
}

// Judge joins what is in a folder to what was granted.
func (c Contents) Judge(g Grant) Grant {
	switch {
	case g.Refused != "":
		return g
	case c.Unread != "":
		return refuse("it cannot be looked through: %s", c.Unread)
	case c.Exit != "":
		return refuse("%q in it is a socket, FIFO or device, which leads out of the sandbox", c.Exit)
	case c.Mounted != "":
		return refuse("something else is mounted at %q in it", c.Mounted)
	case c.Secret != "":
		return refuse("%q in it is where secrets are kept by custom", c.Secret)
	case g.Write && c.Repository != "":
		return refuse("it is to be written and holds the git repository %q, which runs what stands in it; leave readonly: false out, or have it changed by sallyport run", c.Repository)
	case g.Write && c.Deep != "":
		return refuse("it is to be written and %q in it lies too deep to be counted", c.Deep)
	}
	return g
}

// Secret reports whether a path in a folder is one where secrets are kept by custom.
func Secret(p string, folder bool) bool {
	if folder {
		p += "/"
	}
	_, yes := secret.PathRule(p)
	return yes
}

// Below reports whether a clean path is a folder or lies in it.
func Below(p, folder string) bool {
	return p == folder || folder == "/" || strings.HasPrefix(p, folder+"/")
}

// Mode says in words how a folder is shown.
func Mode(write bool) string {
	if write {
		return "read-write"
	}
	return "read-only"
}
