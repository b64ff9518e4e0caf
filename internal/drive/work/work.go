// Package work has a change as one step of its path sees it: its row, the host's repository, the rules that judge it and its
// workspace's spec, read once where the step begins and handed down.
package work

import (
	"context"
	"log/slog"
	"slices"

	"sallyport/internal/base/git"
	"sallyport/internal/drive/grounds"
	"sallyport/internal/drive/live"
	"sallyport/internal/path/change"
	"sallyport/internal/path/layer"
	"sallyport/internal/path/request"
	"sallyport/internal/path/session"
	"sallyport/internal/path/workspace"
	"sallyport/internal/port/sandbox"
)

// Work is a change in one step of its path.
type Work struct {
	Row     change.Row // as the step wrote it last
	Host    git.Dir    // the host's repository of its project, which holds its base
	Judging grounds.Judging
	Spec    workspace.Spec
}

// Opener reads what a step needs.
type Opener struct {
	Grounds  grounds.Reader
	Self     sandbox.Owner // who the daemon runs as
	FirstUID uint32        // of sandboxes when every change has a uid of its own; 0 = all run as Self
	Log      *slog.Logger
}

// Open reads what a step of a change needs, as the rules stand now.
func (o Opener) Open(ctx context.Context, row change.Row) (Work, error) {
	host, judging, err := o.Grounds.AtBase(ctx, row)
	return o.With(row, host, judging), err
}

// With is the work of a change for whose step the repository was opened and the rules were read already.
func (o Opener) With(row change.Row, host git.Dir, judging grounds.Judging) Work {
	return Work{Row: row, Host: host, Judging: judging, Spec: o.Spec(row)}
}

// Anew is the work with the rules as they stand now: the home's may have changed since the step began.
func (o Opener) Anew(ctx context.Context, w Work) (Work, error) {
	judging, err := o.Grounds.At(ctx, w.Row.Request.Project, w.Host, git.OID(w.Row.Base))
	w.Judging = judging
	return w, err
}

// Spec is the workspace of a row, which always can be named again.
func (o Opener) Spec(row change.Row) workspace.Spec {
	spec := workspace.Spec{
		Change:  row.ID,
		Project: row.Request.Project,
		Base:    git.OID(row.Base),
		Branch:  row.Request.Branch,
		Owner:   o.Owner(row),
	}
	if r := row.Request; r.Kind == request.Swap && r.Worked() { // it stands on an overlay, which the home's branch never has (SM-026, SM-043)
		spec.Branch = "dev/" + string(row.ID)
	}
	return spec
}

// Owner is who a change's writable files belong to.
func (o Opener) Owner(row change.Row) sandbox.Owner {
	if o.FirstUID == 0 {
		return o.Self
	}
	return sandbox.Owner{UID: row.UID, GID: row.UID}
}

// Show makes a throw-away workspace that shows a commit, with what a setup left where there is any.
func (o Opener) Show(ctx context.Context, w Work, setup layer.Stock, commit git.OID) (workspace.Workspace, error) {
	spec := w.Spec
	if !setup.None() {
		spec.Setup = setup.ID.String()
	}
	return o.Grounds.Workspaces.Materialize(ctx, spec, commit)
}

// Discard takes a throw-away workspace away, also after its caller was cancelled.
func (o Opener) Discard(ctx context.Context, ws workspace.Workspace) {
	if err := o.Grounds.Workspaces.Discard(context.WithoutCancel(ctx), ws); err != nil {
		o.Log.Warn("a throw-away workspace was not removed", "change", ws.Spec.Change, "error", err)
	}
}

// Judged is the workspace's spec with the ignored files that its checkpoints hold: a tree that is put back must be looked at as they are.
func (w Work) Judged() workspace.Spec {
	spec := w.Spec
	spec.IncludeIgnored = slices.Concat(w.Row.Request.IncludeIgnored, w.Judging.IncludeIgnored)
	return spec
}

// Checks are the commands that judge the change.
func (w Work) Checks() []string { return w.Judging.ChecksOf(w.Row.Request) }

// Setups are the commands that make ready what its builds need.
func (w Work) Setups() []string { return w.Judging.SetupsOf(w.Row.Request) }

// Mode is how its agent is watched.
func (w Work) Mode() session.Supervision { return w.Judging.Watch(w.Row.Request) }

// Subject is the change as its sandboxes know it.
func (w Work) Subject() live.Subject {
	s := Subject(w.Row.ID, w.Row.Request, w.Spec.Owner)
	s.Profiles = slices.Concat(w.Judging.Profiles, s.Profiles)
	s.DiskBytes = w.Mode().UpperBytesMax
	s.SetUp = len(w.Setups()) > 0
	return s
}
