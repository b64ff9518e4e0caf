package control

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"time"

	"sallyport/internal/base/git"
	"sallyport/internal/base/id"
	"sallyport/internal/drive/judge"
	"sallyport/internal/drive/live"
	"sallyport/internal/path/change"
	"sallyport/internal/path/session"
	"sallyport/internal/path/workspace"
	"sallyport/internal/port/sandbox"
)

// stocked is what a sandbox finds there that commands left which ran on a base.
type stocked struct {
	setup, checks workspace.Stock
	release       func() // once its sandboxes have ended
}

// words say to a person what a check began with; "" if with nothing.
func (s stocked) words() string {
	said := ""
	for _, at := range []workspace.Stock{s.setup, s.checks} {
		if at.None() {
			continue
		}
		if said != "" {
			said += ", "
		}
		what := "the caches"
		if at.Note.Kind == workspace.Setup {
			what = fmt.Sprintf("the setup %q", at.Note.Commands)
		}
		said += fmt.Sprintf("%s of %s, made on %.12s", what, at.Note.Made.UTC().Format("2006-01-02 15:04 UTC"), at.Note.Base)
	}
	return said
}

// stocked finds what is there for a sandbox that shows commit. What its setup left is made if it is not there.
func (c *Controller) stocked(ctx context.Context, row change.Row, j judge.Judging, commit git.OID) (stocked, error) {
	setup, free, err := c.setUp(ctx, row, j, commit)
	if err != nil {
		return stocked{}, err
	}
	checks, freeChecks, err := c.Workspaces.LatestStock(c.checksFamily(row, j, setup))
	if err != nil {
		free()
		return stocked{}, err
	}
	return stocked{setup: setup, checks: checks, release: func() { freeChecks(); free() }}, nil
}

// begunWith finds what is there for a sandbox on a workspace that was prepared.
func (c *Controller) begunWith(row change.Row, j judge.Judging, w workspace.Workspace) (stocked, error) {
	setup, err := c.Workspaces.StockOf(w) // which the workspace keeps
	if err != nil {
		return stocked{}, fmt.Errorf("find what the setup left: %w", err)
	}
	checks, free, err := c.Workspaces.LatestStock(c.checksFamily(row, j, setup))
	return stocked{setup: setup, checks: checks, release: free}, err
}

// until is a way out whose end ends something else too.
func until(way live.Way, release func()) live.Way {
	shut := way
	way.End = sync.OnceFunc(func() {
		shut.Close()
		release()
	})
	return way
}

// family names what is good for the same: one repository, one set of tools, the same commands.
func (c *Controller) family(row change.Row, j judge.Judging, kind workspace.StockKind, commands []string, more string) string {
	r := row.Request
	tools := c.surroundings(row, j, live.Way{}, false).Toolchains()
	with := sha256.Sum256(fmt.Appendf(nil, "stock 1\n%s\n%q\n%s\n%q\n%q\n", kind, c.Workspaces.Host(r.Project).Path, runtime.GOARCH, tools, more))
	by := sha256.Sum256(fmt.Appendf(nil, "%q", commands))
	return hex.EncodeToString(with[:8]) + hex.EncodeToString(by[:8])
}

// generation names one of a family.
func generation(of ...string) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%q", of))
	return hex.EncodeToString(sum[:6])
}

// shellRun is one command in a sandbox of its own.
type shellRun struct {
	exit sandbox.Exit
	took time.Duration
	tail string // the end of what it printed, without secrets
}

func (r shellRun) ok() bool    { return r.exit.Code == 0 && r.exit.Limit == nil }
func (r shellRun) why() string { return session.Describe(r.exit) }

// confined is where a command runs.
type confined struct {
	judging    judge.Judging
	way        live.Way
	tree       sandbox.Tree
	cache      sandbox.Cache
	background bool
	kept       int // bytes of the end of what it prints; 0 = tailBytes
}

// shellOf runs a command in a sandbox and waits for its end; an error is the machine's fault, or ctx has ended.
func (c *Controller) shellOf(ctx context.Context, row change.Row, name id.Session, in confined, command string) (shellRun, error) {
	spec, err := c.environment(ctx, row, in.judging, in.way, in.cache.Upper != "")
	if err != nil {
		return shellRun{}, err
	}
	if in.cache.Upper != "" {
		spec.Env = append(slices.Clone(spec.Env), "XDG_CACHE_HOME="+sandbox.Caches)
	}
	out := &tail{max: cmp.Or(in.kept, tailBytes)}
	clean := c.Secrets.Redactor(out) // before the beginning is cut off, or the rest of a secret would stay
	both := &together{to: clean}
	spec.ID, spec.Tree, spec.Cache, spec.Background = string(name), in.tree, in.cache, in.background
	spec.Argv, spec.Stdout, spec.Stderr = []string{"/bin/sh", "-c", command}, both, both
	began := time.Now()
	process, err := c.Sandbox.Start(ctx, spec)
	if err != nil {
		return shellRun{}, err
	}
	exit, err := process.Wait()
	if err != nil {
		return shellRun{}, err
	}
	if err := clean.Close(); err != nil {
		return shellRun{}, err
	}
	if ctx.Err() != nil {
		return shellRun{}, context.Cause(ctx)
	}
	return shellRun{exit: exit, took: time.Since(began).Round(time.Millisecond), tail: out.String()}, nil
}
