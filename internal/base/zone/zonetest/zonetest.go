// Package zonetest has all zones, and where their clocks change, found without what it tests.
package zonetest

import (
	_ "embed"
	"slices"
	"sort"
	"strings"
	"testing"
	"time"

	"sallyport/internal/base/disk/disktest"
)

//go:embed zones.txt
var names string

// odd are zones that every run takes: a change of half an hour, of two, by the weekend, around Ramadan, at midnight, with an offset
// that is no whole hour, to summer time in the southern summer, winter time as the saving, an offset for ever, and no change at all.
var odd = []string{
	"Australia/Lord_Howe", "Antarctica/Troll", "Asia/Gaza", "Africa/Casablanca", "America/Havana", "Pacific/Chatham", "America/Santiago",
	"Europe/Dublin", "America/Sao_Paulo", "America/New_York", "Europe/Berlin", "Africa/Cairo", "UTC",
}

// Zones are the odd zones and one in so many of all; with SALLYPORT_LONG they are all.
func Zones(t testing.TB, oneIn int) (zones []*time.Location) {
	t.Helper()
	all := strings.Fields(names)
	for _, name := range slices.Concat(odd, disktest.Sample(t, all, oneIn)) {
		loc, err := time.LoadLocation(name)
		if err != nil {
			t.Fatal(err)
		}
		zones = append(zones, loc)
	}
	return zones
}

// From and To are the years that are looked at.
var (
	From = time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC)
	To   = time.Date(2036, 1, 1, 0, 0, 0, 0, time.UTC)
)

// Change is a moment at which a clock is set, and the two offsets from UTC.
type Change struct {
	At            time.Time
	Before, After time.Duration
}

// Changes looks at a zone every six hours, and where they changed the clock, for the second that did.
func Changes(loc *time.Location) (changes []Change) {
	const step = 6 * time.Hour
	last := Offset(From, loc)
	for at := From; at.Before(To); at = at.Add(step) {
		now := Offset(at, loc)
		if now == last {
			continue
		}
		seconds := sort.Search(int(step/time.Second), func(n int) bool { return Offset(at.Add(time.Duration(n)*time.Second-step), loc) == now })
		changes = append(changes, Change{At: at.Add(time.Duration(seconds)*time.Second - step), Before: last, After: now})
		last = now
	}
	return changes
}

// Offset is how far the clock of a zone is ahead of UTC at t.
func Offset(t time.Time, loc *time.Location) time.Duration {
	_, seconds := t.In(loc).Zone()
	return time.Duration(seconds) * time.Second
}
