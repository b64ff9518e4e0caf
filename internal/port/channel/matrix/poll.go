package matrix

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"maunium.net/go/mautrix/id"

	"sallyport/internal/port/channel"
)

const (
	// filter asks for what is said and what is known of rooms, with the member that each event is of.
	filter  = `{"presence":{"not_types":["*"]},"account_data":{"types":["m.direct"]},"room":{"ephemeral":{"not_types":["*"]},"account_data":{"not_types":["*"]},"state":{"types":["m.room.member","m.room.name","m.room.encryption"],"lazy_load_members":true,"include_redundant_members":true},"timeline":{"limit":100,"types":["m.room.message","m.room.encrypted","m.room.member","m.room.name","m.room.encryption"],"lazy_load_members":true}}}`
	gapPage = 100
	gapMax  = 20 // pages of one gap
)

// answer is what is read of a sync.
type answer struct {
	Next string `json:"next_batch"`
	Data events `json:"account_data"`
	Room struct {
		Join map[id.RoomID]struct {
			State    events `json:"state"`
			Timeline struct {
				Events  []raw  `json:"events"`
				Limited bool   `json:"limited"`
				Before  string `json:"prev_batch"`
			} `json:"timeline"`
		} `json:"join"`
		Invite map[id.RoomID]struct {
			State events `json:"invite_state"`
		} `json:"invite"`
		Leave map[id.RoomID]struct{} `json:"leave"`
	} `json:"rooms"`
}

type events struct {
	Events []raw `json:"events"`
}

// sync asks what is new since a cursor.
func (s *session) sync(ctx context.Context, since string, wait time.Duration) (answer, error) {
	query := map[string]string{"filter": filter, "timeout": strconv.FormatInt(wait.Milliseconds(), 10)}
	if since != "" {
		query["since"] = since
	}
	var a answer
	if err := s.get(ctx, &a, query, "v3", "sync"); err != nil {
		return answer{}, err
	}
	if a.Next == "" {
		return answer{}, fmt.Errorf("%w: %s does not say where it has come to", channel.ErrAway, s.client.HomeserverURL.Host)
	}
	return a, nil
}

// begin returns the cursor from which to go on: of a first session, what was said before is not heard.
func (s *session) begin(ctx context.Context, cursor string) (string, error) {
	if err := s.loadDirect(ctx); err != nil {
		return "", err
	}
	var rooms struct {
		Joined []id.RoomID `json:"joined_rooms"`
	}
	if err := s.get(ctx, &rooms, nil, "v3", "joined_rooms"); err != nil {
		return "", err
	}
	for _, name := range rooms.Joined {
		s.enters(name)
	}
	if cursor != "" {
		_, err := s.sync(ctx, cursor, 0)
		if !errors.Is(err, channel.ErrDead) {
			return cursor, err
		}
		s.l.Lost(ctx, "") // the server does not know the cursor any more
	}
	a, err := s.sync(ctx, "", 0)
	if err != nil {
		return "", err
	}
	for name, r := range a.Room.Join {
		s.noteAll(name, r.State.Events)
		s.noteAll(name, r.Timeline.Events)
	}
	s.invitedAll(a)
	return a.Next, s.l.Move(ctx, a.Next)
}

func (s *session) noteAll(room id.RoomID, all []raw) {
	for _, r := range all {
		if e, ok := r.event(); ok {
			s.note(room, e)
		}
	}
}

// invitedAll notes the rooms that we are asked into.
func (s *session) invitedAll(a answer) {
	for name, r := range a.Room.Invite {
		for _, r := range r.State.Events {
			if e, ok := r.event(); ok && e.Type == "m.room.member" && e.StateKey != nil && id.UserID(*e.StateKey) == s.client.UserID {
				s.invited(invite{room: name, by: id.UserID(e.Sender), direct: e.member().Direct})
			}
		}
	}
}

// poll waits for what is new, hands it over, and returns the next cursor.
func (s *session) poll(ctx context.Context, since string) (string, error) {
	a, err := s.sync(ctx, since, pollMax)
	var wait *channel.Later
	if errors.As(err, &wait) {
		select {
		case <-ctx.Done():
			return "", ctx.Err()
		case <-time.After(time.Until(wait.Until)):
			return since, nil
		}
	}
	if err != nil {
		return "", err
	}
	for _, r := range a.Data.Events {
		if e, ok := r.event(); ok && e.Type == "m.direct" {
			if err := s.loadDirect(ctx); err != nil {
				return "", err
			}
		}
	}
	s.invitedAll(a)
	s.left(a)
	var said []channel.Event
	for _, name := range slices.Sorted(maps.Keys(a.Room.Join)) {
		heard, err := s.room(ctx, name, a, since)
		if err != nil {
			return "", err
		}
		said = append(said, heard...)
	}
	return a.Next, s.handOver(ctx, said, a.Next)
}

