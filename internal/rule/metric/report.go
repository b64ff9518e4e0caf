package metric

import (
	"maps"
	"slices"
	"time"

	"sallyport/internal/base/id"
)

// Row is one measure as a person reads it. Percentiles and Max are of the last samples,
// Count is of all since the daemon began.
type Row struct {
	Measure Measure
	Count   int64
	Window  int // samples that the percentiles are of
	Percentiles
	Target  time.Duration // for the 95th percentile; zero = nothing is promised
	Maximum time.Duration // for every sample
}

// Verdict is whether a measure keeps what it is held to.
type Verdict string

const (
	NoData      Verdict = "no data"
	NoTarget    Verdict = "-"
	OnTarget    Verdict = "on target"
	Slow        Verdict = "slow"         // over the target
	OverMaximum Verdict = "over maximum" // a sample of the window
)

// Verdict compares the 95th percentile with the target, and the longest with the maximum.
func (r Row) Verdict() Verdict {
	switch {
	case r.Count == 0:
		return NoData
	case r.Target == 0:
		return NoTarget
	case r.Max > r.Maximum:
		return OverMaximum
	case r.P95 > r.Target:
		return Slow
	}
	return OnTarget
}

// Count is how often something happened.
type Count struct {
	Name  string
	Count int64
}

// Report is all figures at one time.
type Report struct {
	Alerts           []Alert
	Rows             []Row
	Counts           []Count // by name
	Running, Waiting int     // sessions
	QueueDepth       int
	UpperBytes       int64
	WatchBytes       int64
	Process          Process
}

// Report returns all figures at one time.
func (s *Set) Report() Report {
	if s == nil {
		return Report{}
	}
	s.look()
	s.mu.Lock()
	t := s.figures.totals()
	r := Report{
		Alerts: s.standing(), Running: s.running, Waiting: s.waiting,
		QueueDepth: t.queue, UpperBytes: t.upper, WatchBytes: t.memory, Process: s.process,
	}
	var samples [measures][]time.Duration
	for i, st := range standards {
		samples[i] = slices.Clone(s.windows[i].samples)
		r.Rows = append(r.Rows, Row{Measure: st.Measure, Count: s.windows[i].count, Window: len(samples[i]), Target: st.target, Maximum: st.maximum})
	}
	for _, name := range slices.Sorted(maps.Keys(s.counts)) {
		r.Counts = append(r.Counts, Count{name, s.counts[name]})
	}
	s.mu.Unlock()
	for i := range r.Rows { // sorted outside of the lock: who measures does not wait for who reads
		r.Rows[i].Percentiles = percentiles(samples[i])
	}
	return r
}

// Of returns the numbers of one change; false if none are kept.
func (s *Set) Of(change id.Change) (Figures, bool) {
	if s == nil {
		return Figures{}, false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	e, ok := s.figures.of[change]
	if !ok {
		return Figures{}, false
	}
	return e.Figures, true
}
