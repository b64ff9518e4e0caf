package id

import (
	"strings"
	"testing"
	"time"
)

func TestAClockThatIsFarOffStillMakesIDs(t *testing.T) {
	for _, at := range []time.Time{{}, time.Unix(-1, 0), time.Unix(0, 0), time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)} {
		if got := recent(at); len(got) != 2 || strings.Trim(got, base36) != "" {
			t.Errorf("at %v: %q", at, got)
		}
	}
}
