package matrix

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"maunium.net/go/mautrix"
	"maunium.net/go/mautrix/id"

	"sallyport/internal/base/inert"
	"sallyport/internal/base/problem"
	"sallyport/internal/port/channel"
	"sallyport/internal/port/channel/web"
)

const (
	invitesMax = 1000            // that wait
	inviteGap  = time.Second     // between two rooms that are entered
	roomsMax   = 5000            // that are remembered
	namesMax   = 1000            // that are remembered of one room
	laterMin   = 5 * time.Second // where the server names no time
)

// session is a driver that has a token.
type session struct {
	client  *mautrix.Client
	l       channel.Listener
	invites string
	pending chan invite

	mu     sync.Mutex
	rooms  map[id.RoomID]*room
	joined map[id.RoomID]struct{}    // rooms that we were seen in
	direct map[id.UserID][]id.RoomID // as the account's data has it
}

// invite is a room that we are asked into.
type invite struct {
	room   id.RoomID
	by     id.UserID
	direct bool
}

// room is what is known of a room; the session's mu guards it.
type room struct {
	name    string // "" = has none
	named   bool   // name was asked for
	names   map[id.UserID]string
	private *id.UserID  // the one who is in it beside us; "" = nobody, or several; nil = not known
	hidden  *bool       // that it is encrypted; nil = not known
	told    bool        // that we cannot read it
	makers  []id.UserID // who made it, and rules it for ever; nil = not known
}

// of returns what is known of a room; mu is held.
func (s *session) of(name id.RoomID) *room {
	r := s.rooms[name]
	if r == nil {
		if len(s.rooms) >= roomsMax {
			clear(s.rooms)
		}
		r = &room{names: map[id.UserID]string{}}
		s.rooms[name] = r
	}
	return r
}

// get asks the server for something.
func (s *session) get(ctx context.Context, into any, query map[string]string, path ...any) error {
	return s.request(ctx, http.MethodGet, nil, into, query, path...)
}

// request speaks with the server. Errors: channel.ErrDead for what it will never take; *channel.Later; problem.Denied for a bad token.
func (s *session) request(ctx context.Context, method string, body, into any, query map[string]string, path ...any) error {
	_, err := s.client.MakeFullRequest(ctx, mautrix.FullRequest{
		Method: method, URL: s.client.BuildURLWithQuery(mautrix.ClientURLPath(path), query), RequestJSON: body, ResponseJSON: into, MaxAttempts: 1,
	})
	if err == nil {
		return nil
	}
	var answer mautrix.HTTPError
	if !errors.As(err, &answer) || answer.Response == nil {
		return problem.Errorf(problem.Unavailable, "", "%w: speak with %s: %w", channel.ErrAway, s.client.HomeserverURL.Host, unwrapped(err))
	}
	status, code, text := answer.Response.StatusCode, "", http.StatusText(answer.Response.StatusCode)
	if answer.RespError != nil {
		code, text = answer.RespError.ErrCode, answer.RespError.Err
	}
	says := strconv.Itoa(status) + " " + inert.Short(code+" "+text, 200)
	switch host := s.client.HomeserverURL.Host; {
	case status == http.StatusTooManyRequests:
		return later(answer)
	case status == http.StatusUnauthorized:
		return problem.Errorf(problem.Denied, "", "%s does not take the access token: %s", host, says)
	case status == http.StatusRequestTimeout || status >= 500 || status < 400:
		return problem.Errorf(problem.Unavailable, "", "%s says %s", host, says)
	case status == http.StatusNotFound:
		return problem.Case(channel.ErrDead, "", "%s says %s, %w", host, says, errNone)
	default:
		return problem.Case(channel.ErrDead, "", "%s says %s", host, says)
	}
}

// errNone says that there is no such thing.
var errNone = errors.New("there is none")

