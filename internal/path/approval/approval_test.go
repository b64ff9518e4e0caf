package approval_test

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"sallyport/internal/base/audit"
	"sallyport/internal/base/git"
	"sallyport/internal/base/id"
	"sallyport/internal/base/problem"
	"sallyport/internal/base/rapidtest"
	"sallyport/internal/path/approval"
	"sallyport/internal/path/proposal"
	"sallyport/internal/rule/right"
	"sallyport/internal/who/person"
	"sallyport/internal/who/question"
	"sallyport/internal/who/question/questiontest"
)

var (
	at       = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	owner    = person.Owner{ID: "psn-0000ada0", UID: 1000, Name: "ada"}
	ada      = audit.Actor{Kind: "person", Name: "ada", UID: 1000, Person: "psn-0000ada0", Identity: "terminal:1000"}
	stranger = audit.Actor{Kind: "person", Name: "bob", UID: 1000, Person: "psn-0000bob0"}
	agent    = audit.Actor{Kind: "agent", Name: "sh-abcde", UID: 1000, Person: "psn-0000ada0"}
)

// table is a transaction over a table in memory.
type table struct {
	questiontest.Table
	bound []approval.Approval
}

// rows are the approvals as they stand.
func (t *table) rows() (all []approval.Approval) {
	for i, a := range t.bound {
		all = append(all, a.Of(t.Asked[i]))
	}
	return all
}

// force has the first one decided, by whom and how else it could never be.
func (t *table) force(o question.Outcome, by audit.Actor) {
	t.Asked[0].Outcome, t.Asked[0].Ended = o, &at
	t.Asked[0].Answer = &question.Answer{Question: t.Asked[0].ID, By: by, Option: string(o), At: at}
}

func (t *table) AddApproval(_ context.Context, a approval.Approval) error {
	t.bound = append(t.bound, a)
	return nil
}

func (t *table) Approval(_ context.Context, ref id.Approval) (approval.Approval, error) {
	for _, a := range t.rows() {
		if a.ID == ref {
			return a, nil
		}
	}
	return approval.Approval{}, problem.Errorf(problem.NotFound, "sallyport approval list", "there is no approval %s", ref)
}

func (t *table) PendingApproval(_ context.Context, change id.Change) (approval.Approval, bool, error) {
	for _, a := range t.rows() {
		if a.Change == change && a.Decision == approval.Pending {
			return a, true, nil
		}
	}
	return approval.Approval{}, false, nil
}

func (t *table) LatestApproval(_ context.Context, change id.Change) (approval.Approval, error) {
	for _, a := range slices.Backward(t.rows()) {
		if a.Change == change {
			return a, nil
		}
	}
	return approval.Approval{}, problem.New(problem.NotFound, "none")
}

func (t *table) NoteYes(_ context.Context, ref id.Approval, message string, unsigned bool) error {
	for i := range t.bound {
		if t.bound[i].ID == ref {
			t.bound[i].Message, t.bound[i].Unsigned = message, unsigned
		}
	}
	return nil
}

func (t *table) pending() (n int) {
	for _, a := range t.rows() {
		if a.Decision == approval.Pending {
			n++
		}
	}
	return n
}

func offer(change id.Change, number int, tree git.OID) proposal.Proposal {
	return proposal.Proposal{Change: change, Number: number, Base: "b", Tree: tree, Policy: "p", Digest: proposal.Sum(change, "b", tree, "p")}
}

// asked is a table with one open approval of p.
func asked(t *testing.T, p proposal.Proposal) (*table, approval.Approval) {
	t.Helper()
	tx := &table{}
	a, err := approval.Open(t.Context(), tx, "apr-1", p, at)
	if err != nil {
		t.Fatal(err)
	}
	return tx, a
}

func yes(p proposal.Proposal) approval.Saying {
	return approval.Saying{ID: "apr-1", Read: p.Digest, Current: p, Need: owner.Need(), By: ada, Via: approval.ViaCommandLine, At: at}
}

