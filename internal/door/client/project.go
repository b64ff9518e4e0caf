package client

import (
	"io/fs"
	"os"
	"path/filepath"

	"sallyport/internal/base/inert"
	"sallyport/internal/base/problem"
)

// NoProject refuses a home that is a project of a person's: a git repository that sallyport has
// not made. Its own homes have .state; a clone of one has sallyport.yaml, and what uninstall left of one has that, if a person has
// written in it, or groups: no project has either.
func NoProject(home string) error {
	there := func(name string) bool {
		_, err := os.Lstat(filepath.Join(home, name))
		return err == nil
	}
	groups, _ := fs.Glob(os.DirFS(home), "groups/*/runner/runner.yaml") // no error: the pattern is well-formed
	if !there(".git") || there(".state") || there("sallyport.yaml") || len(groups) > 0 {
		return nil
	}
	return problem.Errorf(problem.Usage, "cd "+inert.Path(home)+" && env -u SALLYPORT_HOME sallyport status",
		"%q is a git repository and no home of sallyport's: --home is where sallyport keeps its state, not the repository to work on", home)
}