// unwrapped is what went wrong, without the address that was asked.
func unwrapped(err error) error {
	var answer mautrix.HTTPError
	if errors.As(err, &answer) && answer.WrappedError != nil {
		err = answer.WrappedError
	}
	var at interface{ Unwrap() error }
	if errors.As(err, &at) && at.Unwrap() != nil {
		return at.Unwrap()
	}
	return err
}

// later reads for how long the server takes nothing.
func later(answer mautrix.HTTPError) error {
	seconds := max(web.Seconds(answer.Response.Header), laterMin.Seconds())
	if answer.RespError != nil {
		if ms, ok := answer.RespError.ExtraData["retry_after_ms"].(float64); ok {
			seconds = ms / 1000
		}
	}
	return web.Later(seconds, true)
}

// ownNames are the names by which people mention us.
func (s *session) ownNames(ctx context.Context) []string {
	names := []string{string(s.client.UserID), s.client.UserID.Localpart()}
	var profile struct {
		Name string `json:"displayname"`
	}
	if err := s.get(ctx, &profile, nil, "v3", "profile", s.client.UserID, "displayname"); err == nil && profile.Name != "" &&
		!slices.Contains(names, profile.Name) {
		names = append(names, profile.Name)
	}
	return names
}

// state reads one piece of a room's state; false if it has none, or we may not see it.
func (s *session) state(ctx context.Context, room id.RoomID, kind string, into any) (bool, error) {
	err := s.get(ctx, into, nil, "v3", "rooms", room, "state", kind, "")
	if errors.Is(err, channel.ErrDead) {
		return false, nil
	}
	return err == nil, err
}

// joinAll enters rooms that we are asked into, one after the other.
func (s *session) joinAll(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case i := <-s.pending:
			if err := s.join(ctx, i); err != nil {
				continue // it is gone, or they ask again
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(inviteGap):
		}
	}
}

// join enters a room, and notes when it is one for somebody alone.
func (s *session) join(ctx context.Context, i invite) error {
	if i.direct { // first, so that the first message is known to be for us alone
		if err := s.addDirect(ctx, i.by, i.room); err != nil {
			return err
		}
	}
	return s.request(ctx, http.MethodPost, struct{}{}, nil, nil, "v3", "rooms", i.room, "join")
}

// invited notes a room that we are asked into.
func (s *session) invited(i invite) {
	same := i.by.Homeserver() == s.client.UserID.Homeserver()
	if i.by == "" || s.invites == "none" || s.invites == "server" && !same {
		return
	}
	select {
	case s.pending <- i:
	default: // more than anybody means: they ask again
	}
}

// loadDirect reads which rooms are for one person alone.
func (s *session) loadDirect(ctx context.Context) error {
	direct := map[id.UserID][]id.RoomID{}
	err := s.get(ctx, &direct, nil, "v3", "user", s.client.UserID, "account_data", "m.direct")
	if err != nil && !errors.Is(err, channel.ErrDead) {
		return err
	}
	s.mu.Lock()
	s.direct = direct
	s.mu.Unlock()
	return nil
}

// addDirect has the account remember that a room is for one person alone.
func (s *session) addDirect(ctx context.Context, user id.UserID, room id.RoomID) error {
	s.mu.Lock()
	all := map[id.UserID][]id.RoomID{user: {room}}
	for u, rooms := range s.direct {
		if len(all) < roomsMax {
			all[u] = append(all[u], slices.DeleteFunc(slices.Clone(rooms), func(r id.RoomID) bool { return r == room })...)
		}
	}
	s.direct = all
	s.of(room).private = nil
	s.mu.Unlock()
	return s.request(ctx, http.MethodPut, all, nil, nil, "v3", "user", s.client.UserID, "account_data", "m.direct")
}

// isDirect reports whether the account remembers a room as for one person alone; mu is held.
func (s *session) isDirect(room id.RoomID) bool {
	for _, rooms := range s.direct {
		if slices.Contains(rooms, room) {
			return true
		}
	}
	return false
}

