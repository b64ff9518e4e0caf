package socket

import (
	"context"
	"path/filepath"
	"strings"
	"time"

	"sallyport/internal/base/audit"
	"sallyport/internal/base/git"
	"sallyport/internal/base/id"
	"sallyport/internal/base/problem"
	"sallyport/internal/door/api"
	"sallyport/internal/drive/accept"
	"sallyport/internal/drive/live"
	"sallyport/internal/path/request"
	"sallyport/internal/path/session"
	"sallyport/internal/rule/config"
	"sallyport/internal/rule/credential"
	"sallyport/internal/rule/secret"
)

// Requests takes wishes, and says what stands before one.
type Requests interface {
	// TakeRequest accepts a wish: on return it has a row and will end in a visible outcome.
	// Of r.Project only Top need be set, to any folder in the repository; of the rest the controller
	// sets what the repository says.
	TakeRequest(ctx context.Context, r request.Request, keys credential.Keys) (accept.Receipt, error)
	// Examine looks at the repository that a folder lies in as a request there would, and writes nothing.
	Examine(ctx context.Context, folder string) (accept.Examined, error)
	// Wanting says which keys the agent of a new change wants: of the one that is named, or that the repository names.
	Wanting(ctx context.Context, r request.Request) (live.Wanted, error)
	// WantedBy says the same of a change; ref is its id or a session's.
	WantedBy(ctx context.Context, ref string) (live.Wanted, error)
	// Give takes keys for an open change; one that waits for its key goes on.
	Give(ctx context.Context, change id.Change, by audit.Actor, keys credential.Keys) error
}

// requests answers wishes, and what stands before one.
type requests struct{ part Requests }

func (n requests) run(ctx context.Context, by audit.Actor, in api.Run) (out api.Change, err error) {
	req, err := requestOf(in)
	if err != nil {
		return out, err
	}
	req.By, req.At = by, time.Now()
	receipt, err := n.part.TakeRequest(ctx, req, keysOf(in.Keys))
	if err != nil {
		return out, err
	}
	out = changeOf(receipt.Change)
	out.Uncommitted, out.Included = texts(receipt.Uncommitted), texts(receipt.Included)
	return out, nil
}

func (n requests) examine(ctx context.Context, _ audit.Actor, in api.InFolder) (out api.Repository, err error) {
	dir, err := folderOf(in.Dir, "sallyport doctor --help")
	if err != nil {
		return out, err
	}
	x, err := n.part.Examine(ctx, dir)
	return api.Repository{Top: x.Top, Branch: x.Branch, Converts: texts(x.Converts), Ignored: texts(x.Ignored)}, err
}

func (n requests) wanted(ctx context.Context, _ audit.Actor, in api.WhoWants) (api.Wanted, error) {
	w, err := n.wants(ctx, in)
	return api.Wanted{Change: string(w.Subject), Agent: w.Agent, Keys: texts(w.Keys), Bases: texts(w.Bases), Env: texts(w.Env), Held: w.Held}, err
}

func (n requests) wants(ctx context.Context, in api.WhoWants) (live.Wanted, error) {
	if in.Of != "" {
		return n.part.WantedBy(ctx, in.Of)
	}
	dir, err := folderOf(in.Dir, "sallyport run --help")
	if err != nil {
		return live.Wanted{}, err
	}
	return n.part.Wanting(ctx, request.Request{Kind: request.Edit, Agent: in.Agent, Project: git.Project{Top: dir}, Branch: in.Branch})
}

func (n requests) give(ctx context.Context, by audit.Actor, in api.GiveKeys) (out api.Nothing, err error) {
	return out, n.part.Give(ctx, id.Change(in.Of), by, keysOf(in.Keys))
}

// folderOf takes the absolute path of a folder; next is what to run for one that is none.
func folderOf(dir, next string) (string, error) {
	if !filepath.IsAbs(dir) || strings.ContainsRune(dir, 0) {
		return "", problem.Errorf(problem.Usage, next, "%q is not an absolute path of a folder", dir)
	}
	return filepath.Clean(dir), nil
}

// requestOf checks what only the wire can get wrong; what is asked is judged by the controller.
func requestOf(in api.Run) (request.Request, error) {
	const next = "sallyport run --help"
	dir, err := folderOf(in.Dir, next)
	if err != nil {
		return request.Request{}, err
	}
	for _, share := range in.Shares {
		if !filepath.IsAbs(share) || strings.ContainsRune(share, 0) {
			return request.Request{}, problem.Errorf(problem.Usage, next, "share %q is not an absolute path", share)
		}
	}
	mode, err := approveMode(in.Approve)
	if err != nil {
		return request.Request{}, err
	}
	if in.TimeoutMS < 0 || in.TimeoutMS > request.TimeoutMax.Milliseconds() {
		return request.Request{}, problem.Errorf(problem.Usage, next, "--timeout %s is not between 0 and %s",
			time.Duration(min(in.TimeoutMS, 1<<40))*time.Millisecond, request.TimeoutMax)
	}
	strategy, err := strategyOf(in.Strategy)
	if err != nil {
		return request.Request{}, err
	}
	if err := interactive(in.ExecutionMode, next); err != nil {
		return request.Request{}, err
	}
	if in.Messages && in.Agent != "command" {
		return request.Request{}, problem.Errorf(problem.Usage, next, "--messages is for a command; %q is not one", in.Agent)
	}
	if err := agentWords(in); err != nil {
		return request.Request{}, err
	}
	return request.Request{
		Kind: request.Edit, Text: in.Text, Project: git.Project{Top: dir}, Branch: in.Branch, Onto: in.Onto,
		Agent: in.Agent, Model: in.Model, Egress: in.Egress, Bases: in.Bases, Env: in.Env, Argv: in.Argv, Script: in.Script, Path: in.Path, Home: in.Home,
		Allow: in.Allow, Forbid: in.Forbid, Checks: in.Checks, Setup: in.Setup, Shares: in.Shares, Profiles: in.Profiles,
		IncludeDirty: in.IncludeDirty, IncludeIgnored: in.IncludeIgnored,
		Approve: mode, Message: in.Message, Timeout: time.Duration(in.TimeoutMS) * time.Millisecond, Trial: lengthOf(in.TrialMS),
		Strategy: strategy, Messages: in.Messages,
	}, nil
}

// approveMode reads --approve as it crosses the socket.
func approveMode(v string) (request.Approve, error) {
	switch mode := request.Approve(v); mode {
	case request.Ask, request.Yes, request.Later:
		return mode, nil
	}
	return "", problem.Errorf(problem.Usage, "sallyport run --help", "approve %q is none of ask, yes, later", v)
}

// strategyOf reads --strategy as it crosses the socket.
func strategyOf(v string) (string, error) {
	switch session.Strategy(v) {
	case "", session.Direct, session.Shadow:
		return v, nil
	}
	return "", problem.Errorf(problem.Usage, "sallyport run --help", "strategy %q is none of %s, %s", v, session.Direct, session.Shadow)
}

// interactive refuses a mode that no agent of today has: a plain command, and a script that
// stands in for one, work on the files themselves (SV-001).
func interactive(mode, next string) error {
	switch mode {
	case "", api.Interactive:
		return nil
	case api.Deterministic:
		return problem.Errorf(problem.Usage, next,
			"the execution mode deterministic is refused: an agent or a command edits files as it works, and only the interactive mode can watch that")
	}
	return problem.Errorf(problem.Usage, next, "execution mode %q is none of %s, %s", mode, api.Deterministic, api.Interactive)
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
