package live

import (
	"context"
	"errors"
	"testing"

	"sallyport/internal/path/change"
	"sallyport/internal/path/checkpoint"
	"sallyport/internal/port/sandbox"
	"sallyport/internal/rule/metric"
)

// stubborn stands and goes as it is told to fail.
type stubborn struct {
	sandbox.Process
	freeze, thaw error
}

func (s *stubborn) Freeze(context.Context) error { return s.freeze }
func (s *stubborn) Thaw() error                  { return s.thaw }

func TestEveryStopAndGoIsMeasuredAndAGoWithoutAStopIsNone(t *testing.T) {
	meter := metric.New(metric.Options{})
	wall := errors.New("it does not stand")
	inner := &stubborn{}
	p := &measured{Process: inner, meter: meter, change: "chg-00000001"}
	check := func(when string, pauses, failed int, resumes ...int64) {
		t.Helper()
		f, _ := meter.Of("chg-00000001")
		got := map[string]int64{}
		for _, c := range meter.Report().Counts {
			got[c.Name] = c.Count
		}
		if f.Pauses != pauses || f.PausesFailed != failed || got["resumes ok"] != resumes[0] || got["resumes failed"] != resumes[1] {
			t.Errorf("%s: %+v, %v", when, f, got)
		}
	}
	if err := p.Freeze(t.Context()); err != nil {
		t.Error(err)
	}
	check("it stands", 1, 0, 0, 0)
	if err := p.Thaw(); err != nil {
		t.Error(err)
	}
	if err := p.Thaw(); err != nil {
		t.Error(err)
	}
	check("it goes, told twice", 1, 0, 1, 0)
	inner.freeze = wall
	if err := p.Freeze(t.Context()); !errors.Is(err, wall) {
		t.Errorf("got %v", err)
	}
	if err := p.Thaw(); err != nil {
		t.Error(err)
	}
	check("it did not stand", 2, 1, 1, 0)
	inner.freeze, inner.thaw = nil, wall
	_ = p.Freeze(t.Context())
	if err := p.Thaw(); !errors.Is(err, wall) {
		t.Errorf("got %v", err)
	}
	check("it does not go", 3, 1, 1, 1)
	inner.thaw = nil
	if err := p.Thaw(); err != nil {
		t.Error(err)
	}
	check("it goes after all", 3, 1, 2, 1)
}

func TestEveryStateAndTriggerHasAWordInAScrape(t *testing.T) {
	meter := metric.New(metric.Options{})
	for _, state := range change.States() {
		meter.Moved("chg-00000001", string(state), false, false)
	}
	for _, why := range []checkpoint.Trigger{checkpoint.AtEnd, checkpoint.OnDemand, checkpoint.Interval, checkpoint.Changes, checkpoint.Interrupted, checkpoint.Restored} {
		for _, status := range []checkpoint.Status{checkpoint.Valid, checkpoint.Invalid, checkpoint.Skipped} {
			meter.Taking("chg-00000001", string(why)).Done(string(status), nil)
		}
	}
	families, err := meter.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			for _, l := range m.GetLabel() {
				if l.GetValue() == "other" {
					t.Errorf("%s: a %s has no word of its own", f.GetName(), l.GetName())
				}
			}
		}
	}
}
