package socket

import (
	"testing"
	"time"

	"sallyport/internal/base/deadman"
	"sallyport/internal/base/problem"
	"sallyport/internal/door/api"
	"sallyport/internal/door/client"
	"sallyport/internal/path/change"
	"sallyport/internal/path/trial"
	"sallyport/internal/rule/trust"
)

func TestALengthOfTrialArrivesAsAskedAndNoneStaysNone(t *testing.T) {
	v := &verbs{row: change.Row{ID: "chg-00000001", State: "requested"}}
	c, _ := serve(t, v)
	for _, ms := range []*int64{nil, new(int64), ptr(int64(90_000)), ptr(int64(-5)), ptr(int64(1 << 62))} {
		if _, err := client.Call(t.Context(), c, api.ChangeRun, api.Run{Dir: "/repo", Text: "do", Agent: "command", Argv: []string{"x"}, Approve: "later", TrialMS: ms}); err != nil {
			t.Fatal(err)
		}
		got := v.asked.Trial
		switch {
		case (ms == nil) != (got == nil):
			t.Errorf("%v arrived as %v", ms, got)
		case ms != nil && *ms >= 0 && *ms <= 90_000 && got.Milliseconds() != *ms:
			t.Errorf("%d ms arrived as %s", *ms, got)
		case ms != nil && (*ms < 0) != (*got < 0), ms != nil && *ms > 90_000 && *got < time.Hour:
			t.Errorf("%d ms arrived as %s", *ms, got) // what is out of bounds stays so
		}
	}
}

func ptr[T any](v T) *T { return &v }

func TestConfirmSaysWhoAndWhich(t *testing.T) {
	v := &verbs{}
	c, _ := serve(t, v)
	if err := client.Do(t.Context(), c, api.ChangeConfirm, api.Confirm{Of: "chg-00000001", Code: "ABCD"}); err != nil || v.last() != "confirm chg-00000001 ABCD" || v.by.Kind != "person" {
		t.Errorf("%v: %s by %+v", err, v.last(), v.by)
	}
	if err := client.Do(t.Context(), c, api.ChangeConfirm, api.Confirm{Of: "apr-00000001"}); problem.KindOf(err) != problem.Usage {
		t.Errorf("an approval was confirmed: %v", err)
	}
	v.err = errRefused
	if err := client.Do(t.Context(), c, api.ChangeConfirm, api.Confirm{Of: "chg-00000001", Code: "ABCD"}); problem.KindOf(err) != problem.Refused || problem.Of(err).Next == "" {
		t.Errorf("got %v", err)
	}
}

// What is left is told by the clock that nobody can set, in the list too; what was decided has none left.
func TestATrialIsToldWithTheTimeThatIsLeft(t *testing.T) {
	now, err := deadman.Now()
	if err != nil {
		t.Fatal(err)
	}
	now.Wall = now.Wall.Add(-24 * time.Hour) // somebody set the clock since
	v := &verbs{row: change.Row{ID: "chg-00000001", State: "in_trial"}, trial: &trial.Trial{
		Landing: "lnd-00000001", Handshake: trial.Message1Sent, Started: now, Expires: deadman.Deadline{Set: now, In: time.Minute}, Length: time.Minute,
		Target: trust.Target{Restart: "make \xff restart", Probe: trust.Probe{HTTP: "http://127.0.0.1:1/"}},
	}}
	c, _ := serve(t, v)
	d, err := client.Call(t.Context(), c, api.ChangeShow, "chg-00000001")
	if err != nil {
		t.Fatal(err)
	}
	got := d.Change.Trial
	if !got.Asks() || got.Left() > time.Minute || got.Left() < 30*time.Second || got.Say != trial.Message1 || got.Probe != "http://127.0.0.1:1/" || got.Restart != `make \xff restart` {
		t.Errorf("shown as %+v", got)
	}
	rows, err := client.Call(t.Context(), c, api.ChangeList, api.Filter{})
	if err != nil || len(rows) != 1 || !rows[0].Trial.Asks() {
		t.Errorf("listed as %+v, %v", rows, err)
	}

	v.trial.Handshake, v.trial.Reason, v.trial.TimedOut = trial.RolledBack, trial.Timeout, true
	if d, err = client.Call(t.Context(), c, api.ChangeShow, "chg-00000001"); err != nil || d.Change.Trial.LeftMS != 0 || d.Change.Trial.Say != "" || d.Change.Trial.Reason != trial.TimeoutWhy {
		t.Errorf("on its way back: %+v, %v", d.Change.Trial, err)
	}
	v.row.State = "rolled_back"
	if d, err = client.Call(t.Context(), c, api.ChangeShow, "chg-00000001"); err != nil || d.Change.Trial.Say != trial.TimeoutSay {
		t.Errorf("rolled back: %+v, %v", d.Change.Trial, err)
	}
	v.trial.Reason, v.trial.TimedOut = "too slow", false
	if d, err = client.Call(t.Context(), c, api.ChangeShow, "chg-00000001"); err != nil || d.Change.Trial.Say != "Rolled back to previous version — too slow" {
		t.Errorf("rolled back: %+v, %v", d.Change.Trial, err)
	}
}
