package cli

import (
	"context"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"sallyport/internal/base/inert"
	"sallyport/internal/base/problem"
	"sallyport/internal/door/api"
	"sallyport/internal/door/client"
)

const channelLong = `A channel is one account of the assistant on a platform: in an IRC network, or as a bot of Telegram,
Slack, Discord or Matrix. What people say there reaches the groups that are wired to the place
("sallyport wiring list"). docs/channels/ tells how to make the account, platform by platform.`

// platformNames are offered for --platform; the daemon knows what there is.
var platformNames = []string{"discord", "irc", "matrix", "slack", "telegram"}

// connectWait is how long a new channel is waited for, and how often it is asked how it stands.
const (
	connectWait  = 15 * time.Second
	connectEvery = 200 * time.Millisecond
)

func newChannelAddCommand(a *app) *cobra.Command {
	in := api.NewChannel{Settings: map[string]string{}}
	var settings []string
	var wait time.Duration
	cmd := a.remote("add NAME --platform PLATFORM", "add a channel, and say whether it connects",
		`Adds the channel NAME and waits for its first session. NAME is yours to choose; it names the channel
in every list. --set says what the platform has to know; a setting that is missing or wrong is named
with what it is for. --credential says which file holds the token or password: a file of yours alone
(chmod 600), which is read anew at each connect and shown nowhere.

  irc       --set server=HOST --set nick=NICK, and as you need them channels=#a,#b account=NAME
            tls=no certificate=SHA256 pace=2s; the credential is the account's password
  telegram  the credential is the bot's token
  slack     the credential is two lines: the app-level token and the bot's token
  discord   the credential is the bot's token
  matrix    --set server=https://HOST; the credential is the account's access token

A channel that does not connect stays added and is tried again; a file or a right that you mend
counts at the next try.

Exit status: 0 connected, 1 added and not connected, 2 the command line is wrong, 4 refused.`,
		`  sallyport channel add libera --platform irc --set server=irc.libera.chat --set nick=ada --set channels=#team
  sallyport channel add tg --platform telegram --credential file:/home/me/telegram.token`, takes(api.CheckChannel, "NAME"),
		func(ctx context.Context, c *client.Client, words []string) error {
			in.Name = words[0]
			if err := completeChannel(a, &in, settings); err != nil {
				return err
			}
			ch, err := client.Call(ctx, c, api.ChannelAdd, in)
			if err != nil {
				return err
			}
			if !a.json && onTerminal(a.Err) {
				fmt.Fprintf(a.Err, "connecting to %s; this may take some seconds\n", inert.Line(ch.Platform))
			}
			if ch, err = a.awaitChannel(ctx, c, ch, wait); err != nil {
				return err
			}
			return reportChannel(a, ch)
		})
	cmd.Flags().StringVar(&in.Platform, "platform", "", "which platform it is on: `PLATFORM`, "+strings.Join(platformNames, ", "))
	cmd.Flags().StringArrayVar(&settings, "set", nil, "a setting of the platform: `KEY=VALUE`; may be given again")
	cmd.Flags().StringVar(&in.Credential, "credential", "", "where the token or password is: `file:PATH`")
	cmd.Flags().DurationVar(&wait, "wait", connectWait, "wait so long for the first session: `DURATION`")
	_ = cmd.RegisterFlagCompletionFunc("platform", cobra.FixedCompletions(platformNames, cobra.ShellCompDirectiveNoFileComp)) // it is registered once
	return cmd
}

