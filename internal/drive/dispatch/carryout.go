package dispatch

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"sallyport/internal/base/id"
	"sallyport/internal/base/problem"
	"sallyport/internal/chat/decide"
	"sallyport/internal/chat/message"
	"sallyport/internal/drive/approve"
	"sallyport/internal/drive/ledger"
	"sallyport/internal/path/approval"
	"sallyport/internal/path/proposal"
	"sallyport/internal/rule/mount"
	"sallyport/internal/rule/right"
	"sallyport/internal/store"
	"sallyport/internal/who/group"
	"sallyport/internal/who/person"
	"sallyport/internal/who/question"
)

// carryOut does what words have decided, and tells in the conversation what came of it. Doing it again does nothing twice: a change that
// was decided so already says so to nobody. A group takes a while to make: the end of ctx ends that, and leaves the row to the next daemon.
// words are what was said, which is not always what is kept of it.
func (d decider) carryOut(ctx context.Context, in message.In, words string) (message.In, error) {
	life, ctx := ctx, context.WithoutCancel(ctx)
	if in.Decides.Does != decide.Name {
		life = ctx
	}
	said, tell := done(*in.Decides)
	var kind problem.Kind
	decided := true
	if err := d.do(life, in, words); err != nil && life.Err() != nil {
		return in, err
	} else if err != nil {
		kind, tell, decided = problem.KindOf(err), true, errors.As(err, &unpromoted{})
		said = undone(err, in.Decides.Change)
	}

	closed := in
	err := d.DB.InTx(ctx, func(tx store.Tx) error {
		now, err := tx.In(ctx, in.ID)
		if err != nil || !now.Open() {
			closed = now
			return err
		}
		decision := *now.Decides
		closed = d.closed(now, said, ledger.Now())
		decision.Problem = kind
		closed.Decides = &decision
		if err := tx.MoveIn(ctx, message.Processing, now.Fence, closed); err != nil || !tell {
			return err
		}
		if decided {
			return d.tell(ctx, tx, decision, in.Chat, closed.Reason)
		}
		return d.notice(ctx, tx, in.Chat, closed.Reason)
	})
	if err != nil {
		return in, err
	}
	return closed, nil
}

// tell tells what words have decided: of a change wherever it is asked about, of all else where they were said. A yes that waits for
// another's tells of itself.
func (d decider) tell(ctx context.Context, tx store.Tx, what message.Decision, where id.Chat, text string) error {
	if what.Does != decide.Approve && what.Does != decide.RollBack && what.Asks != message.CardPromote && what.Asks != message.CardMount {
		return d.notice(ctx, tx, where, text)
	}
	if what.Does == decide.Approve {
		if asked, err := tx.Approval(ctx, what.Approval); err != nil || asked.Decision == approval.Pending {
			return err
		}
	}
	row, err := tx.Change(ctx, what.Change)
	if err != nil {
		return err
	}
	return d.Origin.Tell(ctx, tx, row, text)
}

// do is the decision itself.
func (d decider) do(ctx context.Context, in message.In, words string) error {
	what := *in.Decides
	if d.Changes == nil {
		return problem.Errorf(problem.Unavailable, "sallyport change show "+string(what.Change),
			"this daemon cannot decide about %s in a conversation", what.Change)
	}
	switch what.Does {
	case decide.Approve, decide.Refuse, decide.Rework:
		if what.Approval == "" {
			return problem.Errorf(problem.Conflict, "sallyport change show "+string(what.Change), "%s is asked about on another card by now", what.Change)
		}
		switch what.Does {
		case decide.Refuse:
			return d.Changes.RefuseVia(ctx, what.Approval, what.By, approval.ViaChat, what.Option)
		case decide.Rework:
			return d.Changes.Rework(ctx, what.Approval, what.By, approval.ViaChat, what.Option)
		}
		// A card that has marks and can be approved here has named every one of them.
		return d.Changes.Approve(ctx, what.Approval, proposal.Digest(what.Digest), what.By,
			approve.Words{Via: approval.ViaChat, Marked: true, Typed: typedIn(in.Text), Away: !atTerminal(in.Identity)})
	case decide.Confirm:
		code, _ := decide.Code(words)
		return d.Changes.Confirm(ctx, what.Change, what.By, code)
	case decide.RollBack:
		return d.Changes.RollBack(ctx, what.Change, what.By, "")
	case decide.Choose, decide.Name:
		return d.choose(ctx, what)
	case decide.Leave:
		return nil
	}
	return problem.Errorf(problem.Internal, "sallyport change show "+string(what.Change), "%q is no decision", what.Does)
}

// atTerminal reports whether who said something is at this machine.
func atTerminal(identity string) bool { return strings.HasPrefix(identity, person.Terminal+":") }

// typedIn returns the words of a message that a yes to a change of the host is typed with; "" if it has none.
func typedIn(text string) string {
	if strings.Contains(strings.ToUpper(text), right.ConfirmHost) {
		return right.ConfirmHost
	}
	return ""
}

