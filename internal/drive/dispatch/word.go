package dispatch

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"time"

	"sallyport/internal/base/audit"
	"sallyport/internal/base/id"
	"sallyport/internal/base/problem"
	"sallyport/internal/chat/conversation"
	"sallyport/internal/chat/decide"
	"sallyport/internal/chat/message"
	"sallyport/internal/chat/prompt"
	"sallyport/internal/drive/approve"
	"sallyport/internal/drive/ledger"
	"sallyport/internal/path/change"
	"sallyport/internal/path/proposal"
	"sallyport/internal/path/request"
	"sallyport/internal/rule/right"
	"sallyport/internal/store"
	"sallyport/internal/who/group"
)

// Changes decides about changes. Who may, and whether it comes in time, is looked at there; saying the same again changes nothing.
type Changes interface {
	// Entitled says who approves what a card is about, at this moment. Beside an error it names who may still say no.
	Entitled(ctx context.Context, tx store.Tx, r request.Request, c proposal.Card) (right.Need, error)
	// Promoters say whether the template is to have what a change has landed, and Shows how a folder is shown by it, at this moment.
	Promoters(ctx context.Context, tx store.Tx, of id.Change) (right.Need, error)
	Shows(ctx context.Context, tx store.Tx, of id.Change) (right.Need, error)
	// NoCodeThere says why a change is not approved on a platform; "" = it is.
	NoCodeThere(c proposal.Card) string
	Approve(ctx context.Context, of id.Approval, read proposal.Digest, by audit.Actor, w approve.Words) error
	RefuseVia(ctx context.Context, of id.Approval, by audit.Actor, via, reason string) error
	Rework(ctx context.Context, of id.Approval, by audit.Actor, via, words string) error
	Confirm(ctx context.Context, change id.Change, by audit.Actor, code string) error
	RollBack(ctx context.Context, change id.Change, by audit.Actor, reason string) error
	// Promote has the template changed as a landed change of a group changed the group.
	Promote(ctx context.Context, of id.Change, by audit.Actor) error
	// RecordDelivery says that message 1 was delivered: the first time moves its deadline (SM-125).
	RecordDelivery(change id.Change)
}

// decider has people's words decide.
type decider struct{ *Dispatcher }

// hear takes what a person says: words that decide are the host's, and no agent sees them; others are a message to the agent.
func (d decider) hear(ctx context.Context, tx store.Tx, chat conversation.Chat, intake message.Intake, s Said) (message.In, error) {
	in, decides, err := d.words(ctx, tx, chat.Conversation, intake, s)
	if err != nil || decides {
		return in, err
	}
	s.Text, s.Quote.Text = d.hush(s.Text), d.hush(s.Quote.Text)
	if chat.Group == group.Host {
		return d.unheard(ctx, tx, chat, intake, s)
	}
	return d.talk(ctx, tx, chat, intake, s)
}

// forHost is what the host's own chat says of itself.
const forHost = "No assistant reads along here. sallyport shows you in this chat what it wants to know from you, such as whether somebody may talk with a group. " +
	"Answer a card with the number of an option or with its word. To talk with an assistant: sallyport chat GROUP"

// unheard takes words in the host's own chat that decide nothing: they are for nobody, and that is told.
func (d decider) unheard(ctx context.Context, tx store.Tx, chat conversation.Chat, intake message.Intake, s Said) (message.In, error) {
	in := message.In{
		ID: id.NewMessage(), Chat: chat.ID, Intake: intake.Seq, Kind: prompt.Chat,
		Identity: s.identity(), Sender: s.Name, Text: s.Text, At: intake.Received, Status: message.Processing, Due: intake.Received,
		Decides: &message.Decision{Kind: decide.Talk, By: s.By, Problem: problem.Usage},
	}
	in, err := tx.PutIn(ctx, in.Closed(forHost, intake.Received))
	if err != nil {
		return in, err
	}
	return in, d.notice(ctx, tx, chat.ID, forHost)
}

// words has what a person says in a conversation decide; false if it is talk.
func (d decider) words(ctx context.Context, tx store.Tx, where id.Conversation, intake message.Intake, s Said) (in message.In, decides bool, err error) {
	cards, rows, err := d.cards(ctx, tx, where, s.By)
	if err != nil {
		return in, false, err
	}
	if err := d.unshow(ctx, tx, cards, s); err != nil {
		return in, false, err
	}
	to, err := quoted(ctx, tx, rows, s.ReplyTo)
	if err != nil {
		return in, false, err
	}
	w := decide.Word{
		Text: s.Text, Received: s.at(intake), Quoted: to == "" && (s.Answers || s.Quote != prompt.Quote{}),
		Forwarded: s.Forwarded, Edited: s.Edited, Bot: s.Bot, To: to,
	}
	v, ahead := decide.Decide(w, cards), decide.Ahead(w)
	if e, may := v.Echo(s.Text); may {
		if err := d.noteTalk(ctx, tx, where, cards, e); err != nil {
			return in, false, err
		}
		v = decide.Decide(w, cards)
	}
	switch {
	case s.Card != "" || s.Asked != "":
		v = decide.Press(w, pressed(s, cards, rows), cards)
	case v.Kind == decide.Talk && ahead != "":
		on, is, err := d.underWay(ctx, tx, where, s.By, ahead)
		if err != nil {
			return in, false, err
		}
		if is {
			rows[""] = on
			v = decide.Verdict{Kind: decide.Over, Answer: decide.Answer{Does: ahead}}
		}
	}
	if near := decide.Nearly(w, cards); len(near) > 0 && v.Kind == decide.Talk && !s.Brief {
		return in, false, d.nearly(ctx, tx, near, rows[near[0].Card.ID])
	}
	return d.settle(ctx, tx, intake, v, rows, s)
}

