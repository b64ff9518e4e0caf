// Sallyport-runner is what sallyport is inside and around a sandbox, and nothing else of it:
// each start of a sandbox executes it twice, and pays each time for all that it links.
// It is used by the sallyport that was built with it, and by no other.
package main

import (
	"fmt"
	"os"

	"sallyport/internal/inside/runner"
)

func main() {
	// The same words as in sallyport, so that either can take the other's place.
	if len(os.Args) < 2 || os.Args[1] != "runner" {
		fmt.Fprintln(os.Stderr, "sallyport-runner: started by sallyport itself; not a command for people")
		os.Exit(2)
	}
	os.Exit(runner.Main(os.Args[2:]))
}
