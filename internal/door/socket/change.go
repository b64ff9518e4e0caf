package socket

import (
	"context"
	"io"

	"sallyport/internal/base/audit"
	"sallyport/internal/base/id"
	"sallyport/internal/base/problem"
	"sallyport/internal/door/api"
	"sallyport/internal/drive/view"
	"sallyport/internal/path/change"
	"sallyport/internal/path/request"
	"sallyport/internal/rule/credential"
)

// listMax bounds the rows of one answer.
const listMax = 10_000

// Changes shows changes.
type Changes interface {
	List(ctx context.Context, f change.Filter) ([]change.Row, error)
	Show(ctx context.Context, change id.Change) (view.Detail, error)
	// Watch sends notices until ctx ends; the channel is closed after a state in which nothing happens by itself was sent.
	Watch(ctx context.Context, change id.Change) (<-chan change.Notice, error)
	// Diff writes the unified diff of what is proposed or was landed; without a proposal, of the last checkpoint.
	Diff(ctx context.Context, change id.Change, w io.Writer) error
	// Export writes the same as a patch with binary data that `git apply` takes.
	Export(ctx context.Context, change id.Change, w io.Writer) error
}

// Courses is what a person has become of a change that has not landed.
type Courses interface {
	Cancel(ctx context.Context, change id.Change, by audit.Actor, reason string) error
	// Redo has an unlanded change made anew on its branch as it is now: what was offered last is applied there where it fits,
	// the agent is told where not, and a new card follows. Errors: conflict if there is nothing to do again.
	Redo(ctx context.Context, change id.Change, by audit.Actor, keys credential.Keys) (change.Row, error)
	// Branch writes what was offered last as a branch of the project, whose name is "" for sallyport/<change>. Errors: conflict if
	// nothing was offered, or if there is such a branch.
	Branch(ctx context.Context, change id.Change, name string, by audit.Actor) (view.Branched, error)
}

// Trials is what a person says of what has landed.
type Trials interface {
	// Confirm keeps what is on trial (SM-122). Errors: conflict if nobody was asked yet, or if rollback or the end of the
	// time was first; confirming what is confirmed changes nothing and is no error.
	Confirm(ctx context.Context, change id.Change, by audit.Actor) error
	// Rollback asks for the undoing of a finalized change: a new change of kind revert, which it returns. What is on
	// trial goes back at once (SM-123), and its own row is returned.
	Rollback(ctx context.Context, change id.Change, by audit.Actor, reason string, approve request.Approve) (change.Row, error)
}

func (s *Server) list(ctx context.Context, _ audit.Actor, in api.Filter) ([]api.Change, error) {
	rows, err := s.Changes.List(ctx, change.Filter{Top: in.Repo, States: statesOf(in.States), Limit: min(in.Limit, listMax)})
	if err != nil {
		return nil, err
	}
	return s.rowsOf(ctx, rows)
}

// statesOf are the states that a list is narrowed to; nil = all.
func statesOf(given []string) []change.State {
	if given == nil {
		return nil
	}
	return each(given, func(s string) change.State { return change.State(s) })
}

// rowsOf are changes as a list shows them: those on trial with how that stands.
func (s *Server) rowsOf(ctx context.Context, rows []change.Row) ([]api.Change, error) {
	out := each(rows, changeOf)
	for i, row := range rows {
		if row.State != change.InTrial {
			continue
		}
		d, err := s.Changes.Show(ctx, row.ID)
		if problem.KindOf(err) == problem.NotFound {
			continue
		}
		if err != nil {
			return nil, err
		}
		out[i] = detailOf(d).Change // all of one moment
	}
	return out, nil
}

func (s *Server) show(ctx context.Context, _ audit.Actor, of string) (api.Detail, error) {
	d, err := s.Changes.Show(ctx, id.Change(of))
	return detailOf(d), err
}

func (s *Server) diff(ctx context.Context, of string, out io.Writer) error {
	return s.Changes.Diff(ctx, id.Change(of), out)
}

func (s *Server) export(ctx context.Context, of string, out io.Writer) error {
	return s.Changes.Export(ctx, id.Change(of), out)
}

func (s *Server) cancel(ctx context.Context, by audit.Actor, in api.Reason) (out api.Nothing, err error) {
	return out, s.Courses.Cancel(ctx, id.Change(in.Of), by, in.Reason)
}

func (s *Server) redo(ctx context.Context, by audit.Actor, in api.Redo) (api.Change, error) {
	row, err := s.Courses.Redo(ctx, id.Change(in.Of), by, keysOf(in.Keys))
	return changeOf(row), err
}

func (s *Server) branch(ctx context.Context, by audit.Actor, in api.Branch) (api.Branched, error) {
	b, err := s.Courses.Branch(ctx, id.Change(in.Of), in.Name, by)
	return api.Branched{Name: text(b.Name), Commit: string(b.Commit)}, err
}

func (s *Server) confirm(ctx context.Context, by audit.Actor, of string) (out api.Nothing, err error) {
	return out, s.Trials.Confirm(ctx, id.Change(of), by)
}

func (s *Server) rollback(ctx context.Context, by audit.Actor, in api.Rollback) (out api.Change, err error) {
	mode, err := approveMode(in.Approve)
	if err != nil {
		return out, err
	}
	row, err := s.Trials.Rollback(ctx, id.Change(in.Of), by, in.Reason, mode)
	return changeOf(row), err
}
