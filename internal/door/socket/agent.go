package socket

import (
	"context"
	"path/filepath"
	"strings"

	"sallyport/internal/base/audit"
	"sallyport/internal/base/problem"
	"sallyport/internal/door/api"
	"sallyport/internal/rule/credential"
)

// Agents says which agents are on this machine, and tries one; it checks who asks.
type Agents interface {
	// ListAgents lists every agent that has a name, as a person finds it.
	ListAgents(ctx context.Context, at api.Place) ([]api.Agent, error)
	// TestAgent starts one in a sandbox on nothing, asks it for a word and says in one line what came of it. An error says that it
	// could not be tried.
	TestAgent(ctx context.Context, t AgentTry, by audit.Actor) (api.AgentTest, error)
}

// AgentTry is a wish to try an agent.
type AgentTry struct {
	api.Place
	Agent, Model string
	Keys         credential.Keys
	Bases        map[string]string
	Env          map[string]string
}

// agents answers what is asked of the agents of this machine.
type agents struct{ part Agents }

func (n agents) list(ctx context.Context, _ audit.Actor, in api.Place) ([]api.Agent, error) {
	if err := checkPlace(in); err != nil {
		return nil, err
	}
	all, err := n.part.ListAgents(ctx, in)
	return each(all, func(a api.Agent) api.Agent {
		a.Path, a.Version, a.Problem = text(a.Path), text(a.Version), text(a.Problem)
		return a
	}), err
}

func (n agents) try(ctx context.Context, by audit.Actor, in api.TestAgent) (out api.AgentTest, err error) {
	if err := checkPlace(in.Place); err != nil {
		return out, err
	}
	if err := modelWords(in.Model, in.Bases, in.Env); err != nil {
		return out, err
	}
	out, err = n.part.TestAgent(ctx, AgentTry{Place: in.Place, Agent: in.Agent, Model: in.Model, Keys: keysOf(in.Keys), Bases: in.Bases, Env: in.Env}, by)
	out.Says, out.Text = text(out.Says), text(out.Text)
	return out, err
}

func checkPlace(at api.Place) error {
	if at.Dir != "" && !filepath.IsAbs(at.Dir) || strings.ContainsRune(at.Dir+at.Path+at.Home, 0) {
		return problem.Errorf(problem.Usage, "sallyport agent list --help", "%q is not an absolute path of a folder", at.Dir)
	}
	return nil
}
