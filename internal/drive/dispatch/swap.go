package dispatch

import (
	"context"
	"slices"
	"strings"

	"sallyport/internal/base/audit"
	"sallyport/internal/base/id"
	"sallyport/internal/base/inert"
	"sallyport/internal/base/problem"
	"sallyport/internal/chat/message"
	"sallyport/internal/chat/prompt"
	"sallyport/internal/drive/live"
	"sallyport/internal/drive/standing"
	"sallyport/internal/path/change"
	"sallyport/internal/port/tool"
	"sallyport/internal/store"
	"sallyport/internal/who/group"
)

// Swaps changes what groups run.
type Swaps interface {
	// RequestSwap begins a change of what a group runs. Errors: as of standing.Groups.RequestSwap.
	RequestSwap(ctx context.Context, w standing.Wish) (change.Row, error)
	// LastSwap is the change that a group asked for last. Errors: problem.NotFound if it never did.
	LastSwap(ctx context.Context, of group.Folder) (change.Row, error)
	// TellDev hands words to the agent that makes a change now. Errors: problem.Unavailable if it does not take them.
	TellDev(ctx context.Context, swap change.Row, words string) error
}

// wisher has what a group runs on changed for its agent. It knows of its chat only what never changes: it acts for calls of tools, beside
// the worker that moves the chat's row.
type wisher struct {
	*Dispatcher
	chat  id.Chat
	group group.Folder
}

// requestSwap has what the group runs changed (SM-020). The same call for the same message begins one change.
func (w wisher) requestSwap(s *session) live.Handler {
	return func(ctx context.Context, c tool.Call) (tool.Result, error) {
		args := c.Args.(tool.DevChanges)
		wish := standing.Wish{
			Change: id.ChangeOf(c.Key()), Group: w.group, Chat: w.chat, Message: id.Message(strings.TrimSpace(args.Message)),
			Text: w.Secrets.Redact(prompt.Strip(args.Summary)), By: audit.Actor{Kind: "agent", Name: string(s.run.Session.ID), UID: -1},
		}
		if args.DevAgentName != "" {
			wish.Dev = id.Slug(args.DevAgentName)
		}
		var err error
		if wish.Heard, err = w.heard(ctx, wish.Message, s.number()); err != nil {
			return tool.Result{}, err
		}
		row, err := w.Swaps.RequestSwap(ctx, wish)
		if err != nil {
			return tool.Result{}, err
		}
		w.retire(ctx, row.ID)
		return tool.Result{
			ID: string(row.ID),
			Text: "The change has begun. " + row.Request.Dev +
				" makes it on a copy; what it asks or says reaches you as messages from that name, and send_message with to: " +
				row.Request.Dev + " answers it.",
		}, nil
	}
}

// heard are the accounts whose words the agent answers in this turn: any of them may have wished it, whomever the agent names. A message that
// is not among them is refused, for whoever sent that wishes nothing now; "" names none.
func (w wisher) heard(ctx context.Context, wish id.Message, turn int) (who []string, err error) {
	err = w.DB.Read(ctx, func(tx store.Tx) error {
		all, err := tx.Ins(ctx, message.Filter{Chat: w.chat, Status: []message.Status{message.Processing}, Limit: waitingMax})
		there := wish == ""
		who = nil
		for _, m := range all {
			if !w.answers(m, turn) {
				continue
			}
			there = there || m.ID == wish
			if !slices.Contains(who, m.Identity) {
				who = append(who, m.Identity)
			}
		}
		if err == nil && !there {
			err = problem.Errorf(problem.Usage, "sallyport-tool request_dev_changes --help",
				"message: no person has said %q in what you answer now; give the id of a message of this turn as it was shown to you, or leave it out", inert.Short(string(wish), 40))
		}
		return err
	})
	return who, err
}

// answers reports whether a message is a person's, of the batch that a turn is about.
func (w wisher) answers(m message.In, turn int) bool {
	said := m.Kind == prompt.Chat || m.Kind == prompt.Answer
	return m.Chat == w.chat && said && m.Identity != "" && !m.OfAgent() && m.Status == message.Processing && m.Turn == turn
}
