package cli

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"sallyport/internal/base/problem"
	"sallyport/internal/door/api"
)

// trying is a daemon with a change on trial that asks a person; decide moves it on when something is told.
func trying(t *testing.T, decide func(call string) api.Detail) *daemon {
	d := newDaemon(t)
	d.accepted = api.Change{ID: "chg-00000001", Text: "do"}
	d.detail = onTrial()
	d.notices = []api.Notice{{Seq: 1, Kind: "state", State: "working"}, {Seq: 2, Kind: "state", State: "in_trial"},
		{Seq: 3, Kind: "trial", Text: d.detail.Change.Trial.Say}}
	d.hold = make(chan struct{})
	open := true
	d.after = func(call string) {
		if decide != nil && open {
			d.detail, open = decide(call), false
			close(d.hold)
		}
	}
	t.Cleanup(func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		if open {
			close(d.hold)
		}
	})
	return d
}

func TestAtATerminalATrialAsksAndAWholeWordDecides(t *testing.T) {
	d := trying(t, func(string) api.Detail { return finalized() })
	s := d.sit(t, "run", "--request", "do", "--", "true")
	s.see("I'm back with the new version")
	s.see(`confirm or rollback\? .*\(1m(30|29)s left\) > `)
	s.press("keep\n")
	s.see("nothing was decided: answer confirm, rollback or later")
	s.press("\n")
	s.see(`confirm or rollback\? `)
	s.press("connx\x7f\x7f\x7fnfirm")
	s.see("> confirm")
	if told := d.told(); told != "" {
		t.Errorf("told %q before the line was whole", told)
	}
	s.press("\n")
	s.see("on main as cafe01234567")
	if code := s.leaves(); code != exitDone || d.told() != "confirm chg-00000001" {
		t.Errorf("exit %d told %q", code, d.told())
	}
}

func TestAtATerminalATrialCanBeRolledBackAtOnce(t *testing.T) {
	d := trying(t, func(string) api.Detail { return wentBack("asked for at the terminal") })
	s := d.sit(t, "change", "watch", "chg-00000001")
	s.see(`confirm or rollback\?`)
	s.press("r\n")
	s.see("Rolled back to previous version — asked for at the terminal")
	if code := s.leaves(); code != exitRolledBack || d.told() != `rollback {"reason":"asked for at the terminal","approve":"later"}` {
		t.Errorf("exit %d told %q", code, d.told())
	}
}

func TestLeavingATrialsQuestionDecidesNothingAndSaysHowToAnswer(t *testing.T) {
	for _, keys := range []string{"later\n", "\x03", "\x04"} {
		d := trying(t, nil)
		s := d.sit(t, "run", "--request", "do", "--", "true")
		s.see(`confirm or rollback\?`)
		s.press(keys)
		s.see(`1m(30|29)s left, then sallyport rolls it back`)
		s.see("next: sallyport confirm chg-00000001")
		if code := s.leaves(); code != exitWaiting || d.told() != "" {
			t.Errorf("%q: exit %d told %q", keys, code, d.told())
		}
	}
}

func TestATrialDecidedWhileAPersonIsAskedTakesTheQuestionAway(t *testing.T) {
	d := trying(t, func(string) api.Detail { return wentBack("confirmation timed out.") })
	d.lost = problem.Errorf(problem.Conflict, "sallyport change show chg-00000001", "chg-00000001 was rolled back already: deadman timeout")
	s := d.sit(t, "change", "watch", "chg-00000001")
	s.see(`confirm or rollback\?`)
	s.press("c\n")
	s.see("was rolled back already: deadman timeout")
	s.see("Rolled back to previous version — confirmation timed out.")
	if code := s.leaves(); code != exitRolledBack {
		t.Errorf("exit %d", code)
	}

	// Nobody answers, and the time is over: the question goes and the outcome is told.
	d = trying(t, func(string) api.Detail { return wentBack("confirmation timed out.") })
	s = d.sit(t, "change", "watch", "chg-00000001")
	s.see(`confirm or rollback\?`)
	d.note("the time is over")
	s.see("Rolled back to previous version — confirmation timed out.")
	if code := s.leaves(); code != exitRolledBack {
		t.Errorf("exit %d", code)
	}
}

