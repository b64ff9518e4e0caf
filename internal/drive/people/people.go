// Package people keeps whom the home knows: it adds persons, links accounts to them, and gives and takes their roles. Only the owner has it do
// so, and each of it is in the audit.
package people

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"sallyport/internal/base/audit"
	"sallyport/internal/base/id"
	"sallyport/internal/base/inert"
	"sallyport/internal/base/problem"
	"sallyport/internal/drive/ledger"
	"sallyport/internal/rule/right"
	"sallyport/internal/store"
	"sallyport/internal/who/group"
	"sallyport/internal/who/person"
)

// People keeps the people of a home.
type People struct {
	*ledger.Ledger
	Groups  func(context.Context) ([]group.Folder, error) // all of the home
	Changed func()                                        // is told that accounts at the terminal may be others now
	// Granted returns what has heard who waited for somebody's word and is known by now; nil: nobody waits.
	Granted func(ctx context.Context) (Heard, error)
}

// Heard has heard what somebody said, in the transaction of what lets them be heard.
type Heard func(ctx context.Context, tx store.Tx, by audit.Actor) error

const (
	nameBytesMax = 80
	// NoUID is what Add is given for somebody whom the terminal does not know.
	NoUID = -1
	// uidMax is the largest that a user can have; the kernel takes the one above for none.
	uidMax = 1<<32 - 2
)

// List returns everybody, by name.
func (p People) List(ctx context.Context) (all []person.Known, err error) {
	err = p.DB.Read(ctx, func(tx store.Tx) error {
		all, err = tx.People(ctx)
		return err
	})
	return all, err
}

// Show returns somebody by name or id. Errors: problem.NotFound.
func (p People) Show(ctx context.Context, name string) (k person.Known, err error) {
	err = p.DB.Read(ctx, func(tx store.Tx) error {
		k, err = find(ctx, tx, name)
		return err
	})
	return k, err
}

// Add makes a person; their account at the terminal is that of uid, which may be NoUID. Errors: problem.Usage for what is no name,
// problem.Conflict if the name or the account is somebody's.
func (p People) Add(ctx context.Context, by audit.Actor, name string, uid int) (k person.Known, err error) {
	if err := checkName(name); err != nil {
		return k, err
	}
	if uid < NoUID || uid > uidMax {
		return k, problem.Errorf(problem.Usage, "id -u "+inert.Path(name), "%d is no uid: one lies between 0 and %d", uid, uidMax)
	}
	who := person.Person{ID: id.NewPerson(), Name: name}
	err = p.DB.InTx(ctx, func(tx store.Tx) error {
		if err := owns(ctx, tx, by); err != nil {
			return err
		}
		if err := tx.AddPerson(ctx, who); err != nil {
			return err
		}
		if err := ledger.NotePerson(ctx, tx, by, who.ID, "added", name); err != nil {
			return err
		}
		if uid != NoUID {
			i := person.AtTerminal(uid)
			if err := tx.Link(ctx, i, who.ID, name); err != nil {
				return err
			}
			if err := ledger.NotePerson(ctx, tx, by, who.ID, "linked", i.String()); err != nil {
				return err
			}
		}
		k, err = find(ctx, tx, string(who.ID))
		return err
	})
	p.changed(err)
	return k, err
}

// Link makes a code by which an account becomes somebody's: whoever sends it, on one of the channels, has the account. It is stored as a hash only.
func (p People) Link(ctx context.Context, by audit.Actor, name string) (k person.Known, code person.LinkCode, until time.Time, channels []string, err error) {
	code, until = person.NewCode(), ledger.Now().Add(person.CodeFor)
	err = p.DB.InTx(ctx, func(tx store.Tx) error {
		if err := owns(ctx, tx, by); err != nil {
			return err
		}
		if k, err = find(ctx, tx, name); err != nil {
			return err
		}
		if err := tx.PutCode(ctx, person.Code{Hash: code.Hash(), Person: k.ID, Expires: until}); err != nil {
			return err
		}
		all, err := tx.Channels(ctx)
		if err != nil {
			return err
		}
		for _, c := range all {
			channels = append(channels, c.Name)
		}
		return ledger.NotePerson(ctx, tx, by, k.ID, "was given a code", "")
	})
	if err != nil {
		return person.Known{}, "", time.Time{}, nil, err
	}
	return k, code, until, channels, nil
}

