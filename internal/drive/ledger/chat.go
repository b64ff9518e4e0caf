package ledger

import (
	"context"
	"fmt"
	"strings"

	"sallyport/internal/base/git"
	"sallyport/internal/base/id"
	"sallyport/internal/base/inert"
	"sallyport/internal/base/problem"
	"sallyport/internal/chat/conversation"
	"sallyport/internal/chat/message"
	"sallyport/internal/chat/prompt"
	"sallyport/internal/path/approval"
	"sallyport/internal/path/change"
	"sallyport/internal/path/proposal"
	"sallyport/internal/path/request"
	"sallyport/internal/path/trial"
	"sallyport/internal/rule/secret"
	"sallyport/internal/store"
	"sallyport/internal/who/group"
	"sallyport/internal/who/person"
	"sallyport/internal/who/question"
)

// Origin tells of a change in the conversation in which it was asked for. Each message is written by the transaction that makes it true, so
// a crash neither loses nor doubles one; who watches is told after the commit.
type Origin struct {
	secrets *secret.Scanner

	// Asks says whom a card is brought to where they are alone with the assistant, too; nil = nobody.
	Asks func(ctx context.Context, tx store.Tx, row change.Row, p proposal.Proposal) ([]id.Person, error)
}

// chat is where a change was asked for; false if that was in no conversation, or in one that this home does not have.
func (n *Origin) chat(ctx context.Context, tx store.Tx, row change.Row) (chat conversation.Chat, there bool, err error) {
	if row.Request.Chat == "" {
		return chat, false, nil
	}
	chat, err = tx.Chat(ctx, row.Request.Chat)
	if problem.KindOf(err) == problem.NotFound {
		return chat, false, nil
	}
	return chat, err == nil, err
}

// tellIn writes messages about a change into a chat.
func (n *Origin) tellIn(ctx context.Context, tx store.Tx, row change.Row, chat conversation.Chat, all ...message.Out) error {
	for _, o := range all {
		o.ID, o.Chat, o.Turn, o.Change, o.At = id.NewOut(), chat.ID, chat.Turn, row.ID, Now()
		switch {
		case o.Card == "":
			o.Text = n.secrets.Redact(o.Text)
		case o.Card.Asks():
			o.Text = n.byLine(o.Text)
		}
		if _, err := tx.PutOut(ctx, o); err != nil {
			return fmt.Errorf("tell of %s in a conversation: %w", row.ID, err)
		}
	}
	return nil
}

// byLine returns a text that the host has put together without secrets. Others' words in it have been cleaned, each as a whole: what is looked
// at here is each line by itself, so that no word of theirs can take out what stands behind it.
func (n *Origin) byLine(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		b.WriteString(n.secrets.Redact(line))
	}
	return b.String()
}

// PutProposal stores p as its change's current one, and takes secrets out of its card.
func (n *Origin) PutProposal(ctx context.Context, tx store.Tx, p *proposal.Proposal) error {
	p.Card = p.Card.Redacted(n.secrets)
	return tx.AddProposal(ctx, *p)
}

// OpenApproval asks for a decision on exactly p, which becomes the change's current proposal; its card is shown where the change was
// asked for, and to each who is asked where they are alone with the assistant.
func (n *Origin) OpenApproval(ctx context.Context, tx store.Tx, row change.Row, p proposal.Proposal) (approval.Approval, error) {
	if err := n.PutProposal(ctx, tx, &p); err != nil {
		return approval.Approval{}, err
	}
	asked, err := approval.Open(ctx, tx, id.NewApproval(), p, p.At)
	if err != nil {
		return asked, err
	}
	if row.Request.Promotes != "" && row.Request.Approve == request.Yes && p.Number == 1 { // it is answered by now: somebody said that they want it
		return asked, nil
	}

	about, diff, ask := p.Tell(row.Request.Group)
	var all []message.Out
	for _, piece := range append([]string{n.byLine(about)}, diff...) { // the diff was cleaned where it was read
		all = append(all, message.Out{Lane: message.Notice, Card: message.CardDiff, Text: piece})
	}
	all = append(all, message.Out{Lane: message.Notice, Card: message.CardApproval, Question: asked.Question, Text: ask})
	return asked, n.ask(ctx, tx, row, p, all)
}

