package trial_test

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"sallyport/internal/base/deadman"
	"sallyport/internal/base/rapidtest"
	"sallyport/internal/path/trial"
	"sallyport/internal/rule/trust"
	"sallyport/internal/who/group"
)

var start = deadman.Moment{Wall: time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC), Boot: "one", Up: time.Hour}

func later(d time.Duration) deadman.Moment {
	return deadman.Moment{Wall: start.Wall.Add(d), Boot: start.Boot, Up: start.Up + d}
}

func TestATargetHasTwoMinutesToComeUpOrWhatItsWordsAllow(t *testing.T) {
	probe := trust.Probe{HTTP: "http://127.0.0.1/"}
	for name, c := range map[string]struct {
		t      trust.Target
		length time.Duration
		want   time.Duration
	}{
		"nothing said":             {trust.Target{Restart: "r", Probe: probe}, 0, 2 * time.Minute},
		"a short trial":            {trust.Target{Restart: "r", Probe: probe}, 10 * time.Second, 2 * time.Minute},
		"a long trial":             {trust.Target{}, 5 * time.Minute, 5 * time.Minute},
		"a slow restart":           {trust.Target{Restart: "r", Within: 2 * time.Minute, Probe: probe}, 0, 2 * (2*time.Minute + 33*time.Second)},
		"a quick restart":          {trust.Target{Restart: "r", Within: time.Second}, 0, 2 * time.Minute},
		"slower than the cap":      {trust.Target{Restart: "r", Within: 10 * time.Minute, Probe: probe}, time.Minute, trust.TrialMax},
		"a probe with its own way": {trust.Target{Probe: trust.Probe{Command: "c", Within: 2 * time.Minute}}, 0, 2 * (2*time.Minute + 3*time.Second)},
	} {
		if got := trial.Begin("chg-1", "lnd-1", c.t, c.length, start); got.Expires.In != c.want || got.Expires.Set != start || got.Handshake != trial.PendingRestart {
			t.Errorf("%s: %s, not %s", name, got.Expires.In, c.want)
		}
	}
}

func TestAskingAndHearingMoveTheDeadline(t *testing.T) {
	two := trial.Begin("chg-1", "lnd-1", trust.Target{Restart: "r"}, 2*time.Minute, start)
	short := trial.Begin("chg-1", "lnd-1", trust.Target{Restart: "r"}, 10*time.Second, start)
	long := trial.Begin("chg-1", "lnd-1", trust.Target{Restart: "r"}, 9*time.Minute, start)
	for name, c := range map[string]struct {
		t    trial.Trial
		want time.Duration
	}{
		"asked, and nobody is there":             {two.Asked(later(30 * time.Second)), 2 * time.Minute},
		"a short one, and nobody is there":       {short.Asked(later(30 * time.Second)), 40 * time.Second},
		"heard a minute later":                   {two.Asked(later(30 * time.Second)).Heard(later(90 * time.Second)), 3*time.Minute + 30*time.Second},
		"heard twice":                            {two.Asked(later(30 * time.Second)).Heard(later(40 * time.Second)).Heard(later(90 * time.Second)), 2*time.Minute + 40*time.Second},
		"heard too late":                         {two.Asked(later(30 * time.Second)).Heard(later(2 * time.Minute)), 2 * time.Minute},
		"heard before it was asked":              {two.Heard(later(time.Minute)), 2 * time.Minute},
		"no delivery moves it past the cap":      {long.Asked(later(3 * time.Minute)).Heard(later(4 * time.Minute)), trust.TrialMax},
		"asked just before the end, heard after": {two.Asked(later(119 * time.Second)).Heard(later(119 * time.Second)), 239 * time.Second},
	} {
		if c.t.Expires.In != c.want {
			t.Errorf("%s: %s, not %s", name, c.t.Expires.In, c.want)
		}
	}
}

// TestNothingMovesADeadlinePastTheCap is I6 for every order of what can happen, whatever the clocks say.
func TestNothingMovesADeadlinePastTheCap(t *testing.T) {
	rapidtest.Check(t, func(t *rapid.T) {
		seconds := func(name string, from, to int) time.Duration {
			return time.Duration(rapid.IntRange(from, to).Draw(t, name)) * time.Second
		}
		is := trial.Begin("chg-1", "lnd-1", trust.Target{Restart: "r", Within: seconds("within", 0, 600)}, seconds("length", 0, 600), start)
		for range rapid.IntRange(0, 6).Draw(t, "events") {
			now := later(seconds("at", -900, 900))
			now.Wall = now.Wall.Add(seconds("moved", -3600, 3600))
			now.Boot = rapid.SampledFrom([]string{"one", "two"}).Draw(t, "boot")
			before := is
			if is.Handshake == trial.PendingRestart && rapid.Bool().Draw(t, "asked") {
				is = is.Asked(now)
				if is.Expires.In > before.Expires.In {
					t.Fatalf("asking gave time: %s after %s", is.Expires.In, before.Expires.In)
				}
			} else {
				is = is.Heard(now)
			}
			if is.Expires.In > trust.TrialMax || is.Expires.Set != is.Started || is.Started != start {
				t.Fatalf("%+v", is)
			}
			if before.Expires.Left(now) == 0 && is.Expires.Left(now) > 0 {
				t.Fatalf("what was over is open again: %+v, then %+v", before, is)
			}
		}
	})
}

