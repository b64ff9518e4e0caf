package socket

import (
	"context"
	"time"

	"sallyport/internal/base/audit"
	"sallyport/internal/door/api"
	"sallyport/internal/drive/people"
	"sallyport/internal/rule/right"
	"sallyport/internal/who/person"
)

// Members keeps whom the home knows; it checks who asks.
type Members interface {
	List(ctx context.Context) ([]person.Known, error)
	// Show returns somebody by name or id. Errors: not found.
	Show(ctx context.Context, name string) (person.Known, error)
	// Add makes a person, whose account at the terminal is that of uid; people.NoUID = none.
	Add(ctx context.Context, by audit.Actor, name string, uid int) (person.Known, error)
	// Link makes a code by which an account becomes somebody's.
	Link(ctx context.Context, by audit.Actor, name string) (k person.Known, code person.LinkCode, until time.Time, channels []string, err error)
	// Unlink takes an account from who has it, and returns them.
	Unlink(ctx context.Context, by audit.Actor, identity string) (person.Known, error)
	Remove(ctx context.Context, by audit.Actor, name string) (person.Known, error)
	Grant(ctx context.Context, by audit.Actor, name string, h right.Held) (person.Known, error)
	Revoke(ctx context.Context, by audit.Actor, name string, h right.Held) (person.Known, error)
}

// members answers what is asked of the people of the home.
type members struct{ part Members }

func (n members) list(ctx context.Context, _ audit.Actor, _ api.Nothing) ([]api.Person, error) {
	all, err := n.part.List(ctx)
	return each(all, personOf), err
}

func (n members) show(ctx context.Context, _ audit.Actor, in string) (api.Person, error) {
	k, err := n.part.Show(ctx, in)
	return personOf(k), err
}

func (n members) add(ctx context.Context, by audit.Actor, in api.NewPerson) (api.Person, error) {
	uid := people.NoUID
	if in.UID != nil {
		uid = *in.UID
	}
	k, err := n.part.Add(ctx, by, in.Name, uid)
	return personOf(k), err
}

func (n members) link(ctx context.Context, by audit.Actor, in string) (out api.LinkCode, err error) {
	k, code, until, channels, err := n.part.Link(ctx, by, in)
	if err != nil {
		return out, err
	}
	return api.LinkCode{Person: personOf(k), Code: code.String(), Expires: until, Channels: texts(channels)}, nil
}

func (n members) unlink(ctx context.Context, by audit.Actor, in api.Unlink) (api.Person, error) {
	k, err := n.part.Unlink(ctx, by, in.Identity)
	return personOf(k), err
}

func (n members) role(ctx context.Context, by audit.Actor, in api.SetRole) (api.Person, error) {
	set := n.part.Grant
	if in.Remove {
		set = n.part.Revoke
	}
	k, err := set(ctx, by, in.Person, right.Held{Role: right.Role(in.Role), Group: in.Group})
	return personOf(k), err
}

func (n members) remove(ctx context.Context, by audit.Actor, in string) (api.Person, error) {
	k, err := n.part.Remove(ctx, by, in)
	return personOf(k), err
}

func personOf(k person.Known) api.Person {
	return api.Person{
		ID: string(k.ID), Name: text(k.Name), Reachable: k.Entitled().Reachable,
		Roles: each(k.Held, func(h right.Held) api.Role { return api.Role{Role: string(h.Role), Group: h.Group} }),
		Accounts: each(k.Accounts, func(a person.Account) api.Account {
			return api.Account{Identity: text(a.Identity.String()), Label: text(a.Label), Direct: a.Reached()}
		}),
	}
}
