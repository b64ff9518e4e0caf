package sqlite

import (
	"context"
	"fmt"
	"time"

	"sallyport/internal/base/id"
	"sallyport/internal/base/problem"
	"sallyport/internal/rule/right"
	"sallyport/internal/who/person"
)

// People returns all, by name.
func (t persons) People(ctx context.Context) ([]person.Known, error) {
	var all []person.Known
	at := map[id.Person]int{}
	err := t.each(ctx, func(row scanner) error {
		var k person.Known
		err := row.Scan(&k.ID, &k.Name)
		at[k.ID], all = len(all), append(all, k)
		return err
	}, `SELECT id, name FROM person WHERE gone = 0 ORDER BY name, id`)
	if err != nil {
		return nil, fmt.Errorf("list the people of the home: %w", err)
	}

	err = t.each(ctx, func(row scanner) error {
		var whose id.Person
		var a person.Account
		err := row.Scan(&whose, &a.Platform, &a.Account, &a.Label, &a.Direct)
		if n, ok := at[whose]; ok {
			all[n].Accounts = append(all[n].Accounts, a)
		}
		return err
	}, `SELECT person, platform, account, label, direct FROM identity ORDER BY seq`)
	if err != nil {
		return nil, fmt.Errorf("list the accounts of people: %w", err)
	}

	err = t.each(ctx, func(row scanner) error {
		var whose id.Person
		var h right.Held
		err := row.Scan(&whose, &h.Role, &h.Group)
		if n, ok := at[whose]; ok {
			all[n].Held = append(all[n].Held, h)
		}
		return err
	}, `SELECT person, role, folder FROM role ORDER BY role, folder`)
	return all, doing(err, "list the roles of people")
}

// Roles returns what somebody is in the home.
func (t persons) Roles(ctx context.Context, who id.Person) ([]right.Held, error) {
	held, err := rows(ctx, t.queries, func(row scanner, h *right.Held) error {
		return row.Scan(&h.Role, &h.Group)
	}, `SELECT role, folder FROM role WHERE person = ? ORDER BY role, folder`, who)
	return held, doing(err, "read the roles of %q", who)
}

// AddPerson stores one.
func (t persons) AddPerson(ctx context.Context, p person.Person) error {
	what := fmt.Sprintf("add the person %q", p.Name)
	if err := exact(what, p); err != nil {
		return err
	}
	var there int
	ok, err := t.one(ctx, `SELECT 1 FROM person WHERE name = ? AND gone = 0`, []any{p.Name}, &there)
	if ok {
		return problem.Errorf(problem.Conflict, "sallyport person list", "%s: somebody of that name is known already", what)
	}
	if err == nil {
		_, err = t.write(ctx, "add-person", `INSERT INTO person (id, name) VALUES (?, ?)`, p.ID, p.Name)
	}
	return doing(err, "%s", what)
}

// DropPerson takes somebody's accounts, roles and codes. The row stays: what they decided names it.
func (t persons) DropPerson(ctx context.Context, who id.Person) (bool, error) {
	what := fmt.Sprintf("remove the person %q", who)
	if owns, err := t.owns(ctx, who); err != nil || owns {
		if owns {
			err = problem.Errorf(problem.Refused, "sallyport person list", "the home is theirs")
		}
		return false, fmt.Errorf("%s: %w", what, err)
	}
	for _, query := range []string{`DELETE FROM identity WHERE person = ?`, `DELETE FROM role WHERE person = ?`, `DELETE FROM link_code WHERE person = ?`} {
		if _, err := t.write(ctx, "drop-person", query, who); err != nil {
			return false, fmt.Errorf("%s: %w", what, err)
		}
	}
	n, err := t.write(ctx, "drop-person", `UPDATE person SET gone = 1 WHERE id = ? AND gone = 0`, who)
	return n > 0, doing(err, "%s", what)
}

// owns reports whether the home is somebody's.
func (t persons) owns(ctx context.Context, who id.Person) (bool, error) {
	var n int
	return t.one(ctx, `SELECT 1 FROM role WHERE person = ? AND role = 'owner'`, []any{who}, &n)
}