// completeChannel puts together what a person says of a channel in several flags.
func completeChannel(a *app, in *api.NewChannel, settings []string) error {
	if in.Platform == "" {
		return problem.Errorf(problem.Usage, "sallyport channel add --help", "on which platform? give --platform, one of %s", strings.Join(platformNames, ", "))
	}
	for _, s := range settings {
		key, value, ok := strings.Cut(s, "=")
		if _, twice := in.Settings[key]; !ok || key == "" || twice {
			return problem.Errorf(problem.Usage, "sallyport channel add --help", "--set %s: each setting is KEY=VALUE, once", inert.Short(s, 60))
		}
		in.Settings[key] = value
	}
	if in.Credential == "" {
		return nil
	}
	path, ok := strings.CutPrefix(in.Credential, "file:")
	if !ok || path == "" {
		return problem.Errorf(problem.Usage, "sallyport channel add --help", "--credential says where the token or password is, and not what it is: file:PATH")
	}
	if !filepath.IsAbs(path) {
		dir, err := a.Dir()
		if err != nil {
			return problem.Errorf(problem.Unavailable, "cd", "find out where you stand: %w", err)
		}
		path = filepath.Join(dir, path)
	}
	in.Credential = "file:" + path
	return nil
}

// awaitChannel asks how a channel stands until its first session is there, or could not be made, or the wait is over.
func (a *app) awaitChannel(ctx context.Context, c *client.Client, ch api.Channel, wait time.Duration) (api.Channel, error) {
	over := time.After(wait)
	for ch.Status == api.ChannelConnecting {
		select {
		case <-ctx.Done():
			return ch, ctx.Err()
		case <-over:
			return ch, nil
		case <-time.After(min(connectEvery, wait)):
		}
		var err error
		if ch, err = client.Call(ctx, c, api.ChannelShow, ch.Name); err != nil {
			return ch, err
		}
	}
	return ch, nil
}

// reportChannel says whether a channel that was added has connected.
func reportChannel(a *app, ch api.Channel) error {
	code := exitDone
	if ch.Status != api.ChannelConnected {
		code = exitError
	}
	if a.document(ch) {
		return ended(code)
	}
	s := a.sheet(a.Out)
	switch ch.Status {
	case api.ChannelConnected:
		s.line("channel %s %s as %s", ch.Name, s.green("connected"), inert.Line(ch.Account))
		s.line("who hears what there: %s", a.command("sallyport wiring list --channel "+ch.Name))
	case api.ChannelAway:
		s.line("channel %s is added, and %s: %s", ch.Name, s.red("not connected"), inert.Line(ch.Reason))
		s.line("it is tried again; next: %s", a.command("sallyport channel show "+ch.Name))
	default:
		s.line("channel %s is added, and %s; next: %s", ch.Name, s.yellow("still connecting"), a.command("sallyport channel show "+ch.Name))
	}
	return ended(code)
}

func newChannelListCommand(a *app) *cobra.Command {
	return a.remote("list", "list the channels of the home, and how each stands",
		`Lists the channels: on which platform each is, as whom it is connected or why it is not, and how
many messages wait to leave by it, have left, and will never arrive. A channel that is not connected
is tried again by itself, after a while that grows to two minutes. "sallyport channel show CHANNEL"
says more of one, and what did not arrive.`,
		"  sallyport channel list\n  sallyport channel list --json", exactly(), func(ctx context.Context, c *client.Client, _ []string) error {
			all, err := client.Call(ctx, c, api.ChannelList, api.Nothing{})
			if err != nil || a.document(all) {
				return err
			}
			if len(all) == 0 {
				a.sheet(a.Out).line("there is no channel; one is added by: %s", a.command("sallyport channel add --help"))
				return nil
			}
			return table(a.Out, "CHANNEL\tPLATFORM\tSTANDS\tWAITING\tSENT\tDEAD", all, func(t io.Writer, ch api.Channel) {
				fmt.Fprintf(t, "%s\t%s\t%s\t%d\t%d\t%d\n", ch.Name, ch.Platform, clip(channelStands(ch), 70), ch.Waiting, ch.Sent, ch.Dead)
			})
		})
}

// channelStands says in one line how a channel stands.
func channelStands(ch api.Channel) string {
	switch ch.Status {
	case api.ChannelConnected:
		return "connected as " + inert.Line(ch.Account)
	case api.ChannelAway:
		return "not connected: " + inert.Line(ch.Reason)
	}
	return inert.Line(ch.Status)
}

