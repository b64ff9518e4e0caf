package cli

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"sallyport/internal/base/problem"
	"sallyport/internal/door/api"
)

// here returns the folder that --repo names, or where the person stands.
func (a *app) here(repo string) (string, error) {
	dir, err := a.Dir()
	if err != nil {
		return "", problem.Errorf(problem.Unavailable, "cd", "find out where you stand: %w", err)
	}
	return within(dir, repo), nil
}

// repositoryHere is the folder that a person names, or in which they stand if a repository is there; "" if there is none.
func repositoryHere(a *app, named string) (string, error) {
	dir, err := a.here(named)
	if err != nil || named != "" {
		return dir, err
	}
	if _, err := top(dir); err != nil {
		return "", nil
	}
	return dir, nil
}

// top finds the work tree that a folder lies in, as the daemon names it.
func top(dir string) (string, error) {
	resolved, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return "", problem.Errorf(problem.NotFound, "sallyport change list", "--repo %q: %w", dir, err)
	}
	for at := resolved; ; at = filepath.Dir(at) {
		if _, err := os.Lstat(filepath.Join(at, ".git")); err == nil {
			return at, nil
		}
		if at == filepath.Dir(at) {
			return "", problem.Errorf(problem.NotFound, "sallyport change list", "%q lies in no git repository", resolved)
		}
	}
}

func within(dir, path string) string {
	if filepath.IsAbs(path) {
		return filepath.Clean(path)
	}
	return filepath.Join(dir, path)
}

// filterByRepo narrows a list to the repository that --repo names, if it is given.
func filterByRepo(p Program, cmd *cobra.Command, repo string, f *api.Filter) error {
	if !cmd.Flags().Changed("repo") {
		return nil
	}
	dir, err := p.Dir()
	if err != nil {
		return fmt.Errorf("find where you stand: %w", err)
	}
	f.Repo, err = top(within(dir, repo))
	return err
}
