package matrix_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// The homeserver is made from the client-server API of the Matrix specification, version 1.16: what a client may ask, who may, and what a
// sync leaves out.
const (
	us         = "@port:h.example"
	token      = "syt_a-token-of-ours"
	syncLimit  = 5 // events of a room in one sync
	pageLimit  = 3 // events in one page of messages
	eventBytes = 65536
)

type object = map[string]any

// event is one of a room, at its place in the stream of all.
type event struct {
	pos  int
	room string
	data object
}

// server is a homeserver.
type server struct {
	*httptest.Server
	t *testing.T

	mu       sync.Mutex
	changed  chan struct{}
	stream   []event
	joined   map[string]bool   // rooms that we are in
	came     map[string]int    // when we came into a room
	gone     map[string]int    // when we were thrown out of a room
	asked    map[string]object // rooms that we are asked into: the event that asks
	state    map[string]object // room, type and key → event
	profiles map[string]string
	data     map[string]any    // our account data
	sent     map[string]string // transaction → event
	limit    time.Duration     // of what we send
	refused  map[string]bool
	cut      bool // the sync of now, or the next one, fails
	dead     bool // the token is not good any more
	forgot   int  // cursors before it are not known
	creates  int
}

func newServer(t *testing.T) *server {
	t.Helper()
	s := &server{
		t: t, changed: make(chan struct{}), joined: map[string]bool{}, asked: map[string]object{}, came: map[string]int{}, gone: map[string]int{}, state: map[string]object{}, data: map[string]any{},
		profiles: map[string]string{us: "Port", "@ann:h.example": "Ann", "@bob:h.example": "Bob", "@eve:else.example": "Eve"}, sent: map[string]string{}, refused: map[string]bool{},
	}
	mux := http.NewServeMux()
	for pattern, serve := range map[string]func(*http.Request, object) (int, any){
		"GET /account/whoami":                           func(*http.Request, object) (int, any) { return 200, object{"user_id": us, "device_id": "D"} },
		"GET /profile/{user}":                           s.profile,
		"GET /profile/{user}/displayname":               s.profile,
		"GET /sync":                                     s.sync,
		"GET /rooms/{room}/messages":                    s.messages,
		"GET /rooms/{room}/members":                     s.members,
		"GET /rooms/{room}/event/{event}":               s.one,
		"GET /rooms/{room}/state/{type}/{$}":            s.piece,
		"GET /rooms/{room}/state":                       s.whole,
		"PUT /rooms/{room}/send/m.room.message/{nonce}": s.send,
		"POST /rooms/{room}/join":                       s.join,
		"GET /joined_rooms":                             s.joinedRooms,
		"POST /createRoom":                              s.create,
		"GET /user/{user}/account_data/m.direct":        s.getDirect,
		"PUT /user/{user}/account_data/m.direct":        s.putDirect,
	} {
		method, path, _ := strings.Cut(pattern, " ")
		mux.HandleFunc(method+" /_matrix/client/v3"+path, s.answers(serve))
	}
	s.Server = httptest.NewServer(mux)
	t.Cleanup(func() {
		s.CloseClientConnections()
		s.Close()
	})
	return s
}

func fail(status int, code, text string) (int, any) {
	return status, object{"errcode": code, "error": text}
}

// answers checks who asks, and what.
func (s *server) answers(serve func(*http.Request, object) (int, any)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		data, _ := io.ReadAll(r.Body)
		s.mu.Lock()
		defer s.mu.Unlock()
		status, out := fail(401, "M_UNKNOWN_TOKEN", "Invalid access token passed.")
		body := object{}
		switch {
		case r.Header.Get("Authorization") != "Bearer "+token || s.dead:
		case r.Method != http.MethodGet && json.Unmarshal(data, &body) != nil:
			status, out = fail(400, "M_NOT_JSON", "Content not JSON.")
		case r.PathValue("user") != "" && strings.HasPrefix(r.URL.Path, "/_matrix/client/v3/user/") && r.PathValue("user") != us:
			status, out = fail(403, "M_FORBIDDEN", "Cannot add account data for other users.")
		default:
			status, out = serve(r, body)
		}
		if limited, ok := out.(object); ok && status == 429 {
			w.Header().Set("Retry-After", strconv.Itoa(int(limited["retry_after_ms"].(int64)/1000)))
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_ = json.NewEncoder(w).Encode(out)
	}
}

// add puts an event into a room; mu is held.
func (s *server) add(room, kind, sender string, content object, key ...string) string {
	id := fmt.Sprintf("$e%d", len(s.stream)+1)
	e := object{"type": kind, "event_id": id, "sender": sender, "content": content, "origin_server_ts": time.Now().UnixMilli()}
	if len(key) > 0 {
		e["state_key"] = key[0]
		at := room + " " + kind + " " + key[0]
		if before := s.state[at]; before != nil {
			e["unsigned"] = object{"prev_content": before["content"]}
		}
		s.state[at] = e
	}
	s.put(room, e)
	return id
}