// nearly tells who said words that are nearly those of a card that it still waits, and which they are.
func (d decider) nearly(ctx context.Context, tx store.Tx, all []decide.Answer, card message.Out) error {
	title, err := d.title(ctx, tx, card)
	if err != nil {
		return err
	}
	text := "Nothing is decided by that: card " + strconv.Itoa(card.Digits) + " still waits."
	for _, a := range all {
		text += "\n`" + a.Words() + "` " + meaning(a, card) + ": " + title
	}
	return d.notice(ctx, tx, card.Chat, text)
}

// underWay is the card that a change will have which was asked for in a conversation, and which somebody could refuse there; false if none is
// under way. Words for it are no wish for another, which would end it (SM-021). What rolls it back is for one that lands alone: before that
// an agent may be meant.
func (d decider) underWay(ctx context.Context, tx store.Tx, where id.Conversation, by audit.Actor, does decide.Does) (card message.Out, is bool, err error) {
	if d.Changes == nil || by.Kind != "person" || by.Person == "" {
		return card, false, nil
	}
	open, err := tx.Changes(ctx, change.Filter{States: change.Open(), Limit: ledger.OpenMax})
	if err != nil {
		return card, false, err
	}
	for _, row := range open {
		if !row.Request.OfAgent() || row.State == change.AwaitingApproval { // then its card takes them
			continue
		}
		if does == decide.RollBack && row.State != change.Landing {
			continue
		}
		chat, err := tx.Chat(ctx, row.Request.Chat)
		if problem.KindOf(err) == problem.NotFound || err == nil && chat.Conversation != where {
			continue
		}
		if err != nil {
			return card, false, err
		}
		p, _, err := tx.Proposal(ctx, row.ID)
		if err != nil {
			return card, false, err
		}
		p.Card.Class = cmp.Or(p.Card.Class, string(right.Group)) // as far as is known
		need, err := d.Changes.Entitled(ctx, tx, row.Request, p.Card)
		if slices.Contains(need.No, by.Person) {
			return message.Out{Chat: chat.ID, Change: row.ID}, true, nil
		}
		if err != nil && len(need.No) == 0 {
			return card, false, err
		}
	}
	return card, false, nil
}

// hush returns words as they are kept: while somebody may know a code, without it. A candidate reads what its database holds.
func (d *Dispatcher) hush(text string) string {
	if d.Coded == nil || !d.Coded() {
		return text
	}
	return decide.Hush(text)
}

// pressed is the card whose button was pressed; of those that ask one question the newest.
func pressed(s Said, cards []decide.Card, rows map[id.Out]message.Out) id.Out {
	if s.Asked == "" {
		return s.Card
	}
	for _, c := range slices.Backward(cards) {
		if rows[c.ID].Question == s.Asked {
			return c.ID
		}
	}
	return ""
}

// lateAfter is how much later than it was said something must come to count as late. What comes sooner counts as said when it was received.
const lateAfter = time.Second

// at is when something was said, as far as deciding goes: a platform may hand it over long after that.
func (s Said) at(intake message.Intake) time.Time {
	if !s.Came.IsZero() && intake.Received.Sub(s.Came) > lateAfter {
		return s.Came
	}
	return intake.Received
}

// unshow has cards not count as shown that their platform had after the words of somebody, however late it hands these over.
func (d decider) unshow(ctx context.Context, tx store.Tx, cards []decide.Card, s Said) error {
	if s.Before == nil || s.ID == "" || s.Card != "" || s.Asked != "" {
		return nil
	}
	for i, c := range cards {
		if c.Delivered == nil || c.Ended != nil || !c.Entitled || c.Asks == decide.Question {
			continue
		}
		sent, ok, err := tx.Delivery(ctx, c.ID)
		if err != nil {
			return err
		}
		if ok && s.Before(s.ID, sent.PlatformID) {
			cards[i].Delivered = nil
		}
	}
	return nil
}

// quoted returns the card of a conversation that its platform knows by an id; "" if that is none.
func quoted(ctx context.Context, tx store.Tx, cards map[id.Out]message.Out, platformID string) (id.Out, error) {
	if platformID == "" {
		return "", nil
	}
	for card := range cards {
		if d, ok, err := tx.Delivery(ctx, card); err != nil || ok && d.PlatformID == platformID {
			return card, err
		}
	}
	return "", nil
}

