package channels

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"sallyport/internal/base/audit"
	"sallyport/internal/base/inert"
	"sallyport/internal/base/problem"
	"sallyport/internal/chat/conversation"
	"sallyport/internal/chat/decide"
	"sallyport/internal/chat/message"
	"sallyport/internal/chat/wiring"
	"sallyport/internal/drive/dispatch"
	"sallyport/internal/drive/ledger"
	"sallyport/internal/rule/right"
	"sallyport/internal/store"
	"sallyport/internal/who/group"
	"sallyport/internal/who/person"
	"sallyport/internal/who/question"
)

// The keys of answers about strangers and places.
const (
	Allow  = "allow"
	Deny   = "deny"
	Ignore = "ignore"
	// WireTo and a group's folder is the key that has the group hear a place.
	WireTo = "agent-group-"
)

// groupsShown is how many groups a card has; a home with more is wired at the command line.
const groupsShown = 15

// put has a row keep it.
func (k kept) put(p *wiring.Pending) (err error) {
	p.Event, err = json.Marshal(k)
	return err
}

// askSender asks whether a stranger may talk with a group. While that waits, what they say is dropped (CH-051).
func (c *Channels) askSender(ctx context.Context, tx store.Tx, s said, g group.Folder) error {
	p := wiring.Pending{About: wiring.AboutSender, Conversation: s.where.ID, Identity: s.by.Identity, Group: g, Sender: s.by.Name}
	there, waits, err := tx.PendingOf(ctx, p.About, p.Conversation, p.Identity)
	if err != nil {
		return err
	}
	if waits {
		if err := (asker{c}).anew(ctx, tx, there); err != nil {
			return err
		}
		return c.drop(ctx, tx, s, "somebody is asked about the sender already")
	}

	title := fmt.Sprintf("🙋 %s wants to talk with %s in %s on %s.", asker{c}.speaker(s), g, asker{c}.place(s.where), s.where.Platform)
	if s.Sender.Account == "" {
		title += " The platform does not say who that is: whoever has the name may talk, and decides nothing."
	}
	q := question.New("", title, nil, ledger.Now())
	q.Kind, q.Words = question.Sender, false
	q.Card.Lines = []string{"They said: " + asker{c}.words(s.Text, 300)}
	q.Options = []question.Option{{Key: Allow, Label: "Allow"}, {Key: Deny, Label: "Deny", Alone: true}}
	asked, err := c.approvers(ctx, tx, g)
	if err != nil {
		return err
	}
	return c.ask(ctx, tx, s, q, p, asked)
}

// askPlace asks which group a conversation is for. What is said there last is what the group will hear (CH-071).
func (c *Channels) askPlace(ctx context.Context, tx store.Tx, s said) error {
	p := wiring.Pending{About: wiring.AboutChannel, Conversation: s.where.ID, Sender: s.by.Name}
	there, waits, err := tx.PendingOf(ctx, p.About, p.Conversation, p.Identity)
	if err != nil {
		return err
	}
	if waits {
		if err := (asker{c}).anew(ctx, tx, there); err != nil {
			return err
		}
		return c.replace(ctx, tx, there, s)
	}

	asked, err := c.approvers(ctx, tx, "")
	if err != nil {
		return err
	}
	q := question.New("", "🔌 New channel — wire it?", nil, ledger.Now())
	q.Kind, q.Words = question.Channel, false
	q.Card.Lines = []string{fmt.Sprintf("%s is trying to reach you in %s on %s. Wire to which agent?", asker{c}.speaker(s), asker{c}.place(s.where), s.where.Platform)}
	for _, g := range s.home.Groups[:min(len(s.home.Groups), groupsShown)] {
		q.Options = append(q.Options, question.Option{Key: WireTo + string(g), Label: string(g)})
	}
	if len(s.home.Groups) > groupsShown {
		q.Card.Lines = append(q.Card.Lines, fmt.Sprintf("The home has %d groups; for one that is not here: sallyport wiring set %s GROUP",
			len(s.home.Groups), s.where.ID))
	}
	if c.Create != nil && slices.ContainsFunc(asked, mayCreate) {
		q.Card.Lines = append(q.Card.Lines, "For a new one, say: "+dispatch.CreateNew+" NAME")
		q.Options = append(q.Options, question.Option{Key: dispatch.CreateNew, Label: "➕ Create new"})
	}
	q.Options = append(q.Options, question.Option{Key: Ignore, Label: "Ignore", Alone: true})
	return c.ask(ctx, tx, s, q, p, asked)
}

