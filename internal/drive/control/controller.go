package control

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"

	"sallyport/internal/base/audit"
	"sallyport/internal/base/deadman"
	"sallyport/internal/base/disk"
	"sallyport/internal/base/git"
	"sallyport/internal/base/id"
	"sallyport/internal/base/lock"
	programs "sallyport/internal/base/release"
	"sallyport/internal/drive/accept"
	"sallyport/internal/drive/approve"
	"sallyport/internal/drive/authorship"
	"sallyport/internal/drive/check"
	"sallyport/internal/drive/confirm"
	"sallyport/internal/drive/grounds"
	"sallyport/internal/drive/guard"
	"sallyport/internal/drive/land"
	"sallyport/internal/drive/ledger"
	"sallyport/internal/drive/live"
	"sallyport/internal/drive/prepare"
	"sallyport/internal/drive/redo"
	"sallyport/internal/drive/release"
	"sallyport/internal/drive/revert"
	"sallyport/internal/drive/standing"
	"sallyport/internal/drive/stock"
	"sallyport/internal/drive/submit"
	"sallyport/internal/drive/supervise"
	"sallyport/internal/drive/tidy"
	"sallyport/internal/drive/view"
	"sallyport/internal/drive/work"
	"sallyport/internal/path/change"
	"sallyport/internal/path/landing"
	"sallyport/internal/path/proposal"
	"sallyport/internal/path/session"
	"sallyport/internal/path/workspace"
	"sallyport/internal/port/agent"
	"sallyport/internal/port/login"
	"sallyport/internal/port/sandbox"
	"sallyport/internal/rule/config"
	"sallyport/internal/rule/credential"
	"sallyport/internal/rule/metric"
	"sallyport/internal/rule/secret"
	"sallyport/internal/store"
	"sallyport/internal/who/group"
	"sallyport/internal/who/person"
)

// Parts is what the controller stands on; the daemon hands it in.
type Parts struct {
	DB         store.DB
	Owner      person.Owner
	Home       string // for commands shown to a person
	Workspaces *workspace.Manager
	Lander     *landing.Lander
	Sandbox    sandbox.Driver
	Agents     map[string]agent.Driver
	Rules      grounds.Rulebook
	Secrets    *secret.Scanner // takes secrets out of what is kept and shown
	Keeper     guard.Keeper
	Targets    confirm.Targets
	Chats      confirm.Chats
	Host       guard.Host
	Teller     ledger.Teller
	Clock      func() (deadman.Moment, error)
	Notebook   supervise.Notebook
	Agency     live.Agency
	Keys       *credential.Ring // of open changes
	Logins     *login.Logins    // of agents' own programs; absent: none
	Network    live.Network
	Desk       live.Desk    // absent: no agent of a change asks for anything
	Terminal   func() bool  // codes of changes of the host are given at this machine alone
	Candidates release.Host // absent: changes of the host are not rehearsed
	// Take keeps the programs that lie in a folder as a release, and reports whether it is another than the one that runs.
	Take     func(ctx context.Context, from string, by audit.Actor) (is programs.Release, new bool, err error)
	Extra    live.Extra // the zero value: groups are shown no folder of this machine
	Settings Settings
	Ops      disk.Ops
	Log      *slog.Logger
	// Listen watches a workspace and tells when something happens in it; without a watch the clock alone says when to look.
	Listen func(ctx context.Context, w session.Watched) (*session.Watch, error)
	Meter  *metric.Set // absent: measures nothing; a nil Set works
}

// Settings are the home's choices.
type Settings struct {
	Limits     sandbox.Limits
	WorkersMax int // agents at once
	Shares     []string
	Profiles   []string
	Image      string        // live.Defaults.Image
	Author     git.Signature // of commits where the repository's configuration names nobody; At is ignored
	Sessions   string        // folder of sessions
	Rehearsals string        // folder in which candidates for the host are tried
	Changes    string        // folder of what is kept of each change for people to read
	Backups    string        // folder of the database's copies
	Self       sandbox.Owner // who the daemon runs as
	FirstUID   uint32        // of sandboxes when every change has a uid of its own; 0 = all run as Self
	Still      bool          // no change takes a step: the rehearsal of a host has none of their repositories
}

