package schedule

import (
	"strings"
	"time"

	"github.com/netresearch/go-cron"

	"sallyport/internal/base/inert"
	"sallyport/internal/base/problem"
	"sallyport/internal/base/zone"
)

// cronMax is longer than any line that a person reads.
const cronMax = 256

// fields reads minute, hour, day of the month, month and day of the week. As in every crontab, one of two days is enough where both are
// given. Ten years hold a 29 February wherever they begin.
var fields = cron.MustNewParser(cron.Minute | cron.Hour | cron.Dom | cron.Month | cron.Dow | cron.DowOrDom).WithMaxSearchYears(10)

// line is a cron line, on a clock that never changes.
type line struct{ cron.Schedule }

// readCron reads five fields. Zones, names such as @daily and whatever else the library knows are not part of them.
func readCron(spec string) (line, error) {
	words := strings.Fields(strings.ToLower(spec)) // the library takes the H of THU for one of Jenkins'
	if len(spec) > cronMax || len(words) != 5 || strings.Trim(strings.Join(words, ""), "abcdefghijklmnopqrstuvwxyz0123456789*,-/") != "" {
		return line{}, problem.Errorf(problem.Usage, add,
			"%q is no cron line of five fields, such as 0 9 * * 1-5: minute, hour, day of the month, month, day of the week", inert.Short(spec, 60))
	}

	read, err := fields.Parse(strings.Join(words, " "))
	if err != nil {
		return line{}, problem.Errorf(problem.Usage, add, "%q is no cron line: %s", inert.Short(spec, 60), inert.Short(err.Error(), 200))
	}
	if read.Next(time.Unix(0, 0).UTC()).IsZero() {
		return line{}, problem.Errorf(problem.Usage, add, "the cron line %q never comes: no month has such a day", inert.Short(spec, 60))
	}
	return line{read}, nil
}

// next returns when the clock of a zone first reads what the line says, after t. Each reading up to the latest one until t has had
// its moment, and each later one has it after t: so one step is enough.
func (l line) next(t time.Time, loc *time.Location) time.Time {
	reading := l.Next(zone.Latest(t, loc))
	if reading.IsZero() {
		return time.Time{}
	}
	return zone.Instant(reading, loc)
}