// mayCreate reports whether somebody may have a group made: the owner alone (CH-907). A card that goes to others does not offer it.
func mayCreate(k person.Known) bool { return slices.Contains(k.Held, right.Held{Role: right.Owner}) }

// replace has what was said last stand in the place of what was said before, in the row that waits. Who becomes a member stays.
func (c *Channels) replace(ctx context.Context, tx store.Tx, there wiring.Pending, s said) error {
	k, err := keptBy(there)
	if err != nil {
		return err
	}
	if err := tx.DropIntake(ctx, k.Intake.Seq, "something was said later while somebody was asked about the place"); err != nil {
		return err
	}
	k.Event, k.Intake = s.Event, s.intake
	if err := k.put(&there); err != nil {
		return err
	}
	return tx.ReplacePending(ctx, there.Question, there.Event)
}

// What strangers write is cleaned of secrets piece by piece: in a whole card, one piece could have another taken out with it.

// words are a stranger's, as a card has them.
func (k asker) words(of string, limit int) string {
	return inert.Quoted(k.Secrets.Redact(of), limit)
}

// place is what people call one.
func (k asker) place(of conversation.Conversation) string { return k.words(of.Name, 80) }

// speaker is who has said something, as a card names them.
func (k asker) speaker(s said) string {
	return fmt.Sprintf("%s (%s)", k.words(s.by.Name, 200), inert.Short(k.Secrets.Redact(s.by.Identity), 80))
}

// ask puts a question about something that was said to who may decide it.
func (c *Channels) ask(ctx context.Context, tx store.Tx, s said, q question.Question, p wiring.Pending, asked []person.Known) error {
	if many, err := tooMany(ctx, tx, s.where.Platform); err != nil || many {
		if err != nil {
			return err
		}
		return c.drop(ctx, tx, s, "too many questions about strangers and places wait")
	}
	about, err := ledger.HostChat(ctx, tx, s.where.ID)
	if err != nil {
		return err
	}
	q.Subject = about.ID.Subject()
	open, err := tx.OpenQuestions(ctx, q.Subject)
	if err != nil {
		return err
	}
	if len(open) >= placeMax {
		return c.drop(ctx, tx, s, "too many questions about this conversation wait")
	}

	if err := question.Put(ctx, tx, q); err != nil {
		return err
	}
	p.Question, p.Created = q.ID, ledger.Now()
	if err := (kept{Event: s.Event, Intake: s.intake, First: s.Sender}).put(&p); err != nil {
		return err
	}
	if err := tx.PutPending(ctx, p); err != nil {
		return err
	}
	tx.After(func() {
		text := strings.Join(append([]string{q.Card.Title}, q.Card.Lines...), "\n")
		c.Notify(ledger.Note{Kind: ledger.NoteAdmission, Text: text, Next: "sallyport approval show " + string(q.ID)}, func() {})
	})
	return asker{c}.show(ctx, tx, q, asked)
}

// How many questions about strangers and places wait at the most: of one conversation, of one channel, and of the home. Strangers fill no disk.
// Those of other channels keep nobody away: a channel has a few of its own, whatever waits in the home.
const (
	placeMax   = 10
	channelMax = 15
	channelOwn = 5
	homeMax    = 25
)

