package supervise

import (
	"context"
	"path"
	"path/filepath"
	"sync/atomic"
	"time"

	"sallyport/internal/base/git"
	"sallyport/internal/base/id"
	"sallyport/internal/drive/ledger"
	"sallyport/internal/drive/live"
	"sallyport/internal/drive/work"
	"sallyport/internal/path/change"
	"sallyport/internal/path/request"
	"sallyport/internal/path/session"
	"sallyport/internal/path/workspace"
	"sallyport/internal/port/sandbox"
	"sallyport/internal/rule/budget"
	"sallyport/internal/rule/config"
)

// reportEvery is how often a watched change tells how far it is.
const reportEvery = time.Second

// ready makes the next session of a change ready to run; its way out is open.
func (ss *Supervisors) ready(ctx context.Context, w work.Work, ws workspace.Workspace, last session.Session,
	all []session.Session) (run session.Running, err error) {
	row, subject, task := w.Row, w.Subject(), work.Task(w.Row.Request)
	runner, err := ss.runnerOf(ctx, row)
	if err != nil {
		return session.Running{}, err
	}
	task.Off = runner.Off()
	subject.Budget = func() (budget.Limits, error) { // a person may raise them while it waits
		now, err := ss.runnerOf(ss.Lasting(), row)
		return live.LimitsOf(now.Budgets), err
	}
	outfit, err := ss.Runtime.Outfits.Equip(subject, task)
	if err != nil {
		return session.Running{}, err
	}
	program, err := ss.program(ctx, row, outfit, last, all)
	if err != nil {
		return session.Running{}, err
	}
	if err := ss.Runtime.Budget.Afford(ctx, row.ID.Subject(), subject.Agent, program.Model); err != nil {
		return session.Running{}, err
	}

	s := session.Session{ID: id.NewSession(program.Name), Change: row.ID, Attempt: last.Attempt + 1, Agent: row.Request.Agent,
		From: row.From, Started: ledger.Now()}
	if row.Identity != "" && row.Identity == last.ID { // it goes on as who it was (RM-025)
		s.ID = last.ID
	}
	s.Dir = ss.Runtime.Dir(s.ID)
	dir, err := workdir(ctx, w.Host, row)
	if err != nil {
		return session.Running{}, err
	}
	with, err := ss.Stocks.On(ctx, w, ws)
	if err != nil {
		return session.Running{}, err
	}
	return ss.Runtime.Ready(ctx, subject, outfit, program, s, live.Mounts{
		Tree: ws.Tree, Cache: ws.Cache(with.Setup, with.Checks), Dir: dir, Cwd: filepath.Join(row.Request.Project.Top, row.Request.Workdir),
		Release: with.Release,
	})
}

// runnerOf says what binds the agent of a swap as it binds its group's (SM-025); nothing binds another so.
func (ss *Supervisors) runnerOf(ctx context.Context, row change.Row) (config.Runner, error) {
	if row.Request.Kind != request.Swap {
		return config.Runner{}, nil
	}
	return ss.Binds(ctx, row)
}

// workdir is the person's folder as seen inside; the top if the base has no such folder.
func workdir(ctx context.Context, host git.Dir, row change.Row) (string, error) {
	if row.Request.Workdir == "" {
		return sandbox.Mountpoint, nil
	}
	found, err := host.Lookup(ctx, git.OID(row.Base), []string{row.Request.Workdir})
	if err != nil || found[0].Mode != git.Folder {
		return sandbox.Mountpoint, err
	}
	return path.Join(sandbox.Mountpoint, row.Request.Workdir), nil
}

// report tells who watches what a running session prints and how many paths it has changed so
// far. Counting looks at names alone, so it needs no freeze. The function it returns ends it.
func (ss *Supervisors) report(ctx context.Context, changeID id.Change, ws workspace.Workspace, run *session.Running) (stop func()) {
	var printed atomic.Int64
	run.Output = func(l session.Line) {
		printed.Add(l.PrintedBytes())
		if ss.Feed.Watched(changeID) && !(run.Program.Turns && l.ForHost()) {
			ss.Feed.Publish(change.Notice{Change: changeID, At: l.At, Kind: "output", Text: l.Text})
		}
	}
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	began := ledger.Now()
	go func() {
		defer close(done)
		tick := time.NewTicker(reportEvery)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			if !ss.Feed.Watched(changeID) {
				continue
			}
			p := &change.Progress{Since: began, OutputBytes: printed.Load()}
			if diff, err := ss.Workspaces.Walk(ctx, ws); err == nil {
				p.FilesChanged = len(diff.Changes)
			}
			ss.Feed.Publish(change.Notice{Change: changeID, At: ledger.Now(), Kind: "progress", Progress: p})
		}
	}()
	return func() {
		cancel()
		<-done
	}
}
