package daemon

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"sallyport/internal/base/git"
	"sallyport/internal/base/problem"
	"sallyport/internal/door/api"
	"sallyport/internal/drive/control"
	"sallyport/internal/path/change"
	"sallyport/internal/path/layer"
)

// spaceLow is how little free space on the home's disk is told.
const spaceLow = 1 << 30

// Doctor tries what everything stands on, now, and says what to do about what does not work.
func (d *Daemon) Doctor(ctx context.Context) (api.Doctor, error) {
	report, err := d.sandbox.Probe(ctx)
	d.tried.set(report, err)
	out := api.Doctor{
		Driver: report.Driver, Strategy: string(d.spaces.Strategy()),
		Freezer: report.Freezer, Memory: report.Memory, OwnUID: report.OwnUID,
	}
	out.Checks = append(out.Checks, d.checkGit(ctx), d.checkSpace(), d.checkKeeper(), d.checkMeasures(), d.checkLayers(ctx), d.checkRoom())
	out.Checks = append(out.Checks, asked("sandbox", true, "agents and checks can run", err))
	tries, check := d.selfTest(ctx)
	out.Tries, out.Checks = tries, append(out.Checks, check)
	for _, c := range report.Checks {
		if c.Name == "confinement" && c.OK && check.OK {
			continue // the self-test has just said the same of the same tries
		}
		out.Checks = append(out.Checks, api.Check{Name: c.Name, OK: c.OK, Detail: c.Detail, Fix: c.Fix})
	}
	out.Checks = append(out.Checks, d.checkStuck(ctx)...)
	return out, nil
}

// stuckMax bounds the stuck changes that doctor names.
const stuckMax = 20

// checkStuck has a line for each change that should move by itself and does not.
func (d *Daemon) checkStuck(ctx context.Context) (checks []api.Check) {
	due := slices.DeleteFunc(change.States(), func(s change.State) bool { return !s.Due() })
	rows, err := d.control.List(ctx, change.Filter{States: due})
	if err != nil {
		return []api.Check{asked("changes", false, "", err)}
	}
	for _, row := range rows {
		out := control.WayOut(row, time.Now())
		if out == "" || len(checks) == stuckMax {
			continue
		}
		checks = append(checks, api.Check{Name: "change " + string(row.ID), Stuck: true, Detail: string(row.State) + ": " + row.Reason, Fix: out})
	}
	if len(checks) == 0 {
		checks = append(checks, api.Check{Name: "changes", OK: true, Detail: "none is stuck"})
	}
	return checks
}

// asked turns an answer into a line.
func asked(name string, needed bool, good string, err error) api.Check {
	if err == nil {
		return api.Check{Name: name, OK: true, Needed: needed, Detail: good}
	}
	p := problem.Of(err)
	return api.Check{Name: name, Needed: needed, Detail: p.Text, Fix: p.Next}
}

func (d *Daemon) checkGit(ctx context.Context) api.Check {
	version, err := git.Version(ctx)
	return asked("git", true, "version "+version, err)
}

func (d *Daemon) checkSpace() api.Check {
	probe := filepath.Join(d.Home, ".state", ".doctor")
	err := d.Ops.Do("doctor:write", func() error { return os.WriteFile(probe, nil, 0o600) })
	if err == nil {
		err = d.Ops.Do("doctor:remove", func() error { return os.Remove(probe) })
	}
	if err != nil {
		return asked("home", true, "", unwritable(d.Home, err))
	}
	var st unix.Statfs_t
	if err := unix.Statfs(d.Home, &st); err != nil {
		return asked("home", true, "", err)
	}
	free := st.Bavail * uint64(st.Bsize)
	detail := fmt.Sprintf("%s, %.1f GiB free", d.Home, float64(free)/(1<<30))
	if free < spaceLow {
		return api.Check{Name: "home", Needed: true, Detail: detail, Fix: "df -h " + d.Home}
	}
	return api.Check{Name: "home", OK: true, Needed: true, Detail: detail}
}

// checkLayers tells of the cache of base trees, and whether a new one takes only what differs from an older one.
func (d *Daemon) checkLayers(ctx context.Context) api.Check {
	state := filepath.Join(d.Home, ".state")
	if err := layer.ProbeDeltas(d.Ops, state); err != nil {
		return api.Check{Name: "base layers", Detail: fmt.Sprintf("the file system of %s cannot record a deletion (%v), so every new base is checked out whole", state, err), Fix: "stat -f " + state}
	}
	there, err := d.spaces.Layers.All(ctx)
	held := int64(0)
	for _, l := range there {
		held += l.Bytes
	}
	return asked("base layers", false, fmt.Sprintf("%d cached, %.1f MiB; a new base takes what differs from an older one", len(there), float64(held)/(1<<20)), err)
}

func (d *Daemon) checkKeeper() api.Check {
	if _, err := os.Stat(d.Keeper); err != nil {
		return api.Check{Name: "keeper", Detail: "sallyport-keeper is not beside this program: if the daemon dies during a landing, the landing waits for the next command", Fix: "make build"}
	}
	return api.Check{Name: "keeper", OK: true, Detail: d.Keeper}
}
