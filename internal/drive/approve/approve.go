// Package approve takes a person's answer to the question whether a change may land: their yes to exactly what they read, or their no.
package approve

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"sallyport/internal/base/audit"
	"sallyport/internal/base/code"
	"sallyport/internal/base/id"
	"sallyport/internal/base/inert"
	"sallyport/internal/base/problem"
	"sallyport/internal/drive/grounds"
	"sallyport/internal/drive/ledger"
	"sallyport/internal/path/approval"
	"sallyport/internal/path/change"
	"sallyport/internal/path/proposal"
	"sallyport/internal/path/request"
	"sallyport/internal/store"
	"sallyport/internal/who/person"
)

// Parts are what answers stand on.
type Parts struct {
	*ledger.Ledger
	Owner    person.Owner
	Home     string // whose policy says who approves
	Rules    grounds.Rulebook
	Tidy     func(ctx context.Context, row change.Row) // clears up after a change that has ended and that no step holds
	Codes    *Codes                                    // that changes of the host are confirmed with; nil: its own
	Terminal func() bool                               // codes are given at this machine alone; nil: no
	Judges   func() error                              // why no change of the host can go on trial now; nil: it is not asked
	// SendBack has the agent of a swap go on from what it proposed.
	SendBack func(ctx context.Context, tx store.Tx, row *change.Row, m ledger.Move) error
}

// Answers takes people's answers.
type Answers struct{ Parts }

// New returns Answers.
func New(p Parts) *Answers {
	if p.Codes == nil {
		p.Codes = &Codes{}
	}
	return &Answers{p}
}

// Words are what comes with a yes.
type Words struct {
	Via      string // how it reached us
	Message  string // what the commit is to say, its first line the subject; "" = what the card shows
	Unsigned bool   // it may land unsigned where the repository would have it signed
	Marked   bool   // it covers what is marked on the card
	Typed    string // what was typed out, where the card wants that
	Away     bool   // it was said on a platform, and not at this machine
}

// Approve records by's yes to exactly the digest they read, and makes the landing due if nobody else's is needed: all
// of it commits or none. Errors: person.ErrNotOwner (denied), approval.ErrOwn, proposal.ErrSuperseded,
// approval.ErrDecided (conflict), config.ErrUnloaded (refused), refused where no keeper could bring the old host back, not_found. Saying
// the same again changes nothing and is no error.
func (a *Answers) Approve(ctx context.Context, ref id.Approval, read proposal.Digest, by audit.Actor, w Words) error {
	if err := a.Secrets.RefuseIn(ctx, "sallyport approve --help", "--message", w.Message); err != nil {
		return err
	}
	err := a.decide(ctx, ref, func(tx store.Tx, row *change.Row) error {
		return a.Record(ctx, tx, row, ref, read, by, w)
	})
	if errors.Is(err, approval.ErrSaid) {
		return nil
	}
	return err
}

// Record is Approve within a transaction.
func (a *Answers) Record(ctx context.Context, tx store.Tx, row *change.Row, ref id.Approval, read proposal.Digest, by audit.Actor, w Words) error {
	p, ok, err := tx.Proposal(ctx, row.ID)
	if err != nil {
		return err
	}
	if !ok {
		return problem.Errorf(problem.NotFound, "sallyport change show "+string(row.ID), "%s has no proposal", row.ID)
	}
	if w.Unsigned && a.Owner.MayDecide(by) != nil {
		return fmt.Errorf("have %s land unsigned: %w", row.ID,
			problem.Case(person.ErrNotOwner, "sallyport approve "+string(row.ID), "only the owner of this home has it land unsigned"))
	}
	need, err := a.deliberate(ctx, tx, *row, ref, p.Card, by, w)
	if err != nil {
		return err
	}
	if p.Card.MarksWord && !w.Marked {
		return unsaid(row.ID, p)
	}
	if n := len(p.Card.Marks); p.Card.MarksWord && p.Card.MarksTotal > n && row.Request.Kind != request.Revert {
		return problem.Errorf(problem.Refused, "sallyport refuse "+string(row.ID),
			"%s has %d marks, and its card lists %d: nobody can have seen what a yes would cover. Refuse it, and ask for it in parts", row.ID, p.Card.MarksTotal, n)
	}
	if why := a.NoCodeThere(p.Card); w.Away && why != "" {
		return problem.Errorf(problem.Refused, "sallyport approve "+string(row.ID), "%s is not approved in a conversation on a platform: %s", row.ID, why)
	}
	if row.Request.Kind != request.Revert { // what goes back has been there before
		if err := a.Rules.Decidable(); err != nil {
			return fmt.Errorf("approve %s: %w", row.ID, err)
		}
		if p.Card.Coded() && a.Judges != nil { // nobody is given a code for what could not land
			if err := a.Judges(); err != nil {
				return fmt.Errorf("approve %s: %w", row.ID, err)
			}
		}
	}
	s := approval.Saying{ID: ref, Read: read, Current: p, Need: need, By: by, Via: w.Via, At: ledger.Now(), Message: w.Message, Unsigned: w.Unsigned}
	if err := approval.Record(ctx, tx, s); err != nil {
		return err
	}
	asked, err := tx.Approval(ctx, ref)
	if err != nil {
		return err
	}
	if asked.Decision == approval.Pending {
		return a.tellYes(ctx, tx, *row, asked, need, by, w)
	}
	if err := a.makeCode(tx, row.ID, p.Card, by); err != nil {
		return err
	}
	return a.Move(ctx, tx, row, ledger.Move{Event: change.Approved, By: by, Subject: string(ref), Reason: w.said(), Digests: p.Digests()})
}

