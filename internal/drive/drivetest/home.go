// Package drivetest is a home in which the rooms of the drive are tried: a real repository, database and workspaces within a bubble where time
// is free; agents, sandboxes, rules, targets and the keeper are played.
package drivetest

import (
	"bufio"
	"context"
	"errors"
	"io"
	"log/slog"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"

	"sallyport/internal/base/audit"
	"sallyport/internal/base/audit/audittest"
	"sallyport/internal/base/deadman"
	"sallyport/internal/base/disk/disktest"
	"sallyport/internal/base/git"
	"sallyport/internal/base/git/gittest"
	"sallyport/internal/base/id"
	"sallyport/internal/drive/control"
	"sallyport/internal/drive/grounds"
	"sallyport/internal/drive/guard"
	"sallyport/internal/drive/view"
	"sallyport/internal/path/change"
	"sallyport/internal/path/landing"
	"sallyport/internal/path/request"
	"sallyport/internal/path/session"
	"sallyport/internal/path/workspace"
	"sallyport/internal/port/agent"
	"sallyport/internal/port/sandbox"
	"sallyport/internal/rule/credential"
	"sallyport/internal/rule/policy"
	"sallyport/internal/rule/right"
	"sallyport/internal/rule/secret"
	"sallyport/internal/store"
	"sallyport/internal/store/sqlite/sqlitetest"
	"sallyport/internal/who/person"
)

// Home is a controller's surroundings within a bubble, where time is free: a real repository, database
// and workspaces; agents, sandboxes, rules and the keeper are played.
type Home struct {
	T      *testing.T
	Repo   string
	Owner  person.Owner
	Parts  control.Parts
	Cage   *cage
	Keeper *Keeper
}

// inMemory is a folder whose files are in memory. Homes of tests lie there where it has room: what they hold is not what a disk keeps, and
// they would wait for it most of their time.
const inMemory = "/dev/shm"

func init() {
	var room unix.Statfs_t
	if os.Getenv("TMPDIR") == "" && unix.Statfs(inMemory, &room) == nil && room.Type == unix.TMPFS_MAGIC &&
		room.Bavail*uint64(room.Bsize) > 4<<30 && unix.Access(inMemory, unix.W_OK) == nil {
		_ = os.Setenv("TMPDIR", inMemory) // else they lie where they did
	}
}

