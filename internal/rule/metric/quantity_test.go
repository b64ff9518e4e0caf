package metric

import "testing"

func TestAFigureIsShownInPlainDigits(t *testing.T) {
	for _, test := range []struct {
		v          float64
		unit, want string
	}{
		{0.0123456, "seconds", "12.35ms"}, {2.345, "seconds", "2.35s"}, {3600, "seconds", "3600s"},
		{80, "percent", "80%"}, {99.95, "percent", "100%"}, {999.6, "percent", "1000%"}, {3613, "percent", "3613%"},
		{3 << 20, "bytes", "3 MiB"}, {1200, "sessions", "1200 sessions"},
	} {
		if got := quantity(test.v, test.unit); got != test.want {
			t.Errorf("%v %s is shown as %q, not %q", test.v, test.unit, got, test.want)
		}
	}
}
