package client

import (
	"os"
	"path/filepath"

	"sallyport/internal/base/inert"
	"sallyport/internal/base/problem"
)

// NoProject refuses a home that is a project of a person's: a git repository that sallyport has
// not made. Its own homes have .state; a clone of one has the files that every home tracks, and what uninstall left of one
// has sallyport.yaml, which no project has.
func NoProject(home string) error {
	there := func(name string) bool {
		_, err := os.Lstat(filepath.Join(home, name))
		return err == nil
	}
	if !there(".git") || there(".state") || there("sallyport.yaml") {
		return nil
	}
	return problem.Errorf(problem.Usage, "cd "+inert.Path(home)+" && env -u SALLYPORT_HOME sallyport status",
		"%q is a git repository and no home of sallyport's: --home is where sallyport keeps its state, not the repository to work on", home)
}