func NewHome(t *testing.T) *Home {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("SKIPPED: git is not installed")
	}
	dir := t.TempDir()
	h := &Home{T: t, Repo: filepath.Join(dir, "repo"), Owner: person.Owner{ID: "psn-0000ann0", UID: os.Geteuid(), Name: "ann"},
		Cage: &cage{standing: map[*prisoner]bool{}}, Keeper: &Keeper{}}
	for _, d := range []string{"repo", "state"} {
		if err := os.Mkdir(filepath.Join(dir, d), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	disktest.Put(t, filepath.Join(h.Repo, "page.txt"), "one\n", 0o644)
	h.Git("init", "-q", "-b", "main")
	h.Git("add", "-A")
	h.Git("-c", "user.name=Ann", "-c", "user.email=ann@example.org", "commit", "-qm", "first")
	state := filepath.Join(dir, "state")
	db := sqlitetest.Open(t, filepath.Join(state, "sallyport.db"))
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	if err := db.InTx(t.Context(), func(tx store.Tx) error { return tx.SetOwner(t.Context(), h.Owner) }); err != nil {
		t.Fatal(err)
	}
	spaces := workspace.New(workspace.Config{Root: state, Strategy: workspace.Copy})
	h.Parts = control.Parts{
		DB: db, Owner: h.Owner, Home: dir,
		Workspaces: spaces,
		Lander:     &landing.Lander{Host: spaces.EnsureRepository}, Sandbox: h.Cage, Agents: map[string]agent.Driver{"played": Played{}},
		Rules: Rules{}, Keeper: h.Keeper, Log: slog.New(slog.NewTextHandler(t.Output(), nil)),
		Secrets: secret.Default(), Keys: credential.NewRing(nil, func(string) string { return "" }), Clock: deadman.Now,
		Targets: absent{}, Chats: noChats{}, Host: NoHost{}, Teller: absent{}, Notebook: absent{}, Agency: absent{}, Network: absent{},
		Terminal: func() bool { return false },
		Listen:   func(context.Context, session.Watched) (*session.Watch, error) { return nil, nil },
		Settings: control.Settings{
			WorkersMax: 2, Sessions: filepath.Join(state, "sessions"), Changes: filepath.Join(state, "changes"),
			Backups: filepath.Join(state, store.BackupsFolder), Author: git.Signature{Name: "agent", Email: "agent@example.org"},
			Self: sandbox.Owner{UID: uint32(os.Geteuid()), GID: uint32(os.Getegid())},
		},
	}
	return h
}

func (h *Home) Git(args ...string) string {
	h.T.Helper()
	cmd := exec.Command("git", append([]string{"-C", h.Repo, "-c", "maintenance.auto=false"}, args...)...)
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1")
	out, err := cmd.CombinedOutput()
	if err != nil {
		h.T.Fatalf("git %q: %v\n%s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

// Daemon is one life of the controller; end stops it, and waits until all its steps have returned.
func (h *Home) Daemon() (c *control.Controller, end func()) {
	h.T.Helper()
	c = control.New(h.Parts)
	return c, h.Runs(c)
}

// Runs runs a daemon until the function it returns is called.
func (h *Home) Runs(c *control.Controller) (end func()) {
	return Lives(h.T, context.WithoutCancel(gittest.Restart(h.T)), c.Run)
}

// Lives runs parts of a host until the function it returns is called.
func Lives(t *testing.T, ctx context.Context, runs ...func(context.Context) error) (end func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	ran := make(chan error, len(runs))
	for _, run := range runs {
		go func() { ran <- run(ctx) }()
	}
	end = sync.OnceFunc(func() {
		cancel(errors.New("asked to stop"))
		for range runs {
			if err := <-ran; err != nil {
				t.Errorf("run: %v", err)
			}
		}
	})
	t.Cleanup(end)
	return end
}

func (h *Home) By() audit.Actor {
	return audit.Actor{Kind: "person", Name: h.Owner.Name, UID: h.Owner.UID, Person: h.Owner.ID, Identity: person.AtTerminal(h.Owner.UID).String()}
}

// Ask requests a change and waits until it can go no further by itself without time passing.
func (h *Home) Ask(c *control.Controller) id.Change {
	h.T.Helper()
	r, err := c.TakeRequest(gittest.Context(h.T), request.Request{By: h.By(), Text: "Change the page", Project: git.Project{Top: h.Repo},
		Agent: "played", Argv: []string{"true"}, Approve: request.Later}, nil)
	if err != nil {
		h.T.Fatal(err)
	}
	synctest.Wait()
	return r.Change.ID
}

func (h *Home) Show(c *control.Controller, id id.Change) view.Detail {
	h.T.Helper()
	synctest.Wait()
	d, err := c.Show(gittest.Context(h.T), id)
	if err != nil {
		h.T.Fatal(err)
	}
	return d
}

// Is fails unless a change is in a state.
func (h *Home) Is(c *control.Controller, id id.Change, want change.State) view.Detail {
	h.T.Helper()
	d := h.Show(c, id)
	if d.Change.State != want {
		h.T.Fatalf("%s is %s (%s), want %s", id, d.Change.State, d.Change.Reason, want)
	}
	return d
}

// Verbs are the audit log's words about a change, in order.
func (h *Home) Verbs(c *control.Controller, id id.Change) (verbs []string) {
	h.T.Helper()
	all, err := c.Audit(gittest.Context(h.T), "", 0, 0)
	if err != nil {
		h.T.Fatal(err)
	}
	if err := audittest.Verify(all); err != nil {
		h.T.Error(err)
	}
	for _, e := range all {
		if e.Change == string(id) {
			verbs = append(verbs, e.Verb)
		}
	}
	return verbs
}

// Count is how often a word stands in a list.
func Count(words []string, word string) (n int) {
	for _, w := range words {
		if w == word {
			n++
		}
	}
	return n
}

// Kept is what a file is in a checkpoint of the host's.
func (h *Home) Kept(c *control.Controller, number int, id id.Change, path string) string {
	h.T.Helper()
	var d view.Detail
	if d = h.Show(c, id); len(d.Checkpoints) < number {
		h.T.Fatalf("%s has %d checkpoints", id, len(d.Checkpoints))
	}
	host, err := h.Parts.Workspaces.EnsureRepository(gittest.Context(h.T), d.Change.Request.Project)
	if err != nil {
		h.T.Fatal(err)
	}
	out, err := host.Run(gittest.Context(h.T), git.Cmd{Args: []string{"show", "refs/sallyport/" + string(id) + "/checkpoints/" +
		string(rune('0'+number)) + ":" + path}})
	if err != nil {
		h.T.Fatal(err)
	}
	return string(out)
}

// Refs are those of a change in the host's repository.
func (h *Home) Refs(c *control.Controller, id id.Change) string {
	h.T.Helper()
	host, err := h.Parts.Workspaces.EnsureRepository(gittest.Context(h.T), h.Show(c, id).Change.Request.Project)
	if err != nil {
		h.T.Fatal(err)
	}
	out, err := host.Run(gittest.Context(h.T), git.Cmd{Args: []string{"for-each-ref", "refs/sallyport/" + string(id)}})
	if err != nil {
		h.T.Fatal(err)
	}
	return string(out)
}

// HasWorkspace reports whether a change's workspace is there.
func (h *Home) HasWorkspace(id id.Change) bool {
	h.T.Helper()
	there, err := h.Parts.Workspaces.Changes()
	if err != nil {
		h.T.Fatal(err)
	}
	return slices.Contains(there, id)
}

// Tx runs do on the database behind every controller's back.
func (h *Home) Tx(do func(ctx context.Context, tx store.Tx) error) {
	h.T.Helper()
	err := h.Parts.DB.InTx(gittest.Context(h.T), func(tx store.Tx) error { return do(gittest.Context(h.T), tx) })
	if err != nil {
		h.T.Fatal(err)
	}
}

// Played is an agent that does what the cage has it do.
type Played struct{ Messages bool }

// whether it reads them

func (Played) Name() string { return "played" }

func (Played) Capabilities() agent.Capabilities {
	return agent.Capabilities{PauseProtocol: agent.PauseNone}
}

func (p Played) Program(agent.Task) (agent.Program, error) {
	return agent.Program{Name: "played", Argv: []string{"true"}, Messages: p.Messages}, nil
}

type Rules struct {
	Judging    grounds.Judging
	Unloadable []policy.Violation
	Undecided  error // why the policy does not load
}

func (r Rules) At(context.Context, git.Project, git.Dir, git.OID) (grounds.Judging, error) {
	return r.Judging, nil
}

func (r Rules) Load(context.Context, git.Project, git.Dir, git.OID, []git.Edit) ([]policy.Violation, error) {
	return r.Unloadable, nil
}

func (r Rules) Approvals() right.Rules { return r.Judging.Approvals }

func (r Rules) Decidable() error { return r.Undecided }

// Keeper counts what it is told, and knows what is armed.
type Keeper struct {
	mu              sync.Mutex
	armed, disarmed int
	watched         map[id.Landing]guard.Watched
}

func (g *Keeper) Arm(l id.Landing, w guard.Watched) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.armed++
	if g.watched == nil {
		g.watched = map[id.Landing]guard.Watched{}
	}
	g.watched[l] = w
	return nil
}

func (g *Keeper) Disarm(l id.Landing) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.disarmed++
	delete(g.watched, l)
	return nil
}

// Still is what is armed now, and how often anything was disarmed.
func (g *Keeper) Still() (map[id.Landing]guard.Watched, int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return maps.Clone(g.watched), g.disarmed
}

// cage is a sandbox driver that starts no process. What is put into play runs as the program,
// on the real tree, until it returns or is killed.
type cage struct {
	mu       sync.Mutex
	started  []time.Time
	running  int
	most     int                                 // at one time
	Refuse   func(start int) error               // in the place of the start
	Fault    func(start int) error               // in the place of the program's end
	Limit    *sandbox.Limit                      // that ends the program
	Hear     func(line string, stdout io.Writer) // with every line on its standard input
	Stubborn error                               // in the place of every freeze
	Blind    error                               // in the place of every view of the tree
	standing map[*prisoner]bool
	Play     func(start int, tree string, killed <-chan struct{}) int
	Program  func(spec sandbox.Spec, killed <-chan struct{}) int // instead of play: it has its own standard streams
}

var _ sandbox.Driver = (*cage)(nil)

func (c *cage) Probe(context.Context) (sandbox.Report, error) { return sandbox.Report{}, nil }

func (c *cage) SelfTest(context.Context) ([]sandbox.Try, error) { return nil, nil }

func (c *cage) Start(ctx context.Context, spec sandbox.Spec) (sandbox.Process, error) {
	c.mu.Lock()
	c.started = append(c.started, time.Now())
	n, refuse, play := len(c.started), c.Refuse, c.Play
	if refuse != nil {
		if err := refuse(n); err != nil {
			c.mu.Unlock()
			return nil, err
		}
	}
	c.running++
	c.most = max(c.most, c.running)
	c.mu.Unlock()
	p := &prisoner{cage: c, tree: spec.Tree.Dir, killed: make(chan struct{}), done: make(chan struct{})}
	if c.Fault != nil {
		p.err = c.Fault(n)
	}
	stop := context.AfterFunc(ctx, p.Kill)
	if spec.Stdin != nil && c.Hear != nil {
		go func() { // ends with the session
			for lines := bufio.NewScanner(spec.Stdin); lines.Scan(); {
				c.Hear(lines.Text(), spec.Stdout)
			}
		}()
	}
	go func() { // ends when the program does
		defer close(p.done)
		defer stop()
		if c.Program != nil {
			p.exit.Code = c.Program(spec, p.killed)
		} else {
			p.exit.Code = play(n, spec.Tree.Dir, p.killed)
		}
		p.exit.Limit = c.Limit
		c.mu.Lock()
		c.running--
		c.mu.Unlock()
	}()
	return p, nil
}

// Starts are the times of all starts.
func (c *cage) Starts() []time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.started)
}

