package cli

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"sallyport/internal/base/id"
	"sallyport/internal/base/inert"
	"sallyport/internal/base/problem"
	"sallyport/internal/base/zone"
	"sallyport/internal/door/api"
	"sallyport/internal/door/client"
)

const scheduleLong = `A schedule has a group do something later: at its time a task wakes the group's agent with a text,
in your chat with the group, and what the agent says of it comes to that chat. Times are by the
clock of the home's zone, which "sallyport doctor" names. An assistant can make schedules itself
when you ask it to.`

func newScheduleListCommand(a *app) *cobra.Command {
	return a.remote("list", "list the tasks that wait for their time",
		`Lists the tasks that wait, of all groups: when each is due next by the home's clock, how it
repeats, and what the group is told then. A task that repeats stands here with its next time. One
that was not done in all its tries is stopped: it stands here with why, and with the command that
has it done and come again. "sallyport schedule remove TASK" takes one away.`,
		"  sallyport schedule list\n  sallyport schedule list --json", exactly(), func(ctx context.Context, c *client.Client, _ []string) error {
			rows, err := client.Call(ctx, c, api.ScheduleList, api.Nothing{})
			if err != nil || a.document(rows) {
				return err
			}
			if len(rows) == 0 {
				fmt.Fprintln(a.Out, "nothing is scheduled")
				return nil
			}
			groups, err := groupsOfChats(ctx, c)
			if err != nil {
				return err
			}
			err = table(a.Out, "TASK\tGROUP\tDUE\tREPEATS\tTEXT", rows, func(t io.Writer, m api.Message) {
				due := taskClock(m)
				if m.Status == api.MessageDead {
					due = "stopped"
				}
				fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\n", m.Task, groups[m.Chat], due, dash(m.Repeat), clip(inert.Line(firstLine(m.Text)), 60))
			})
			if err != nil {
				return err
			}
			printStopped(a, rows)
			return nil
		})
}

// taskClock is what the clock of a task's home reads when it is due; its zone is named where this terminal's clock reads something else.
func taskClock(m api.Message) string {
	if m.Zone == "" {
		return clock(m.Due)
	}
	there := m.Due.In(zone.Load(m.Zone))
	text := there.Format(clockForm)
	if text != clock(m.Due) {
		text += " (" + inert.Line(m.Zone) + ")"
	}
	return text
}

// printStopped says of each task that was given up why, and how it comes again.
func printStopped(a *app, rows []api.Message) {
	s := a.sheet(a.Out)
	for _, m := range rows {
		if m.Status == api.MessageDead {
			s.line("%s is %s: %s; next: %s", m.Task, s.red("stopped"), inert.Line(m.Reason), a.command("sallyport message retry "+m.ID))
		}
	}
}

func newScheduleAddCommand(a *app) *cobra.Command {
	var in api.Plan
	cmd := a.remote("add GROUP TEXT", "have a group do something at a time, once or again and again",
		`Schedules a task: at its time GROUP is told TEXT, in your chat with it. --at alone has it once.
--cron and --every repeat it: by five fields of cron (minute, hour, day, month, weekday) or by a
length of time. With --every, --at is the first time.

Times are by the clock of the home's zone, such as "2026-05-01 09:00"; "sallyport doctor" names the
zone. Where the clock changes, each time of a day has one run. A run that was missed, because
nothing ran, is not made up for more than once.`,
		`  sallyport schedule add echo "Remind me of the meeting" --at "2026-05-01 09:00"
  sallyport schedule add helper "What is new in my inbox?" --cron "0 9 * * *"
  sallyport schedule add helper "Look at the build" --every 24h --at "2026-05-01 18:00"`, takes(api.CheckGroup, "GROUP", "TEXT"),
		func(ctx context.Context, c *client.Client, words []string) error {
			if in.At == "" && in.Cron == "" && in.Interval == "" {
				return problem.Errorf(problem.Usage, "sallyport schedule add --help", "when? give --at TIME, --cron or --every")
			}
			in.Group, in.Text = words[0], words[1]
			return tell(ctx, a, c, api.ScheduleAdd, in, func(s sheet, m api.Message) {
				again := ""
				if m.Repeat != "" {
					again = ", then " + repeats(m.Repeat)
				}
				s.line("%s %s: %s is told at %s%s", m.Task, s.green("scheduled"), words[0], taskClock(m), again)
			})
		})
	cmd.Flags().StringVar(&in.At, "at", "", "when, by the home's clock: `TIME`, such as \"2026-05-01 09:00\"; of what repeats, the first time")
	cmd.Flags().StringVar(&in.Cron, "cron", "", "again and again at the times of this `LINE`, five fields by the home's clock")
	cmd.Flags().StringVar(&in.Interval, "every", "", "again and again after this `DURATION`, such as 90m or 24h")
	cmd.MarkFlagsMutuallyExclusive("cron", "every")
	return cmd
}

// repeats says how a task comes again: by five fields of cron, or after a length of time.
func repeats(spec string) string {
	if strings.Contains(spec, " ") {
		return "at the times of the cron line " + inert.Line(spec)
	}
	return "every " + inert.Line(spec)
}

func newScheduleRemoveCommand(a *app) *cobra.Command {
	return a.remote("remove TASK", "take a task from the schedule",
		`Takes a task that waits from the schedule, with all its later runs. What it has done already stays,
and so do the messages of its runs. "sallyport schedule list" names the tasks.`,
		"  sallyport schedule remove tsk-1a2b3c4d", takes(parses(id.ParseTask), "TASK"), func(ctx context.Context, c *client.Client, words []string) error {
			if err := client.Do(ctx, c, api.ScheduleRemove, words[0]); err != nil {
				return err
			}
			return answer(a, map[string]any{"removed": words[0]}, "%s is not scheduled any more", words[0])
		})
}