// Where nobody can be asked, and where it was approved beforehand, run ends when a trial asks.
func TestRunEndsWaitingWhenATrialAsksAndNobodyIsThere(t *testing.T) {
	d := trying(t, nil)
	got := d.cli("run", "--request", "do", "--approve", "yes", "--trial", "90s", "--", "true")
	if got.code != exitWaiting || !strings.Contains(got.out, "waits for a person: 1m30s left, then sallyport rolls it back") ||
		!strings.Contains(got.out, "rollback: sallyport rollback chg-00000001\nnext: sallyport confirm chg-00000001\n") {
		t.Errorf("exit %d\n%s", got.code, got.out)
	}
	if d.run.TrialMS == nil || *d.run.TrialMS != 90_000 {
		t.Errorf("asked for %v", d.run.TrialMS)
	}

	d = trying(t, nil)
	s := d.sit(t, "run", "--request", "do", "--approve", "yes", "--trial", "0", "--", "true")
	s.see("next: sallyport confirm chg-00000001")
	if code := s.leaves(); code != exitWaiting {
		t.Errorf("exit %d", code)
	}
	if d.sync(); d.run.TrialMS == nil || *d.run.TrialMS != 0 {
		t.Errorf("--trial 0 asked for %v", d.run.TrialMS)
	}

	d = trying(t, nil)
	got = d.cli("run", "--json", "--request", "do", "--approve", "yes", "--", "true")
	lines := strings.Split(strings.TrimSpace(got.out), "\n")
	var last event
	if err := json.Unmarshal([]byte(lines[len(lines)-1]), &last); err != nil || last.Event != "result" || *last.Exit != exitWaiting ||
		last.Detail.Change.Trial.Handshake != api.Message1Sent || last.Detail.Change.Trial.LeftMS != 90_500 {
		t.Errorf("%v %s", err, got.out)
	}
	if d.sync(); d.run.TrialMS != nil {
		t.Errorf("without --trial %d was asked for", *d.run.TrialMS)
	}
}

// The trial may ask by the time that its state is told: the question still comes before the command ends.
func TestWhoLeavesATrialIsToldItsQuestionFirst(t *testing.T) {
	d := trying(t, nil)
	d.looks = make(chan struct{}, 1)
	got := d.cli("run", "--request", "do", "--approve", "yes", "--", "true")
	if got.code != exitWaiting || strings.Count(got.err, "I'm back with the new version") != 1 {
		t.Errorf("exit %d\n%s%s", got.code, got.out, got.err)
	}
}

// Elsewhere a watch stays until the trial is decided: that happens by itself.
func TestWithoutATerminalAWatchSeesHowATrialEnds(t *testing.T) {
	d := trying(t, func(string) api.Detail { return wentBack("confirmation timed out.") })
	d.notices = append(d.notices, api.Notice{Seq: 4, Kind: "state", State: "rolled_back"})
	d.note("the time is over")
	d.notices[1].Text = d.notices[2].Text // who comes later is told by the state already
	got := d.cli("change", "watch", "chg-00000001")
	if strings.Count(got.err, "I'm back") != 1 {
		t.Errorf("said more than once, or never:\n%s", got.err)
	}
	if got.code != exitRolledBack || !strings.Contains(got.out, "chg-00000001 rolled back\nRolled back to previous version — confirmation timed out.\n") {
		t.Errorf("exit %d\n%s%s", got.code, got.out, got.err)
	}
}

