package zone_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"sallyport/internal/base/problem"
	"sallyport/internal/base/zone"
	"sallyport/internal/base/zone/zonetest"
)

func at(t *testing.T, text string) time.Time {
	t.Helper()
	when, err := time.Parse("2006-01-02T15:04:05Z07:00", text)
	if err != nil {
		t.Fatal(err)
	}
	return when
}

func TestTheStrongestPlaceThatNamesAZoneCounts(t *testing.T) {
	for name, c := range map[string]struct {
		s       zone.Sources
		want    string
		from    string
		invalid []string
	}{
		"nothing names one":            {zone.Sources{}, "UTC", "the default", nil},
		"the environment":              {zone.Sources{"Asia/Tokyo", "TZ=Europe/Paris", "America/New_York"}, "Asia/Tokyo", "TZ", nil},
		"the home's .env":              {zone.Sources{"", "A=b\nTZ=Europe/Paris # where we live\n", "America/New_York"}, "Europe/Paris", ".env", nil},
		"exported, in quotes":          {zone.Sources{"", "export TZ=\"Europe/Paris\"", ""}, "Europe/Paris", ".env", nil},
		"the last assignment":          {zone.Sources{"", "TZ=Europe/Paris\nTZ='Asia/Tokyo'", ""}, "Asia/Tokyo", ".env", nil},
		"taken away again":             {zone.Sources{"", "TZ=Europe/Paris\nTZ=", "Asia/Tokyo"}, "Asia/Tokyo", "the system", nil},
		"another name in .env":         {zone.Sources{"", "#TZ=Asia/Tokyo\nMY_TZ=Asia/Tokyo", ""}, "UTC", "the default", nil},
		"the system's file":            {zone.Sources{"", "", "America/New_York\n"}, "America/New_York", "the system", nil},
		"the system's link":            {zone.Sources{"", "", "../usr/share/zoneinfo/America/New_York"}, "America/New_York", "the system", nil},
		"as POSIX writes it":           {zone.Sources{":Asia/Tokyo", "", ""}, "Asia/Tokyo", "TZ", nil},
		"an invalid one: the next":     {zone.Sources{"IST-2", "TZ=Europe/Paris", ""}, "Europe/Paris", ".env", []string{"TZ: IST-2"}},
		"all invalid":                  {zone.Sources{"IST-2", "TZ=0", "nowhere"}, "UTC", "the default", []string{"TZ: IST-2", ".env: 0", "the system: nowhere"}},
		"a zone with an unknown place": {zone.Sources{"Europe/Atlantis", "", "Asia/Tokyo"}, "Asia/Tokyo", "the system", []string{"TZ: Europe/Atlantis"}},
	} {
		got := zone.Of(c.s)
		if got.Location.String() != c.want || got.From != c.from || !slices.Equal(got.Invalid, c.invalid) {
			t.Errorf("%s: %s from %s, invalid %q", name, got.Location, got.From, got.Invalid)
		}
	}
}

func TestAZoneThatIsNoneIsUTC(t *testing.T) {
	for _, name := range []string{
		"", "IST-2", "0", "Local", "localtime", "posixrules", "right/UTC", "right/Europe/Paris", "posix/UTC", "Factory", "../../etc/passwd", "/etc/localtime",
		"Europe/../UTC", "Europe", "zone.tab", "leap-seconds.list", "Europe/Paris ", "Europe/Paris\n", "Europe\\Paris", "Europe/Paris\x00", "\u202eUTC", strings.Repeat("a", 1<<20),
	} {
		if zone.Load(name) != time.UTC {
			t.Errorf("%.40q counts as %s", name, zone.Load(name))
		}
	}
	for _, name := range []string{"UTC", "Etc/GMT-14", "America/Argentina/Buenos_Aires", "EST5EDT", "America/Port-au-Prince"} {
		if zone.Load(name).String() != name {
			t.Errorf("%s is not found", name)
		}
	}
}

func TestAnAgentSeesTheUsersClock(t *testing.T) {
	for _, c := range []struct{ at, zone, want string }{
		{"2024-01-01T18:30:00.000Z", "America/New_York", "Jan 1, 2024, 1:30 PM"},
		{"2026-02-04T18:30:00Z", "America/New_York", "Feb 4, 2026, 1:30 PM"},
		{"2026-07-01T12:00:00Z", "America/New_York", "Jul 1, 2026, 8:00 AM"},
		{"2026-07-01T00:00:00Z", "Asia/Tokyo", "Jul 1, 2026, 9:00 AM"},
		{"2026-07-01T00:05:59Z", "UTC", "Jul 1, 2026, 12:05 AM"},
		{"2026-07-01T12:00:00Z", "UTC", "Jul 1, 2026, 12:00 PM"},
		{"2026-12-31T23:30:00Z", "Asia/Kolkata", "Jan 1, 2027, 5:00 AM"},
		{"2026-12-31T23:30:00Z", "IST-2", "Dec 31, 2026, 11:30 PM"},
	} {
		if got := zone.Format(at(t, c.at), zone.Load(c.zone)); got != c.want {
			t.Errorf("%s in %s: %q, want %q", c.at, c.zone, got, c.want)
		}
	}
}

