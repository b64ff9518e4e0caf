package git

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"sallyport/internal/base/disk"
	"sallyport/internal/base/inert"
	"sallyport/internal/base/problem"
)

// Open finds the repository that folder lies in. Errors name the folder: problem.Usage if it does not exist, lies
// in no repository, or in a bare one; problem.Refused if the repository is broken.
func Open(ctx context.Context, folder string) (Project, error) {
	abs, err := filepath.Abs(folder)
	if err != nil {
		return Project{}, problem.Errorf(problem.Usage, "", "%q is no path: %w", folder, err)
	}
	if st, err := os.Stat(abs); err != nil || !st.IsDir() {
		return Project{}, problem.Errorf(problem.Usage, "sallyport run --repo DIR …", "%q is not a folder", abs)
	}
	found := Dir{Path: abs}
	ask := func(words ...string) (string, error) {
		cmd, stderr := found.command(ctx, Cmd{Args: append([]string{"rev-parse"}, words...), Dir: abs})
		cmd.Args = append(cmd.Args[:1], cmd.Args[2:]...) // let git find the directory itself
		out, err := cmd.Output()
		return strings.TrimSuffix(string(out), "\n"), found.finish(ctx, "rev-parse", err, stderr)
	}
	bare, err := ask("--is-bare-repository")
	if err != nil {
		if problem.KindOf(err) == problem.Unavailable {
			return Project{}, err
		}
		return Project{}, unfound(abs, err)
	}
	if bare == "true" {
		return Project{}, problem.Errorf(problem.Usage, "git clone "+inert.Path(abs)+" DIR", "%q is a bare repository: it has no files to work on", abs)
	}
	p := Project{}
	for _, q := range []struct {
		word string
		to   *string
	}{{"--show-toplevel", &p.Top}, {"--absolute-git-dir", &p.GitDir}, {"--git-common-dir", &p.CommonDir}, {"--show-object-format", &p.ObjectFormat}} {
		if *q.to, err = ask(q.word); err != nil {
			return Project{}, problem.Errorf(problem.Usage, "sallyport run --repo DIR …", "%q is not in the work tree of a git repository: %w", abs, err)
		}
	}
	if _, err := os.Lstat(filepath.Join(p.Top, ".git")); err != nil {
		return Project{}, problem.Errorf(problem.Usage, "git -C "+inert.Path(abs)+" config --unset core.worktree",
			"the configuration of %q (core.worktree) puts its work tree at %q, not beside its .git", abs, p.Top)
	}
	if !filepath.IsAbs(p.CommonDir) {
		p.CommonDir = filepath.Join(abs, p.CommonDir)
	}
	// Git says real paths of the other two; a link on the way is never followed later.
	if p.CommonDir, err = filepath.EvalSymlinks(p.CommonDir); err != nil {
		return Project{}, problem.Errorf(problem.Usage, "", "find the git directory of %q: %w", abs, err)
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

// Prefix returns where folder lies in its work tree, slash-separated; "" for the top.
func Prefix(ctx context.Context, folder string) (string, error) {
	found := Dir{Path: folder}
	cmd, stderr := found.command(ctx, Cmd{Args: []string{"rev-parse", "--show-prefix"}, Dir: folder})
	cmd.Args = append(cmd.Args[:1], cmd.Args[2:]...) // let git find the directory itself
	out, err := cmd.Output()
	return strings.TrimSuffix(strings.TrimSuffix(string(out), "\n"), "/"), found.finish(ctx, "rev-parse", err, stderr)
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