// settle does what a verdict says; false if the words are talk.
func (d decider) settle(ctx context.Context, tx store.Tx, intake message.Intake, v decide.Verdict, rows map[id.Out]message.Out,
	s Said) (in message.In, decides bool, err error) {
	if v.Kind == decide.Talk || s.Brief && v.Kind != decide.Decided {
		return in, false, nil
	}
	card := v.Answer.Card.ID
	if len(v.Fits) > 0 {
		card = v.Fits[0].Card.ID
	}
	chat, err := tx.Chat(ctx, rows[card].Chat)
	if err != nil {
		return in, false, err
	}
	if v.Kind != decide.Decided || v.Answer.Card.Asks != decide.Question {
		in, err = d.keep(ctx, tx, chat, intake, v, rows, s)
		return in, true, err
	}

	key := v.Answer.Option
	if v.Answer.Does == decide.Reply {
		key, s.Text = "", d.hush(v.Answer.Option)
	}
	q, err := d.decide(ctx, tx, rows[card].Question, key, s)
	if problem.KindOf(err) == problem.Usage && !atTerminal(s.identity()) {
		return in, true, d.unanswered(ctx, tx, chat.ID, err)
	}
	if err == nil {
		in, err = d.tellAgent(ctx, tx, chat, intake.Seq, q, spoken(q), s)
	}
	return in, true, err
}

// unanswered tells that words are no answer, such as too long ones: a platform that heard of an error would hand them over for ever.
func (d decider) unanswered(ctx context.Context, tx store.Tx, chat id.Chat, err error) error {
	return d.notice(ctx, tx, chat, "Nothing is answered: "+problem.Of(err).Text)
}

// talk puts words before a group's agent.
func (d decider) talk(ctx context.Context, tx store.Tx, chat conversation.Chat, intake message.Intake, s Said) (message.In, error) {
	if !s.Context {
		if q, words, ok, err := d.answered(ctx, tx, chat, s); err != nil || ok {
			if err != nil {
				return message.In{}, err
			}
			return d.tellAgent(ctx, tx, chat, intake.Seq, q, words, s)
		}
	}
	return d.told(ctx, tx, chat, intake, s)
}

// told puts words before a group's agent that answer nothing.
func (d decider) told(ctx context.Context, tx store.Tx, chat conversation.Chat, intake message.Intake, s Said) (message.In, error) {
	return tx.PutIn(ctx, message.In{
		ID: id.NewMessage(), Chat: chat.ID, Intake: intake.Seq, Kind: prompt.Chat, Trigger: !s.Context, ReplyTo: s.ReplyTo, Quote: s.Quote,
		Identity: s.identity(), Sender: s.Name, Text: s.Text, At: intake.Received, Status: message.Pending, Due: intake.Received,
	})
}

// keep writes down what words decide, to be done once that is committed; or says at once why they decide nothing.
func (d decider) keep(ctx context.Context, tx store.Tx, chat conversation.Chat, intake message.Intake, v decide.Verdict,
	rows map[id.Out]message.Out, s Said) (message.In, error) {
	by := s.By
	on := rows[v.Answer.Card.ID]
	text := d.hush(s.Text)
	if v.Answer.Does == decide.Confirm {
		text = decide.Hush(text)
	}
	in := message.In{
		ID: id.NewMessage(), Chat: chat.ID, Intake: intake.Seq, Kind: prompt.Chat,
		Identity: s.identity(), Sender: s.Name, Text: text, At: intake.Received, Status: message.Processing, Due: intake.Received,
		Decides: &message.Decision{
			Kind: v.Kind, Does: v.Answer.Does, Card: on.ID, Asks: on.Card, Change: on.Change, Question: on.Question, Option: v.Answer.Option, By: by,
		},
	}
	if v.Kind != decide.Decided {
		text, err := d.undecided(ctx, tx, v, rows)
		if err != nil {
			return in, err
		}
		in.Decides.Problem = problem.Conflict
		in = d.closed(in, text, intake.Received)
		if in, err = tx.PutIn(ctx, in); err != nil {
			return in, err
		}
		return in, d.notice(ctx, tx, chat.ID, in.Reason)
	}

	if on.Card == message.CardApproval {
		asked, open, err := tx.PendingApproval(ctx, on.Change)
		if err != nil {
			return in, err
		}
		if open && asked.Question == on.Question {
			in.Decides.Approval, in.Decides.Digest = asked.ID, string(asked.Digest)
		}
	}
	d.mu.Lock()
	if d.fresh != nil {
		d.fresh[in.ID] = true
	}
	d.mu.Unlock()
	return tx.PutIn(ctx, in)
}

// closed is a message of which no more comes, with what was said of it, without secrets.
func (d decider) closed(in message.In, said string, at time.Time) message.In {
	return in.Closed(d.Secrets.Redact(said), at)
}
