package stuck

import "time"

// The limits are constants, not settings (CH-115).
const (
	Silence        = 30 * time.Minute  // without any sign of life (CH-091)
	ToolBudget     = 30 * time.Minute  // of a tool that declares none
	ToolBudgetMax  = 24 * time.Hour    // whatever it declares; longer work belongs in the background
	ToolSlack      = 10 * time.Second  // a tool that ends itself at its budget needs a moment to say so
	InterruptGrace = 30 * time.Second  // from the interruption of a turn to the end of its sandbox
	StartMax       = 150 * time.Second // from a claim until the agent's program has the words; it gives up by itself a little before
	ClaimGrace     = time.Minute       // from then to the first sign of life (CH-092)
	WaitMax        = 6 * time.Hour     // of a server's Retry-After
	TriesMax       = 5                 // a message that reaches it stops (CH-102)
)

// backoff is how long a message waits after its nth failed try. The first wait is short, as it is mostly the host that was restarted;
// the last one outlives a short outage of a model.
var backoff = [TriesMax - 1]time.Duration{time.Second, 15 * time.Second, 2 * time.Minute, 10 * time.Minute}

// Backoff returns how long a message waits that has failed so many times.
func Backoff(tries int) time.Duration {
	return backoff[min(max(tries, 1), len(backoff))-1]
}

// Budget is how long a tool may run that declared so much.
func Budget(declared time.Duration) time.Duration {
	if declared <= 0 {
		return ToolBudget
	}
	return min(declared, ToolBudgetMax)
}

// ToolsOff are the tools of agents that wait for somebody who is not there, or leave the session's folder. They are removed from
// an agent's list (CH-096), and one that fires all the same is stuck at once (CH-097).
var ToolsOff = []string{"AskUserQuestion", "EnterPlanMode", "ExitPlanMode", "EnterWorktree", "ExitWorktree"}