// Unlink takes an account from whoever has it. The owner keeps the one that the home was made with. Errors: problem.NotFound.
func (p People) Unlink(ctx context.Context, by audit.Actor, identity string) (k person.Known, err error) {
	i, err := readIdentity(identity)
	if err != nil {
		return k, err
	}
	err = p.DB.InTx(ctx, func(tx store.Tx) error {
		if err := owns(ctx, tx, by); err != nil {
			return err
		}
		who, there, err := tx.Whose(ctx, i)
		if err != nil {
			return err
		}
		if !there {
			return problem.Errorf(problem.NotFound, "sallyport person list", "the account %q is nobody's", i.String())
		}
		if o, _, err := tx.Owner(ctx); err != nil || i == person.AtTerminal(o.UID) {
			if err == nil {
				err = problem.Errorf(problem.Refused, "sallyport person list", "the home was made from the account %s, and stays its owner's", i)
			}
			return err
		}
		if _, err := tx.Unlink(ctx, i); err != nil {
			return err
		}
		if err := ledger.NotePerson(ctx, tx, by, who.ID, "unlinked", i.String()); err != nil {
			return err
		}
		k, err = find(ctx, tx, string(who.ID))
		return err
	})
	p.changed(err)
	return k, err
}

// Remove takes somebody's accounts, roles and codes. What they said and decided stays theirs. The owner stays.
func (p People) Remove(ctx context.Context, by audit.Actor, name string) (k person.Known, err error) {
	err = p.DB.InTx(ctx, func(tx store.Tx) error {
		if err := owns(ctx, tx, by); err != nil {
			return err
		}
		if k, err = find(ctx, tx, name); err != nil {
			return err
		}
		if _, err := tx.DropPerson(ctx, k.ID); err != nil {
			return err
		}
		return ledger.NotePerson(ctx, tx, by, k.ID, "removed", k.Name)
	})
	p.changed(err)
	return k, err
}

// Grant gives somebody a role. What they said and waits for somebody's word is heard, if the role is enough for it.
func (p People) Grant(ctx context.Context, by audit.Actor, name string, h right.Held) (person.Known, error) {
	if err := p.checkGroup(ctx, h); err != nil {
		return person.Known{}, err
	}
	heard := Heard(func(context.Context, store.Tx, audit.Actor) error { return nil })
	if p.Granted != nil {
		var err error
		if heard, err = p.Granted(ctx); err != nil {
			return person.Known{}, err
		}
	}
	return p.role(ctx, by, name, owns, func(tx store.Tx, k person.Known) error {
		if err := tx.Grant(ctx, k.ID, h); err != nil {
			return err
		}
		if err := ledger.NotePerson(ctx, tx, by, k.ID, "was given a role", h.Words()); err != nil {
			return err
		}
		return heard(ctx, tx, by)
	})
}

// Revoke takes a role from somebody. Who decides about a group takes that of its members; all else is the owner's. Errors: problem.NotFound if
// they do not have it.
func (p People) Revoke(ctx context.Context, by audit.Actor, name string, h right.Held) (person.Known, error) {
	if err := checkRole(h); err != nil {
		return person.Known{}, err
	}
	may := owns
	if h.Role == right.Member { // so an admin silences somebody (CH-112)
		may = func(ctx context.Context, tx store.Tx, by audit.Actor) error { return decides(ctx, tx, by, h.Group) }
	}
	return p.role(ctx, by, name, may, func(tx store.Tx, k person.Known) error {
		took, err := tx.Revoke(ctx, k.ID, h)
		if err == nil && !took {
			err = problem.Errorf(problem.NotFound, "sallyport person show "+string(k.ID), "%q does not have the role %s",
				inert.Short(k.Name, nameBytesMax), h.Words())
		}
		if err != nil {
			return err
		}
		return ledger.NotePerson(ctx, tx, by, k.ID, "lost a role", h.Words())
	})
}

// role does something about somebody's roles, for who may, and returns them as they are then.
func (p People) role(ctx context.Context, by audit.Actor, name string, may func(context.Context, store.Tx, audit.Actor) error,
	do func(store.Tx, person.Known) error) (k person.Known, err error) {
	err = p.DB.InTx(ctx, func(tx store.Tx) error {
		if err := may(ctx, tx, by); err != nil {
			return err
		}
		if k, err = find(ctx, tx, name); err != nil {
			return err
		}
		if err := do(tx, k); err != nil {
			return err
		}
		k, err = find(ctx, tx, string(k.ID))
		return err
	})
	return k, err
}

