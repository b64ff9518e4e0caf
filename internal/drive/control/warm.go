package control

import (
	"context"
	"path"
	"time"

	"sallyport/internal/base/git"
	"sallyport/internal/base/id"
	"sallyport/internal/drive/judge"
	"sallyport/internal/drive/ledger"
	"sallyport/internal/drive/live"
	"sallyport/internal/path/change"
	"sallyport/internal/path/workspace"
)

// warmEvery is how old caches are before they are made anew on a base that they were not made on.
const warmEvery = 24 * time.Hour

// checksFamily names the caches that the checks of a change begin with.
func (c *Controller) checksFamily(row change.Row, j judge.Judging, setup workspace.Stock) string {
	on := ""
	if !setup.None() {
		on = setup.ID.String()
	}
	return c.family(row, j, workspace.Checks, j.ChecksOf(row.Request), on)
}

// warm has the checks of a change run on its base, beside everything else and after it, if their caches are not there or are
// old: what a person has already is all that may write what later checks begin with. It returns at once. Without a tool chain
// that is known there is no cache.
func (c *Controller) warm(row change.Row, j judge.Judging) {
	if len(j.ChecksOf(row.Request)) == 0 || c.Workspaces.Strategy() != workspace.Overlay || c.surroundings(row, j, live.Way{}, false).Toolchains() == "" {
		return
	}
	c.Aside(func(ctx context.Context) {
		defer c.working()()
		select { // one at a time
		case c.warming <- struct{}{}:
			defer func() { <-c.warming }()
		case <-ctx.Done():
			return
		}
		if err := c.warmUp(ctx, row, j); err != nil && ctx.Err() == nil {
			c.Log.Warn("the caches of checks could not be made", "change", row.ID, "error", err)
		}
	})
}

// working counts as work under way until the function it returns is called.
func (c *Controller) working() (done func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.busy++
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.busy--
	}
}

func (c *Controller) warmUp(ctx context.Context, row change.Row, j judge.Judging) error {
	base := git.OID(row.Base)
	setup, free, err := c.setUp(ctx, row, j, base)
	if err != nil {
		return err
	}
	defer free()
	host := c.Workspaces.Host(row.Request.Project)
	tree, err := host.Tree(ctx, base)
	if err != nil {
		return err
	}
	family := c.checksFamily(row, j, setup)
	latest, freeLatest, err := c.Workspaces.LatestStock(family)
	if err != nil {
		return err
	}
	freeLatest()
	fresh := latest.Note.Tree == tree || time.Since(latest.Note.Made) < warmEvery
	if latest.ID.Family == family && fresh || c.triedWarm(family) {
		return nil
	}
	name := workspace.StockID{Family: family, Generation: generation(string(tree))}
	n := workspace.StockNote{Kind: workspace.Checks, Project: path.Base(host.Path), Base: base, Tree: tree, Commands: j.ChecksOf(row.Request), Made: ledger.Now()}
	_, free, err = c.Workspaces.MakeStock(ctx, name, n, c.owner(row), setup, func(room workspace.Room) error {
		for _, command := range j.ChecksOf(row.Request) {
			if err := c.warmOne(ctx, row, j, setup, room, command); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	free()
	_, err = c.Workspaces.TrimStocks(ctx)
	return err
}

// warmOne runs one check on the base for what it leaves in the folder of caches; whether it succeeds says nothing about the change.
func (c *Controller) warmOne(ctx context.Context, row change.Row, j judge.Judging, setup workspace.Stock, room workspace.Room, command string) error {
	spec := c.spec(row)
	if !setup.None() {
		spec.Setup = setup.ID.String()
	}
	shown, err := c.Workspaces.Materialize(ctx, spec, spec.Base)
	if err != nil {
		return err
	}
	defer c.discard(ctx, shown)
	name := id.NewSession("warm")
	way, err := c.openWay(ctx, row, live.Outgoing{Session: name, Check: true, Unasked: true})
	if err != nil {
		return err
	}
	defer way.Close()
	run, err := c.shellOf(ctx, row, name, confined{judging: j, way: way, tree: shown.Tree, cache: room.Cache, background: true}, command)
	if err == nil && run.exit.Limit != nil { // ended in the middle of a write, maybe
		err = &cutShort{command, run}
	}
	return err
}

// cutShort says that a check on the base broke a limit.
type cutShort struct {
	command string
	run     shellRun
}

func (e *cutShort) Error() string { return e.command + ": " + e.run.why() }

// triedWarm reports whether caches of a family were tried to be made in this daemon's life and not long ago, and notes that they are now.
func (c *Controller) triedWarm(family string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	last, tried := c.warmed[family]
	if tried && time.Since(last) < warmEvery {
		return true
	}
	c.warmed[family] = time.Now()
	return false
}
