package disktest_test

import (
	"fmt"
	"slices"
	"testing"

	"sallyport/internal/base/disk/disktest"
)

func TestALoopTakesEachNamesFirstAndLastAndOneBetween(t *testing.T) {
	names := []string{"a", "b", "b", "c", "b", "b", "a"}
	for _, c := range []struct {
		long, seed string
		want       []int
	}{
		{"", "", []int{0, 1, 2, 3, 5, 6}},
		{"", "1", []int{0, 1, 3, 4, 5, 6}},
		{"", "2", []int{0, 1, 2, 3, 5, 6}},
		{"1", "1", []int{0, 1, 2, 3, 4, 5, 6}},
	} {
		t.Setenv("SALLYPORT_LONG", c.long)
		t.Setenv("SALLYPORT_SEED", c.seed)
		if got := disktest.Points(t, names); !slices.Equal(got, c.want) {
			t.Errorf("long %q, seed %q: %d, want %d", c.long, c.seed, got, c.want)
		}
	}
}

func TestAllSeedsTogetherTakeEveryPoint(t *testing.T) {
	t.Setenv("SALLYPORT_LONG", "")
	points, seen := []int{10, 11, 12, 13, 14, 15, 16}, map[int]int{}
	for seed := range 3 {
		t.Setenv("SALLYPORT_SEED", fmt.Sprint(seed))
		for _, p := range disktest.Sample(t, points, 3) {
			seen[p]++
		}
	}
	for _, p := range points {
		if seen[p] != 1 {
			t.Errorf("point %d was taken %d times by all three seeds", p, seen[p])
		}
	}
	t.Setenv("SALLYPORT_LONG", "1")
	if got := disktest.Sample(t, points, 3); !slices.Equal(got, points) {
		t.Errorf("the long run takes %d of %d", got, points)
	}
}
