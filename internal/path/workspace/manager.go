package workspace

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"sallyport/internal/base/disk"
	"sallyport/internal/base/git"
	"sallyport/internal/base/id"
	"sallyport/internal/base/lock"
	"sallyport/internal/path/layer"
	"sallyport/internal/path/project"
	"sallyport/internal/path/repository"
)

// Config says where workspaces live and how they are copied.
type Config struct {
	Root     string // absolute: the home's .state
	Ops      disk.Ops
	Strategy Strategy // as Probe found; "" = Copy
	Limits   Limits
	Cache    Cache
	History  int // commits at most that are copied with a base; 0 = 10,000
}

// Cache bounds the base layers that nothing stands on. Zero means the default.
type Cache struct {
	Keep       time.Duration // after the last use; default 14 days
	QuotaBytes int64         // of disk, all layers together; default 10 GiB
}

func (c Cache) filled() Cache {
	if c.Keep <= 0 {
		c.Keep = 14 * 24 * time.Hour
	}
	if c.QuotaBytes <= 0 {
		c.QuotaBytes = 10 << 30
	}
	return c
}

// Limits bound a base and a walk; reaching one is told by name. Zero means the default.
type Limits struct {
	Entries int // entries of one workspace, folders included; default 1,000,000
	Depth   int // folders in each other; default 128

	PathBytes int64 // all paths and links together, which are kept in memory; default 128 MiB

	IgnoreTime time.Duration // for git to say what the base ignores; default 2 min
}

func (l Limits) filled() Limits {
	if l.Entries <= 0 {
		l.Entries = 1_000_000
	}
	if l.Depth <= 0 {
		l.Depth = 128
	}
	if l.PathBytes <= 0 {
		l.PathBytes = 128 << 20
	}
	if l.IgnoreTime <= 0 {
		l.IgnoreTime = 2 * time.Minute
	}
	return l
}

// Manager makes, opens, reads and removes the workspaces of one home. Only one
// process may have a Manager on a root; within it, all methods may be called at once.
type Manager struct {
	Repositories *repository.Store // the host's own
	Layers       *layer.Store      // immutable trees of bases
	Stocks       *layer.Stocks     // what commands left on a base
	Projects     *project.Reader   // what is a person's

	root     string
	ops      disk.Ops
	strategy Strategy
	limits   Limits

	busy lock.Keyed[string] // names that are being made

	worn chan struct{} // of Worn
}

// New returns a manager; it touches nothing.
func New(c Config) *Manager {
	if c.Strategy == "" {
		c.Strategy = Copy
	}
	cache := c.Cache.filled()
	m := &Manager{
		Repositories: repository.New(repository.Config{
			Root: filepath.Join(c.Root, "repos"), Ops: c.Ops, History: c.History, Keeps: cache.Keep,
			Shown: func(each func(string)) error {
				return records(c.Root, func(r record) {
					for _, objects := range r.Objects {
						each(objects)
					}
				})
			},
		}),
		Layers: layer.New(layer.Config{
			Root: filepath.Join(c.Root, "layers"), Ops: c.Ops, Keep: cache.Keep, QuotaBytes: cache.QuotaBytes,
			Standing: func(each func(git.OID)) error {
				return records(c.Root, func(r record) {
					each(r.Tree)
					for _, below := range r.Layers {
						each(below)
					}
				})
			},
		}),
		Stocks: layer.NewStocks(layer.StocksConfig{
			Root: filepath.Join(c.Root, "stock"), Ops: c.Ops, Overlay: c.Strategy == Overlay, Keep: cache.Keep, QuotaBytes: cache.QuotaBytes,
			Showing: func(each func(string)) error { return records(c.Root, func(r record) { each(r.Setup) }) },
		}),
		root: c.Root, ops: c.Ops, strategy: c.Strategy, limits: c.Limits.filled(),
		worn: make(chan struct{}, 1),
	}
	m.Projects = project.New(project.Config{
		Repositories: m.Repositories, Folder: filepath.Join(c.Root, "dirty"), Ops: c.Ops, Entries: m.limits.Entries, PathBytes: m.limits.PathBytes,
	})
	return m
}

// EnsureRepository returns the host's own bare repository for a project, with what each of the commits reaches: see repository.Store.
func (m *Manager) EnsureRepository(ctx context.Context, project git.Project, commits ...git.OID) (git.Dir, error) {
	return m.Repositories.Open(ctx, project, commits...)
}

// Host returns where the host's repository of a project is, made or not, and touches nothing.
func (m *Manager) Host(project git.Project) git.Dir { return m.Repositories.Host(project) }

// Strategy returns how new workspaces are copied.
func (m *Manager) Strategy() Strategy { return m.strategy }

// Probe returns the best strategy for a root: overlay if the sandbox can show one,
// else reflink if the file system of root shares blocks, else copy.
func Probe(ops disk.Ops, root string, overlay bool) (Strategy, error) {
	if overlay {
		return Overlay, nil
	}
	found := Copy
	err := ops.Do("strategy:probe", func() error {
		from, err := os.CreateTemp(root, ".probe-")
		if err != nil {
			return err
		}
		defer func() { _ = os.Remove(from.Name()) }()
		defer from.Close()
		to, err := os.CreateTemp(root, ".probe-")
		if err != nil {
			return err
		}
		defer func() { _ = os.Remove(to.Name()) }()
		defer to.Close()
		if _, err := from.WriteString("probe"); err != nil {
			return err
		}
		if unix.IoctlFileClone(int(to.Fd()), int(from.Fd())) == nil {
			found = Reflink
		}
		return nil
	})
	if err != nil {
		return "", fmt.Errorf("probe %s: %w", root, err)
	}
	return found, nil
}

func (m *Manager) home(change id.Change) string {
	return filepath.Join(m.root, "workspaces", string(change))
}