func newChannelShowCommand(a *app) *cobra.Command {
	return a.remote("show CHANNEL", "show how a channel stands, and what did not arrive",
		`Shows a channel: as whom it is connected and since when, or why it is not. Below stand its settings,
where its credential is, and how many messages wait to leave by it, have left and will never arrive,
with why the newest of those will not. A platform that does not keep what is said while nobody
listens has lost it then: the last time that was is shown too.`,
		"  sallyport channel show libera\n  sallyport channel show libera --json", oneChannel,
		func(ctx context.Context, c *client.Client, words []string) error {
			return tell(ctx, a, c, api.ChannelShow, words[0], printChannel)
		})
}

// printChannel shows all of a channel.
func printChannel(s sheet, ch api.Channel) {
	row := func(what, text string) { s.rows(fmt.Sprintf("  %-11s ", what), strings.Repeat(" ", 14), text) }
	stands := channelStands(ch)
	if ch.Status == api.ChannelConnected {
		stands = s.green(stands)
	} else {
		stands = s.yellow(stands)
	}
	s.line("%s  on %s, %s", s.bold(ch.Name), ch.Platform, stands)
	if !ch.Since.IsZero() {
		row("since", clock(ch.Since))
	}
	for _, key := range slices.Sorted(maps.Keys(ch.Settings)) {
		row("setting", inert.Line(key+"="+ch.Settings[key]))
	}
	if ch.Credential != "" {
		row("credential", inert.Line(ch.Credential))
	}
	if ch.Lost != nil {
		where := ""
		if ch.LostIn != "" {
			where = " in " + inert.Line(ch.LostIn)
		}
		row("lost", fmt.Sprintf("what was said%s while nobody listened, last at %s: the platform does not keep it", where, clock(*ch.Lost)))
	}
	row("messages", fmt.Sprintf("%d wait to leave, %d have left, %d will never arrive", ch.Waiting, ch.Sent, ch.Dead))
	for _, d := range ch.Newest {
		ended := ""
		if d.Ended != nil {
			ended = " at " + clock(*d.Ended)
		}
		row("dead", fmt.Sprintf("%s to %s%s: %s", d.Message, d.Conversation, ended, inert.Line(d.Reason)))
	}
}

func newChannelRemoveCommand(a *app) *cobra.Command {
	var yes bool
	cmd := a.cmd("remove CHANNEL", "end a channel, with who is known there and who hears what there",
		`Ends the session of a channel and removes it, and asks first. With it go the links of its accounts
to people, the wirings of its conversations, what you are asked about its strangers and
conversations, and the messages that wait to leave by it. What was said there stays. The file of its
credential is yours and stays as it is.

Exit status: 0 also when you said no, and nothing was removed.`,
		"  sallyport channel remove libera\n  sallyport channel remove libera --yes", oneChannel, func(cmd *cobra.Command, words []string) error {
			if !yes && !a.canAsk() {
				return problem.Errorf(problem.Usage, "sallyport channel remove "+words[0]+" --yes",
					"nobody can be asked here whether the channel %s may go: say --yes", words[0])
			}
			c, err := a.connect(cmd.Context())
			if err != nil {
				return err
			}
			if !yes && !a.sure(fmt.Sprintf("remove the channel %s, with the links of its accounts and its wirings?", words[0])) {
				a.sheet(a.Out).line("nothing was removed")
				return nil
			}
			return tell(cmd.Context(), a, c, api.ChannelRemove, words[0], func(s sheet, gone api.Removed) {
				s.line("channel %s is removed, with %s; messages that will not be sent: %d", words[0], count(gone.Wirings, "wiring"), gone.Waiting)
			})
		})
	cmd.Flags().BoolVar(&yes, "yes", false, "remove without asking")
	return cmd
}
