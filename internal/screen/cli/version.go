package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"sallyport/internal/door/api"
)

func newVersionCommand(a *app) *cobra.Command {
	return a.cmd("version", "show which build of sallyport this is",
		`Shows the build of this program and the version of the protocol that it speaks with the daemon. The
daemon may be of another build, as after an upgrade: "sallyport daemon status" says which.
In JSON it also says which schema of the database this program has.`,
		`  sallyport version
  sallyport version --json`, exactly(), func(*cobra.Command, []string) error { return printBuild(a) })
}

func printBuild(a *app) error {
	if !a.document(map[string]any{"build": api.Build(), "api": api.Version, "schema": a.Schema}) {
		fmt.Fprintf(a.Out, "sallyport %s (api %d)\n", api.Build(), api.Version)
	}
	return nil
}
