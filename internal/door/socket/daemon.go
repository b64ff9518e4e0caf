package socket

import (
	"context"
	"io"
	"os"
	"time"

	"sallyport/internal/base/audit"
	"sallyport/internal/base/id"
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
	d.Sandbox, d.Keeper = n.part.Sandbox(), n.keeper
	if n.unloaded != nil {
		d.Settings = n.unloaded()
	}
	d.Open = n.open != nil && n.open()
	return d, nil
}

func (n daemon) stop(context.Context, audit.Actor, api.Nothing) (out api.Nothing, err error) {
	n.part.Stop()
	return out, nil
}

func (n daemon) doctor(ctx context.Context, _ audit.Actor, _ api.Nothing) (api.Doctor, error) {
	return n.part.Doctor(ctx)
}