func TestTheOwnerSaysYesToWhatTheyRead(t *testing.T) {
	p := offer("chg-1", 1, "t")
	tx, _ := asked(t, p)
	if err := approval.Record(t.Context(), tx, yes(p)); err != nil {
		t.Fatal(err)
	}
	a := tx.rows()[0]
	if a.Decision != approval.Approved || *a.By != ada || a.Via != approval.ViaCommandLine || !a.At.Equal(at) || a.Digest != p.Digest || a.Kind != question.Swap {
		t.Errorf("recorded %+v", a)
	}
}

func TestAYesLeavesWhatOneBeforeItSaidOfTheCommit(t *testing.T) {
	bob := audit.Actor{Kind: "person", Name: "bob", UID: 1001, Person: "psn-0000bob0"}
	type of struct {
		message  string
		unsigned bool
	}
	for name, test := range map[string]struct{ first, second, want of }{
		"nothing is said":              {},
		"the first says it":            {first: of{"as ada words it", true}, want: of{"as ada words it", true}},
		"the second says it":           {second: of{"as bob words it", true}, want: of{"as bob words it", true}},
		"each says one thing":          {first: of{unsigned: true}, second: of{message: "as bob words it"}, want: of{"as bob words it", true}},
		"the last words are those":     {first: of{message: "as ada words it"}, second: of{message: "as bob words it"}, want: of{message: "as bob words it"}},
		"one word stays, one is added": {first: of{message: "as ada words it"}, second: of{unsigned: true}, want: of{"as ada words it", true}},
	} {
		t.Run(name, func(t *testing.T) {
			p := offer("chg-1", 1, "t")
			tx, _ := asked(t, p)
			for i, by := range []audit.Actor{ada, bob} {
				s, said := yes(p), []of{test.first, test.second}[i]
				s.By, s.Message, s.Unsigned = by, said.message, said.unsigned
				s.Need = right.Only(ada.Person, bob.Person)
				s.Need.Yeses = 2
				if err := approval.Record(t.Context(), tx, s); err != nil {
					t.Fatal(err)
				}
				if decided := tx.pending() == 0; decided != (i == 1) {
					t.Fatalf("after yes %d: %+v", i+1, tx.rows())
				}
			}
			if a := tx.rows()[0]; a.Decision != approval.Approved || a.Message != test.want.message || a.Unsigned != test.want.unsigned {
				t.Errorf("recorded %+v", a)
			}
		})
	}
}

func TestAYesThatIsNotEntitledChangesNothing(t *testing.T) {
	p, other := offer("chg-1", 1, "t"), offer("chg-1", 2, "t2")
	for name, test := range map[string]struct {
		alter func(*approval.Saying)
		want  error
	}{
		"somebody else":               {func(s *approval.Saying) { s.By = stranger }, person.ErrNotOwner},
		"an agent with the same uid":  {func(s *approval.Saying) { s.By = agent }, person.ErrNotOwner},
		"the host itself":             {func(s *approval.Saying) { s.By = audit.Host }, person.ErrNotOwner},
		"another card":                {func(s *approval.Saying) { s.Read = other.Digest }, proposal.ErrSuperseded},
		"no card":                     {func(s *approval.Saying) { s.Read = "" }, proposal.ErrSuperseded},
		"the change has a newer card": {func(s *approval.Saying) { s.Current = other }, proposal.ErrSuperseded},
		"asked again about the same":  {func(s *approval.Saying) { s.Current = offer("chg-1", 2, "t") }, proposal.ErrSuperseded},
		"a card that was altered":     {func(s *approval.Saying) { s.Current.Tree = "evil" }, nil},
		"another change":              {func(s *approval.Saying) { s.Current = offer("chg-2", 1, "t") }, nil},
		"no such approval":            {func(s *approval.Saying) { s.ID = "apr-9" }, nil},
	} {
		t.Run(name, func(t *testing.T) {
			tx, _ := asked(t, p)
			s := yes(p)
			test.alter(&s)
			err := approval.Record(t.Context(), tx, s)
			if err == nil || test.want != nil && !errors.Is(err, test.want) {
				t.Errorf("Record = %v, want %v", err, test.want)
			}
			if tx.pending() != 1 {
				t.Errorf("it was decided: %+v", tx.rows())
			}
		})
	}
}