func TestATimeThatAnAgentNamesIsByTheUsersClock(t *testing.T) {
	for _, c := range []struct{ text, zone, want string }{
		{"2026-02-01T15:30", "America/New_York", "2026-02-01T20:30:00Z"},
		{"2026-02-01T15:30:05", "America/New_York", "2026-02-01T20:30:05Z"},
		{"2026-02-01T15:30:05.000", "America/New_York", "2026-02-01T20:30:05Z"},
		{" 2026-07-01 09:00\n", "America/New_York", "2026-07-01T13:00:00Z"},
		{"2026-07-01 09:00:00", "Asia/Tokyo", "2026-07-01T00:00:00Z"},
		{"Jul 1, 2026, 9:00 AM", "Asia/Tokyo", "2026-07-01T00:00:00Z"},
		// 2:30 does not come on 8 March 2026 in New York: the clock goes from 1:59 to 3:00.
		{"2026-03-08T02:30", "America/New_York", "2026-03-08T07:00:00Z"},
		{"2026-03-08T02:00", "America/New_York", "2026-03-08T07:00:00Z"},
		{"2026-03-08T03:00", "America/New_York", "2026-03-08T07:00:00Z"},
		{"2026-03-08T01:59", "America/New_York", "2026-03-08T06:59:00Z"},
		// 1:30 comes twice on 1 November 2026.
		{"2026-11-01T01:30", "America/New_York", "2026-11-01T05:30:00Z"},
		{"2026-11-01T02:00", "America/New_York", "2026-11-01T07:00:00Z"},
		// Samoa went over the date line, and had no 30 December 2011.
		{"2011-12-30T09:00", "Pacific/Apia", "2011-12-30T10:00:00Z"},
	} {
		got, err := zone.Read(c.text, zone.Load(c.zone))
		if err != nil || !got.Equal(at(t, c.want)) || got.Location() != time.UTC {
			t.Errorf("%q in %s: %s %v, want %s", c.text, c.zone, got, err, c.want)
		}
	}
}

func TestATimeThatIsNotByTheUsersClockIsRefused(t *testing.T) {
	for text, says := range map[string]string{
		"2026-02-01T15:30:00Z": "leave it out", "2026-02-01T15:30+02:00": "leave it out", "2026-02-01 15:30:00.000Z": "leave it out",
		"": "no time", "tomorrow at nine": "no time", "2026-02-30T09:00": "no time", "2026-13-01T09:00": "no time", "09:00": "no time",
		"2026-02-01T24:00": "no time", "1770000000": "no time", "\x1b[2J\u202e": "no time", strings.Repeat("9", 1<<20): "no time",
	} {
		_, err := zone.Read(text, time.UTC)
		if problem.KindOf(err) != problem.Usage || !strings.Contains(err.Error(), says) || len(err.Error()) > 300 || strings.ContainsAny(err.Error(), "\x1b\u202e") || !strings.Contains(err.Error(), "2026-05-01 09:00") || !strings.Contains(err.Error(), "the home's zone (UTC)") {
			t.Errorf("%.40q: %.400v", text, err)
		}
	}
}

// What the clock reads is looked at minute by minute around every change, without what is tested.
func TestAReadingIsTheFirstMomentThatShowsItOrTheSkip(t *testing.T) {
	changes := 0
	for _, loc := range zonetest.Zones(t, 40) {
		for _, c := range zonetest.Changes(loc) {
			changes++
			first := map[time.Time]time.Time{}
			var latest time.Time
			for now := c.At.Add(-8 * time.Hour); now.Before(c.At.Add(8 * time.Hour)); now = now.Add(time.Minute) {
				reads := now.Add(zonetest.Offset(now, loc))
				if _, seen := first[reads]; !seen {
					first[reads] = now
				}
				if latest.Before(reads) {
					latest = reads
				}
				if got := zone.Reading(now, loc); !got.Equal(reads) {
					t.Fatalf("%s at %s reads %s, want %s", loc, now, got, reads)
				}
				if got := zone.Latest(now, loc).Truncate(time.Minute); !got.Equal(latest) {
					t.Fatalf("%s until %s has read at most %s, want %s", loc, now, got, latest)
				}
			}

			for reads := c.At.Add(c.Before - 2*time.Hour); reads.Before(c.At.Add(c.Before + 2*time.Hour)); reads = reads.Add(time.Minute) {
				want, shown := first[reads]
				if !shown {
					want = c.At
				}
				if got := zone.Instant(reads, loc); !got.Equal(want) {
					t.Fatalf("%s: the clock reads %s at %s, want %s", loc, reads.Format("2006-01-02 15:04"), got, want)
				}
			}
		}
	}
	if changes < 200 {
		t.Errorf("only %d changes of clocks were looked at", changes)
	}
}
