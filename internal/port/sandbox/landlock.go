package sandbox

import (
	"math"

	"golang.org/x/sys/unix"
)

// LandlockMin is the version of Landlock that keeps a sandbox's program from what is started beside it: in an older one
// it could move no file to another folder.
const LandlockMin = 2

// LandlockVersion is this kernel's; 0 = it has none, or it is off.
func LandlockVersion() int {
	version, _, errno := unix.RawSyscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	if errno != 0 {
		return 0
	}
	return int(min(version, math.MaxInt32))
}
