package daemon

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"sallyport/internal/base/git"
	"sallyport/internal/base/inert"
	"sallyport/internal/base/problem"
	"sallyport/internal/base/zone"
	"sallyport/internal/chat/message"
	"sallyport/internal/door/api"
	"sallyport/internal/drive/channels"
	"sallyport/internal/drive/control"
	"sallyport/internal/drive/dispatch"
	"sallyport/internal/drive/grounds"
	"sallyport/internal/drive/ledger"
	"sallyport/internal/path/change"
	"sallyport/internal/path/layer"
	"sallyport/internal/port/sandbox"
	"sallyport/internal/rule/config"
	"sallyport/internal/rule/right"
	"sallyport/internal/store"
	"sallyport/internal/who/group"
	"sallyport/internal/who/person"
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
	out.Checks = append(out.Checks, d.checkImage(ctx)...)
	out.Checks = append(out.Checks, checkBuild(d.Home, candidate{d}.Registries())...)
	out.Checks = append(out.Checks, asked("sandbox", true, "agents and checks can run", err))
	tries, check := d.selfTest(ctx)
	out.Tries, out.Checks = tries, append(out.Checks, check)
	for _, c := range report.Checks {
		if c.Name == "confinement" && c.OK && check.OK {
			continue // the self-test has just said the same of the same tries
		}
		out.Checks = append(out.Checks, api.Check{Name: c.Name, OK: c.OK, Detail: c.Detail, Fix: c.Fix})
	}
	out.Checks = append(out.Checks, d.checkGroups(ctx)...)
	out.Checks = append(out.Checks, approvals(ctx, d.db, d.control.Parts)...)
	out.Checks = append(out.Checks, checkMessages(ctx, dispatch.Drops{Ledger: d.control.Ledger})...)
	out.Checks = append(out.Checks, checkChats(ctx, d.chats)...)
	out.Checks = append(out.Checks, checkZone(talks{d.Home, d.Ops, d.log}.chooseZone()))
	out.Checks = append(out.Checks, checkChannels(ctx, channels.Places{Channels: d.channels})...)
	out.Checks = append(out.Checks, checkRoots(extra(d.settings, d.Home, d.network.folder))...)
	out.Checks = append(out.Checks, checkKept(d.settings)...)
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
		checks = append(checks, api.Check{Name: "change " + string(row.ID), Stuck: true, Detail: row.State.Words() + ": " + row.Reason, Fix: out})
	}
	if len(checks) == 0 {
		checks = append(checks, api.Check{Name: "changes", OK: true, Detail: "none is stuck"})
	}
	return checks
}

// checkMessages counts what was dropped before it was a message, by reason (CH-906); none if nothing was.
func checkMessages(ctx context.Context, drops dispatch.Drops) []api.Check {
	all, err := drops.Count(ctx)
	if err != nil {
		return []api.Check{asked("dropped messages", false, "", err)}
	}
	return tellDrops(all)
}

func tellDrops(all []message.Drop) []api.Check {
	if len(all) == 0 {
		return nil
	}
	why := make([]string, len(all))
	for i, drop := range all {
		why[i] = fmt.Sprintf("%d %s", drop.Count, drop.Reason)
	}
	return []api.Check{{Name: "dropped messages", OK: true, Detail: "in the last 7 days: " + strings.Join(why, ", ")}}
}

// checkChats looks at the sessions of groups, the messages to them, and what groups have at a time.
func checkChats(ctx context.Context, d *dispatch.Dispatcher) []api.Check {
	all, err := d.List(ctx, "")
	if err != nil {
		return []api.Check{asked("sessions", false, "", err)}
	}
	tasks, err := d.Tasks(ctx)
	if err != nil {
		return []api.Check{asked("schedules", false, "", err)}
	}
	return tellChats(all, tasks)
}