// ShowTrial shows message 1 where the change was asked for (SM-121), and to who approved it or asked for it where they are alone with the
// assistant (SM-140), in the transaction that says that it is out.
func (n *Origin) ShowTrial(ctx context.Context, tx store.Tx, row change.Row, t trial.Trial) error {
	tried, err := Tried(ctx, tx, row)
	if err != nil {
		return err
	}
	who := personsOf(append(tried.Approvers, tried.Requester))
	return n.show(ctx, tx, row, who, isAbout, message.Out{Lane: message.Talk, Card: message.CardTrial, Text: t.Question()})
}

// promotion is what is asked once a change of what a group runs is kept (SM-150).
const promotion = "The runner/skills changes are currently applied only to the %[1]s group. Would you like to also apply them to the template so " +
	"new groups created in the future inherit these changes? (Existing groups will not be affected.)"

// ApplyToTemplate is the key of the answer that has the template changed, too (SM-151).
const ApplyToTemplate = "1"

// askToPromote asks whether new groups are to begin with what has landed; nobody is asked if no runner and no skill changed (SM-154).
func (n *Origin) askToPromote(ctx context.Context, tx store.Tx, row change.Row, landed []git.Edit) error {
	of := row.Request.Group
	if len(group.Promotable(group.Folder(of), landed)) == 0 {
		return nil
	}
	q := question.New(row.ID.Subject(), fmt.Sprintf(promotion, of), []string{"Apply to template", "Keep local to " + of}, Now())
	q.Kind, q.Words = question.Promote, false
	if err := question.Put(ctx, tx, q); err != nil {
		return err
	}
	tried, err := Tried(ctx, tx, row)
	if err != nil {
		return err
	}
	return n.show(ctx, tx, row, personsOf(tried.Approvers), isAbout,
		message.Out{Lane: message.Notice, Card: message.CardPromote, Question: q.ID, Text: q.Text()})
}

// ended tells how a change has come to its end, or to where it needs a person.
func (n *Origin) ended(ctx context.Context, tx store.Tx, row change.Row, m Move) error {
	if row.Request.Kind == request.Swap && row.State.Final() {
		if err := withdrawMounts(ctx, tx, row, "its change is "+row.State.Words()); err != nil {
			return err
		}
	}
	if row.Request.Kind == request.Swap && row.Request.Chat != "" && (m.Event == change.Held || m.Event == change.Undone) { // its new card tells people
		return n.tellAgents(ctx, tx, row, fmt.Sprintf("%s was not landed, and waits for a person again: %s", row.ID, inert.Line(row.Reason)))
	}
	text := endOf(row, m)
	if text == "" || row.Request.Chat == "" {
		return nil
	}
	if err := n.Tell(ctx, tx, row, text); err != nil {
		return err
	}
	return n.tellAgents(ctx, tx, row, text)
}

// tellAgents puts an end before the agents of a swap: the group's reads it with its next turn, and the one that made the change is woken by
// a failure, by a refusal, and by a landing that was refused (SM-110).
func (n *Origin) tellAgents(ctx context.Context, tx store.Tx, row change.Row, text string) error {
	chat, err := tx.Chat(ctx, row.Request.Chat)
	if problem.KindOf(err) == problem.NotFound {
		return nil
	}
	if err == nil {
		err = n.tellAgent(ctx, tx, chat, text, false)
	}
	if err != nil || row.State != change.Failed && row.State != change.Rejected && row.State != change.AwaitingApproval {
		return err
	}
	began, err := tx.Sessions(ctx, row.ID.Subject())
	if err != nil || len(began) == 0 {
		return err
	}
	if chat, err = DevChat(ctx, tx, row); err == nil {
		err = n.tellAgent(ctx, tx, chat, text, true)
	}
	return err
}

