// Package daemon builds everything and runs it; it alone knows every concrete type.
package daemon

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"log/slog"
	"os"
	"os/signal"
	"os/user"
	"path/filepath"
	"runtime/debug"
	"strconv"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"

	"sallyport/internal/base/audit"
	"sallyport/internal/base/deadman"
	"sallyport/internal/base/disk"
	"sallyport/internal/base/git"
	"sallyport/internal/base/id"
	"sallyport/internal/base/keeper"
	"sallyport/internal/base/lock"
	"sallyport/internal/base/problem"
	"sallyport/internal/door/client"
	"sallyport/internal/door/socket"
	"sallyport/internal/drive/channels"
	"sallyport/internal/drive/control"
	"sallyport/internal/drive/dispatch"
	"sallyport/internal/drive/people"
	"sallyport/internal/host/storage"
	"sallyport/internal/path/landing"
	"sallyport/internal/path/session"
	"sallyport/internal/path/workspace"
	"sallyport/internal/port/agent"
	"sallyport/internal/port/agent/acp"
	"sallyport/internal/port/agent/api"
	"sallyport/internal/port/agent/codex"
	"sallyport/internal/port/agent/command"
	"sallyport/internal/port/agent/echo"
	"sallyport/internal/port/agent/pi"
	"sallyport/internal/port/agent/replay"
	"sallyport/internal/port/login"
	"sallyport/internal/port/rehearsal"
	"sallyport/internal/port/sandbox"
	"sallyport/internal/port/target"
	"sallyport/internal/rule/config"
	"sallyport/internal/rule/credential"
	"sallyport/internal/rule/metric"
	"sallyport/internal/rule/right"
	"sallyport/internal/store"
	"sallyport/internal/store/sqlite"
	"sallyport/internal/who/person"
)

// IdleAfter is how long a daemon with nothing to do and nobody to talk to stays.
const IdleAfter = 15 * time.Minute

// Options say which home a daemon serves and with which programs.
type Options struct {
	Home   string    // absolute
	Self   string    // this program, re-executed as launcher and init of sandboxes; "" = os.Executable
	Keeper string    // sallyport-keeper; "" = beside Self
	Log    io.Writer // where it says what goes wrong
	Ops    disk.Ops
	Agents []agent.Driver // beside its own
	// Grace is instead of the home's retention.grace; 0 is that, less than 0 none at all.
	Grace time.Duration
	// Line is to the keeper that has started the daemon, which stays then while there is nothing to do; nil: a command has started it.
	Line *keeper.Line
	// Outside is what the ways out of sandboxes stand on, instead of this machine's names and networks.
	Outside Outside
}

// Daemon is one home's host.
type Daemon struct {
	Options
	log      *slog.Logger
	db       store.DB
	sandbox  sandbox.Driver
	spaces   *workspace.Manager
	control  *control.Controller
	steward  *storage.Steward
	chats    *dispatch.Dispatcher
	channels *channels.Channels
	tokens   tokens // of channels
	members  people.People
	users    *users
	ownUID   bool   // every sandbox has a uid of its own
	image    string // that sandboxes of groups start from; "" = this machine's own programs
	server   *socket.Server
	meter    *metric.Set
	settings *config.Settings
	began    config.Sallyport // what counted when it started
	room     session.Room     // how many agents the machine holds
	secrets  *secretRules
	targets  targets
	drivers  map[string]agent.Driver
	keys     *credential.Ring
	logins   *login.Logins
	network  *network
	versions versions
	trying   sync.Mutex // held while an agent is tried
	stop     context.CancelFunc
	tried    tried
	readers  *git.Readers
	keeping  sync.Mutex // held while a diff is exported
	handOver func()     // ends the daemon once the keeper has the home
	quiet    quiet
	goesBack bool   // it runs for no longer than it takes to bring the old host back
	giveBack func() // the memory that it does not use
}

// errIdle and errHanded end a daemon without fault, as errAsked does; errKept refuses one that nobody but a keeper may start.
var (
	errIdle   = errors.New("nothing to do")
	errHanded = errors.New("handed over")
	errKept   = problem.Case(lock.ErrHeld, "sallyport daemon status", "sallyport serve keeps it up, and starts its daemons")
)