// NoCodeThere says why a change is not approved on a platform: its code is not given there. "" = it is, or it has none.
func (a *Answers) NoCodeThere(c proposal.Card) string {
	if !c.Coded() || a.Terminal == nil || !a.Terminal() {
		return ""
	}
	return "the code that it is confirmed with is given at this machine alone (host: code: terminal)"
}

// makeCode makes the code that a change of the host is confirmed with, once its approval is complete. It is to be given to by (SM-923).
func (a *Answers) makeCode(tx store.Tx, of id.Change, c proposal.Card, by audit.Actor) error {
	if !c.Coded() {
		return nil
	}
	plain, hash, err := code.New()
	if err != nil {
		return fmt.Errorf("approve %s: %w", of, err)
	}
	tx.After(func() { a.Codes.keep(of, plain, hash, by) })
	return nil
}

// GiveCode has hand hand over to by the code of the change that their yes has let land, if it has one, and tells where it went; false if none
// was given. The code itself is told to nobody else.
func (a *Answers) GiveCode(ctx context.Context, ref id.Approval, by audit.Actor, hand func(of id.Change, plain string) (where string, err error)) bool {
	if !a.Codes.Any() {
		return false
	}
	var of id.Change
	err := a.DB.Read(ctx, func(tx store.Tx) error {
		asked, err := tx.Approval(ctx, ref)
		of = asked.Change
		return err
	})
	if err != nil {
		a.Log.Warn("the code of a change is not given", "approval", ref, "error", err)
		return false
	}
	where, given := a.Codes.Give(of, by, func(plain string) (string, error) { return hand(of, plain) })
	if !given {
		return false
	}
	err = a.DB.InTx(context.WithoutCancel(ctx), func(tx store.Tx) error {
		row, err := tx.Change(ctx, of)
		if err != nil {
			return err
		}
		said := row
		said.Reason = "to " + by.Name + ", " + where
		if err := a.Append(ctx, tx, &said, ledger.Move{By: audit.Host, Subject: string(of), Reason: said.Reason}, "gave the code", ledger.Now()); err != nil {
			return err
		}
		return a.Origin.Tell(ctx, tx, row, fmt.Sprintf("The code that keeps %s was given to %s %s.", of, inert.Short(by.Name, 60), where))
	})
	if err != nil {
		a.Log.Warn("where the code of a change went is not told", "change", of, "error", err)
	}
	return true
}

// said is what the audit keeps of the words.
func (w Words) said() string {
	said := w.Via
	switch said {
	case approval.ViaCommandLine:
		said = "approved on the command line"
	case approval.ViaChat:
		said = "approved in the conversation"
	}
	if w.Marked {
		said += ", marks included"
	}
	if w.Typed != "" {
		said += ", typed out"
	}
	if w.Unsigned {
		said += ", may land unsigned"
	}
	if w.Message != "" {
		said += ", to be committed as: " + w.Message
	}
	return said
}

