package main

import (
	"crypto/sha256"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
)

// picture is a repository byte for byte: for each path its type, mode, owner and the hash of
// its content. Of .git everything counts but what sallyport may add: objects, its own refs.
type picture map[string]string

var pictures sync.Mutex // of what scripts keep

// takePicture looks at every file below dir without following links.
func takePicture(dir string) (picture, error) {
	p := picture{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		if ours(name) {
			if d.IsDir() {
				return fs.SkipDir
			}
			return nil
		}
		p[name], err = look(path, d)
		return err
	})
	return p, err
}

// ours are the places where sallyport may add something in a person's repository before a change lands.
func ours(name string) bool {
	return name == ".git/objects" || strings.HasPrefix(name, ".git/objects/")
}

// look describes one file; a folder's time and size do not count, they change with what is in it.
func look(path string, d fs.DirEntry) (string, error) {
	info, err := d.Info()
	if err != nil {
		return "", err
	}
	stat := info.Sys().(*syscall.Stat_t)
	about := fmt.Sprintf("%v %d:%d", info.Mode(), stat.Uid, stat.Gid)
	switch {
	case info.Mode().IsRegular():
		f, err := os.Open(path)
		if err != nil {
			return "", err
		}
		defer f.Close()
		sum := sha256.New()
		if _, err := io.Copy(sum, f); err != nil {
			return "", err
		}
		return fmt.Sprintf("%s %d %x", about, info.Size(), sum.Sum(nil)), nil
	case info.Mode().Type() == fs.ModeSymlink:
		to, err := os.Readlink(path)
		return about + " -> " + to, err
	}
	return about, nil
}

// workTree is the part that is not git's.
func (p picture) workTree() picture {
	out := picture{}
	for name, about := range p {
		if name != ".git" && !strings.HasPrefix(name, ".git/") {
			out[name] = about
		}
	}
	return out
}

// differs names what is not the same; "" if nothing.
func (p picture) differs(after picture) string {
	var lines []string
	for name, about := range p {
		switch now, ok := after[name]; {
		case !ok:
			lines = append(lines, fmt.Sprintf("gone: %q", name))
		case now != about:
			lines = append(lines, fmt.Sprintf("changed: %q: %s, was %s", name, now, about))
		}
	}
	for name := range after {
		if _, ok := p[name]; !ok {
			lines = append(lines, fmt.Sprintf("new: %q", name))
		}
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

// What every row of the table stands on: the picture sees each small thing, and nothing that is ours to add.
func TestThePictureSeesEverySmallThing(t *testing.T) {
	p := newPerson(t)
	for name, do := range map[string]func(){
		"content":       func() { p.write("a.txt", "onE\n") },
		"mode":          func() { must(t, os.Chmod(filepath.Join(p.repo, "b.txt"), 0o755)) },
		"a new file":    func() { p.write("new", "") },
		"a lost file":   func() { must(t, os.Remove(filepath.Join(p.repo, "new"))) },
		"an index":      func() { p.git("rm", "-q", "--cached", "folder/c.txt") },
		"a branch":      func() { p.git("branch", "other") },
		"a lock":        func() { p.write(".git/index.lock", "") },
		"a link":        func() { must(t, os.Symlink("a.txt", filepath.Join(p.repo, "link"))) },
		"a config":      func() { p.git("config", "x.y", "z") },
		"an empty name": func() { must(t, os.Mkdir(filepath.Join(p.repo, "empty"), 0o755)) },
	} {
		if name == "a lost file" {
			p.write("new", "")
		}
		before := p.picture()
		do()
		if before.differs(p.picture()) == "" {
			t.Errorf("%s was not seen", name)
		}
		must(t, os.RemoveAll(filepath.Join(p.repo, ".git/index.lock")))
		must(t, os.RemoveAll(filepath.Join(p.repo, "new")))
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
