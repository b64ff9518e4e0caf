package cli

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"

	"sallyport/internal/base/disk"
	"sallyport/internal/base/git"
	"sallyport/internal/base/inert"
	"sallyport/internal/base/problem"
	"sallyport/internal/rule/config"
)

// takeSource commits what is committed in dir, a repository of sallyport's source, below src/ of a home, by hand as it were: by who runs this, and
// with nothing else. It returns the commit that was taken. What is there already stays as it is.
//
// Errors: problem.Usage if dir is no top of such a repository; problem.Conflict if the home has something at src, or work that is not committed.
func takeSource(ctx context.Context, a *app, home, dir string) (git.OID, error) {
	at, err := a.here(dir)
	if err != nil {
		return "", err
	}
	from, tree, commit, err := sourceIn(ctx, at)
	if err != nil {
		return "", err
	}
	to, err := git.Open(ctx, home)
	if err != nil {
		return "", err
	}
	work := to.Worktree(disk.Ops{})
	if err := roomForSource(ctx, work, to.Top); err != nil {
		return "", err
	}
	if _, err := to.Common(disk.Ops{}).Take(ctx, "init:source", from.Common(disk.Ops{}), string(tree)+"\n"); err != nil {
		return "", fmt.Errorf("copy the source from %s: %w", inert.Path(at), err)
	}

	env, err := whoCommits(ctx, to, a.userHome())
	if err != nil {
		return "", err
	}
	subject := fmt.Sprintf("Take the source of the host from commit %.12s", commit)
	for _, args := range [][]string{{"read-tree", "--prefix=" + config.SourceFolder + "/", "-u", string(tree)}, {"commit", "--quiet", "--message", subject}} {
		if _, err := work.Do(ctx, "init:source", git.Cmd{Args: args, Dir: to.Top, Env: env}); err != nil {
			return "", fmt.Errorf("commit the source in the home %q: %w", home, err)
		}
	}
	return commit, nil
}

// sourceIn is the tree that is committed in a repository of sallyport's source.
func sourceIn(ctx context.Context, at string) (p git.Project, tree, commit git.OID, err error) {
	const next = "sallyport init --help"
	if p, err = git.Open(ctx, at); err != nil {
		return p, "", "", err
	}
	if real, err := filepath.EvalSymlinks(at); err != nil || real != p.Top {
		return p, "", "", problem.Errorf(problem.Usage, next, "--source %s is not the top of its repository, which is %s", inert.Path(at), inert.Path(p.Top))
	}
	d := p.Worktree(disk.Ops{})
	commit, err = d.Resolve(ctx, "HEAD^{commit}")
	if err != nil || commit == "" {
		return p, "", "", problem.Errorf(problem.Usage, next, "nothing is committed in --source %s", inert.Path(at))
	}
	found, err := d.Lookup(ctx, commit, []string{"go.mod", "Makefile"})
	if err != nil {
		return p, "", "", err
	}
	if found[0].Absent() || found[1].Absent() {
		return p, "", "", problem.Errorf(problem.Usage, next, "--source %s has no go.mod and Makefile committed at its top, so no host could be built of it", inert.Path(at))
	}
	tree, err = d.Tree(ctx, commit)
	return p, tree, commit, err
}

// roomForSource refuses where a commit would hold anything else, or take the place of what is there.
func roomForSource(ctx context.Context, d git.Dir, top string) error {
	found, err := d.Lookup(ctx, "HEAD", []string{config.SourceFolder})
	if err != nil {
		return err
	}
	if !found[0].Absent() {
		return problem.Errorf(problem.Conflict, "git -C "+inert.Path(top)+" log -- "+config.SourceFolder,
			"the home %q has a %s already: have it changed in a conversation, or commit another source there by hand", top, config.SourceFolder)
	}
	out, err := d.Run(ctx, git.Cmd{Args: []string{"status", "--porcelain"}, Dir: top, Env: []string{"GIT_WORK_TREE=" + top}})
	if err != nil {
		return err
	}
	if first, _, _ := strings.Cut(strings.TrimSpace(string(out)), "\n"); first != "" {
		return problem.Errorf(problem.Conflict, "git -C "+inert.Path(top)+" status", "the home %q has work that is not committed (%s): commit it, and run init again", top, inert.Line(first))
	}
	return nil
}

// whoCommits is the environment in which git commits as the person that configuration names; without one, as sallyport.
func whoCommits(ctx context.Context, p git.Project, home string) ([]string, error) {
	env := []string{"GIT_WORK_TREE=" + p.Top}
	who, err := p.Person(ctx, home)
	if err != nil || who.Author.Name == "" || who.Committer.Name == "" {
		return env, err
	}
	return append(env,
		"GIT_AUTHOR_NAME="+who.Author.Name, "GIT_AUTHOR_EMAIL="+who.Author.Email, "GIT_COMMITTER_NAME="+who.Committer.Name, "GIT_COMMITTER_EMAIL="+who.Committer.Email), nil
}
