package storage

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"sallyport/internal/base/audit"
	"sallyport/internal/base/beneath"
	"sallyport/internal/base/git"
	"sallyport/internal/base/id"
	"sallyport/internal/path/change"
	"sallyport/internal/store"
)

// hand is what a round may do.
type hand struct {
	do      bool // remove what need not stay
	measure bool // also what stays
	prune   bool // tidy up the repositories too, though nothing was removed from them
	doubts  bool // the clock: no person has asked, who would know what it shows
	by      audit.Actor
}

// round is one look at everything.
type round struct {
	*Steward
	hand
	now     time.Time
	rows    map[Kind]*Row
	notes   []string
	changes map[id.Change]change.Row
	forgot  map[string]bool // repositories of ours that lost refs in this round
}

// changesMax bounds the rows of one home.
const changesMax = 10_000_000

func (s *Steward) round(ctx context.Context, h hand) (Report, error) {
	s.turn.Lock()
	defer s.turn.Unlock()
	r := &round{Steward: s, hand: h, now: time.Now(), rows: map[Kind]*Row{}, changes: map[id.Change]change.Row{}, forgot: map[string]bool{}}
	keeps := s.keeps()
	for _, k := range kinds {
		r.rows[k] = &Row{Kind: k, Keeps: keeps[k]}
	}
	all, err := store.Look(ctx, s.DB, store.Tx.Changes, change.Filter{Limit: changesMax})
	if err != nil {
		return Report{}, fmt.Errorf("read the changes of the home: %w", err)
	}
	for _, row := range all {
		r.changes[row.ID] = row
	}
	var errs []error
	if h.doubts {
		r.now, err = s.clock(r.now)
		errs = append(errs, err)
	}
	for _, part := range []func(context.Context) error{
		r.leftovers, r.workspaces, r.sessions, r.exports, r.refs, r.keepers, r.caches, r.layers, r.repositories, r.backups, r.rest,
	} {
		if ctx.Err() != nil {
			return Report{}, context.Cause(ctx)
		}
		errs = append(errs, part(ctx)) // one kind that cannot be read is no reason to leave the others
	}
	report := Report{Notes: r.notes}
	for _, k := range kinds {
		report.Rows = append(report.Rows, *r.rows[k])
	}
	return report, errors.Join(errs...)
}

// keeps says how long each kind stays.
func (s *Steward) keeps() map[Kind]string {
	after := func(d time.Duration) string { return days(d) + " after its change has ended" }
	return map[Kind]string{
		Layers:       "while a workspace uses it; then as long as layers: in sallyport.yaml says, at most sixteen for one repository",
		Caches:       "while a workspace or a sandbox uses it; then as long as layers: in sallyport.yaml says",
		Workspaces:   "until its change has ended",
		Repositories: "as long as a ref names it",
		Refs:         after(s.Retention.Refs),
		Transcripts:  after(s.Retention.Transcripts),
		Exports:      after(s.Retention.Exports),
		GroupFiles:   "as long as its group is there",
		Database:     "always", Logs: "always",
		Backups:  "from before a migration, always; from before a swap, until its change has ended",
		Releases: "the newest five, and those that run, ran before or that a change waits with; the others go as orphans do",
		Orphans:  days(s.Retention.Grace) + " after it was last touched",
		Other:    "as long as it is needed",
	}
}

// days writes a length of time in its largest whole unit.
func days(d time.Duration) string {
	for _, u := range []struct {
		unit time.Duration
		name string
	}{{24 * time.Hour, "day"}, {time.Hour, "hour"}, {time.Minute, "minute"}, {time.Second, "second"}} {
		if d >= u.unit && d%u.unit == 0 {
			if d == u.unit {
				return "1 " + u.name
			}
			return fmt.Sprintf("%d %ss", d/u.unit, u.name)
		}
	}
	return d.String()
}

// abandoned reports whether what was last changed at a time has had its grace.
func (r *round) abandoned(at time.Time) bool { return r.now.Sub(at) >= r.Retention.Grace }

// over reports whether a change has ended longer ago than keep. What is not known has not.
func (r *round) over(c id.Change, keep time.Duration) bool {
	row, ok := r.changes[c]
	return ok && row.State.Final() && r.now.Sub(row.Moved) >= keep
}

// note tells what stays, and why.
func (r *round) note(format string, args ...any) {
	r.notes = append(r.notes, fmt.Sprintf(format, args...))
}

// thing is something that is kept or goes.
type thing struct {
	kind   Kind
	path   string // measured; "" has no size of its own
	bytes  int64  // instead of path
	goes   bool
	remove func() (bool, error) // false: it stays after all
}

// count adds a thing to the report, and removes it if it goes and may.
func (r *round) count(ctx context.Context, t thing) error {
	row := r.rows[t.kind]
	if t.path != "" && r.measure {
		var err error
		if t.bytes, err = beneath.Allocated(ctx, t.path); err != nil {
			return err
		}
	}
	row.Count++
	row.Bytes += t.bytes
	if !t.goes {
		return nil
	}
	if r.do {
		gone, err := t.remove()
		if err != nil {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			r.note("%v", err)
			r.Log.Warn("something that has been kept long enough could not be removed", "kind", t.kind, "what", t.path, "error", err)
			return nil
		}
		if !gone {
			return nil
		}
	}
	row.Gone++
	row.Freed += t.bytes
	return nil
}

// folders returns the folders of ours in a folder of .state. One that is a link, or belongs to another, is not ours.
func (r *round) folders(in string) ([]beneath.Place, error) {
	entries, err := os.ReadDir(filepath.Join(r.State, in))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read %q: %w", in, err)
	}
	var all []beneath.Place
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), ".") {
			continue
		}
		at, folder, err := beneath.PlaceOf(filepath.Join(r.State, in, e.Name()))
		if err != nil {
			return nil, err
		}
		if at.Path == "" { // gone meanwhile
			continue
		}
		if !folder || int(at.UID) != os.Geteuid() {
			r.note("%q stays: it is not a folder of this home's", at.Path)
			continue
		}
		all = append(all, at)
	}
	return all, nil
}

// removing is how a folder goes.
func (r *round) removing(op string, at beneath.Place) func() (bool, error) {
	return func() (bool, error) { return true, r.Ops.Do(op, at.Remove) }
}

// ended is removing for what belongs to a change that has ended, while nothing else is done to that change.
func (r *round) ended(ctx context.Context, c id.Change, remove func() (bool, error)) func() (bool, error) {
	return func() (gone bool, err error) {
		_, err = r.Changes.Ended(ctx, c, func(row change.Row) error {
			if !row.Moved.Equal(r.changes[c].Moved) {
				return nil // it was taken up again, and has ended once more
			}
			gone, err = remove()
			return err
		})
		return gone, err
	}
}

// projects returns the repositories that this home's changes are in, each work tree once.
func (r *round) projects() []git.Project {
	seen := map[string]git.Project{}
	for _, row := range r.changes {
		if p := row.Request.Project; p.GitDir != "" {
			seen[p.GitDir] = p
		}
	}
	var all []git.Project
	for _, p := range seen {
		all = append(all, p)
	}
	slices.SortFunc(all, func(a, b git.Project) int { return strings.Compare(a.GitDir, b.GitDir) })
	return all
}
