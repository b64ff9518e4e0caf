package git

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"sallyport/internal/base/disk"
	"sallyport/internal/base/inert"
	"sallyport/internal/base/problem"
)

// Open finds the repository that folder lies in. Errors name the folder: problem.Usage if it does not exist, lies
// in no repository, or in a bare one; problem.Refused if the repository is broken.
func Open(ctx context.Context, folder string) (Project, error) {
	p, _, err := Find(ctx, folder)
	return p, err
}

// Find is Open; it also returns where folder lies in the work tree, slash-separated; "" for the top.
func Find(ctx context.Context, folder string) (Project, string, error) {
	abs, err := filepath.Abs(folder)
	if err != nil {
		return Project{}, "", problem.Errorf(problem.Usage, "", "%q is no path: %w", folder, err)
	}
	if st, err := os.Stat(abs); err != nil || !st.IsDir() {
		return Project{}, "", problem.Errorf(problem.Usage, "sallyport run --repo DIR …", "%q is not a folder", abs)
	}
	said, err := find(ctx, abs)
	if err != nil {
		if problem.KindOf(err) == problem.Unavailable {
			return Project{}, "", err
		}
		if said[0] == "" {
			return Project{}, "", unfound(abs, err)
		}
	}
	if said[0] == "true" {
		return Project{}, "", problem.Errorf(problem.Usage, "git clone "+inert.Path(abs)+" DIR", "%q is a bare repository: it has no files to work on", abs)
	}
	if err != nil {
		return Project{}, "", problem.Errorf(problem.Usage, "sallyport run --repo DIR …", "%q is not in the work tree of a git repository: %w", abs, err)
	}
	p, err := standsAt(abs, Project{Top: said[1], GitDir: said[2], CommonDir: said[3], ObjectFormat: said[4]})
	return p, strings.TrimSuffix(said[5], "/"), err
}

// asked are the words that git answers with one line each.
var asked = [...]string{"--is-bare-repository", "--show-toplevel", "--absolute-git-dir", "--git-common-dir", "--show-object-format", "--show-prefix"}

// find asks git what it finds from a folder; what it said before an error is there beside it.
func find(ctx context.Context, abs string) (said [len(asked)]string, err error) {
	ask := func(words ...string) (string, error) {
		found := Dir{Path: abs}
		cmd, stderr := found.command(ctx, Cmd{Args: append([]string{"rev-parse"}, words...), Dir: abs})
		cmd.Args = append(cmd.Args[:1], cmd.Args[2:]...) // let git find the directory itself
		out, err := cmd.Output()
		return strings.TrimSuffix(string(out), "\n"), found.finish(ctx, "rev-parse", err, stderr)
	}
	all, err := ask(asked[:]...)
	lines := strings.Split(all, "\n")
	if err != nil || len(lines) == len(asked) {
		copy(said[:], lines)
		return said, err
	}
	for i, word := range asked { // a name of a folder has several lines
		if said[i], err = ask(word); err != nil {
			return said, err
		}
	}
	return said, nil
}

// standsAt completes what git said of the repository around a folder.
func standsAt(abs string, p Project) (Project, error) {
	if _, err := os.Lstat(filepath.Join(p.Top, ".git")); err != nil {
		return Project{}, problem.Errorf(problem.Usage, "git -C "+inert.Path(abs)+" config --unset core.worktree",
			"the configuration of %q (core.worktree) puts its work tree at %q, not beside its .git", abs, p.Top)
	}
	if !filepath.IsAbs(p.CommonDir) {
		p.CommonDir = filepath.Join(abs, p.CommonDir)
	}
	// Git says real paths of the other two; a link on the way is never followed later.
	var err error
	if p.CommonDir, err = filepath.EvalSymlinks(p.CommonDir); err != nil {
		return Project{}, problem.Errorf(problem.Usage, "", "find the git directory of %q: %w", abs, err)
	}
	for _, dir := range []string{p.GitDir, p.CommonDir} {
		if in, err := filepath.Rel(p.Top, dir); err == nil && filepath.IsLocal(in) && !slices.Contains(strings.Split(in, "/"), ".git") {
			return Project{}, problem.Errorf(problem.Usage, "git -C "+inert.Path(p.Top)+" init --separate-git-dir "+inert.Path(p.Top+".git"),
				"the git directory of %q is %q, a folder of its files, where a change could write what git runs: move it out of them", p.Top, dir)
		}
	}
	var st syscall.Stat_t
	if err := syscall.Stat(p.Top, &st); err != nil {
		return Project{}, problem.Errorf(problem.Usage, "", "read %q: %w", p.Top, err)
	}
	p.UID, p.GID = st.Uid, st.Gid
	return p, nil
}

// unfound says why git finds no repository at a folder. Where something called .git is, it is a broken one or one
// that is closed to us: git init would write over what can be mended.
func unfound(abs string, because error) error {
	for at := abs; ; at = filepath.Dir(at) {
		dot := filepath.Join(at, ".git")
		if _, err := os.Lstat(dot); err == nil || !errors.Is(err, fs.ErrNotExist) {
			return problem.Errorf(problem.Refused, "ls -la "+inert.Path(dot), "%q exists, but git cannot use it as a repository: %w", dot, because)
		}
		if at == filepath.Dir(at) {
			return problem.Errorf(problem.Usage, "git init "+inert.Path(abs), "%q is not in a git repository", abs)
		}
	}
}

// Common is the git directory that all work trees of the project share, as its owner.
func (p Project) Common(ops disk.Ops) Dir { return p.dir(p.CommonDir, ops) }

// Worktree is the git directory of this work tree: its HEAD and index.
func (p Project) Worktree(ops disk.Ops) Dir { return p.dir(p.GitDir, ops) }

func (p Project) dir(path string, ops disk.Ops) Dir {
	return Dir{Path: path, As: &Identity{UID: p.UID, GID: p.GID}, Ops: ops}
}

// InitBare makes a bare repository of ours at path, once: no template, no hooks, no configuration but the object format.
func InitBare(ctx context.Context, ops disk.Ops, path, objectFormat string) (Dir, error) {
	d := Dir{Path: path, Ops: ops}
	_, err := d.Do(ctx, "git:init", Cmd{
		Args: []string{"init", "--quiet", "--bare", "--template=", "--object-format=" + objectFormat, "--initial-branch=none", path},
		Dir:  filepath.Dir(path),
	})
	return d, err
}
