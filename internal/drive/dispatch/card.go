package dispatch

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"sallyport/internal/base/audit"
	"sallyport/internal/base/id"
	"sallyport/internal/base/inert"
	"sallyport/internal/base/problem"
	"sallyport/internal/chat/decide"
	"sallyport/internal/chat/message"
	"sallyport/internal/drive/confirm"
	"sallyport/internal/drive/ledger"
	"sallyport/internal/path/approval"
	"sallyport/internal/path/change"
	"sallyport/internal/path/proposal"
	"sallyport/internal/store"
	"sallyport/internal/who/person"
	"sallyport/internal/who/question"
)

// cardsMax is how many cards of a chat words can mean, the newest.
const cardsMax = 30

// cards are those of a conversation as the words of somebody find them, and their rows. One of the host's was delivered when a watcher was
// told it; an agent's question when it was sent: what answers it decides nothing of the host's.
func (d decider) cards(ctx context.Context, tx store.Tx, in id.Conversation, by audit.Actor) (cards []decide.Card, rows map[id.Out]message.Out, err error) {
	outs, err := tx.Cards(ctx, in, cardsMax)
	if err != nil {
		return nil, nil, err
	}
	rows = map[id.Out]message.Out{}
	for _, o := range outs {
		c, ok, err := d.read(ctx, tx, o, by)
		if err != nil {
			return nil, nil, err
		}
		if ok {
			cards, rows[o.ID] = append(cards, c), o
		}
	}
	return cards, rows, nil
}

// read is a card as the words of somebody find it; false if what it asked is not known any more.
func (d decider) read(ctx context.Context, tx store.Tx, o message.Out, by audit.Actor) (c decide.Card, ok bool, err error) {
	c = decide.Card{ID: o.ID, Digits: o.Digits, Asks: decide.Asks(o.Card), Opened: o.At, Delivered: o.Delivered}
	if c.Delivered == nil {
		c.Delivered = d.shown.at(o.ID)
	}
	if o.Card == message.CardTrial {
		t, tried, err := tx.Trial(ctx, o.Change)
		if err != nil {
			return c, false, err
		}
		if !tried || t.Handshake.Decided() {
			at := o.At
			if t.At != nil {
				at = *t.At
			}
			c.Ended = &at
		}
		c.Host = t.Target.Host
		c.Entitled, err = d.mayEnd(ctx, tx, o.Change, by)
		return c, err == nil, err
	}

	q, err := tx.Question(ctx, o.Question)
	if problem.KindOf(err) == problem.NotFound {
		return c, false, nil
	}
	if err == nil {
		err = d.asks(ctx, tx, &c, o, q)
	}
	if err == nil {
		c.Entitled, err = d.may(ctx, tx, q, by)
	}
	if err == nil && c.Entitled && c.Names != "" && c.Ended == nil {
		c.Asked, err = askedForName(ctx, tx, o, by)
	}
	return c, err == nil, err
}

// noteTalk fills in beside which cards of the host's an agent has said what words may answer. What is said in a turn that is under way is
// shown already, and is no message yet.
func (d decider) noteTalk(ctx context.Context, tx store.Tx, where id.Conversation, cards []decide.Card, e decide.Echo) error {
	for i, c := range cards {
		if c.Delivered == nil || c.Ended != nil || c.Asks == decide.Question {
			continue
		}
		said, err := d.saidBeside(ctx, tx, where, c, c.Opened.Add(-decide.Beside))
		if err != nil {
			return err
		}
		cards[i].Talked = len(said) >= talkMax || slices.ContainsFunc(said, e.In)
		if e.Number() && !cards[i].Talked {
			if said, err = d.saidBeside(ctx, tx, where, c, c.Opened); err != nil {
				return err
			}
			cards[i].Talked = len(said) > 0
		}
	}
	return nil
}

// talkMax is how much of what agents said beside a card is looked at: where there is more, any of it may be meant.
const talkMax = 200

// saidBeside is what agents have said since a card, or since a time before it.
func (d decider) saidBeside(ctx context.Context, tx store.Tx, where id.Conversation, c decide.Card, since time.Time) ([]string, error) {
	said, err := tx.Talk(ctx, c.ID, since, talkMax)
	return append(said, d.speaking.since(where, since)...), err
}

// askedForName says when somebody was asked for the name that a card of a chat takes (CH-067); nil if they were not, or have answered that.
func askedForName(ctx context.Context, tx store.Tx, card message.Out, by audit.Actor) (*time.Time, error) {
	said, err := tx.Ins(ctx, message.Filter{Chat: card.Chat, Limit: cardsMax, Newest: true})
	for _, m := range slices.Backward(said) {
		switch {
		case m.Decides == nil || m.Decides.Question != card.Question || m.Decides.By.Person != by.Person:
			continue
		case asksForName(*m.Decides):
			return &m.At, err
		case m.Decides.Does == decide.Name || m.Decides.Does == decide.Leave:
			return nil, err
		}
	}
	return nil, err
}

