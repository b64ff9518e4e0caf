package schedule_test

import (
	"strings"
	"testing"
	"time"

	"sallyport/internal/base/disk/disktest"
	"sallyport/internal/base/problem"
	"sallyport/internal/base/zone"
	"sallyport/internal/base/zone/zonetest"
	"sallyport/internal/chat/schedule"
)

func at(t *testing.T, text string) time.Time {
	t.Helper()
	if text == "" {
		return time.Time{}
	}
	when, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		t.Fatal(err)
	}
	return when
}

func daily(kind schedule.Kind, spec, zone string) schedule.Schedule {
	return schedule.Schedule{Group: "main", Conversation: "terminal", Kind: kind, Spec: spec, Zone: zone, Text: "water the plants"}
}

func TestAScheduleHasItsFirstRunWhereTheUsersClockSaysSo(t *testing.T) {
	now := at(t, "2026-03-06T15:00:20Z") // Friday, 10:00 in New York
	for name, c := range map[string]struct {
		s     schedule.Schedule
		first string
		want  string
	}{
		"once":                          {daily(schedule.Once, "", "America/New_York"), "2026-03-07T09:00", "2026-03-07T14:00:00Z"},
		"once, this minute":             {daily(schedule.Once, "", "America/New_York"), "2026-03-06T10:00", "2026-03-06T15:00:00Z"},
		"once, in a gap":                {daily(schedule.Once, "", "America/New_York"), "2026-03-08T02:30", "2026-03-08T07:00:00Z"},
		"cron":                          {daily(schedule.Cron, "0 9 * * *", "America/New_York"), "", "2026-03-07T14:00:00Z"},
		"cron, later today":             {daily(schedule.Cron, "5 10 * * *", "America/New_York"), "", "2026-03-06T15:05:00Z"},
		"cron, from a day on":           {daily(schedule.Cron, "0 9 * * *", "America/New_York"), "2026-03-20T09:00", "2026-03-20T13:00:00Z"},
		"cron, after a day's run":       {daily(schedule.Cron, "0 9 * * *", "America/New_York"), "2026-03-20T09:01", "2026-03-21T13:00:00Z"},
		"cron, days by name":            {daily(schedule.Cron, "30 8 * * MON,THU", "Europe/Berlin"), "", "2026-03-09T07:30:00Z"},
		"cron, either of two days":      {daily(schedule.Cron, "0 9 13 * sun", "Etc/UTC"), "", "2026-03-08T09:00:00Z"},
		"cron, Sunday is 7":             {daily(schedule.Cron, "0 9 * * 7", "Etc/UTC"), "", "2026-03-08T09:00:00Z"},
		"cron, 29 February":             {daily(schedule.Cron, "0 0 29 2 *", "Etc/UTC"), "", "2028-02-29T00:00:00Z"},
		"an interval":                   {daily(schedule.Interval, "90m", "America/New_York"), "", "2026-03-06T16:30:20Z"},
		"an interval, from a moment on": {daily(schedule.Interval, "24h", "America/New_York"), "2026-03-07 09:00", "2026-03-07T14:00:00Z"},
		"in no zone":                    {daily(schedule.Cron, "0 9 * * *", "IST-2"), "", "2026-03-07T09:00:00Z"},
	} {
		got, err := schedule.New(c.s, c.first, now)
		if err != nil || !got.NextRun.Equal(at(t, c.want)) || got.NextRun.Location() != time.UTC || zone.Load(got.Zone).String() != got.Zone {
			t.Errorf("%s: %s in %s, %v; want %s", name, got.NextRun, got.Zone, err, c.want)
		}
	}
}

