package approval

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"sallyport/internal/base/audit"
	"sallyport/internal/base/id"
	"sallyport/internal/base/problem"
	"sallyport/internal/path/proposal"
	"sallyport/internal/path/request"
	"sallyport/internal/rule/right"
	"sallyport/internal/who/person"
	"sallyport/internal/who/question"
)

// How a decision reached us.
const (
	ViaCommandLine = "command line"
	ViaFlag        = "pre-approved by flag"
	ViaChat        = "in the conversation"
)

// ReasonBytesMax bounds what a person may give as a reason.
const ReasonBytesMax = 4096

// Saying is a yes: by whom, to what exactly.
type Saying struct {
	ID      id.Approval
	Read    proposal.Digest   // of the card they read
	Current proposal.Proposal // of the change, read in the same transaction
	Need    right.Need        // who may, and how many it takes, at the moment of use
	By      audit.Actor
	Via     string
	At      time.Time

	Message  string // what the commit is to say; "" = what a yes before this one said, else what the card shows
	Unsigned bool   // it may land unsigned where the repository would have it signed; false = as a yes before this one said
}

// Record notes a yes to exactly the digest that was read, once. Where several are needed it waits for the others.
//
// Errors, with nothing changed: person.ErrNotOwner; ErrOwn; proposal.ErrSuperseded if the card was
// another one, or is no longer the current one; ErrSaid if the same person said the same to
// the same digest before, which a door may report as success; ErrDecided otherwise.
func Record(ctx context.Context, tx Tx, s Saying) error {
	switch {
	case !isOf(s.Need.No, s.By):
		return fmt.Errorf("approve %s: %w", s.ID, notEntitled(s.ID, s.By))
	case !isOf(s.Need.May, s.By):
		return problem.Case(ErrOwn, "sallyport approval show "+string(s.ID),
			"policy.yaml has nobody approve what they asked for (approvals.self: refuse), and %q asked for this", s.By.Name)
	}
	if len(s.Message) > request.MessageBytesMax || !utf8.ValidString(s.Message) {
		return problem.Errorf(problem.Usage, "sallyport approve --help",
			"approve %s: the message has more than %d bytes, or is not UTF-8", s.ID, request.MessageBytesMax)
	}
	a, err := tx.Approval(ctx, s.ID)
	if err != nil {
		return fmt.Errorf("approve %s: %w", s.ID, err)
	}
	said, err := a.saidBy(ctx, tx, Approved, s.By)
	if err != nil {
		return err
	}
	if said && a.Digest == s.Read {
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
	// A yes that says nothing of the commit leaves what one before it said.
	if err := tx.NoteYes(ctx, a.ID, cmp.Or(s.Message, a.Message), s.Unsigned || a.Unsigned); err != nil {
		return fmt.Errorf("approve %s: %w", s.ID, err)
	}
	return a.decide(ctx, tx, Approved, question.Saying{Need: s.Need, By: s.By, Via: s.Via, At: s.At})
}

// Refuse notes a no, once. A no needs no digest: whatever the card said, it does not land.
// Errors are those of Record.
func Refuse(ctx context.Context, tx Tx, s Saying, reason string) error {
	return withhold(ctx, tx, Refused, s, reason)
}

// Rework notes that somebody who may refuse wants something else in it, in their words, once. Errors are those of Record; a usage error if
// nobody goes on with what they say.
func Rework(ctx context.Context, tx Tx, s Saying, words string) error {
	if strings.TrimSpace(words) == "" {
		return problem.Errorf(problem.Usage, "sallyport change rework --help", "rework %s: it is not said what is to be different", s.ID)
	}
	return withhold(ctx, tx, Reworked, s, words)
}

// doing is what somebody does who withholds their yes.
var doing = map[Decision]string{Refused: "refuse", Reworked: "rework"}

// withhold notes an answer that is no yes, with what was said.
func withhold(ctx context.Context, tx Tx, d Decision, s Saying, words string) error {
	does := fmt.Sprintf("%s %s", doing[d], s.ID)
	if !isOf(s.Need.No, s.By) {
		return fmt.Errorf("%s: %w", does, notEntitled(s.ID, s.By))
	}
	if len(words) > ReasonBytesMax || !utf8.ValidString(words) {
		return problem.Errorf(problem.Usage, "sallyport approval show "+string(s.ID),
			"%s: the words have %d bytes, or are not UTF-8; %d is the limit", does, len(words), ReasonBytesMax)
	}
	a, err := tx.Approval(ctx, s.ID)
	if err != nil {
		return fmt.Errorf("%s: %w", does, err)
	}
	said, err := a.saidBy(ctx, tx, d, s.By)
	if err != nil {
		return err
	}
	if said && (d == Refused || a.Reason == words) {
		return fmt.Errorf("%s was %s by %s at %s: %w", a.ID, d, a.By.Name, a.when(), ErrSaid)
	}
	if err := a.undecided(); err != nil {
		return fmt.Errorf("%s: %w", does, err)
	}
	return a.decide(ctx, tx, d, question.Saying{Need: right.Only(s.Need.No...), By: s.By, Via: s.Via, Text: words, At: s.At})
}

// decide answers the question.
func (a Approval) decide(ctx context.Context, tx Tx, d Decision, s question.Saying) error {
	s.ID, s.Option = a.Question, keys[d]
	_, err := question.Say(ctx, tx, s)
	switch {
	case errors.Is(err, question.ErrEnded):
		err = errors.Join(err, ErrDecided)
	case errors.Is(err, question.ErrSaid):
		err = errors.Join(err, ErrSaid)
	}
	if err != nil {
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
	case Approved, Refused, Reworked:
		who := "somebody"
		if a.By != nil {
			who = a.By.Name
		}
		return problem.Case(ErrDecided, "sallyport approval show "+string(a.ID), "%s %s %s already, at %s", who, a.Decision, a.ID, a.when())
	}
	return fmt.Errorf("%s has the unknown decision %q: %w", a.ID, a.Decision, ErrDecided)
}

// saidBy reports whether somebody is of those whose answers decided a so.
func (a Approval) saidBy(ctx context.Context, tx Tx, d Decision, by audit.Actor) (bool, error) {
	same := func(other audit.Actor) bool { return other.Kind == by.Kind && other.Person == by.Person }
	if a.Decision != d || a.By == nil || same(*a.By) {
		return a.Decision == d && a.By != nil, nil
	}
	all, err := tx.Answers(ctx, a.Question)
	return slices.ContainsFunc(all, func(one question.Answer) bool { return one.Option == keys[d] && same(one.By) }), err
}

// isOf reports whether somebody is one of these persons.
func isOf(all []id.Person, by audit.Actor) bool {
	return by.Kind == "person" && by.Person != "" && slices.Contains(all, by.Person)
}

func notEntitled(ref id.Approval, by audit.Actor) error {
	return problem.Case(person.ErrNotOwner, "sallyport approval show "+string(ref), "%q may not decide about it", by.Name)
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
