package daemon

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// TestAHostComesToRestBeforeAnotherTakesItsPlace holds the order of a hand-over: turns end, then what they said leaves; and what does not
// come about is taken back.
func TestAHostComesToRestBeforeAnotherTakesItsPlace(t *testing.T) {
	for _, c := range []struct{ turn, until time.Duration }{{0, 0}, {30 * time.Second, 30 * time.Second}, {time.Hour, restMax}} {
		synctest.Test(t, func(t *testing.T) {
			began := time.Now()
			var did []string
			note := func(what string) { did = append(did, what+" "+time.Since(began).Round(time.Second).String()) }
			resume := resting{
				hold: func() func() { note("hold"); return func() { note("goes on") } },
				turns: func() int {
					if time.Since(began) < c.turn {
						return 1
					}
					return 0
				},
				flush: func(context.Context) func() {
					note("flush")
					time.Sleep(10 * time.Second)
					return func() { note("speaks on") }
				},
			}.rest(t.Context())
			resume()
			end := (c.until + 10*time.Second).String()
			if want := []string{"hold 0s", "flush " + c.until.String(), "speaks on " + end, "goes on " + end}; !slices.Equal(did, want) {
				t.Errorf("%q, not %q", did, want)
			}
		})
	}
}