// unsaid refuses a yes that does not cover what is marked.
func unsaid(change id.Change, p proposal.Proposal) error {
	m := p.Card.Marks[0]
	more := ""
	if p.Card.MarksTotal > 1 {
		more = fmt.Sprintf(" (and %d more)", p.Card.MarksTotal-1)
	}
	return problem.Case(approval.ErrMarked, "sallyport approve "+string(change)+" --marked",
		"the card of %s has marks, and a yes has to say that it covers them (--marked): %s: %s%s",
		change, inert.Path(m.Path), m.Says, more)
}

// Refuse records by's no; the change ends, and its work stays under its refs.
func (a *Answers) Refuse(ctx context.Context, ref id.Approval, by audit.Actor, reason string) error {
	return a.RefuseVia(ctx, ref, by, approval.ViaCommandLine, reason)
}

// RefuseVia is Refuse by another way than the command line.
func (a *Answers) RefuseVia(ctx context.Context, ref id.Approval, by audit.Actor, via, reason string) error {
	var ended change.Row
	err := a.decide(ctx, ref, func(tx store.Tx, row *change.Row) error {
		need, err := a.entitledTo(ctx, tx, *row)
		if err != nil && len(need.No) == 0 {
			return err
		}
		if err := approval.Refuse(ctx, tx, approval.Saying{ID: ref, Need: need, By: by, Via: via, At: ledger.Now()}, a.Secrets.Redact(reason)); err != nil {
			return err
		}
		err = a.Move(ctx, tx, row, ledger.Move{Event: change.Refused, By: by, Subject: string(ref), Reason: reason})
		ended = *row
		return err
	})
	switch {
	case errors.Is(err, approval.ErrSaid):
		return nil
	case err == nil:
		a.Tidy(a.Lasting(), ended)
	}
	return err
}

// Rework has the agent that proposed a change go on, with what a person who could refuse it wants different: nobody can answer the card any
// more, and the agent proposes again. Saying the same again changes nothing. Errors: conflict if no agent goes on with it.
func (a *Answers) Rework(ctx context.Context, ref id.Approval, by audit.Actor, via, words string) error {
	words = a.Secrets.Redact(strings.TrimSpace(words))
	err := a.decide(ctx, ref, func(tx store.Tx, row *change.Row) error {
		need, err := a.entitledTo(ctx, tx, *row)
		if err != nil && len(need.No) == 0 {
			return err
		}
		asked, err := tx.Approval(ctx, ref)
		if err != nil {
			return err
		}
		q, err := tx.Question(ctx, asked.Question)
		if err != nil {
			return err
		}
		if !approval.Reworks(q) {
			return problem.Errorf(problem.Conflict, "sallyport refuse "+string(row.ID)+` --reason "…"`,
				"rework is for a change of what a group runs, and %s is none: refuse it, and run it again with what is to be different", row.ID)
		}
		if a.Rules.Approvals().NoSelf && slices.Contains(need.May, by.Person) { // what they say they would have asked for
			return problem.Case(approval.ErrOwn, "sallyport refuse "+string(row.ID)+` --reason "…"`,
				"policy.yaml has nobody approve what they asked for (approvals.self: refuse), and %q may approve %s: what they want different is asked for anew, once it is refused", by.Name, row.ID)
		}
		if err := approval.Rework(ctx, tx, approval.Saying{ID: ref, Need: need, By: by, Via: via, At: ledger.Now()}, words); err != nil {
			return err
		}
		return a.SendBack(ctx, tx, row, ledger.Move{Event: change.Reworked, By: by, Subject: string(ref), Reason: words})
	})
	if errors.Is(err, approval.ErrSaid) {
		return nil
	}
	return err
}

// decide runs a decision on the change that an approval belongs to.
func (a *Answers) decide(ctx context.Context, ref id.Approval, do func(tx store.Tx, row *change.Row) error) error {
	var row change.Row
	err := a.DB.InTx(ctx, func(tx store.Tx) error {
		asked, err := tx.Approval(ctx, ref)
		if err != nil {
			return err
		}
		if row, err = tx.Change(ctx, asked.Change); err != nil {
			return err
		}
		return do(tx, &row)
	})
	if err == nil {
		a.Moved(row)
	}
	return err
}