// Controller moves changes. Run must be running for anything to happen by itself.
type Controller struct {
	Parts
	*ledger.Ledger
	*accept.Requests
	*approve.Answers
	*redo.Redos
	*revert.Reverts
	*tidy.Tidier
	*view.Views
	*supervise.Supervisors
	Rounds      atomic.Int64 // how often its loop has gone round
	Groups      *standing.Groups
	guard       guard.Guard
	grounds     grounds.Reader
	commits     authorship.Composer
	preparer    *prepare.Preparer
	submissions *submit.Submissions
	land        *land.Landings
	confirm     *confirm.Confirmer

	only     atomic.Pointer[id.Change] // that takes steps; nil = every change does
	mu       sync.Mutex
	cancels  map[id.Change]context.CancelCauseFunc
	works    lock.Keyed[id.Change] // one step, or the clearing up after the last one, at a time
	busy     int                   // steps under way
	budget   *live.Budget          // of what models use
	defaults live.Defaults         // what every sandbox may see
	outfits  live.Outfitter        // of agents
	opener   work.Opener
	takes    *supervise.Checkpointer
	stocks   *stock.Stocks
	checks   *check.Checker
}

// New returns a controller; it does nothing before Run.
func New(p Parts) *Controller {
	c := &Controller{
		Parts:   p,
		guard:   guard.Guard{Keeper: p.Keeper, Clock: p.Clock, Log: p.Log},
		grounds: grounds.Reader{Rules: p.Rules, Workspaces: p.Workspaces, Ops: p.Ops},
		commits: authorship.Composer{DB: p.DB, Workspaces: p.Workspaces, Home: p.Home, Author: p.Settings.Author, Ops: p.Ops, Secrets: p.Secrets},
		cancels: map[id.Change]context.CancelCauseFunc{},
	}
	c.Ledger = ledger.New(ledger.Parts{DB: p.DB, Secrets: p.Secrets, Meter: p.Meter, Log: p.Log, Tell: p.Teller, Ended: c.forget})
	c.opener = work.Opener{Grounds: c.grounds, Self: p.Settings.Self, FirstUID: p.Settings.FirstUID, Log: p.Log}
	c.makeLive()
	c.makePath()
	return c
}

// makeLive makes the rooms that programs in sandboxes stand on.
func (c *Controller) makeLive() {
	p := c.Parts
	c.budget = live.NewBudget(c.Ledger, p.Agency)
	ways := live.Ways{Ledger: c.Ledger, Network: p.Network, Budget: c.budget}
	c.defaults = live.Defaults{Home: p.Home, Limits: p.Settings.Limits, Shares: p.Settings.Shares, Profiles: p.Settings.Profiles, Image: p.Settings.Image}
	c.outfits = live.Outfitter{Agents: p.Agents, Agency: p.Agency, Keys: p.Keys, Logins: p.Logins, Shown: c.defaults}
	runner := live.CommandRunner{Defaults: c.defaults, Sandbox: p.Sandbox, Secrets: p.Secrets}
	c.stocks = stock.New(stock.Parts{
		Ledger: c.Ledger, Workspaces: p.Workspaces, Opener: c.opener, Runner: runner, Ways: ways, Ops: p.Ops,
		Changes: p.Settings.Changes, Working: c.working,
	})
	c.checks = check.New(check.Parts{Ledger: c.Ledger, Opener: c.opener, Stocks: c.stocks, Ways: ways, Runner: runner})
	c.takes = &supervise.Checkpointer{Ledger: c.Ledger, Workspaces: p.Workspaces, Grounds: c.grounds, Notebook: p.Notebook, Author: p.Settings.Author}
	c.Tidier = tidy.New(tidy.Parts{
		Ledger: c.Ledger, Workspaces: p.Workspaces, Opener: c.opener, Checks: c.checks, Backups: p.Settings.Backups, Ops: p.Ops,
		Works: &c.works, Takes: c.takes,
	})
	c.Supervisors = supervise.New(supervise.Parts{
		Ledger: c.Ledger, Owner: p.Owner, Workspaces: p.Workspaces, Opener: c.opener, Stocks: c.stocks, Checker: c.checks, Takes: c.takes,
		Runtime: live.Runtime{
			Defaults: c.defaults, Ways: ways, Outfits: c.outfits, Budget: c.budget, Sandbox: p.Sandbox, Secrets: p.Secrets, Ops: p.Ops, Meter: p.Meter,
			Folder: p.Settings.Sessions, Places: make(chan struct{}, p.Settings.WorkersMax),
		},
		Changes: p.Settings.Changes, Listen: p.Listen, Tidy: c.Tidy, Desk: p.Desk,
		RedoWords: func(ctx context.Context, row change.Row) (string, error) { return c.Redos.Words(ctx, row) },
		Binds:     func(ctx context.Context, row change.Row) (config.Runner, error) { return c.Groups.Binds(ctx, row) },
		Fits: func(ctx context.Context, row change.Row, commit git.OID) error {
			m, err := c.Groups.Map(ctx, row, commit)
			if err != nil {
				return err
			}
			return c.Groups.Approvable(ctx, row.Request, m.Class)
		},
	})
}

