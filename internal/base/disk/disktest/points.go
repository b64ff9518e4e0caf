package disktest

import (
	"os"
	"slices"
	"strconv"
	"testing"
)

// Long reports whether loops take every point, and loads are whole: `make soak` sets SALLYPORT_LONG.
func Long() bool { return os.Getenv("SALLYPORT_LONG") != "" }

// Seed is what chooses where a loop takes a sample: SALLYPORT_SEED, which `make test` draws and prints; 0 without one.
func Seed(t testing.TB) int {
	t.Helper()
	text := os.Getenv("SALLYPORT_SEED")
	if text == "" {
		return 0
	}
	seed, err := strconv.Atoi(text)
	if err != nil || seed < 0 {
		t.Fatalf("SALLYPORT_SEED=%q is no whole number from 0 on", text)
	}
	return seed
}

// Points are the operations of a whole run at which a loop stops: the first and the last of each name, and one between
// them that the seed chooses. With SALLYPORT_LONG they are all.
func Points(t testing.TB, names []string) (points []int) {
	t.Helper()
	if Long() {
		for n := range names {
			points = append(points, n)
		}
		return points
	}

	seed, all := Seed(t), map[string][]int{}
	for n, name := range names {
		all[name] = append(all[name], n)
	}
	for _, of := range all {
		points = append(points, of[0])
		if last := len(of) - 1; last > 0 {
			points = append(points, of[last])
		}
		if between := len(of) - 2; between > 0 {
			points = append(points, of[1+seed%between])
		}
	}
	slices.Sort(points)
	return points
}

// Sample is one in so many of some points, and other ones for each seed; with SALLYPORT_LONG it is all of them.
func Sample[P any](t testing.TB, points []P, oneIn int) (sample []P) {
	t.Helper()
	if Long() {
		return points
	}
	for at := Seed(t) % oneIn; at < len(points); at += oneIn {
		sample = append(sample, points[at])
	}
	t.Logf("%d of %d points: SALLYPORT_SEED=%d takes them again, SALLYPORT_LONG=1 takes all", len(sample), len(points), Seed(t))
	return sample
}
