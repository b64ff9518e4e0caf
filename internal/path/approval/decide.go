package approval

import (
	"context"
	"fmt"
	"time"
	"unicode/utf8"

	"sallyport/internal/base/audit"
	"sallyport/internal/base/id"
	"sallyport/internal/base/problem"
	"sallyport/internal/path/proposal"
	"sallyport/internal/path/request"
	"sallyport/internal/who/person"
)

// How a decision reached us.
const (
	ViaCommandLine = "command line"
	ViaFlag        = "pre-approved by flag"
)

// ReasonBytesMax bounds what a person may give as a reason.
const ReasonBytesMax = 4096

// Saying is a yes: by whom, to what exactly.
type Saying struct {
	ID      id.Approval
	Read    proposal.Digest   // of the card they read
	Current proposal.Proposal // of the change, read in the same transaction
	Owner   person.Owner      // read at the moment of use
	By      audit.Actor
	Via     string
	At      time.Time

	Message  string // what the commit is to say; "" = what the card shows
	Unsigned bool   // it may land unsigned where the repository would have it signed
}

// Record notes a yes to exactly the digest that was read, once.
//
// Errors, with nothing changed: person.ErrNotOwner; proposal.ErrSuperseded if the card was
// another one, or is no longer the current one; ErrSaid if the same person said the same to
// the same digest before, which a door may report as success; ErrDecided otherwise.
func Record(ctx context.Context, tx Tx, s Saying) error {
	if err := s.Owner.MayDecide(s.By); err != nil {
		return fmt.Errorf("approve %s: %w", s.ID, err)
	}
	if len(s.Message) > request.MessageBytesMax || !utf8.ValidString(s.Message) {
		return problem.Errorf(problem.Usage, "sallyport approve --help", "approve %s: the message has more than %d bytes, or is not UTF-8", s.ID, request.MessageBytesMax)
	}
	a, err := tx.Approval(ctx, s.ID)
	if err != nil {
		return fmt.Errorf("approve %s: %w", s.ID, err)
	}
	if a.Decision == Approved && a.Digest == s.Read && a.said(s.By) {
		return fmt.Errorf("%s was approved by %s at %s: %w", a.ID, a.By.Name, a.when(), ErrSaid)
	}
	if err := a.undecided(); err != nil {
		return fmt.Errorf("approve %s: %w", s.ID, err)
	}
	if err := proposal.Verify(s.Current); err != nil {
		return fmt.Errorf("approve %s: %w", s.ID, err)
	}
	switch current := s.Current; {
	case current.Change != a.Change:
		return fmt.Errorf("approve %s: that approval is about %s, not about %s", s.ID, a.Change, current.Change)
	case a.Digest != s.Read:
		return superseded(a, s.Read)
	case current.Digest != a.Digest || current.Number != a.Proposal:
		return superseded(a, a.Digest)
	}
	a.Message, a.Unsigned = s.Message, s.Unsigned
	return a.decide(ctx, tx, Approved, s.By, s.Via, "", s.At)
}

// Refuse notes a no, once. A no needs no digest: whatever the card said, it does not land.
// Errors are those of Record.
func Refuse(ctx context.Context, tx Tx, ref id.Approval, owner person.Owner, by audit.Actor, reason string, at time.Time) error {
	if err := owner.MayDecide(by); err != nil {
		return fmt.Errorf("refuse %s: %w", ref, err)
	}
	if len(reason) > ReasonBytesMax {
		return problem.Errorf(problem.Usage, "sallyport refuse --help", "refuse %s: the reason has %d bytes; %d is the limit", ref, len(reason), ReasonBytesMax)
	}
	a, err := tx.Approval(ctx, ref)
	if err != nil {
		return fmt.Errorf("refuse %s: %w", ref, err)
	}
	if a.Decision == Refused && a.said(by) {
		return fmt.Errorf("%s was refused by %s at %s: %w", a.ID, a.By.Name, a.when(), ErrSaid)
	}
	if err := a.undecided(); err != nil {
		return fmt.Errorf("refuse %s: %w", ref, err)
	}
	return a.decide(ctx, tx, Refused, by, ViaCommandLine, reason, at)
}

// decide writes the decision, compare and set.
func (a Approval) decide(ctx context.Context, tx Tx, d Decision, by audit.Actor, via, reason string, at time.Time) error {
	a.Decision, a.By, a.At, a.Via, a.Reason = d, &by, &at, via, reason
	if err := tx.Decide(ctx, a); err != nil {
		return fmt.Errorf("record that %s is %s: %w", a.ID, d, err)
	}
	return nil
}

// undecided returns why a can no longer be decided; nil if it waits.
func (a Approval) undecided() error {
	switch a.Decision {
	case Pending:
		return nil
	case Void:
		return superseded(a, a.Digest)
	case Approved, Refused:
		who := "somebody"
		if a.By != nil {
			who = a.By.Name
		}
		return problem.Case(ErrDecided, "sallyport approval show "+string(a.ID), "%s %s %s already, at %s", who, a.Decision, a.ID, a.when())
	}
	return fmt.Errorf("%s has the unknown decision %q: %w", a.ID, a.Decision, ErrDecided)
}

// said reports whether it was by who decided a.
func (a Approval) said(by audit.Actor) bool {
	return a.By != nil && a.By.Kind == by.Kind && a.By.UID == by.UID
}

func (a Approval) when() string {
	if a.At == nil {
		return "an unknown time"
	}
	return a.At.UTC().Format(time.RFC3339)
}

// superseded refuses an answer to a card that is not, or no longer, what would land.
func superseded(a Approval, read proposal.Digest) error {
	next := "sallyport approval show " + string(a.Change)
	if a.Decision == Void {
		return problem.Case(proposal.ErrSuperseded, next, "%s is void: %s", a.ID, a.Reason)
	}
	return problem.Case(proposal.ErrSuperseded, next, "%s asks about another card than the one that you read (%.8s)", a.ID, string(read))
}