func TestADecisionIsMadeOnce(t *testing.T) {
	p := offer("chg-1", 1, "t")
	tx, a := asked(t, p)
	if err := approval.Record(t.Context(), tx, yes(p)); err != nil {
		t.Fatal(err)
	}
	before := tx.rows()[0]
	again := yes(p)
	again.At = at.Add(time.Hour)
	if err := approval.Record(t.Context(), tx, again); !errors.Is(err, approval.ErrSaid) || !strings.Contains(err.Error(), "apr-1 was approved by ada") {
		t.Errorf("the same again: %v", err)
	}
	err := approval.Refuse(t.Context(), tx, approval.Saying{ID: a.ID, Need: owner.Need(), By: ada, Via: approval.ViaCommandLine, At: at}, "changed my mind")
	if !errors.Is(err, approval.ErrDecided) || problem.Of(err).Next == "" || problem.KindOf(err) != problem.Conflict {
		t.Errorf("a no after a yes: %v", err)
	}
	again.Read = "another"
	if err := approval.Record(t.Context(), tx, again); !errors.Is(err, approval.ErrDecided) {
		t.Errorf("a yes to something else afterwards: %v", err)
	}
	if !reflect.DeepEqual(tx.rows()[0], before) {
		t.Errorf("the record changed: %+v", tx.rows()[0])
	}
}

func TestANoIsRecordedOnceWithItsReason(t *testing.T) {
	p := offer("chg-1", 1, "t")
	tx, a := asked(t, p)
	if err := approval.Refuse(t.Context(), tx, approval.Saying{ID: a.ID, Need: owner.Need(), By: stranger, Via: approval.ViaCommandLine, At: at}, ""); !errors.Is(err, person.ErrNotOwner) {
		t.Errorf("a stranger: %v", err)
	}
	if err := approval.Refuse(t.Context(), tx, approval.Saying{ID: a.ID, Need: owner.Need(), By: ada, Via: approval.ViaCommandLine, At: at}, strings.Repeat("x", approval.ReasonBytesMax+1)); problem.KindOf(err) != problem.Usage {
		t.Errorf("an endless reason: %v", err)
	}
	if err := approval.Refuse(t.Context(), tx, approval.Saying{ID: a.ID, Need: owner.Need(), By: ada, Via: approval.ViaCommandLine, At: at}, "not like this"); err != nil {
		t.Fatal(err)
	}
	if got := tx.rows()[0]; got.Decision != approval.Refused || got.Reason != "not like this" {
		t.Errorf("recorded %+v", got)
	}
	if err := approval.Refuse(t.Context(), tx, approval.Saying{ID: a.ID, Need: owner.Need(), By: ada, Via: approval.ViaCommandLine, At: at}, ""); !errors.Is(err, approval.ErrSaid) {
		t.Errorf("the same again: %v", err)
	}
	if err := approval.Record(t.Context(), tx, yes(p)); !errors.Is(err, approval.ErrDecided) {
		t.Errorf("a yes after a no: %v", err)
	}
}

