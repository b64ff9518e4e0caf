package cli

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"sallyport/internal/base/problem"
	"sallyport/internal/door/api"
	"sallyport/internal/door/client"
	"sallyport/internal/port/agent"
	"sallyport/internal/rule/config"
)

const (
	completeTime = 2 * time.Second // a person waits with a finger on the key
	completeMax  = 100             // ids that are offered
	deepMax      = 10              // changes whose checkpoints are offered
)

// offer is how a shell is told what a word may be: ids, each with a word of ours. Nothing that a
// repository or an agent wrote gets into a shell's completion.
type offer func(ctx context.Context, c *client.Client) []string

// completes returns what completes the words of a command by what its usage line calls them;
// nil where no id is wanted. Of several words every one is completed alike.
func (a *app) completes(use string) cobra.CompletionFunc {
	verb, words, _ := strings.Cut(use, " ")
	var ids offer
	switch {
	case words == "NAME":
		return func(_ *cobra.Command, given []string, _ string) ([]string, cobra.ShellCompDirective) {
			if len(given) > 0 {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return agent.Names(), cobra.ShellCompDirectiveNoFileComp
		}
	case strings.HasPrefix(words, "NAME "): // a new one
		return func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
	case strings.HasPrefix(words, "CONVERSATION"):
		return a.completesWiring(words)
	case words == "RELEASE":
		return a.completesRelease()
	case words == "CHANNEL":
		ids = channelNames
	case strings.Contains(words, "GROUP"):
		ids = groupNames
	case words == "PERSON":
		ids = personIDs
	case words == "SESSION":
		ids = sessionNames
	case words == "MESSAGE" && verb == "retry":
		ids = deadMessageIDs
	case words == "MESSAGE":
		ids = messageIDs
	case words == "TASK":
		ids = taskIDs
	case strings.Contains(words, "APPROVAL"):
		ids = waitingIDs
	case strings.Contains(words, "CHECKPOINT"):
		ids = checkpointIDs
	case strings.Contains(words, "CHANGE"):
		ids = changeIDs
	default:
		return nil
	}
	most := strings.Count(words, "CHANGE") + strings.Count(words, "CHECKPOINT") + strings.Count(words, "FROM")
	return func(cmd *cobra.Command, given []string, _ string) ([]string, cobra.ShellCompDirective) {
		if len(given) >= max(most, 1) {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return a.ids(cmd, ids), cobra.ShellCompDirectiveNoFileComp
	}
}

// completesWiring completes a conversation, and then what is said of it.
func (a *app) completesWiring(words string) cobra.CompletionFunc {
	return func(cmd *cobra.Command, given []string, _ string) (offered []string, _ cobra.ShellCompDirective) {
		switch {
		case len(given) == 0:
			offered = a.ids(cmd, conversationIDs)
		case len(given) == 1 && strings.HasSuffix(words, "GROUP"):
			offered = a.ids(cmd, groupNames)
		case len(given) == 1:
			offered = placePolicies
		}
		return offered, cobra.ShellCompDirectiveNoFileComp
	}
}

// ids asks the home's daemon, if one runs; none is started for a key that was pressed.
func (a *app) ids(cmd *cobra.Command, ids offer) []string {
	ctx, cancel := context.WithTimeout(cmd.Context(), completeTime)
	defer cancel()
	home, err := a.home()
	if err != nil {
		return nil
	}
	c, err := a.Connect(ctx, home, false)
	if err != nil {
		return nil
	}
	return ids(ctx, c)
}

// offered makes an offer of a list of the daemon's; without an answer nothing is offered.
func offered[In, Row any](list api.Verb[In, []Row], in In, words func(Row) []string) offer {
	return func(ctx context.Context, c *client.Client) (out []string) {
		rows, _ := client.Call(ctx, c, list, in)
		for _, r := range rows[:min(len(rows), completeMax)] {
			out = append(out, words(r)...)
		}
		return out
	}
}

// What is offered of the lists: the words that name a row, each with one that tells it from others.
var (
	changeIDs = offered(api.ChangeList, api.Filter{Limit: completeMax}, func(r api.Change) []string { return []string{r.ID + "\t" + r.State} })

	waitingIDs = offered(api.ApprovalList, api.Waiting{Pending: true}, func(r api.Approval) []string {
		if r.Change == "" {
			return []string{r.ID + "\t" + r.Decision}
		}
		return []string{r.Change + "\t" + r.Decision, r.ID + "\t" + r.Decision}
	})

	channelNames = offered(api.ChannelList, api.Nothing{}, func(ch api.Channel) []string { return []string{ch.Name + "\t" + ch.Status} })

	personIDs = offered(api.PersonList, api.Nothing{}, func(p api.Person) []string { return []string{p.ID + "\t" + dash(roleList(p))} })

	taskIDs = offered(api.ScheduleList, api.Nothing{}, func(m api.Message) []string { return []string{m.Task + "\tdue " + clock(m.Due)} })

	// sessionNames are the chats, and the identities of their sessions.
	sessionNames = offered(api.ChatList, api.InGroup{}, func(r api.Chat) []string {
		if r.Session == "" {
			return []string{r.ID + "\t" + r.Group}
		}
		return []string{r.ID + "\t" + r.Group, r.Session + "\t" + r.Group}
	})

	conversationIDs = offered(api.WiringList, api.OfChannel{}, func(w api.Conversation) []string { return []string{w.ID + "\t" + w.Kind + " on " + w.Channel} })

	messageIDs, deadMessageIDs = offeredMessages(), offeredMessages(api.MessageDead)
)

// offeredMessages offers the newest messages, the newest first.
func offeredMessages(status ...string) offer {
	return func(ctx context.Context, c *client.Client) (out []string) {
		rows, _ := client.Call(ctx, c, api.MessageList, api.Messages{Status: status, Limit: completeMax}) // as above
		for _, m := range slices.Backward(rows) {
			out = append(out, m.ID+"\t"+m.Status)
		}
		return out
	}
}

func checkpointIDs(ctx context.Context, c *client.Client) (out []string) {
	rows, _ := client.Call(ctx, c, api.ChangeList, api.Filter{Limit: deepMax}) // as above
	for _, r := range rows {
		points, _ := client.Call(ctx, c, api.CheckpointList, r.ID)
		for _, p := range points {
			out = append(out, p.ID+"\t"+p.Status+" of "+p.Change)
		}
	}
	return out[:min(len(out), completeMax)]
}

// states are all that a change can be in.
var states = []string{
	api.Requested, api.Preparing, api.Working, api.Paused, api.Blocked, api.Submitted, api.AwaitingApproval, api.Landing,
	api.InTrial, api.Finalized, api.RolledBack, api.RollbackFailed, api.Rejected, api.Cancelled, api.Failed,
}

// knownStates refuses a state that there is not.
func knownStates(given []string) error {
	for _, s := range given {
		if !slices.Contains(states, s) {
			return problem.Errorf(problem.Usage, "sallyport change list --help", "there is no state %q; there are %s", s, strings.Join(states, ", "))
		}
	}
	return nil
}

// completeFlags completes the flags that take one of a few words, or an id, wherever they are.
func completeFlags(a *app, cmd *cobra.Command) {
	for name, words := range map[string][]string{"approve": {"ask", "yes", "later"}, "state": states, "status": messageStatuses,
		"profile": {"go", "node", "python"},
		"agent":   agent.Names(), "egress": {config.Registries}, "strategy": strategies, "execution-mode": {api.Interactive, api.Deterministic}} {
		if cmd.Flags().Lookup(name) != nil {
			_ = cmd.RegisterFlagCompletionFunc(name, cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp)) // it is registered once
		}
	}
	for name, ids := range map[string]offer{"change": changeIDs, "checkpoint": checkpointIDs, "group": groupNames, "channel": channelNames} {
		if cmd.Flags().Lookup(name) != nil {
			_ = cmd.RegisterFlagCompletionFunc(name, func(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
				return a.ids(cmd, ids), cobra.ShellCompDirectiveNoFileComp
			})
		}
	}
	for _, sub := range cmd.Commands() {
		completeFlags(a, sub)
	}
}

// strategies are how a working agent can be watched, the default first.
var strategies = []string{"direct_worktree", "shadow_workspace"}

// groupNames offers the groups of the home.
func groupNames(ctx context.Context, c *client.Client) (out []string) {
	all, _ := client.Call(ctx, c, api.GroupList, api.OfUser{}) // as above
	for _, g := range all.Groups[:min(len(all.Groups), completeMax)] {
		out = append(out, g.Name+"\t"+g.Agent)
	}
	return out
}

// completesRelease offers what names a release.
func (a *app) completesRelease() cobra.CompletionFunc {
	return func(_ *cobra.Command, given []string, _ string) (offered []string, _ cobra.ShellCompDirective) {
		if f, err := a.releases(); err == nil && len(given) == 0 {
			digests, _ := f.Find("") // what cannot be read is not offered
			for _, digest := range digests {
				offered = append(offered, short(digest))
			}
			for name, named := range namedReleases(f) {
				if _, err := named(); err == nil {
					offered = append(offered, name)
				}
			}
			slices.Sort(offered)
		}
		return offered, cobra.ShellCompDirectiveNoFileComp
	}
}

// messageStatuses are all that a message can have.
var messageStatuses = []string{api.MessagePending, api.MessageProcessing, api.MessageCompleted, api.MessageFolded, api.MessageDead}

// What wirings and policies are made of, the usual first.
var (
	engageModes   = []string{"mention", "mention-sticky", "pattern"}
	senderScopes  = []string{"all", "known"}
	ignoredKinds  = []string{"drop", "accumulate"}
	placePolicies = []string{"request_approval", "strict", "public"}
)
