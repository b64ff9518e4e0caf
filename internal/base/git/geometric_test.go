package git_test

import (
	"testing"

	"sallyport/internal/base/git"
)

func TestWhatStaysIsEachTwiceAllThatFollows(t *testing.T) {
	for _, c := range []struct {
		sizes []int64
		keep  int
	}{
		{nil, 0}, {[]int64{1}, 1}, {[]int64{2, 1}, 2}, {[]int64{1, 1}, 0}, {[]int64{100, 3, 2, 1}, 1}, {[]int64{8, 2, 1}, 3}, {[]int64{5, 2, 1}, 0}, {[]int64{0, 0}, 2},
	} {
		if got := git.Geometric(c.sizes); got != c.keep {
			t.Errorf("%v: %d stay, want %d", c.sizes, got, c.keep)
		}
	}
}
