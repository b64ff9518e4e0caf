package socket

import (
	"context"
	"io"
	"os"
	"time"

	"sallyport/internal/base/audit"
	"sallyport/internal/base/deadman"
	"sallyport/internal/base/id"
	"sallyport/internal/base/keeper"
	"sallyport/internal/base/problem"
	"sallyport/internal/door/api"
	"sallyport/internal/path/change"
	"sallyport/internal/rule/metric"
)

// Host is what the daemon tells of itself.
type Host interface {
	// Doctor probes what works on this machine for this home.
	Doctor(ctx context.Context) (api.Doctor, error)
	// Sandbox says what holds programs here; it tries nothing.
	Sandbox() api.Sandbox
	// Stop asks the daemon to end; it returns at once.
	Stop()
	// Keep writes what write writes to the file of a checkpoint's diff, whole or not at all, and returns its absolute path (SV-041).
	Keep(ctx context.Context, change id.Change, ref id.Checkpoint, write func(io.Writer) error) (string, error)
}

// busy are the states in which something is being done; they keep a daemon from being idle.
var busy = []change.State{change.Requested, change.Preparing, change.Working,
	change.Submitted, change.Landing, change.InTrial}

// doingMax bounds the changes that a daemon names when it says what it is doing.
const doingMax = 5

// daemon answers what is asked of the daemon itself.
type daemon struct {
	part     Host
	changes  Changes
	meter    *metric.Set
	home     string
	open     func() bool           // nil: never
	unloaded func() []api.Unloaded // nil: none
	keeper   *api.Keeper
	started  time.Time
}

func (n daemon) show(ctx context.Context, _ audit.Actor, _ api.Nothing) (api.Daemon, error) {
	d := api.Daemon{PID: os.Getpid(), Build: api.Build(), API: api.Version, Home: n.home, Started: n.started}

	working, err := n.changes.List(ctx, change.Filter{States: busy})
	if err != nil {
		return d, err
	}
	waiting, err := n.changes.List(ctx, change.Filter{States: []change.State{change.AwaitingApproval}})
	if err != nil {
		return d, err
	}

	d.Working, d.Waiting = len(working), len(waiting)
	d.Doing = each(working[:min(len(working), doingMax)], func(c change.Row) string { return string(c.ID) + " " + string(c.State) })
	d.Alerts = each(n.meter.Alerts(), alertOf)
	d.Sandbox, d.Keeper, d.Host = n.part.Sandbox(), n.keeper, hostChange(n.home)
	if n.unloaded != nil {
		d.Settings = n.unloaded()
	}
	d.Open = n.open != nil && n.open()
	return d, nil
}

// stop is refused while the host changes itself: what runs then is the keeper's to end.
func (n daemon) stop(context.Context, audit.Actor, api.Nothing) (out api.Nothing, err error) {
	r, armed, err := keeper.RecordOf(n.home)
	switch {
	case err != nil:
		return out, problem.Errorf(problem.Unavailable, "sallyport doctor",
			"whether a change of the host is on trial cannot be seen, so the daemon is not stopped: %w", err)
	case armed && r.Step == keeper.Confirmed:
		return out, problem.Errorf(problem.Conflict, "sallyport change watch "+r.Change,
			"%s, a change of the host, was confirmed and is being finished: the daemon can be stopped after that", r.Change)
	case armed && r.Step == keeper.Back:
		return out, problem.Errorf(problem.Conflict, "sallyport change watch "+r.Change,
			"%s, a change of the host, is being rolled back: the daemon can be stopped after that", r.Change)
	case armed:
		return out, problem.Errorf(problem.Conflict, "sallyport rollback "+r.Change,
			"%s, a change of the host, is on trial until %s: confirm it or roll it back first", r.Change, r.Due.At().Local().Format("15:04:05"))
	}
	n.part.Stop()
	return out, nil
}

// hostChange is the change of the host that is under way; nil if none is.
func hostChange(home string) *api.HostChange {
	r, armed, err := keeper.RecordOf(home)
	if err != nil {
		return &api.HostChange{Problem: text(err.Error())}
	}
	if !armed {
		return nil
	}
	out := &api.HostChange{Change: r.Change, Step: string(r.Step), Old: r.Old, New: r.New, Due: r.Due.At(), Tries: r.Tries, Why: text(r.Why)}
	if now, err := deadman.Now(); err == nil { // a clock that cannot be read leaves nothing
		out.LeftMS = r.Due.Left(now).Milliseconds()
	}
	return out
}

func (n daemon) doctor(ctx context.Context, _ audit.Actor, _ api.Nothing) (api.Doctor, error) {
	return n.part.Doctor(ctx)
}
