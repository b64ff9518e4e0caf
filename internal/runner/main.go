// Package runner is this program inside and around a sandbox.
//
// `runner launch` builds a sandbox's mounts and gives up every right before it
// becomes bubblewrap; `runner init` is pid 1 inside; `runner replay` plays a
// script as an agent, and `runner probe` tries what must fail. None of them reads a file of configuration, speaks to the
// daemon's socket or is meant for a person.
package runner

import (
	"fmt"
	"os"
)

// Main runs the named part and returns its exit status.
func Main(args []string) int {
	if len(args) == 1 {
		switch args[0] {
		case "launch":
			return launch()
		case "init":
			return reign()
		case "probe":
			return probe(os.Stdout)
		case "replay":
			return replay(os.Stdin, os.Stdout)
		}
	}
	fmt.Fprintln(os.Stderr, "runner: started by sallyport itself as launch, init, probe or replay; not a command for people")
	return 2
}
