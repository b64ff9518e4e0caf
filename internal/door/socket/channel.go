package socket

import (
	"context"

	"sallyport/internal/base/audit"
	"sallyport/internal/base/id"
	"sallyport/internal/base/problem"
	"sallyport/internal/chat/conversation"
	"sallyport/internal/chat/message"
	"sallyport/internal/chat/wiring"
	"sallyport/internal/door/api"
	"sallyport/internal/drive/channels"
	"sallyport/internal/who/question"
)

// Places are the platforms that people speak on, and who hears what there.
type Places interface {
	// Add adds a channel, which connects at once. Errors: conflict if the name is taken.
	Add(ctx context.Context, c conversation.Channel, by audit.Actor) (channels.Standing, error)
	// List returns the channels as they stand, by name.
	List(ctx context.Context) ([]channels.Standing, error)
	// Show returns one. Errors: not found.
	Show(ctx context.Context, name string) (channels.Standing, error)
	// Remove ends and removes one.
	Remove(ctx context.Context, name string, by audit.Actor) (channels.Gone, error)
	// Waiting returns the questions about strangers and places that wait for their answer, oldest first.
	Waiting(ctx context.Context) ([]question.Question, error)
	// Answered returns those that have ended, newest first.
	Answered(ctx context.Context, limit int) ([]question.Question, error)
	// Question returns one of them, whether it waits or not. Errors: not found.
	Question(ctx context.Context, of id.Question) (question.Question, error)
	// Answer answers one in words that its card takes, and says what came of it. Errors: usage, conflict if it was answered.
	Answer(ctx context.Context, of id.Question, words string, by audit.Actor) (told string, err error)
	// Wirings returns the conversations of a channel, or of all for "".
	Wirings(ctx context.Context, channel string) ([]channels.Wired, error)
	// Wire has a group hear a conversation.
	Wire(ctx context.Context, of id.Conversation, n channels.Wish, by audit.Actor) (channels.Wired, error)
	// Unwire has a group hear a conversation no more.
	Unwire(ctx context.Context, of id.Conversation, group string, by audit.Actor) (channels.Wired, error)
	// SetPolicy says what becomes of strangers in a conversation.
	SetPolicy(ctx context.Context, of id.Conversation, policy conversation.Policy, by audit.Actor) (channels.Wired, error)
	// Import stores wirings of older data, all or none.
	Import(ctx context.Context, rows []channels.OldRow, by audit.Actor) ([]channels.Wired, error)
}

// places answers a person who sets up where groups are spoken with.
type places struct{ part Places }

func (n places) add(ctx context.Context, by audit.Actor, in api.NewChannel) (api.Channel, error) {
	s, err := n.part.Add(ctx, conversation.Channel{Name: in.Name, Platform: in.Platform, Settings: in.Settings, Credential: in.Credential}, by)
	return channelOf(s), err
}

func (n places) list(ctx context.Context, _ audit.Actor, _ api.Nothing) ([]api.Channel, error) {
	all, err := n.part.List(ctx)
	return each(all, channelOf), err
}

func (n places) show(ctx context.Context, _ audit.Actor, name string) (api.Channel, error) {
	s, err := n.part.Show(ctx, name)
	return channelOf(s), err
}

func (n places) remove(ctx context.Context, by audit.Actor, name string) (api.Removed, error) {
	gone, err := n.part.Remove(ctx, name, by)
	return api.Removed{Name: name, Wirings: gone.Wirings, Waiting: gone.Waiting}, err
}

func (n places) wirings(ctx context.Context, _ audit.Actor, in api.OfChannel) ([]api.Conversation, error) {
	all, err := n.part.Wirings(ctx, in.Channel)
	return each(all, wiredOf), err
}

func (n places) wire(ctx context.Context, by audit.Actor, in api.SetWiring) (api.Conversation, error) {
	w, err := n.part.Wire(ctx, id.Conversation(in.Conversation), channels.Wish{
		Group: in.Group, Mode: wiring.Mode(in.Mode), Pattern: in.Pattern, Scope: wiring.Scope(in.Scope), Ignored: wiring.Ignored(in.Ignored),
	}, by)
	return wiredOf(w), err
}

func (n places) unwire(ctx context.Context, by audit.Actor, in api.DropWiring) (api.Conversation, error) {
	w, err := n.part.Unwire(ctx, id.Conversation(in.Conversation), in.Group, by)
	return wiredOf(w), err
}

func (n places) policy(ctx context.Context, by audit.Actor, in api.SetPolicy) (api.Conversation, error) {
	w, err := n.part.SetPolicy(ctx, id.Conversation(in.Conversation), conversation.Policy(in.Policy), by)
	return wiredOf(w), err
}

func (n places) bring(ctx context.Context, by audit.Actor, in api.OldWirings) ([]api.Conversation, error) {
	rows := each(in.Rows, func(r api.OldWiring) channels.OldRow {
		return channels.OldRow{Old: wiring.Old{Scope: r.Scope, Rules: r.Rules}, Where: r.Conversation, Group: r.Group}
	})
	all, err := n.part.Import(ctx, rows, by)
	return each(all, wiredOf), err
}

func channelOf(s channels.Standing) api.Channel {
	out := api.Channel{
		Name: s.Name, Platform: s.Platform, Settings: s.Settings, Credential: text(s.Credential), Added: s.Added, Status: api.ChannelAway,
		Since: s.Since, Account: text(s.Account), Reason: text(s.Reason), LostIn: text(s.LostIn),
		Waiting: s.Counts[message.Waiting], Sent: s.Counts[message.Sent], Dead: s.Counts[message.Undelivered], Failed: s.Failed,
		Newest: each(s.Newest, func(d message.Delivery) api.Undelivered {
			return api.Undelivered{Message: string(d.Out), Conversation: string(d.Conversation), Reason: text(d.Reason), Ended: d.Ended}
		}),
	}
	switch {
	case s.Connected:
		out.Status = api.ChannelConnected
	case s.Reason == "":
		out.Status = api.ChannelConnecting
	}
	if !s.Lost.IsZero() {
		out.Lost = &s.Lost
	}
	return out
}

func wiredOf(w channels.Wired) api.Conversation {
	broken := w.Broken()
	return api.Conversation{
		ID: string(w.ID), Channel: w.Platform, Address: text(w.Address), Kind: string(w.Kind), Name: text(w.Name), Policy: string(w.Policy), Created: w.Created,
		Wirings: each(w.Wirings, func(r wiring.Wiring) api.Wiring {
			out := api.Wiring{Group: string(r.Group), Mode: string(r.Mode), Pattern: text(r.Pattern), Scope: string(r.Scope), Ignored: string(r.Ignored)}
			if err := broken[r.Group]; err != nil {
				out.Problem = text(problem.Of(err).Text)
			}
			return out
		}),
	}
}
