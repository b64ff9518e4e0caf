package approval_test

import (
	"errors"
	"strings"
	"testing"

	"sallyport/internal/base/audit"
	"sallyport/internal/base/git"
	"sallyport/internal/base/id"
	"sallyport/internal/base/problem"
	"sallyport/internal/path/approval"
	"sallyport/internal/path/proposal"
	"sallyport/internal/path/request"
	"sallyport/internal/rule/right"
)

// The number alone does not make two cards one: a row that was put in the place of another has its number.
func TestAYesIsBoundToTheCardAndNotToItsNumber(t *testing.T) {
	p, same := offer("chg-1", 1, "t"), offer("chg-1", 1, "t2")
	tx, _ := asked(t, p)
	s := yes(p)
	s.Current = same
	if err := approval.Record(t.Context(), tx, s); !errors.Is(err, proposal.ErrSuperseded) || tx.pending() != 1 {
		t.Errorf("a yes to a card whose number another has: %v", err)
	}
	s.Current = offer("chg-2", 1, "t")
	if err := approval.Record(t.Context(), tx, s); err == nil || !strings.Contains(err.Error(), "is about chg-1, not about chg-2") {
		t.Errorf("a yes to another change: %v", err)
	}

	for name, next := range map[string]proposal.Proposal{"the same again, as a card of its own": offer("chg-1", 2, "t"), "another of the same number": same} {
		tx, _ := asked(t, p)
		fresh, err := approval.Open(t.Context(), tx, "apr-2", next, at)
		if err != nil || fresh.ID != "apr-2" || fresh.Digest != next.Digest || tx.rows()[0].Decision != approval.Void {
			t.Errorf("%s: %+v, %v; the old one is %s", name, fresh, err, tx.rows()[0].Decision)
		}
	}
}

// Only who decided repeats themselves; to everybody else the decision is somebody's own.
func TestOnlyTheSamePersonSaysTheSameAgain(t *testing.T) {
	p := offer("chg-1", 1, "t")
	for name, by := range map[string]audit.Actor{
		"who owned the home before":                 {Kind: "person", Name: "ada", UID: 1000, Person: "psn-before00"},
		"an agent with the owner's number and name": {Kind: "agent", Name: "ada", UID: ada.UID, Person: ada.Person},
	} {
		tx, a := asked(t, p)
		tx.force("approve", by)
		if err := approval.Record(t.Context(), tx, yes(p)); !errors.Is(err, approval.ErrDecided) || errors.Is(err, approval.ErrSaid) {
			t.Errorf("%s said yes, and then the owner: %v", name, err)
		}
		tx.force("refuse", by)
		if err := approval.Refuse(t.Context(), tx, approval.Saying{ID: a.ID, Need: owner.Need(), By: ada, Via: approval.ViaCommandLine, At: at}, ""); !errors.Is(err, approval.ErrDecided) || errors.Is(err, approval.ErrSaid) {
			t.Errorf("%s said no, and then the owner: %v", name, err)
		}
	}
}

func TestWhatAYesSaysOfTheCommitIsKeptAndBounded(t *testing.T) {
	p := offer("chg-1", 1, "t")
	for name, message := range map[string]string{"too long": strings.Repeat("x", request.MessageBytesMax+1), "not UTF-8": "a\xff"} {
		tx, _ := asked(t, p)
		s := yes(p)
		s.Message = message
		if err := approval.Record(t.Context(), tx, s); problem.KindOf(err) != problem.Usage || tx.pending() != 1 {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, message := range []string{"", "say this", strings.Repeat("x", request.MessageBytesMax)} {
		tx, _ := asked(t, p)
		s := yes(p)
		s.Message, s.Unsigned = message, message != ""
		if err := approval.Record(t.Context(), tx, s); err != nil || tx.rows()[0].Message != message || tx.rows()[0].Unsigned != (message != "") {
			t.Errorf("recorded %+v, %v", tx.rows()[0], err)
		}
	}
}

// A decision that the rules do not know is none.
func TestAnUnknownDecisionIsNoYes(t *testing.T) {
	p := offer("chg-1", 1, git.OID("t"))
	tx, _ := asked(t, p)
	tx.force("maybe", ada)
	if err := approval.Record(t.Context(), tx, yes(p)); !errors.Is(err, approval.ErrDecided) {
		t.Errorf("a yes: %v", err)
	}
	if err := approval.Refuse(t.Context(), tx, approval.Saying{ID: "apr-1", Need: owner.Need(), By: ada, Via: approval.ViaCommandLine, At: at}, ""); !errors.Is(err, approval.ErrDecided) {
		t.Errorf("a no: %v", err)
	}
}

// TestWhoAskedForItSaysNoAndNotYesWhereThePolicyWantsAnother holds SM-912.
func TestWhoAskedForItSaysNoAndNotYesWhereThePolicyWantsAnother(t *testing.T) {
	p := offer("chg-1", 1, "t")
	tx, a := asked(t, p)
	s := yes(p)
	s.Need = right.Need{May: []id.Person{"psn-bob00000"}, No: []id.Person{"psn-bob00000", ada.Person}}
	if err := approval.Record(t.Context(), tx, s); !errors.Is(err, approval.ErrOwn) || !strings.Contains(err.Error(), "approvals.self: refuse") || tx.pending() != 1 {
		t.Errorf("a yes to their own: %v", err)
	}
	if err := approval.Refuse(t.Context(), tx, approval.Saying{ID: a.ID, Need: s.Need, By: ada, Via: approval.ViaCommandLine, At: at}, ""); err != nil || tx.rows()[0].Decision != approval.Refused {
		t.Errorf("a no to their own: %v, %+v", err, tx.rows()[0])
	}
}

// TestAYesWaitsForTheOthersThatAreNeededAtThatMoment holds SM-912: whose role was taken away meanwhile counts no more, and one of those who
// must is among them.
func TestAYesWaitsForTheOthersThatAreNeededAtThatMoment(t *testing.T) {
	bob, cyd := ada, ada
	bob.Person, bob.Name, cyd.Person, cyd.Name = "psn-bob00000", "bob", "psn-cyd00000", "cyd"
	p := offer("chg-1", 1, "t")
	tx, _ := asked(t, p)
	need := right.Only(ada.Person, bob.Person, cyd.Person)
	need.Yeses, need.Must = 2, []id.Person{ada.Person}
	says := func(by audit.Actor, want approval.Decision) {
		t.Helper()
		s := yes(p)
		s.By, s.Need = by, need
		if err := approval.Record(t.Context(), tx, s); err != nil && !errors.Is(err, approval.ErrSaid) || tx.rows()[0].Decision != want {
			t.Errorf("%s: %s, %v", by.Name, tx.rows()[0].Decision, err)
		}
	}
	says(bob, approval.Pending)
	says(bob, approval.Pending)
	says(cyd, approval.Pending) // the owner is not among them
	need.May = []id.Person{ada.Person, cyd.Person}
	need.Yeses = 3
	says(ada, approval.Pending) // bob counts no more
	need.Yeses = 2              // and by now fewer are wanted: who says it again ends it
	says(ada, approval.Approved)
	says(cyd, approval.Approved)
}
