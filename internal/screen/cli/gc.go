package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"sallyport/internal/base/inert"
	"sallyport/internal/door/api"
	"sallyport/internal/door/client"
)

func newGCCommand(a *app) *cobra.Command {
	var dry bool
	cmd := a.remote("gc", "free disk space: remove what has been kept long enough",
		`Removes from the home what has been kept long enough: the workspaces of changes that have ended,
what a crash has left, and what no ref names in the host's own copies of repositories. Refs,
checkpoints, transcripts and exports go 30 days after their change has ended, unless retention: in
the home's sallyport.yaml says otherwise. The daemon does the same by itself, after its start and
once a day.

No file of your repositories is touched. Nothing of an open change goes. What has landed can be
rolled back as before, and the audit stays. The work of a change that did not land goes after that
time: "sallyport change export" keeps it as a patch.

--dry-run removes nothing and says what would go. "sallyport status --disk" shows what the home
takes.`,
		"  sallyport gc --dry-run\n  sallyport gc", exactly(), func(ctx context.Context, c *client.Client, _ []string) error {
			return tell(ctx, a, c, api.StorageCollect, api.GC{DryRun: dry}, func(s sheet, v api.Storage) {
				printCollected(s, v)
				if dry && v.Freed > 0 {
					s.line("next: %s", a.command("sallyport gc"))
				}
			})
		})
	cmd.Flags().BoolVar(&dry, "dry-run", false, "remove nothing; say what would go")
	return cmd
}

// printCollected shows what there was, how long it stays, and what went.
func printCollected(s sheet, v api.Storage) {
	went := "removed"
	if v.DryRun {
		went = "would go"
	}
	s.line("%-13s %7s %10s  %8s %10s  %s", "kind", "count", "on disk", went, "frees", "stays")
	for _, k := range v.Kinds {
		if k.Count > 0 || k.Gone > 0 {
			s.line("%-13s %7d %10s  %8d %10s  %s", inert.Line(k.Kind), k.Count, size(k.Bytes), k.Gone, size(k.Freed), s.dim(inert.Line(k.Keeps)))
		}
	}
	verb := "freed"
	if v.DryRun {
		verb = "would be freed"
	}
	s.line("%s on disk, about %s %s", size(v.Bytes), size(v.Freed), verb)
	printRemarks(s, v.Notes)
}

// printStored shows what a home takes.
func printStored(s sheet, v api.Storage) {
	s.line("home    %s", inert.Path(v.Home))
	s.line("")
	s.line("%-13s %7s %10s  %13s", "kind", "count", "on disk", "gc would free")
	for _, k := range v.Kinds {
		if k.Count > 0 {
			s.line("%-13s %7d %10s  %13s", inert.Line(k.Kind), k.Count, size(k.Bytes), size(k.Freed))
		}
	}
	s.line("%-13s %7s %10s  %13s", "all", "", size(v.Bytes), size(v.Freed))
	printRemarks(s, v.Notes)
}

const remarksMax = 20

// printRemarks shows what stays, and why.
func printRemarks(s sheet, notes []string) {
	for i, n := range notes {
		if i == remarksMax {
			s.line("  and %s more; --json has them all", fmt.Sprint(len(notes)-i))
			return
		}
		s.line("  %s", inert.Line(n))
	}
}