// tooMany reports whether so many questions wait that none is asked about a channel.
func tooMany(ctx context.Context, tx store.Tx, channel string) (bool, error) {
	here, err := tx.PendingQuestions(ctx, channel)
	if err != nil || len(here) < channelOwn {
		return false, err
	}
	all, err := tx.PendingQuestions(ctx, "")
	return len(here) >= channelMax || len(all) >= homeMax, err
}

// May reports whether somebody may answer a question about a stranger or a place, at this moment: who is asked, and who stands higher.
func (c *Channels) May(ctx context.Context, tx store.Tx, q question.Question, by audit.Actor) (bool, error) {
	p, ok, err := tx.Pending(ctx, q.ID)
	if err != nil || !ok || by.Person == "" {
		return false, err
	}
	people, err := ledger.Entitled(ctx, tx)
	return slices.Contains(right.Admission(string(p.Group), people).May, by.Person), err
}

// Prepare reads how the home stands, and makes the one that an answer names if there is none of that name.
func (c *Channels) Prepare(ctx context.Context, what message.Decision) (dispatch.Admit, error) {
	var made group.Folder
	if what.Does == decide.Name {
		made = group.ChooseFolder(what.Option, nil)
		if err := c.makeGroup(ctx, what, made); err != nil {
			return nil, err
		}
	}
	home, err := c.home(ctx)
	return func(ctx context.Context, tx store.Tx, q question.Question, by audit.Actor) error {
		return usher{c}.admit(ctx, tx, q, by, made, home)
	}, err
}

// makeGroup makes a group for who may have it made while the question waits. One that is there already is as good.
func (c *Channels) makeGroup(ctx context.Context, what message.Decision, folder group.Folder) error {
	groups, err := c.Groups(ctx)
	if err != nil || slices.Contains(groups, folder) {
		return err
	}
	err = c.DB.Read(ctx, func(tx store.Tx) error {
		q, err := tx.Question(ctx, what.Question)
		if err != nil {
			return err
		}
		if q.Outcome != question.Waiting {
			return problem.Case(question.ErrEnded, "", "%s", q.Told())
		}
		may, err := c.May(ctx, tx, q, what.By)
		if err == nil && !may {
			err = problem.Errorf(problem.Denied, "", "%s may not decide about %s", what.By.Name, q.ID)
		}
		return err
	})
	if err != nil {
		return err
	}
	err = c.Create(ctx, folder, what.By)
	if err == nil {
		return nil
	}
	if groups, wrong := c.Groups(ctx); wrong == nil && slices.Contains(groups, folder) { // an earlier daemon had begun to make it
		return nil
	}
	return err
}

// admit does what somebody has answered about a stranger or a place: who is let in is heard as if they had been all along. It runs in the
// transaction of the answer.
func (c usher) admit(ctx context.Context, tx store.Tx, q question.Question, by audit.Actor, made group.Folder, home wiring.Home) error {
	p, ok, err := tx.Pending(ctx, q.ID)
	if err != nil || !ok {
		return err
	}
	s, first, err := c.release(ctx, tx, p, home)
	if err != nil {
		return err
	}
	s.decider = by

	answer := string(q.Outcome)
	switch {
	case answer == Deny, answer == Ignore:
		return c.drop(ctx, tx, s, "it was denied")
	case answer == Allow:
		if err := c.letIn(ctx, tx, s, p.Group); err != nil {
			return err
		}
	case answer == dispatch.CreateNew:
		if err := c.wire(ctx, tx, s, first, made); err != nil {
			return err
		}
	case len(answer) > len(WireTo) && answer[:len(WireTo)] == WireTo:
		if err := c.wire(ctx, tx, s, first, group.Folder(answer[len(WireTo):])); err != nil {
			return err
		}
	default:
		return problem.Errorf(problem.Internal, "", "%q is no answer about %s", answer, q.ID)
	}
	if err := c.recognize(ctx, tx, &s); err != nil {
		return err
	}
	return c.route(ctx, tx, s)
}
