package daemon

import (
	"os"
	"path/filepath"
	"time"

	"sallyport/internal/deadman"
	"sallyport/internal/landing"
)

// landingTime is how long a landing may take before its keeper asks after it.
const landingTime = 5 * time.Minute

// guard brings the daemon back if it dies while a landing is open: the keeper, a process
// apart, waits for the record to be disarmed and otherwise starts a daemon, which finishes
// or undoes what it finds in the journal.
type guard struct {
	*Daemon
	dir    string
	keeper string
}

func (d *Daemon) guard(state string) guard {
	keeper := d.Keeper
	if keeper == "" {
		keeper = filepath.Join(filepath.Dir(d.Self), "sallyport-keeper")
	}
	return guard{Daemon: d, dir: filepath.Join(state, "deadman"), keeper: keeper}
}

var _ = []any{os.Getpid, deadman.Arm, landing.Landed}