func TestConfirmAndRollbackOfATrialFollowItToWhereItWasSent(t *testing.T) {
	d := trying(t, func(string) api.Detail { return finalized() })
	if got := d.cli("confirm", "chg-00000001"); got.code != exitDone || !strings.Contains(got.out, "landed on main") || d.told() != "confirm chg-00000001" {
		t.Errorf("exit %d %s%s told %q", got.code, got.out, got.err, d.told())
	}

	d = trying(t, func(string) api.Detail { return wentBack("too slow") })
	got := d.cli("rollback", "chg-00000001", "--reason", "too slow")
	if got.code != exitDone || !strings.Contains(got.out, "Rolled back to previous version — too slow") {
		t.Errorf("exit %d %s%s", got.code, got.out, got.err)
	}

	// What won meanwhile is no success of who asked for something else.
	d = trying(t, func(string) api.Detail { return wentBack("it answered, and then did not") })
	if got := d.cli("confirm", "chg-00000001"); got.code != exitRolledBack {
		t.Errorf("exit %d %s%s", got.code, got.out, got.err)
	}
	d = trying(t, nil)
	d.lost = problem.Errorf(problem.Conflict, "sallyport change show chg-00000001", "chg-00000001 was confirmed already, by ann")
	if got := d.cli("confirm", "chg-00000001"); got.code != exitError || !strings.Contains(got.err, "confirmed already, by ann\nnext: sallyport change show chg-00000001\n") {
		t.Errorf("exit %d %s%s", got.code, got.out, got.err)
	}
}

// A rollback that failed needs a person, though it is tried again: only who watches stays.
func TestARollbackThatFailedEndsACommandAndNotAWatch(t *testing.T) {
	d := trying(t, nil)
	d.notices = append(d.notices, api.Notice{Seq: 4, Kind: "state", State: "rollback_failed", Text: "the old version does not answer"},
		api.Notice{Seq: 5, Kind: "state", State: "rolled_back"})
	stuck := d.detail
	stuck.Change.State, stuck.Change.Problem, stuck.Change.Reason, stuck.Change.Next = api.RollbackFailed, "internal", "the old version does not answer", "sallyport target show"
	stuck.Change.Trial.Handshake = api.RolledBack
	d.detail = stuck
	got := d.cli("rollback", "chg-00000001")
	if got.code != exitError || !strings.Contains(got.err, "rollback_failed: the old version does not answer\nnext: sallyport target show") ||
		strings.Contains(got.err, "chg-00000001 rolled_back") {
		t.Errorf("exit %d %s%s", got.code, got.out, got.err)
	}
	notices := d.notices
	d = trying(t, func(string) api.Detail { return wentBack("confirmation timed out.") })
	d.notices = notices
	d.note("it was tried again")
	if got = d.cli("change", "watch", "chg-00000001"); got.code != exitRolledBack || !strings.Contains(got.err, "chg-00000001 rolled_back") {
		t.Errorf("exit %d %s%s", got.code, got.out, got.err)
	}
}

func TestATrialThatIsOverSaysWhoEndedItAndWhy(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.Local)
	for want, trial := range map[string]api.Trial{
		"\n  was rolled back by ann at 03:04:05: too slow: 3 s\n": {Handshake: "rolled_back", Say: "Rolled back", Reason: "too slow: 3 s"},
		"\n  is being rolled back by ann at 03:04:05: no\n":       {Handshake: "rolled_back", Reason: "no"},
		"\n  confirmed by ann at 03:04:05\n":                      {Handshake: api.Confirmed},
	} {
		d := newDaemon(t)
		d.detail = onTrial()
		trial.By, trial.At = &api.Actor{Name: "ann"}, &at
		d.detail.Change.Trial = &trial
		if got := d.cli("change", "show", "chg-00000001"); !strings.Contains(got.out, want) {
			t.Errorf("show lacks %q:\n%s", want, got.out)
		}
	}
}

