package socket

import (
	"context"
	"encoding/json"
	"io"
	"strconv"
	"sync"
	"time"

	"sallyport/internal/base/audit"
	"sallyport/internal/base/id"
	"sallyport/internal/base/problem"
	"sallyport/internal/chat/conversation"
	"sallyport/internal/chat/decide"
	"sallyport/internal/chat/message"
	"sallyport/internal/chat/schedule"
	"sallyport/internal/door/api"
	"sallyport/internal/drive/dispatch"
	"sallyport/internal/who/group"
)

// Chats is what people say to groups, and what comes of it.
type Chats interface {
	// Say accepts a message. Errors: not found if there is no such group.
	Say(ctx context.Context, s dispatch.Said) (message.In, error)
	// Answer answers a question of a chat. Errors: conflict if it was answered.
	Answer(ctx context.Context, of id.Question, s dispatch.Said) (message.In, error)
	// Open returns a person's chat with a group at a terminal.
	Open(ctx context.Context, of group.Folder, account string) (conversation.Chat, error)
	// Watch tells what was said in a chat and what happens, until ctx ends or tell fails.
	Watch(ctx context.Context, chat id.Chat, history int, tell func([]dispatch.Line) error) error
	// List returns the chats of a group, or of all.
	List(ctx context.Context, of group.Folder) ([]dispatch.Seen, error)
	// Find returns the chat of an id: of a chat, or of a session of one.
	Find(ctx context.Context, name string) (dispatch.Seen, error)
	// Stop ends the session of a chat; false if none runs.
	Stop(ctx context.Context, chat id.Chat, by audit.Actor) (bool, error)
	// Transcript opens what a session of a chat printed, in JSONL: that of an identity, or the newest.
	Transcript(ctx context.Context, name string) (io.ReadCloser, error)
	// Messages returns the newest, oldest first.
	Messages(ctx context.Context, of group.Folder, status []message.Status, limit int) ([]message.In, error)
	// Message returns one, and what the turn that answered it has sent.
	Message(ctx context.Context, of id.Message) (message.In, []message.Out, error)
	// Retry has a dead message tried again. Errors: conflict if it is not dead.
	Retry(ctx context.Context, of id.Message, by audit.Actor) (message.In, error)
	// Plan schedules a task; first is a time by the user's clock.
	Plan(ctx context.Context, chat conversation.Chat, s schedule.Schedule, first string, by audit.Actor) (message.In, error)
	// Unplan cancels a task.
	Unplan(ctx context.Context, task id.Task, by audit.Actor) error
	// Tasks are those that wait.
	Tasks(ctx context.Context) ([]message.In, error)
}

// chats answers a person who talks with groups.
type chats struct {
	part  Chats
	asked Approvals
}

// account is who somebody is at a terminal, as the kernel says.
func account(by audit.Actor) string { return strconv.Itoa(by.UID) }

func (n chats) say(ctx context.Context, by audit.Actor, in api.Say) (api.Message, error) {
	m, err := n.part.Say(ctx, dispatch.Said{Group: group.Folder(in.Group), Text: in.Text, Nonce: in.Nonce, Account: account(by), Name: by.Name, By: by})
	out := messageOf(m)
	if err == nil && out.Decides == string(decide.Approve) {
		out.Code = codeFor(ctx, n.asked, m.Decides.Approval, by, "at the terminal where they approved it")
	}
	return out, err
}

func (n chats) answer(ctx context.Context, by audit.Actor, in api.Answer) (api.Message, error) {
	m, err := n.part.Answer(ctx, id.Question(in.Of), dispatch.Said{Text: in.Text, Account: account(by), Name: by.Name, By: by})
	return messageOf(m), err
}

// watch writes a line for each thing that is told, those that are told together in one piece, and one now and then when nothing is.
func (n chats) watch(ctx context.Context, by audit.Actor, in api.WatchChat, out io.Writer) error {
	chat, err := n.part.Open(ctx, group.Folder(in.Group), account(by))
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	var mu sync.Mutex
	write := func(lines ...dispatch.Line) error {
		mu.Lock()
		defer mu.Unlock()
		err := writeLines(out, lines)
		if err != nil {
			cancel(err)
		}
		return err
	}
	var beats sync.WaitGroup
	defer beats.Wait()
	defer cancel(nil)
	beats.Go(func() {
		beat := time.NewTicker(heartbeatTime)
		defer beat.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-beat.C:
				_ = write(dispatch.Line{Kind: api.ChatBeat}) // who is gone is told to the other
			}
		}
	})
	err = n.part.Watch(ctx, chat.ID, in.History, func(lines []dispatch.Line) error { return write(lines...) })
	if why := context.Cause(ctx); problem.KindOf(why) == problem.Denied { // they may not, any more
		return why
	}
	return err
}

// pieceMax is how many bytes of lines are written together, unless one line alone has more.
const pieceMax = 64 << 10

func writeLines(out io.Writer, lines []dispatch.Line) error {
	var piece []byte
	for i, l := range lines {
		raw, err := l.Once(written)
		if err != nil {
			return err
		}
		piece = append(piece, raw...)
		if i+1 < len(lines) && len(piece) < pieceMax {
			continue
		}
		if _, err := out.Write(piece); err != nil {
			return err
		}
		piece = piece[:0]
	}
	return nil
}

// written is a line as it goes over the socket.
func written(l dispatch.Line) ([]byte, error) {
	raw, err := json.Marshal(lineOf(l))
	return append(raw, '\n'), err
}

func (n chats) list(ctx context.Context, _ audit.Actor, in api.InGroup) ([]api.Chat, error) {
	all, err := n.part.List(ctx, group.Folder(in.Group))
	return each(all, chatOf), err
}