// Link gives an identity to a person.
func (t persons) Link(ctx context.Context, i person.Identity, who id.Person, label string) error {
	what := fmt.Sprintf("link %s to %q", i, who)
	if err := exact(what, label); err != nil {
		return err
	}
	_, err := t.write(ctx, "link", `INSERT INTO identity (platform, account, person, label) VALUES (?, ?, ?, ?)`, i.Platform, i.Account, who, label)
	if duplicate(err) {
		return problem.Errorf(problem.Conflict, "sallyport person list", "%s: the account is linked already", what)
	}
	return doing(err, "%s", what)
}

// Unlink takes an identity.
func (t persons) Unlink(ctx context.Context, i person.Identity) (bool, error) {
	n, err := t.write(ctx, "unlink", `DELETE FROM identity WHERE platform = ? AND account = ?`, i.Platform, i.Account)
	return n > 0, doing(err, "unlink %s", i)
}

// NoteDirect remembers where somebody is alone with the assistant.
func (t persons) NoteDirect(ctx context.Context, i person.Identity, where id.Conversation) error {
	_, err := t.write(ctx, "note-direct", `UPDATE identity SET direct = ?3 WHERE platform = ?1 AND account = ?2 AND direct <> ?3`, i.Platform, i.Account, where)
	return doing(err, "note where %s is alone with the assistant", i)
}

// Grant gives a role.
func (t persons) Grant(ctx context.Context, who id.Person, h right.Held) error {
	what := fmt.Sprintf("give %q the role %s", who, h.Role)
	if h.Role == right.Owner {
		return problem.Errorf(problem.Refused, "sallyport person list", "%s: the home has its owner, who made it", what)
	}
	if err := exact(what, h); err != nil {
		return err
	}
	_, err := t.write(ctx, "grant", `INSERT INTO role (person, role, folder) VALUES (?, ?, ?) ON CONFLICT DO NOTHING`, who, h.Role, h.Group)
	return doing(err, "%s", what)
}

// Revoke takes a role.
func (t persons) Revoke(ctx context.Context, who id.Person, h right.Held) (bool, error) {
	what := fmt.Sprintf("take the role %s from %q", h.Role, who)
	if h.Role == right.Owner {
		return false, problem.Errorf(problem.Refused, "sallyport person list", "%s: the home is theirs", what)
	}
	n, err := t.write(ctx, "revoke", `DELETE FROM role WHERE person = ? AND role = ? AND folder = ?`, who, h.Role, h.Group)
	return n > 0, doing(err, "%s", what)
}

// PutCode stores a code. Those that are good no more go.
func (t persons) PutCode(ctx context.Context, c person.Code) error {
	_, err := t.write(ctx, "put-code", `INSERT INTO link_code (hash, person, expires_at) VALUES (?, ?, ?)`, c.Hash, c.Person, ms(c.Expires))
	return doing(err, "store a code for %q", c.Person)
}

// Codes are the hashes of those that are good.
func (t persons) Codes(ctx context.Context, now time.Time) ([]string, error) {
	all, err := rows(ctx, t.queries, value[string], `SELECT hash FROM link_code WHERE expires_at > ? ORDER BY hash`, ms(now))
	return all, doing(err, "list the codes that are good")
}

// TakeCode uses a code up.
func (t persons) TakeCode(ctx context.Context, hash string, now time.Time) (who id.Person, ok bool, err error) {
	if _, err := t.write(ctx, "drop-code", `DELETE FROM link_code WHERE expires_at <= ?`, ms(now)); err != nil {
		return "", false, fmt.Errorf("remove codes of before: %w", err)
	}
	if ok, err = t.one(ctx, `SELECT person FROM link_code WHERE hash = ?`, []any{hash}, &who); err != nil || !ok {
		if err != nil {
			err = fmt.Errorf("look a code up: %w", err)
		}
		return "", false, err
	}
	if _, err := t.write(ctx, "take-code", `DELETE FROM link_code WHERE hash = ?`, hash); err != nil {
		return "", false, fmt.Errorf("use a code up: %w", err)
	}
	return who, true, nil
}