func TestStatusListAndShowTellHowATrialStands(t *testing.T) {
	d := newDaemon(t)
	d.detail = onTrial()
	got := d.cli("status")
	if !strings.Contains(got.out, "waiting for you:") || !strings.Contains(got.out, "confirm or rollback? 1m30s left, then sallyport rolls it back") ||
		!strings.Contains(got.out, "next: sallyport confirm chg-00000001") {
		t.Errorf("status says\n%s", got.out)
	}
	if got = d.cli("change", "list"); !strings.Contains(got.out, "in_trial, 1m30s left") {
		t.Errorf("list says\n%s", got.out)
	}
	got = d.cli("change", "show", "chg-00000001")
	for _, want := range []string{"its trial:", "restart: ./restart; answered after 2 restarts", "probe:   http://127.0.0.1:8080/health", "I'm back", "rollback: sallyport rollback chg-00000001", "next: sallyport confirm chg-00000001"} {
		if !strings.Contains(got.out, want) {
			t.Errorf("show lacks %q:\n%s", want, got.out)
		}
	}
	if got = d.cli("status", "--json"); !strings.Contains(got.out, `"handshake_state": "message1_sent"`) || !strings.Contains(got.out, `"left_ms": 90500`) {
		t.Errorf("status --json says\n%s", got.out)
	}

	d.detail.Change.Trial.Handshake = api.PendingRestart
	if got = d.cli("status"); !strings.Contains(got.out, "being worked on:") || !strings.Contains(got.out, "its target restarts and is probed; 1m30s left") {
		t.Errorf("status says\n%s", got.out)
	}
	d.detail = wentBack(hostile)
	if got = d.cli("change", "show", "chg-00000001"); !strings.Contains(got.out, "rolled back\nRolled back to previous version — ") || !strings.Contains(got.out, "  was rolled back by host at ") || strings.ContainsAny(got.out, "\x1b\a\x7f") {
		t.Errorf("show says\n%q", got.out)
	}
}

func TestTheQuestionIsOneLineHoweverNarrowTheTerminal(t *testing.T) {
	now := time.Now()
	q := &trialQuestion{due: now.Add(2 * time.Minute), typing: typing{typed: []byte("confirm")}}
	for _, columns := range []int{20, 40, 72, 120} {
		if got := q.prompt(now, columns); len([]rune(got)) >= columns || columns > 40 && !strings.HasSuffix(got, "> confirm") {
			t.Errorf("%d columns: %q", columns, got)
		}
	}
}

func TestWhatCanBeRolledBackIsListed(t *testing.T) {
	d := newDaemon(t)
	d.detail = finalized()
	ended := time.Now().Add(-time.Hour)
	d.detail.Landing.Ended, d.detail.Landing.Paths = &ended, 3
	got := d.cli("rollback", "--list")
	if got.code != exitDone || !strings.Contains(got.out, "chg-00000001  1h00m ago  cafe01234567  3      main    /repo       make the test pass") || d.told() != "list limit=60&state=finalized&state=in_trial" {
		t.Errorf("exit %d told %s\n%s%s", got.code, d.told(), got.out, got.err)
	}
	if got = d.cli("rollback", "--list", "--json"); !strings.Contains(got.out, `"commit": "cafe0123456789abcdef"`) {
		t.Errorf("in JSON\n%s", got.out)
	}
	d.detail.Landing = nil // it changed nothing
	if got = d.cli("rollback", "--list"); got.code != exitDone || got.out != "nothing has landed that could be rolled back\n" {
		t.Errorf("exit %d\n%s%s", got.code, got.out, got.err)
	}
}

// Who watches where nobody can be asked is told once until when a trial waits, and what ends it before.
func TestWhoWatchesATrialIsToldItsDeadlineAndTheWordsForIt(t *testing.T) {
	d := newDaemon(t)
	d.detail = onTrial()
	d.detail.Change.Dev, d.detail.Change.Group = "dev-greets", "echo"
	ask := api.Notice{Seq: 3, Kind: "trial", Text: d.detail.Change.Trial.Say}
	d.notices = []api.Notice{{Seq: 2, Kind: "state", State: "in_trial"}, ask, ask}
	got := d.cli("change", "watch", "chg-00000001")
	want := "waits for a person: 1m30s left, then sallyport rolls it back\n  rollback: sallyport rollback chg-00000001\n  or say:   confirm or rollback, in sallyport chat echo\nnext: sallyport confirm chg-00000001\n"
	if strings.Count(got.err, want) != 1 {
		t.Errorf("%s", got.err)
	}
	if got = d.cli("--json", "change", "watch", "chg-00000001"); strings.Contains(got.err+got.out, "waits for a person") {
		t.Errorf("in JSON: %s%s", got.out, got.err)
	}
}