// choose records an answer to a question of the host's.
func (d decider) choose(ctx context.Context, what message.Decision) error {
	if err := d.unlessQuiet(what); err != nil {
		return err
	}
	if asksForName(what) {
		return nil
	}
	if what.Asks == message.CardAdmission {
		return d.admit(ctx, what)
	}
	err := d.DB.InTx(ctx, func(tx store.Tx) error {
		_, err := d.decide(ctx, tx, what.Question, what.Option, Said{By: what.By})
		return err
	})
	if err != nil && problem.Of(err).Next == "" {
		err = problem.Errorf(problem.KindOf(err), "sallyport change show "+string(what.Change), "%w", err)
	}
	if errors.Is(err, question.ErrSaid) {
		err = nil
	}
	switch {
	case err != nil:
		return err
	case what.Asks == message.CardMount:
		d.proposeAgain(ctx, what.Change)
	case what.Asks == message.CardPromote && what.Option == ledger.ApplyToTemplate:
		if err := d.Changes.Promote(ctx, what.Change, what.By); err != nil {
			return unpromoted{err}
		}
	}
	return nil
}

// unpromoted is why the template is not changed after somebody has said that it is to be: what they said stands.
type unpromoted struct{ error }

func (u unpromoted) Unwrap() error { return u.error }

// undone says why what somebody's words decided was not done, and what to do next.
func undone(err error, of id.Change) string {
	p := problem.Of(err)
	next := ""
	if p.Next != "" {
		next = "; next: " + p.Next
	}
	if errors.As(err, &unpromoted{}) {
		return "The template was not changed: " + p.Text + next + "\nTo have it changed after that: sallyport group promote " + string(of)
	}
	return "Nothing is decided: " + p.Text + next
}

// proposeAgain tells the agent that makes a change that a person has said how a folder is shown. One that is being started anew hears it by
// proposing.
func (d decider) proposeAgain(ctx context.Context, of id.Change) {
	row, err := d.Row(ctx, of)
	if err == nil {
		err = d.Swaps.TellDev(ctx, row, "A person has said how the folder is shown: call request_swap again.")
	}
	if err != nil {
		d.Log.Info("a dev agent was not told that a folder may be shown; it hears so when it proposes again", "change", of, "error", err)
	}
}

// done is what was done, and whether it is to be told: what ends a change, or its trial, tells of itself.
func done(what message.Decision) (text string, tell bool) {
	switch what.Does {
	case decide.Approve:
		return what.By.Name + " approved " + string(what.Change) + ". sallyport lands it now.", true
	case decide.Refuse:
		return what.By.Name + " refused " + string(what.Change) + ".", false
	case decide.Rework:
		return what.By.Name + " wants " + string(what.Change) + " changed before it lands.", false
	case decide.Confirm:
		return what.By.Name + " confirmed " + string(what.Change) + ".", false
	case decide.RollBack:
		return what.By.Name + " has " + string(what.Change) + " rolled back. sallyport does it now.", true
	}
	switch {
	case asksForName(what):
		return "What is the new group to be called? Say its name: what you say here next, within ten minutes, is the name. `" +
			decide.NoName + "` makes none.", true
	case what.Does == decide.Leave:
		return "No group is made. The card waits for another answer.", true
	case what.Does == decide.Name:
		return fmt.Sprintf("The group %s is a copy of the template, and hears that conversation from now on.", group.ChooseFolder(what.Option, nil)), true
	case what.Asks == message.CardMount && what.Option == mount.Mode(true):
		return "The folder is to be read-write: once " + string(what.Change) +
			" has landed, the agent can change and delete what is there, if the home allows it.", true
	case what.Asks == message.CardMount:
		return "The folder is to be read-only.", true
	case what.Asks != message.CardPromote:
		return "The answer of " + what.By.Name + " is kept.", true
	case what.Option == ledger.ApplyToTemplate:
		return "sallyport applies what landed with " + string(what.Change) + " to the template. Groups that are there keep what they have.", true
	}
	return "What landed with " + string(what.Change) + " stays local.", true
}

// finishWords does what words had decided when an earlier daemon ended. What this one heard meanwhile is carried out by who heard it, who
// knows the words as they were said: a code is not kept.
func (d decider) finishWords(ctx context.Context) error {
	var open []message.In
	err := d.DB.Read(ctx, func(tx store.Tx) error {
		all, err := tx.Ins(ctx, message.Filter{Status: []message.Status{message.Processing}, Limit: waitingMax})
		for _, m := range all {
			if m.Open() {
				open = append(open, m)
			}
		}
		return err
	})
	if err != nil {
		return err
	}
	d.mu.Lock()
	fresh := d.fresh
	d.fresh = nil
	d.mu.Unlock()
	for _, m := range open {
		if fresh[m.ID] {
			continue
		}
		if _, err := d.carryOut(ctx, m, m.Text); err != nil {
			return err
		}
	}
	return nil
}
