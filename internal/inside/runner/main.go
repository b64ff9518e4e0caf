// Package runner is our own program inside and around a sandbox: sallyport-runner, which is
// nothing else, or sallyport itself. It imports little, for each start of a sandbox pays for it twice.
//
// `runner launch` builds a sandbox's mounts and gives up every right before it
// becomes bubblewrap; `runner init` is pid 1 inside; `runner replay` plays a
// script as an agent; `runner relay` hands what connects to the port of a sandbox's way out on to its socket; `runner probe` tries what
// must fail, in a sandbox and, as a control, where nothing confines it; `runner apart` is one of its tries; `runner hold` keeps a namespace
// alive until its stdin ends. None of them reads a configuration, speaks to the daemon's socket or is meant for a person.
package runner

import (
	"fmt"
	"io"
	"os"
)

// Main runs the named part and returns its exit status.
func Main(args []string) int {
	if len(args) == 1 {
		switch args[0] {
		case "launch":
			return launch()
		case "init":
			return serveInit()
		case "hold":
			return hold(os.Stdin)
		case "probe":
			return probe(os.Stdin, os.Stdout)
		case "apart":
			return apart()
		case "replay":
			return replay(os.Stdin, os.Stdout)
		case "relay":
			return relay()
		}
	}
	fmt.Fprintln(os.Stderr, "runner: started by sallyport itself as launch, init, hold, probe, apart, relay or replay; not a command for people")
	return 2
}

// hold does nothing until in ends.
func hold(in io.Reader) int {
	_, _ = io.Copy(io.Discard, in) // any end is the end
	return 0
}
