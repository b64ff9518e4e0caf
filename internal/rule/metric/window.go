package metric

import (
	"slices"
	"time"
)

const (
	windowMax   = 1024 // samples of one measure that percentiles are taken of
	recentMax   = 5    // samples that a rule looks at
	verdictsMax = 100  // verdicts that the rate of failures is taken of
)

// window keeps the last windowMax samples of one measure.
type window struct {
	count   int64 // ever
	samples []time.Duration
	next    int // where the oldest is overwritten, once it is full
}

func (w *window) add(d time.Duration) {
	w.count++
	if len(w.samples) < windowMax {
		w.samples = append(w.samples, d)
		return
	}
	w.samples[w.next] = d
	w.next = (w.next + 1) % windowMax
}

// recent fills out with the newest samples, newest first, and returns those there are.
func (w *window) recent(out *[recentMax]time.Duration) []time.Duration {
	n := min(len(w.samples), recentMax)
	for i := range n {
		out[i] = w.samples[(w.next-1-i+2*len(w.samples))%len(w.samples)]
	}
	return out[:n]
}

// Percentiles are exact: each is a sample, by nearest rank.
type Percentiles struct{ P50, P95, P99, Max time.Duration }

// percentiles sorts its argument.
func percentiles(samples []time.Duration) Percentiles {
	n := len(samples)
	if n == 0 {
		return Percentiles{}
	}
	slices.Sort(samples)
	at := func(percent int) time.Duration { return samples[max((n*percent+99)/100, 1)-1] }
	return Percentiles{P50: at(50), P95: at(95), P99: at(99), Max: samples[n-1]}
}

// verdicts keeps whether the last verdictsMax checkpoints failed.
type verdicts struct {
	judged, failed int
	last           [verdictsMax]bool
	next           int
}

func (v *verdicts) add(failed bool) {
	if v.judged == verdictsMax {
		if v.last[v.next] {
			v.failed--
		}
	} else {
		v.judged++
	}
	if failed {
		v.failed++
	}
	v.last[v.next] = failed
	v.next = (v.next + 1) % verdictsMax
}
