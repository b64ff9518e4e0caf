package race

import (
	"slices"
	"testing"
)

func TestOnlyABuildWithTheDetectorHandsItsOptionsOn(t *testing.T) {
	t.Setenv("GORACE", "atexit_sleep_ms=0")
	var want []string
	if Enabled {
		want = []string{"GORACE=atexit_sleep_ms=0"}
	}
	if got := Options(); !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}
