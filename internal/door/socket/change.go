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

// changes answers what is asked of changes.
type changes struct{ part Changes }

func (n changes) list(ctx context.Context, _ audit.Actor, in api.Filter) ([]api.Change, error) {
	rows, err := n.part.List(ctx, change.Filter{Top: in.Repo, States: statesOf(in.States), Limit: min(in.Limit, listMax)})
	if err != nil {
		return nil, err
	}
	return n.rows(ctx, rows)
}

// statesOf are the states that a list is narrowed to; nil = all.
func statesOf(given []string) []change.State {
	if given == nil {
		return nil
	}
	return each(given, func(s string) change.State { return change.State(s) })
}

// rows are changes as a list shows them: those on trial with how that stands.
func (n changes) rows(ctx context.Context, rows []change.Row) ([]api.Change, error) {
	out := each(rows, changeOf)
	for i, row := range rows {
		if row.State != change.InTrial {
			continue
		}
		d, err := n.part.Show(ctx, row.ID)
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

func (n changes) show(ctx context.Context, _ audit.Actor, of string) (api.Detail, error) {
	d, err := n.part.Show(ctx, id.Change(of))
	return detailOf(d), err
}

func (n changes) diff(ctx context.Context, of string, out io.Writer) error {
	return n.part.Diff(ctx, id.Change(of), out)
}

func (n changes) export(ctx context.Context, of string, out io.Writer) error {
	return n.part.Export(ctx, id.Change(of), out)
}
