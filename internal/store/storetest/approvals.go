package storetest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"sallyport/internal/base/disk"
	"sallyport/internal/base/id"
	"sallyport/internal/base/problem"
	"sallyport/internal/path/approval"
	"sallyport/internal/path/proposal"
	"sallyport/internal/store"
	"sallyport/internal/who/person"
	"sallyport/internal/who/question"
)

// ours is the owner of the suite's homes.
var ours = person.Owner{ID: alice.Person, UID: alice.UID, Name: alice.Name}

// owned gives the home its owner.
func (s *suite) owned() {
	s.t.Helper()
	s.do(func(ctx context.Context, tx store.Tx) error { return tx.SetOwner(ctx, ours) })
}

// addApproval stores an open question about the change's proposal.
func (s *suite) addApproval(p proposal.Proposal) (a approval.Approval) {
	s.t.Helper()
	s.made++
	s.do(func(ctx context.Context, tx store.Tx) (err error) {
		a, err = approval.Open(ctx, tx, id.Approval(fmt.Sprintf("apr-%08d", s.made)), p, at(10))
		return err
	})
	return a
}

// yes says yes to a, as its card was read.
func yes(a approval.Approval, p proposal.Proposal) approval.Saying {
	return approval.Saying{ID: a.ID, Read: a.Digest, Current: p, Need: ours.Need(), By: alice, Via: approval.ViaCommandLine, At: at(20),
		Message: "say <this>", Unsigned: true}
}

func testApprovals(t *testing.T, s *suite) {
	s.owned()
	c := s.addChange()
	s.fails(problem.NotFound, func(ctx context.Context, tx store.Tx) error {
		_, err := tx.LatestApproval(ctx, c.ID)
		return err
	})
	p := s.addProposal(c.ID, 1)
	a := s.addApproval(p)
	pending := func() (a approval.Approval, ok bool) {
		s.do(func(ctx context.Context, tx store.Tx) (err error) {
			a, ok, err = tx.PendingApproval(ctx, c.ID)
			return err
		})
		return a, ok
	}
	if got, ok := pending(); ok {
		s.same(got, a)
	} else {
		t.Error("no open approval")
	}
	again := a
	again.ID = "apr-another0"
	s.fails(problem.Conflict, func(ctx context.Context, tx store.Tx) error { return tx.AddApproval(ctx, again) }) // its question is another's
	again.Question, again.Proposal = "qst-nowhere0", 7
	s.fails(problem.NotFound, func(ctx context.Context, tx store.Tx) error { return tx.AddApproval(ctx, again) })
	s.fails(problem.NotFound, func(ctx context.Context, tx store.Tx) error {
		_, err := tx.Approval(ctx, "apr-nowhere0")
		return err
	})

	s.do(func(ctx context.Context, tx store.Tx) error { return approval.Record(ctx, tx, yes(a, p)) })
	s.fails(approval.ErrSaid, func(ctx context.Context, tx store.Tx) error { return approval.Record(ctx, tx, yes(a, p)) })
	s.fails(approval.ErrDecided, func(ctx context.Context, tx store.Tx) error {
		return approval.Refuse(ctx, tx, approval.Saying{ID: a.ID, Need: ours.Need(), By: alice, Via: approval.ViaCommandLine, At: at(21)}, "no")
	})
	s.fails(approval.ErrDecided, func(ctx context.Context, tx store.Tx) error { return tx.NoteYes(ctx, a.ID, "another", false) })
	if _, ok := pending(); ok {
		t.Error("still open after the decision")
	}
	when := at(20)
	a.Decision, a.By, a.At, a.Via, a.Message, a.Unsigned = approval.Approved, &alice, &when, approval.ViaCommandLine, "say <this>", true
	latest := s.addApproval(s.addProposal(c.ID, 2))
	if err := s.db.Close(); err != nil {
		t.Fatal(err)
	}
	s.reopen(disk.Ops{})
	s.do(func(ctx context.Context, tx store.Tx) error {
		got, err := tx.Approval(ctx, a.ID)
		s.same(got, a)
		newest, err2 := tx.LatestApproval(ctx, c.ID)
		s.same(newest, latest)
		open, err3 := tx.Approvals(ctx, true, 0)
		s.same(open, []approval.Approval{latest})
		all, err4 := tx.Approvals(ctx, false, 0)
		s.same(all, []approval.Approval{latest, a})
		one, err5 := tx.Approvals(ctx, false, 1)
		s.same(one, []approval.Approval{latest})
		return errors.Join(err, err2, err3, err4, err5)
	})
	s.do(func(ctx context.Context, tx store.Tx) error {
		err := approval.Withdraw(ctx, tx, c.ID, at(30))
		got, err2 := tx.Approval(ctx, latest.ID)
		if got.Decision != approval.Void || got.By == nil || got.By.Kind != "host" || !got.At.Equal(at(30)) || got.Reason != "the change ended" {
			t.Errorf("withdrawn: %+v", got)
		}
		return errors.Join(err, err2)
	})
	refused := s.addApproval(s.addProposal(c.ID, 3))
	s.do(func(ctx context.Context, tx store.Tx) error {
		err := approval.Refuse(ctx, tx, approval.Saying{ID: refused.ID, Need: ours.Need(), By: alice, Via: approval.ViaCommandLine,
			At: at(31)}, "not like \x1b this")
		got, err2 := tx.Approval(ctx, refused.ID)
		if got.Decision != approval.Refused || got.Reason != "not like \x1b this" || *got.By != alice {
			t.Errorf("refused: %+v", got)
		}
		return errors.Join(err, err2)
	})
}

