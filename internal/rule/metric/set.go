package metric

import (
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"sallyport/internal/base/id"
	"sallyport/internal/rule/budget"
)

// Options are what a Set depends on; the zero value serves.
type Options struct {
	// Alert hears of every alert once when it is raised and once when it is cleared, one
	// after the other in that order. It may call the Set.
	Alert func(Alert)
	// Process reads what the daemon holds; nil reads /proc.
	Process func() (Process, error)
	// Budgets reads how much of the budgets of all changes together is used; nil: only what Spent says.
	Budgets func() ([]budget.Share, error)
	// Now is the clock that dates an alert; nil is time.Now. Nothing is decided by it.
	Now func() time.Time
}

// Set counts for one daemon. Make it with New; a nil Set counts nothing.
type Set struct {
	Options
	registry *prometheus.Registry
	series

	mu       sync.Mutex
	windows  [measures]window
	recents  [measures][recentMax]time.Duration // room for judge
	verdicts verdicts
	figures  figures
	running  int
	waiting  int
	process  Process
	spent    Shares   // of the budgets of all changes together
	raised   []*Alert // by rule; nil = not raised
	untold   []Alert
	telling  bool // somebody tells what is untold
	counts   map[string]int64
}

// measures is how many there are.
const measures = 8

// New returns a Set with a registry of its own.
func New(o Options) *Set {
	if o.Process == nil {
		o.Process = readProcess
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	s := &Set{
		Options: o, registry: prometheus.NewRegistry(), series: newSeries(),
		figures: figures{of: map[id.Change]*entry{}}, raised: make([]*Alert, len(rules)), counts: map[string]int64{},
	}
	s.register(s.registry)
	return s
}

// observe records one length of time and judges it. Less than nothing is no measurement:
// it is counted apart.
func (s *Set) observe(m Measure, d time.Duration) {
	i := slices.IndexFunc(standards, func(st standard) bool { return st.Measure == m })
	if d < 0 {
		s.refused.Inc()
		return
	}
	s.seconds[i].Observe(d.Seconds())
	s.windows[i].add(d)
}

// record does something to the figures under the lock, judges them, and tells who listens.
func (s *Set) record(do func()) {
	if s == nil {
		return
	}
	s.mu.Lock()
	do()
	s.judge()
	untold := len(s.untold) > 0
	s.mu.Unlock()
	if untold {
		s.tell()
	}
}

// count adds one to a series and to what stats shows under the same name.
func (s *Set) count(name string, series prometheus.Counter) {
	s.counts[name]++
	series.Inc()
}

// Gather returns every figure as Prometheus wants it; it is what a scrape reads.
func (s *Set) Gather() ([]*dto.MetricFamily, error) {
	if s == nil {
		return nil, nil
	}
	s.look()
	return s.registry.Gather()
}

// look reads what the daemon holds, judges all figures, and sets the gauges to them.
func (s *Set) look() {
	process, err := s.Process()
	var shares []budget.Share
	unread := s.Budgets == nil
	if !unread {
		var failed error
		shares, failed = s.Budgets()
		unread = failed != nil
	}
	s.record(func() {
		if !unread {
			_, s.spent = sharesOf(shares).split()
		}
		if err == nil {
			s.process = process
		}
		s.figures.settle()
		t := s.figures.totals()
		for gauge, v := range map[prometheus.Gauge]float64{
			s.queue: float64(t.queue), s.upper: float64(t.upper), s.upperMost: float64(t.upperMax),
			s.held: float64(t.memory), s.heldMost: float64(t.memoryMax),
			s.sessions.WithLabelValues("running"): float64(s.running), s.sessions.WithLabelValues("waiting"): float64(s.waiting),
			s.resident: float64(s.process.ResidentBytes), s.descriptors: float64(s.process.Descriptors),
		} {
			gauge.Set(v)
		}
		for i, name := range budget.Names {
			s.budgets.WithLabelValues(string(name)).Set(max(t.shares[i], s.spent[i]) / 100)
		}
	})
}