// Run serves a home until ctx ends, somebody asks it to stop or, unless a keeper has started it, it has been idle for
// IdleAfter. One daemon serves a home: a second one is refused, naming the first.
func Run(ctx context.Context, o Options) error {
	outer := ctx
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	d := &Daemon{Options: o, stop: func() { cancel(errAsked) }, handOver: func() { cancel(errHanded) }, readers: &git.Readers{}, giveBack: debug.FreeOSMemory}
	ctx = d.readers.In(ctx)
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE) // who reads the log may go away
	state, err := begin(d, metric.Options{Alert: d.alerted, Budgets: d.budgets})
	if err != nil {
		return err
	}
	if d.Line == nil && keeper.Kept(o.Home) {
		return fmt.Errorf("serve the home %q: %w", o.Home, errKept)
	}
	held, err := lock.Folder(state)
	if err != nil {
		return fmt.Errorf("serve the home %q: %w", o.Home, err)
	}
	defer held.Close()
	defer kept{d}.hearStop(ctx, outer)()
	if err := d.makeRepository(ctx, state); err != nil {
		return err
	}
	if err := d.build(ctx, state); err != nil {
		return err
	}
	defer d.db.Close()
	if err := (hosted{d}).settle(ctx); err != nil {
		return err
	}
	err = d.serve(ctx, cancel)
	if cause := context.Cause(ctx); errors.Is(cause, errIdle) || errors.Is(cause, errAsked) || errors.Is(cause, errHanded) ||
		errors.Is(cause, context.Canceled) {
		return nil
	}
	return err
}

// begin has the daemon measure and log, without a secret, and makes the folder of the home's state.
func begin(d *Daemon, measured metric.Options) (state string, err error) {
	if d.Log == nil {
		d.Log = os.Stderr
	}
	d.meter = metric.New(measured)
	if d.secrets, err = newSecretRules(os.Environ(), d.meter); err != nil {
		return "", err
	}
	log.SetOutput(io.Discard) // libraries write there what an endpoint or an agent has sent, a key among it
	d.log = slog.New(slog.NewTextHandler(clean{d.Log, d.secrets.plain}, nil))
	return d.makeState()
}

// build makes every part; nothing runs yet.
func (d *Daemon) build(ctx context.Context, state string) error {
	var err error
	if d.Self == "" {
		if d.Self, err = os.Executable(); err != nil {
			return fmt.Errorf("find this program: %w", err)
		}
	}
	if d.settings, err = config.Open(d.Home, d.Ops); err != nil {
		return err
	}
	d.began = d.settings.Sallyport()
	d.image = imageOf(d.Home, d.Ops)
	d.room = session.RoomHere("/")
	if d.db, err = sqlite.Open(ctx, filepath.Join(state, "sallyport.db"), d.Ops); err != nil {
		return fmt.Errorf("open the database of %q: %w", d.Home, err)
	}
	owner, err := d.ensureOwner(ctx)
	if err != nil {
		return errors.Join(err, d.db.Close())
	}
	d.sandbox, err = candidate{d}.confiner(state)
	if err != nil {
		return errors.Join(err, d.db.Close())
	}
	report, probeErr := d.sandbox.Probe(ctx)
	d.tried.set(report, probeErr)
	if probeErr != nil {
		d.log.Warn("no sandbox works here; agents and checks are refused until one does", "error", probeErr)
	}
	strategy, err := workspace.Probe(d.Ops, state, report.Overlay)
	if err != nil {
		return errors.Join(err, d.db.Close())
	}
	cache := d.began.Layers
	d.spaces = workspace.New(workspace.Config{
		Root: state, Ops: d.Ops, Strategy: strategy,
		Cache: workspace.Cache{Keep: time.Duration(cache.Keep), QuotaBytes: int64(cache.Quota)}, History: cache.History,
	})
	if err := d.sweep(ctx, state); err != nil {
		return errors.Join(err, d.db.Close())
	}
	d.targets = targets{settings: d.settings, db: d.db, spaces: d.spaces, owner: owner, ops: d.Ops,
		host: target.Host{Ops: d.Ops, Changes: filepath.Join(state, "changes"), Clean: d.secrets.plain.Redact}}
	d.trimTargets()
	d.drivers = agents(command.New(), replay.New(), api.New(), codex.New(), acp.New(), pi.New(), echo.New())
	for _, more := range d.Agents {
		d.drivers[more.Name()] = more
	}
	d.keys = credential.NewRing(d.secrets.held, os.Getenv)
	d.logins = newLogins(d.Options, d.secrets.held, d.log)
	if d.network, err = newNetwork(d.Options, d.settings, d.log); err != nil {
		return errors.Join(err, d.db.Close())
	}
	d.ownUID = report.OwnUID
	d.control = control.New(d.parts(owner, report, state))
	d.chats = d.dispatcher(owner, state)
	d.control.Originator = dispatch.DevAgents{Dispatcher: d.chats}
	d.tokens = tokens{held: d.secrets.held, all: map[string]bool{}}
	d.channels = channelsOf(d)
	d.members = people.People{Ledger: d.control.Ledger, Groups: d.channels.Groups, Granted: d.channels.HearKnown}
	d.users = newUsers(d)
	d.members.Changed = d.users.Changed
	d.chats.Admissions = d.channels
	d.steward = storage.New(d.storageParts(owner, state))
	d.server = serverOf(d, owner)
	return nil
}