func TestWhatIsNoScheduleIsRefusedByName(t *testing.T) {
	now := at(t, "2026-03-06T15:00:20Z")
	good := daily(schedule.Cron, "0 9 * * *", "UTC")
	with := func(change func(s *schedule.Schedule)) schedule.Schedule { s := good; change(&s); return s }
	cron := func(spec string) schedule.Schedule { return daily(schedule.Cron, spec, "UTC") }
	for name, c := range map[string]struct {
		s           schedule.Schedule
		first, says string
	}{
		"no group":           {with(func(s *schedule.Schedule) { s.Group = "" }), "", "needs a group"},
		"no conversation":    {with(func(s *schedule.Schedule) { s.Conversation = "" }), "", "needs a group and a conversation"},
		"no text":            {with(func(s *schedule.Schedule) { s.Text = " \n" }), "", "needs a text"},
		"a long text":        {with(func(s *schedule.Schedule) { s.Text = strings.Repeat("a", schedule.TextMax+1) }), "", "16385 bytes"},
		"not UTF-8":          {with(func(s *schedule.Schedule) { s.Text = "\xff" }), "", "UTF-8"},
		"another kind":       {with(func(s *schedule.Schedule) { s.Kind = "\x1b[2J" }), "", "no kind of schedule"},
		"once, without time": {daily(schedule.Once, "", "UTC"), "", "needs the time"},
		"once, with more":    {daily(schedule.Once, "5m", "UTC"), "2026-03-07T09:00", "nothing else"},
		"once, in the past":  {daily(schedule.Once, "", "America/New_York"), "2026-03-06T09:59", "Mar 6, 2026, 9:59 AM has passed: the home's clock reads Mar 6, 2026, 10:00 AM"},
		"in another zone":    {daily(schedule.Once, "", "America/New_York"), "2026-03-07T09:00Z", "leave it out"},
		"ages away":          {daily(schedule.Once, "", "UTC"), "9999-01-01T09:00", "ten years"},
		"ages away, by cron": {cron("0 9 * * *"), "2999-01-01T09:00", "ten years"},
		"an empty interval":  {daily(schedule.Interval, "", "UTC"), "", "no interval"},
		"too often":          {daily(schedule.Interval, "59s", "UTC"), "", "between a minute"},
		"backwards":          {daily(schedule.Interval, "-1h", "UTC"), "", "between a minute"},
		"fractions":          {daily(schedule.Interval, "60500ms", "UTC"), "", "whole seconds"},
		"rarely":             {daily(schedule.Interval, "2000000h", "UTC"), "", "between a minute"},
		"too large to count": {daily(schedule.Interval, "99999999999999h", "UTC"), "", "no interval"},
		"four fields":        {cron("0 9 * *"), "", "five fields"},
		"six fields":         {cron("0 0 9 * * *"), "", "five fields"},
		"a name":             {cron("@daily"), "", "five fields"},
		"a name, five words": {cron("@every 5m 5m 5m 5m"), "", "five fields"},
		"a zone":             {cron("TZ=0 9 * * *"), "", "five fields"},
		"a zone of cron's":   {cron("CRON_TZ=UTC 9 * * *"), "", "five fields"},
		"minute 60":          {cron("60 9 * * *"), "", "no cron line"},
		"hour 24":            {cron("0 24 * * *"), "", "no cron line"},
		"no step":            {cron("*/0 * * * *"), "", "no cron line"},
		"a day of no month":  {cron("0 9 31 2 *"), "", "never comes"},
		"Jenkins' H":         {cron("h h * * *"), "", "no cron line"},
		"last day":           {cron("0 9 l * *"), "", "no cron line"},
		"control characters": {cron("0 9 * * \x1b"), "", "five fields"},
		"a megabyte":         {cron(strings.Repeat("1,", 1<<19) + "1 9 * * *"), "", "five fields"},
	} {
		got, err := schedule.New(c.s, c.first, now)
		if problem.KindOf(err) != problem.Usage || !strings.Contains(err.Error(), c.says) || problem.Of(err).Next == "" {
			t.Errorf("%s: %v, %v", name, got.NextRun, err)
		}
		if err != nil && (len(err.Error()) > 400 || strings.ContainsAny(err.Error(), "\x1b\n")) {
			t.Errorf("%s: %q is not harmless", name, err)
		}
	}
}