// makePath makes the rooms that a change goes through, each on those before it.
func (c *Controller) makePath() {
	p := c.Parts
	c.Requests = accept.New(accept.Parts{
		Ledger: c.Ledger, Owner: p.Owner, Lander: p.Lander, Workspaces: p.Workspaces, Opener: c.opener, Defaults: c.defaults, Outfits: c.outfits,
		Budget: c.budget, Network: p.Network, Targets: p.Targets, Ops: p.Ops,
	})
	c.Answers = approve.New(approve.Parts{Ledger: c.Ledger, Owner: p.Owner, Home: p.Home, Rules: p.Rules, Terminal: p.Terminal,
		Judges: p.Host.Judges, Tidy: c.TidyApart,
		SendBack: func(ctx context.Context, tx store.Tx, row *change.Row, m ledger.Move) error {
			return c.Redos.SendBack(ctx, tx, row, m)
		},
	})
	c.Ledger.Origin.Asks = c.Answers.Asks
	c.Reverts = revert.New(revert.Parts{
		Ledger: c.Ledger, Owner: p.Owner, Lander: p.Lander, Workspaces: p.Workspaces, Ops: p.Ops, Author: p.Settings.Author, Requests: c.Requests,
	})
	c.Groups = standing.New(standing.Parts{
		Ledger: c.Ledger, Owner: p.Owner, Home: p.Home, Lander: p.Lander, Workspaces: p.Workspaces, Ops: p.Ops, Author: p.Settings.Author, Requests: c.Requests,
		End:   c.end,
		Need:  c.Need,
		Extra: p.Extra, Promoters: c.Promoters, Take: p.Take,
	})
	c.preparer = prepare.New(prepare.Parts{
		Ledger: c.Ledger, Workspaces: p.Workspaces, Opener: c.opener, Stocks: c.stocks, Reverts: c.Reverts, Standing: c.Groups, Takes: c.takes,
	})
	c.submissions = submit.New(submit.Parts{
		Ledger: c.Ledger, Opener: c.opener, Workspaces: p.Workspaces, Stocks: c.stocks, Checks: c.checks, Commits: c.commits,
		Reverts: c.Reverts, Standing: c.Groups, Answers: c.Answers, Host: c.rehearsals(), Ops: p.Ops, SessionsDir: p.Settings.Sessions, Tidy: c.Tidy,
		Moved: func(ctx context.Context, row change.Row, p *proposal.Proposal) { c.land.FindMoved(ctx, row, p) },
		SendBack: func(ctx context.Context, tx store.Tx, row *change.Row, m ledger.Move) error {
			return c.Redos.SendBack(ctx, tx, row, m)
		},
	})
	c.land = land.New(land.Parts{
		Ledger: c.Ledger, Guard: c.guard, Grounds: c.grounds, Commits: c.commits, Clock: p.Clock, Lander: p.Lander, Workspaces: p.Workspaces,
		Ops: p.Ops, Author: p.Settings.Author, Submissions: c.submissions, Checks: c.checks, Backups: p.Settings.Backups, Tidy: c.Tidy, Host: p.Host,
	})
	c.confirm = confirm.New(confirm.Parts{
		Ledger: c.Ledger, Guard: c.guard, Clock: p.Clock, Targets: p.Targets, Chats: p.Chats, Host: p.Host, Lander: p.Lander, Workspaces: p.Workspaces,
		Restore: c.land.Restore, Works: &c.works, Tidy: c.Tidy,
	})
	c.Reverts.Trials, c.submissions.Trials, c.land.Trials, c.Tidier.Land = c.confirm, c.confirm, c.confirm, c.land
	c.Views = view.New(view.Parts{
		Ledger: c.Ledger, Owner: p.Owner, Workspaces: p.Workspaces, Spec: c.opener.Spec, Commits: c.commits, Land: c.land, Confirm: c.confirm,
		SessionsDir: p.Settings.Sessions, ChangesDir: p.Settings.Changes,
	})
	c.Redos = redo.New(redo.Parts{
		Ledger: c.Ledger, Owner: p.Owner, Views: c.Views, Requests: c.Requests, Opener: c.opener, Lander: p.Lander, Workspaces: p.Workspaces,
		Ops: p.Ops, Author: p.Settings.Author, MayResume: c.mayResume,
	})
}