// serverOf has the socket serve every part of a daemon.
func serverOf(d *Daemon, owner person.Owner) *socket.Server {
	return socket.New(socket.Options{
		Home: d.Home, Open: anyone(d.settings), Unloaded: unloaded(d.settings),
		Quiet: func(of string) error { return d.quiet.refuse(d.Home, of) }, Owner: owner.UID, Log: d.log, Meter: d.meter, Host: d, Keeper: keptBy(d.Line),
		Requests: d.control, Changes: d.control, Courses: d.control, Trials: d.control, Work: d.control, Sessions: d.control,
		Checkpoints: d.control, Approvals: d.control, Audit: d.control, Spending: d.control, Chats: d.chats,
		Afresh: dispatch.Afresh{Dispatcher: d.chats}, Drops: dispatch.Drops{Ledger: d.control.Ledger},
		Places:  channels.Places{Channels: d.channels, Check: d.tokens.check},
		Storage: d.steward, Agents: d, Targets: d.targets, People: d, Groups: d.control.Groups, Members: d.members, Scan: d.secrets, Secrets: d.secrets.plain,
	})
}

// sweep removes what a crash left half made, before anything new is begun. Open landings and
// trials are not its business: they are rows, and their keepers stay until the rows are closed.
func (d *Daemon) sweep(ctx context.Context, state string) error {
	if err := storage.Begin(ctx, d.Ops, state, halfMade(state, d.spaces, d.Ops)...); err != nil {
		return err
	}
	open := map[string]bool{}
	err := d.db.Read(ctx, func(tx store.Tx) error {
		rows, err := tx.OpenLandings(ctx)
		if err != nil {
			return err
		}
		for _, l := range rows {
			open[string(l.ID)] = true
		}
		trials, err := tx.OpenTrials(ctx)
		for _, t := range trials {
			open[string(t.Landing)] = true
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("read what is open and on trial: %w", err)
	}
	return deadman.Settle(d.Ops, filepath.Join(state, "deadman"), func(l string) bool { return open[l] })
}

// parts hands the controller what it stands on.
func (d *Daemon) parts(owner person.Owner, report sandbox.Report, state string) control.Parts {
	file := d.began
	s := control.Settings{
		Limits: sandbox.Limits{
			MemoryBytes: int64(file.Limits.Memory), ProcessesMax: file.Limits.Processes, OutputBytes: int64(file.Limits.Output),
			DescriptorsMax: file.Limits.Descriptors, FilesMax: file.Limits.Files, Timeout: time.Duration(file.Limits.Timeout),
			Processor: time.Duration(file.Limits.Processor),
		},
		WorkersMax: min(d.atOnce(), d.room.Sessions), Shares: config.Strings(file.Shares), Profiles: config.Strings(file.Profiles),
		Author:   author(file.Commits),
		Sessions: filepath.Join(state, "sessions"), Changes: filepath.Join(state, "changes"),
		Backups: filepath.Join(state, store.BackupsFolder), Rehearsals: filepath.Join(state, "rehearsals"),
		Self:  sandbox.Owner{UID: uint32(os.Geteuid()), GID: uint32(os.Getegid())},
		Still: rehearsal.Here(d.Home),
	}
	if report.OwnUID {
		s.FirstUID = firstUID(d.Home)
	}
	if d.image != "" {
		s.Image = candidate{d}.Images().Root(d.image)
	}
	return control.Parts{
		DB: d.db, Owner: owner, Home: d.Home, Workspaces: d.spaces,
		Lander:  &landing.Lander{Ops: d.Ops, Host: d.spaces.EnsureRepository},
		Sandbox: d.sandbox, Candidates: candidate{d}, Take: candidate{d}.Take,
		Agents: d.drivers, Agency: agency{d.settings}, Keys: d.keys, Logins: d.logins,
		Rules: rulebook{home: d.Home, settings: d.settings, secrets: d.secrets}, Secrets: d.secrets.plain,
		Keeper: hosted{d}.guardian(state), Targets: d.targets, Chats: chats{d}, Host: hosted{d}.host(),
		Teller:   teller{home: d.Home, settings: d.settings, ops: d.Ops, secrets: d.secrets.plain},
		Notebook: notebook{folder: s.Changes, ops: d.Ops}, Settings: s, Network: d.network,
		Extra:    extra(d.settings, d.Home, d.network.folder),
		Terminal: func() bool { return d.settings.Sallyport().Host.Code == config.HandedTerminal }, Desk: d.desk(), Ops: d.Ops,
		Log: d.log, Meter: d.meter, Listen: session.StartWatch, Clock: deadman.Now,
	}
}

func agents(drivers ...agent.Driver) map[string]agent.Driver {
	m := map[string]agent.Driver{}
	for _, d := range drivers {
		m[d.Name()] = d
	}
	return m
}

// serve runs every part in one group: a part that ends unasked stops the host.
func (d *Daemon) serve(ctx context.Context, cancel context.CancelCauseFunc) error {
	path, err := client.Me().Socket(d.Home)
	if err != nil {
		return err
	}
	listener, err := socket.Listen(ctx, path, d.Ops)
	if err != nil {
		return err
	}
	if err := storage.Begin(ctx, d.Ops, d.Home, d.network); err != nil { // now that this one listens there is no other
		return errors.Join(err, listener.Close())
	}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return d.readers.Run(ctx) })
	group.Go(func() error { return d.control.Run(ctx) })
	group.Go(func() error { return d.chats.Run(ctx) })
	group.Go(func() error { return d.channels.Run(ctx) })
	group.Go(func() error {
		if !d.quiet.await(ctx) {
			return nil
		}
		return d.steward.Run(ctx)
	})
	group.Go(func() error { return d.server.Serve(ctx, listener) })
	group.Go(func() error { return d.users.Run(ctx) })
	group.Go(func() error { return herald{d.settings, d.control.Ledger, d.control.Owner.ID}.Run(ctx) })
	group.Go(func() error { d.watchIdle(ctx, cancel); return nil })
	group.Go(func() error { kept{d}.report(ctx); return nil })
	d.log.Info("serving", "home", d.Home, "socket", path) // no process id (CH-110): `daemon status` tells it
	return errors.Join(group.Wait(), d.network.close())
}

