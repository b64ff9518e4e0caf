package metric

import (
	"fmt"
	"time"

	"sallyport/internal/base/id"
	"sallyport/internal/rule/budget"
)

// view is all that a rule sees: a copy, newest samples first.
type view struct {
	recent         [measures][]time.Duration // at most recentMax
	failed, judged int                       // of the last verdictsMax checkpoints
	totals
	process Process
	spent   Shares // of the budgets of all changes together
}

// finding is what a rule says of a view.
type finding struct {
	fires  bool
	figure float64   // in the rule's unit
	change id.Change // the one it is about; "" = the host as a whole
}

// rule says when an alert is raised. judge is pure: it decides by the view, and by whether
// the alert is raised already, for it takes less to keep one than to raise it.
type rule struct {
	Name  string
	Unit  string // seconds, percent, bytes, events, descriptors
	Limit float64
	judge func(v view, raised bool) finding
	say   string // of figure and limit, each as a person reads them
}

const (
	slowRun    = 3    // checkpoints in a row that are too slow (SV-104)
	judgedMin  = 20   // verdicts below which a rate says nothing
	failedMax  = 10.0 // percent (SV-104)
	failedCalm = 8.0  // percent from where it is calm again
	fullMax    = 0.8  // of a limit (SV-104)
	fullCalm   = 0.7  // of a limit, from where it is calm again
	queueCalm  = 800
)

// rules is every alert there is. A name is stable: scripts and dashboards know it.
var rules = allRules()

func allRules() []rule {
	out := []rule{
		{"checkpoint_slow_repeatedly", "seconds", seconds(2 * time.Second), slowRepeatedly, "the last checkpoints took %s and more, each over %s"},
		{"validation_failures", "percent", failedMax, manyFailures, "%s of the last checkpoints are not valid; the limit is %s"},
		full("disk_change", "bytes", diskChangeBytes, "one change takes %s of the disk; the alert is at %s",
			func(v view) (float64, id.Change) { return float64(v.upperMax), v.upperOf }),
		full("disk_all", "bytes", diskAllBytes, "all changes take %s of the disk; the alert is at %s",
			func(v view) (float64, id.Change) { return float64(v.upper), "" }),
		full("memory_change", "bytes", memoryChangeBytes, "watching one change takes %s of memory; the alert is at %s",
			func(v view) (float64, id.Change) { return float64(v.memoryMax), v.memoryMost }),
		full("memory_all", "bytes", memoryAllBytes, "the daemon takes %s of memory; the alert is at %s",
			func(v view) (float64, id.Change) { return float64(max(v.process.ResidentBytes, v.memory)), "" }),
		full("descriptors_all", "descriptors", descriptorsAll, "the daemon holds %s; the alert is at %s",
			func(v view) (float64, id.Change) { return float64(v.process.Descriptors), "" }),
		{"event_queue", "events", queueMax, longQueue, "%s wait to be looked at; the limit is %s"},
	}
	for i, name := range budget.Names {
		out = append(out, usedUp(i, name))
	}
	for i, st := range standards {
		if st.maximum > 0 {
			out = append(out, overMaximum(i, st))
		}
	}
	return out
}

func seconds(d time.Duration) float64 { return d.Seconds() }

// overMaximum raises at the first sample over the maximum of SV-100: a miss alerts, never
// skips. It is calm when the last recentMax are within.
func overMaximum(i int, st standard) rule {
	return rule{
		Name: string(st.Measure) + "_over_maximum", Unit: "seconds", Limit: seconds(st.maximum),
		say: "measure " + string(st.Measure) + ": %s, and the maximum is %s",
		judge: func(v view, raised bool) finding {
			for n, d := range v.recent[i] {
				if d > st.maximum && (n == 0 || raised) {
					return finding{fires: true, figure: seconds(d)}
				}
			}
			return finding{}
		},
	}
}

// slowRepeatedly raises at slowRun checkpoints in a row over 2 s; it is calm after as many within.
func slowRepeatedly(v view, raised bool) finding {
	last := v.recent[0]
	last = last[:min(len(last), slowRun)]
	slow, least := 0, 0.0
	for _, d := range last {
		if d > 2*time.Second {
			if slow++; least == 0 || seconds(d) < least {
				least = seconds(d)
			}
		}
	}
	return finding{fires: slow == slowRun || raised && slow > 0, figure: least}
}

// manyFailures raises when more than failedMax percent of at least judgedMin checkpoints failed.
func manyFailures(v view, raised bool) finding {
	if v.judged < judgedMin {
		return finding{}
	}
	percent := 100 * float64(v.failed) / float64(v.judged)
	return finding{fires: percent > failedMax || raised && percent > failedCalm, figure: percent}
}

func longQueue(v view, raised bool) finding {
	return finding{fires: v.queue > queueMax || raised && v.queue > queueCalm, figure: float64(v.queue)}
}

// full raises over fullMax of a limit and is calm at fullCalm of it.
func full(name, unit string, limit int64, say string, of func(v view) (float64, id.Change)) rule {
	return rule{Name: name, Unit: unit, Limit: fullMax * float64(limit), say: say, judge: func(v view, raised bool) finding {
		figure, change := of(v)
		return finding{fires: figure > fullMax*float64(limit) || raised && figure > fullCalm*float64(limit), figure: figure, change: change}
	}}
}

// text is what a person reads of a figure that fired.
func (r rule) text(f finding) string {
	s := fmt.Sprintf(r.say, quantity(f.figure, r.Unit), quantity(r.Limit, r.Unit))
	if f.change != "" {
		s += " (" + string(f.change) + ")"
	}
	return s
}

// digits shows a figure with three digits that count, and one of a thousand or more whole.
func digits(v float64) string {
	if v >= 999.5 {
		return fmt.Sprintf("%.0f", v)
	}
	return fmt.Sprintf("%.3g", v)
}

// quantity shows a figure with its unit.
func quantity(v float64, unit string) string {
	switch unit {
	case "seconds":
		if v < 1 {
			return fmt.Sprintf("%.4gms", v*1000)
		}
		return digits(v) + "s"
	case "percent":
		return digits(v) + "%"
	case "bytes":
		return fmt.Sprintf("%.0f MiB", v/(1<<20))
	}
	return fmt.Sprintf("%.0f %s", v, unit)
}
