package schedule

import (
	"strings"
	"time"
	"unicode/utf8"

	"sallyport/internal/base/inert"
	"sallyport/internal/base/problem"
	"sallyport/internal/base/zone"
)

// Kind is how a schedule finds its runs.
type Kind string

const (
	Cron     Kind = "cron"
	Interval Kind = "interval"
	Once     Kind = "once"
)

// Schedule wakes the agent of a group with a text.
type Schedule struct {
	Group        string
	Conversation string    // where what the agent says goes
	Kind         Kind      //
	Spec         string    // cron: five fields; interval: a duration, such as 1h30m; once: ""
	Zone         string    // the user's, by its IANA name, as it was when the schedule was made
	NextRun      time.Time // UTC; zero if there is none
	Text         string    // what the agent is told, inert as any message
}

const (
	TextMax     = 16 << 10                  // bytes of a text
	IntervalMin = time.Minute               // as often as a cron line can
	IntervalBad = time.Minute               // the wait for the next run of a row whose interval is none (CH-130)
	ahead       = 10 * 366 * 24 * time.Hour // how far off a run may lie
)

// add tells how to write one.
const add = "sallyport schedule add --help"

// New returns s with its first run, if all of it holds. first is a time by the user's clock, "" if none was given: that of the one
// run, or the earliest that the first of many may have.
func New(s Schedule, first string, now time.Time) (Schedule, error) {
	const list = "sallyport schedule list"
	switch {
	case s.Group == "" || s.Conversation == "":
		return s, problem.Errorf(problem.Usage, list, "a schedule needs a group and a conversation")
	case strings.TrimSpace(s.Text) == "":
		return s, problem.Errorf(problem.Usage, list, "a schedule needs a text: it is all that the agent is told when it is woken")
	case len(s.Text) > TextMax || !utf8.ValidString(s.Text):
		return s, problem.Errorf(problem.Usage, list, "the text of a schedule has %d bytes; it may have %d, in UTF-8", len(s.Text), TextMax)
	}
	loc := zone.Load(s.Zone)
	s.Zone = loc.String()

	var earliest time.Time
	if first != "" {
		var err error
		if earliest, err = zone.Read(first, loc); err != nil {
			return s, problem.Errorf(problem.Usage, add, "%w", err)
		}
		if earliest.Before(now.Truncate(time.Minute)) {
			return s, problem.Errorf(problem.Usage, list, "%s has passed: the home's clock reads %s", zone.Format(earliest, loc), zone.Format(now, loc))
		}
	}
	if err := s.begin(earliest, now); err != nil {
		return s, err
	}

	if s.NextRun.After(now.Add(ahead)) {
		return s, problem.Errorf(problem.Usage, list, "the first run, %s, is more than ten years off", zone.Format(s.NextRun, loc))
	}
	return s, nil
}

// begin finds the first run, not before earliest unless that is zero.
func (s *Schedule) begin(earliest, now time.Time) error {
	switch s.Kind {
	case Once:
		if earliest.IsZero() || s.Spec != "" {
			return problem.Errorf(problem.Usage, add, "a schedule that runs once needs the time of its run, and nothing else")
		}
		s.NextRun = earliest
	case Interval:
		every, err := readInterval(s.Spec)
		if err != nil {
			return err
		}
		if s.NextRun = earliest; earliest.IsZero() {
			s.NextRun = now.UTC().Add(every).Truncate(time.Second)
		}
	case Cron:
		line, err := readCron(s.Spec)
		if err != nil {
			return err
		}
		after := now
		if !earliest.IsZero() {
			after = earliest.Add(-1)
		}
		s.NextRun = line.next(after, zone.Load(s.Zone))
	default:
		return problem.Errorf(problem.Usage, add, "%q is no kind of schedule: cron, interval or once", inert.Short(string(s.Kind), 40))
	}
	return nil
}

// Next returns the run after the one that was due, in the future of now: zero if there is none. A row that cannot be read any more
// says so in warning; an interval goes on a minute later (CH-130).
//
// A run that was due is never due again, also when the clock has been set back since.
func (s Schedule) Next(now time.Time) (run time.Time, warning string) {
	now = now.UTC()
	switch s.Kind {
	case Interval:
		every, err := readInterval(s.Spec)
		if err != nil {
			return now.Add(IntervalBad), err.Error() + "; it runs again in a minute"
		}
		return follow(s.NextRun, every, now), ""
	case Cron:
		line, err := readCron(s.Spec)
		if err != nil {
			return time.Time{}, err.Error() + "; it runs no more"
		}
		after := now
		if s.NextRun.After(after) {
			after = s.NextRun
		}
		return line.next(after, zone.Load(s.Zone)), ""
	}
	return time.Time{}, ""
}

// follow returns the first time after now that lies whole intervals after the run that was due.
func follow(due time.Time, every time.Duration, now time.Time) time.Time {
	if due.IsZero() {
		return now.Add(every)
	}
	step := int64(every / time.Second)
	missed := max(0, now.Unix()-due.Unix()) / step // in seconds, as a duration ends after 292 years
	next := time.Unix(due.Unix()+missed*step, int64(due.Nanosecond())).UTC()
	if next.After(now) && next.After(due) { // by a fraction of a second
		return next
	}
	return next.Add(every)
}

// readInterval reads the duration of an interval.
func readInterval(spec string) (time.Duration, error) {
	const next = "sallyport schedule add --help"
	every, err := time.ParseDuration(spec)
	switch {
	case err != nil:
		return 0, problem.Errorf(problem.Usage, next, "%q is no interval, such as 90m or 24h", inert.Short(spec, 40))
	case every < IntervalMin || every > ahead || every%time.Second != 0:
		return 0, problem.Errorf(problem.Usage, next, "the interval %s is not one of whole seconds between a minute and ten years, such as 90m or 24h", every)
	}
	return every, nil
}