// others are who is in a room, or asked into it, beside us.
func (s *session) others(ctx context.Context, room id.RoomID) (all []id.UserID, err error) {
	var members struct {
		Chunk []raw `json:"chunk"`
	}
	if err := s.get(ctx, &members, nil, "v3", "rooms", room, "members"); err != nil {
		return nil, err
	}
	for _, m := range members.Chunk {
		if e, ok := m.event(); ok && e.StateKey != nil && id.UserID(*e.StateKey) != s.client.UserID {
			if is := e.member().Membership; is == "join" || is == "invite" || is == "knock" {
				all = append(all, id.UserID(*e.StateKey))
			}
		}
	}
	return all, nil
}

// makers are who made a room: they may have it read by whom they want, also when they have left it. nil: it does not say.
func (s *session) makers(ctx context.Context, name id.RoomID) ([]id.UserID, error) {
	s.mu.Lock()
	known := s.of(name).makers
	s.mu.Unlock()
	if known != nil {
		return known, nil
	}
	var state []raw
	if err := s.get(ctx, &state, nil, "v3", "rooms", name, "state"); err != nil {
		return nil, err
	}
	var makers []id.UserID
	for _, r := range state {
		if e, ok := r.event(); ok && e.Type == "m.room.create" && e.StateKey != nil && *e.StateKey == "" {
			makers = append([]id.UserID{id.UserID(e.Sender)}, field[[]id.UserID](e.Content, "additional_creators")...)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.of(name).makers = makers
	return makers, nil
}

// theirs reports whether a room was made by somebody or by us, and by nobody else.
func (s *session) theirs(ctx context.Context, name id.RoomID, user id.UserID) (bool, error) {
	makers, err := s.makers(ctx, name)
	others := slices.ContainsFunc(makers, func(m id.UserID) bool { return m != user && m != s.client.UserID })
	return err == nil && len(makers) > 0 && !others, err
}

// place says what a room is.
func (s *session) place(ctx context.Context, name id.RoomID) (channel.Place, error) {
	s.mu.Lock()
	r, marked := s.of(name), s.isDirect(name)
	private, named := r.private, r.named
	s.mu.Unlock()
	if marked && private == nil {
		others, err := s.others(ctx, name)
		if err != nil && !errors.Is(err, channel.ErrDead) {
			return channel.Place{}, err
		}
		private = new(id.UserID)
		if err == nil && len(others) == 1 {
			theirs, err := s.theirs(ctx, name, others[0])
			if err != nil && !errors.Is(err, channel.ErrDead) {
				return channel.Place{}, err
			}
			if theirs {
				private = &others[0]
			}
		}
	}
	if !named {
		var content struct {
			Name string `json:"name"`
		}
		if _, err := s.state(ctx, name, "m.room.name", &content); err != nil {
			return channel.Place{}, err
		}
		s.mu.Lock()
		r.name, r.named = content.Name, true
		s.mu.Unlock()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	r.private = private
	p := channel.Place{Address: string(name), Kind: channel.Threaded, Name: r.name}
	if marked && *private != "" {
		p.Kind = channel.Direct
		p.Name = cmp.Or(strings.TrimSpace(p.Name), r.names[*private], private.Localpart())
	}
	p.Name = cmp.Or(strings.TrimSpace(p.Name), string(name))
	return p, nil
}

// isHidden reports whether a room is encrypted.
func (s *session) isHidden(ctx context.Context, name id.RoomID) (bool, error) {
	s.mu.Lock()
	known := s.of(name).hidden
	s.mu.Unlock()
	if known != nil {
		return *known, nil
	}
	var content struct{}
	hidden, err := s.state(ctx, name, "m.room.encryption", &content)
	if err != nil {
		return false, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if r := s.of(name); r.hidden == nil {
		r.hidden = &hidden
	}
	return hidden, nil
}
