package zone

import (
	"strings"
	"time"

	"sallyport/internal/base/inert"
	"sallyport/internal/base/problem"
)

// shown is how an agent sees an instant: en-US, 12 hours, no seconds (CH-121). The blank before PM is a plain one.
const shown = "Jan 2, 2006, 3:04 PM"

// Format returns what the clock reads at t, as an agent sees it.
func Format(t time.Time, loc *time.Location) string {
	return t.In(loc).Format(shown)
}

// written are the forms in which an agent may name a time.
var written = []string{
	"2006-01-02T15:04:05",
	"2006-01-02T15:04",
	"2006-01-02 15:04:05",
	"2006-01-02 15:04",
	shown,
}

// Read returns the instant that an agent means by a time of the user's clock, as UTC (CH-120, CH-129).
//
// It takes what agents write, and what they were shown. A time with a zone of its own, such as a Z at its end, is refused: it is as
// often meant local as not, and a reminder that comes hours off is worse than a second try.
func Read(text string, loc *time.Location) (time.Time, error) {
	text = strings.TrimSpace(text)
	for _, form := range written {
		if reading, err := time.Parse(form, text); err == nil {
			return Instant(reading, loc), nil
		}
	}
	for _, form := range []string{time.RFC3339, "2006-01-02T15:04Z07:00", "2006-01-02 15:04:05Z07:00", "2006-01-02 15:04Z07:00"} {
		if _, err := time.Parse(form, text); err == nil {
			return time.Time{}, problem.Errorf(problem.Usage, "",
				"the time %q names a zone; leave it out, as in 2026-05-01 09:00: times are by the clock of the home's zone (%s)", inert.Short(text, 64), loc)
		}
	}
	return time.Time{}, problem.Errorf(problem.Usage, "",
		"%q is no time: write it as 2026-05-01 09:00, by the clock of the home's zone (%s)", inert.Short(text, 64), loc)
}

// Reading returns what the clock of a zone reads at t, written as if it were UTC: something to calculate with, no instant.
func Reading(t time.Time, loc *time.Location) time.Time {
	_, offset := t.In(loc).Zone()
	return t.UTC().Add(time.Duration(offset) * time.Second)
}

// reach is further than any clock has ever been from UTC.
const reach = 26 * time.Hour

// Instant returns when a clock first reads what reading says, as UTC. A reading that the clock skips is the moment of the skip.
func Instant(reading time.Time, loc *time.Location) time.Time {
	reading = reading.UTC()
	at := reading.Add(-reach)
	for {
		_, offset := at.In(loc).Zone()
		start, end := at.In(loc).ZoneBounds()
		then := reading.Add(-time.Duration(offset) * time.Second)
		switch {
		case !end.IsZero() && !then.Before(end): // the clock changes before it comes to read that
			at = end
		case then.Before(start): // it has just skipped it
			return start.UTC()
		default:
			return then
		}
	}
}

// Latest returns the latest that the clock of a zone has read until t, t included, as Reading does: after an hour that came twice
// has begun again, it is more than what the clock reads.
func Latest(t time.Time, loc *time.Location) time.Time {
	latest := Reading(t, loc)
	for at := t.Add(-reach); ; {
		_, end := at.In(loc).ZoneBounds()
		if end.IsZero() || end.After(t) {
			return latest
		}
		if before := Reading(end.Add(-1), loc); before.After(latest) {
			latest = before
		}
		at = end
	}
}