// tellChats has a line for all conversations, one for messages that were given up, and one for tasks.
func tellChats(all []dispatch.Seen, tasks []message.In) (checks []api.Check) {
	live, waiting, dead := 0, 0, 0
	for _, c := range all {
		waiting, dead = waiting+c.Waiting, dead+c.Dead
		if c.Live {
			live++
		}
	}
	if len(all) > 0 {
		checks = append(checks, api.Check{Name: "sessions", OK: true,
			Detail: fmt.Sprintf("%d of %d conversations have one now; messages that wait: %d", live, len(all), waiting)})
	}
	if dead > 0 {
		checks = append(checks, api.Check{Name: "messages", Detail: fmt.Sprintf("given up, and answered by nobody: %d", dead),
			Fix: "sallyport message list --status dead"})
	}
	stopped := 0
	for _, m := range tasks {
		if m.Status == message.Dead {
			stopped++
		}
	}
	if n := len(tasks) - stopped; n > 0 {
		checks = append(checks, api.Check{Name: "schedules", OK: true, Detail: fmt.Sprintf("tasks that groups have at a time: %d", n)})
	}
	if stopped > 0 {
		checks = append(checks, api.Check{Name: "stopped schedules",
			Detail: fmt.Sprintf("tasks that were not done, and do not come again until they are tried again: %d", stopped), Fix: "sallyport schedule list"})
	}
	return checks
}

// checkZone says by which zone's clock groups have their times, and what was named that is no zone: reminders would come hours off.
func checkZone(c zone.Choice) api.Check {
	check := api.Check{Name: "times", OK: len(c.Invalid) == 0, Detail: fmt.Sprintf("groups have their times by the clock of %s, from %s", c.Location, c.From)}
	if check.OK {
		return check
	}
	for _, named := range c.Invalid {
		place, name, _ := strings.Cut(named, ": ")
		check.Detail += fmt.Sprintf("; %s names %q, which is no zone", place, inert.Short(name, zoneShown))
	}
	check.Fix = "timedatectl list-timezones"
	return check
}

// zoneShown is how much is shown of a name that is no zone, in bytes.
const zoneShown = 64

// checkChannels looks at whether the channels are connected, and whether what leaves by them arrives.
func checkChannels(ctx context.Context, p channels.Places) []api.Check {
	all, err := p.List(ctx)
	if err != nil {
		return []api.Check{asked("channels", false, "", err)}
	}
	return tellChannels(all)
}

// tellChannels has a line for each channel, and one more for what was given up lately.
func tellChannels(all []channels.Standing) (checks []api.Check) {
	for _, ch := range all {
		name, next := "channel "+ch.Name, "sallyport channel show "+ch.Name
		switch {
		case ch.Connected:
			checks = append(checks, api.Check{Name: name, OK: true,
				Detail: fmt.Sprintf("connected to %s as %s; messages that wait: %d", ch.Platform, ch.Account, ch.Counts[message.Waiting])})
		case ch.Reason != "":
			checks = append(checks, api.Check{Name: name, Detail: "not connected, and tried again: " + ch.Reason, Fix: next})
		default:
			checks = append(checks, api.Check{Name: name, OK: true, Detail: "connecting to " + ch.Platform})
		}
		if ch.Failed > 0 {
			checks = append(checks, api.Check{Name: name, Detail: fmt.Sprintf("messages of the last day that will never arrive: %d", ch.Failed), Fix: next})
		}
	}
	return checks
}

// approvals is checkApprovals of the people whom the home knows now.
func approvals(ctx context.Context, db store.DB, p control.Parts) []api.Check {
	var people []right.Person
	err := db.Read(ctx, func(tx store.Tx) (err error) {
		people, err = ledger.Entitled(ctx, tx)
		return err
	})
	if err != nil {
		return []api.Check{asked("approvals", false, "", err)}
	}
	return checkApprovals(p.Home, p.Rules, p.Owner, people)
}

// checkApprovals says who approves what a group asks for, where the policy says something of that, and what it leaves nobody to approve.
func checkApprovals(home string, book grounds.Rulebook, owner person.Owner, people []right.Person) []api.Check {
	rules := book.Approvals()
	if rules == (right.Rules{}) {
		return nil
	}
	_, err := right.Approvers(right.Asked{Class: right.Host, Wisher: string(owner.ID), People: people, Rules: rules, Mend: config.EditPolicy(home)})
	if err != nil {
		p := problem.Of(err)
		why := strings.TrimPrefix(p.Text, right.Nobody)
		return []api.Check{{Name: "approvals", Refused: true, Detail: rules.Words() + ". Nobody can approve what " + owner.Name +
			" asks a group for: " + why, Fix: p.Next}}
	}
	return []api.Check{{Name: "approvals", OK: true, Detail: rules.Words()}}
}

