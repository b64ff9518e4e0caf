package storage

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"sallyport/internal/base/audit"
	"sallyport/internal/base/beneath"
	"sallyport/internal/base/git"
	"sallyport/internal/base/id"
	"sallyport/internal/base/problem"
	"sallyport/internal/path/change"
	"sallyport/internal/path/checkpoint"
	"sallyport/internal/path/layer"
	"sallyport/internal/path/repository"
	"sallyport/internal/path/session"
	"sallyport/internal/store"
)

// workspaces of changes that have ended go at once; one that nobody knows gets a ref first (SM-135).
func (r *round) workspaces(ctx context.Context) error {
	there, err := r.folders("workspaces")
	if err != nil {
		return err
	}
	for _, at := range there {
		c, err := id.ParseChange(filepath.Base(at.Path))
		if err != nil {
			r.note("%q stays: its name is not that of a workspace", at.Path)
			continue
		}
		row, known := r.changes[c]
		t := thing{kind: Workspaces, path: at.Path}
		switch {
		case !known:
			t.goes = r.abandoned(at.At)
			t.remove = func() (bool, error) { return r.removeUnknown(ctx, c, at) }
		case row.State.Final():
			t.goes = true
			t.remove = func() (bool, error) { return r.Changes.ClearWorkspace(ctx, c, r.over(c, r.Retention.Refs)) }
		}
		if err := r.count(ctx, t); err != nil {
			return err
		}
	}
	return nil
}

// removeUnknown removes a workspace that no row tells of, after its work has a ref in the host's repository.
func (r *round) removeUnknown(ctx context.Context, c id.Change, at beneath.Place) (bool, error) {
	w, host, err := r.Workspaces.Found(ctx, c)
	if problem.KindOf(err) == problem.NotFound {
		return false, fmt.Errorf("%q stays: its work cannot be given a ref: %w", at.Path, err)
	}
	if err != nil {
		return false, err
	}
	refs, err := host.Refs(ctx, repository.RefRoot(c))
	if err != nil {
		return false, err
	}
	taking := checkpoint.Taking{
		Workspaces: r.Workspaces, Workspace: w, Host: host, Trigger: checkpoint.Interrupted, Unjudged: true,
		At: at.At.UTC(), Author: r.Author,
	}
	for n := 1; refs[checkpoint.Ref(c, n)] != ""; n++ {
		taking.Previous = &checkpoint.Checkpoint{Number: n, Commit: refs[checkpoint.Ref(c, n)]}
	}
	taken, err := checkpoint.Take(ctx, taking)
	if err != nil {
		return false, fmt.Errorf("%q stays: keep its work: %w", at.Path, err)
	}
	ref := checkpoint.Ref(c, taken.Checkpoint.Number)
	if err := r.recordDone(ctx, c, "kept", "the work of a workspace whose change is not known, as "+ref,
		map[string]string{"commit": string(taken.Checkpoint.Commit)}); err != nil {
		return false, err
	}
	r.Log.Info("the work of a workspace whose change is not known was kept as a ref", "change", c, "ref", ref, "repository", host.Path)
	return true, r.Ops.Do("sweep:workspace", at.Remove)
}

// recordDone writes what was done about a change into the audit log.
func (r *round) recordDone(ctx context.Context, c id.Change, verb, reason string, digests map[string]string) error {
	return r.DB.InTx(ctx, func(tx store.Tx) error {
		return tx.AppendEntry(ctx, audit.Entry{At: r.now, Actor: r.by, Change: string(c), Subject: string(c), Verb: verb, Reason: reason, Digests: digests})
	})
}