// mayEnd reports whether somebody's word ends the trial of a change (SM-140).
func (d decider) mayEnd(ctx context.Context, tx store.Tx, of id.Change, by audit.Actor) (bool, error) {
	row, err := tx.Change(ctx, of)
	if err != nil {
		return false, err
	}
	tried, err := ledger.Tried(ctx, tx, row)
	return tried.EndedBy(ledger.PartyOf(by)) != "", err
}

// asks fills in what a card's question says.
func (d decider) asks(ctx context.Context, tx store.Tx, c *decide.Card, o message.Out, q question.Question) error {
	c.Ended = q.Ended
	if o.Card != message.CardApproval {
		for _, option := range q.Options {
			c.Options = append(c.Options, decide.Option{Key: option.Key, Label: option.Label})
			if o.Card == message.CardAdmission && option.Key == CreateNew {
				c.Names = CreateNew
			}
		}
	}
	if o.Card == message.CardQuestion {
		c.Delivered, c.Words = &o.At, q.Words && len(q.Options) == 0
	}
	c.Reworks = approval.Reworks(q)
	if o.Card != message.CardApproval || q.Ended != nil {
		return nil
	}
	p, ok, err := tx.Proposal(ctx, o.Change)
	if err != nil {
		return err
	}
	c.Host = ok && p.Card.ForHost()
	why, err := d.unspoken(ctx, tx, p, o)
	c.Elsewhere = !ok || why != ""
	return err
}

// unspoken says why a card is not approved where it stands; "" if it is.
func (d decider) unspoken(ctx context.Context, tx store.Tx, p proposal.Proposal, card message.Out) (string, error) {
	if why := p.Card.Unspoken(); why != "" {
		return why, nil
	}
	if d.Changes != nil && d.Changes.NoCodeThere(p.Card) != "" {
		chat, err := tx.Chat(ctx, card.Chat)
		if err != nil {
			return "", err
		}
		where, err := tx.Conversation(ctx, chat.Conversation)
		if err != nil || where.Platform != person.Terminal {
			return d.Changes.NoCodeThere(p.Card), err
		}
	}
	whole, err := tx.Whole(ctx, card)
	if err != nil || whole {
		return "", err
	}
	return "a part of what it shows has not arrived here", nil
}

// title is what a card is about, in a sentence: its change, as the card names it, or what it asks. Questions about strangers and places
// have one title each; what they tell apart is their first line.
func (d decider) title(ctx context.Context, tx store.Tx, o message.Out) (string, error) {
	if o.Card != message.CardApproval && o.Card != message.CardTrial {
		q, err := tx.Question(ctx, o.Question)
		if (q.Kind == question.Sender || q.Kind == question.Channel) && len(q.Card.Lines) > 0 {
			return inert.Short(q.Card.Lines[0], 200), err
		}
		return short(q.Card.Title), err
	}
	p, ok, err := tx.Proposal(ctx, o.Change)
	if err != nil || ok {
		return short(p.Card.Title), err
	}
	row, err := tx.Change(ctx, o.Change)
	return short(row.Request.Headline()), err
}

// short is somebody's words in a sentence of the host's.
func short(words string) string { return inert.Short(words, 80) }

