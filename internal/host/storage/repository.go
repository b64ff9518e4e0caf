package storage

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"sallyport/internal/base/beneath"
	"sallyport/internal/base/git"
	"sallyport/internal/store"
)

// repositories of the host's own lose the objects that no ref names and that have had their grace. Git runs there with
// our configuration alone. A project is left to its owner's git.
func (r *round) repositories(ctx context.Context) error {
	there, err := r.Workspaces.Repositories.All()
	if err != nil {
		return fmt.Errorf("read the host's repositories: %w", err)
	}
	row := r.rows[Repositories]
	for _, host := range there {
		before := int64(0)
		if r.measure {
			if before, err = beneath.Allocated(ctx, host.Path); err != nil {
				return err
			}
		}
		row.Count++
		row.Bytes += before
		switch {
		case !r.do:
			row.Freed += r.loose(ctx, host)
			continue
		case !r.prune && !r.forgot[host.Path]:
			continue
		}
		if err := r.Workspaces.Repositories.Trim(ctx, host); err != nil {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			r.note("the bases in %q stay: %v", host.Path, err)
		}
		if err := r.pruneObjects(ctx, host); err != nil {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			r.note("%q stays as it is: %v", host.Path, err)
			continue
		}
		if !r.measure {
			continue
		}
		after, err := beneath.Allocated(ctx, host.Path)
		if err != nil {
			return err
		}
		row.Freed += max(before-after, 0)
	}
	return nil
}

// expiry is the grace in git's words.
func (r *round) expiry() string {
	if r.Retention.Grace <= 0 {
		return "now"
	}
	return fmt.Sprintf("%d.seconds.ago", int64(r.Retention.Grace/time.Second))
}

// pruneObjects packs what refs name and removes what none names, as git gc would.
func (r *round) pruneObjects(ctx context.Context, host git.Dir) error {
	expire := r.expiry()
	if _, err := host.Do(ctx, "repository:repack", git.Cmd{Args: []string{"repack", "-A", "-d", "-l", "-q", "--unpack-unreachable=" + expire}}); err != nil {
		return fmt.Errorf("pack what is kept: %w", err)
	}
	if _, err := host.Do(ctx, "repository:prune", git.Cmd{Args: []string{"prune", "--expire=" + expire}}); err != nil {
		return fmt.Errorf("remove what no ref names: %w", err)
	}
	return nil
}

// loose is what the loose objects take that would go. Those in packs are not known before.
func (r *round) loose(ctx context.Context, host git.Dir) (size int64) {
	out, err := host.Run(ctx, git.Cmd{Args: []string{"prune", "--dry-run", "--expire=" + r.expiry()}})
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(out)) {
		oid, _, _ := strings.Cut(line, " ")
		if !git.OID(oid).Valid() {
			continue
		}
		if bytes, err := beneath.Allocated(ctx, filepath.Join(host.Path, "objects", oid[:2], oid[2:])); err == nil {
			size += bytes
		}
	}
	return size
}

// rest measures what is not looked at one by one, and everything in .state that has no kind.
func (r *round) rest(ctx context.Context) error {
	if !r.measure {
		return nil
	}
	entries, err := os.ReadDir(r.State)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("read the home's state: %w", err)
	}
	for _, e := range entries {
		kind, counted := kindOf(e.Name())
		if counted || aside(e.Name()) {
			continue
		}
		if err := r.count(ctx, thing{kind: kind, path: filepath.Join(r.State, e.Name())}); err != nil {
			return err
		}
	}
	return nil
}

// kindOf tells what a name in .state is; counted if its entries are counted one by one.
func kindOf(name string) (kind Kind, counted bool) {
	switch name {
	case "layers", "stock", "workspaces", "repos", "sessions", "changes", "deadman", "gone", store.BackupsFolder:
		return "", true
	case "sallyport.db", "sallyport.db-wal", "sallyport.db-shm":
		return Database, false
	case "trees":
		return Layers, false
	case "groups":
		return GroupFiles, false
	case "releases":
		return Releases, false
	case "logs":
		return Logs, false
	}
	if strings.HasPrefix(name, "sallyport.db") { // a snapshot of it
		return Backups, false
	}
	return Other, false
}
