package daemon

import (
	"context"
	"log/slog"
	"slices"
	"sync/atomic"

	"sallyport/internal/door/client"
	"sallyport/internal/door/socket"
	"sallyport/internal/store"
	"sallyport/internal/who/person"
)

// users opens the second socket while the home knows another user of this machine, and else has none.
type users struct {
	*Daemon
	changed chan struct{} // has room for one
	open    atomic.Bool
}

func newUsers(d *Daemon) *users { return &users{Daemon: d, changed: make(chan struct{}, 1)} }

// Changed says that accounts at the terminal may be others now.
func (u *users) Changed() {
	select {
	case u.changed <- struct{}{}:
	default: // it is to be looked at already
	}
}

// heard reports whether another user may come: they can start no daemon, so this one stays.
func (u *users) heard() bool { return u != nil && u.open.Load() }

// Run listens while there is somebody to hear, until ctx ends. Where it cannot listen, the owner is heard all the same.
func (u *users) Run(ctx context.Context) error {
	stop := func() {}
	defer func() { stop() }()
	for {
		known, err := u.known(ctx)
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil:
			u.log.Warn("who may use the second socket cannot be read", slog.Any("error", err))
		case known && !u.open.Load():
			stop = u.listen(ctx)
		case !known && u.open.Load():
			stop()
			stop = func() {}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-u.changed:
		}
	}
}

// listen serves the second socket; what it returns ends that, and waits for its end.
func (u *users) listen(ctx context.Context) (stop func()) {
	path := client.Me().UsersSocket(u.Home)
	l, err := socket.ListenUsers(ctx, path, u.Ops)
	if err != nil {
		u.log.Warn("other users of this machine cannot be heard", slog.Any("error", err))
		return func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	u.open.Store(true)
	go func() {
		defer close(ended)
		defer u.open.Store(false)
		if err := u.server.ServeUsers(ctx, l); err != nil {
			u.log.Warn("other users of this machine are not heard any more", slog.Any("error", err))
		}
	}()
	u.log.Info("serving other users", slog.String("socket", path))
	return func() { cancel(); <-ended }
}

// known reports whether the home knows another user of this machine than its owner.
func (u *users) known(ctx context.Context) (found bool, err error) {
	err = u.db.Read(ctx, func(tx store.Tx) error {
		owner, _, err := tx.Owner(ctx)
		if err != nil {
			return err
		}
		all, err := tx.People(ctx)
		for _, k := range all {
			found = found || slices.ContainsFunc(k.Accounts, func(a person.Account) bool {
				return a.Platform == person.Terminal && a.Identity != person.AtTerminal(owner.UID)
			})
		}
		return err
	})
	return found, err
}
