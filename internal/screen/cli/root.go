package cli

import (
	"strings"

	"github.com/spf13/cobra"

	"sallyport/internal/base/problem"
)

const rootLong = `Let a coding agent work on a copy of your repository. You see the diff, your checks run on it, and
nothing lands until you say so. What has landed can be undone byte for byte. On trial, sallyport
rolls it back by itself if the new version does not answer or nobody confirms.

A daemon does the work, one for each home. A command that needs it starts it, and it ends by itself
after 15 minutes with nothing to do. Closing the terminal or killing the daemon loses nothing:
"sallyport change watch CHANGE" shows the change again.`

// newRootCommand builds the whole tree of commands.
func newRootCommand(a *app) *cobra.Command {
	var build bool
	root := &cobra.Command{
		Use: "sallyport", Short: "let a coding agent work on a copy, and land what you approve", Long: rootLong,
		Example: `  sallyport doctor                                   # does all work here?
  sallyport init                                     # rules for this repository
  sallyport run --agent codex "make the tests pass" --check "go test ./..."
  sallyport status                                   # what waits for you
  sallyport approve chg-1a2b3c4d
  sallyport rollback chg-1a2b3c4d`,
		SilenceErrors: true, SilenceUsage: true,
		Args: func(cmd *cobra.Command, words []string) error { return unknownCommand(cmd, words) },
		RunE: func(cmd *cobra.Command, _ []string) error {
			if build {
				return printBuild(a)
			}
			return cmd.Help()
		},
	}
	flags := root.PersistentFlags()
	flags.StringVar(&a.homeFlag, "home", "", "`DIR` where sallyport keeps its state, not the repository (default $SALLYPORT_HOME, else $XDG_STATE_HOME/sallyport or ~/.local/state/sallyport; for root /var/lib/sallyport)")
	flags.BoolVar(&a.json, "json", false, "answer in JSON: one document, or one a line for what comes bit by bit")
	root.Flags().BoolVar(&build, "version", false, "show which build of sallyport this is")
	root.CompletionOptions.HiddenDefaultCmd = false
	root.SetUsageTemplate(usageTemplate(root))
	addCommands(a, root)
	strict(root)
	completeFlags(a, root)
	return root
}

