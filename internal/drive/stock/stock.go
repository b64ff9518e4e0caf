// Package stock has what commands leave for the sandboxes that come after them: what the setup of a repository makes, and the caches
// that its checks begin with.
package stock

import (
	"cmp"
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
	"sallyport/internal/path/project"
	"sallyport/internal/path/request"
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
	failed  map[string]time.Time // families of caches that could not be made
	follows map[[2]git.OID]bool  // what git said of a commit, and of one that it may follow
}

// New returns the stocks of a home.
func New(p Parts) *Stocks {
	return &Stocks{Parts: p, warming: make(chan struct{}, 1), failed: map[string]time.Time{}, follows: map[[2]git.OID]bool{}}
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
	checks, freeChecks, err := s.checksFor(ctx, w, setup, commit)
	if err != nil {
		free()
		return Found{}, err
	}
	return Found{Setup: setup, Checks: checks, Release: func() { freeChecks(); free() }}, nil
}

// On finds what is there for a sandbox on a workspace that was prepared.
func (s *Stocks) On(ctx context.Context, w work.Work, ws workspace.Workspace) (Found, error) {
	setup, err := s.Workspaces.StockOf(ws) // which the workspace keeps
	if err != nil {
		return Found{}, fmt.Errorf("find what the setup left: %w", err)
	}
	checks, free, err := s.checksFor(ctx, w, setup, w.Spec.Base)
	return Found{Setup: setup, Checks: checks, Release: free}, err
}

// checksFor returns the caches that serve a commit, which stay until release is called; none if none do.
func (s *Stocks) checksFor(ctx context.Context, w work.Work, setup layer.Stock, commit git.OID) (left layer.Stock, release func(), err error) {
	return s.Workspaces.Stocks.Latest(s.checksFamily(w, setup), func(at layer.Stock) (bool, error) {
		return s.serves(ctx, w.Host, at.Note.Base, commit)
	})
}

// followsMax is how many answers are remembered.
const followsMax = 1000

// serves reports whether what commands leave on one commit may serve another: it has that commit, and nothing was taken back since.
// What only another branch has, or the branch no more, runs nothing here through what it left.
func (s *Stocks) serves(ctx context.Context, host git.Dir, on, commit git.OID) (bool, error) {
	pair := [2]git.OID{commit, on}
	s.mu.Lock()
	yes, known := s.follows[pair]
	s.mu.Unlock()
	if known {
		return yes, nil
	}
	yes, err := git.Follows(ctx, host, commit, on)
	switch {
	case ctx.Err() != nil:
		return false, context.Cause(ctx)
	case err != nil: // what is not known to serve does not
		s.Log.Warn("whether what commands left serves a commit is not known, and so it does not", "left_on", on, "commit", commit, "error", err)
		return false, nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.follows) >= followsMax {
		clear(s.follows)
	}
	s.follows[pair] = yes
	return yes, nil
}

// ground is the newest commit of a change's base that a person made: the base, or what a commit of the host's own stands on, as that
// of uncommitted changes, or of what a group's agent is shown.
func ground(ctx context.Context, w work.Work) (git.OID, error) {
	base, r := git.OID(w.Row.Base), w.Row.Request
	ours := r.Kind == request.Swap && r.Worked()
	if r.IncludeDirty {
		var err error
		if ours, err = project.IsDirty(ctx, w.Host, base); err != nil { // nothing may have been uncommitted
			return "", fmt.Errorf("find what %.12s stands on: %w", base, err)
		}
	}
	if !ours {
		return base, nil
	}
	below, err := w.Host.Resolve(ctx, string(base)+"^")
	return cmp.Or(below, base), err
}

// family names what is good for the same: one repository, one set of tools, the same commands.
func (s *Stocks) family(w work.Work, kind layer.StockKind, commands []string, more string) string {
	tools := s.Runner.Toolchains(w.Subject())
	with := sha256.Sum256(fmt.Appendf(nil, "stock 2\n%s\n%q\n%s\n%q\n%q\n", kind, w.Host.Path, runtime.GOARCH, tools, more))
	by := sha256.Sum256(fmt.Appendf(nil, "%q", commands))
	return hex.EncodeToString(with[:8]) + hex.EncodeToString(by[:8])
}

// generation names one of a family.
func generation(of ...string) string { return digest(of...)[:12] }

// digest is of words in their order.
func digest(of ...string) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%q", of))
	return hex.EncodeToString(sum[:])
}
