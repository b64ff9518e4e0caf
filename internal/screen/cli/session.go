package cli

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"sallyport/internal/base/id"
	"sallyport/internal/base/inert"
	"sallyport/internal/base/problem"
	"sallyport/internal/door/api"
	"sallyport/internal/door/client"
)

const sessionLong = `A session is one agent at its work, under an identity that it keeps. That of a group belongs to a
chat: it begins when a message wakes it, and goes on with the next message. That of a change
belongs to its work. A chat is named by its own id (cht-1a2b3c4d), which it has before its first
session.`

func newSessionListCommand(a *app) *cobra.Command {
	var group string
	cmd := a.remote("list", "list the chats with groups, and how the session of each stands",
		`Lists the chats with the groups of the home: the group, the identity of the chat's session, whether
an agent is up or at work in it, how many messages wait, how many were given up, and when the last
one came. The sessions of changes are listed by "sallyport change show CHANGE".`,
		"  sallyport session list\n  sallyport session list --group echo --json", exactly(), func(ctx context.Context, c *client.Client, _ []string) error {
			rows, err := client.Call(ctx, c, api.ChatList, api.InGroup{Group: group})
			if err == nil && len(rows) == 0 { // one that is gone has left chats
				err = knows(ctx, a, c, group)
			}
			if err != nil || a.document(rows) {
				return err
			}
			if len(rows) == 0 {
				fmt.Fprintf(a.Out, "nobody has talked with %s yet\n", cmp.Or(group, "a group"))
				return nil
			}
			now := time.Now()
			return table(a.Out, "CHAT\tGROUP\tPLATFORM\tSESSION\tSTATE\tTURNS\tWAITING\tDEAD\tLAST MESSAGE", rows, func(t io.Writer, r api.Chat) {
				fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%d\t%d\t%d\t%s\n", r.ID, r.Group, inert.Line(r.Platform), dash(r.Session),
					chatState(r), r.Turns, r.Waiting, r.Dead, lastMessage(r, now))
			})
		})
	cmd.Flags().StringVar(&group, "group", "", "only chats with this `GROUP`")
	return cmd
}

// knows returns not_found if the home has no such group; "" is any.
func knows(ctx context.Context, a *app, c *client.Client, group string) error {
	if group == "" {
		return nil
	}
	_, err := client.Call(ctx, c, api.GroupShow, api.OfGroup{Group: group, User: a.userHome()})
	return err
}

// chatState says what the session of a chat does.
func chatState(c api.Chat) string {
	switch {
	case c.Working:
		return "working"
	case c.Live:
		return "up"
	}
	return "at rest"
}

func lastMessage(c api.Chat, now time.Time) string {
	if c.Last == nil {
		return "-"
	}
	return ago(*c.Last, now)
}

func newSessionShowCommand(a *app) *cobra.Command {
	return a.remote("show SESSION", "show a chat with a group, or for whom a session works",
		`Shows a chat with a group: its agent, the tree of the group's files that its last session ran, its
turns, the tool that is in flight, and what waits. SESSION is the id of a chat or the identity of a
session. The session of a change is shown with the change.`,
		"  sallyport session show cht-1a2b3c4d\n  sallyport session show echo-1a2b3 --json", oneSession,
		func(ctx context.Context, c *client.Client, words []string) error {
			chat, change, err := whose(ctx, c, words[0])
			if err != nil {
				return err
			}
			if change != "" {
				return showSessionOfChange(ctx, a, c, change, words[0])
			}
			if !a.document(chat) {
				printChat(a, a.sheet(a.Out), chat)
			}
			return nil
		})
}

// oneSession takes the id of a chat or the identity of a session as the only word.
func oneSession(words []string) error {
	if err := exactly("SESSION")(words); err != nil {
		return err
	}
	if id.KindOf(words[0]) == "chat" {
		_, err := id.ParseChat(words[0])
		return err
	}
	if _, err := id.ParseSession(words[0]); err != nil {
		next := "sallyport session list"
		if id.KindOf(words[0]) == "" && api.CheckGroup(words[0]) == nil { // who names a group means its chats
			next += " --group " + words[0]
		}
		return problem.Errorf(problem.Usage, next, "%s", problem.Of(err).Text)
	}
	return nil
}

// whose returns the chat that a name is of; else the change that the session of that identity works for.
func whose(ctx context.Context, c *client.Client, name string) (chat api.Chat, change string, err error) {
	chat, err = client.Call(ctx, c, api.ChatShow, name)
	if problem.KindOf(err) != problem.NotFound || id.KindOf(name) == "chat" {
		return chat, "", err
	}
	w, other := client.Call(ctx, c, api.KeyWanted, api.WhoWants{Of: name})
	if other != nil || w.Change == "" {
		return chat, "", err
	}
	return chat, w.Change, nil
}

func showSessionOfChange(ctx context.Context, a *app, c *client.Client, change, name string) error {
	d, err := client.Call(ctx, c, api.ChangeShow, change)
	if err != nil {
		return err
	}
	at := slices.IndexFunc(d.Sessions, func(s api.Session) bool { return s.ID == name })
	if at >= 0 && a.document(d.Sessions[at]) {
		return nil
	}
	s := a.sheet(a.Out)
	s.line("%s works for the change %s: %s", s.bold(name), change, wish(d.Change))
	s.line("  look:     %s", a.command("sallyport change show "+change))
	return nil
}