func (s *server) put(room string, e object) {
	s.stream = append(s.stream, event{pos: len(s.stream) + 1, room: room, data: e})
	s.wake()
}

func (s *server) wake() {
	close(s.changed)
	s.changed = make(chan struct{})
}

// says has somebody send something into a room.
func (s *server) says(room, kind, sender string, content object, key ...string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.add(room, kind, sender, content, key...)
}

// makes a room with members.
func (s *server) makes(room, name string, members ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.made(room, members[0])
	for _, m := range members {
		s.add(room, "m.room.member", m, object{"membership": "join", "displayname": s.profiles[m]}, m)
		if m == us {
			s.joined[room] = true
		}
	}
	if name != "" {
		s.add(room, "m.room.name", members[0], object{"name": name}, "")
	}
}

// made notes who has made a room; mu is held. It stands in no sync that asks for what is said.
func (s *server) made(room, by string) {
	s.state[room+" m.room.create "] = object{"type": "m.room.create", "event_id": "$create" + room, "sender": by, "state_key": "", "content": object{"room_version": "11"}}
}

// asks us into a room.
func (s *server) asks(room, by string, direct bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.add(room, "m.room.member", by, object{"membership": "invite", "is_direct": direct}, us)
	s.asked[room] = s.state[room+" m.room.member "+us]
	s.wake()
}

// throws us out of a room.
func (s *server) throws(room, by string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.add(room, "m.room.member", by, object{"membership": "leave"}, us)
	delete(s.joined, room)
	s.gone[room] = len(s.stream)
	s.wake()
}

func (s *server) profile(r *http.Request, _ object) (int, any) {
	name, ok := s.profiles[r.PathValue("user")]
	if !ok {
		return fail(404, "M_NOT_FOUND", "Profile was not found")
	}
	return 200, object{"displayname": name}
}

func (s *server) sync(r *http.Request, _ object) (int, any) {
	var filter object
	if json.Unmarshal([]byte(r.URL.Query().Get("filter")), &filter) != nil {
		return fail(400, "M_BAD_JSON", "bad filter")
	}
	since := 0
	if text := r.URL.Query().Get("since"); text != "" {
		n, err := strconv.Atoi(strings.TrimPrefix(text, "s"))
		if err != nil || n < s.forgot {
			return fail(400, "M_INVALID_PARAM", "Invalid stream token")
		}
		since = n
	}
	ms, _ := strconv.Atoi(r.URL.Query().Get("timeout"))
	limit := time.After(time.Duration(ms) * time.Millisecond)
	for !s.cut {
		if out, any := s.news(since); any || ms == 0 {
			return 200, out
		}
		changed := s.changed
		s.mu.Unlock()
		select {
		case <-changed:
		case <-limit:
			ms = 0
		case <-r.Context().Done():
			ms = 0
		}
		s.mu.Lock()
	}
	s.cut = false
	return 502, object{}
}

// news is what a sync says; mu is held.
func (s *server) news(since int) (object, bool) {
	join, invites := object{}, object{}
	for room := range s.joined {
		var all []event
		for _, e := range s.stream {
			if e.room == room && (e.pos > since || s.came[room] > since) { // of a new room, all
				all = append(all, e)
			}
		}
		if len(all) == 0 {
			continue
		}
		last := all[max(0, len(all)-syncLimit):]
		var timeline, state []object
		for _, e := range last {
			timeline = append(timeline, e.data)
			if m := s.state[fmt.Sprint(room, " m.room.member ", e.data["sender"])]; m != nil {
				state = append(state, m)
			}
		}
		join[room] = object{"state": object{"events": state}, "timeline": object{"events": timeline, "limited": len(all) > len(last), "prev_batch": fmt.Sprintf("p%d", last[0].pos)}}
	}
	for room, e := range s.asked {
		invites[room] = object{"invite_state": object{"events": []object{e}}}
	}
	leave := object{}
	for room, pos := range s.gone {
		if pos > since {
			leave[room] = object{"timeline": object{"events": []object{}}}
		}
	}
	any := len(join) > 0 || len(invites) > 0 || len(leave) > 0
	return object{"next_batch": fmt.Sprintf("s%d", len(s.stream)), "rooms": object{"join": join, "invite": invites, "leave": leave}}, any
}

func (s *server) in(r *http.Request) bool { return s.joined[r.PathValue("room")] }

