package metric

import (
	"time"

	"sallyport/internal/base/id"
)

// Alert is a figure that is over its limit.
type Alert struct {
	Name    string
	Text    string    // for a person
	Since   time.Time // when it was raised
	Lasted  time.Duration
	Change  id.Change // the one it is about; "" = the host as a whole
	Figure  float64   // the last over the limit, in Unit
	Limit   float64
	Unit    string // seconds, percent, bytes, events, descriptors
	Cleared bool   // said once, when it is over
}

// judge holds every figure against every rule; called under the lock.
func (s *Set) judge() {
	v := view{failed: s.verdicts.failed, judged: s.verdicts.judged, totals: s.figures.totals(), process: s.process, spent: s.spent}
	for i := range s.windows {
		v.recent[i] = s.windows[i].recent(&s.recents[i])
	}
	for i := range rules {
		f := rules[i].judge(v, s.raised[i] != nil)
		switch {
		case f.fires && s.raised[i] == nil:
			s.raised[i] = &Alert{Name: rules[i].Name, Text: rules[i].text(f), Since: s.Now(), Change: f.change, Figure: f.figure,
				Limit: rules[i].Limit, Unit: rules[i].Unit}
			s.alerts.WithLabelValues(rules[i].Name).Set(1)
			s.untold = append(s.untold, *s.raised[i])
		case f.fires && f.figure > 0 && (f.figure != s.raised[i].Figure || f.change != s.raised[i].Change):
			s.raised[i].Figure, s.raised[i].Change, s.raised[i].Text = f.figure, f.change, rules[i].text(f)
		case !f.fires && s.raised[i] != nil:
			over := *s.raised[i]
			over.Cleared = true
			s.raised[i] = nil
			s.alerts.WithLabelValues(over.Name).Set(0)
			s.untold = append(s.untold, over)
		}
	}
}

// tell hands out what is untold, in order. Who finds somebody telling leaves it to them, so
// that a callback that records does not wait for itself.
func (s *Set) tell() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.telling {
		return
	}
	s.telling = true
	for len(s.untold) > 0 {
		next := s.untold[0]
		s.untold = s.untold[1:]
		if s.Alert == nil {
			continue
		}
		s.mu.Unlock()
		s.Alert(next)
		s.mu.Lock()
	}
	s.telling, s.untold = false, nil
}

// Alerts returns what is raised now, by name of the rule.
func (s *Set) Alerts() []Alert {
	if s == nil {
		return nil
	}
	s.look()
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.standing()
}

func (s *Set) standing() []Alert {
	out := []Alert{}
	for _, a := range s.raised {
		if a != nil {
			standing := *a
			standing.Lasted = max(s.Now().Sub(a.Since), 0) // by the monotonic clock, where there is one
			out = append(out, standing)
		}
	}
	return out
}
