// Command sallyport lets coding agents change code through a gate: command line, daemon
// and sandbox runner in one static binary.
package main

import (
	"context"
	"os"

	"sallyport/internal/cli"
	"sallyport/internal/daemon"
	"sallyport/internal/runner"
)

func main() { os.Exit(run()) }

func run() int {
	// Inside and around a sandbox nothing of the command line may take part.
	if len(os.Args) > 1 && os.Args[1] == "runner" {
		return runner.Main(os.Args[2:])
	}
	return cli.Main(cli.System(serve), os.Args[1:])
}

func serve(ctx context.Context, home string) error {
	return daemon.Run(ctx, daemon.Options{Home: home})
}
