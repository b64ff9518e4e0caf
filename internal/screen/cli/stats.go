package cli

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"sallyport/internal/base/inert"
	"sallyport/internal/base/problem"
	"sallyport/internal/door/api"
	"sallyport/internal/door/client"
)

func newStatsCommand(a *app) *cobra.Command {
	var prometheus bool
	cmd := a.cmd("stats [CHANGE]", "show how long things take, what is over its limit, and what models used",
		`Shows what the daemon has measured since it started. First come the alerts: what is over its limit.
Then, for each thing that is measured: p50, p95 and p99 (half, 95 % and 99 % of them took at most so
long), the longest, the target and the limit. Then how often things happened, what is held on disk
and in memory, and what models used.

With CHANGE the figures of that change follow; they are kept for the last 256 changes. A daemon that
ends forgets its figures, but not what models used. --prometheus writes the figures as a scraper
reads them; docs/metrics.md explains each.`,
		"  sallyport stats\n  sallyport stats chg-1a2b3c4d\n  sallyport stats --json\n  sallyport stats --prometheus",
		func(words []string) error {
			if len(words) > 1 {
				return fmt.Errorf("%q is one word too many", words[1])
			}
			return nil
		}, func(cmd *cobra.Command, words []string) error {
			change := ""
			if len(words) > 0 {
				whole, err := wholeChange(cmd.Context(), a, words[0])
				if err != nil {
					return err
				}
				change = whole
			}
			if prometheus && (change != "" || a.json) {
				return problem.Errorf(problem.Usage, "sallyport stats --prometheus",
					"--prometheus goes with neither CHANGE nor --json: a scrape names no change")
			}
			c, err := a.connect(cmd.Context())
			if err != nil {
				return err
			}
			if prometheus {
				return client.Copy(cmd.Context(), c, api.DaemonMetrics, api.Nothing{}, a.Out)
			}
			return tell(cmd.Context(), a, c, api.StatsShow, api.OfChange{Change: change}, printStats)
		})
	cmd.Flags().BoolVar(&prometheus, "prometheus", false, "write the figures in Prometheus text form")
	return cmd
}

// printStats shows alerts first, then measures, counts and what is held.
func printStats(s sheet, v api.Stats) {
	for _, a := range v.Alerts {
		s.line("%s %s: %s  %s", s.red("ALERT"), inert.Line(a.Name), inert.Line(a.Text), s.dim("for "+duration(time.Duration(a.LastedMS)*time.Millisecond)))
	}
	if len(v.Alerts) == 0 {
		s.line("no alert")
	}
	s.line("")
	s.line("since this daemon started (sallyport daemon status):")
	s.line("%-12s %8s %9s %9s %9s %9s %9s %9s  %s", "measure", "count", "p50", "p95", "p99", "max", "target", "at most", "verdict")
	for _, m := range v.Measures {
		s.line("%-12s %8d %9s %9s %9s %9s %9s %9s  %s", inert.Line(m.Name), m.Count, took(m, m.P50MS), took(m, m.P95MS), took(m, m.P99MS), took(m, m.MaxMS),
			promised(m.TargetMS), promised(m.MaximumMS), verdictWord(s, m.Verdict))
	}
	s.line("")
	for _, c := range v.Counts {
		s.line("%-20s %8d", inert.Line(c.Name), c.Count)
	}
	s.line("sessions: %d running, %d waiting for a place", v.Running, v.Waiting)
	s.line("held: %s on disk by all changes, %s of memory by the daemon, %s, %s", size(v.UpperBytes), size(v.ResidentBytes),
		count(v.Descriptors, "descriptor"), count(v.QueueDepth, "waiting event"))
	printSpending(s, v.Spending)
	if v.Change != nil {
		printFigures(s, *v.Change)
	}
}

func printFigures(s sheet, f api.Figures) {
	s.line("")
	s.line("%s", s.bold(inert.Line(f.Change)))
	s.line("  checkpoints  %d valid, %d invalid, %d skipped, %d not taken; the last took %s, the longest %s", f.Valid, f.Invalid,
		f.Skipped, f.Failed, milliseconds(f.LastMS), milliseconds(f.LongestMS))
	s.line("  pauses       %d, of them %d failed", f.Pauses, f.PausesFailed)
	s.line("  reverts      %d", f.Reverts)
	s.line("  events       %d, %d waiting; the longest took %s", f.Events, f.QueueDepth, milliseconds(f.EventLongestMS))
	s.line("  on disk      %s, at most %s", size(f.UpperBytes), size(f.UpperMaxBytes))
	s.line("  watching it  %s of memory", size(f.MemoryBytes))
}

// verdictWord colours the word for how a measure does.
func verdictWord(s sheet, word string) string {
	switch word {
	case "on target":
		return s.green(word)
	case "slow":
		return s.yellow(word)
	case "over maximum":
		return s.red(word)
	}
	return inert.Line(word)
}

// took shows a figure of a measure; nothing where nothing was measured.
func took(m api.Measure, ms float64) string {
	if m.Window == 0 {
		return "-"
	}
	return milliseconds(ms)
}

func promised(ms float64) string {
	if ms == 0 {
		return "-"
	}
	return milliseconds(ms)
}

// milliseconds shows a length of time with three digits.
func milliseconds(ms float64) string {
	if ms >= 1000 {
		return fmt.Sprintf("%.3gs", ms/1000)
	}
	return fmt.Sprintf("%.3gms", ms)
}
