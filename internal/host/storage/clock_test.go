package storage

import (
	"testing"
	"time"

	"sallyport/internal/path/change"
)

func TestAClockThatHasLeaptIsBelievedOnceItHasGoneOn(t *testing.T) {
	day, hour := 24*time.Hour, time.Hour
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for what, steps := range map[string][]struct{ now, by time.Duration }{
		"sweeps of every day":                {{0, 0}, {day, day}, {2 * day, 2 * day}},
		"a week off":                         {{0, 0}, {7 * day, 7 * day}},
		"years ahead until it is set":        {{0, 0}, {3000 * day, 0}, {3000*day + hour, 0}, {2 * hour, 2 * hour}, {day, day}},
		"years ahead at each start":          {{0, 0}, {3000 * day, 0}, {hour, hour}, {3000*day + day, hour}},
		"a month in which nothing ran":       {{0, 0}, {30 * day, 0}, {30*day + 12*hour - 1, 0}, {30*day + 12*hour, 30*day + 12*hour}},
		"seldom, and never for long":         {{0, 0}, {30 * day, 0}, {60 * day, 60 * day}},
		"ahead, and less so":                 {{0, 0}, {3000 * day, 0}, {2000 * day, 0}, {2000*day + 11*hour, 0}},
		"set back":                           {{100 * day, 100 * day}, {0, 0}, {day, day}},
		"no sweep before, whatever it shows": {{9000 * day, 9000 * day}},
	} {
		s := swept{}
		for i, step := range steps {
			if s = s.next(start.Add(step.now)); !s.At.Equal(start.Add(step.by)) {
				t.Errorf("%s, sweep %d: it goes by %s, not %s", what, i, s.At.Sub(start), step.by)
			}
		}
	}
}

func TestASweepByAClockThatHasLeaptTakesNothingForItsAge(t *testing.T) {
	o := newOwned(t)
	o.Retention.Grace = time.Hour
	last := time.Now().Add(-60 * 24 * time.Hour)
	sweep := func() {
		t.Helper()
		if err := o.Sweep(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := o.clock(last); err != nil {
		t.Fatal(err)
	}
	old, session := o.add(change.Failed, 59*24*time.Hour) // an hour ago, if the clock is wrong
	for range 2 {
		o.Steward = New(o.Parts) // of another daemon
		sweep()
		if len(o.forgot) != 0 || !o.has("sessions/"+string(session)) || !o.has("changes/"+string(old)) {
			t.Fatal("it went by a clock that may be wrong")
		}
	}
	o.swept.Doubted = o.swept.Doubted.Add(-settledAfter)
	sweep()
	if len(o.forgot) != 1 || o.has("sessions/"+string(session)) || o.has("changes/"+string(old)) {
		t.Error("it stays although the clock has gone on")
	}
}
