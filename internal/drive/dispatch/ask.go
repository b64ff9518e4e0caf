package dispatch

import (
	"context"
	"errors"
	"strings"

	"sallyport/internal/base/audit"
	"sallyport/internal/base/id"
	"sallyport/internal/base/problem"
	"sallyport/internal/chat/conversation"
	"sallyport/internal/chat/decide"
	"sallyport/internal/chat/message"
	"sallyport/internal/chat/prompt"
	"sallyport/internal/drive/ledger"
	"sallyport/internal/port/tool"
	"sallyport/internal/rule/right"
	"sallyport/internal/store"
	"sallyport/internal/who/question"
)

// openMax is how many questions of one chat wait at the most.
const openMax = 20

// ask puts an agent's question to the people of its conversation (CH-096): the card is a message, and the answer will be one.
func (w *worker) ask(ctx context.Context, tx store.Tx, chat conversation.Chat, turn int, c tool.Call) (tool.Result, error) {
	args, now := c.Args.(tool.Question), ledger.Now()
	title := w.Secrets.Redact(prompt.Strip(args.Question))
	options := make([]string, len(args.Options))
	for i, o := range args.Options {
		options[i] = w.Secrets.Redact(o)
	}
	q := question.New(chat.ID.Subject(), title, options, now)
	o, err := tx.PutOut(ctx, message.Out{
		ID: id.NewOut(), Chat: chat.ID, Lane: message.Talk, Turn: turn, Call: c.Key(), Question: q.ID, Card: message.CardQuestion, Text: q.Text(), At: now,
	})
	if err != nil || o.Question != q.ID { // the same call of an earlier try has asked it
		return tool.Result{Text: tool.Asked, ID: string(o.Question)}, err
	}
	open, err := tx.OpenQuestions(ctx, chat.ID.Subject())
	if err != nil {
		return tool.Result{}, err
	}
	if len(open) >= openMax {
		return tool.Result{}, problem.Errorf(problem.Refused, "",
			"%d questions of this conversation wait for an answer; ask no more before some are answered", len(open))
	}

	return tool.Result{Text: tool.Asked, ID: string(q.ID)}, question.Put(ctx, tx, q)
}

// answered has words answer the newest question of a chat that takes words alone; false if there is none. Words that fit two options of a
// question answer neither.
func (d *Dispatcher) answered(ctx context.Context, tx store.Tx, chat conversation.Chat, s Said) (q question.Question, words string, ok bool, err error) {
	open, err := tx.OpenQuestions(ctx, chat.ID.Subject())
	if err != nil || len(open) == 0 {
		return q, "", false, err
	}
	for _, o := range open {
		if _, _, err := o.Read(s.Text); err != nil {
			return q, "", false, err
		}
	}
	last := open[len(open)-1]
	if len(last.Options) > 0 || !last.Words || ledger.Now().Sub(last.Asked) > decide.WordsFor {
		return q, "", false, nil
	}
	if may, err := (decider{d}).may(ctx, tx, last, s.By); err != nil || !may {
		return q, "", false, err
	}
	q, err = d.decide(ctx, tx, last.ID, "", s)
	return q, spoken(q), err == nil, err
}

// decide records a person's answer.
func (d *Dispatcher) decide(ctx context.Context, tx store.Tx, of id.Question, key string, s Said) (question.Question, error) {
	q, err := tx.Question(ctx, of)
	if err != nil {
		return q, err
	}
	need, err := decider{d}.need(ctx, tx, q)
	if err != nil {
		return q, err
	}
	return decider{d}.record(ctx, tx, of, key, s, need)
}

// decideAs records the answer of somebody who may give it, or may not.
func (d *Dispatcher) decideAs(ctx context.Context, tx store.Tx, of id.Question, key string, s Said, may bool) (question.Question, error) {
	need := right.Need{}
	if may {
		need = right.Only(s.By.Person)
	}
	return decider{d}.record(ctx, tx, of, key, s, need)
}

// record records an answer.
func (d decider) record(ctx context.Context, tx store.Tx, of id.Question, key string, s Said, need right.Need) (question.Question, error) {
	saying := question.Saying{ID: of, Need: need, By: s.By, Option: key, Via: s.via(), At: ledger.Now()}
	if key == "" {
		saying.Text = strings.TrimSpace(s.Text)
	}
	q, err := question.Say(ctx, tx, saying)
	if err != nil {
		return q, err
	}
	return q, tx.AppendEntry(ctx, audit.Entry{At: saying.At, Actor: s.By, Subject: string(of), Verb: "answered", Reason: key})
}

// spoken is the answer that ended a question, as its agent reads it.
func spoken(q question.Question) string {
	if q.Answer == nil {
		return ""
	}
	if o, ok := q.Option(q.Answer.Option); ok {
		return o.Label
	}
	return q.Answer.Text
}

// Answer answers a question by its name: with the number, key or label of an option, or in words. It returns the message that its agent is
// told by; of a question about a stranger or a place, which no agent has asked, what came of it. Errors: problem.NotFound; problem.Conflict if it
// was answered, which says how; problem.Usage if it is no answer.
func (d *Dispatcher) Answer(ctx context.Context, of id.Question, s Said) (in message.In, err error) {
	s.Text = d.hush(s.Text)
	q, err := store.Look(ctx, d.DB, store.Tx.Question, of)
	if err != nil {
		return in, err
	}
	if admits(q) {
		told, err := Voices{d}.Admit(ctx, of, s.Text, s.By)
		if err != nil {
			return in, err
		}
		return message.In{Kind: prompt.Chat, Identity: s.identity(), Sender: s.Name, Text: s.Text, At: ledger.Now()}.Closed(told, ledger.Now()), nil
	}
	err = d.DB.InTx(ctx, func(tx store.Tx) error {
		in, err = decider{d}.answer(ctx, tx, of, s)
		return err
	})
	if errors.Is(err, question.ErrSaid) {
		err = nil
	}
	return in, err
}

// answer answers a question of a chat.
func (d decider) answer(ctx context.Context, tx store.Tx, of id.Question, s Said) (in message.In, err error) {
	q, err := tx.Question(ctx, of)
	if err != nil {
		return in, err
	}
	chat, err := tx.Chat(ctx, id.Chat(q.Subject))
	if err != nil {
		return in, problem.Errorf(problem.Usage, "sallyport approval list", "%s is no question of a conversation", of)
	}
	key, _, err := q.Read(s.Text)
	if err != nil {
		return in, err
	}
	if q, err = d.decide(ctx, tx, of, key, s); err != nil {
		return in, err
	}
	return d.tellAgent(ctx, tx, chat, 0, q, spoken(q), s)
}

// tellAgent has the agent that asked hear the answer.
func (d *Dispatcher) tellAgent(ctx context.Context, tx store.Tx, chat conversation.Chat, intake int64, q question.Question, words string,
	s Said) (message.In, error) {
	now := ledger.Now()
	return tx.PutIn(ctx, message.In{
		ID: id.NewMessage(), Chat: chat.ID, Intake: intake, Kind: prompt.Answer, Trigger: true,
		Identity: s.identity(), Sender: s.Name, Text: words, Question: q.Card.Title, At: now, Status: message.Pending, Due: now,
	})
}
