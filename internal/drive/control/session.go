package control

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
	"sallyport/internal/path/change"
	"sallyport/internal/path/session"
	"sallyport/internal/path/workspace"
	"sallyport/internal/port/sandbox"
)

// reportEvery is how often a watched change tells how far it is.
const reportEvery = time.Second

// running is one session of a change, ready to run; its way out is open.
func (c *Controller) running(ctx context.Context, row change.Row, ws workspace.Workspace, last session.Session, all []session.Session) (run session.Running, mode session.Supervision, err error) {
	r := row.Request
	e, err := c.Equip(row.ID, r)
	if err != nil {
		return session.Running{}, session.Supervision{}, err
	}
	program, err := c.program(ctx, row, e, last, all)
	if err != nil {
		return session.Running{}, session.Supervision{}, err
	}
	if err := c.budget.Afford(ctx, row.ID, r.Agent, program.Model); err != nil {
		return session.Running{}, session.Supervision{}, err
	}
	w, err := c.opener.Open(ctx, row)
	if err != nil {
		return session.Running{}, session.Supervision{}, err
	}
	s := session.Session{ID: id.NewSession(program.Name), Change: row.ID, Attempt: last.Attempt + 1, Agent: r.Agent, From: row.From, Started: ledger.Now()}
	if row.Identity != "" && row.Identity == last.ID { // it goes on as who it was (RM-025)
		s.ID = last.ID
	}
	s.Dir = c.sessionDir(s.ID)
	way, err := c.ways.Open(ctx, w.Subject(), live.Outgoing{Session: s.ID, Model: program.Model, Key: e.Key})
	if err != nil {
		return session.Running{}, session.Supervision{}, err
	}
	defer func() {
		if err != nil {
			way.Close()
		}
	}()
	with, err := c.stocks.On(w, ws)
	if err != nil {
		return session.Running{}, session.Supervision{}, err
	}
	way = live.Until(way, with.Release)
	cache := ws.Cache(with.Setup, with.Checks)
	spec, err := c.house.Environment(ctx, w.Subject(), way, cache.Upper != "")
	if err != nil {
		return session.Running{}, session.Supervision{}, err
	}
	spec.Cache = cache
	if spec.Dir, err = workdir(ctx, w.Host, row); err != nil {
		return session.Running{}, session.Supervision{}, err
	}
	spec.Limits = e.Within(spec.Limits, r.Timeout)
	spec.Tree = ws.Tree
	run = session.Running{
		Session: s, Driver: c.Sandbox, Spec: spec, Way: way, Program: program, Ops: c.Ops, Secrets: c.Secrets,
		Cwd: filepath.Join(r.Project.Top, r.Workdir),
	}
	if program.Messages {
		run.Talk = session.NewTalk()
	}
	return run, w.Mode(), nil
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

// sessionDir is where a session's metadata and transcript lie.
func (c *Controller) sessionDir(s id.Session) string {
	return filepath.Join(c.Settings.Sessions, string(s))
}

// report tells who watches what a running session prints and how many paths it has changed so
// far. Counting looks at names alone, so it needs no freeze. The function it returns ends it.
func (c *Controller) report(ctx context.Context, changeID id.Change, ws workspace.Workspace, run *session.Running) (stop func()) {
	var printed atomic.Int64
	run.Output = func(l session.Line) {
		printed.Add(int64(len(l.Text)) + 1)
		if c.Feed.Watched(changeID) && !(run.Program.Turns && l.ForHost()) {
			c.Feed.Publish(change.Notice{Change: changeID, At: l.At, Kind: "output", Text: l.Text})
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
			if !c.Feed.Watched(changeID) {
				continue
			}
			p := &change.Progress{Since: began, OutputBytes: printed.Load()}
			if diff, err := c.Workspaces.Walk(ctx, ws); err == nil {
				p.FilesChanged = len(diff.Changes)
			}
			c.Feed.Publish(change.Notice{Change: changeID, At: ledger.Now(), Kind: "progress", Progress: p})
		}
	}()
	return func() {
		cancel()
		<-done
	}
}
