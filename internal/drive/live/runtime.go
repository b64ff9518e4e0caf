package live

import (
	"context"
	"path/filepath"

	"sallyport/internal/base/disk"
	"sallyport/internal/base/id"
	"sallyport/internal/path/session"
	"sallyport/internal/port/agent"
	"sallyport/internal/port/sandbox"
	"sallyport/internal/rule/metric"
	"sallyport/internal/rule/secret"
)

// Runtime is what sessions of agents run on, whatever they work for.
type Runtime struct {
	Defaults
	Ways    Ways
	Outfits Outfitter
	Budget  *Budget
	Sandbox sandbox.Driver
	Secrets *secret.Scanner
	Ops     disk.Ops
	Meter   *metric.Set
	Folder  string        // of sessions
	Places  chan struct{} // one per agent that may work at once; who works has sent
}

// Dir is where a session's metadata and transcript lie.
func (r Runtime) Dir(s id.Session) string { return filepath.Join(r.Folder, string(s)) }

// Place waits until one more agent may work (SV-095); leave gives the place to the next. What was read before it waited may be old.
func (r Runtime) Place(ctx context.Context) (leave func(), waited bool, err error) {
	leave = func() { <-r.Places }
	select {
	case r.Places <- struct{}{}:
		return leave, false, nil
	default:
	}

	here := r.Meter.SessionWaits()
	defer here()
	select {
	case r.Places <- struct{}{}:
		return leave, true, nil
	case <-ctx.Done():
		return nil, true, context.Cause(ctx)
	}
}

// Mounts is where a session lives.
type Mounts struct {
	Tree    sandbox.Tree
	Cache   sandbox.Cache
	Dir     string // in which its program starts, as seen inside
	Cwd     string // and as the person sees it
	Release func() // lets its caches go, once its sandbox has ended
}

// Ready makes a session of a subject ready to run: its way out is open, which whoever runs it closes, and what is mounted with it. If it
// cannot be made ready what is mounted is let go.
func (r Runtime) Ready(ctx context.Context, s Subject, f Outfit, p agent.Program, of session.Session, in Mounts) (session.Running, error) {
	if err := f.Enter(ctx); err != nil {
		in.Release()
		return session.Running{}, err
	}
	way, err := r.Ways.Open(ctx, s, Outgoing{Session: of.ID, Model: p.Model, Key: f.Key, Login: f.Login})
	if err != nil {
		in.Release()
		return session.Running{}, err
	}
	way = Until(way, in.Release)
	spec, err := r.Environment(ctx, s, way, in.Cache.Upper != "")
	if err != nil {
		way.Close()
		return session.Running{}, err
	}
	spec.Tree, spec.Cache, spec.Dir = in.Tree, in.Cache, in.Dir
	spec.Limits = f.Within(spec.Limits, s.Timeout)
	run := session.Running{
		Session: of, Driver: r.Sandbox, Spec: spec, Way: way, Program: p, Ops: r.Ops, Secrets: r.Secrets, Cwd: in.Cwd,
	}
	switch {
	case p.Chat:
		run.Talk = session.NewChatTalk()
	case p.Messages:
		run.Talk = session.NewTalk()
	}
	return run, nil
}