// printChat shows a chat.
func printChat(a *app, s sheet, c api.Chat) {
	s.line("%s  with %s, %s", s.bold(c.ID), c.Group, chatState(c))
	row := func(what, text string) { s.rows(fmt.Sprintf("  %-9s ", what), strings.Repeat(" ", 12), text) }
	row("platform", inert.Line(c.Platform))
	if c.Session != "" {
		row("session", c.Session+", agent "+inert.Line(c.Agent))
	}
	if c.Tree != "" {
		row("runs", "tree "+c.Tree)
	}
	row("turns", fmt.Sprint(c.Turns))
	if c.Tool != nil {
		row("tool", strings.TrimPrefix(toolWords(c.Tool, s.now), ", tool "))
	}
	row("messages", fmt.Sprintf("%d waiting, %d given up", c.Waiting, c.Dead))
	row("last", lastMessage(c, s.now))
	s.line("  talk:     %s", a.command("sallyport chat "+c.Group))
	if c.Session != "" {
		s.line("  log:      %s", a.command("sallyport session log "+c.Session))
	}
	if c.Dead > 0 {
		s.line("  dead:     %s", a.command("sallyport message list --group "+c.Group+" --status dead"))
	}
}

func newSessionLogCommand(a *app) *cobra.Command {
	return a.remote("log SESSION", "show what the agent of a session printed",
		`Shows the transcript of a session: what its agent printed, without secrets. A row of the agent's
begins with |, one of sallyport's own with [sallyport]. At a terminal it opens in your pager. It
works for the sessions of groups and of changes. With --json each recorded line is one JSON object.`,
		"  sallyport session log echo-1a2b3\n  sallyport session log cht-1a2b3c4d --json", oneSession,
		func(ctx context.Context, c *client.Client, words []string) error {
			_, change, err := whose(ctx, c, words[0])
			if err != nil {
				return err
			}
			return a.transcript(ctx, func(w io.Writer) error {
				if change != "" {
					return client.Copy(ctx, c, api.ChangeTranscript, api.Transcript{Of: change, Session: words[0]}, w)
				}
				return client.Copy(ctx, c, api.ChatTranscript, words[0], w)
			})
		})
}

func newSessionStopCommand(a *app) *cobra.Command {
	return a.remote("stop SESSION", "end the agent of a chat, and the turn that it is in",
		`Ends the session of a chat with a group. If a turn is under way it ends too: its messages are given
up, which the chat says, and "sallyport message retry MESSAGE" has one tried again. The next
message wakes the agent anew, with all that it remembers.

The session of a change is not ended by this: "sallyport change pause" and "sallyport change
cancel" do that.`,
		"  sallyport session stop cht-1a2b3c4d\n  sallyport session stop echo-1a2b3", oneSession,
		func(ctx context.Context, c *client.Client, words []string) error {
			_, change, err := whose(ctx, c, words[0])
			if err != nil {
				return err
			}
			if change != "" {
				return problem.Errorf(problem.Usage, "sallyport change pause "+change,
					"the session %s works for the change %s, and is not ended by this", words[0], change)
			}
			return tell(ctx, a, c, api.ChatStop, words[0], func(s sheet, done api.Stopped) {
				if done.Stopped {
					s.line("the session of %s ended; the next message wakes the agent again", words[0])
				} else {
					s.line("no session of %s runs", words[0])
				}
			})
		})
}

func newSessionForgetCommand(a *app) *cobra.Command {
	var yes bool
	cmd := a.cmd("forget SESSION", "have a chat go on with a new session that knows nothing of before",
		`Has a chat with a group go on with a new session, and asks first. The home folder that the agent
kept for this chat is removed, with all that its program has stored there, and the agent is not told
of what was said before. Use it where an agent has gone wrong and does so again each time it wakes.

The messages stay for you to read, and so does the transcript: "sallyport session log" with the old
identity shows it. The group's memory stays too: "sallyport group memory clear" removes that. A
session at rest ends. While the agent is at work nothing happens, and the message says so.

Exit status: 0 also when you said no, and nothing was removed.`,
		"  sallyport session forget cht-1a2b3c4d\n  sallyport session forget echo-1a2b3 --yes", oneSession, func(cmd *cobra.Command, words []string) error {
			if !yes && !a.canAsk() {
				return problem.Errorf(problem.Usage, "sallyport session forget "+words[0]+" --yes",
					"nobody can be asked here whether the session of %s may be forgotten: say --yes", words[0])
			}
			c, err := a.connect(cmd.Context())
			if err != nil {
				return err
			}
			chat, change, err := whose(cmd.Context(), c, words[0])
			if err != nil {
				return err
			}
			if change != "" {
				return problem.Errorf(problem.Usage, "sallyport change redo "+change,
					"the session %s works for the change %s, which can be made anew instead", words[0], change)
			}
			if !yes && chat.Session != "" && !a.sure(fmt.Sprintf("remove all that the agent of %s knows of the chat %s?", chat.Group, chat.ID)) {
				a.sheet(a.Out).line("nothing was removed")
				return nil
			}
			return tell(cmd.Context(), a, c, api.ChatForget, words[0], func(s sheet, done api.Forgotten) {
				if done.Session == "" {
					s.line("no session has run for %s: the next message begins one", done.Chat)
					return
				}
				s.line("%s is forgotten; the next message begins a new session", done.Session)
			})
		})
	cmd.Flags().BoolVar(&yes, "yes", false, "remove without asking")
	return cmd
}

// toolWords say which tool is in flight and how long; "" if none is.
func toolWords(t *api.InFlight, now time.Time) string {
	if t == nil {
		return ""
	}
	text := ", tool " + inert.Line(t.Name)
	if t.Title != "" && t.Title != t.Name {
		text += " (" + inert.Line(clip(t.Title, 40)) + ")"
	}
	text += " " + duration(max(now.Sub(t.Started), 0).Truncate(time.Second))
	if t.DeclaredMS > 0 {
		text += " of " + duration(time.Duration(t.DeclaredMS)*time.Millisecond)
	}
	return text
}
