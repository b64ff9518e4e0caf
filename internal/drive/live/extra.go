package live

import (
	"path"
	"path/filepath"

	"sallyport/internal/base/problem"
	"sallyport/internal/port/sandbox"
	"sallyport/internal/rule/mount"
)

// Extra finds the folders of this machine that a group is shown beside its own. It looks anew each time: what the home allows, what is
// there and what is in it count as they are now, for the next session.
type Extra struct {
	Roots  func() ([]mount.Root, error) // what the home allows, their Real unknown; absent: nothing
	Closed []mount.Closed               // beside what no group is ever shown
	Homes  []string                     // folders that are no one's to show whole
}

// Mounted is a wish and what became of it.
type Mounted struct {
	mount.Wish
	mount.Grant
	Shown sandbox.Mount // if it is not refused
}

// Modes say in words how it is shown, "" if it is not, and how it was asked for.
func (m Mounted) Modes() (shown, asked string) {
	if m.Refused == "" {
		shown = mount.Mode(m.Shown.Writable)
	}
	return shown, mount.Mode(m.Wish.Write)
}

// closed are parts of this machine that hold what runs it, or what every sandbox has of its own.
var closed = []mount.Closed{
	{Path: "/proc", What: "the kernel's /proc"}, {Path: "/sys", What: "the kernel's /sys"}, {Path: "/dev", What: "the machine's /dev"},
	{Path: "/run", What: "/run, where sockets of programs lie"}, {Path: "/var/run", What: "/run, where sockets of programs lie"},
	{Path: "/etc", What: "the machine's /etc"}, {Path: "/boot", What: "the machine's /boot"},
	{Path: "/usr", What: "/usr, which every sandbox sees"}, {Path: "/bin", What: "/bin, which every sandbox sees"},
	{Path: "/sbin", What: "/sbin, which every sandbox sees"}, {Path: "/lib", What: "/lib, which every sandbox sees"},
	{Path: "/lib64", What: "/lib64, which every sandbox sees"},
}

// Find answers each wish of a group, in order.
func (e Extra) Find(wishes []mount.Wish) []Mounted {
	all := make([]Mounted, len(wishes))
	if len(wishes) == 0 {
		return all
	}
	roots, err := e.roots()
	for i, w := range wishes {
		all[i].Wish = w
		if err != nil {
			all[i].Refused = "what the home allows cannot be read: " + problem.Of(err).Text
			continue
		}
		all[i].Grant, all[i].Shown = e.find(w, roots)
	}
	return all
}

// roots are those of the home, with where they lead.
func (e Extra) roots() ([]mount.Root, error) {
	if e.Roots == nil {
		return nil, nil
	}
	roots, err := e.Roots()
	for i := range roots {
		if at, err := sandbox.LookAt(roots[i].Path); err == nil { // one that cannot be looked at is as one that is not there
			roots[i].Real = at.Real
		}
	}
	return roots, err
}

// find answers one wish. What is in a folder is looked at last: that takes long.
func (e Extra) find(w mount.Wish, roots []mount.Root) (mount.Grant, sandbox.Mount) {
	at, err := sandbox.LookAt(w.Path)
	if err != nil {
		return mount.Contents{Unread: err.Error()}.Judge(mount.Grant{}), sandbox.Mount{}
	}
	g := mount.Decide(w, mount.Place{Real: at.Real, Folder: at.Folder}, roots, e.closed(at.Real))
	if g.Refused == "" {
		g = mount.Contents(sandbox.LookInto(at.Real, mount.Secret)).Judge(g)
	}
	if g.Refused != "" {
		return g, sandbox.Mount{}
	}
	return g, sandbox.Mount{
		Source: at.Real, Dev: at.Dev, Ino: at.Ino, Of: at.Of, Target: path.Join(sandbox.Extra, w.Name), Writable: g.Write,
	}
}

// closed are the folders of which nothing is shown, as this machine's links have them. Of a home folder parts may be shown, and not the whole.
func (e Extra) closed(real string) []mount.Closed {
	var all []mount.Closed
	for _, c := range append(append([]mount.Closed{}, closed...), e.Closed...) {
		all = append(all, c)
		if is, err := filepath.EvalSymlinks(c.Path); err == nil && is != c.Path {
			all = append(all, mount.Closed{Path: is, What: c.What})
		}
	}
	for _, home := range append([]string{"/root"}, e.Homes...) {
		if is, err := filepath.EvalSymlinks(home); err == nil {
			home = is
		}
		if mount.Below(home, real) {
			all = append(all, mount.Closed{Path: home, What: "a home folder"})
		}
	}
	if real == "/home" || path.Dir(real) == "/home" {
		all = append(all, mount.Closed{Path: real, What: "a home folder, or holds them"})
	}
	return all
}

// Absent returns which of a home's roots are not there, in order.
func (e Extra) Absent() (absent []string, err error) {
	roots, err := e.roots()
	for _, r := range roots {
		if r.Real == "" {
			absent = append(absent, r.Path)
		}
	}
	return absent, err
}
