package e2e_test

import (
	"crypto/sha1"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// picture is a repository as an independent observer sees it: the file system, and git's own words.
type picture struct {
	files   map[string]string // work tree: path → type, mode, owner, time, bytes
	folders map[string]string // work tree: path → mode, owner
	inner   map[string]string // .git without objects and index: path → mode, bytes
	index   map[string]string // path → flags and every stage
	objects map[string]bool   // files of the object store
	head    string            // commit that main names
	tree    string            // of that commit
}

func look(t *testing.T, repo string) picture {
	t.Helper()
	p := picture{files: map[string]string{}, folders: map[string]string{}, inner: map[string]string{}, objects: map[string]bool{}}
	err := filepath.WalkDir(repo, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(repo, path)
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		stat := info.Sys().(*syscall.Stat_t)
		what := fmt.Sprintf("%o %d:%d", stat.Mode, stat.Uid, stat.Gid)
		in, inGit := strings.CutPrefix(name, ".git/")
		if d.IsDir() {
			if !inGit && name != "." && name != ".git" {
				p.folders[name] = what
			}
			return nil
		}
		bytes := ""
		switch d.Type() {
		case 0:
			raw, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			sum := sha256.Sum256(raw)
			bytes = hex.EncodeToString(sum[:8])
			if strings.HasPrefix(in, "logs/") {
				bytes = string(raw)
			}
		case fs.ModeSymlink:
			if bytes, err = os.Readlink(path); err != nil {
				return err
			}
		}
		switch {
		case !inGit:
			p.files[name] = fmt.Sprintf("%s %d %s", what, info.ModTime().UnixNano(), bytes)
		case strings.HasPrefix(in, "objects/"):
			p.objects[in] = true
		case in != "index":
			p.inner[in] = what + " " + bytes
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	p.index = staged(t, repo)
	p.head = strings.TrimSpace(git(t, repo, "rev-parse", "refs/heads/main"))
	p.tree = strings.TrimSpace(git(t, repo, "rev-parse", p.head+"^{tree}"))
	return p
}

// staged is the index: path → "flag mode oid stage" of each entry.
func staged(t *testing.T, repo string) map[string]string {
	t.Helper()
	all := map[string]string{}
	for line := range strings.SplitSeq(git(t, repo, "ls-files", "-v", "--stage", "-z"), "\x00") {
		if what, path, ok := strings.Cut(line, "\t"); ok {
			all[path] += what + ";"
		}
	}
	return all
}

// listed is a tree: path → "mode oid".
func listed(t *testing.T, repo, tree string) map[string]string {
	t.Helper()
	all := map[string]string{}
	for line := range strings.SplitSeq(git(t, repo, "ls-tree", "-r", "-z", tree), "\x00") {
		if what, path, ok := strings.Cut(line, "\t"); ok {
			f := strings.Fields(what)
			all[path] = f[0] + " " + f[2]
		}
	}
	return all
}

// touched is what differs between two trees.
func touched(t *testing.T, repo, from, to string) map[string]bool {
	t.Helper()
	a, b := listed(t, repo, from), listed(t, repo, to)
	all := map[string]bool{}
	for path, e := range a {
		all[path] = b[path] != e
	}
	for path, e := range b {
		all[path] = a[path] != e
	}
	maps.DeleteFunc(all, func(_ string, differs bool) bool { return !differs })
	return all
}

// ours reports whether a file of the git directory is one that a landing may write.
func ours(name string) bool {
	switch name {
	case "refs/heads/main", "logs/HEAD", "logs/refs/heads/main":
		return true
	}
	return false
}

// untouched checks that nothing but the given paths, the branch differs from before.
func untouched(t *testing.T, was, now picture, paths map[string]bool) {
	t.Helper()
	differ := func(what string, a, b map[string]string, except func(string) bool) {
		t.Helper()
		for _, name := range slices.Sorted(maps.Keys(union(a, b))) {
			if a[name] != b[name] && !except(name) {
				t.Errorf("%s %q was %q, is %q", what, name, a[name], b[name])
			}
		}
	}
	differ("the file", was.files, now.files, func(p string) bool { return paths[p] })
	differ("the index entry", was.index, now.index, func(p string) bool { return paths[p] })
	differ("the git file", was.inner, now.inner, ours)
	for _, log := range []string{"logs/HEAD", "logs/refs/heads/main"} {
		if !strings.HasPrefix(now.inner[log], was.inner[log]) {
			t.Errorf("%s was %q, is %q: it may only grow", log, was.inner[log], now.inner[log])
		}
	}
	for name, what := range was.folders {
		if is, ok := now.folders[name]; ok && is != what {
			t.Errorf("the folder %q was %q, is %q", name, what, is)
		}
	}
	for name := range was.objects {
		if !now.objects[name] {
			t.Errorf("the object file %q is gone", name)
		}
	}
}

func union(a, b map[string]string) map[string]string {
	all := maps.Clone(a)
	maps.Copy(all, b)
	return all
}

// holds checks that the index and the work tree have the given paths exactly as tree has them.
func holds(t *testing.T, repo string, now picture, tree string, paths map[string]bool) {
	t.Helper()
	want := listed(t, repo, tree)
	for path := range paths {
		entry, stage := want[path], ""
		if entry != "" {
			stage = "H " + entry + " 0;"
		}
		if now.index[path] != stage {
			t.Errorf("the index has %q at %q, the tree %q", now.index[path], path, stage)
		}
		if is := onDisk(t, filepath.Join(repo, path)); is != entry {
			t.Errorf("the work tree has %q at %q, the tree %q", is, path, entry)
		}
	}
	// Folders stand for what is in them, and belong to whom the repository does.
	needed := map[string]bool{}
	for path := range now.files {
		for up := filepath.Dir(path); up != "."; up = filepath.Dir(up) {
			needed[up] = true
		}
	}
	for name := range now.folders {
		if !needed[name] {
			t.Errorf("the folder %q is left empty", name)
		}
	}
	var top syscall.Stat_t
	if err := syscall.Stat(repo, &top); err != nil {
		t.Fatal(err)
	}
	for path := range paths {
		if what, ok := now.files[path]; ok && !strings.Contains(what, fmt.Sprintf(" %d:%d ", top.Uid, top.Gid)) {
			t.Errorf("%q has another owner than the repository: %s", path, what)
		}
	}
}

// onDisk is what git would record of a path, worked out here: "mode oid", "" if nothing is there.
func onDisk(t *testing.T, path string) string {
	t.Helper()
	info, err := os.Lstat(path)
	if os.IsNotExist(err) || err != nil && strings.Contains(err.Error(), "not a directory") {
		return ""
	}
	if err != nil {
		t.Fatal(err)
	}
	if info.IsDir() {
		return "" // what is in it is listed by itself
	}
	mode, raw := "100644", []byte(nil)
	switch {
	case info.Mode()&fs.ModeSymlink != 0:
		mode = "120000"
		target, err := os.Readlink(path)
		if err != nil {
			t.Fatal(err)
		}
		raw = []byte(target)
	default:
		if info.Mode()&0o100 != 0 {
			mode = "100755"
		}
		if raw, err = os.ReadFile(path); err != nil {
			t.Fatal(err)
		}
	}
	h := sha1.New()
	fmt.Fprintf(h, "blob %d\x00", len(raw))
	h.Write(raw)
	return mode + " " + hex.EncodeToString(h.Sum(nil))
}

// sound has git itself look at every object that anything refers to.
func sound(t *testing.T, gitDir string) {
	t.Helper()
	out, err := tryGit(gitDir, "--git-dir="+gitDir, "fsck", "--strict", "--no-dangling", "--no-progress")
	if err != nil || strings.TrimSpace(out) != "" {
		t.Errorf("git fsck in %s: %v %s", gitDir, err, out)
	}
}
