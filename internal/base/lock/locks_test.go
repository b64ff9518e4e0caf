package lock

import (
	"errors"
	"os"
	"strings"
	"syscall"
	"testing"
)

func TestALineOfTheKernelsListNamesTheHolderOrNobody(t *testing.T) {
	for line, want := range map[string]int{
		"1: FLOCK  ADVISORY  WRITE 1234 fe:00:5678 0 EOF":    1234,
		"12: FLOCK  ADVISORY  WRITE 1 fe:00:5678 0 EOF":      1,
		"1: FLOCK  ADVISORY  WRITE 1234 fe:00:5678":          1234,
		"1: -> FLOCK  ADVISORY  WRITE 1234 fe:00:5678 0 EOF": 0, // it waits
		"1: FLOCK  ADVISORY  WRITE 1234 fe:00:56789 0 EOF":   0,
		"1: FLOCK  ADVISORY  WRITE 1234 fe:01:5678 0 EOF":    0,
		"1: POSIX  ADVISORY  WRITE 1234 fe:00:5678 0 EOF":    0,
		"1: OFDLCK ADVISORY  WRITE -1 fe:00:5678 0 EOF":      0,
		"1: FLOCK  ADVISORY  WRITE -1 fe:00:5678 0 EOF":      0,
		"1: FLOCK  ADVISORY  WRITE 0 fe:00:5678 0 EOF":       0,
		"1: FLOCK  ADVISORY  WRITE x fe:00:5678 0 EOF":       0,
		"1: FLOCK  ADVISORY  WRITE 1234":                     0,
		"1:":                                                 0,
		"":                                                   0,
	} {
		if got := lockedBy(line, "fe:00:5678"); got != want {
			t.Errorf("%q: %d, want %d", line, got, want)
		}
	}
}

func TestWhoAsksForALockThatIsHeldLeavesNothingOpen(t *testing.T) {
	dir := t.TempDir()
	held, err := Folder(dir)
	if err != nil {
		t.Fatal(err)
	}
	before, _ := os.ReadDir("/proc/self/fd")
	if _, err := Folder(dir); !errors.Is(err, ErrHeld) {
		t.Error(err)
	}
	if after, _ := os.ReadDir("/proc/self/fd"); len(after) != len(before) {
		t.Errorf("%d descriptors were open, and %d are", len(before), len(after))
	}

	if err := syscall.Close(held.fd); err != nil {
		t.Fatal(err)
	}
	if err := held.Close(); !errors.Is(err, syscall.EBADF) || !strings.Contains(err.Error(), dir) {
		t.Errorf("a lock that somebody else gave back: %v", err)
	}
}