// Who is asked is told what was restarted and probed, and nothing else.
func TestTheQuestionSaysWhatWasRestartedAndProbed(t *testing.T) {
	const restart = "systemctl restart web"
	probe := trust.Probe{HTTP: "http://127.0.0.1/"}
	for want, on := range map[string]trust.Target{
		"I'm back with the new version. ":                                                           {Restart: restart, Probe: probe},
		"It has landed and was restarted; nothing asked whether it answers. ":                       {Restart: restart},
		"It has landed, and answers; nothing restarted it. ":                                        {Probe: probe},
		"It has landed, and nothing was restarted or probed: the trial waits for your word alone. ": {},
	} {
		if got := (trial.Trial{Target: on}).Question(); got != want+"Reply `confirm` to keep it, or `rollback` to revert." {
			t.Errorf("of %+v it says %q", on, got)
		}
	}
}

func TestATargetThatRestartsComesUpTwiceBeforeAnybodyIsAsked(t *testing.T) {
	for _, test := range []struct {
		on   trust.Target
		asks time.Duration
		want int
	}{
		{trust.Target{Probe: trust.Probe{HTTP: "http://127.0.0.1/"}}, time.Minute, 1},
		{trust.Target{Restart: "systemctl restart web"}, 0, 2},
		{trust.Target{Group: "echo"}, time.Minute, 2},
		{trust.Target{Group: "echo"}, 0, 1}, // it goes back
		{trust.Target{Host: true}, time.Minute, 2},
	} {
		if got := (trial.Trial{Target: test.on, Length: test.asks}).RestartsWanted(); got != test.want {
			t.Errorf("%+v: %d times, not %d", test, got, test.want)
		}
	}
}

func TestWhatWentBackSaysWhy(t *testing.T) {
	for want, on := range map[string]trial.Trial{
		"Rolled back to previous version — confirmation timed out.": {Reason: trial.Timeout, TimedOut: true},
		"Rolled back to previous version — the probe said no":       {Reason: "the probe said no"},
		"Rolled back to previous version — deadman timeout":         {Reason: trial.Timeout}, // somebody's own words
	} {
		if got := on.Said(); got != want {
			t.Errorf("%q, not %q", got, want)
		}
	}
}

func TestConfirmedAndRolledBackAreTheOnlyDecisions(t *testing.T) {
	for h, want := range map[trial.Handshake]bool{
		trial.PendingRestart: false, trial.Message1Sent: false, trial.Confirmed: true, trial.RolledBack: true, "": false, "confirm": false,
	} {
		if h.Decided() != want {
			t.Errorf("%q is decided: %v", h, !want)
		}
	}
}

// A first delivery counts also on a clock that was put back, and nothing is asked before the start.
func TestWhenMessageOneWasDeliveredIsKept(t *testing.T) {
	two := trial.Begin("chg-1", "lnd-1", trust.Target{Restart: "r"}, 2*time.Minute, start)
	heard := two.Asked(later(30 * time.Second)).Heard(later(time.Minute))
	if heard.Delivered == nil || !heard.Delivered.Equal(start.Wall.Add(time.Minute)) {
		t.Errorf("delivered at %v", heard.Delivered)
	}
	if again := heard.Heard(later(90 * time.Second)); !again.Delivered.Equal(*heard.Delivered) || again.Expires != heard.Expires {
		t.Errorf("a second delivery counts: %+v", again)
	}
	if early := two.Asked(later(-time.Hour)); early.Expires.In != two.Length {
		t.Errorf("asked before the start it has %s", early.Expires.In)
	}
}

func TestALandingCountsAtOnceWhereNothingIsTried(t *testing.T) {
	for terms, want := range map[trial.Terms]bool{
		{}:                                    true,
		{Length: time.Minute}:                 false,
		{Target: trust.Target{Restart: "r"}}:  false,
		{Target: trust.Target{Group: "echo"}}: false,
	} {
		if terms.None() != want {
			t.Errorf("%+v counts at once: %t", terms, !want)
		}
	}
}

// TestAGroupRunsItsOldFilesFromTheDecisionOnUntilTheyLieThereAgain holds what follows from the row alone.
func TestAGroupRunsItsOldFilesFromTheDecisionOnUntilTheyLieThereAgain(t *testing.T) {
	leaving := trial.Trial{Target: trust.Target{Group: "echo"}, Handshake: trial.RolledBack}
	for name, c := range map[string]struct {
		of     group.Folder
		change func(*trial.Trial)
		want   bool
	}{
		"it goes back":         {"echo", func(*trial.Trial) {}, true},
		"another group":        {"other", func(*trial.Trial) {}, false},
		"a repository's trial": {"", func(is *trial.Trial) { is.Target.Group = "" }, false},
		"it is on trial":       {"echo", func(is *trial.Trial) { is.Handshake = trial.PendingRestart }, false},
		"it went back":         {"echo", func(is *trial.Trial) { is.Restored = true }, false},
	} {
		is := leaving
		c.change(&is)
		if is.Leaves(c.of) != c.want {
			t.Errorf("%s: %t", name, !c.want)
		}
	}
}
