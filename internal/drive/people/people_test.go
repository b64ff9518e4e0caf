package people_test

import (
	"context"
	"errors"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"sallyport/internal/base/audit"
	"sallyport/internal/base/problem"
	"sallyport/internal/drive/ledger"
	"sallyport/internal/drive/people"
	"sallyport/internal/rule/right"
	"sallyport/internal/rule/secret"
	"sallyport/internal/store"
	"sallyport/internal/store/sqlite/sqlitetest"
	"sallyport/internal/who/group"
	"sallyport/internal/who/person"
)

var alice = audit.Actor{Kind: "person", Name: "alice", UID: 1000, Person: "psn-alice000", Identity: "terminal:1000"}

// home is a room on a database that alice owns.
func home(t *testing.T) (people.People, *int) {
	t.Helper()
	db := sqlitetest.Open(t, filepath.Join(t.TempDir(), "sallyport.db"))
	t.Cleanup(func() { db.Close() })
	if err := db.InTx(t.Context(), func(tx store.Tx) error {
		return tx.SetOwner(t.Context(), person.Owner{ID: alice.Person, Name: "alice", UID: 1000})
	}); err != nil {
		t.Fatal(err)
	}
	changed := 0
	return people.People{
		Ledger:  ledger.New(ledger.Parts{DB: db, Secrets: secret.Default(), Log: slog.New(slog.DiscardHandler)}),
		Groups:  func(context.Context) ([]group.Folder, error) { return []group.Folder{"ada"}, nil },
		Changed: func() { changed++ },
	}, &changed
}

func TestNobodyIsAddedWithAUidThatNoUserCanHave(t *testing.T) {
	p, _ := home(t)
	for _, uid := range []int{-2, 1<<32 - 1, 99_999_999_999} {
		if _, err := p.Add(t.Context(), alice, "ann", uid); problem.KindOf(err) != problem.Usage {
			t.Errorf("%d: %v", uid, err)
		}
	}
	if k, err := p.Add(t.Context(), alice, "ann", 1<<32-2); err != nil || k.Accounts[0].Identity != person.AtTerminal(1<<32-2) {
		t.Errorf("the largest: %+v, %v", k, err)
	}
}

