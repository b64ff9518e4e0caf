package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"sallyport/internal/base/inert"
	"sallyport/internal/base/problem"
	"sallyport/internal/door/api"
	"sallyport/internal/door/client"
)

// overview is what status answers in JSON.
type overview struct {
	Daemon  api.Daemon   `json:"daemon"`
	Waiting []api.Change `json:"waiting"`
	Working []api.Change `json:"working"`
	Recent  []api.Change `json:"recent"`
	Groups  []api.Group  `json:"groups"`
	Chats   []api.Chat   `json:"chats"`
	Drops   []api.Drop   `json:"drops"`
	// Tasks are those that groups have at a time, by when they are due.
	Tasks    []api.Message `json:"tasks"`
	Channels []api.Channel `json:"channels"`
	// Admissions are the questions about strangers and places that wait.
	Admissions []api.Approval `json:"admissions"`
	// GroupsProblem is why the groups could not be read.
	GroupsProblem string `json:"groups_problem,omitempty"`
}

const recentMax = 10

func newStatusCommand(a *app) *cobra.Command {
	var disk bool
	cmd := a.remoteBy(a.connectAny, "status", "show what waits for you, what is being worked on, and what to do next",
		`Shows what waits for you, what is being worked on, and what ended last. A change that is stuck is
named with what ends that. If something waits for you, the last line is the command to run next;
questions about strangers and places on a platform are counted with it. Above stand the home, its
daemon, how the sandbox confines programs, files of the home that do not load, the groups with what
of them does not run, their sessions, the messages to them that wait or were given up, the tasks
that they have at a time, the channels that are not connected or had messages in the last day that
will never arrive, and what is over its limit.

--disk shows instead what the home has on disk, by kind, and how much of it "sallyport gc" would
free.`,
		"  sallyport status\n  sallyport status --json\n  sallyport status --disk", exactly(), func(ctx context.Context, c *client.Client, _ []string) error {
			if disk {
				return tell(ctx, a, c, api.StorageShow, api.Nothing{}, printStored)
			}
			if other := c.Other(); other != nil { // of what it answers, all there is
				return errors.Join(printDaemon(ctx, a, c), other)
			}
			o, err := a.readOverview(ctx, c)
			if err != nil {
				return err
			}
			if !a.document(o) {
				printOverview(a, a.sheet(a.Out), o)
			}
			return nil
		})
	cmd.Flags().BoolVar(&disk, "disk", false, "show instead what the home has on disk, and what gc would free")
	return cmd
}

// readOverview asks the daemon for what status shows.
func (a *app) readOverview(ctx context.Context, c *client.Client) (overview, error) {
	var err error
	d := after(ctx, c, &err, api.DaemonShow, api.Nothing{})
	rows := after(ctx, c, &err, api.ChangeList, api.Filter{Limit: 200})
	chats := after(ctx, c, &err, api.ChatList, api.InGroup{})
	drops := after(ctx, c, &err, api.MessageDrops, api.Nothing{})
	tasks := after(ctx, c, &err, api.ScheduleList, api.Nothing{})
	channels := after(ctx, c, &err, api.ChannelList, api.Nothing{})
	asked := after(ctx, c, &err, api.ApprovalList, api.Waiting{Pending: true})
	if err != nil {
		return overview{}, err
	}

	o := overview{
		Admissions: admissions(asked), Daemon: d, Waiting: []api.Change{}, Working: []api.Change{}, Recent: []api.Change{}, Groups: []api.Group{},
		Chats: chats, Drops: drops, Tasks: tasks, Channels: channels,
	}
	if all, err := client.Call(ctx, c, api.GroupList, api.OfUser{User: a.userHome()}); err == nil {
		o.Groups = all.Groups
	} else {
		o.GroupsProblem = problem.Of(err).Text // what else there is to say is said all the same
	}
	for _, r := range rows {
		switch {
		case waitsForPerson(r):
			o.Waiting = append(o.Waiting, r)
		case !api.Final(r.State):
			o.Working = append(o.Working, r)
		case len(o.Recent) < recentMax:
			o.Recent = append(o.Recent, r)
		}
	}
	return o, nil
}

// after asks the daemon if all that was asked before it was answered.
func after[In, Out any](ctx context.Context, c *client.Client, failed *error, v api.Verb[In, Out], in In) (out Out) {
	if *failed == nil {
		out, *failed = client.Call(ctx, c, v, in)
	}
	return out
}

// restarted says how often a keeper had to start another daemon; "" if never.
func restarted(s sheet, k *api.Keeper) string {
	if k.Restarts == 0 {
		return ""
	}
	return s.yellow(fmt.Sprintf("; the daemon was started again %s, last %s ago: %s", count(k.Restarts, "time"),
		duration(s.now.Sub(k.At).Truncate(time.Second)), inert.Line(k.Why)))
}