func (n *Origin) tellAgent(ctx context.Context, tx store.Tx, chat conversation.Chat, text string, wakes bool) error {
	now := Now()
	_, err := tx.PutIn(ctx, message.In{
		ID: id.NewMessage(), Chat: chat.ID, Kind: prompt.System, Trigger: wakes, Text: n.secrets.Redact(text), At: now, Status: message.Pending, Due: now,
	})
	return err
}

// DevChat is the chat of the agent that made a change, in which it is spoken with once the change is over; it is made if it is not there.
func DevChat(ctx context.Context, tx store.Tx, swap change.Row) (conversation.Chat, error) {
	return putChat(ctx, tx, group.Folder(swap.Request.Group),
		conversation.Conversation{Platform: conversation.Dev, Address: string(swap.ID), Name: swap.Request.Dev})
}

// TerminalChat is the chat of a person at a terminal with a group, made if it is not there.
func TerminalChat(ctx context.Context, tx store.Tx, of group.Folder, account string) (conversation.Chat, error) {
	return putChat(ctx, tx, of, conversation.Conversation{Platform: conversation.Terminal, Address: account + "/" + string(of), Name: string(of)})
}

func putChat(ctx context.Context, tx store.Tx, of group.Folder, where conversation.Conversation) (conversation.Chat, error) {
	now := Now()
	where.ID, where.Kind, where.Created = id.NewConversation(), conversation.Direct, now
	where, err := tx.PutConversation(ctx, where)
	if err != nil {
		return conversation.Chat{}, err
	}
	return tx.PutChat(ctx, conversation.Chat{ID: id.NewChat(), Group: of, Conversation: where.ID, Created: now})
}

// endOf says where a change has come to; "" while it goes on by itself.
func endOf(row change.Row, m Move) string {
	name, by := string(row.ID), inert.Short(m.By.Name, 60)
	why := ""
	if row.Reason != "" {
		why = ": " + inert.Line(row.Reason)
	}
	next := ""
	if row.Next != "" {
		next = "; next: " + row.Next
	}
	switch row.State {
	case change.Working:
		if m.Event == change.Reworked {
			return fmt.Sprintf("%s wants %s changed before it lands%s; %s goes on with it, and proposes it again", by, name, why,
				inert.Short(row.Request.Dev, 60))
		}
	case change.Finalized:
		if row.Outcome != "" {
			return name + " has come to its end with nothing to land" + why + next
		}
		if row.Request.Promotes != "" {
			return fmt.Sprintf("The template has what %s landed, by %s; new groups begin with it", row.Request.Promotes, name)
		}
		return name + " is landed and kept" + why
	case change.Rejected:
		return by + " refused " + name + why + "; nothing of it landed"
	case change.Cancelled:
		return by + " cancelled " + name + why + "; nothing of it landed"
	case change.RolledBack:
		if row.RevertedBy != "" {
			return fmt.Sprintf("%s was rolled back by %s%s", name, row.RevertedBy, why)
		}
		return inert.Line(row.Reason) // SM-130, SM-139: as it is said everywhere
	case change.Failed:
		return name + " has failed" + why + next
	case change.RollbackFailed:
		return name + " needs you" + why + next
	case change.Blocked:
		return "The agent that works on " + name + " is stopped and needs you" + why + next
	}
	return ""
}

// HostChat is the chat of a conversation in which the host itself speaks, with no agent; it is made if it is not there.
func HostChat(ctx context.Context, tx store.Tx, where id.Conversation) (conversation.Chat, error) {
	return tx.PutChat(ctx, conversation.Chat{ID: id.NewChat(), Group: group.Host, Conversation: where, Created: Now()})
}

// DirectChat is the chat in which the host itself speaks with somebody alone, where this account of theirs is reached; false if it is not.
func DirectChat(ctx context.Context, tx store.Tx, a person.Account) (chat conversation.Chat, ok bool, err error) {
	switch {
	case a.Platform == person.Terminal:
		chat, err = TerminalChat(ctx, tx, group.Host, a.Account)
	case a.Direct != "":
		chat, err = HostChat(ctx, tx, a.Direct)
	default:
		return chat, false, nil
	}
	return chat, err == nil, err
}