// watchIdle ends the daemon after IdleAfter without work and without a request. A change that
// is prepared, worked on, landing, in trial, or could not be taken back keeps it. While no agent
// works the machine gets back what memory the last one needed.
func (d *Daemon) watchIdle(ctx context.Context, cancel context.CancelCauseFunc) {
	tick := time.NewTicker(IdleAfter / 15)
	defer tick.Stop()
	since := time.Now()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			d.trimTargets()
			working := d.control.Busy() > 0 || d.chats.Busy() > 0
			if !working {
				d.giveBack() // some milliseconds, where nobody waits
			}

			if d.Line != nil || working || d.server.Busy() > 0 || d.control.Owes(ctx) || d.chats.Owes(ctx) || d.channels.Any() || d.users.heard() {
				since = time.Now()
			} else if time.Since(since) >= IdleAfter {
				cancel(errIdle)
				return
			}
		}
	}
}

// Stop ends the daemon; it returns at once.
func (d *Daemon) Stop() { d.stop() }

// ensureOwner returns the user who made the home; the first daemon of a home writes it down.
func (d *Daemon) ensureOwner(ctx context.Context) (owner person.Owner, err error) {
	err = d.db.InTx(ctx, func(tx store.Tx) error {
		found := false
		if owner, found, err = tx.Owner(ctx); err != nil || found {
			return err
		}
		owner = person.Owner{ID: id.NewPerson(), UID: os.Geteuid(), Name: loginName(os.Geteuid())}
		return tx.SetOwner(ctx, owner)
	})
	if err != nil {
		return person.Owner{}, fmt.Errorf("read the owner of %q: %w", d.Home, err)
	}
	return owner, nil
}

// Recognize finds the person of a uid that the kernel gave, and their roles. Who is not known is no person of this home, and has none.
func (d *Daemon) Recognize(ctx context.Context, by audit.Actor) (who audit.Actor, held []right.Held, err error) {
	err = d.db.Read(ctx, func(tx store.Tx) error {
		if who, err = person.Recognize(ctx, tx, by, person.AtTerminal(by.UID)); err != nil || who.Person == "" {
			return err
		}
		held, err = tx.Roles(ctx, who.Person)
		return err
	})
	return who, held, err
}

// loginName is the name of a uid, or the number where it has none.
func loginName(uid int) string {
	if u, err := user.LookupId(strconv.Itoa(uid)); err == nil {
		return u.Username
	}
	return strconv.Itoa(uid)
}