// holds says against whom a keeper holds a change of the host (SM-903).
func holds(k *api.Keeper) string {
	if k.Against == api.AgainstHostile {
		return "hostile versions"
	}
	return "faulty versions, not hostile ones"
}

// printHostChange shows the change of the host that is under way, and until when.
func printHostChange(a *app, s sheet, h *api.HostChange) {
	switch {
	case h == nil:
		return
	case h.Problem != "":
		s.line("%s %s", s.red("host    its record cannot be read:"), inert.Line(h.Problem))
		return
	}
	what := map[string]string{
		"armed": "lands", "handed": "starts", "ready 1": "starts for the second time", "ready 2": "runs, and is about to ask",
		"asked":     "asks whether it is to stay",
		"confirmed": "was confirmed, and is being finished", "back": "goes back: " + inert.Line(h.Why),
	}[h.Step]
	until := ""
	if h.Step != "confirmed" && h.Step != "back" {
		until = fmt.Sprintf("; %s left, until %s", duration(h.Left().Truncate(time.Second)), h.Due.Local().Format("15:04:05"))
	}
	release := ""
	if h.New != h.Old {
		release = fmt.Sprintf(", release %.12s in the place of %.12s", h.New, h.Old)
	}
	s.line("%s %s %s%s%s", s.yellow("host   "), h.Change, what, release, until)
	if h.Step == "asked" {
		s.line("         to keep it: %s", a.command("sallyport confirm "+h.Change+" --code CODE"))
	}
}

func printOverview(a *app, s sheet, o overview) {
	d := o.Daemon
	s.line("home    %s", inert.Path(d.Home))
	s.line("daemon  pid %d, build %s, up %s", d.PID, d.Build, duration(s.now.Sub(d.Started).Truncate(time.Second)))
	if k := d.Keeper; k != nil {
		s.line("keeper  pid %d, release %.12s%s", k.PID, k.Release, restarted(s, k))
		s.line("        a change of the host is guarded against %s", holds(k))
		s.line("        %s", k.Limits())
	}
	printHostChange(a, s, d.Host)
	if b := d.Sandbox; b.Works {
		s.line("sandbox %s", inert.Line(b.Policy))
	} else if b.Problem != "" {
		s.line("%s %s; see %s", s.red("no sandbox works, and nothing is run:"), inert.Line(b.Problem), a.command("sallyport doctor"))
	}
	if d.Open {
		s.line("%s permissions are off: everybody on a platform may talk with the groups that hear them; see policy.yaml", s.yellow("people "))
	}
	for _, u := range d.Settings {
		s.line("%s %s: %s", s.red("settings"), inert.Line(u.File), inert.Line(unloadedLine(u.Since, s.now, u.Problem, u.InForce)))
		s.line("         to correct it: %s", inert.Line(u.Next))
	}
	printGroups(a, s, o.Groups)
	printMessageCounts(a, s, o.Chats)
	printDrops(s, o.Drops)
	printTasks(a, s, o.Tasks)
	printChannels(a, s, o.Channels)
	if o.GroupsProblem != "" {
		s.line("%s %s; see %s", s.red("groups  cannot be read:"), inert.Line(o.GroupsProblem), a.command("sallyport doctor"))
	}
	if n := len(d.Alerts); n > 0 {
		over := "1 figure over its limit"
		if n > 1 {
			over = count(n, "figure") + " over their limit"
		}
		s.line("%s  %s: %s; see %s", s.red("alerts"), over, inert.Line(d.Alerts[0].Text), a.command("sallyport stats"))
	}
	printWork(a, s, o)
	switch {
	case len(o.Waiting) > 0:
		s.line("")
		s.line("next: %s", inert.Line(a.command(wayOn(o.Waiting[0]))))
	case len(o.Admissions) > 0:
		s.line("")
		s.line("next: %s", a.command(admissionsNext))
	case len(o.Working)+len(o.Recent) == 0:
		s.line("")
		s.line("nothing yet")
		s.line("next: %s", a.command(`sallyport run --request "…" -- COMMAND`))
	}
}

// printWork shows what waits for the person, what is being worked on, and what ended last.
func printWork(a *app, s sheet, o overview) {
	for _, part := range []struct {
		title string
		rows  []api.Change
		asked []api.Approval
	}{{s.yellow("waiting for you"), o.Waiting, o.Admissions}, {s.cyan("being worked on"), o.Working, nil}, {"recent", o.Recent, nil}} {
		if len(part.rows)+len(part.asked) == 0 {
			continue
		}
		s.line("")
		s.line("%s:", part.title)
		for _, c := range part.rows {
			printRow(s, c)
		}
		if n := len(part.asked); n > 0 {
			s.line("  %s about strangers and places; %s", count(n, "question"), a.command(admissionsNext))
		}
	}
}

