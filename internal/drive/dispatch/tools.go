package dispatch

import (
	"context"
	"strings"

	"sallyport/internal/base/audit"
	"sallyport/internal/base/id"
	"sallyport/internal/base/inert"
	"sallyport/internal/base/problem"
	"sallyport/internal/base/zone"
	"sallyport/internal/chat/conversation"
	"sallyport/internal/chat/message"
	"sallyport/internal/chat/prompt"
	"sallyport/internal/chat/schedule"
	"sallyport/internal/drive/ledger"
	"sallyport/internal/drive/live"
	"sallyport/internal/port/tool"
	"sallyport/internal/store"
)

// sentMax is how many messages one turn sends at the most, before its end: a turn has no other bound in time (CH-080).
const sentMax = 500

// sentBytesMax is how many bytes one turn sends so at the most: what its answer may have, sixteen times.
const sentBytesMax = 1 << 20

// tasksMax is how many tasks a chat has at the most.
const tasksMax = 100

// handlers are the tools of a standing group, as its session has them: without those that are off.
func (w *worker) handlers(s *session) map[tool.Name]live.Handler {
	if w.dev != nil {
		return w.dev.handlers(s)
	}
	chat := w.chat
	wishes := wisher{w.Dispatcher, chat.ID, chat.Group}
	agent := func(verb tool.Name, do func(ctx context.Context, tx store.Tx, c tool.Call) (tool.Result, error)) live.Handler {
		return func(ctx context.Context, c tool.Call) (r tool.Result, err error) {
			err = w.DB.InTx(ctx, func(tx store.Tx) error {
				if r, err = do(ctx, tx, c); err != nil {
					return err
				}
				return tx.AppendEntry(ctx, audit.Entry{
					At: ledger.Now(), Actor: audit.Actor{Kind: "agent", Name: string(s.run.Session.ID), UID: -1}, Subject: string(chat.ID), Verb: string(verb),
				})
			})
			return r, err
		}
	}
	var sent sentBytes
	all := map[tool.Name]live.Handler{
		tool.SendMessage: wishes.sender(sent.bounded(s.number,
			agent(tool.SendMessage, func(ctx context.Context, tx store.Tx, c tool.Call) (tool.Result, error) {
				return w.send(ctx, tx, chat, s.number(), c)
			}))),
		tool.RequestDevChanges: wishes.requestSwap(s),
		tool.AskUserQuestion: agent(tool.AskUserQuestion, func(ctx context.Context, tx store.Tx, c tool.Call) (tool.Result, error) {
			return w.ask(ctx, tx, chat, s.number(), c)
		}),
		tool.ScheduleTask: agent(tool.ScheduleTask, func(ctx context.Context, tx store.Tx, c tool.Call) (tool.Result, error) {
			return w.plan(ctx, tx, chat, c)
		}),
		tool.ListTasks: func(ctx context.Context, _ tool.Call) (r tool.Result, err error) {
			err = w.DB.Read(ctx, func(tx store.Tx) error {
				r, err = w.list(ctx, tx, chat)
				return err
			})
			return r, err
		},
		tool.CancelTask: agent(tool.CancelTask, func(ctx context.Context, tx store.Tx, c tool.Call) (tool.Result, error) {
			task := id.Task(c.Args.(tool.Cancel).Task)
			if err := w.cancelTask(ctx, tx, chat.ID, task); err != nil {
				return tool.Result{}, err
			}
			return tool.Result{Text: "The task " + string(task) + " is cancelled.", ID: string(task)}, nil
		}),
	}
	all[tool.SendMessage] = live.Counted(s.number, all[tool.SendMessage])
	for name, do := range all {
		all[name] = s.heeding(do)
	}
	return all
}

// heeding does nothing of a tool in a turn that shows only whether the agent answers: what a version on trial asks for, nobody has wished.
func (s *session) heeding(do live.Handler) live.Handler {
	return func(ctx context.Context, c tool.Call) (tool.Result, error) {
		if s.tries() {
			return tool.Result{}, problem.Errorf(problem.Refused, "", "in this turn the host only looks whether you answer: no tool works in it")
		}
		return do(ctx, c)
	}
}

// sentBytes is how much a turn has sent. A later try of the turn counts from the beginning.
type sentBytes struct {
	turn, bytes int
}