func TestANewProposalVoidsWhatWasAskedBefore(t *testing.T) {
	p, next := offer("chg-1", 1, "t"), offer("chg-1", 2, "t2")
	tx, _ := asked(t, p)
	if again, err := approval.Open(t.Context(), tx, "apr-x", p, at); err != nil || again.ID != "apr-1" || len(tx.rows()) != 1 {
		t.Fatalf("asking the same twice: %+v, %v", again, err)
	}
	fresh, err := approval.Open(t.Context(), tx, "apr-2", next, at)
	if err != nil || fresh.Decision != approval.Pending || fresh.Digest != next.Digest || fresh.Proposal != 2 {
		t.Fatalf("asked %+v, %v", fresh, err)
	}
	if old := tx.rows()[0]; old.Decision != approval.Void || !strings.Contains(old.Reason, "apr-2") {
		t.Errorf("the old one is %+v", old)
	}
	s := yes(p)
	s.Current = next
	if err := approval.Record(t.Context(), tx, s); !errors.Is(err, proposal.ErrSuperseded) {
		t.Errorf("a yes to the old card: %v", err)
	}
	if err := approval.Refuse(t.Context(), tx, approval.Saying{ID: "apr-1", Need: owner.Need(), By: ada, Via: approval.ViaCommandLine, At: at}, ""); !errors.Is(err, proposal.ErrSuperseded) {
		t.Errorf("a no to the old card: %v", err)
	}
	altered := next
	altered.Tree = "evil"
	if _, err := approval.Open(t.Context(), tx, "apr-3", altered, at); err == nil {
		t.Error("an altered proposal was asked about")
	}
}

func TestWhatEndsOtherwiseWaitsForNobody(t *testing.T) {
	tx, _ := asked(t, offer("chg-1", 1, "t"))
	for range 2 { // a step may run twice
		if err := approval.Withdraw(t.Context(), tx, "chg-1", at); err != nil {
			t.Fatal(err)
		}
	}
	if got := tx.rows()[0]; got.Decision != approval.Void || *got.By != audit.Host {
		t.Errorf("recorded %+v", got)
	}
}

// Whatever is said in whatever order: at most one is open, what was decided stays, and
// an approval holds only the digest it was asked about.
func TestApprovalsHoldTheirRulesInAnyOrder(t *testing.T) {
	rapidtest.Check(t, func(t *rapid.T) {
		tx := &table{}
		ctx := context.Background()
		current, n := proposal.Proposal{}, 0
		decided := map[id.Approval]approval.Approval{}
		t.Repeat(map[string]func(*rapid.T){
			"open": func(t *rapid.T) {
				n++
				current = offer("chg-1", n, rapid.SampledFrom([]git.OID{"t", "u"}).Draw(t, "tree"))
				if _, err := approval.Open(ctx, tx, id.Approval(string(rune('a'+n%26))+strings.Repeat("x", n/26)), current, at); err != nil {
					t.Fatal(err)
				}
			},
			"say": func(t *rapid.T) {
				if len(tx.rows()) == 0 {
					t.Skip("nothing asked")
				}
				row := rapid.SampledFrom(tx.rows()).Draw(t, "row")
				by := rapid.SampledFrom([]audit.Actor{ada, stranger, agent}).Draw(t, "by")
				read := rapid.SampledFrom([]proposal.Digest{row.Digest, current.Digest, ""}).Draw(t, "read")
				if rapid.Bool().Draw(t, "yes") {
					_ = approval.Record(ctx, tx, approval.Saying{ID: row.ID, Read: read, Current: current, Need: owner.Need(), By: by, At: at})
				} else {
					_ = approval.Refuse(ctx, tx, approval.Saying{ID: row.ID, Need: owner.Need(), By: by, Via: approval.ViaCommandLine, At: at}, "")
				}
			},
			"withdraw": func(*rapid.T) { _ = approval.Withdraw(ctx, tx, "chg-1", at) },
			"": func(t *rapid.T) {
				if tx.pending() > 1 {
					t.Fatalf("%d are open", tx.pending())
				}
				for _, a := range tx.rows() {
					if was, ok := decided[a.ID]; ok && !reflect.DeepEqual(was, a) {
						t.Fatalf("%+v became %+v", was, a)
					}
					if a.Decision == approval.Pending {
						continue
					}
					decided[a.ID] = a
					if a.Decision != approval.Void && (a.By == nil || *a.By != ada) {
						t.Fatalf("decided by %+v", a.By)
					}
				}
			},
		})
	})
}