// addCommands adds every command to the root, by what a person wants of it.
func addCommands(a *app, root *cobra.Command) {
	add := func(title string, all ...*cobra.Command) {
		root.AddGroup(&cobra.Group{ID: title, Title: title})
		for _, c := range all {
			c.GroupID = title
		}
		root.AddCommand(all...)
	}
	add("Talk with an assistant:",
		newChatCommand(a),
		group("group", "the assistants of a home", groupLong, newGroupListCommand(a), newGroupShowCommand(a), newGroupCreateCommand(a),
			newGroupCommitCommand(a), newGroupDriftCommand(a), follows(newGroupRefreshCommand(a)), newGroupPromoteCommand(a),
			group("memory", "what a group's agent has written", memoryLong, newGroupMemoryClearCommand(a))),
		group("session", "the agents at their work, of groups and of changes", sessionLong, newSessionListCommand(a),
			newSessionShowCommand(a), newSessionLogCommand(a), newSessionStopCommand(a), newSessionForgetCommand(a)),
		group("message", "what was said to groups, and what became of it", messageLong, newMessageListCommand(a),
			newMessageShowCommand(a), newMessageRetryCommand(a)),
		group("schedule", "what groups do at a time", scheduleLong, newScheduleListCommand(a), newScheduleAddCommand(a), newScheduleRemoveCommand(a)),
		group("person", "who may talk with assistants, and decide", personLong, newPersonListCommand(a), newPersonShowCommand(a),
			newPersonAddCommand(a), newPersonLinkCommand(a), newPersonUnlinkCommand(a), newPersonRoleCommand(a), newPersonRemoveCommand(a)),
		group("channel", "the platforms on which people talk with groups", channelLong, newChannelAddCommand(a), newChannelListCommand(a),
			newChannelShowCommand(a), newChannelRemoveCommand(a)),
		group("wiring", "which groups hear which conversations", wiringLong, newWiringListCommand(a), newWiringSetCommand(a),
			newWiringRemoveCommand(a), newWiringPolicyCommand(a), newWiringImportCommand(a)),
		newServeCommand(a))
	add("Let an agent work:",
		newInitCommand(a), follows(newRunCommand(a)), follows(newResumeCommand(a)),
		group("agent", "which agents there are, and whether one works", agentLong, newAgentListCommand(a), newAgentTestCommand(a)),
		group("change", "look at a change, or act on it", changeLong,
			newChangeListCommand(a), newChangeShowCommand(a), follows(newChangeWatchCommand(a)), newChangeDiffCommand(a),
			newChangeLogCommand(a), newChangeTellCommand(a), newChangeReworkCommand(a), newChangePauseCommand(a), newChangeResumeCommand(a),
			follows(newChangeRedoCommand(a)), follows(newChangeCancelCommand(a)), newChangeShellCommand(a), newChangeExportCommand(a),
			newChangeBranchCommand(a)),
		group("checkpoint", "the recorded states of a change's work", checkpointLong,
			newCheckpointListCommand(a), newCheckpointShowCommand(a), newCheckpointDiffCommand(a), newCheckpointExportCommand(a), newCheckpointNowCommand(a)))
	add("Decide what lands and what stays:",
		newStatusCommand(a), follows(newApproveCommand(a)), newRefuseCommand(a), follows(newConfirmCommand(a)), follows(newRollbackCommand(a)),
		group("approval", "what waits for your yes or no", approvalLong, newApprovalListCommand(a), newApprovalShowCommand(a)),
		group("target", "how your code is restarted and probed once a change has landed", targetLong, newTargetShowCommand(a),
			newTargetTrustCommand(a), newTargetDistrustCommand(a)))
	add("Look after it:",
		newDoctorCommand(a), newStatsCommand(a), newGCCommand(a), follows(newUpgradeCommand(a)), newUninstallCommand(a),
		group("audit", "who did what and when, and whether that record is whole", auditLong, newAuditListCommand(a),
			newAuditVerifyCommand(a), newAuditExportCommand(a)),
		group("release", "the kept versions of sallyport's own programs", releaseLong, newReleaseListCommand(a), newReleaseShowCommand(a),
			newReleasePruneCommand(a)),
		group("service", "a home that systemd serves", serviceLong, newServiceInstallCommand(a), newServiceRemoveCommand(a)),
		group("secret", "secrets in your own files", secretLong, newSecretScanCommand(a)),
		group("daemon", "the process that does the work of a home", daemonLong, newDaemonStartCommand(a), newDaemonStopCommand(a),
			newDaemonStatusCommand(a), newDaemonRunCommand(a), newDaemonRevertCommand(a)))
	root.AddCommand(newVersionCommand(a))
}

// What the nouns are.
const (
	agentLong = `An agent is a program that edits files. "sallyport run --agent NAME" starts it in a sandbox, on a
copy of the repository. These commands say which agents there are, and whether one works here.`

	changeLong = `A change is one piece of work, from your request to its end. "sallyport run" makes one. These
commands show what it does, and act on it while it works. None of them lands it: "sallyport approve"
does.

An id may be cut short, and left out where only one change can be meant.`

	checkpointLong = `A checkpoint is the work of a change as it was recorded and judged at one moment: every half minute
while the agent works, after many changes, and at its end. Only a valid one can be offered to you.`

	approvalLong = `An approval is the question about one change: may exactly this land? Beside those stand questions
about strangers and places on a platform. These commands show what is asked. "sallyport approve" and
"sallyport refuse" answer it.`

	targetLong = `A target says how the code of a repository is restarted when a change has landed, how to probe
whether it answers, and how long you have to confirm it. docs/targets.md tells how to write one.`

	auditLong = `The audit is the record of who did what and when. Entries are only ever added, each bound to the one
before by its hash, so that it shows when one was altered or removed.`

	secretLong = `Every change is scanned for secrets before it is offered, and one that adds a secret does not land.
This looks through your own files with the same rules.`

	daemonLong = `The daemon does the work of one home. You hardly need these commands: any command that needs the
daemon starts it, and it ends by itself after 15 minutes with nothing to do.`
)

// unknownCommand refuses a first word that names no command, with the one that was likely meant.
func unknownCommand(root *cobra.Command, words []string) error {
	if len(words) == 0 {
		return nil
	}
	next, near := "sallyport --help", near(root, words[0])
	if len(near) == 0 {
		near = verbsNamed(root, words[0])
	}
	if other := otherWords[words[0]]; other != "" {
		near = []string{other}
	}
	if len(near) == 1 {
		next = "sallyport " + near[0] + " --help"
	}
	return problem.Errorf(problem.Usage, next, "there is no command %q%s", words[0], meant(near))
}