func TestTheNextRunLiesInTheFutureAndOnItsGrid(t *testing.T) {
	for name, c := range map[string]struct {
		kind           schedule.Kind
		spec, due, now string
		want, warns    string
	}{
		"once":                                  {schedule.Once, "", "2026-01-01T09:00:00Z", "2026-01-01T09:00:01Z", "", ""},
		"an interval, just run":                 {schedule.Interval, "1h", "2026-01-01T09:00:00Z", "2026-01-01T09:00:07Z", "2026-01-01T10:00:00Z", ""},
		"an interval, late, without drift":      {schedule.Interval, "1h", "2026-01-01T09:00:00Z", "2026-01-01T09:59:59Z", "2026-01-01T10:00:00Z", ""},
		"an interval, at the next moment":       {schedule.Interval, "1h", "2026-01-01T09:00:00Z", "2026-01-01T10:00:00Z", "2026-01-01T11:00:00Z", ""},
		"an interval, missed for a year":        {schedule.Interval, "7m", "2026-01-01T09:00:00Z", "2027-01-01T09:00:00Z", "2027-01-01T09:02:00Z", ""},
		"an interval, due ages ago":             {schedule.Interval, "1m", "0001-01-02T09:00:00Z", "2026-01-01T09:00:30Z", "2026-01-01T09:01:00Z", ""},
		"an interval, with fractions":           {schedule.Interval, "1m", "2026-01-01T09:00:00.9Z", "2026-01-01T09:00:59.95Z", "2026-01-01T09:01:00.9Z", ""},
		"an interval, the clock set back":       {schedule.Interval, "1h", "2026-01-01T09:00:00Z", "2026-01-01T07:00:00Z", "2026-01-01T10:00:00Z", ""},
		"an interval that never ran":            {schedule.Interval, "1h", "", "2026-01-01T07:00:00Z", "2026-01-01T08:00:00Z", ""},
		"no interval":                           {schedule.Interval, "soon", "2026-01-01T09:00:00Z", "2026-01-01T09:00:07Z", "2026-01-01T09:01:07Z", "no interval"},
		"an interval of nothing":                {schedule.Interval, "0s", "2026-01-01T09:00:00Z", "2026-01-01T09:00:07Z", "2026-01-01T09:01:07Z", "runs again in a minute"},
		"cron, just run":                        {schedule.Cron, "0 9 * * *", "2026-01-01T14:00:00Z", "2026-01-01T14:00:07Z", "2026-01-02T14:00:00Z", ""},
		"cron, at that very moment":             {schedule.Cron, "0 9 * * *", "2026-01-01T14:00:00Z", "2026-01-01T14:00:00Z", "2026-01-02T14:00:00Z", ""},
		"cron, over the change to summer":       {schedule.Cron, "0 9 * * *", "2026-03-07T14:00:00Z", "2026-03-07T14:00:07Z", "2026-03-08T13:00:00Z", ""},
		"cron, over the change to winter":       {schedule.Cron, "0 9 * * *", "2026-10-31T13:00:00Z", "2026-10-31T13:00:07Z", "2026-11-01T14:00:00Z", ""},
		"cron, a time that is skipped":          {schedule.Cron, "30 2 * * *", "2026-03-07T07:30:00Z", "2026-03-07T07:30:07Z", "2026-03-08T07:00:00Z", ""},
		"cron, after that":                      {schedule.Cron, "30 2 * * *", "2026-03-08T07:00:00Z", "2026-03-08T07:00:07Z", "2026-03-09T06:30:00Z", ""},
		"cron, a time that comes twice":         {schedule.Cron, "30 1 * * *", "2026-11-01T05:30:00Z", "2026-11-01T05:30:07Z", "2026-11-02T06:30:00Z", ""},
		"cron, between the two":                 {schedule.Cron, "30 1 * * *", "2026-11-01T05:30:00Z", "2026-11-01T06:10:00Z", "2026-11-02T06:30:00Z", ""},
		"cron, many in the skip are one":        {schedule.Cron, "*/10 * * * *", "2026-03-08T06:50:00Z", "2026-03-08T06:50:01Z", "2026-03-08T07:00:00Z", ""},
		"cron, after the skip":                  {schedule.Cron, "*/10 * * * *", "2026-03-08T07:00:00Z", "2026-03-08T07:00:01Z", "2026-03-08T07:10:00Z", ""},
		"cron, no second run in the same hour":  {schedule.Cron, "*/10 * * * *", "2026-11-01T05:50:00Z", "2026-11-01T05:50:01Z", "2026-11-01T07:00:00Z", ""},
		"cron, asleep for a year":               {schedule.Cron, "0 9 * * *", "2025-01-01T14:00:00Z", "2026-01-01T15:00:00Z", "2026-01-02T14:00:00Z", ""},
		"cron, the clock set back after it ran": {schedule.Cron, "0 9 * * *", "2026-01-01T14:00:00Z", "2026-01-01T13:00:00Z", "2026-01-02T14:00:00Z", ""},
		"a cron line that is none any more":     {schedule.Cron, "@daily", "2026-01-01T14:00:00Z", "2026-01-01T14:00:07Z", "", "runs no more"},
	} {
		s := daily(c.kind, c.spec, "America/New_York")
		s.NextRun = at(t, c.due)
		got, warning := s.Next(at(t, c.now))
		if !got.Equal(at(t, c.want)) || (c.warns == "") != (warning == "") || !strings.Contains(warning, c.warns) {
			t.Errorf("%s: %s %q; want %s", name, got, warning, c.want)
		}
	}
}

