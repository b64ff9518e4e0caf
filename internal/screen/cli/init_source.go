package cli

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"sallyport/internal/base/disk"
	"sallyport/internal/base/git"
	"sallyport/internal/base/inert"
	"sallyport/internal/base/problem"
	"sallyport/internal/rule/config"
)

// hostSource is what is committed in a repository of sallyport's source.
type hostSource struct {
	from         git.Project
	tree, commit git.OID
}

// findSource finds what is committed in dir, a repository of sallyport's source, before anything is made for it.
//
// Errors: problem.Usage if dir is no top of such a repository.
func findSource(ctx context.Context, a *app, dir string) (h hostSource, err error) {
	const next = "sallyport init --help"
	at, err := a.here(dir)
	if err != nil {
		return h, err
	}
	h.from, err = git.Open(ctx, at)
	if problem.KindOf(err) == problem.Usage { // nothing that is done in there makes it a clone
		return h, problem.Errorf(problem.Usage, next, "--source names no clone of sallyport: %w", err)
	}
	if err != nil {
		return h, err
	}
	if real, err := filepath.EvalSymlinks(at); err != nil || real != h.from.Top {
		return h, problem.Errorf(problem.Usage, next, "--source %s is not the top of its repository, which is %s", inert.Path(at), inert.Path(h.from.Top))
	}
	d := h.from.Worktree(disk.Ops{})
	h.commit, err = d.Resolve(ctx, "HEAD^{commit}")
	if err != nil || h.commit == "" {
		return h, problem.Errorf(problem.Usage, next, "nothing is committed in --source %s", inert.Path(at))
	}
	found, err := d.Lookup(ctx, h.commit, []string{"go.mod", "Makefile"})
	if err != nil {
		return h, err
	}
	if found[0].Absent() || found[1].Absent() {
		return h, problem.Errorf(problem.Usage, next,
			"--source %s has no go.mod and Makefile committed at its top, so no host could be built of it", inert.Path(at))
	}
	h.tree, err = d.Tree(ctx, h.commit)
	return h, err
}

// take commits the source below src/ of a home, by hand as it were: by who runs this, and with nothing else. What is there already stays as it
// is, and where git does not commit, the home is as it was.
//
// Errors: problem.Conflict if the home has something at src, or work that is not committed.
func (h hostSource) take(ctx context.Context, a *app, home string) error {
	to, err := git.Open(ctx, home)
	if err != nil {
		return err
	}
	work := to.Worktree(disk.Ops{})
	if err := roomForSource(ctx, work, to.Top); err != nil {
		return err
	}
	if _, err := to.Common(disk.Ops{}).Take(ctx, "init:source", h.from.Common(disk.Ops{}), string(h.tree)+"\n"); err != nil {
		return fmt.Errorf("copy the source from %s: %w", inert.Path(h.from.Top), err)
	}

	env, err := whoCommits(ctx, to, a.userHome())
	if err != nil {
		return err
	}
	do := func(ctx context.Context, args ...string) error {
		_, err := work.Do(ctx, "init:source", git.Cmd{Args: args, Dir: to.Top, Env: env})
		return err
	}
	if err = do(ctx, "read-tree", "--prefix="+config.SourceFolder+"/", "-u", string(h.tree)); err == nil {
		err = do(ctx, "commit", "--quiet", "--message", fmt.Sprintf("Take the source of the host from commit %.12s", h.commit))
	}
	if err != nil { // all else was committed: roomForSource has looked
		err = errors.Join(err, do(context.WithoutCancel(ctx), "read-tree", "--reset", "-u", "HEAD"))
		return fmt.Errorf("commit the source in the home %q: %w", home, err)
	}
	return nil
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
		return problem.Errorf(problem.Conflict, "git -C "+inert.Path(top)+" status",
			"the home %q has work that is not committed (%s): commit it, and run init again", top, inert.Line(first))
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
		"GIT_AUTHOR_NAME="+who.Author.Name, "GIT_AUTHOR_EMAIL="+who.Author.Email, "GIT_COMMITTER_NAME="+who.Committer.Name,
		"GIT_COMMITTER_EMAIL="+who.Committer.Email), nil
}