func testDecideRace(t *testing.T, s *suite) {
	s.owned()
	p := s.addProposal(s.addChange().ID, 1)
	a := s.addApproval(p)
	var won, lost atomic.Int32
	var wg sync.WaitGroup
	for n := range 16 {
		wg.Go(func() {
			err := s.db.InTx(t.Context(), func(tx store.Tx) error {
				if n%2 == 0 {
					return approval.Refuse(t.Context(), tx,
						approval.Saying{ID: a.ID, Need: ours.Need(), By: alice, Via: approval.ViaCommandLine, At: at(n)}, "")
				}
				return approval.Record(t.Context(), tx, yes(a, p))
			})
			switch {
			case err == nil:
				won.Add(1)
			case errors.Is(err, approval.ErrDecided), errors.Is(err, approval.ErrSaid):
				lost.Add(1)
			default:
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if won.Load() != 1 || lost.Load() != 15 {
		t.Errorf("%d decided and %d were told that it was decided; want 1 and 15", won.Load(), lost.Load())
	}
}

func testQuestions(t *testing.T, s *suite) {
	s.owned()
	c, other := s.addChange(), s.addChange()
	ask := func(of id.Change, n int, labels ...string) question.Question {
		t.Helper()
		q := question.New(id.Subject(of), "which <one> \x1b[31m?", labels, at(n))
		q.Card.Lines = []string{"a", ""}
		s.do(func(ctx context.Context, tx store.Tx) error { return question.Put(ctx, tx, q) })
		return q
	}
	first, second, elsewhere := ask(c.ID, 1, "red", "green"), ask(c.ID, 2), ask(other.ID, 3, "a", "b")
	open := func(of id.Change, want ...question.Question) {
		t.Helper()
		s.do(func(ctx context.Context, tx store.Tx) error {
			all, err := tx.OpenQuestions(ctx, id.Subject(of))
			s.same(all, want)
			return err
		})
	}
	open(c.ID, first, second)
	open(other.ID, elsewhere)
	over := func(limit int, kinds []question.Kind, want ...id.Question) {
		t.Helper()
		s.do(func(ctx context.Context, tx store.Tx) error {
			all, err := tx.EndedQuestions(ctx, limit, kinds...)
			var got []id.Question
			for _, q := range all {
				got = append(got, q.ID)
			}
			s.same(got, want)
			return err
		})
	}
	over(9, []question.Kind{question.Ask})

	say := func(ref id.Question, option, text string) question.Saying {
		return question.Saying{ID: ref, Need: ours.Need(), By: alice, Option: option, Text: text, Edit: "e", Via: "terminal", At: at(20)}
	}
	when := at(20)
	s.do(func(ctx context.Context, tx store.Tx) error {
		got, err := question.Say(ctx, tx, say(first.ID, "2", ""))
		first.Outcome, first.Ended = "2", &when
		first.Answer = &question.Answer{Question: first.ID, By: alice, Option: "2", Edit: "e", Via: "terminal", At: when}
		s.same(got, first)
		_, err2 := question.Say(ctx, tx, say(second.ID, "", "neither <of>\x00 them"))
		return errors.Join(err, err2)
	})
	s.fails(question.ErrEnded, func(ctx context.Context, tx store.Tx) error {
		_, err := question.Say(ctx, tx, say(first.ID, "1", ""))
		return err
	})
	s.fails(question.ErrEnded, func(ctx context.Context, tx store.Tx) error { return tx.AddAnswer(ctx, *first.Answer) })
	s.fails(question.ErrEnded, func(ctx context.Context, tx store.Tx) error {
		return tx.EndQuestion(ctx, first.ID, question.Void, "", when)
	})
	s.fails(problem.Internal, func(ctx context.Context, tx store.Tx) error {
		return tx.EndQuestion(ctx, elsewhere.ID, question.Waiting, "", when)
	})
	s.fails(problem.NotFound, func(ctx context.Context, tx store.Tx) error {
		return tx.EndQuestion(ctx, "qst-nowhere0", question.Void, "", when)
	})
	open(c.ID)
	over(9, []question.Kind{question.Sender, question.Ask}, second.ID, first.ID)
	over(1, []question.Kind{question.Ask}, second.ID)
	over(9, []question.Kind{question.Sender, question.Channel})
	if err := s.db.Close(); err != nil {
		t.Fatal(err)
	}
	s.reopen(disk.Ops{})
	s.do(func(ctx context.Context, tx store.Tx) error {
		got, err := tx.Question(ctx, first.ID)
		s.same(got, first)
		words, err2 := tx.Question(ctx, second.ID)
		if words.Outcome != question.Said || words.Answer == nil || words.Answer.Text != "neither <of>\x00 them" || words.Answer.By != alice {
			t.Errorf("answered in words: %+v", words)
		}
		all, err3 := tx.Answers(ctx, first.ID)
		s.same(all, []question.Answer{*first.Answer})
		return errors.Join(err, err2, err3)
	})

	s.fails(problem.NotFound, func(ctx context.Context, tx store.Tx) error { _, err := tx.Question(ctx, "qst-nowhere0"); return err })
	s.fails(problem.NotFound, func(ctx context.Context, tx store.Tx) error {
		return tx.AddQuestion(ctx, question.New("chg-nowhere0", "?", nil, at(1)))
	})
	s.fails(problem.Conflict, func(ctx context.Context, tx store.Tx) error { return tx.AddQuestion(ctx, elsewhere) })
	s.fails(problem.Internal, func(ctx context.Context, tx store.Tx) error { return tx.AddQuestion(ctx, first) })
	s.fails(problem.NotFound, func(ctx context.Context, tx store.Tx) error {
		unknown := question.Answer{Question: elsewhere.ID, By: alice, Text: "x", At: when}
		unknown.By.Person = "psn-nobody00"
		return tx.AddAnswer(ctx, unknown)
	})
	s.fails(problem.Refused, func(ctx context.Context, tx store.Tx) error {
		return tx.AddAnswer(ctx, question.Answer{Question: elsewhere.ID, By: alice, Text: "\xff", At: when})
	})
	half := question.Answer{Question: elsewhere.ID, By: alice, Option: "1", At: when}
	s.do(func(ctx context.Context, tx store.Tx) error { return tx.AddAnswer(ctx, half) })
	s.fails(question.ErrAnswered, func(ctx context.Context, tx store.Tx) error { return tx.AddAnswer(ctx, half) })
	open(other.ID, elsewhere)
	s.do(func(ctx context.Context, tx store.Tx) error {
		err := question.WithdrawAll(ctx, tx, id.Subject(other.ID), question.Ask, "nobody asks any more", at(40))
		void, err2 := tx.Question(ctx, elsewhere.ID)
		if void.Outcome != question.Void || void.Answer != nil || void.Reason != "nobody asks any more" || !void.Ended.Equal(at(40)) {
			t.Errorf("withdrawn: %+v", void)
		}
		return errors.Join(err, err2)
	})
}
