package api

import (
	"time"
)

// Waits replaces every wait between two questions of the conversations that are opened from now on; it returns where they are written.
func Waits() (waited *[]time.Duration, restore func()) {
	old := sleep
	waited = &[]time.Duration{}
	sleep = func(d time.Duration) <-chan time.Time {
		*waited = append(*waited, d)
		over := make(chan time.Time)
		close(over)
		return over
	}
	return waited, func() { sleep = old }
}