// rehearsals try what changes make of the host.
func (c *Controller) rehearsals() submit.Host {
	p := c.Parts
	if p.Candidates == nil {
		return noRehearsals{}
	}
	return release.New(release.Parts{
		Ledger: c.Ledger, Opener: c.opener, Defaults: c.defaults, Ways: live.Ways{Ledger: c.Ledger, Network: p.Network, Budget: c.budget},
		Sandbox: p.Sandbox, Host: p.Candidates, Secrets: p.Secrets,
		Author: p.Settings.Author, Folder: p.Settings.Rehearsals, Ops: p.Ops,
	})
}

// noRehearsals is for a home whose daemon is no program that could be tried.
type noRehearsals struct{}

func (noRehearsals) Rehearse(context.Context, change.Row, grounds.Offer, string) (*proposal.Host, *proposal.CheckResult, error) {
	return nil, nil, nil
}

// RequestSwap begins a change of what a group runs.
func (c *Controller) RequestSwap(ctx context.Context, w standing.Wish) (change.Row, error) {
	return c.Groups.RequestSwap(ctx, w)
}

// LastSwap is the change that a group asked for last.
func (c *Controller) LastSwap(ctx context.Context, of group.Folder) (change.Row, error) {
	return c.Groups.LastSwap(ctx, of)
}

// Promote has the template changed as a landed change of a group changed the group.
func (c *Controller) Promote(ctx context.Context, of id.Change, by audit.Actor) error {
	_, err := c.Groups.Promote(ctx, standing.Asked{By: by}, of)
	return err
}

// Confirm keeps what is on trial; code is what a trial of the host is confirmed with (SM-923).
func (c *Controller) Confirm(ctx context.Context, change id.Change, by audit.Actor, code string) error {
	return c.confirm.Confirm(ctx, change, by, code)
}

// RollBack has what is on trial go back at once.
func (c *Controller) RollBack(ctx context.Context, change id.Change, by audit.Actor, reason string) error {
	return c.confirm.RollBack(ctx, change, by, reason)
}

// RecordDelivery writes down that message 1 of a trial was delivered.
func (c *Controller) RecordDelivery(change id.Change) { c.confirm.RecordDelivery(change) }

// forget lets go what is held in memory for a change that has come to its end.
func (c *Controller) forget(row change.Row) {
	c.Keys.Forget(string(row.ID))
	c.Answers.Codes.Forget(row.ID)
	c.budget.Forget(row.ID.Subject())
}

// WorkersDefault is how many agents work at once unless the home says otherwise (SV-095).
const WorkersDefault = 5

// Busy reports how many steps are under way: a daemon with any is not idle.
func (c *Controller) Busy() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.busy
}

// working counts as work under way until the function it returns is called.
func (c *Controller) working() (done func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.busy++
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.busy--
	}
}
