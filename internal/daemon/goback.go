package daemon

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"sallyport/internal/base/disk"
	"sallyport/internal/base/git"
	"sallyport/internal/base/id"
	"sallyport/internal/base/keeper"
	"sallyport/internal/base/lock"
	"sallyport/internal/base/problem"
	"sallyport/internal/drive/confirm"
	"sallyport/internal/drive/guard"
	"sallyport/internal/path/change"
	"sallyport/internal/path/trial"
	"sallyport/internal/rule/metric"
	"sallyport/internal/store/sqlite"
)

// GoBack brings a home back to how it was before the change of the host that its keeper has at step `back`: the database, if that has
// another schema now, and then the files. The keeper runs it by the old release's program before that serves again, and again until it
// returns nil. Files that cannot go back yet are no error: the row says so, and the old host tries again.
func GoBack(ctx context.Context, o Options) error {
	r, is, err := keeper.RecordOf(o.Home)
	switch {
	case err != nil:
		return err
	case !is || r.Step != keeper.Back:
		return problem.Errorf(problem.Refused, "sallyport status", "nothing has to go back: no change of the host that failed is under way in %q", o.Home)
	}

	d := &Daemon{Options: o, goesBack: true, stop: func() {}, handOver: func() {}, readers: &git.Readers{}}
	ctx = d.readers.In(ctx)
	state, err := begin(d, metric.Options{})
	if err != nil {
		return err
	}
	held, err := lock.Folder(state)
	if err != nil {
		return fmt.Errorf("bring the home %q back: %w", o.Home, err)
	}
	defer held.Close()

	done, err := (hosted{d}).revertDatabase(ctx, r)
	if err != nil {
		return err
	}
	if err := d.build(ctx, state); err != nil {
		return err
	}
	defer d.db.Close()
	reading, stop := context.WithCancel(ctx)
	defer stop()
	go func() { _ = d.readers.Run(reading) }()
	return d.control.TakeHostBack(ctx, id.Change(r.Change), wentBack(r, done))
}

// wentBack is why the host goes back, and what is missing since: who reads it in a conversation looks into no log.
func wentBack(r keeper.Record, done sqlite.Reverted) trial.Decision {
	why := confirm.WentBack(r)
	missing := ""
	switch {
	case done.Unread != "":
		missing = "could not be read, and is in " + filepath.Join(".state", filepath.Base(done.Unread)) + " alone"
	case done.Lost:
		missing = "is lost: its database was gone"
	}
	if missing != "" {
		why.TimedOut = false // those words are fixed, and say no more
		why.Reason += "; what was written in the meantime " + missing
	}
	return why
}

// RehearseBack brings a database that a candidate for the host has used back to how it was before, and opens it: what a way back over
// another schema does (SM-913, SM-128).
func RehearseBack(ctx context.Context, used, before string) (kept int, done bool, err error) {
	back, err := sqlite.Revert(ctx, used, before, disk.Ops{})
	switch {
	case err != nil || !back.Done:
		return 0, false, err
	case back.Unread != "":
		return 0, true, errors.New("it cannot be read")
	case len(back.Left) > 0:
		return 0, true, fmt.Errorf("rows cannot be kept: %s", strings.Join(back.Left[:min(len(back.Left), 5)], "; "))
	}
	for _, n := range back.Carried {
		kept += n
	}
	db, err := sqlite.Open(ctx, used, disk.Ops{})
	if err == nil {
		err = db.Close()
	}
	return kept, true, err
}

// host is the host as those parts of it see it that have it restart.
func (d hosted) host() guard.Host {
	if d.goesBack {
		return goingBack{d}
	}
	return d
}

// goingBack is a host that is brought back: its keeper has decided, and waits.
type goingBack struct{ hosted }

func (goingBack) Judges() error          { return nil }
func (goingBack) Disarm(id.Change) error { return nil }
func (goingBack) Arm(context.Context, guard.HostChange) error {
	return problem.Errorf(problem.Unavailable, "sallyport status", "this host goes back")
}

// unwatched is the keeper of landings while the host goes back: the host's own keeper is there until that is done.
type unwatched struct{}

func (unwatched) Arm(id.Landing, guard.Watched) error { return nil }
func (unwatched) Disarm(id.Landing) error             { return nil }

// settle makes the keeper's record and the rows agree where a crash came in between: what is armed for a change that neither lands nor is
// on trial is disarmed, and the end of a confirmed one is told.
func (d hosted) settle(ctx context.Context) error {
	r, is, err := keeper.RecordOf(d.Home)
	if err != nil || !is || d.Line == nil {
		return err
	}
	if err := d.listen(ctx); err != nil {
		return err
	}
	of := id.Change(r.Change)
	row, err := d.control.Row(ctx, of)
	if err != nil && problem.KindOf(err) != problem.NotFound {
		return err
	}
	switch {
	case r.Step == keeper.Armed && row.State != change.Landing && row.State != change.InTrial:
		return d.Disarm(of)
	case r.Step == keeper.Confirmed && row.State.Final():
		return d.Finalized(ctx, of)
	}
	return nil
}

// guardian watches what goes on with landings.
func (d hosted) guardian(state string) guard.Keeper {
	if d.goesBack {
		return unwatched{}
	}
	return d.watcher(state)
}

// revertDatabase gives the old host its database again, if the new one has brought it to another schema.
func (d hosted) revertDatabase(ctx context.Context, r keeper.Record) (sqlite.Reverted, error) {
	snapshot := d.snapshot(id.Change(r.Change))
	if _, err := os.Lstat(snapshot); errors.Is(err, fs.ErrNotExist) { // it went no further than arming
		return sqlite.Reverted{}, nil
	}
	done, err := sqlite.Revert(ctx, d.database(), snapshot, d.Ops)
	if err == nil && done.Done {
		d.log.Warn("the database has the schema again that it had before", "change", r.Change, "carried over", done.Carried,
			"changed elsewhere", done.Elsewhere, "not carried over", done.Left, "set aside", done.Unread)
	}
	return done, err
}