func (s *server) messages(r *http.Request, _ object) (int, any) {
	q := r.URL.Query()
	from, err1 := strconv.Atoi(strings.TrimPrefix(q.Get("from"), "p"))
	to, err2 := strconv.Atoi(strings.TrimPrefix(cmp.Or(q.Get("to"), "s0"), "s"))
	if !s.in(r) {
		return fail(403, "M_FORBIDDEN", "You aren't a member of the room.")
	}
	if err1 != nil || err2 != nil || q.Get("dir") != "b" {
		return fail(400, "M_INVALID_PARAM", "bad token")
	}
	chunk, end := []object{}, ""
	for _, e := range slices.Backward(s.stream) {
		if e.room != r.PathValue("room") || e.pos >= from || e.pos <= to {
			continue
		}
		if len(chunk) == pageLimit {
			end = fmt.Sprintf("p%d", from)
			break
		}
		chunk, from = append(chunk, e.data), e.pos
	}
	return 200, object{"start": q.Get("from"), "end": end, "chunk": chunk}
}

func (s *server) members(r *http.Request, _ object) (int, any) {
	if !s.in(r) {
		return fail(403, "M_FORBIDDEN", "You aren't a member of the room.")
	}
	chunk := []object{}
	for at, e := range s.state {
		if strings.HasPrefix(at, r.PathValue("room")+" m.room.member ") {
			chunk = append(chunk, e)
		}
	}
	return 200, object{"chunk": chunk}
}

func (s *server) whole(r *http.Request, _ object) (int, any) {
	if !s.in(r) {
		return fail(403, "M_FORBIDDEN", "You aren't a member of the room.")
	}
	all := []object{}
	for at, e := range s.state {
		if strings.HasPrefix(at, r.PathValue("room")+" ") {
			all = append(all, e)
		}
	}
	return 200, all
}

func (s *server) one(r *http.Request, _ object) (int, any) {
	for _, e := range s.stream {
		if e.room == r.PathValue("room") && e.data["event_id"] == r.PathValue("event") && s.in(r) {
			return 200, e.data
		}
	}
	return fail(404, "M_NOT_FOUND", "Could not find event")
}

func (s *server) piece(r *http.Request, _ object) (int, any) {
	if !s.in(r) {
		return fail(403, "M_FORBIDDEN", "You aren't a member of the room.")
	}
	if e := s.state[r.PathValue("room")+" "+r.PathValue("type")+" "]; e != nil {
		return 200, e["content"]
	}
	return fail(404, "M_NOT_FOUND", "Event not found.")
}

func (s *server) send(r *http.Request, body object) (int, any) {
	room, nonce := r.PathValue("room"), r.PathValue("nonce")
	data, _ := json.Marshal(body)
	switch {
	case s.limit > 0:
		return 429, object{"errcode": "M_LIMIT_EXCEEDED", "error": "Too Many Requests", "retry_after_ms": s.limit.Milliseconds()}
	case !s.in(r) || s.refused[room]:
		return fail(403, "M_FORBIDDEN", "You don't have permission to post that to the room.")
	case len(data) > eventBytes-2000:
		return fail(413, "M_TOO_LARGE", "event too large")
	case body["msgtype"] == nil || body["body"] == nil:
		return fail(400, "M_BAD_JSON", "no body")
	}
	if s.sent[nonce] == "" {
		s.sent[nonce] = s.add(room, "m.room.message", us, body)
	}
	return 200, object{"event_id": s.sent[nonce]}
}

func (s *server) join(r *http.Request, _ object) (int, any) {
	room, _ := url.PathUnescape(r.PathValue("room"))
	if s.asked[room] == nil {
		return fail(403, "M_FORBIDDEN", "You are not invited to this room.")
	}
	delete(s.asked, room)
	s.joined[room] = true
	s.add(room, "m.room.member", us, object{"membership": "join", "displayname": "Port"}, us)
	s.came[room] = len(s.stream)
	return 200, object{"room_id": room}
}

func (s *server) joinedRooms(*http.Request, object) (int, any) {
	rooms := []string{}
	for room := range s.joined {
		rooms = append(rooms, room)
	}
	return 200, object{"joined_rooms": rooms}
}

func (s *server) create(_ *http.Request, body object) (int, any) {
	s.creates++
	room := fmt.Sprintf("!made%d:h.example", s.creates)
	s.joined[room] = true
	s.made(room, us)
	s.add(room, "m.room.member", us, object{"membership": "join"}, us)
	for _, user := range body["invite"].([]any) {
		s.add(room, "m.room.member", us, object{"membership": "invite", "is_direct": body["is_direct"]}, user.(string))
	}
	return 200, object{"room_id": room}
}

func (s *server) getDirect(*http.Request, object) (int, any) {
	if d := s.data["m.direct"]; d != nil {
		return 200, d
	}
	return fail(404, "M_NOT_FOUND", "Account data not found")
}

func (s *server) putDirect(_ *http.Request, body object) (int, any) {
	s.data["m.direct"] = body
	return 200, object{}
}
