package cli

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"sallyport/internal/base/inert"
	"sallyport/internal/base/problem"
	"sallyport/internal/door/api"
	"sallyport/internal/door/client"
)

const messageLong = `A message is what reaches a group: what you say to it, a task that falls due, a word of the host.
One that was accepted is answered, or given up with a reason after five tries: then it is dead, and
"sallyport message retry MESSAGE" has it tried again.`

func newMessageListCommand(a *app) *cobra.Command {
	var in api.Messages
	cmd := a.remote("list", "list what was said to groups, and what became of it",
		`Lists the newest messages to the groups of the home, oldest first: when each came, to whom, how it
stands, and how it begins. A message is pending while it waits, processing while an agent has it in
its turn, completed when that turn was answered, folded when it was counted with newer ones, and
dead when it was given up.`,
		"  sallyport message list\n  sallyport message list --group echo --status dead\n  sallyport message list --json", exactly(),
		func(ctx context.Context, c *client.Client, _ []string) error {
			for _, s := range in.Status {
				if !slices.Contains(messageStatuses, s) {
					return problem.Errorf(problem.Usage, "sallyport message list --help", "there is no status %q; there are %s", s,
						strings.Join(messageStatuses, ", "))
				}
			}
			rows, err := client.Call(ctx, c, api.MessageList, in)
			if err == nil && len(rows) == 0 { // one that is gone has left messages
				err = knows(ctx, a, c, in.Group)
			}
			if err != nil || a.document(rows) {
				return err
			}
			if len(rows) == 0 {
				said := "nobody has said anything to a group yet"
				if in.Group != "" || len(in.Status) > 0 {
					said = "no message is like that"
				}
				fmt.Fprintln(a.Out, said)
				return nil
			}
			groups, err := groupsOfChats(ctx, c)
			if err != nil {
				return err
			}
			return table(a.Out, "MESSAGE\tCAME\tGROUP\tFROM\tSTATUS\tTEXT", rows, func(t io.Writer, m api.Message) {
				fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\n", m.ID, clock(m.At), groups[m.Chat], fromWhom(m), m.Status, clip(inert.Line(firstLine(m.Text)), 60))
			})
		})
	cmd.Flags().StringVar(&in.Group, "group", "", "only messages to this `GROUP`")
	cmd.Flags().StringSliceVar(&in.Status, "status", nil, "only messages with this `STATUS`; may be given again")
	cmd.Flags().IntVar(&in.Limit, "limit", 100, "at most so many: `NUMBER`")
	return cmd
}

// groupsOfChats says with which group each chat is.
func groupsOfChats(ctx context.Context, c *client.Client) (map[string]string, error) {
	rows, err := client.Call(ctx, c, api.ChatList, api.InGroup{})
	groups := map[string]string{}
	for _, r := range rows {
		groups[r.ID] = r.Group
	}
	return groups, err
}

// fromWhom says who sent a message: a task is the host's.
func fromWhom(m api.Message) string {
	if m.Task != "" {
		return m.Task
	}
	if m.Sender != "" {
		return clip(inert.Line(m.Sender), 24)
	}
	return "sallyport"
}

func newMessageShowCommand(a *app) *cobra.Command {
	return a.remote("show MESSAGE", "show a message, and what became of it",
		`Shows a message: who said it to which group and when, how it stands, how often it was tried and why
that failed, and what was sent in the turn that answered it: also an answer that came later than
"sallyport chat --say" has waited. Rows of the message and of its answer begin with |.`,
		"  sallyport message show msg-1a2b3c4d\n  sallyport message show msg-1a2b3c4d --json", oneMessage,
		func(ctx context.Context, c *client.Client, words []string) error {
			m, err := client.Call(ctx, c, api.MessageShow, words[0])
			if err != nil || a.document(m) {
				return err
			}
			groups, err := groupsOfChats(ctx, c)
			if err != nil {
				return err
			}
			printMessage(a, a.sheet(a.Out), m, groups[m.Chat])
			return nil
		})
}

// printMessage shows a message and what became of it.
func printMessage(a *app, s sheet, m api.Answered, group string) {
	s.line("%s  to %s, from %s, %s", s.bold(m.ID), group, fromWhom(m.Message), s.messageStatus(m.Status))
	row := func(what, text string) { s.rows(fmt.Sprintf("  %-9s ", what), strings.Repeat(" ", 12), text) }
	row("came", clock(m.At))
	if m.Status == api.MessagePending && m.Due.After(s.now) {
		row("due", clock(m.Due))
	}
	if m.Repeat != "" {
		row("repeats", inert.Line(m.Repeat))
	}
	if m.Tries > 0 {
		row("tries", fmt.Sprintf("%d failed", m.Tries))
	}
	if m.Reason != "" {
		row("because", inert.Line(m.Reason))
	}
	if m.Ended != nil {
		row("ended", clock(*m.Ended))
	}
	s.quote(m.Text)
	for _, o := range m.Answer {
		row("answered", clock(o.At))
		s.quote(o.Text)
	}
	if m.Status == api.MessageDead {
		s.line("next: %s", a.command("sallyport message retry "+m.ID))
	}
}

// messageStatus is a status in its colour.
func (s sheet) messageStatus(v string) string {
	switch v {
	case api.MessageCompleted, api.MessageFolded:
		return s.green(v)
	case api.MessageDead:
		return s.red(v)
	}
	return s.cyan(inert.Line(v))
}

func newMessageRetryCommand(a *app) *cobra.Command {
	return a.remote("retry MESSAGE", "have a message tried again that was given up",
		`Has a dead message tried again, with five tries as if it came now. The answer comes to the chat that
it belongs to. A message that is not dead is refused.`,
		"  sallyport message retry msg-1a2b3c4d", oneMessage, func(ctx context.Context, c *client.Client, words []string) error {
			m, err := client.Call(ctx, c, api.MessageRetry, words[0])
			if err != nil || a.document(m) {
				return err
			}
			groups, err := groupsOfChats(ctx, c)
			if err != nil {
				return err
			}
			s := a.sheet(a.Out)
			s.line("%s is tried again", m.ID)
			s.line("next: %s", a.command("sallyport chat "+groups[m.Chat]))
			return nil
		})
}