// bounded sends only what there is room for. Calls come one after the other: live.Counted does it.
func (b *sentBytes) bounded(turn func() int, send live.Handler) live.Handler {
	return func(ctx context.Context, c tool.Call) (tool.Result, error) {
		if now := turn(); now != b.turn {
			*b = sentBytes{turn: now}
		}
		n := len(c.Args.(tool.Message).Text)
		if b.bytes+n > sentBytesMax {
			return tool.Result{}, problem.Errorf(problem.Refused, "",
				"this turn has sent %d bytes in messages, and %d is the limit; what else there is to say goes into its answer, or into the next turn", b.bytes, sentBytesMax)
		}
		r, err := send(ctx, c)
		if err == nil {
			b.bytes += n
		}
		return r, err
	}
}

// sender sends words to the group's dev agent, if they are for it, and all others into the conversation.
func (w wisher) sender(send live.Handler) live.Handler {
	return func(ctx context.Context, c tool.Call) (tool.Result, error) {
		m := c.Args.(tool.Message)
		if m.To == "" {
			return send(ctx, c)
		}
		told, err := w.tellDev(ctx, m.To, w.Secrets.Redact(prompt.Strip(m.Text)), c.Key())
		return tool.Result{Text: told}, err
	}
}

// number is the turn of the chat that is under way.
func (b *beat) number() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.turn
}

// send puts words into the conversation in the middle of a turn (CH-083); the same call in a later try of the turn sends nothing more.
func (w *worker) send(ctx context.Context, tx store.Tx, chat conversation.Chat, turn int, c tool.Call) (tool.Result, error) {
	text := w.Secrets.Redact(prompt.Strip(c.Args.(tool.Message).Text))
	if text == "" {
		return tool.Result{Text: "There was nothing to send."}, nil
	}
	o, err := tx.PutOut(ctx, message.Out{ID: id.NewOut(), Chat: chat.ID, Lane: message.Talk, Turn: turn, Call: c.Key(), Text: text, At: ledger.Now()})
	if err == nil && o.Number > sentMax {
		return tool.Result{}, problem.Errorf(problem.Refused, "",
			"this turn has sent %d messages, the limit; what else there is to say goes into its answer, or into the next turn", sentMax)
	}
	return tool.Result{Text: "It is sent.", ID: string(o.ID)}, err
}

// plan makes a task of a call; the same call for the same message makes it once.
func (w *worker) plan(ctx context.Context, tx store.Tx, chat conversation.Chat, c tool.Call) (tool.Result, error) {
	task := id.TaskOf(c.Key())
	made, err := tx.Ins(ctx, message.Filter{Chat: chat.ID, Task: task, Newest: true, Limit: 1})
	if err != nil {
		return tool.Result{}, err
	}
	if len(made) > 0 && made[0].Status != message.Dead && !made[0].Cancelled() {
		return w.planned(made[0]), nil
	}
	if len(made) > 0 { // it was cancelled, and is wished again
		task = id.NewTask()
	}

	args := c.Args.(tool.Schedule)
	s := schedule.Schedule{Group: string(chat.Group), Conversation: string(chat.Conversation), Kind: schedule.Once, Zone: w.Zone().String(),
		Text: w.Secrets.Redact(args.Text)}
	switch {
	case args.Cron != "":
		s.Kind, s.Spec = schedule.Cron, args.Cron
	case args.Interval != "":
		s.Kind, s.Spec = schedule.Interval, args.Interval
	}
	m, err := w.addTask(ctx, tx, chat.ID, task, s, args.ProcessAfter)
	return w.planned(m), err
}

// planned tells an agent of a task.
func (w *worker) planned(m message.In) tool.Result {
	return tool.Result{Text: "It is scheduled, next for " + zone.Format(m.Due, w.Zone()) + ".", ID: string(m.Task)}
}

// addTask stores a task with its first run.
func (d *Dispatcher) addTask(ctx context.Context, tx store.Tx, chat id.Chat, task id.Task, s schedule.Schedule, first string) (m message.In, err error) {
	now := ledger.Now()
	if s, err = schedule.New(s, first, now); err != nil {
		return m, err
	}
	tasks, err := tx.Ins(ctx, message.Filter{Chat: chat, Status: []message.Status{message.Pending}, Tasks: true})
	if err != nil {
		return m, err
	}
	if len(tasks) >= tasksMax {
		return m, problem.Errorf(problem.Refused, "sallyport schedule list", "the conversation has %d tasks; %d is the limit", len(tasks), tasksMax)
	}
	m = message.In{
		ID: id.NewMessage(), Chat: chat, Kind: prompt.Task, Trigger: true, Text: s.Text, At: s.NextRun, Status: message.Pending, Due: s.NextRun,
		Task: task, Recurrence: &s,
	}
	return tx.PutIn(ctx, m)
}

