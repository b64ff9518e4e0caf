package git

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"sallyport/internal/base/stamp"
)

// ground is what a process that reads a repository began on and cannot see go: the list of those that it borrows from, and
// the packs that it may hold open. What comes is no matter: git looks again for what it does not find.
type ground struct {
	borrows stamp.Stamp
	packs   []packs // of the repository itself, and of each that it borrows from
}

// packs are the packs of one folder of objects, and when that was looked at.
type packs struct {
	folder string
	at     stamp.Stamp // none: it is looked at each time
	names  []string
}

// borrowsMax is how long a list of repositories to borrow from may be, in bytes.
const borrowsMax = 4 << 10

// readRegular reads a file of at most so many bytes. It waits for nobody: what is no file is an error.
func readRegular(path string, bytesMax int64) ([]byte, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if st, err := f.Stat(); err != nil || !st.Mode().IsRegular() || st.Size() > bytesMax {
		return nil, errors.Join(err, fmt.Errorf("%q is no file of at most %d bytes", path, bytesMax))
	}
	return io.ReadAll(io.LimitReader(f, bytesMax))
}

// standing looks at the ground of d; nil if it has no objects of its own, or borrows in a way that is not looked into, or since just now.
func standing(d Dir) *ground {
	objects, begun := filepath.Join(d.Path, "objects"), stamp.Now()
	g := &ground{borrows: stamp.Of(filepath.Join(objects, "info/alternates"))}
	if !g.borrows.Before(begun) {
		return nil
	}
	list := []string{objects}
	if !g.borrows.None() {
		text, err := readRegular(filepath.Join(objects, "info/alternates"), borrowsMax)
		if err != nil {
			return nil
		}
		for line := range strings.Lines(string(text)) {
			at := strings.TrimSuffix(line, "\n")
			if strings.HasPrefix(at, "\"") || strings.HasPrefix(at, "#") || at == "" {
				return nil
			}
			if !filepath.IsAbs(at) {
				at = filepath.Join(objects, at)
			}
			if !stamp.Of(filepath.Join(at, "info/alternates")).None() {
				return nil
			}
			list = append(list, at)
		}
	}
	for _, at := range list {
		p := packs{folder: filepath.Join(at, "pack")}
		if !p.look() {
			return nil
		}
		g.packs = append(g.packs, p)
	}
	return g
}

// holds reports whether what began on g sees d as a new process would.
func (g *ground) holds(d Dir) bool {
	if stamp.Of(filepath.Join(d.Path, "objects/info/alternates")) != g.borrows {
		return false
	}
	for i := range g.packs {
		p := &g.packs[i]
		if !p.at.None() && stamp.Of(p.folder) == p.at {
			continue
		}
		before := p.names
		if !p.look() || slices.ContainsFunc(before, func(name string) bool { _, there := slices.BinarySearch(p.names, name); return !there }) {
			return false
		}
	}
	return true
}

// look reads which packs there are.
func (p *packs) look() bool {
	begun := stamp.Now()
	p.at, p.names = stamp.Of(p.folder).Since(begun), nil
	folder, err := os.OpenFile(p.folder, os.O_RDONLY|syscall.O_DIRECTORY, 0)
	if err != nil {
		return false
	}
	defer folder.Close()
	entries, err := folder.ReadDir(-1)
	if err != nil {
		return false
	}
	slices.SortFunc(entries, func(a, b os.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	for _, e := range entries {
		if strings.HasSuffix(e.Name(), ".pack") {
			p.names = append(p.names, e.Name())
		}
	}
	return true
}
