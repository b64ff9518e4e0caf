package metric

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"sallyport/internal/base/rapidtest"
)

func TestPercentilesAreOfTheLastSamplesAndExact(t *testing.T) {
	rapidtest.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 3*windowMax).Draw(t, "samples") // drawn one by one they would be few
		random := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		most := rapid.SampledFrom([]int64{1, 10, int64(time.Hour)}).Draw(t, "most") // few values, and many
		all := make([]int64, n)
		for i := range all {
			all[i] = random.Int64N(most)
		}
		var w window
		for _, d := range all {
			w.add(time.Duration(d))
		}
		last := all[max(len(all)-windowMax, 0):]
		if w.count != int64(len(all)) || len(w.samples) != len(last) {
			t.Fatalf("%d samples, %d kept of %d", w.count, len(w.samples), len(last))
		}
		var room [recentMax]time.Duration
		for i, d := range w.recent(&room) {
			if want := time.Duration(all[len(all)-1-i]); d != want {
				t.Fatalf("recent %d is %s, want %s", i, d, want)
			}
		}
		got := percentiles(slices.Clone(w.samples))
		for percent, p := range map[int]time.Duration{50: got.P50, 95: got.P95, 99: got.P99, 100: got.Max} {
			below, atMost := 0, 0 // by definition: so many of a hundred are at most p, and fewer are less
			for _, d := range last {
				if time.Duration(d) < p {
					below++
				}
				if time.Duration(d) <= p {
					atMost++
				}
			}
			if atMost*100 < percent*len(last) || below*100 >= percent*len(last) {
				t.Fatalf("p%d is %s: %d below, %d at most, of %d", percent, p, below, atMost, len(last))
			}
		}
	})
}

func TestTheRateOfFailuresIsOfTheLastVerdicts(t *testing.T) {
	rapidtest.Check(t, func(t *rapid.T) {
		all := rapid.SliceOfN(rapid.Bool(), 0, 3*verdictsMax).Draw(t, "failed")
		var v verdicts
		for _, failed := range all {
			v.add(failed)
		}
		want := 0
		last := all[max(len(all)-verdictsMax, 0):]
		for _, failed := range last {
			if failed {
				want++
			}
		}
		if v.judged != len(last) || v.failed != want {
			t.Fatalf("%d of %d, want %d of %d", v.failed, v.judged, want, len(last))
		}
	})
}
