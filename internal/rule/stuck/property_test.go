package stuck_test

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"sallyport/internal/base/rapidtest"
	"sallyport/internal/rule/stuck"
)

// drawn is any session at all, also one that cannot be.
func drawn(t *rapid.T) stuck.Session {
	moment := func(name string) time.Duration {
		return rapid.OneOf(
			rapid.Just(time.Duration(0)),
			rapid.Map(rapid.Int64Range(-int64(2*time.Minute), int64(3*time.Minute)), func(n int64) time.Duration { return ago(time.Duration(n)) }),
			rapid.Map(rapid.Int64Range(-int64(time.Hour), int64(30*time.Hour)), func(n int64) time.Duration { return ago(time.Duration(n)) }),
		).Draw(t, name)
	}
	far := func(name string) time.Duration {
		return rapid.SampledFrom([]time.Duration{0, 0, time.Minute, 2 * time.Hour, 1000 * time.Hour}).Draw(t, name)
	}
	row := func(i int) stuck.Row {
		return stuck.Row{
			ID: fmt.Sprint("m", i), Claimed: moment("claimed"), Fence: mine + rapid.SampledFrom([]int64{0, 0, 0, -1, 1}).Draw(t, "fence"), Tries: rapid.IntRange(0, 6).Draw(t, "tries"),
			Pushed: rapid.Bool().Draw(t, "pushed"), Due: wall.Add(moment("due") - up),
		}
	}
	s := stuck.Session{
		Running: rapid.Bool().Draw(t, "running"), Woken: rapid.Bool().Draw(t, "woken"), Started: moment("started"), Event: moment("event"), Interrupted: moment("interrupted"), Fence: mine,
		Door: stuck.Door{Open: rapid.IntRange(0, 2).Draw(t, "open"), Moved: moment("moved"), Until: moment("until") + far("waits")},
	}
	for range rapid.IntRange(0, 3).Draw(t, "tools") {
		s.Tools = append(s.Tools, stuck.Tool{Name: rapid.SampledFrom([]string{"Bash", "Read", stuck.ToolsOff[0]}).Draw(t, "tool"), Started: moment("tool started"), Declared: far("declared") - time.Hour})
	}
	for i := range rapid.IntRange(0, 4).Draw(t, "rows") {
		s.Rows = append(s.Rows, row(i))
	}
	return s
}

func TestWhateverASessionIsItsMessagesAreKeptOnceAndItsHangEnds(t *testing.T) {
	rapidtest.Check(t, func(t *rapid.T) {
		s := drawn(t)
		v := stuck.Judge(now, s)
		lost := false
		for _, row := range s.Rows {
			lost = lost || row.Fence > mine
		}
		if v.Act != stuck.Leave && (!s.Running || s.Woken && !lost || v.Because == "") {
			t.Fatalf("%+v", v)
		}

		// Each row has one end: left in process, or given back once.
		given := map[string]stuck.Reset{}
		for _, reset := range v.Rows {
			if _, twice := given[reset.ID]; twice || reset.Reason == "" || reset.Dead != reset.Due.IsZero() || reset.Dead && reset.Tries < stuck.TriesMax {
				t.Fatalf("%+v in %+v", reset, v)
			}
			if reset.Due.After(wall.Add(stuck.Backoff(stuck.TriesMax))) {
				t.Fatalf("%s waits until %s", reset.ID, reset.Due)
			}
			given[reset.ID] = reset
		}
		for _, row := range s.Rows {
			reset, back := given[row.ID]
			want := !lost && (row.Fence < mine || !s.Running || v.Act == stuck.Kill)
			if back != want {
				t.Fatalf("%s is given back: %t, in %+v", row.ID, back, v)
			}
			if back && reset.Tries != row.Tries+1 && !(row.Pushed && row.Fence == mine && reset.Tries == row.Tries && reset.Due.Equal(wall)) {
				t.Fatalf("%s has %d tries after %d", row.ID, reset.Tries, row.Tries)
			}
		}

		// What speaks is not killed.
		quiet := len(s.Tools) > 0 || up-s.Event > stuck.ClaimGrace || s.Event > up
		if s.Running && !lost && !quiet && v.Act != stuck.Leave {
			t.Fatalf("an agent that has just spoken: %+v", v)
		}

		// What stays as it is does not stay for ever, whatever it looks like.
		for _, wait := range []time.Duration{0, stuck.InterruptGrace} {
			s.Woken = false
			v = stuck.Judge(stuck.Now{Up: up + stuck.ToolBudgetMax + 4*time.Hour + stuck.WaitMax + wait, Wall: wall}, s)
			if v.Act == stuck.Interrupt {
				s.Interrupted = up + stuck.ToolBudgetMax + 4*time.Hour + stuck.WaitMax
			}
		}
		if s.Running && v.Act != stuck.Kill {
			t.Fatalf("a session that hangs is never ended: %+v of %+v", v, s)
		}
	})
}