// sessions go when their change has ended long enough ago, or when no row tells of them.
func (r *round) sessions(ctx context.Context) error {
	there, err := r.folders("sessions")
	if err != nil {
		return err
	}
	for _, at := range there {
		name, err := id.ParseSession(filepath.Base(at.Path))
		if err != nil {
			r.note("%q stays: its name is not that of a session", at.Path)
			continue
		}
		t := thing{kind: Transcripts, path: at.Path, remove: r.removing("sweep:session", at)}
		var s session.Session
		err = r.DB.Read(ctx, func(tx store.Tx) (err error) { s, err = tx.Session(ctx, name); return err })
		switch {
		case problem.KindOf(err) == problem.NotFound:
			t.goes = r.abandoned(at.At)
		case err != nil:
			return err
		case s.Chat != "":
			if t.goes, err = r.left(ctx, s); err != nil {
				return err
			}
		default:
			t.goes = r.over(s.Change, r.Retention.Transcripts)
			t.remove = r.ended(ctx, s.Change, t.remove)
		}
		if err := r.count(ctx, t); err != nil {
			return err
		}
	}
	return nil
}

// left reports whether a session of a chat ended long ago and its chat goes on under another identity.
func (r *round) left(ctx context.Context, s session.Session) (bool, error) {
	if s.Ended == nil || r.now.Sub(*s.Ended) < r.Retention.Transcripts {
		return false, nil
	}
	current := s.ID
	err := r.DB.Read(ctx, func(tx store.Tx) error {
		c, err := tx.Chat(ctx, s.Chat)
		current = c.Identity
		return err
	})
	return err == nil && current != s.ID, err
}

// exports are what lies in .state/changes for people to read.
func (r *round) exports(ctx context.Context) error {
	there, err := r.folders("changes")
	if err != nil {
		return err
	}
	for _, at := range there {
		c, err := id.ParseChange(filepath.Base(at.Path))
		if err != nil {
			r.note("%q stays: its name is not that of a change", at.Path)
			continue
		}
		t := thing{kind: Exports, path: at.Path, goes: r.over(c, r.Retention.Exports)}
		t.remove = r.ended(ctx, c, r.removing("sweep:export", at))
		if _, known := r.changes[c]; !known {
			t.goes, t.remove = r.abandoned(at.At), r.removing("sweep:export", at)
		}
		if err := r.count(ctx, t); err != nil {
			return err
		}
	}
	return nil
}

// refs of changes that have ended long enough ago go, in the host's repositories and in the projects. Those of a
// change that this home does not know are another home's, or all there is of work that was lost: they stay.
func (r *round) refs(ctx context.Context) error {
	held := map[id.Change]int{}
	dirs := map[string]git.Dir{}
	for _, p := range r.projects() {
		dirs[p.CommonDir] = p.Common(r.Ops)
		host := r.Workspaces.Host(p)
		dirs[host.Path] = host
	}
	for _, path := range slices.Sorted(maps.Keys(dirs)) {
		dir := dirs[path]
		if there, err := repository.HasRepository(dir); err != nil || !there {
			continue // a repository that is gone, or closed to us, has none to remove
		}
		all, err := dir.Refs(ctx, "refs/sallyport/")
		if err != nil {
			r.note("the refs of %q could not be read: %v", path, err)
			continue
		}
		for ref := range all {
			if c, ok := changeOf(ref); ok {
				held[c]++
			}
		}
	}
	for _, c := range slices.Sorted(maps.Keys(held)) {
		row, known := r.changes[c]
		if !known {
			r.note("what is below %s stays: no change of this home has that id", repository.RefRoot(c))
			continue
		}
		goes := r.over(c, r.Retention.Refs)
		size := int64(0)
		if goes && r.measure {
			size = r.reachable(ctx, row)
		}
		for range held[c] - 1 { // each counts; they go together
			r.rows[Refs].Count++
			if goes && !r.do {
				r.rows[Refs].Gone++
			}
		}
		err := r.count(ctx, thing{kind: Refs, bytes: size, goes: goes, remove: func() (bool, error) { return r.forget(ctx, row) }})
		if err != nil {
			return err
		}
	}
	return nil
}

// changeOf is the change that a ref belongs to: refs/sallyport/<change>/…
func changeOf(ref string) (id.Change, bool) {
	rest, ok := strings.CutPrefix(ref, "refs/sallyport/")
	name, _, inside := strings.Cut(rest, "/")
	c, err := id.ParseChange(name)
	return c, ok && inside && err == nil
}

