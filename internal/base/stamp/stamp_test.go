package stamp

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"sallyport/internal/base/disk/disktest"
)

func TestAStampIsBeforeWhatIsWrittenInALaterStepOfItsClock(t *testing.T) {
	const fine, whole, milli = 1700000000_123456789, 1700000000_000000000, 1700000000_123000000
	for name, c := range map[string]struct {
		written int64 // in nanoseconds
		later   time.Duration
		before  bool
	}{
		"a step later":                                      {fine, cut, true},
		"in the same step":                                  {fine, 0, false},
		"by a clock that runs behind":                       {fine, -time.Hour, false},
		"on a disk that counts in seconds":                  {whole, coarse - time.Nanosecond, false},
		"there, and a while later":                          {whole, coarse, true},
		"by the thousandth of a second":                     {milli, coarse - time.Nanosecond, false},
		"in the same step, cut to a tenth of a microsecond": {fine / 100 * 100, fine % 100, false},
		"in the same step, cut to a microsecond":            {fine / 1000 * 1000, fine % 1000, false},
		"cut to a microsecond, and the next step":           {fine / 1000 * 1000, fine%1000 + 4*time.Millisecond, true},
	} {
		s := Stamp{inode: 1, changed: syscall.NsecToTimespec(c.written)}
		if got := s.Before(time.Unix(0, c.written).Add(c.later)); got != c.before {
			t.Errorf("%s: %t", name, got)
		}
		if s.Since(time.Unix(0, c.written).Add(c.later)).None() == c.before {
			t.Errorf("%s: it is relied on: %t", name, !c.before)
		}
	}
	if !(Stamp{}).Before(time.Unix(0, 0)) {
		t.Error("a file that comes looks like none")
	}
}

func TestWhoWritesToAFileChangesItsStamp(t *testing.T) {
	name := filepath.Join(t.TempDir(), "f")
	if !Of(name).None() {
		t.Error("a file that is not there has one")
	}
	write := func() Stamp {
		disktest.Put(t, name, "as long", 0o600)
		return Of(name)
	}
	first := write()
	info, err := os.Stat(name)
	if err != nil || From(info) != first || first.None() {
		t.Errorf("%+v, %v; want %+v", From(info), err, first)
	}
	for !first.Before(Now()) { // some milliseconds, by the kernel's clock alone
	}
	if again := write(); again == first {
		t.Errorf("of what was written later it is the same: %+v", again)
	}
}