// TestTheOwnerKeepsWhomTheHomeKnows holds adding, linking, roles and removing, each with an entry of the audit.
func TestTheOwnerKeepsWhomTheHomeKnows(t *testing.T) {
	p, changed := home(t)
	ctx := t.Context()
	ann, err := p.Add(ctx, alice, "ann", 1001)
	if err != nil || ann.Accounts[0].Identity != person.AtTerminal(1001) || len(ann.Held) != 0 {
		t.Fatalf("%+v, %v", ann, err)
	}
	member := right.Held{Role: right.Member, Group: "ada"}
	if k, err := p.Grant(ctx, alice, "ann", member); err != nil || !slices.Contains(k.Held, member) {
		t.Errorf("%+v, %v", k, err)
	}
	if k, err := p.Revoke(ctx, alice, string(ann.ID), member); err != nil || len(k.Held) != 0 {
		t.Errorf("%+v, %v", k, err)
	}
	if k, err := p.Unlink(ctx, alice, "terminal:1001"); err != nil || len(k.Accounts) != 0 {
		t.Errorf("%+v, %v", k, err)
	}
	if _, err := p.Remove(ctx, alice, "ann"); err != nil {
		t.Error(err)
	}
	if all, err := p.List(ctx); err != nil || len(all) != 1 || *changed != 3 {
		t.Errorf("%+v, %d, %v", all, *changed, err)
	}

	var verbs []string
	if err := p.DB.Read(ctx, func(tx store.Tx) error {
		entries, err := tx.Entries(ctx, "", 0, 100)
		for _, e := range entries {
			if e.Subject == string(ann.ID) && e.Actor == alice {
				verbs = append(verbs, e.Verb)
			}
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	if want := []string{"added", "linked", "was given a role", "lost a role", "unlinked", "removed"}; !slices.Equal(verbs, want) {
		t.Errorf("the audit has %q", verbs)
	}
}

// TestWhoDecidesAboutAGroupTakesTheRoleOfItsMembersAlone holds CH-112: so an admin silences somebody, and nobody else does.
func TestWhoDecidesAboutAGroupTakesTheRoleOfItsMembersAlone(t *testing.T) {
	p, _ := home(t)
	ctx := t.Context()
	p.Groups = func(context.Context) ([]group.Folder, error) { return []group.Folder{"ada", "bob"}, nil }
	of := func(role right.Role, g string) right.Held { return right.Held{Role: role, Group: g} }
	as := map[string]audit.Actor{"alice": alice, "nobody": {Kind: "person", Name: "nobody", UID: -1}}
	for name, held := range map[string][]right.Held{
		"gil": {of(right.GlobalAdmin, "")}, "cyd": {of(right.GroupAdmin, "ada")}, "may": {of(right.Member, "ada")},
		"dan": {of(right.Member, "ada"), of(right.Member, "bob"), of(right.GroupAdmin, "bob")},
	} {
		k, err := p.Add(ctx, alice, name, people.NoUID)
		for _, h := range held {
			if err == nil {
				_, err = p.Grant(ctx, alice, name, h)
			}
		}
		if err != nil {
			t.Fatal(err)
		}
		as[name] = audit.Actor{Kind: "person", Name: name, UID: -1, Person: k.ID}
	}
	for _, c := range []struct {
		by   string
		take right.Held
		want problem.Kind
	}{
		{"nobody", of(right.Member, "ada"), problem.Denied}, {"may", of(right.Member, "ada"), problem.Denied}, {"cyd", of(right.Member, "bob"), problem.Denied},
		{"cyd", of(right.GroupAdmin, "bob"), problem.Denied}, {"gil", of(right.GroupAdmin, "bob"), problem.Denied},
		{"cyd", of(right.Member, "ada"), ""}, {"cyd", of(right.Member, "ada"), problem.NotFound}, {"gil", of(right.Member, "bob"), ""}, {"alice", of(right.GroupAdmin, "bob"), ""},
	} {
		if _, err := p.Revoke(ctx, as[c.by], "dan", c.take); problem.KindOf(err) != c.want {
			t.Errorf("%s takes %s: %v", c.by, c.take.Words(), err)
		}
	}
	for _, by := range []string{"cyd", "gil"} {
		if _, err := p.Grant(ctx, as[by], "dan", of(right.Member, "ada")); problem.KindOf(err) != problem.Denied {
			t.Errorf("%s gives a role: %v", by, err)
		}
	}
}

// TestACodeLinksOnceInItsTimeAndIsKeptAsAHashOnly holds that what is stored is no code.
func TestACodeLinksOnceInItsTimeAndIsKeptAsAHashOnly(t *testing.T) {
	p, _ := home(t)
	ctx := t.Context()
	ann, err := p.Add(ctx, alice, "ann", people.NoUID)
	if err != nil {
		t.Fatal(err)
	}
	take := func(text string, at time.Time) bool {
		var took bool
		if err := p.DB.InTx(ctx, func(tx store.Tx) error {
			who, ok, err := tx.TakeCode(ctx, text, at)
			took = ok && who == ann.ID
			return err
		}); err != nil {
			t.Fatal(err)
		}
		return took
	}
	_, code, until, _, err := p.Link(ctx, alice, "ann")
	if err != nil {
		t.Fatal(err)
	}
	if left := time.Until(until); left > person.CodeFor || left < person.CodeFor-time.Minute {
		t.Errorf("it is good for %s", left)
	}
	if take(string(code), until.Add(-time.Second)) || !take(code.Hash(), until.Add(-time.Second)) || take(code.Hash(), until.Add(-time.Second)) {
		t.Error("the code itself is stored, or it does not link, or twice")
	}
	if _, code, until, _, err = p.Link(ctx, alice, "ann"); err != nil || take(code.Hash(), until) {
		t.Errorf("it links after its time: %v", err)
	}
}

// TestNobodyButTheOwnerKeepsPeople holds that no other, root included, gains a role by these verbs.
func TestNobodyButTheOwnerKeepsPeople(t *testing.T) {
	p, _ := home(t)
	ctx := t.Context()
	ann, err := p.Add(ctx, alice, "ann", 1001)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.Grant(ctx, alice, "ann", right.Held{Role: right.GlobalAdmin}); err != nil {
		t.Fatal(err)
	}
	for name, by := range map[string]audit.Actor{
		"an admin": {Kind: "person", Name: "ann", UID: 1001, Person: ann.ID, Identity: "terminal:1001"}, "root": {Kind: "person", Name: "root", Identity: "terminal:0"},
		"an agent": {Kind: "agent", Name: "alice", Person: alice.Person}, "nobody": {},
	} {
		_, add := p.Add(ctx, by, "x", people.NoUID)
		_, _, _, _, link := p.Link(ctx, by, "alice")
		_, unlink := p.Unlink(ctx, by, "terminal:1001")
		_, grant := p.Grant(ctx, by, "ann", right.Held{Role: right.Member, Group: "ada"})
		_, revoke := p.Revoke(ctx, by, "ann", right.Held{Role: right.GlobalAdmin})
		_, remove := p.Remove(ctx, by, "ann")
		for _, err := range []error{add, link, unlink, grant, revoke, remove} {
			if !errors.Is(err, person.ErrNotOwner) {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
}

// TestWhatIsNoNameRoleOrAccountIsRefused holds that a home keeps its owner, and that no name passes for an id.
func TestWhatIsNoNameRoleOrAccountIsRefused(t *testing.T) {
	p, _ := home(t)
	ctx := t.Context()
	for _, name := range []string{"", " ann", "a\nb", "psn-12345678", "chg-12345678", "a\u202eb", strings.Repeat("x", 81), "\xff"} {
		if _, err := p.Add(ctx, alice, name, people.NoUID); problem.KindOf(err) != problem.Usage {
			t.Errorf("%q: %v", name, err)
		}
	}
	if _, err := p.Add(ctx, alice, "ann", 1000); problem.KindOf(err) != problem.Conflict {
		t.Errorf("the owner's account is another's: %v", err)
	}
	for held, want := range map[right.Held]problem.Kind{
		{Role: "king"}: problem.Usage, {Role: right.Member}: problem.Usage, {Role: right.GlobalAdmin, Group: "ada"}: problem.Usage,
		{Role: right.Owner}: problem.Refused, {Role: right.Member, Group: "bob"}: problem.NotFound,
	} {
		if _, err := p.Grant(ctx, alice, "alice", held); problem.KindOf(err) != want {
			t.Errorf("%+v: %v", held, err)
		}
	}
	for identity, want := range map[string]problem.Kind{"terminal:1000": problem.Refused, "terminal:x": problem.Usage, "x": problem.Usage, "irc:x": problem.NotFound} {
		if _, err := p.Unlink(ctx, alice, identity); problem.KindOf(err) != want {
			t.Errorf("%q: %v", identity, err)
		}
	}
	if _, err := p.Remove(ctx, alice, "alice"); problem.KindOf(err) != problem.Refused {
		t.Error(err)
	}
	if _, err := p.Show(ctx, "bob"); problem.KindOf(err) != problem.NotFound {
		t.Error(err)
	}
}
