package daemon

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"sallyport/internal/base/deadman"
	"sallyport/internal/base/id"
	"sallyport/internal/base/keeper"
	"sallyport/internal/door/client"
	"sallyport/internal/drive/guard"
)

// watcher brings the daemon back if it dies while a landing is open or on trial: the keeper, a process
// apart, waits for the record to be disarmed and otherwise starts a daemon, which finishes
// or undoes what its rows name.
type watcher struct {
	*Daemon
	dir string
}

func (d *Daemon) watcher(state string) watcher {
	if d.Keeper == "" {
		d.Keeper = filepath.Join(filepath.Dir(d.Self), keeper.Program)
		if d.Line != nil { // a release has none
			d.Keeper = fmt.Sprintf("/proc/%d/exe", d.Line.Keeper.PID) // also once its file was replaced
		}
	}
	return watcher{Daemon: d, dir: filepath.Join(state, "deadman")}
}

// Arm writes the record, then starts the keeper on it. A machine without a keeper lands all
// the same: what a dead daemon leaves open is then finished by the next command, not by itself.
func (k watcher) Arm(l id.Landing, w guard.Watched) error {
	self, err := deadman.Self()
	if err != nil {
		return err
	}
	by := self
	if k.Line != nil { // its parent starts another daemon, and sees to the deadline; who watches beside it does that once the parent is gone
		by = k.Line.Keeper
	}
	armed := deadman.Armed{
		Landing: string(l), Argv: []string{k.Self, "daemon", "start", "--home", k.Home},
		Env: client.Me().DaemonEnvironment(), Daemon: by, Kept: k.Line != nil, Parted: w.Parted, At: time.Now(), Due: w.Until,
	}
	if err := deadman.Arm(k.Ops, k.dir, armed); err != nil {
		return err
	}
	if k.Line != nil && os.Getenv(keeper.InService) != "" {
		return nil
	}
	err = k.Ops.Do("keeper:start", func() error {
		return deadman.Start(context.Background(), k.Keeper, deadman.Path(k.dir, armed.Landing))
	})
	if errors.Is(err, deadman.ErrNoKeeper) {
		k.log.Warn("no keeper watches this landing", "landing", l, "error", err)
		return nil
	}
	return err
}

// Disarm ends the keeper's watch.
func (k watcher) Disarm(l id.Landing) error { return deadman.Disarm(k.Ops, k.dir, string(l)) }
