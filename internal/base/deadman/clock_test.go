package deadman_test

import (
	"testing"
	"time"

	"sallyport/internal/base/deadman"
)

func TestADeadlineIsAsFarAwayAsTheClockThatNobodySetsSays(t *testing.T) {
	noon := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	set := deadman.Moment{Wall: noon, Boot: "one", Up: time.Hour}
	d := deadman.Deadline{Set: set, In: 2 * time.Minute}
	moved := func(boot string, wall, up time.Duration) deadman.Moment {
		return deadman.Moment{Wall: noon.Add(wall), Boot: boot, Up: time.Hour + up}
	}
	for name, c := range map[string]struct {
		d    deadman.Deadline
		now  deadman.Moment
		left time.Duration
	}{
		"just set":                                {d, set, 2 * time.Minute},
		"a minute later":                          {d, moved("one", time.Minute, time.Minute), time.Minute},
		"on the dot":                              {d, moved("one", 2*time.Minute, 2*time.Minute), 0},
		"long over":                               {d, moved("one", time.Hour, time.Hour), 0},
		"the clock was put forth an hour":         {d, moved("one", time.Hour, time.Minute), time.Minute},
		"the clock was put back an hour":          {d, moved("one", -time.Hour, time.Minute), time.Minute},
		"put back, and over":                      {d, moved("one", -time.Hour, 3*time.Minute), 0},
		"it slept, and both clocks went on":       {d, moved("one", 90*time.Second, 90*time.Second), 30 * time.Second},
		"before it was set, in the same boot":     {d, moved("one", 0, -time.Second), 0},
		"another boot, a minute later":            {d, moved("two", time.Minute, -time.Hour), time.Minute},
		"another boot, an hour later":             {d, moved("two", time.Hour, -time.Hour), 0},
		"another boot, a clock from before":       {d, moved("two", -time.Second, time.Hour), 0},
		"a boot that cannot be told":              {deadman.Deadline{Set: deadman.Moment{Wall: noon}, In: 2 * time.Minute}, deadman.Moment{Wall: noon.Add(time.Minute)}, time.Minute},
		"a boot that cannot be told, from before": {deadman.Deadline{Set: deadman.Moment{Wall: noon}, In: 2 * time.Minute}, deadman.Moment{Wall: noon.Add(-time.Minute)}, 0},
		"never set":                               {deadman.Deadline{}, set, 0},
	} {
		if left := c.d.Left(c.now); left != c.left {
			t.Errorf("%s: %s left, not %s", name, left, c.left)
		}
	}
	if at := d.At(); !at.Equal(noon.Add(2 * time.Minute)) {
		t.Errorf("due at %s", at)
	}
}

func TestBothClocksAreRead(t *testing.T) {
	a, err := deadman.Now()
	if err != nil || a.Boot == "" || a.Up <= 0 || time.Since(a.Wall).Abs() > time.Minute {
		t.Fatalf("%+v, %v", a, err)
	}
	b, err := deadman.Now()
	if err != nil || b.Boot != a.Boot || b.Since(a) < 0 {
		t.Errorf("%+v after %+v, %v", b, a, err)
	}
}