// undecided says why words decide nothing, and what to say instead.
func (d decider) undecided(ctx context.Context, tx store.Tx, v decide.Verdict, rows map[id.Out]message.Out) (string, error) {
	on := rows[v.Answer.Card.ID]
	switch v.Kind {
	case decide.Typed:
		if v.Answer.Card.Asks == decide.Trial {
			return "Nothing is decided: " + string(on.Change) + " is a change of the host. To keep it, reply `confirm` and its code, " +
				"which was given to whoever approved it: twelve letters and digits, with no 0, 1, I or O, such as `confirm ABCD-EFGH-JKLM`. To roll it back, reply `rollback`.", nil
		}
		return string(on.Change) + " changes the host. To approve it, type CONFIRM HOST. To refuse it, reply `refuse`.", nil
	case decide.Elsewhere:
		p, _, err := tx.Proposal(ctx, on.Change)
		if err != nil {
			return "", err
		}
		why, err := d.unspoken(ctx, tx, p, on)
		return string(on.Change) + " cannot be approved here: " + why + ". To approve it: sallyport approve " + string(on.Change), err
	case decide.Wordless:
		return fmt.Sprintf("Nothing is decided: say what is to be different in %s, such as `%d change: greet people by name`.", on.Change, on.Digits), nil
	case decide.Over:
		if v.Answer.Does == decide.Rework {
			return d.noCard(ctx, tx, on.Change)
		}
		if v.Answer.Does == decide.RollBack && on.ID == "" {
			return fmt.Sprintf("Nothing is decided: %s is about to land. Once it is on trial, reply `rollback` to the card that comes then.", on.Change), nil
		}
		return d.outcome(ctx, tx, on)
	}

	var b strings.Builder
	switch {
	case v.Kind == decide.Unseen:
		b.WriteString("Nothing is decided: you had not been shown this here before.")
	case len(v.Fits) > 1:
		b.WriteString("Nothing is decided: that could mean more than one card. Reply one of these, with the card's number:")
	case v.Missed == nil:
		fmt.Fprintf(&b, "Nothing is decided: an assistant has said something that you may have answered. If you mean card %[1]d, reply with its number:",
			v.Fits[0].Card.Digits)
	default:
		over := v.Missed.Card
		fmt.Fprintf(&b, "Nothing is decided: card %d, where that %s, has just come to its end, and you may have meant that one. If you mean card %d, reply with its number:",
			over.Digits, meaning(*v.Missed, rows[over.ID]), v.Fits[0].Card.Digits)
	}
	for _, a := range v.Fits {
		o := rows[a.Card.ID]
		title, err := d.title(ctx, tx, o)
		if err != nil {
			return "", err
		}
		b.WriteString("\n`" + a.Words() + "` " + meaning(a, o) + ": " + title)
	}
	return b.String(), nil
}

// meaning is what an answer does, in a word.
func meaning(a decide.Answer, o message.Out) string {
	switch a.Does {
	case decide.Approve:
		return "approves " + string(o.Change)
	case decide.Refuse:
		return "refuses " + string(o.Change)
	case decide.Rework:
		return "has " + string(o.Change) + " changed before it lands"
	case decide.Confirm:
		return "keeps " + string(o.Change)
	case decide.RollBack:
		return "rolls " + string(o.Change) + " back"
	}
	for _, option := range a.Card.Options {
		if a.Does == decide.Choose && option.Key == a.Option {
			return "answers \"" + short(option.Label) + "\""
		}
	}
	return "answers"
}

// noCard says to whom wants something changed, and whose card is an old one, what is under way with their group, and how they ask (SM-021).
func (d decider) noCard(ctx context.Context, tx store.Tx, old id.Change) (string, error) {
	row, err := tx.Change(ctx, old)
	if err != nil {
		return "", err
	}
	open, err := tx.Changes(ctx, change.Filter{Swaps: row.Request.Group, States: change.Open(), Limit: 1})
	if err != nil {
		return "", err
	}
	text := "Nothing is decided: no card waits that takes `change: …`. "
	if len(open) == 0 {
		return text + stands(row) + ". For another change ask the assistant, as for that one.", nil
	}
	of := open[0]
	switch of.State {
	case change.Landing, change.InTrial, change.RollbackFailed:
		text += stands(of) + ": once that has ended, ask the assistant for another change"
	default:
		text += fmt.Sprintf("%s is under way (%s), and its card takes `change: …` once it comes. Asking the assistant for another change ends this one", of.ID, of.State.Words())
	}
	return text + "; next: sallyport change show " + string(of.ID), nil
}

// stands says in words where a change is.
func stands(row change.Row) string {
	words := "is " + row.State.Words()
	switch row.State {
	case change.AwaitingApproval:
		words = "waits for approval"
	case change.Landing:
		words = "is about to land"
	case change.Finalized:
		if words = "is landed and kept"; row.Outcome != "" {
			words = "has ended with nothing to land"
		}
	case change.RolledBack:
		words = "was rolled back"
	case change.RollbackFailed:
		words = "could not be rolled back yet"
	case change.Failed:
		words = "has failed"
	}
	return string(row.ID) + " " + words
}

// outcome is what an old card shows (CH-904).
func (d decider) outcome(ctx context.Context, tx store.Tx, o message.Out) (string, error) {
	if o.Card != message.CardApproval && o.Card != message.CardTrial {
		q, err := tx.Question(ctx, o.Question)
		return "Nothing is decided any more: " + q.Told(), err
	}
	row, err := tx.Change(ctx, o.Change)
	if err != nil {
		return "", err
	}
	next := "; next: sallyport change show " + string(o.Change)
	if o.Card != message.CardTrial {
		q, err := tx.Question(ctx, o.Question)
		return "Nothing is decided any more: " + q.Told() + "; " + stands(row) + next, err
	}
	t, ok, err := tx.Trial(ctx, o.Change)
	switch {
	case err != nil:
		return "", err
	case ok && t.By != nil:
		return "Nothing is decided any more: " + confirm.Overtaken(o.Change, t) + next, nil
	}
	return "Nothing is decided any more: " + stands(row) + next, nil
}
