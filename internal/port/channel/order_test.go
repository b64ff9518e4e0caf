package channel_test

import (
	"testing"

	"sallyport/internal/port/channel"
)

func TestMessagesThatAPlatformCountsHaveAnOrder(t *testing.T) {
	for _, c := range []struct {
		first, second string
		want          bool
	}{
		{"9", "10", true}, {"10", "9", false}, {"10", "10", false}, {"010", "10", false}, {"", "10", false}, {"9", "", false},
		{"1099511627776000001", "1099511627776000002", true}, {"18446744073709551615", "99446744073709551616", true},
		{"1700000000.000100", "1700000000.000200", true}, {"1700000001.000100", "1700000000.000200", false}, {"999.9", "1000.1", true},
		{"1700000000.000100", "1700000000", false}, {"5 edit 1", "6", false}, {"press 5", "6", false}, {"-5", "6", false}, {"5.", "6.", false}, {"5.x", "6.1", false},
	} {
		if got := channel.Counted(c.first, c.second); got != c.want {
			t.Errorf("%q before %q: %v", c.first, c.second, got)
		}
	}
}
