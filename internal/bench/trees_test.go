package bench_test

import (
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"sallyport/internal/base/git"
	wt "sallyport/internal/path/workspace/workspacetest"
)

// fileBytesMax leaves out the few archives and pictures that would be most of a tree's bytes.
const fileBytesMax = 1 << 20

// realTree makes a person's repository of about n files of real source, checked out, in one pack: Go's own tree, then the modules of
// this machine's cache, and from the beginning again, in a folder of its own, where these are not enough.
func realTree(b *testing.B, n int) (git.Project, git.OID) {
	b.Helper()
	top := filepath.Join(b.TempDir(), "repo")
	must(b, os.Mkdir(top, 0o755))
	wt.Git(b, top, "init", "-q", "-b", "main")

	sources := []string{filepath.Join(runtime.GOROOT(), "src"), filepath.Join(runtime.GOROOT(), "test")}
	if cache, err := exec.Command("go", "env", "GOMODCACHE").Output(); err == nil {
		sources = append(sources, strings.TrimSpace(string(cache)))
	}
	made := 0
	for round := 0; made < n; round++ {
		before := made
		for i, from := range sources {
			made += copyFiles(b, filepath.Join(top, fmt.Sprintf("r%d", round), fmt.Sprintf("s%d", i)), from, n-made)
		}
		if made == before {
			b.Skip("SKIPPED: there is no Go tree to copy files from")
		}
	}

	for _, set := range [][2]string{{"user.name", "P"}, {"user.email", "p@example.org"}, {"gc.auto", "0"}} {
		wt.Git(b, top, "config", set[0], set[1])
	}
	p, head := wt.Commit(b, top)
	wt.Git(b, top, "repack", "-adq")
	return p, head
}

// copyFiles copies up to n regular files below a folder, and returns how many.
func copyFiles(b *testing.B, to, from string, n int) (made int) {
	b.Helper()
	err := filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		switch {
		case made >= n:
			return fs.SkipAll
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == "cache" || strings.HasPrefix(d.Name(), ".git")):
			return fs.SkipDir
		case !d.Type().IsRegular() || strings.HasPrefix(d.Name(), ".git"):
			return nil
		}
		info, err := d.Info()
		if err != nil || info.Size() > fileBytesMax {
			return err
		}
		rel, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		raw, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		target := filepath.Join(to, rel)
		if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil {
			return err
		}
		made++
		return os.WriteFile(target, raw, 0o644)
	})
	must(b, err)
	return made
}

// spreadOver are n text files of a repository, from all over it.
func spreadOver(b *testing.B, top string, n int) []string {
	b.Helper()
	all := strings.Split(strings.TrimSuffix(wt.Git(b, top, "ls-files", "-z", "*.go"), "\x00"), "\x00")
	if len(all) < n {
		b.Fatalf("the repository has %d Go files, %d are wanted", len(all), n)
	}
	var out []string
	for i := range n {
		out = append(out, all[i*len(all)/n])
	}
	return out
}