func (p People) changed(err error) {
	if err == nil && p.Changed != nil {
		p.Changed()
	}
}

// checkGroup refuses a role of a group that the home does not have.
func (p People) checkGroup(ctx context.Context, h right.Held) error {
	if err := checkRole(h); err != nil || h.Group == "" {
		return err
	}
	all, err := p.Groups(ctx)
	if err == nil && !slices.Contains(all, group.Folder(h.Group)) {
		err = problem.Errorf(problem.NotFound, "sallyport group list", "there is no group %q in this home", h.Group)
	}
	return err
}

// checkRole refuses what is no role, and one of a group without it.
func checkRole(h right.Held) error {
	const next = "sallyport person role --help"
	switch h.Role {
	case right.Owner:
		return problem.Errorf(problem.Refused, "sallyport person list", "the home has its owner, who made it, and no other")
	case right.GlobalAdmin:
		if h.Group != "" {
			return problem.Errorf(problem.Usage, next, "global_admin is of every group; leave --group out")
		}
		return nil
	case right.GroupAdmin, right.Member:
		if h.Group == "" {
			return problem.Errorf(problem.Usage, next, "%s is of one group; name it by --group", h.Role)
		}
		return nil
	}
	return problem.Errorf(problem.Usage, next, "there is no role %q; there are %s, %s and %s", inert.Short(string(h.Role), 40),
		right.GlobalAdmin, right.GroupAdmin, right.Member)
}

// checkName refuses what cannot be told from an id, or does not stand in one line.
func checkName(name string) error {
	odd := func(r rune) bool { return !unicode.IsPrint(r) }
	switch {
	case name == "" || len(name) > nameBytesMax || !utf8.ValidString(name) || strings.ContainsFunc(name, odd) || strings.TrimSpace(name) != name:
		return problem.Errorf(problem.Usage, "sallyport person add --help",
			"%q is no name: one has 1 to %d bytes, in one line that a screen shows whole", inert.Short(name, nameBytesMax), nameBytesMax)
	case id.KindOf(name) != "":
		return problem.Errorf(problem.Usage, "sallyport person add --help", "%q is no name: it begins as an id does", inert.Short(name, nameBytesMax))
	}
	return nil
}

// readIdentity reads PLATFORM:ACCOUNT.
func readIdentity(text string) (person.Identity, error) {
	platform, account, ok := strings.Cut(text, ":")
	if !ok || platform == "" || account == "" {
		return person.Identity{}, problem.Errorf(problem.Usage, "sallyport person list",
			"%q is no account: it is said as PLATFORM:ACCOUNT, such as terminal:1001", inert.Short(text, 200))
	}
	if platform == person.Terminal {
		if _, err := strconv.Atoi(account); err != nil {
			return person.Identity{}, problem.Errorf(problem.Usage, "sallyport person list",
				"%q is no account at the terminal: that is a uid, such as terminal:1001", inert.Short(text, 200))
		}
	}
	return person.Identity{Platform: platform, Account: account}, nil
}

// find returns somebody by name or id.
func find(ctx context.Context, tx store.Tx, name string) (person.Known, error) {
	all, err := tx.People(ctx)
	if err != nil {
		return person.Known{}, err
	}
	for _, k := range all {
		if string(k.ID) == name || k.Name == name {
			return k, nil
		}
	}
	return person.Known{}, problem.Errorf(problem.NotFound, "sallyport person list", "this home knows nobody named %q", inert.Short(name, nameBytesMax))
}

// owns refuses everybody but the owner, as they are in this transaction.
func owns(ctx context.Context, tx store.Tx, by audit.Actor) error {
	o, _, err := tx.Owner(ctx)
	if err != nil {
		return err
	}
	return o.MayDecide(by)
}

// decides refuses everybody who does not decide about a group, as they are in this transaction.
func decides(ctx context.Context, tx store.Tx, by audit.Actor, group string) error {
	if by.Person != "" {
		if held, err := tx.Roles(ctx, by.Person); err != nil || right.Decides(held, group) {
			return err
		}
	}
	return owns(ctx, tx, by)
}
