// Package stock has what commands leave for the sandboxes that come after them: what the setup of a repository makes, and the caches
// that its checks begin with.
package stock

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"runtime"
	"sync"
	"time"

	"sallyport/internal/base/disk"
	"sallyport/internal/base/git"
	"sallyport/internal/drive/ledger"
	"sallyport/internal/drive/live"
	"sallyport/internal/drive/work"
	"sallyport/internal/path/layer"
	"sallyport/internal/path/workspace"
)

// Parts is what stocks are made with.
type Parts struct {
	*ledger.Ledger
	Workspaces *workspace.Manager
	Opener     work.Opener
	Runner     live.CommandRunner
	Ways       live.Ways
	Ops        disk.Ops
	Changes    string               // folder of what is kept of each change for people to read
	Working    func() (done func()) // counts as work under way until done is called
}

// Stocks makes and finds them.
type Stocks struct {
	Parts

	warming chan struct{} // one place for what makes caches
	mu      sync.Mutex
	warmed  map[string]time.Time // families of caches that were tried to be made
}

// New returns the stocks of a home.
func New(p Parts) *Stocks {
	return &Stocks{Parts: p, warming: make(chan struct{}, 1), warmed: map[string]time.Time{}}
}

// Found is what a sandbox finds there that commands left which ran on a base.
type Found struct {
	Setup, Checks layer.Stock
	Release       func() // once its sandboxes have ended
}

// Words say to a person what a check began with; "" if with nothing.
func (f Found) Words() string {
	said := ""
	for _, at := range []layer.Stock{f.Setup, f.Checks} {
		if at.None() {
			continue
		}
		if said != "" {
			said += ", "
		}
		what := "the caches"
		if at.Note.Kind == layer.Setup {
			what = fmt.Sprintf("the setup %q", at.Note.Commands)
		}
		said += fmt.Sprintf("%s of %s, made on %.12s", what, at.Note.Made.UTC().Format("2006-01-02 15:04 UTC"), at.Note.Base)
	}
	return said
}

// SetUpFor finds what is there for a sandbox that shows commit. What its setup left is made if it is not there.
//
// Errors: *SetupFailed.
func (s *Stocks) SetUpFor(ctx context.Context, w work.Work, commit git.OID) (Found, error) {
	setup, free, err := s.SetUp(ctx, w, commit)
	if err != nil {
		return Found{}, err
	}
	checks, freeChecks, err := s.Workspaces.Stocks.Latest(s.checksFamily(w, setup))
	if err != nil {
		free()
		return Found{}, err
	}
	return Found{Setup: setup, Checks: checks, Release: func() { freeChecks(); free() }}, nil
}

// On finds what is there for a sandbox on a workspace that was prepared.
func (s *Stocks) On(w work.Work, ws workspace.Workspace) (Found, error) {
	setup, err := s.Workspaces.StockOf(ws) // which the workspace keeps
	if err != nil {
		return Found{}, fmt.Errorf("find what the setup left: %w", err)
	}
	checks, free, err := s.Workspaces.Stocks.Latest(s.checksFamily(w, setup))
	return Found{Setup: setup, Checks: checks, Release: free}, err
}

// family names what is good for the same: one repository, one set of tools, the same commands.
func (s *Stocks) family(w work.Work, kind layer.StockKind, commands []string, more string) string {
	tools := s.Runner.Toolchains(w.Subject())
	with := sha256.Sum256(fmt.Appendf(nil, "stock 1\n%s\n%q\n%s\n%q\n%q\n", kind, w.Host.Path, runtime.GOARCH, tools, more))
	by := sha256.Sum256(fmt.Appendf(nil, "%q", commands))
	return hex.EncodeToString(with[:8]) + hex.EncodeToString(by[:8])
}

// generation names one of a family.
func generation(of ...string) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%q", of))
	return hex.EncodeToString(sum[:6])
}
