package stock

import (
	"context"
	"path"
	"time"

	"sallyport/internal/base/git"
	"sallyport/internal/base/id"
	"sallyport/internal/drive/ledger"
	"sallyport/internal/drive/live"
	"sallyport/internal/drive/work"
	"sallyport/internal/path/layer"
	"sallyport/internal/path/workspace"
)

// warmEvery is how old caches are before they are made anew on a base that they were not made on.
const warmEvery = 24 * time.Hour

// checksFamily names the caches that the checks of a change begin with.
func (s *Stocks) checksFamily(w work.Work, setup layer.Stock) string {
	on := ""
	if !setup.None() {
		on = setup.ID.String()
	}
	return s.family(w, layer.Checks, w.Checks(), on)
}

// Warm has the checks of a change run on its base, beside everything else and after it, if their caches are not there or are
// old: what a person has already is all that may write what later checks begin with. It returns at once. Without a tool chain
// that is known there is no cache.
func (s *Stocks) Warm(w work.Work) {
	if len(w.Checks()) == 0 || s.Workspaces.Strategy() != workspace.Overlay || s.Runner.Toolchains(w.Subject()) == "" {
		return
	}
	s.Aside(func(ctx context.Context) {
		defer s.Working()()
		select { // one at a time
		case s.warming <- struct{}{}:
			defer func() { <-s.warming }()
		case <-ctx.Done():
			return
		}
		if err := s.warmUp(ctx, w); err != nil && ctx.Err() == nil {
			s.Log.Warn("the caches of checks could not be made", "change", w.Row.ID, "error", err)
		}
	})
}

func (s *Stocks) warmUp(ctx context.Context, w work.Work) error {
	base, err := ground(ctx, w)
	if err != nil {
		return err
	}
	setup, free, err := s.SetUp(ctx, w, base)
	if err != nil {
		return err
	}
	defer free()
	tree, err := w.Host.Tree(ctx, base)
	if err != nil {
		return err
	}
	family := s.checksFamily(w, setup)
	latest, freeLatest, err := s.checksFor(ctx, w, setup, base)
	if err != nil {
		return err
	}
	freeLatest()
	fresh := latest.Note.Tree == tree || time.Since(latest.Note.Made) < warmEvery
	if latest.ID.Family == family && fresh || s.failedOf(family) {
		return nil
	}
	name := layer.StockID{Family: family, Generation: generation(string(base))}
	n := layer.StockNote{
		Kind: layer.Checks, Project: path.Base(w.Host.Path), Branch: w.Row.Request.Branch, Base: base, Tree: tree, Commands: w.Checks(), Made: ledger.Now(),
	}
	_, free, err = s.Workspaces.Stocks.Make(ctx, name, n, w.Spec.Owner, setup, func(room layer.Room) error {
		for _, command := range w.Checks() {
			if err := s.warmOne(ctx, w, setup, room, base, command); err != nil {
				return err
			}
		}
		return nil
	})
	s.noteWarm(family, err)
	if err != nil {
		return err
	}
	free()
	_, err = s.Workspaces.Stocks.Trim(ctx)
	return err
}

// warmOne runs one check on the base for what it leaves in the folder of caches; whether it succeeds says nothing about the change.
func (s *Stocks) warmOne(ctx context.Context, w work.Work, setup layer.Stock, room layer.Room, on git.OID, command string) error {
	shown, err := s.Opener.Show(ctx, w, setup, on)
	if err != nil {
		return err
	}
	defer s.Opener.Discard(ctx, shown)
	name := id.NewSession("warm")
	way, err := s.Ways.Open(ctx, w.Subject(), live.Outgoing{Session: name, Check: true, Unasked: true})
	if err != nil {
		return err
	}
	defer way.Close()
	run, err := s.Runner.Run(ctx, w.Subject(), live.Command{Name: name, Line: command, Way: way, Tree: shown.Tree, Cache: room.Cache, Background: true})
	if err == nil && run.Exit.Limit != nil { // ended in the middle of a write, maybe
		err = &cutShort{command, run}
	}
	return err
}

// cutShort says that a check on the base broke a limit.
type cutShort struct {
	command string
	run     live.Ran
}

func (e *cutShort) Error() string { return e.command + ": " + e.run.Why() }

// failedOf reports whether caches of a family could not be made in this daemon's life, and not long ago.
func (s *Stocks) failedOf(family string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	last, failed := s.failed[family]
	return failed && time.Since(last) < warmEvery
}

// noteWarm notes whether caches of a family could be made.
func (s *Stocks) noteWarm(family string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.failed, family)
	if err != nil {
		s.failed[family] = time.Now()
	}
}
