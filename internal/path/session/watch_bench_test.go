package session_test

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"
)

// BenchmarkWatch says how soon changes are told of at a pace, and that none is missed.
func BenchmarkWatch(b *testing.B) {
	b.Run("500 changes a second", func(b *testing.B) { paced(b, 500) })
	b.Run("5000 changes a second", func(b *testing.B) { paced(b, 5000) })
}

// paced writes new files at a rate and reports the time from a write to its telling, the
// share of a processor that the whole took, and what was missed.
func paced(b *testing.B, rate int) {
	s := stage(b, false, nil)
	touched, handled := make(chan struct{}, 1), []time.Duration(nil)
	busy, most := time.Duration(0), 0
	s.Handled = func(events int, took time.Duration) {
		handled, busy, most = append(handled, took), busy+took, max(most, events)
		select {
		case touched <- struct{}{}:
		default:
		}
	}
	w := start(b, s.Watched)
	var told []time.Duration
	total := min(2*rate, 10_000)
	began := time.Now()
	for i := range total {
		if wait := time.Until(began.Add(time.Duration(i) * time.Second / time.Duration(rate))); wait > 0 {
			<-time.After(wait)
		}
		at := time.Now()
		must(b, os.WriteFile(fmt.Sprintf("%s/f%d", s.Side, i), nil, 0o644))
		if i%50 == 0 {
			for w.Count() <= i {
				<-touched
			}
			told = append(told, time.Since(at))
		}
	}
	for w.Count() < total {
		<-touched
	}
	took := time.Since(began)
	slices.Sort(told)
	b.ReportMetric(float64(told[len(told)*99/100].Microseconds())/1000, "p99-ms")
	must(b, w.Close())
	slices.Sort(handled)
	b.ReportMetric(float64(handled[len(handled)*99/100].Microseconds())/1000, "handled-p99-ms")
	b.ReportMetric(100*float64(busy)/float64(took), "%busy")
	b.ReportMetric(float64(most), "queue-peak")
	if err := w.Health(); err != nil || strings.Count(strings.Join(w.Changed(), " "), "f") != total {
		b.Errorf("%d of %d, health %v", w.Count(), total, err)
	}
}
