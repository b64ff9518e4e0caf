package storage

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"sallyport/internal/base/audit"
	"sallyport/internal/base/disk"
	"sallyport/internal/base/git"
	"sallyport/internal/base/id"
	"sallyport/internal/base/leftover"
	"sallyport/internal/path/change"
	"sallyport/internal/path/landing"
	"sallyport/internal/path/workspace"
	"sallyport/internal/store"
	"sallyport/internal/who/person"
)

// Kind is a kind of thing that is kept.
type Kind string

// The kinds, in the order they are shown.
const (
	Layers       Kind = "layers"       // base trees, shared by workspaces
	Caches       Kind = "caches"       // what setups and checks left on a base, for the next ones to begin with
	Workspaces   Kind = "workspaces"   // what agents write
	Repositories Kind = "repositories" // the host's own, with every checkpoint
	Refs         Kind = "refs"         // of changes that have ended, in those and in projects
	Transcripts  Kind = "transcripts"  // folders of sessions
	GroupFiles   Kind = "groups"       // what the agents of groups have written and remember
	Exports      Kind = "exports"      // state.md and diffs, for people
	Database     Kind = "database"
	Backups      Kind = "backups"
	Releases     Kind = "releases" // the kept versions of the host's own programs
	Logs         Kind = "logs"
	Orphans      Kind = "orphans" // what a crash has left: desks, locks, half-made files, sockets, control groups, mounts
	Other        Kind = "other"   // anything else in .state
)

// kinds is the order of a report.
var kinds = []Kind{Layers, Caches, Workspaces, Repositories, Refs, Transcripts, GroupFiles, Exports, Database, Backups, Releases, Logs, Orphans, Other}

// Retention says how long things stay after their change has ended. Zero means the default.
type Retention struct {
	Refs        time.Duration // refs and checkpoints; 30 days
	Transcripts time.Duration // 30 days
	Exports     time.Duration // 30 days
	// Grace is how long what nobody owns stays, counted from its last change; an hour. Less than zero: no time.
	Grace time.Duration
}

// Defaults of a retention.
const (
	KeepDefault  = 30 * 24 * time.Hour
	GraceDefault = time.Hour
)

func (r Retention) filled() Retention {
	for _, d := range []*time.Duration{&r.Refs, &r.Transcripts, &r.Exports} {
		if *d <= 0 {
			*d = KeepDefault
		}
	}
	if r.Grace == 0 {
		r.Grace = GraceDefault
	}
	r.Grace = max(r.Grace, 0)
	return r
}

// Changes is what is asked of whoever moves changes.
type Changes interface {
	// Ended runs do on a change that has ended while nothing else is done to it; false if it has not.
	Ended(ctx context.Context, change id.Change, do func(change.Row) error) (bool, error)
	// ClearWorkspace removes the workspace of an ended change once its work has a ref; with kept also one that a person may look at.
	ClearWorkspace(ctx context.Context, change id.Change, kept bool) (gone bool, err error)
	// ForgetRefs removes the refs of an ended change, in the host's repository and the project's, and says so in the audit log.
	ForgetRefs(ctx context.Context, change id.Change, by audit.Actor) (removed int, err error)
}

// Parts is what a steward stands on.
type Parts struct {
	DB         store.DB
	Owner      person.Owner
	State      string // the home's .state, absolute and free of links
	Socket     string // this daemon's own
	Runtime    []string
	Workspaces *workspace.Manager
	Changes    Changes
	Lander     *landing.Lander
	Left       []leftover.Part // what is asked beside rows, repositories and sockets
	Retention  Retention
	Author     git.Signature // of commits that keep work whose change is not known; At is ignored
	Ops        disk.Ops
	Log        *slog.Logger
}

// Steward looks after what a home has on disk. Only the process that holds the home may have one.
type Steward struct {
	Parts
	turn  sync.Mutex // one round at a time
	swept swept
}

// New returns a steward; it touches nothing.
func New(p Parts) *Steward {
	p.Retention = p.Retention.filled()
	return &Steward{Parts: p}
}

// Row is what there is of one kind.
type Row struct {
	Kind  Kind
	Keeps string // how long it stays, for a person
	Count int
	Bytes int64 // of disk
	Gone  int   // of Count: what went, or would
	Freed int64 // of Bytes; of refs an estimate
}

// Report is what a round found.
type Report struct {
	Rows  []Row
	Notes []string // what stays although it looks like ours, or could not be removed, and why; not yet harmless to show
}

// Look reports what there is and what Collect would remove; it changes nothing.
func (s *Steward) Look(ctx context.Context) (Report, error) {
	return s.round(ctx, hand{measure: true, prune: true})
}

// Collect removes what need not be kept, and reports what there was and what went. Errors: person.ErrNotOwner (denied).
func (s *Steward) Collect(ctx context.Context, by audit.Actor) (Report, error) {
	if err := s.Owner.MayDecide(by); err != nil {
		return Report{}, err
	}
	return s.round(ctx, hand{do: true, measure: true, prune: true, by: by})
}

// Sweep removes what a crash has left and what has been kept long enough. It is called in the background
// after a start, and again from time to time.
func (s *Steward) Sweep(ctx context.Context) error {
	_, err := s.round(ctx, hand{do: true, doubts: true, by: audit.Host})
	return err
}

// sweepEvery is how often a daemon that stays sweeps.
const sweepEvery = 24 * time.Hour

// Run sweeps now and every day, and tends to what workspaces that go leave grown, until ctx ends. What goes wrong is logged: it is tried again.
func (s *Steward) Run(ctx context.Context) error {
	tick := time.NewTicker(sweepEvery)
	defer tick.Stop()
	if err := s.Sweep(ctx); err != nil && ctx.Err() == nil {
		s.Log.Warn("the sweep did not finish", "error", err)
	}
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-s.Workspaces.Worn():
			if err := s.tend(ctx); err != nil && ctx.Err() == nil {
				s.Log.Warn("what every change adds to could not be made smaller", "error", err)
			}
		case <-tick.C:
			if err := s.Sweep(ctx); err != nil && ctx.Err() == nil {
				s.Log.Warn("the sweep did not finish", "error", err)
			}
		}
	}
}

// tend waits for a round that is under way: both pack the host's repositories.
func (s *Steward) tend(ctx context.Context) error {
	s.turn.Lock()
	defer s.turn.Unlock()
	return s.Workspaces.Tend(ctx)
}
