package accept

import (
	"context"

	"sallyport/internal/base/id"
	"sallyport/internal/base/problem"
	"sallyport/internal/drive/live"
	"sallyport/internal/drive/work"
	"sallyport/internal/path/change"
	"sallyport/internal/path/request"
	"sallyport/internal/path/session"
	"sallyport/internal/port/agent"
	"sallyport/internal/port/egress"
	"sallyport/internal/port/sandbox"
	"sallyport/internal/rule/credential"
)

// Audition is an agent made ready as for a change, to be tried where there is none: it gets its program, its way out and its
// model's key, and no tree. Nothing of it is kept.
type Audition struct {
	Program agent.Program
	Spec    sandbox.Spec // but for a tree
	Close   func()       // closes its way out and forgets the key
}

// Audition makes the agent of a request ready. Decided is told what is asked of its way out.
//
// Errors: as of Request, for an agent that there is not, is not installed, or has no key (credential.ErrMissing).
func (rs *Requests) Audition(ctx context.Context, r request.Request, keys credential.Keys, decided func(egress.Decision)) (Audition, error) {
	if err := rs.Owner.MayDecide(r.By); err != nil {
		return Audition{}, err
	}
	_, named, err := rs.Outfits.Known(r.Agent)
	if err == nil && !named {
		err = problem.Errorf(problem.Usage, "sallyport agent list", "there is no agent %q", r.Agent)
	}
	if err != nil {
		return Audition{}, err
	}
	if err := rs.secretsIn(ctx, r); err != nil {
		return Audition{}, err
	}
	try := id.NewChange() // of nothing: a name for what is held meanwhile
	forget := func() { rs.Outfits.Keys.Forget(string(try)); rs.Budget.Forget(try.Subject()) }
	if err := rs.Outfits.Receive(rs.subject(try, r), keys); err != nil {
		return Audition{}, err
	}
	a, err := rs.audition(ctx, try, r, decided)
	if err != nil {
		forget()
		return Audition{}, err
	}
	shut := a.Close
	a.Close = func() { shut(); forget() }
	return a, nil
}

func (rs *Requests) audition(ctx context.Context, try id.Change, r request.Request, decided func(egress.Decision)) (Audition, error) {
	if _, err := rs.Runnable(try, r, "sallyport agent test "+work.Word(r.Agent)); err != nil {
		return Audition{}, err
	}
	e, err := rs.Equip(try, r)
	if err != nil {
		return Audition{}, err
	}
	program, err := e.Program()
	if err != nil {
		return Audition{}, err
	}
	if err := rs.Budget.Afford(ctx, "", r.Agent, program.Model); err != nil {
		return Audition{}, err
	}
	if err := e.Enter(ctx); err != nil {
		return Audition{}, err
	}
	o := live.Outgoing{
		Subject: try.Subject(), Session: id.NewSession(program.Name), Agent: r.Agent, Model: program.Model, Key: e.Key, Login: e.Login,
		Asked: r.Egress, Decided: decided,
	}
	rs.Budget.Charge(&o, true)
	way, err := rs.Network.Open(ctx, o)
	if err != nil {
		return Audition{}, err
	}
	spec, err := session.Environment(ctx, session.Surroundings{
		Owner: rs.Opener.Owner(change.Row{UID: rs.Opener.FirstUID + UIDsPerHome - 1}), Limits: e.Within(rs.Defaults.Limits, r.Timeout),
		Path: r.Path, Home: r.Home, Way: way,
	})
	if err != nil {
		way.Close()
		return Audition{}, err
	}
	return Audition{Program: program, Spec: session.WithProgram(spec, program), Close: way.Close}, nil
}