func TestOnlyACompletedRunRecursAndOnce(t *testing.T) {
	now := at(t, "2026-01-01T14:00:07Z")
	s := daily(schedule.Cron, "0 9 * * *", "America/New_York")
	for _, status := range []string{"pending", "processing", "folded", "dead", "", "Completed"} {
		clone, original, _ := schedule.Recur(schedule.Occurrence{Status: status, Due: at(t, "2026-01-01T14:00:00Z"), Recurrence: &s}, now)
		if clone != nil || original.Recurrence != &s {
			t.Errorf("%q: a run that has not been completed recurs", status)
		}
	}

	done := schedule.Occurrence{Status: "completed", Due: at(t, "2026-01-01T14:00:00Z"), Recurrence: &s}
	clone, original, warning := schedule.Recur(done, now)
	if clone == nil || clone.Status != "pending" || !clone.Due.Equal(at(t, "2026-01-02T14:00:00Z")) || clone.Recurrence == nil || !clone.Recurrence.NextRun.Equal(clone.Due) || warning != "" {
		t.Fatalf("%+v %q", clone, warning)
	}
	if original.Recurrence != nil || original.Status != "completed" || !s.NextRun.IsZero() {
		t.Error("the original keeps its recurrence, or its schedule was changed")
	}
	if again, _, _ := schedule.Recur(original, now); again != nil {
		t.Error("a run recurs twice")
	}

	once := daily(schedule.Once, "", "UTC")
	if clone, original, _ := schedule.Recur(schedule.Occurrence{Status: "completed", Due: now, Recurrence: &once}, now); clone != nil || original.Recurrence != nil {
		t.Error("what runs once recurs")
	}
	broken := daily(schedule.Cron, "@daily", "UTC")
	if clone, _, warning := schedule.Recur(schedule.Occurrence{Status: "completed", Due: now, Recurrence: &broken}, now); clone != nil || warning == "" {
		t.Error("a line that cannot be read recurs, or nobody is told")
	}
}

// For each day of sixteen years in each zone, a daily time has exactly one run: where the clock reads that time, else at the skip.
// The ordinary run looks at the days around each change.
func TestEachDayHasItsOneRunInEveryZone(t *testing.T) {
	runs := 0
	for _, loc := range zonetest.Zones(t, 60) {
		all := zonetest.Changes(loc)
		for spec, minute := range times(all) {
			changes := all
			s := daily(schedule.Cron, spec, loc.String())
			for day := time.Date(2020, 1, 2, 0, 0, 0, 0, time.UTC); day.Before(zonetest.To); day = day.Add(24 * time.Hour) { // by the user's clock
				if len(changes) > 0 && changes[0].At.Before(day.Add(-72*time.Hour)) {
					changes = changes[1:]
				}
				if !disktest.Long() && (len(changes) == 0 || changes[0].At.After(day.Add(72*time.Hour))) {
					s.NextRun = time.Time{}
					continue
				}
				now := s.NextRun
				if now.IsZero() {
					now = day.Add(-zonetest.Offset(day, loc) - 1)
				}

				run, warning := s.Next(now)
				want := day.Add(minute)
				reads, unchanged := run.Add(zonetest.Offset(run, loc)), run.Add(zonetest.Offset(run.Add(-1), loc))
				skipped := !want.Before(unchanged) && want.Before(reads)
				if !run.After(now) || !reads.Equal(want) && !skipped || warning != "" {
					t.Fatalf("%s %q: after %s comes %s, which reads %s; %s is due", loc, spec, now, run, reads, want)
				}
				if readBefore(loc, run) {
					t.Fatalf("%s %q: %s is the second moment that reads %s", loc, spec, run, reads)
				}
				s.NextRun = run
				runs++
			}
		}
	}
	if runs < 2000 {
		t.Errorf("only %d runs", runs)
	}
}