// otherWords are what people say for a command, from git and elsewhere; each leads to the one that does it here.
var otherWords = map[string]string{
	"accept": "approve", "yes": "approve", "land": "approve", "merge": "approve", "reject": "refuse", "deny": "refuse", "no": "refuse",
	"undo": "rollback", "revert": "rollback", "restore": "rollback", "keep": "confirm", "list": "change list", "ls": "change list",
	"show": "change show", "talk": "chat", "say": "chat",
}

// verbsNamed returns the commands whose verb is a word that was typed without its noun.
func verbsNamed(root *cobra.Command, word string) (all []string) {
	for _, noun := range root.Commands() {
		for _, verb := range noun.Commands() {
			if verb.Name() == word {
				all = append(all, noun.Name()+" "+word)
			}
		}
	}
	return all
}

// meant asks whether one of several commands was meant; "" for none, and for one, which is the next step.
func meant(near []string) string {
	if len(near) < 2 {
		return ""
	}
	last := len(near) - 1
	return "; did you mean " + strings.Join(near[:last], ", ") + " or " + near[last] + "?"
}

// followsNote is on commands that follow a change: they end with any of the exit statuses.
const followsNote = "follows"

// follows marks a command that ends with the status of where its change came to rest.
func follows(c *cobra.Command) *cobra.Command {
	c.Annotations = map[string]string{followsNote: "yes"}
	return c
}

// helpColumns is how wide help is; a terminal of a usual width does not break it again.
const helpColumns = "100"

// usageTemplate is cobra's own, with lines that are broken where a terminal would, and the exit statuses below.
func usageTemplate(c *cobra.Command) string {
	flags := strings.NewReplacer(".LocalFlags.FlagUsages ", ".LocalFlags.FlagUsagesWrapped "+helpColumns+" ",
		".InheritedFlags.FlagUsages ", ".InheritedFlags.FlagUsagesWrapped "+helpColumns+" ")
	all := `{{if or (not .HasParent) .Annotations.` + followsNote + `}}`
	return flags.Replace(c.UsageTemplate()) + "\n" + all + "Exit status:\n" + exitTable() + "{{else}}" + exitLine + "{{end}}"
}

const helpLong = `Shows the help of a command: what it does, its flags, examples, and the exit statuses that it ends
with. "COMMAND --help" shows the same. Without COMMAND all commands are listed.`

const completionLong = `Prints a script that has your shell complete commands, flags and ids when you press the Tab key. Ids
come from the daemon of the home, if one runs: none is started for a key that was pressed.`

// tellCompletion says in our words what cobra's completion is.
func tellCompletion(c *cobra.Command, verbs []*cobra.Command) {
	begins := map[string]string{
		"bash":       "  source <(sallyport completion bash)                  # in this shell; needs the package bash-completion\n  sallyport completion bash > ~/.local/share/bash-completion/completions/sallyport",
		"zsh":        "  source <(sallyport completion zsh)                   # in this shell; after: autoload -U compinit; compinit\n  sallyport completion zsh > \"${fpath[1]}/_sallyport\"",
		"fish":       "  sallyport completion fish | source                   # in this shell\n  sallyport completion fish > ~/.config/fish/completions/sallyport.fish",
		"powershell": "  sallyport completion powershell | Out-String | Invoke-Expression",
	}
	c.Short, c.Long = "have your shell complete commands, flags and ids: "+named(verbs), completionLong
	for _, v := range verbs {
		v.Short, v.Long, v.Example = "print the script for "+v.Name(), completionLong, begins[v.Name()]
	}
}

// strict makes what cobra brings along refuse words that it does not know, as every other command does.
func strict(root *cobra.Command) {
	root.InitDefaultCompletionCmd()
	root.InitDefaultHelpCmd()
	for _, c := range root.Commands() {
		switch c.Name() {
		case "completion":
			verbs := c.Commands()
			tellCompletion(c, verbs)
			c.Args, c.RunE = nil, func(_ *cobra.Command, args []string) error { return noVerb(c, "completion", verbs, args) }
		case "help":
			c.Use, c.Short, c.Long, c.Example = "help [COMMAND]", "show the help of a command", helpLong, "  sallyport help run\n  sallyport help change show"
			c.Run, c.RunE = nil, func(c *cobra.Command, args []string) error {
				topic, rest, err := root.Find(args)
				switch {
				case topic == nil || topic == root && len(rest) > 0:
					return unknownCommand(root, args)
				case err != nil || len(rest) > 0: // what is there of it
					return problem.Errorf(problem.Usage, topic.CommandPath()+" --help", "there is no help for %q", strings.Join(args, " "))
				}
				topic.InitDefaultHelpFlag()
				return topic.Help()
			}
		}
	}
}
