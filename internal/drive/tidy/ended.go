package tidy

import (
	"context"
	"errors"
	"fmt"
	"time"

	"sallyport/internal/base/audit"
	"sallyport/internal/base/git"
	"sallyport/internal/base/id"
	"sallyport/internal/drive/ledger"
	"sallyport/internal/path/change"
	"sallyport/internal/path/repository"
	"sallyport/internal/store"
)

// Ended runs do on a change that has ended, while no step of it and nothing else of the kind is under way.
// It reports false, and runs nothing, for one that is open or that a step holds.
func (t *Tidier) Ended(ctx context.Context, changeID id.Change, do func(change.Row) error) (bool, error) {
	leave, err := t.Works.Take(ctx, changeID)
	if err != nil {
		return false, err
	}
	defer leave()
	row, err := t.Row(ctx, changeID)
	if err != nil || !row.State.Final() {
		return false, err
	}
	return true, do(row)
}

// ClearWorkspace removes the workspace of a change that has ended, once its work has a ref. One that is kept for a person
// to look at (SV-033) goes only with kept. It reports whether the workspace is gone.
func (t *Tidier) ClearWorkspace(ctx context.Context, changeID id.Change, kept bool) (gone bool, err error) {
	_, err = t.Ended(ctx, changeID, func(row change.Row) error {
		if kept {
			if err := t.keepWork(ctx, row); err != nil {
				return fmt.Errorf("keep the work of %s: %w", changeID, err)
			}
			gone = true
			return t.Workspaces.Remove(ctx, changeID)
		}
		if gone = !t.keepsTree(ctx, row); gone {
			t.Tidy(ctx, row)
		}
		return nil
	})
	if err == nil && gone { // tidy leaves it where its work could not be kept
		there, err := t.Workspaces.Changes()
		if err != nil {
			return false, err
		}
		for _, other := range there {
			gone = gone && other != changeID
		}
	}
	return gone, err
}

// ForgetRefs removes every ref of a change that has ended, from the host's repository and the project's, and nothing else. The audit
// log says so first. A change that was taken up again meanwhile gets them back: its row moved in a transaction
// that waits for nobody. It returns how many refs went.
func (t *Tidier) ForgetRefs(ctx context.Context, changeID id.Change, by audit.Actor) (removed int, err error) {
	_, err = t.Ended(ctx, changeID, func(row change.Row) error {
		dirs := []git.Dir{t.Workspaces.Host(row.Request.Project), row.Request.Project.Common(t.Ops)}
		refs := make([]map[string]git.OID, len(dirs))
		for i, dir := range dirs {
			if there, err := repository.HasRepository(dir); err != nil || !there {
				continue // what is gone, or closed to us, has none to remove
			}
			var err error
			if refs[i], err = dir.Refs(ctx, repository.RefRoot(changeID)); err != nil {
				return err
			}
			removed += len(refs[i])
		}
		if removed == 0 {
			return nil
		}
		row.Reason = fmt.Sprintf("%d refs of the change were removed: it ended as %s at %s", removed, row.State.Words(), row.Moved.Format(time.RFC3339))
		if err := t.DB.InTx(ctx, func(tx store.Tx) error {
			return t.Append(ctx, tx, &row, ledger.Move{By: by}, "forgotten", ledger.Now())
		}); err != nil {
			return err
		}
		for i, dir := range dirs {
			if err := repository.DropRefs(ctx, dir, refs[i]); err != nil {
				return fmt.Errorf("remove the refs of %s: %w", changeID, err)
			}
		}
		return t.restoreRefs(ctx, changeID, dirs, refs)
	})
	return removed, err
}

// restoreRefs sets the refs of a change again that was taken up while they were removed, and says so; of one that has ended it sets none.
func (t *Tidier) restoreRefs(ctx context.Context, changeID id.Change, dirs []git.Dir, refs []map[string]git.OID) error {
	is, err := t.Row(ctx, changeID)
	if err == nil && is.State.Final() {
		return nil
	}
	errs := []error{err}
	for i, dir := range dirs {
		for ref, oid := range refs[i] {
			if err := dir.UpdateRef(ctx, "keep:again", ref, oid, ""); err != nil {
				errs = append(errs, fmt.Errorf("set %s of %s again: %w", ref, changeID, err))
			}
		}
	}
	return errors.Join(append(errs, fmt.Errorf("%s was resumed or redone meanwhile, so its refs stay: %w", changeID, change.ErrMoved))...)
}
