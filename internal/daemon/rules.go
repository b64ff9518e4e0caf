package daemon

import (
	"context"
	"fmt"
	"io"

	"sallyport/internal/change"
	"sallyport/internal/config"
	"sallyport/internal/git"
	"sallyport/internal/policy"
	"sallyport/internal/problem"
)

// rulebook reads the home's policy and a repository's own rules, each time anew: what
// counts is what stands there now, or at the commit.
type rulebook struct{ home string }

// At joins the home's rules with the repository's as they stand at a commit, the stricter of both.
func (r rulebook) At(ctx context.Context, host git.Dir, commit git.OID) (change.Judging, error) {
	home, err := config.LoadPolicy(r.home)
	if err != nil {
		return change.Judging{}, err
	}
	text, err := file(ctx, host, commit, config.RepositoryFile)
	if err != nil {
		return change.Judging{}, err
	}
	repo, err := config.ParseRepository(string(commit), text)
	if err != nil {
		return change.Judging{}, err
	}
	return change.Judging{
		Rules:          policy.Merge(home, repo.Judgement()),
		Checks:         config.Strings(repo.Checks),
		Profiles:       config.Strings(repo.Profiles),
		IncludeIgnored: config.Strings(repo.IncludeIgnored),
	}, nil
}

// file reads a small file at a commit; nil if there is none.
func file(ctx context.Context, host git.Dir, commit git.OID, name string) ([]byte, error) {
	found, err := host.Lookup(ctx, commit, []string{name})
	if err != nil || found[0].Absent() {
		return nil, err
	}
	if m := found[0].Mode; m != git.File && m != git.Executable {
		return nil, problem.Errorf(problem.Usage, "git show "+string(commit)+" --stat", "%s at %.12s is no ordinary file", name, commit)
	}
	blob, err := host.Blob(ctx, found[0].OID)
	if err != nil {
		return nil, err
	}
	text, err := io.ReadAll(io.LimitReader(blob, config.FileBytesMax+1)) // one more byte and it is refused
	if closed := blob.Close(); err == nil {
		err = closed
	}
	if err != nil {
		return nil, fmt.Errorf("read %s at %.12s: %w", name, commit, err)
	}
	return text, nil
}
