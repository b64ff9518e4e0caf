package socket

import (
	"context"
	"net/http"
	"path/filepath"
	"strings"

	"sallyport/internal/base/audit"
	"sallyport/internal/base/git"
	"sallyport/internal/base/id"
	"sallyport/internal/base/problem"
	"sallyport/internal/door/api"
	"sallyport/internal/drive/control"
	"sallyport/internal/path/request"
	"sallyport/internal/rule/config"
	"sallyport/internal/rule/credential"
	"sallyport/internal/rule/secret"
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

// keysOf takes keys off the wire.
func keysOf(in api.Keys) credential.Keys {
	if len(in) == 0 {
		return nil
	}
	out := make(credential.Keys, len(in))
	for name, plain := range in {
		out[name] = secret.Hold(string(plain))
	}
	return out
}

// agentWords checks what is said of an agent as it crosses the socket.
func agentWords(in api.Run) error {
	const next = "sallyport run --help"
	if err := modelWords(in.Model, in.Bases, in.Env); err != nil {
		return err
	}
	if len(in.Egress) > request.ListMax {
		return problem.Errorf(problem.Usage, next, "--egress is given %d times; at most %d are taken", len(in.Egress), request.ListMax)
	}
	for _, e := range in.Egress {
		if _, err := config.ParseEgress(e); err != nil {
			return problem.Errorf(problem.Usage, next, "--egress: %w", err)
		}
	}
	return nil
}

// modelWords checks the name of a model and where its endpoint is said to be.
func modelWords(model string, bases, env map[string]string) error {
	if model != "" {
		if err := config.CheckModel(model); err != nil {
			return problem.Errorf(problem.Usage, "sallyport run --help", "--model: %w", err)
		}
	}
	if len(bases) > credential.KeysMax {
		return problem.Errorf(problem.Usage, "sallyport run --help", "%d addresses are given for one model", len(bases))
	}
	for name, base := range bases {
		if err := credential.CheckVariable(name); err != nil {
			return problem.Errorf(problem.Usage, "sallyport agent list", "the address of a model has no usable name: %w", err)
		}
		if err := credential.CheckBase(base); err != nil {
			return problem.Errorf(problem.Usage, "sallyport agent list", "the address of the model in $%s cannot be used: %w", name, err)
		}
	}
	if len(env) > request.ListMax {
		return problem.Errorf(problem.Usage, "sallyport run --help", "%d variables are given for one agent; at most %d are taken", len(env), request.ListMax)
	}
	for name, value := range env {
		if err := config.CheckValue(name, value); err != nil {
			return problem.Errorf(problem.Usage, "sallyport agent list", "the variable %q cannot be given to an agent: %w", name, err)
		}
	}
	return nil
}

func (s *Server) giveKeys(r *http.Request) (any, error) {
	ref, in, err := about[api.GiveKeys](r)
	if err != nil {
		return nil, err
	}
	return struct{}{}, s.Verbs.Give(r.Context(), ref, by(r), keysOf(in.Keys))
}

// wanted answers for a change (of=ID of it or of a session), or for a request: agent, dir and branch as run has them.
func (s *Server) wanted(r *http.Request) (any, error) {
	if err := known(r, "of", "agent", "dir", "branch"); err != nil {
		return nil, err
	}
	q := r.URL.Query()
	var w control.Wanted
	var err error
	if of := q.Get("of"); of != "" {
		if _, err := id.ParseChange(of); err != nil {
			if _, err := id.ParseSession(of); err != nil {
				return nil, err
			}
		}
		w, err = s.Verbs.WantedBy(r.Context(), of)
	} else {
		var dir string
		if dir, err = folderOf(q.Get("dir"), "sallyport run --help"); err != nil {
			return nil, err
		}
		w, err = s.Verbs.Wanting(r.Context(), request.Request{
			Kind: request.Edit, Agent: q.Get("agent"), Project: git.Project{Top: dir}, Branch: q.Get("branch"),
		})
	}
	if err != nil {
		return nil, err
	}
	return api.Wanted{Change: string(w.Change), Agent: w.Agent, Keys: texts(w.Keys), Bases: texts(w.Bases), Env: texts(w.Env), Held: w.Held}, nil
}

func (s *Server) agents(r *http.Request) (any, error) {
	if err := known(r, "dir", "path", "home"); err != nil {
		return nil, err
	}
	q := r.URL.Query()
	at, err := s.placeOf(api.Place{Dir: q.Get("dir"), Path: q.Get("path"), Home: q.Get("home")})
	if err != nil {
		return nil, err
	}
	all, err := s.Agents.ListAgents(r.Context(), at)
	return each(all, func(a api.Agent) api.Agent {
		a.Path, a.Version, a.Problem = text(a.Path), text(a.Version), text(a.Problem)
		return a
	}), err
}

func (s *Server) testAgent(r *http.Request) (any, error) {
	var in api.TestAgent
	if err := read(r, &in); err != nil {
		return nil, err
	}
	at, err := s.placeOf(in.Place)
	if err != nil {
		return nil, err
	}
	if err := modelWords(in.Model, in.Bases, in.Env); err != nil {
		return nil, err
	}
	out, err := s.Agents.TestAgent(r.Context(), AgentTry{Place: at, Agent: in.Agent, Model: in.Model, Keys: keysOf(in.Keys), Bases: in.Bases, Env: in.Env}, by(r))
	out.Says, out.Text = text(out.Says), text(out.Text)
	return out, err
}

func (s *Server) placeOf(at api.Place) (api.Place, error) {
	if s.Agents == nil {
		return at, problem.Errorf(problem.Unavailable, "sallyport daemon status", "this daemon knows of no agents")
	}
	if at.Dir != "" && !filepath.IsAbs(at.Dir) || strings.ContainsRune(at.Dir+at.Path+at.Home, 0) {
		return at, problem.Errorf(problem.Usage, "sallyport agent list --help", "%q is not an absolute path of a folder", at.Dir)
	}
	return at, nil
}
