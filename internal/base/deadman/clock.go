package deadman

import (
	"fmt"
	"os"
	"strings"
	"syscall"
	"time"
	"unsafe"
)

// Moment is a time that a wrong clock cannot move: wall clock, and time since which boot.
type Moment struct {
	Wall time.Time     `json:"wall"` // UTC
	Boot string        `json:"boot"` // which boot
	Up   time.Duration `json:"up"`   // since that boot, sleep included
}

// Deadline is a moment ahead, with the one it was set at.
type Deadline struct {
	Set Moment        `json:"set"`
	In  time.Duration `json:"in"` // after Set
}

// At returns when it falls due by the wall clock, if nobody moves that.
func (d Deadline) At() time.Time { return d.Set.Wall.Add(d.In) }

// Left returns how long it is until then, 0 at the least.
//
// During one boot the clock that nobody can set decides. After another boot only the wall clock is
// left; one that stands before the moment of setting cannot be believed, and nothing is left then.
func (d Deadline) Left(now Moment) time.Duration {
	gone := now.Since(d.Set)
	if gone < 0 {
		return 0
	}
	return max(d.In-gone, 0)
}

// Since returns how long ago then was: by the clock that nobody can set if both are of one boot, else
// by the wall clock, which may make it negative.
func (m Moment) Since(then Moment) time.Duration {
	if m.Boot == then.Boot && m.Boot != "" {
		return m.Up - then.Up
	}
	return m.Wall.Sub(then.Wall)
}

const clockBoottime = 7

// Now reads both clocks.
func Now() (Moment, error) {
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return Moment{}, fmt.Errorf("read the boot's id: %w", err)
	}
	var ts syscall.Timespec
	if _, _, errno := syscall.Syscall(syscall.SYS_CLOCK_GETTIME, clockBoottime, uintptr(unsafe.Pointer(&ts)), 0); errno != 0 {
		return Moment{}, fmt.Errorf("read the time since boot: %w", errno)
	}
	return Moment{Wall: time.Now().UTC().Round(0), Boot: strings.TrimSpace(string(boot)), Up: time.Duration(ts.Nano())}, nil
}