// Now is how many programs run, and how many have run at one time at most.
func (c *cage) Now() (running, most int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.running, c.most
}

// Alive waits until nothing moves and returns how many programs run.
func (c *cage) Alive() int {
	synctest.Wait()
	running, _ := c.Now()
	return running
}

// Told is how often it was armed and disarmed.
func (g *Keeper) Told() (armed, disarmed int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.armed, g.disarmed
}

// prisoner is one running program of a cage.
type prisoner struct {
	sandbox.Process // what is not asked of it here
	cage            *cage
	tree            string
	once            sync.Once
	killed, done    chan struct{}
	exit            sandbox.Exit
	err             error
}

func (p *prisoner) Wait() (sandbox.Exit, error) {
	<-p.done
	select {
	case <-p.killed:
		return sandbox.Exit{Code: -1, Signal: "SIGKILL"}, p.err
	default:
		return p.exit, p.err
	}
}

// What plays here is still whenever the bubble is: to be frozen is to be counted.
func (p *prisoner) Freeze(context.Context) error {
	p.cage.mu.Lock()
	defer p.cage.mu.Unlock()
	if p.cage.Stubborn != nil {
		return p.cage.Stubborn
	}
	p.cage.standing[p] = true
	return nil
}

func (p *prisoner) Thaw() error {
	p.cage.mu.Lock()
	defer p.cage.mu.Unlock()
	delete(p.cage.standing, p)
	return nil
}

func (p *prisoner) View(context.Context) (*os.File, error) {
	if p.cage.Blind != nil {
		return nil, p.cage.Blind
	}
	return os.Open(p.tree)
}

// Frozen is how many programs stand.
func (c *cage) Frozen() int {
	synctest.Wait()
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.standing)
}

func (p *prisoner) Kill() { p.once.Do(func() { close(p.killed) }) }

// Writes is a program that writes the page and is done.
func Writes(text string) func(int, string, <-chan struct{}) int {
	return func(_ int, tree string, _ <-chan struct{}) int {
		if os.WriteFile(filepath.Join(tree, "page.txt"), []byte(text), 0o644) != nil {
			return 1
		}
		return 0
	}
}

// Hangs is a program that writes half of the page and goes on until it is killed.
func Hangs(text string) func(int, string, <-chan struct{}) int {
	return func(n int, tree string, killed <-chan struct{}) int {
		code := Writes(text)(n, tree, killed)
		<-killed
		return code
	}
}
