package cli

import (
	"errors"
	"fmt"
	"strings"

	"sallyport/internal/base/problem"
	"sallyport/internal/door/api"
	"sallyport/internal/door/client"
)

// Exit statuses.
const (
	exitDone        = 0
	exitError       = 1
	exitUsage       = 2
	exitWaiting     = 3
	exitRefused     = 4
	exitRolledBack  = 5
	exitAgentFailed = 6
	exitNothing     = 7
	exitBaseFails   = 8
	exitTaken       = client.ExitTaken
	exitInterrupted = 130
)

// exitMeanings is the table as help and docs show it.
var exitMeanings = []struct {
	code    int
	meaning string
}{
	{exitDone, "done"},
	{exitError, "something went wrong; the message says what"},
	{exitUsage, "the command line is wrong; --help shows how it goes"},
	{exitWaiting, "it waits for a person"},
	{exitRefused, "refused by a rule, by a check, by a person, or because of the state of the repository"},
	{exitRolledBack, "rolled back"},
	{exitAgentFailed, "the agent failed"},
	{exitNothing, "nothing to do: the agent changed nothing"},
	{exitBaseFails, "the agent changed nothing, and the base fails its own checks"},
	{exitTaken, "another daemon serves the home (serve and daemon run only)"},
	{exitInterrupted, "you left the change running, and it goes on"},
}

// exitKinds maps what went wrong to an exit status; what is not here is an error.
var exitKinds = map[problem.Kind]int{
	problem.Usage:       exitUsage,
	problem.Refused:     exitRefused,
	problem.AgentFailed: exitAgentFailed,
}

// exitStates maps where a change came to rest to an exit status, unless its problem has one of its own.
var exitStates = map[string]int{
	api.Finalized:        exitDone,
	api.AwaitingApproval: exitWaiting,
	api.Paused:           exitWaiting,
	api.Blocked:          exitWaiting,
	api.InTrial:          exitWaiting,
	api.RolledBack:       exitRolledBack,
	api.Rejected:         exitRefused,
	api.Cancelled:        exitRefused,
}

// exitOutcomes maps how a change ended that has nothing to land: that is no success of an agent's, and no failure of its change.
var exitOutcomes = map[string]int{
	api.NothingToDo:     exitNothing,
	api.BaseFailsChecks: exitBaseFails,
}

// exitOfError is the exit status of a command that went wrong.
func exitOfError(err error) int {
	if errors.Is(err, client.ErrTaken) {
		return exitTaken
	}
	return exitOfKind(problem.KindOf(err))
}

func exitOfKind(kind problem.Kind) int {
	if code, ok := exitKinds[kind]; ok {
		return code
	}
	return exitError
}

// exitOf is the exit status of a command that followed c to where it rests.
func exitOf(c api.Change) int {
	if code, ok := exitOutcomes[c.Outcome]; ok {
		return code
	}
	if c.State != api.Finalized && c.State != api.RolledBack && c.Problem != "" {
		return exitOfKind(problem.Kind(c.Problem))
	}
	if code, ok := exitStates[c.State]; ok {
		return code
	}
	return exitError
}

// exitTable is the table as help shows it; what only one command ends with stands in its own help.
func exitTable() string {
	var b strings.Builder
	for _, e := range exitMeanings {
		if e.code != exitTaken {
			fmt.Fprintf(&b, "  %3d  %s\n", e.code, e.meaning)
		}
	}
	return b.String()
}

// exitLine is what help says of the statuses of a command that follows no change.
const exitLine = "Exit status: 0 done, 1 something went wrong, 2 the command line is wrong, 4 refused, unless it\nsays otherwise above.\n"

// exit ends a command with a status and nothing more to say.
type exit int

func (e exit) Error() string { return fmt.Sprintf("exit status %d", int(e)) }

// ended returns nil for 0, so that a command can return it.
func ended(code int) error {
	if code == exitDone {
		return nil
	}
	return exit(code)
}
