package ledger

import (
	"context"
	"slices"
	"strings"

	"sallyport/internal/base/audit"
	"sallyport/internal/base/id"
	"sallyport/internal/base/problem"
	"sallyport/internal/chat/prompt"
	"sallyport/internal/path/approval"
	"sallyport/internal/path/change"
	"sallyport/internal/path/request"
	"sallyport/internal/rule/right"
	"sallyport/internal/store"
	"sallyport/internal/who/person"
)

// PartyOf is who somebody is, as a door has recognized them; nobody if they are no person, or if all that their platform knows is a handle.
func PartyOf(who audit.Actor) right.Party {
	if who.Kind != "person" || unproven(who.Identity) {
		return right.Party{}
	}
	return right.Party{Person: who.Person, Identity: who.Identity}
}

// personsOf are the persons among parties; "" of who is none.
func personsOf(all []right.Party) (who []id.Person) {
	for _, p := range all {
		who = append(who, p.Person)
	}
	return who
}

// unproven reports whether an identity is a handle, which anybody may take.
func unproven(identity string) bool {
	_, account, _ := strings.Cut(identity, ":")
	return strings.HasPrefix(account, "~")
}

// Entitled are the people of the home as rights see them, at this moment.
func Entitled(ctx context.Context, tx store.Tx) (people []right.Person, err error) {
	all, err := tx.People(ctx)
	for _, k := range all {
		people = append(people, k.Entitled())
	}
	return people, err
}

// Requester is who asked for a change: of one that a group's agent asked for, the sender of the message that its agent named, and nobody else. A
// message that is not of that conversation, or that no person sent, has none.
func Requester(ctx context.Context, tx store.Tx, r request.Request) (right.Party, error) {
	if !r.OfAgent() {
		return PartyOf(r.By), nil
	}
	if r.Wish == "" {
		return right.Party{}, nil
	}
	m, err := tx.In(ctx, r.Wish)
	if problem.KindOf(err) == problem.NotFound {
		return right.Party{}, nil
	}
	if err != nil || m.Chat != r.Chat || m.Kind != prompt.Chat && m.Kind != prompt.Answer || m.OfAgent() {
		return right.Party{}, err
	}
	return partyOf(ctx, tx, m.Identity)
}

// Wishers are all who may have asked for a change, who asked for it first: what a group's agent says of that is its own word, so everybody
// whom it answered then is one of them.
func Wishers(ctx context.Context, tx store.Tx, r request.Request) ([]right.Party, error) {
	asked, err := Requester(ctx, tx, r)
	if err != nil {
		return nil, err
	}
	all := []right.Party{asked}
	for _, identity := range r.Heard {
		p, err := partyOf(ctx, tx, identity)
		if err != nil {
			return nil, err
		}
		if p != (right.Party{}) && !slices.Contains(all, p) {
			all = append(all, p)
		}
	}
	return all, nil
}

// partyOf is whose an account is at this moment; nobody's if it is a handle.
func partyOf(ctx context.Context, tx store.Tx, identity string) (right.Party, error) {
	platform, account, ok := strings.Cut(identity, ":")
	if !ok || account == "" || unproven(identity) {
		return right.Party{}, nil
	}
	whose, _, err := tx.Whose(ctx, person.Identity{Platform: platform, Account: account})
	return right.Party{Person: whose.ID, Identity: identity}, err
}

// Tried is a change on trial, and who stands behind it, at this moment.
func Tried(ctx context.Context, tx store.Tx, row change.Row) (t right.Tried, err error) {
	if t.People, err = Entitled(ctx, tx); err != nil {
		return t, err
	}
	asked, err := tx.LatestApproval(ctx, row.ID)
	switch {
	case problem.KindOf(err) == problem.NotFound: // nobody was asked
	case err != nil:
		return t, err
	case asked.Decision == approval.Approved:
		said, err := tx.Answers(ctx, asked.Question)
		if err != nil {
			return t, err
		}
		for _, a := range said {
			t.Approvers = append(t.Approvers, PartyOf(a.By))
		}
	}
	t.Requester, err = Requester(ctx, tx, row.Request)
	return t, err
}
