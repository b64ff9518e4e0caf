package drivetest

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing/synctest"

	"sallyport/internal/base/git"
	"sallyport/internal/base/git/gittest"
	"sallyport/internal/base/id"
	"sallyport/internal/drive/control"
	"sallyport/internal/path/request"
	"sallyport/internal/port/agent"
	"sallyport/internal/port/sandbox"
)

// Turning is a driver whose program is an adapter.
type Turning struct{ Rounds int }

func (Turning) Name() string { return "played" }

func (Turning) Capabilities() agent.Capabilities {
	return agent.Capabilities{PauseProtocol: agent.PauseSignal}
}

func (d Turning) Program(t agent.Task) (agent.Program, error) {
	line, err := json.Marshal(agent.Order{Engine: "played", Agent: "played", Text: t.Text, Resumed: t.Resumed})
	return agent.Program{Name: "played", Argv: []string{"adapt"}, Stdin: append(line, '\n'), Messages: true, Turns: true, Keeps: true, Rounds: d.Rounds}, err
}

// Deed is one turn of a played agent: it is given words, and works on the tree.
type Deed func(ctx context.Context, s *Scene, words string) (says string, err error)

// Troupe is the agents, the checks and what both were told.
type Troupe struct {
	h     *Home
	turns []Deed
	Check func(tree *Scene) (says string, ok bool)
	kept  int // turns that all sessions have had
	loads bool

	mu     sync.Mutex
	words  []string
	checks []string // what page.txt was
}

// Converses has every agent work in these turns, the last again and again, whatever session they are in.
func (h *Home) Converses(turns ...Deed) *Troupe {
	p := &Troupe{h: h, turns: turns}
	h.Parts.Agents = map[string]agent.Driver{"played": Turning{}}
	h.Cage.Program = p.run
	return p
}

func (p *Troupe) run(spec sandbox.Spec, killed <-chan struct{}) int {
	tree := &Scene{T: p.h.T, Tree: spec.Tree.Dir}
	if spec.Argv[0] == "/bin/sh" {
		p.mu.Lock()
		p.checks = append(p.checks, tree.Read("page.txt"))
		p.mu.Unlock()
		says, ok := p.Check(tree)
		fmt.Fprint(spec.Stdout, says)
		if ok {
			return 0
		}
		return 1
	}
	return Adapt(spec, spec.Stdin, killed, &actor{Troupe: p, tree: tree})
}

// Told is what agents were told, in order.
func (p *Troupe) Told() []string {
	synctest.Wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.words)
}

// WentOn reports whether the agent that began last goes on with what one before it has kept.
func (p *Troupe) WentOn() bool {
	synctest.Wait()
	return p.loads
}

func (p *Troupe) Checked() []string {
	synctest.Wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.checks)
}

// actor is the engine and the conversation of one session.
type actor struct {
	*Troupe
	Talk
	tree *Scene
}

func (a *actor) Open(_ context.Context, _ agent.Order, last string, _ agent.Show) (agent.Conversation, error) {
	a.loads = last != ""
	return a, nil
}

func (a *actor) Loaded() bool { return a.loads }

func (a *actor) Prompt(ctx context.Context, words string) (string, error) {
	a.mu.Lock()
	a.words = append(a.words, words)
	turn := a.turns[min(a.kept, len(a.turns)-1)]
	a.kept++
	a.mu.Unlock()
	return turn(ctx, a.tree, words)
}

// AskChecked requests a change with a check.
func (h *Home) AskChecked(c *control.Controller, checks ...string) id.Change {
	h.T.Helper()
	r, err := c.TakeRequest(gittest.Context(h.T), request.Request{By: h.By(), Text: "Change the page", Project: git.Project{Top: h.Repo},
		Agent: "played", Argv: []string{"true"}, Checks: checks, Approve: request.Later}, nil)
	if err != nil {
		h.T.Fatal(err)
	}
	synctest.Wait()
	return r.Change.ID
}

// Reasons are the audit log's words about a change whose verb begins so, with their reasons.
func (h *Home) Reasons(c *control.Controller, id id.Change, verb string) (all []string) {
	h.T.Helper()
	entries, err := c.Audit(gittest.Context(h.T), id, 0, 0)
	if err != nil {
		h.T.Fatal(err)
	}
	for _, e := range entries {
		if strings.HasPrefix(e.Verb, verb) {
			all = append(all, e.Verb+": "+e.Reason)
		}
	}
	return all
}
