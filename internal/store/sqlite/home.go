package sqlite

import (
	"context"
	"fmt"

	"sallyport/internal/base/problem"
	"sallyport/internal/who/person"
)

// owners is the one row that says whose the home is.
type owners struct{ *queries }

// Owner returns the home's owner.
func (t owners) Owner(ctx context.Context) (person.Owner, bool, error) {
	var o person.Owner
	ok, err := t.one(ctx, `SELECT uid, name FROM owner`, nil, &o.UID, &o.Name)
	if err != nil {
		return person.Owner{}, false, fmt.Errorf("read the home's owner: %w", err)
	}
	return o, ok, nil
}

// SetOwner stores the owner; once. The same again does nothing, another is problem.Denied.
func (t owners) SetOwner(ctx context.Context, o person.Owner) error {
	n, err := t.write(ctx, "set-owner", `INSERT INTO owner (one, uid, name) VALUES (1, ?, ?) ON CONFLICT DO NOTHING`, o.UID, o.Name)
	if err != nil {
		return fmt.Errorf("store the home's owner: %w", err)
	}
	if n == 1 {
		return nil
	}
	now, _, err := t.Owner(ctx)
	if err != nil || now == o {
		return err
	}
	return problem.Errorf(problem.Denied, "sallyport status", "this home belongs to %q (uid %d) already, not to %q (uid %d)",
		now.Name, now.UID, o.Name, o.UID)
}
