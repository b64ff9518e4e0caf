package socket

import (
	"context"
	"io"
	"slices"

	"sallyport/internal/base/audit"
	"sallyport/internal/door/api"
	"sallyport/internal/rule/right"
)

// ruled are the people of the groups that whoever asks decides about, with what they are there.
func (s *Server) ruled(ctx context.Context, by audit.Actor, _ api.Nothing) ([]api.Person, error) {
	_, held, err := s.People.Recognize(ctx, by)
	if err != nil {
		return nil, err
	}
	all, err := members{s.Members}.list(ctx, by, api.Nothing{})
	out := []api.Person{}
	for _, p := range all {
		if p = ruledPerson(held, p); len(p.Roles) > 0 {
			out = append(out, p)
		}
	}
	return out, err
}

// ruledRole gives or takes a role, and shows what somebody is then in the groups that whoever asks decides about.
func (s *Server) ruledRole(ctx context.Context, by audit.Actor, in api.SetRole) (api.Person, error) {
	_, held, err := s.People.Recognize(ctx, by)
	if err != nil {
		return api.Person{}, err
	}
	p, err := members{s.Members}.role(ctx, by, in)
	return ruledPerson(held, p), err
}

// ruledPerson is somebody with their roles in the groups that the holder of roles decides about.
func ruledPerson(held []right.Held, p api.Person) api.Person {
	p.Roles = slices.DeleteFunc(p.Roles, func(r api.Role) bool { return !right.Decides(held, r.Group) })
	return p
}

// ruledPlaces are the conversations that a group hears about which whoever asks decides, with the wirings of such groups.
func (s *Server) ruledPlaces(ctx context.Context, by audit.Actor, in api.OfChannel) ([]api.Conversation, error) {
	_, held, err := s.People.Recognize(ctx, by)
	if err != nil {
		return nil, err
	}
	all, err := places{s.Places}.wirings(ctx, by, in)
	out := []api.Conversation{}
	for _, c := range all {
		if c = ruledPlace(held, c); len(c.Wirings) > 0 || right.Decides(held, "") {
			out = append(out, c)
		}
	}
	return out, err
}

// ruledPolicy says what becomes of strangers in a conversation, and shows it as ruledPlaces does.
func (s *Server) ruledPolicy(ctx context.Context, by audit.Actor, in api.SetPolicy) (api.Conversation, error) {
	_, held, err := s.People.Recognize(ctx, by)
	if err != nil {
		return api.Conversation{}, err
	}
	c, err := places{s.Places}.policy(ctx, by, in)
	return ruledPlace(held, c), err
}

// ruledPlace is a conversation with the wirings of groups that the holder of roles decides about.
func ruledPlace(held []right.Held, c api.Conversation) api.Conversation {
	c.Wirings = slices.DeleteFunc(c.Wirings, func(w api.Wiring) bool { return !right.Decides(held, w.Group) })
	return c
}

// watching tells somebody what is said in their chat with a group.
type watching func(ctx context.Context, by audit.Actor, in api.WatchChat, out io.Writer) error

// watchWhile has somebody told that only for as long as they may ask for it: their role is looked at before each piece.
func (s *Server) watchWhile(watch watching) watching {
	return func(ctx context.Context, by audit.Actor, in api.WatchChat, out io.Writer) error {
		return watch(ctx, by, in, permitted{out, func() error {
			_, held, err := s.People.Recognize(ctx, by)
			if err != nil {
				return err
			}
			return right.May(right.Asker{Held: held, Root: by.UID == 0}, api.ChatWatch.Pattern(), in.Group)
		}})
	}
}

// permitted writes what may be written at that moment.
type permitted struct {
	io.Writer
	may func() error
}

func (p permitted) Write(piece []byte) (int, error) {
	if err := p.may(); err != nil {
		return 0, err
	}
	return p.Writer.Write(piece)
}
