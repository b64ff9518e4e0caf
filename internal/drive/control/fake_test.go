package control_test

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

	"sallyport/internal/base/audit"
	"sallyport/internal/base/disk"
	"sallyport/internal/base/git"
	"sallyport/internal/base/id"
	"sallyport/internal/drive/control"
	"sallyport/internal/drive/grounds"
	"sallyport/internal/drive/guard"
	"sallyport/internal/drive/view"
	"sallyport/internal/path/change"
	"sallyport/internal/path/landing"
	"sallyport/internal/path/request"
	"sallyport/internal/path/workspace"
	"sallyport/internal/port/agent"
	"sallyport/internal/port/sandbox"
	"sallyport/internal/rule/policy"
	"sallyport/internal/store"
	"sallyport/internal/store/sqlite"
	"sallyport/internal/who/person"
)

// home is a controller's surroundings within a bubble, where time is free: a real repository, database
// and workspaces; agents, sandboxes, rules and the keeper are played.
type home struct {
	t      *testing.T
	repo   string
	owner  person.Owner
	parts  control.Parts
	cage   *cage
	keeper *keeper
}

func newHome(t *testing.T) *home {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("SKIPPED: git is not installed")
	}
	dir := t.TempDir()
	h := &home{t: t, repo: filepath.Join(dir, "repo"), owner: person.Owner{UID: os.Geteuid(), Name: "ann"}, cage: &cage{standing: map[*prisoner]bool{}}, keeper: &keeper{}}
	for _, d := range []string{"repo", "state"} {
		if err := os.Mkdir(filepath.Join(dir, d), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(h.repo, "page.txt"), []byte("one\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	h.git("init", "-q", "-b", "main")
	h.git("add", "-A")
	h.git("-c", "user.name=Ann", "-c", "user.email=ann@example.org", "commit", "-qm", "first")
	state := filepath.Join(dir, "state")
	db, err := sqlite.Open(t.Context(), filepath.Join(state, "sallyport.db"), disk.Ops{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	spaces := workspace.New(workspace.Config{Root: state, Strategy: workspace.Copy})
	h.parts = control.Parts{
		DB: db, Owner: h.owner, Home: dir,
		Workspaces: spaces,
		Lander:     &landing.Lander{Host: spaces.Repository}, Sandbox: h.cage, Agents: map[string]agent.Driver{"played": played{}},
		Rules: rules{}, Keeper: h.keeper, Log: slog.New(slog.NewTextHandler(t.Output(), nil)),
		Settings: control.Settings{
			WorkersMax: 2, Sessions: filepath.Join(state, "sessions"), Changes: filepath.Join(state, "changes"), Author: git.Signature{Name: "agent", Email: "agent@example.org"},
			Self: sandbox.Owner{UID: uint32(os.Geteuid()), GID: uint32(os.Getegid())},
		},
	}
	return h
}

func (h *home) git(args ...string) string {
	h.t.Helper()
	cmd := exec.Command("git", append([]string{"-C", h.repo}, args...)...)
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1")
	out, err := cmd.CombinedOutput()
	if err != nil {
		h.t.Fatalf("git %q: %v\n%s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

// daemon is one life of the controller; end stops it, and waits until all its steps have returned.
func (h *home) daemon() (c *control.Controller, end func()) {
	h.t.Helper()
	c = control.New(h.parts)
	ctx, cancel := context.WithCancelCause(context.Background())
	ran := make(chan error, 1)
	go func() { ran <- c.Run(ctx) }()
	var once sync.Once
	end = func() {
		once.Do(func() {
			cancel(errors.New("asked to stop"))
			if err := <-ran; err != nil {
				h.t.Errorf("run: %v", err)
			}
		})
	}
	h.t.Cleanup(end)
	return c, end
}

func (h *home) by() audit.Actor {
	return audit.Actor{Kind: "person", Name: h.owner.Name, UID: h.owner.UID}
}

// ask requests a change and waits until it can go no further by itself without time passing.
func (h *home) ask(c *control.Controller) id.Change {
	h.t.Helper()
	r, err := c.Request(h.t.Context(), request.Request{By: h.by(), Text: "Change the page", Project: git.Project{Top: h.repo}, Agent: "played", Argv: []string{"true"}, Approve: request.Later}, nil)
	if err != nil {
		h.t.Fatal(err)
	}
	synctest.Wait()
	return r.Change.ID
}

func (h *home) show(c *control.Controller, id id.Change) view.Detail {
	h.t.Helper()
	synctest.Wait()
	d, err := c.Show(h.t.Context(), id)
	if err != nil {
		h.t.Fatal(err)
	}
	return d
}

// is fails unless a change is in a state.
func (h *home) is(c *control.Controller, id id.Change, want change.State) view.Detail {
	h.t.Helper()
	d := h.show(c, id)
	if d.Change.State != want {
		h.t.Fatalf("%s is %s (%s), want %s", id, d.Change.State, d.Change.Reason, want)
	}
	return d
}

// verbs are the audit log's words about a change, in order.
func (h *home) verbs(c *control.Controller, id id.Change) (verbs []string) {
	h.t.Helper()
	all, err := c.Audit(h.t.Context(), "", 0, 0)
	if err != nil {
		h.t.Fatal(err)
	}
	if err := audit.Verify("", all); err != nil {
		h.t.Error(err)
	}
	for _, e := range all {
		if e.Change == string(id) {
			verbs = append(verbs, e.Verb)
		}
	}
	return verbs
}

// count is how often a word stands in a list.
func count(words []string, word string) (n int) {
	for _, w := range words {
		if w == word {
			n++
		}
	}
	return n
}

// kept is what a file is in a checkpoint of the host's.
func (h *home) kept(c *control.Controller, number int, id id.Change, path string) string {
	h.t.Helper()
	var d view.Detail
	if d = h.show(c, id); len(d.Checkpoints) < number {
		h.t.Fatalf("%s has %d checkpoints", id, len(d.Checkpoints))
	}
	host, err := h.parts.Workspaces.Repository(h.t.Context(), d.Change.Request.Project)
	if err != nil {
		h.t.Fatal(err)
	}
	out, err := host.Run(h.t.Context(), git.Cmd{Args: []string{"show", "refs/sallyport/" + string(id) + "/checkpoints/" + string(rune('0'+number)) + ":" + path}})
	if err != nil {
		h.t.Fatal(err)
	}
	return string(out)
}

// refs are those of a change in the host's repository.
func (h *home) refs(c *control.Controller, id id.Change) string {
	h.t.Helper()
	host, err := h.parts.Workspaces.Repository(h.t.Context(), h.show(c, id).Change.Request.Project)
	if err != nil {
		h.t.Fatal(err)
	}
	out, err := host.Run(h.t.Context(), git.Cmd{Args: []string{"for-each-ref", "refs/sallyport/" + string(id)}})
	if err != nil {
		h.t.Fatal(err)
	}
	return string(out)
}

// hasWorkspace reports whether a change's workspace is there.
func (h *home) hasWorkspace(id id.Change) bool {
	h.t.Helper()
	there, err := h.parts.Workspaces.Changes()
	if err != nil {
		h.t.Fatal(err)
	}
	return slices.Contains(there, id)
}

// tx runs do on the database behind every controller's back.
func (h *home) tx(do func(ctx context.Context, tx store.Tx) error) {
	h.t.Helper()
	err := h.parts.DB.InTx(h.t.Context(), func(tx store.Tx) error { return do(h.t.Context(), tx) })
	if err != nil {
		h.t.Fatal(err)
	}
}

// played is an agent that does what the cage has it do.
type played struct{ messages bool } // whether it reads them

func (played) Name() string { return "played" }

func (played) Capabilities() agent.Capabilities {
	return agent.Capabilities{PauseProtocol: agent.PauseNone}
}
func (p played) Program(agent.Task) (agent.Program, error) {
	return agent.Program{Name: "played", Argv: []string{"true"}, Messages: p.messages}, nil
}

type rules struct {
	judging    grounds.Judging
	unloadable []policy.Violation
}

func (r rules) At(context.Context, git.Project, git.Dir, git.OID) (grounds.Judging, error) {
	return r.judging, nil
}

func (r rules) Load(context.Context, git.Dir, git.OID, []git.Edit) ([]policy.Violation, error) {
	return r.unloadable, nil
}

// keeper counts what it is told, and knows what is armed.
type keeper struct {
	mu              sync.Mutex
	armed, disarmed int
	watched         map[id.Landing]guard.Watched
}

func (g *keeper) Arm(l id.Landing, w guard.Watched) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.armed++
	if g.watched == nil {
		g.watched = map[id.Landing]guard.Watched{}
	}
	g.watched[l] = w
	return nil
}

func (g *keeper) Disarm(l id.Landing) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.disarmed++
	delete(g.watched, l)
	return nil
}

// still is what is armed now, and how often anything was disarmed.
func (g *keeper) still() (map[id.Landing]guard.Watched, int) {
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
	refuse   func(start int) error               // in the place of the start
	fault    func(start int) error               // in the place of the program's end
	limit    *sandbox.Limit                      // that ends the program
	hear     func(line string, stdout io.Writer) // with every line on its standard input
	stubborn error                               // in the place of every freeze
	blind    error                               // in the place of every view of the tree
	standing map[*prisoner]bool
	play     func(start int, tree string, killed <-chan struct{}) int
	program  func(spec sandbox.Spec, killed <-chan struct{}) int // instead of play: it has its own standard streams
}

var _ sandbox.Driver = (*cage)(nil)

func (c *cage) Probe(context.Context) (sandbox.Report, error) { return sandbox.Report{}, nil }

func (c *cage) SelfTest(context.Context) ([]sandbox.Try, error) { return nil, nil }

func (c *cage) Start(ctx context.Context, spec sandbox.Spec) (sandbox.Process, error) {
	c.mu.Lock()
	c.started = append(c.started, time.Now())
	n, refuse, play := len(c.started), c.refuse, c.play
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
	if c.fault != nil {
		p.err = c.fault(n)
	}
	stop := context.AfterFunc(ctx, p.Kill)
	if spec.Stdin != nil && c.hear != nil {
		go func() { // ends with the session
			for lines := bufio.NewScanner(spec.Stdin); lines.Scan(); {
				c.hear(lines.Text(), spec.Stdout)
			}
		}()
	}
	go func() { // ends when the program does
		defer close(p.done)
		defer stop()
		if c.program != nil {
			p.exit.Code = c.program(spec, p.killed)
		} else {
			p.exit.Code = play(n, spec.Tree.Dir, p.killed)
		}
		p.exit.Limit = c.limit
		c.mu.Lock()
		c.running--
		c.mu.Unlock()
	}()
	return p, nil
}

// starts are the times of all starts.
func (c *cage) starts() []time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.started)
}

// now is how many programs run, and how many have run at one time at most.
func (c *cage) now() (running, most int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.running, c.most
}

// alive waits until nothing moves and returns how many programs run.
func (c *cage) alive() int {
	synctest.Wait()
	running, _ := c.now()
	return running
}

// told is how often it was armed and disarmed.
func (g *keeper) told() (armed, disarmed int) {
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
	if p.cage.stubborn != nil {
		return p.cage.stubborn
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
	if p.cage.blind != nil {
		return nil, p.cage.blind
	}
	return os.Open(p.tree)
}

// frozen is how many programs stand.
func (c *cage) frozen() int {
	synctest.Wait()
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.standing)
}

func (p *prisoner) Kill() { p.once.Do(func() { close(p.killed) }) }

// writes is a program that writes the page and is done.
func writes(text string) func(int, string, <-chan struct{}) int {
	return func(_ int, tree string, _ <-chan struct{}) int {
		if os.WriteFile(filepath.Join(tree, "page.txt"), []byte(text), 0o644) != nil {
			return 1
		}
		return 0
	}
}

// hangs is a program that writes half of the page and goes on until it is killed.
func hangs(text string) func(int, string, <-chan struct{}) int {
	return func(n int, tree string, killed <-chan struct{}) int {
		code := writes(text)(n, tree, killed)
		<-killed
		return code
	}
}