// checkGroups has a line for all groups, and one for each that cannot run or has edits that do not count (SM-918).
func (d *Daemon) checkGroups(ctx context.Context) []api.Check {
	all, odd, err := d.control.Groups.List(ctx, "")
	if err != nil {
		return []api.Check{asked("groups", false, "", err)}
	}
	extra := extra(d.settings, d.Home, d.network.folder)
	var names, unlike []string
	var more []api.Check
	for _, g := range all {
		name := string(g.Folder)
		names = append(names, name)
		if len(g.Drift) > 0 {
			unlike = append(unlike, name)
		}
		if g.Broken != nil {
			p := problem.Of(g.Broken)
			more = append(more, api.Check{Name: "group " + name, Refused: true, Detail: p.Text, Fix: p.Next})
		}
		more = append(more, checkMounts(extra, name, g.Group.Runner.Wishes())...)
		if n := len(g.Edits); n > 0 {
			more = append(more, api.Check{Name: "group " + name, Ignored: true,
				Detail: fmt.Sprintf("edited by hand, which does not count until it is committed: %s", edited(g.Edits)), Fix: "sallyport group commit " + name})
		}
	}
	for _, name := range odd {
		more = append(more, api.Check{Name: "groups", Ignored: true, Detail: fmt.Sprintf("%q in groups/ can be no group", name),
			Fix: "sallyport group create --help"})
	}

	detail := "none; one is made by sallyport group create"
	if len(names) > 0 {
		detail = strings.Join(names, ", ")
	}
	if len(unlike) > 0 {
		detail += "; unlike the template: " + strings.Join(unlike, ", ")
	}
	return append([]api.Check{{Name: "groups", OK: true, Detail: detail}}, more...)
}

// edited names the first files of hand edits.
func edited(all []group.HandEdit) string {
	const shown = 3
	var names []string
	for _, e := range all[:min(len(all), shown)] {
		names = append(names, e.Path)
	}
	if more := len(all) - shown; more > 0 {
		names = append(names, fmt.Sprintf("%d more", more))
	}
	return strings.Join(names, ", ")
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
	detail := fmt.Sprintf("%s, %s free", d.Home, sandbox.Bytes(int64(free)))
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
	return asked("base layers", false, fmt.Sprintf("%d cached, %s; a new base takes what differs from an older one", len(there), sandbox.Bytes(held)), err)
}

// restartTold is how long a doctor tells that a daemon had to be started again.
const restartTold = 24 * time.Hour

// guards are against whom a keeper holds, in words (SM-903).
var guards = map[string]string{
	api.AgainstHostile: "a version that means harm, as the daemon is another user than it; where a platform lets its bot read what it said, a code that was given there guards against one with a mistake",
	api.AgainstFaulty:  "a version with a mistake, and not one that means harm, as it has no user of its own beside the daemon's",
}

func (d *Daemon) checkKeeper() api.Check {
	if _, err := os.Stat(d.Keeper); err != nil {
		return api.Check{Name: "keeper", Detail: "sallyport-keeper is not beside this program: if the daemon dies during a landing, the landing waits for the next command", Fix: "make build"}
	}
	if k := keptBy(d.Line); k != nil {
		detail := fmt.Sprintf("sallyport serve is process %d and starts a daemon that dies again; its release is %.12s; it guards changes of the host against %s; %s", k.PID, k.Release, guards[k.Against], k.Limits())
		if k.Restarts == 0 || time.Since(k.At) > restartTold {
			return api.Check{Name: "keeper", OK: true, Detail: detail}
		}
		return api.Check{Name: "keeper", Detail: fmt.Sprintf("%s. Daemons that died: %d, the last at %s: %s", detail, k.Restarts,
			k.At.Local().Format(time.DateTime), inert.Line(k.Why)),
			Fix: "sallyport serve writes why to where it logs"}
	}
	return api.Check{Name: "keeper", OK: true, Detail: d.Keeper}
}