// times are a plain daily time, and the ones that the changes of a zone skip or repeat.
func times(changes []zonetest.Change) map[string]time.Duration {
	specs := map[string]time.Duration{"0 9 * * *": 9 * time.Hour}
	add := func(at time.Time) {
		minute := time.Duration(at.Hour())*time.Hour + time.Duration(at.Minute())*time.Minute
		if len(specs) < 4 {
			specs[at.Format("4 15 * * *")] = minute
		}
	}
	for _, c := range changes {
		low, high := min(c.Before, c.After), max(c.Before, c.After)
		add(c.At.UTC().Add(low))                 // the first minute that is skipped, or comes twice
		add(c.At.UTC().Add(high - time.Minute))  // the last one
		add(c.At.UTC().Add(high))                // the first after it
		add(c.At.UTC().Add(low + (high-low)/2))  // one between
		add(c.At.UTC().Add(low - 1*time.Minute)) // the last before it
	}
	return specs
}

// readBefore reports whether the clock of a zone read the same already within the last four hours.
func readBefore(loc *time.Location, t time.Time) bool {
	reads := t.Add(zonetest.Offset(t, loc))
	for back := 10 * time.Minute; back <= 4*time.Hour; back += 10 * time.Minute {
		if earlier := t.Add(-back); earlier.Add(zonetest.Offset(earlier, loc)).Equal(reads) {
			return true
		}
	}
	return false
}

// Around each change of each zone, the runs of a line that matches often are exactly the first moments that show a reading it
// matches, and the skips that skip one; found minute by minute.
func TestAroundAChangeNoReadingIsSkippedAndNoneRunsTwice(t *testing.T) {
	lines := map[string]func(m int) bool{
		"* * * * *":       func(int) bool { return true },
		"*/7 * * * *":     func(m int) bool { return m%60%7 == 0 },
		"30 0-4,23 * * *": func(m int) bool { h := m / 60; return m%60 == 30 && (h <= 4 || h == 23) },
	}
	for _, loc := range zonetest.Zones(t, 60) {
		changes := zonetest.Changes(loc)
		for n, c := range changes {
			if n >= 2 && !disktest.Long() { // the rest is the same rule in other years
				break
			}
			for spec, matches := range lines {
				var want []time.Time
				from, to := c.At.Add(-5*time.Hour), c.At.Add(5*time.Hour)
				latest := from.Add(zonetest.Offset(from, loc)).Add(-time.Minute)
				for now := from; now.Before(to); now = now.Add(time.Minute) {
					reads, match := now.Add(zonetest.Offset(now, loc)), false
					for ; latest.Before(reads); latest = latest.Add(time.Minute) {
						passed := latest.Add(time.Minute)
						match = match || matches(passed.Hour()*60+passed.Minute())
					}
					if match {
						want = append(want, now)
					}
				}

				s, now := daily(schedule.Cron, spec, loc.String()), from.Add(-1)
				for _, due := range want {
					run, _ := s.Next(now)
					if !run.Equal(due) {
						t.Fatalf("%s %q: after %s comes %s, and %s is due", loc, spec, now, run, due)
					}
					s.NextRun, now = run, run
				}
			}
		}
	}
}

func FuzzAnyCronLineIsReadOrRefusedAndGoesForward(f *testing.F) {
	for _, spec := range []string{"0 9 * * *", "*/5 * * * *", "TZ=0 * * * *", "0 9 * * THU", "59-1 22-2 31 * 5-1", "0 0 29 2 1", "@every 1s", "? ? ? ? ?", "0 0 L * *", "00000000000000000000 * * * *"} {
		f.Add(spec, int64(1_773_000_000))
	}
	loc := zone.Load("America/New_York")
	f.Fuzz(func(t *testing.T, spec string, unix int64) {
		now := time.Unix(unix%4_000_000_000, 0)
		s, err := schedule.New(daily(schedule.Cron, spec, loc.String()), "", now)
		if err != nil {
			if problem.KindOf(err) != problem.Usage {
				t.Fatal(err)
			}
			return
		}
		run, warning := s.Next(s.NextRun)
		if !s.NextRun.After(now) || !run.After(s.NextRun) || warning != "" || run.Second() != 0 {
			t.Fatalf("%q: after %s come %s and %s %s", spec, now, s.NextRun, run, warning)
		}
	})
}