// admissionsNext shows the questions about strangers and places, and how each is answered.
const admissionsNext = "sallyport approval list"

// admissions are the questions about strangers and places of what waits.
func admissions(asked []api.Approval) []api.Approval {
	all := []api.Approval{}
	for _, q := range asked {
		if q.Kind == "sender" || q.Kind == "channel" {
			all = append(all, q)
		}
	}
	return all
}

// printMessageCounts counts the sessions of groups, and the messages to them that wait and that were given up, if there are any.
func printMessageCounts(a *app, s sheet, chats []api.Chat) {
	live, waiting, dead := 0, 0, 0
	for _, c := range chats {
		waiting, dead = waiting+c.Waiting, dead+c.Dead
		if c.Live {
			live++
		}
	}
	if live > 0 {
		s.line("chats   %s up; %s", count(live, "session"), a.command("sallyport session list"))
	}
	if waiting > 0 {
		s.line("chats   %s waiting; %s", count(waiting, "message"), a.command("sallyport message list --status pending"))
	}
	if dead > 0 {
		s.line("chats   %s; %s", s.red(count(dead, "message")+" given up"), a.command("sallyport message list --status dead"))
	}
}

// printTasks says how many tasks groups have at a time, when the first is due, and how many were given up.
func printTasks(a *app, s sheet, tasks []api.Message) {
	var first api.Message
	waiting, stopped := 0, 0
	for _, m := range tasks {
		if m.Status == api.MessageDead {
			stopped++
			continue
		}
		if waiting++; waiting == 1 || m.Due.Before(first.Due) {
			first = m
		}
	}
	if waiting > 0 {
		s.line("tasks   %s, the next at %s; %s", count(waiting, "task"), taskClock(first), a.command("sallyport schedule list"))
	}
	if stopped > 0 {
		s.line("tasks   %s; %s", s.red(count(stopped, "task")+" stopped"), a.command("sallyport schedule list"))
	}
}

// printChannels says how many channels are connected, and names those that are not or have given up messages lately.
func printChannels(a *app, s sheet, all []api.Channel) {
	if len(all) == 0 {
		return
	}
	connected := 0
	for _, ch := range all {
		if ch.Status == api.ChannelConnected {
			connected++
		}
	}
	s.line("channels %d of %d connected; %s", connected, len(all), a.command("sallyport channel list"))
	for _, ch := range all {
		next := a.command("sallyport channel show " + ch.Name)
		if ch.Status == api.ChannelAway {
			s.line("        %s: %s: %s; %s", inert.Line(ch.Name), s.red("not connected"), inert.Line(ch.Reason), next)
		}
		if ch.Failed > 0 {
			s.line("        %s: %s; %s", inert.Line(ch.Name), s.red(count(ch.Failed, "message")+" of the last day will never arrive"), next)
		}
	}
}

// printDrops counts what was dropped before it was a message, by reason.
func printDrops(s sheet, drops []api.Drop) {
	all, why := 0, []string{}
	for _, d := range drops {
		all += d.Count
		why = append(why, fmt.Sprintf("%d %s", d.Count, inert.Line(d.Reason)))
	}
	if all > 0 {
		s.rows("chats   ", "        ", fmt.Sprintf("%s dropped in the last 7 days: %s", count(all, "message"), strings.Join(why, ", ")))
	}
}

// printRow shows a change in one line, and why it is where it is in another. Where a terminal would break the line, it goes on in the next.
func printRow(s sheet, c api.Change) {
	const before = 2 + 12 + 2 + len(api.AwaitingApproval) + 2
	what, where := clip(wish(c), 60), fmt.Sprintf("%s in %s, %s", inert.Path(c.Branch), inert.Path(c.Repo), ago(c.Moved, s.now))
	row := fmt.Sprintf("  %s  %s  ", c.ID, paddedState(s, c.State))
	if wide := before + columns(what) + 2 + columns(where); s.terminal && wide > s.width {
		s.line("%s%s", row, clip(what, max(s.width-before, 20)))
		s.line("    %s", s.dim(clip(where, s.width-4)))
	} else {
		s.line("%s%s  %s", row, what, s.dim(where))
	}
	if c.State == api.InTrial && c.Trial != nil {
		s.hung("    ", "    ", trialLine(c))
	} else if c.Reason != "" && (c.Problem != "" || !api.Final(c.State)) {
		s.hung("    ", "    ", inert.Line(c.Reason))
	}
	if c.WayOut != "" {
		s.line("    %s; to end that: %s", s.red("stuck"), c.WayOut)
	}
}

// paddedState is a state in its colour, as wide as the longest.
func paddedState(s sheet, state string) string {
	return s.state(state) + fmt.Sprintf("%*s", max(len(api.AwaitingApproval)-len(state), 0), "")
}
