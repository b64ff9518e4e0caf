package grounds

import (
	"slices"
	"testing"

	"sallyport/internal/path/request"
)

func TestACheckThatRequestAndRepositoryNameRunsOnce(t *testing.T) {
	for _, test := range []struct{ asked, own, want []string }{
		{nil, nil, nil},
		{nil, []string{"make"}, []string{"make"}},
		{[]string{"make"}, nil, []string{"make"}},
		{[]string{"make"}, []string{"make"}, []string{"make"}},
		{[]string{"vet", "make"}, []string{"lint", "make", "race"}, []string{"vet", "make", "lint", "race"}},
	} {
		own := slices.Clone(test.own)
		if got := (Judging{Checks: own}).ChecksOf(request.Request{Checks: test.asked}); !slices.Equal(got, test.want) || !slices.Equal(own, test.own) {
			t.Errorf("%q and %q: %q, want %q", test.asked, test.own, got, test.want)
		}
	}
}
