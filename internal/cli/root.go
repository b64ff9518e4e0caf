package cli

import (
	"strings"

	"github.com/spf13/cobra"

	"sallyport/internal/problem"
)

const rootLong = `Let a coding agent work on a copy of your repository. You see the diff, your checks run on it, and
nothing lands until you say so. What has landed can be undone byte for byte. On trial it goes back
by itself if it does not answer or nobody confirms.

A daemon does the work, one for each home. It is started when it is needed. Closing the terminal or
killing the daemon loses nothing: "sallyport change watch CHANGE" shows the change again.`

// root builds the whole tree of commands.
func (a *app) root() *cobra.Command {
	var build bool
	root := &cobra.Command{
		Use: "sallyport", Short: "let a coding agent work on a copy, and land what you approve", Long: rootLong,
		Example: `  sallyport init
  sallyport run --agent codex "make the tests pass" --check "go test ./..."
  sallyport status
  sallyport approve chg-1a2b3c4d`,
		SilenceErrors: true, SilenceUsage: true,
		Args: func(cmd *cobra.Command, words []string) error { return unknownCommand(cmd, words) },
		RunE: func(cmd *cobra.Command, _ []string) error {
			if build {
				return a.build()
			}
			return cmd.Help()
		},
	}
	flags := root.PersistentFlags()
	flags.StringVar(&a.homeFlag, "home", "", "`DIR` where sallyport keeps its state (default $SALLYPORT_HOME, else $XDG_STATE_HOME/sallyport or ~/.local/state/sallyport; root: /var/lib/sallyport)")
	flags.BoolVar(&a.json, "json", false, "answer in JSON: one document, or one a line for what streams")
	root.Flags().BoolVar(&build, "version", false, "show this program's build")
	root.CompletionOptions.HiddenDefaultCmd = false
	root.SetUsageTemplate(usageTemplate(root))
	root.AddCommand(
		a.initCommand(), a.runCommand(), a.statusCommand(),
		group("agent", "the agents that run takes by name", a.agentList(), a.agentTest()),
		group("change", "a change",
			a.changeList(), a.changeShow(), a.changeWatch(), a.changeDiff(), a.changeLog(), a.changeTell(), a.changePause(), a.changeResume(), a.changeRedo(), a.changeCancel(), a.changeShell(), a.changeExport(), a.changeBranch()),
		group("checkpoint", "what was recorded of a workspace",
			a.checkpointList(), a.checkpointShow(), a.checkpointDiff(), a.checkpointExport(), a.checkpointNow()),
		group("approval", "what a person is asked", a.approvalList(), a.approvalShow()),
		a.approveCommand(), a.refuseCommand(), a.confirmCommand(), a.rollbackCommand(), a.resumeCommand(),
		group("target", "what restarts and probes a repository's code", a.targetShow(), a.targetTrust(), a.targetDistrust()),
		group("audit", "who did what", a.auditList(), a.auditVerify(), a.auditExport()),
		group("secret", "secrets in files", a.secretScan()),
		a.doctorCommand(), a.statsCommand(), a.gcCommand(), a.uninstallCommand(),
		group("daemon", "the home's daemon", a.daemonStart(), a.daemonStop(), a.daemonStatus(), a.daemonRun()),
		a.versionCommand(),
	)
	strict(root)
	a.chosen(root)
	return root
}

// unknownCommand refuses a first word that names no command, with the one that was likely meant.
func unknownCommand(root *cobra.Command, words []string) error {
	if len(words) == 0 {
		return nil
	}
	next, near := "sallyport --help", near(root, words[0])
	if len(near) == 1 {
		next = "sallyport " + near[0] + " --help"
	}
	return problem.Errorf(problem.Usage, next, "there is no command %q%s", words[0], meant(near))
}

// near returns the commands below cmd that a mistyped word may mean.
func near(cmd *cobra.Command, word string) []string {
	cmd.SuggestionsMinimumDistance = 2 // letters that may differ
	if len(word) < 5 {
		cmd.SuggestionsMinimumDistance = 1
	}
	return cmd.SuggestionsFor(word)
}

// meant asks whether one of several commands was meant; "" for none, and for one, which is the next step.
func meant(near []string) string {
	if len(near) < 2 {
		return ""
	}
	return "; did you mean " + strings.Join(near, " or ") + "?"
}

// usageTemplate is cobra's own with the exit statuses below.
func usageTemplate(c *cobra.Command) string {
	return c.UsageTemplate() + "\nExit status: " + exitLine() + ".\n"
}