// room is what was said in a room since a cursor.
func (s *session) room(ctx context.Context, name id.RoomID, a answer, since string) (said []channel.Event, err error) {
	r := a.Room.Join[name]
	s.noteAll(name, r.State.Events)
	fresh := s.enters(name)
	timeline := decoded(r.Timeline.Events)
	var all []envelope
	if r.Timeline.Limited && r.Timeline.Before != "" && !slices.ContainsFunc(timeline, s.asks) {
		if fresh {
			since = "" // it may have been said before the last sync, and after we were asked in
		}
		if all, err = s.gap(ctx, name, r.Timeline.Before, since); err != nil {
			return nil, err
		}
	}
	all = append(all, timeline...)
	for _, e := range all[s.entered(all, fresh):] {
		s.note(name, e)
		event, ok, err := s.hear(ctx, name, e)
		if err != nil {
			return nil, err
		}
		if ok {
			said = append(said, event)
		}
	}
	return said, nil
}

// left forgets the rooms that we are not in any more: who comes again comes as if for the first time.
func (s *session) left(a answer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for name := range a.Room.Leave {
		delete(s.joined, name)
		delete(s.rooms, name)
	}
}

// enters notes that we are in a room, and reports whether that is new.
func (s *session) enters(name id.RoomID) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, known := s.joined[name]
	s.joined[name] = struct{}{}
	return !known
}

func decoded(all []raw) (events []envelope) {
	for _, r := range all {
		if e, ok := r.event(); ok {
			events = append(events, e)
		}
	}
	return events
}

// entered is where in a room's events we were asked in, or came without being asked: what is before was not said to us.
func (s *session) entered(all []envelope, fresh bool) (from int) {
	for i, e := range slices.Backward(all) {
		if s.asks(e) {
			return i
		}
		if !s.ours(e) || e.member().Membership != "join" || from > 0 {
			continue
		}
		switch before := memberOf(e.Before).Membership; before {
		case "invite", "leave", "ban", "knock":
			from = i
		case "":
			if fresh {
				from = i
			}
		}
	}
	return from
}

// ours reports whether an event says whether we are in the room.
func (s *session) ours(e envelope) bool {
	return e.Type == "m.room.member" && e.StateKey != nil && id.UserID(*e.StateKey) == s.client.UserID
}

func (s *session) asks(e envelope) bool { return s.ours(e) && e.member().Membership == "invite" }

// gap reads what a sync left out since a cursor, oldest first; what is too much is told to be lost. Without a cursor it goes back to where we
// were asked in.
func (s *session) gap(ctx context.Context, name id.RoomID, from, to string) ([]envelope, error) {
	var all []envelope // newest first
	for range gapMax {
		var page struct {
			Chunk []raw  `json:"chunk"`
			State []raw  `json:"state"`
			End   string `json:"end"`
		}
		query := map[string]string{"dir": "b", "from": from, "limit": strconv.Itoa(gapPage)}
		if to != "" {
			query["to"] = to
		}
		err := s.get(ctx, &page, query, "v3", "rooms", name, "messages")
		if errors.Is(err, channel.ErrDead) {
			break // we may not read it
		}
		if err != nil {
			return nil, err
		}
		s.noteAll(name, page.State)
		chunk := decoded(page.Chunk)
		all = append(all, chunk...)
		if page.End == "" || len(page.Chunk) == 0 || slices.ContainsFunc(chunk, s.asks) {
			slices.Reverse(all)
			return all, nil
		}
		from = page.End
	}
	if to != "" {
		s.l.Lost(ctx, string(name))
	}
	slices.Reverse(all)
	return all, nil
}

// handOver gives events to the host, each until it was taken; the last one carries the cursor.
func (s *session) handOver(ctx context.Context, said []channel.Event, cursor string) error {
	if len(said) == 0 {
		return s.l.Move(ctx, cursor)
	}
	said[len(said)-1].Cursor = cursor
	for _, e := range said {
		if err := s.l.Give(ctx, e); err != nil {
			return err
		}
	}
	return nil
}