// list tells the tasks of a chat.
func (w *worker) list(ctx context.Context, tx store.Tx, chat conversation.Chat) (tool.Result, error) {
	tasks, err := tx.Ins(ctx, message.Filter{Chat: chat.ID, Status: []message.Status{message.Pending}, Tasks: true})
	if err != nil {
		return tool.Result{}, err
	}
	r := tool.Result{Text: "There are no tasks."}
	for _, m := range tasks {
		t := tool.Task{ID: string(m.Task), Text: m.Text, Next: zone.Format(m.Due, w.Zone())}
		if m.Recurrence != nil {
			t.Repeat = m.Recurrence.Spec
		}
		r.Tasks = append(r.Tasks, t)
	}
	if len(r.Tasks) > 0 {
		r.Text = "These tasks are scheduled."
	}
	ended, err := stoppedTasks(ctx, tx, chat.ID)
	for _, m := range ended[max(0, len(ended)-tasksMax):] {
		r.Text = "These tasks are scheduled, or were and are stopped."
		r.Tasks = append(r.Tasks, tool.Task{
			ID: string(m.Task), Text: m.Text, Repeat: m.Recurrence.Spec,
			Next: "stopped, for it was not done: " + inert.Short(m.Reason, reasonMax) +
				"; a person has it come again by sallyport message retry " + string(m.ID),
		})
	}
	shorten(&r)
	return r, err
}

// shorten cuts the words of tasks until the answer has room for all of them: what is not listed cannot be cancelled.
func shorten(r *tool.Result) {
	for most := message.TextBytesMax; most > 0 && !tool.Fits(*r); most /= 2 {
		for i, t := range r.Tasks {
			if len(t.Text) > most {
				r.Tasks[i].Text = inert.Head(t.Text, most) + "…"
			}
		}
	}
}

// cancelTask ends a task: what waits of it is done with, and it does not come again. Errors: problem.NotFound.
func (d *Dispatcher) cancelTask(ctx context.Context, tx store.Tx, chat id.Chat, task id.Task) error {
	all, err := tx.Ins(ctx, message.Filter{Chat: chat, Task: task, Status: []message.Status{message.Pending, message.Processing, message.Dead}})
	if err != nil {
		return err
	}
	open := false
	for _, m := range all {
		if m.Recurrence == nil && m.Status != message.Pending {
			continue
		}
		open = true
		from := m.Status
		m.Recurrence = nil
		if from == message.Pending {
			at := ledger.Now()
			m.Status, m.Turn, m.Reason, m.Ended = message.Completed, 0, "the task was cancelled", &at
		}
		if err := tx.MoveIn(ctx, from, m.Fence, m); err != nil {
			return err
		}
	}
	if !open {
		return problem.Errorf(problem.NotFound, "sallyport schedule list", "there is no task %q", inert.Short(strings.TrimSpace(string(task)), 40))
	}
	return nil
}

// Plan schedules a task in a person's chat with a group; first is a time by the user's clock.
func (d *Dispatcher) Plan(ctx context.Context, chat conversation.Chat, s schedule.Schedule, first string, by audit.Actor) (m message.In, err error) {
	s.Group, s.Conversation, s.Zone = string(chat.Group), string(chat.Conversation), d.Zone().String()
	err = d.DB.InTx(ctx, func(tx store.Tx) error {
		if m, err = d.addTask(ctx, tx, chat.ID, id.NewTask(), s, first); err != nil {
			return err
		}
		return tx.AppendEntry(ctx, audit.Entry{At: ledger.Now(), Actor: by, Subject: string(m.Task), Verb: "task scheduled"})
	})
	return m, err
}

// Unplan cancels a task. Errors: problem.NotFound.
func (d *Dispatcher) Unplan(ctx context.Context, task id.Task, by audit.Actor) error {
	return d.DB.InTx(ctx, func(tx store.Tx) error {
		if err := d.cancelTask(ctx, tx, "", task); err != nil {
			return err
		}
		return tx.AppendEntry(ctx, audit.Entry{At: ledger.Now(), Actor: by, Subject: string(task), Verb: "task cancelled"})
	})
}

// Tasks are those that wait, of all chats, and after them those that are stopped.
func (d *Dispatcher) Tasks(ctx context.Context) (all []message.In, err error) {
	err = d.DB.Read(ctx, func(tx store.Tx) error {
		if all, err = tx.Ins(ctx, message.Filter{Status: []message.Status{message.Pending, message.Processing}, Tasks: true}); err != nil {
			return err
		}
		ended, err := stoppedTasks(ctx, tx, "")
		all = append(all, ended...)
		return err
	})
	return all, err
}

// reasonMax is how much of why a task is stopped its agent is told, in bytes.
const reasonMax = 300
