package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"sallyport/internal/base/inert"
	"sallyport/internal/base/problem"
	"sallyport/internal/door/api"
	"sallyport/internal/door/client"
)

// historyDefault is how many commits --history looks at unless it says another number.
const historyDefault = "1000"

func newSecretScanCommand(a *app) *cobra.Command {
	var history int
	cmd := a.cmd("scan [PATH]", "look for secrets in your own files, and in what commits added",
		`Looks for secrets (keys, tokens, passwords, logins in addresses) in every file below PATH, with the
rules that judge an agent's work. PATH is where you stand if none is named. Files that git does not
track and hidden files are scanned, too; .git is left out. --history also scans what the last
commits added. Nothing is changed, and nothing leaves this machine.

Each finding is one line on standard output: the place and the kind of secret, never the secret.
Progress and what could not be scanned go to standard error.

A finding can be wrong, or be meant. A .gitleaks.toml, a .gitleaksignore and gitleaks:allow marks
count here as they stand in PATH. For an agent's change they count only as they stand at its base,
and where they allow something only once the home trusts them; the last line names the words for
policy.yaml.

A secret that is in a commit stays in the history after you delete its line: change it where it is
used.

Exit status: 0 if nothing was found, 4 if something was, 1 if something could not be scanned.`,
		`  sallyport secret scan                          # all files below here
  sallyport secret scan services/billing --json
  sallyport secret scan . --history              # and what the last 1000 commits added
  sallyport secret scan . --history=200
  sallyport secret scan || exit 1                # in a git hook or CI`,
		func(args []string) error {
			if len(args) > 1 {
				return problem.Errorf(problem.Usage, "sallyport secret scan --help", "one PATH is taken, and %d are given", len(args))
			}
			return nil
		}, func(cmd *cobra.Command, args []string) error {
			here, err := a.Dir()
			if err != nil {
				return problem.Errorf(problem.Unavailable, "cd", "find out where you stand: %w", err)
			}
			path := here
			if len(args) == 1 && filepath.IsAbs(args[0]) {
				path = filepath.Clean(args[0])
			} else if len(args) == 1 {
				path = filepath.Join(here, args[0])
			}
			if cmd.Flags().Changed("history") && history < 1 {
				return problem.Errorf(problem.Usage, "sallyport secret scan --help", "--history %d is not a number of commits", history)
			}
			c, err := a.connect(cmd.Context())
			if err != nil {
				return err
			}
			return scan(cmd.Context(), a, c, path, history)
		})
	cmd.Flags().IntVar(&history, "history", 0, "also scan what the last `N` commits below HEAD added (--history alone: 1000)")
	cmd.Flags().Lookup("history").NoOptDefVal = historyDefault
	return cmd
}

// scan shows a scan's lines as they come and says how it ended.
func scan(ctx context.Context, a *app, c *client.Client, path string, commits int) error {
	found, failed := 0, 0
	var done *api.SecretProgress
	err := eachLine(func(w io.Writer) error {
		return client.Copy(ctx, c, api.SecretScan, api.Scan{Path: path, History: commits}, w)
	}, func(raw json.RawMessage) error {
		var line api.SecretLine
		if err := json.Unmarshal(raw, &line); err != nil {
			return unreadable(err)
		}
		if line.Finding != nil {
			found++
		}
		if line.Failed != nil {
			failed++
		}
		done = line.Done
		if a.json {
			a.write(line, "")
			return nil
		}
		return printSecretLine(a.Program, line)
	})
	if err != nil {
		return err
	}
	switch {
	case done == nil:
		return problem.Errorf(problem.Unavailable, "sallyport daemon status", "the scan of %q did not finish", path)
	case failed > 0:
		return ended(exitError)
	case found > 0:
		return ended(exitRefused)
	}
	return nil
}

// printSecretLine shows one line. What is no finding goes to the other stream, so that findings can be piped on.
func printSecretLine(p Program, line api.SecretLine) error {
	var err error
	switch {
	case line.Finding != nil:
		f := line.Finding
		place := inert.Line(f.File)
		if f.Line > 0 {
			place += fmt.Sprintf(":%d", f.Line)
		}
		if f.Blob != "" {
			place += fmt.Sprintf(" (git log --find-object=%.12s)", inert.Line(f.Blob))
		}
		_, err = fmt.Fprintf(p.Out, "%s %s\n", place, inert.Line(f.Kind))
	case line.Failed != nil:
		_, err = fmt.Fprintf(p.Err, "not scanned: %s: %s\n", inert.Line(line.Failed.File), inert.Line(line.Failed.Reason))
	case line.Progress != nil:
		_, err = fmt.Fprintf(p.Err, "… %s, %s\n", count(int(line.Progress.Files), "file"), size(line.Progress.Bytes))
	case line.Done != nil:
		by := "the built-in rules"
		if len(line.Done.Rules) > 0 {
			by += " and " + inert.Line(strings.Join(line.Done.Rules, ", ")) + " as it stands there"
		}
		_, err = fmt.Fprintf(p.Err, "scanned %s, %s, with %s\n", count(int(line.Done.Files), "file"), size(line.Done.Bytes), by)
		if err == nil && line.Done.Note != "" {
			_, err = fmt.Fprintln(p.Err, inert.Line(line.Done.Note))
		}
	}
	return err
}
