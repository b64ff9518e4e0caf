package daemon

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"sallyport/internal/base/release"
	"sallyport/internal/door/api"
	rehearse "sallyport/internal/drive/release"
	"sallyport/internal/port/rehearsal"
	"sallyport/internal/port/rehearsal/inner"
	"sallyport/internal/port/sandbox"
	"sallyport/internal/port/sandbox/bwrap"
	"sallyport/internal/rule/config"
	"sallyport/internal/store"
	"sallyport/internal/store/sqlite"
	"sallyport/internal/who/person"
)

// candidate is what a candidate for the host is made of: what runs, and a copy of the state.
type candidate struct{ *Daemon }

// Running is where the programs of this daemon lie.
func (c candidate) Running() (dir string, is release.Release, err error) {
	return filepath.Dir(c.Self), release.Release{Build: api.Build(), Schema: sqlite.Schema(), Image: c.image,
		Built: time.Now().UTC().Truncate(time.Second)}, nil
}

// Releases is where the home keeps its releases.
func (c candidate) Releases() release.Folder { return release.In(c.Home, c.Ops) }

// Registries is what the home says of builds now.
func (c candidate) Registries() bool { return c.settings.Sallyport().Host.Build.Registries }

// checkBuild says whether a build of the host would find what it needs, where a home has the source of its host.
func checkBuild(home string, registries bool) []api.Check {
	source := filepath.Join(home, config.SourceFolder)
	if _, err := os.Lstat(filepath.Join(source, "go.mod")); err != nil {
		return nil
	}
	p := rehearse.Person()
	p.Registries = registries
	if lack, fix := rehearsal.Unbuildable(p, source, api.Modules()); lack != "" {
		return []api.Check{{Name: "build of the host", Detail: lack, Fix: fix}}
	}
	return []api.Check{{Name: "build of the host", OK: true, Detail: "it finds make, go and the Go modules that it needs"}}
}

// Copy writes the database to a file, without what anybody said or wrote. Who runs as uid is the owner there.
func (c candidate) Copy(ctx context.Context, to string, uid int) error {
	if err := sqlite.Blank(ctx, filepath.Join(c.Home, ".state", "sallyport.db"), to, c.Ops); err != nil {
		return err
	}
	db, err := sqlite.Open(ctx, to, c.Ops)
	if err != nil {
		return fmt.Errorf("open the copy: %w", err)
	}
	err = db.InTx(ctx, func(tx store.Tx) error { return moveIn(ctx, tx, c.control.Owner, uid) })
	return errors.Join(err, db.Close())
}

// TryRunner tries another runner, where there are sandboxes to try it in.
func (c candidate) TryRunner(ctx context.Context, dir string) (sandbox.Tryout, error) {
	driver, ok := c.sandbox.(sandbox.RunnerTrier)
	if !ok {
		return sandbox.Tryout{Untried: "this host has no sandboxes of its own"}, nil
	}
	return driver.TryRunner(ctx, dir)
}

// moveIn gives the owner of a home another account at the terminal, in the place of all that they have there.
func moveIn(ctx context.Context, tx store.Tx, owner person.Owner, uid int) error {
	all, err := tx.People(ctx)
	if err != nil {
		return err
	}
	for _, k := range all {
		if k.ID != owner.ID {
			continue
		}
		for _, a := range k.Accounts {
			if _, err := tx.Unlink(ctx, a.Identity); err != nil {
				return err
			}
		}
	}
	return tx.Link(ctx, person.AtTerminal(uid), owner.ID, owner.Name)
}

// confiner is what runs programs: in a rehearsal of the host, which is a sandbox already, as plain children.
func (c candidate) confiner(state string) (sandbox.Driver, error) {
	if rehearsal.Here(c.Home) {
		return inner.New(c.Home, c.Self)
	}
	return bwrap.New(bwrap.Config{Self: c.Self, Root: state, Ops: c.Ops}), nil
}
