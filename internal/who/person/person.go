// Package person says who somebody is, how each platform knows them, and what they may decide.
package person

import (
	"context"
	"fmt"
	"strconv"

	"sallyport/internal/base/audit"
	"sallyport/internal/base/id"
	"sallyport/internal/base/problem"
	"sallyport/internal/rule/right"
)

// Person is somebody whom the home knows.
type Person struct {
	ID   id.Person
	Name string // shown, never compared
}

// Terminal is the platform of who types at this machine: the kernel authenticates a uid.
const Terminal = "terminal"

// Identity is how one platform knows a person: by the account that it authenticates, never by a name that it shows.
type Identity struct {
	Platform string
	Account  string
}

// AtTerminal is the identity of who has opened a socket, by the kernel's word.
func AtTerminal(uid int) Identity { return Identity{Terminal, strconv.Itoa(uid)} }

func (i Identity) String() string { return i.Platform + ":" + i.Account }

// Owner is the person who made the home; the strongest role.
type Owner struct {
	ID   id.Person `json:"id"`
	Name string    `json:"name"`
	UID  int       `json:"uid"` // their account at the terminal
}

// ErrNotOwner refuses somebody who is not entitled.
var ErrNotOwner = problem.New(problem.Denied, "only the owner of this home may decide")

// MayDecide returns nil if who is the owner, read at the moment of use. Only the person counts that the identity was found to be:
// neither a name nor a uid gives a right. In a home without an owner nobody may.
func (o Owner) MayDecide(who audit.Actor) error {
	if o.ID == "" || who.Kind != "person" || who.Person != o.ID {
		return fmt.Errorf("%q is not %q: %w", who.Name, o.Name, ErrNotOwner)
	}
	return nil
}

// Need is that the owner alone decides; in a home without one nobody does.
func (o Owner) Need() right.Need {
	if o.ID == "" {
		return right.Need{}
	}
	return right.Only(o.ID)
}

// Tx is what persons ask of a transaction.
type Tx interface {
	PeopleTx
	// Owner returns the home's owner; false before SetOwner.
	Owner(ctx context.Context) (Owner, bool, error)
	// SetOwner is called once, by the process that makes the home.
	SetOwner(ctx context.Context, o Owner) error
	// Whose returns the person who has an identity; false if nobody has it.
	Whose(ctx context.Context, i Identity) (Person, bool, error)
}

// Recognize returns who with the person whose identity i is: what a platform has authenticated, never what came with a
// message. A stranger keeps the identity and has no person. The name that somebody has on a platform is their own choice: whom the home knows
// is called there as the home calls them.
func Recognize(ctx context.Context, tx Tx, who audit.Actor, i Identity) (audit.Actor, error) {
	p, known, err := tx.Whose(ctx, i)
	who.Person, who.Identity = p.ID, i.String()
	if known && i.Platform != Terminal {
		who.Name = p.Name
	}
	return who, err
}
