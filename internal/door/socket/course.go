package socket

import (
	"context"

	"sallyport/internal/base/audit"
	"sallyport/internal/base/id"
	"sallyport/internal/door/api"
	"sallyport/internal/drive/view"
	"sallyport/internal/path/change"
	"sallyport/internal/rule/credential"
)

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

// courses answers what becomes of a change that has not landed.
type courses struct{ part Courses }

func (n courses) cancel(ctx context.Context, by audit.Actor, in api.Reason) (out api.Nothing, err error) {
	return out, n.part.Cancel(ctx, id.Change(in.Of), by, in.Reason)
}

func (n courses) redo(ctx context.Context, by audit.Actor, in api.Redo) (api.Change, error) {
	row, err := n.part.Redo(ctx, id.Change(in.Of), by, keysOf(in.Keys))
	return changeOf(row), err
}

func (n courses) branch(ctx context.Context, by audit.Actor, in api.Branch) (api.Branched, error) {
	b, err := n.part.Branch(ctx, id.Change(in.Of), in.Name, by)
	return api.Branched{Name: text(b.Name), Commit: string(b.Commit)}, err
}
