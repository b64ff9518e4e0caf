package sqlite

import (
	"context"
	"fmt"

	"sallyport/internal/base/problem"
	"sallyport/internal/who/person"
)

// persons are who the home knows, by which accounts, and whose the home is.
type persons struct{ *queries }

// Owner returns the home's owner.
func (t persons) Owner(ctx context.Context) (person.Owner, bool, error) {
	var o person.Owner
	ok, err := t.one(ctx, `SELECT person.id, person.name, CAST(identity.account AS INTEGER) FROM role
		JOIN person ON person.id = role.person JOIN identity ON identity.person = person.id AND identity.platform = 'terminal'
		WHERE role.role = 'owner' ORDER BY identity.seq LIMIT 1`, nil, &o.ID, &o.Name, &o.UID)
	if err != nil {
		return person.Owner{}, false, fmt.Errorf("read the home's owner: %w", err)
	}
	return o, ok, nil
}

// SetOwner stores the owner; once. The same again does nothing, another is problem.Denied.
func (t persons) SetOwner(ctx context.Context, o person.Owner) error {
	now, there, err := t.Owner(ctx)
	if err != nil || now == o {
		return err
	}
	if there {
		return problem.Errorf(problem.Denied, "sallyport status", "this home belongs to %q (uid %d) already, not to %q (uid %d)",
			now.Name, now.UID, o.Name, o.UID)
	}
	i := person.AtTerminal(o.UID)
	for _, row := range []struct {
		query string
		args  []any
	}{
		{`INSERT INTO person (id, name) VALUES (?, ?)`, []any{o.ID, o.Name}},
		{`INSERT INTO identity (platform, account, person, label) VALUES (?, ?, ?, ?)`, []any{i.Platform, i.Account, o.ID, o.Name}},
		{`INSERT INTO role (person, role, folder) VALUES (?, 'owner', '')`, []any{o.ID}},
	} {
		if _, err := t.write(ctx, "set-owner", row.query, row.args...); err != nil {
			return fmt.Errorf("store the home's owner: %w", err)
		}
	}
	return nil
}

// Whose returns the person who has an identity.
func (t persons) Whose(ctx context.Context, i person.Identity) (p person.Person, there bool, err error) {
	there, err = t.one(ctx, `SELECT person.id, person.name FROM identity JOIN person ON person.id = identity.person
		WHERE identity.platform = ? AND identity.account = ?`, []any{i.Platform, i.Account}, &p.ID, &p.Name)
	if err != nil {
		return person.Person{}, false, fmt.Errorf("find whose %s is: %w", i, err)
	}
	return p, there, nil
}