func (n chats) show(ctx context.Context, _ audit.Actor, name string) (api.Chat, error) {
	seen, err := n.part.Find(ctx, name)
	return chatOf(seen), err
}

func (n chats) stop(ctx context.Context, by audit.Actor, name string) (out api.Stopped, err error) {
	seen, err := n.part.Find(ctx, name)
	if err != nil {
		return out, err
	}
	out.Stopped, err = n.part.Stop(ctx, seen.ID, by)
	return out, err
}

func (n chats) transcript(ctx context.Context, name string, out io.Writer) error {
	log, err := n.part.Transcript(ctx, name)
	if err != nil {
		return err
	}
	defer log.Close() // read only
	_, err = io.Copy(out, log)
	return err
}

func (n chats) messages(ctx context.Context, _ audit.Actor, in api.Messages) ([]api.Message, error) {
	status := make([]message.Status, len(in.Status))
	for i, s := range in.Status {
		status[i] = message.Status(s)
		if !status[i].Valid() {
			return nil, problem.Errorf(problem.Usage, "sallyport message list --help",
				"%q is no status of a message: pending, processing, completed, folded or dead", s)
		}
	}
	all, err := n.part.Messages(ctx, group.Folder(in.Group), status, in.Limit)
	return each(all, messageOf), err
}

func (n chats) message(ctx context.Context, _ audit.Actor, of string) (api.Answered, error) {
	m, answer, err := n.part.Message(ctx, id.Message(of))
	return api.Answered{Message: messageOf(m), Answer: each(answer, sentOf)}, err
}

// Drops is what was dropped before it was a message.
type Drops interface {
	// Count counts it by reason.
	Count(ctx context.Context) ([]message.Drop, error)
}

// drops answers who asks for that.
type drops struct{ part Drops }

func (n drops) count(ctx context.Context, _ audit.Actor, _ api.Nothing) ([]api.Drop, error) {
	all, err := n.part.Count(ctx)
	return each(all, func(d message.Drop) api.Drop { return api.Drop{Reason: text(d.Reason), Count: d.Count} }), err
}

func (n chats) retry(ctx context.Context, by audit.Actor, of string) (api.Message, error) {
	m, err := n.part.Retry(ctx, id.Message(of), by)
	return messageOf(m), err
}

func (n chats) plan(ctx context.Context, by audit.Actor, in api.Plan) (out api.Message, err error) {
	chat, err := n.part.Open(ctx, group.Folder(in.Group), account(by))
	if err != nil {
		return out, err
	}
	s := schedule.Schedule{Kind: schedule.Once, Text: in.Text}
	switch {
	case in.Cron != "" && in.Interval != "":
		return out, problem.Errorf(problem.Usage, "sallyport schedule add --help", "a task repeats by --cron or by --every, not by both")
	case in.Cron != "":
		s.Kind, s.Spec = schedule.Cron, in.Cron
	case in.Interval != "":
		s.Kind, s.Spec = schedule.Interval, in.Interval
	}
	m, err := n.part.Plan(ctx, chat, s, in.At, by)
	return messageOf(m), err
}

func (n chats) unplan(ctx context.Context, by audit.Actor, task string) (out api.Nothing, err error) {
	return out, n.part.Unplan(ctx, id.Task(task), by)
}

func (n chats) tasks(ctx context.Context, _ audit.Actor, _ api.Nothing) ([]api.Message, error) {
	all, err := n.part.Tasks(ctx)
	return each(all, messageOf), err
}

func lineOf(l dispatch.Line) api.ChatLine {
	return api.ChatLine{
		Kind: string(l.Kind), At: l.At, Turn: l.Turn, Text: text(l.Text), Tool: maybe(l.Tool, toolOf), In: maybe(l.In, messageOf), Out: maybe(l.Out, sentOf),
	}
}

func sentOf(o message.Out) api.Sent {
	return api.Sent{
		ID: string(o.ID), Chat: string(o.Chat), Lane: string(o.Lane), Turn: o.Turn, Question: string(o.Question), Text: text(o.Text), At: o.At,
		Card: string(o.Card), Unseen: o.Card.Host() && o.Delivered == nil, Change: string(o.Change), Digits: o.Digits,
	}
}

func toolOf(t conversation.Tool) api.InFlight {
	return api.InFlight{Name: text(t.Name), Title: text(t.Title), Started: t.Started, DeclaredMS: t.Declared.Milliseconds()}
}

func messageOf(m message.In) api.Message {
	out := api.Message{
		ID: string(m.ID), Chat: string(m.Chat), Kind: string(m.Kind), Sender: text(m.Sender), Agent: m.OfAgent(), Text: text(m.Text),
		At: m.At, Trigger: m.Trigger,
		Status: string(m.Status), Tries: m.Tries, Due: m.Due, Turn: m.Turn, Reason: text(m.Reason), Ended: m.Ended, Task: string(m.Task),
		Question: text(m.Question),
	}
	if m.Recurrence != nil {
		out.Repeat, out.Zone = text(m.Recurrence.Spec), text(m.Recurrence.Zone)
	}
	if d := m.Decides; d != nil {
		if out.Decides = string(d.Does); d.Kind != decide.Decided || d.Problem != "" {
			out.Decides = api.DecidesNothing
		}
	}
	return out
}

func chatOf(s dispatch.Seen) api.Chat {
	return api.Chat{
		ID: string(s.ID), Group: string(s.Group), Conversation: string(s.Conversation), Platform: s.Platform, Session: string(s.Identity), Agent: s.Agent,
		Tree: string(s.Tree), Turns: s.Turn, Live: s.Live, Working: s.Working, Tool: maybe(s.Tool, toolOf), Waiting: s.Waiting,
		Dead: s.Dead, Last: s.Last, Created: s.Created,
	}
}