// forget removes the refs of one change.
func (r *round) forget(ctx context.Context, row change.Row) (bool, error) {
	n, err := r.Changes.ForgetRefs(ctx, row.ID, r.by)
	if err != nil || n == 0 {
		return false, err
	}
	r.rows[Refs].Gone += n - 1
	r.forgot[r.Workspaces.Host(row.Request.Project).Path] = true
	return true, nil
}

// reachable is about how many bytes only the refs of one change hold; 0 where that cannot be told.
func (r *round) reachable(ctx context.Context, row change.Row) int64 {
	host := r.Workspaces.Host(row.Request.Project)
	refs, _ := host.Refs(ctx, repository.RefRoot(row.ID))
	if len(refs) == 0 { // or they cannot be read
		return 0
	}
	args := []string{"rev-list", "--objects", "--disk-usage"}
	for _, ref := range slices.Sorted(maps.Keys(refs)) {
		args = append(args, string(refs[ref]))
	}
	if row.Base != "" {
		args = append(args, "^"+row.Base)
	}
	out, err := host.Run(ctx, git.Cmd{Args: args})
	if err != nil {
		return 0
	}
	size := int64(0)
	_, _ = fmt.Sscan(string(out), &size) // no number is no estimate
	return size
}

// backups are copies of the database: those from before a migration stay, and one from before a change landed until that change has ended.
func (r *round) backups(ctx context.Context) error {
	entries, err := os.ReadDir(filepath.Join(r.State, store.BackupsFolder))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("read the copies of the database: %w", err)
	}
	for _, e := range entries {
		at, folder, _ := beneath.PlaceOf(filepath.Join(r.State, store.BackupsFolder, e.Name()))
		if at.Path == "" || aside(e.Name()) { // gone meanwhile, or closed to us; or half made
			continue
		}
		t := thing{kind: Backups, path: at.Path}
		if c, is := store.SnapshotOf(e.Name()); is && !folder && int(at.UID) == os.Geteuid() {
			drop := func() (bool, error) { return true, r.Ops.Do("sweep:snapshot", at.Unlink) }
			t.goes, t.remove = r.over(c, 0), r.ended(ctx, c, drop)
			if _, known := r.changes[c]; !known {
				t.goes, t.remove = r.abandoned(at.At), drop
			}
		}
		if err := r.count(ctx, t); err != nil {
			return err
		}
	}
	return nil
}

// layers are looked after by their cache, which knows what stands on which: it says what goes, and takes it away.
func (r *round) layers(ctx context.Context) error {
	there, err := r.Workspaces.Layers.All(ctx)
	if err != nil {
		return err
	}
	goes, err := r.Workspaces.Layers.Surplus(ctx)
	if err != nil {
		return err
	}
	row := r.rows[Layers]
	for _, l := range there {
		row.Count++
		row.Bytes += l.Bytes
	}
	if r.do {
		if _, err := r.Workspaces.Layers.Trim(ctx); err != nil {
			return err
		}
		left, err := r.Workspaces.Layers.All(ctx)
		if err != nil {
			return err
		}
		goes = slices.DeleteFunc(goes, func(g layer.Info) bool {
			return slices.ContainsFunc(left, func(l layer.Info) bool { return l.Tree == g.Tree })
		})
	}
	for _, l := range goes {
		row.Gone++
		row.Freed += l.Bytes
	}
	return nil
}

// caches are looked after by whoever keeps the layers, by the same bounds.
func (r *round) caches(ctx context.Context) error {
	there, err := r.Workspaces.Stocks.All()
	if err != nil {
		return err
	}
	goes, err := r.Workspaces.Stocks.Surplus()
	if err != nil {
		return err
	}
	row := r.rows[Caches]
	for _, s := range there {
		row.Count++
		row.Bytes += s.Note.Bytes
	}
	if r.do {
		if _, err := r.Workspaces.Stocks.Trim(ctx); err != nil {
			return err
		}
		left, err := r.Workspaces.Stocks.All()
		if err != nil {
			return err
		}
		goes = slices.DeleteFunc(goes, func(g layer.StockInfo) bool {
			return slices.ContainsFunc(left, func(s layer.StockInfo) bool { return s.ID == g.ID })
		})
	}
	for _, s := range goes {
		row.Gone++
		row.Freed += s.Note.Bytes
	}
	return nil
}
