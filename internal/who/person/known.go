package person

import (
	"context"
	"slices"
	"time"

	"sallyport/internal/base/id"
	"sallyport/internal/rule/right"
)

// Known is a person with their accounts and what they are in the home.
type Known struct {
	Person
	Accounts []Account
	Held     []right.Held
}

// Account is an identity of a person's.
type Account struct {
	Identity
	Label  string          // shown, never compared
	Direct id.Conversation // in which they are alone with the assistant; "" = none was seen
}

// Person is somebody as rights see them. They are reached where they were alone with the assistant, and at the terminal.
func (k Known) Entitled() right.Person {
	return right.Person{ID: k.ID, Held: k.Held, Reachable: slices.ContainsFunc(k.Accounts, Account.Reached)}
}

// Reached reports whether a card comes to somebody by this account.
func (a Account) Reached() bool { return a.Platform == Terminal || a.Direct != "" }

// Code is a code by which somebody shows that an account is theirs.
type Code struct {
	Hash    string
	Person  id.Person
	Expires time.Time
}

// PeopleTx is what more than one person asks of a transaction.
type PeopleTx interface {
	// People returns all, by name.
	People(ctx context.Context) ([]Known, error)
	// Roles returns what somebody is in the home now.
	Roles(ctx context.Context, who id.Person) ([]right.Held, error)
	// AddPerson stores one. Errors: problem.Conflict if another has the name.
	AddPerson(ctx context.Context, p Person) error
	// DropPerson takes somebody's accounts, roles and codes; what they decided stays theirs. false if there is none.
	DropPerson(ctx context.Context, who id.Person) (bool, error)
	// Link gives an identity to a person. Errors: problem.Conflict if another has it.
	Link(ctx context.Context, i Identity, who id.Person, label string) error
	// Unlink takes an identity; false if nobody has it.
	Unlink(ctx context.Context, i Identity) (bool, error)
	// NoteDirect remembers where somebody is alone with the assistant.
	NoteDirect(ctx context.Context, i Identity, where id.Conversation) error
	// Grant gives a role; having it already changes nothing.
	Grant(ctx context.Context, who id.Person, h right.Held) error
	// Revoke takes a role; false if they have it not. The owner keeps theirs.
	Revoke(ctx context.Context, who id.Person, h right.Held) (bool, error)
	// PutCode stores a code.
	PutCode(ctx context.Context, c Code) error
	// Codes are the hashes of those that are good.
	Codes(ctx context.Context, now time.Time) ([]string, error)
	// TakeCode uses a code up, and returns whose it is; false if there is none that is good.
	TakeCode(ctx context.Context, hash string, now time.Time) (id.Person, bool, error)
}
