package discord_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf16"

	"github.com/gorilla/websocket"

	"sallyport/internal/port/channel"
	"sallyport/internal/port/channel/channeltest"
	"sallyport/internal/port/channel/discord"
)

const token = "MTk4.test.TESTtoken"

type object = map[string]any

// fake is a Discord made from its documentation: it checks the token, the intents and the fields of what comes, keeps the events of a session
// so that it can be resumed, waits for an answer to each press, and reads markup as people's programs do.
type fake struct {
	t      *testing.T
	server *httptest.Server

	mu       sync.Mutex
	changed  chan struct{}
	ids      int
	names    map[string]string
	rooms    map[string]object
	said     map[string][]object // of each room, all messages in their order
	nonces   map[string]object
	sessions map[string]*session
	presses  map[string]bool // answered or not
	limits   map[string]time.Time
	refused  map[string]bool
	beat     int64 // milliseconds
	beats    int
	asked    map[string]int             // requests by path
	greeting func(*websocket.Conn) bool // what a test has the gateway do with who listens
	tell     func(path string) http.Handler
}

// session is one that can be resumed.
type session struct {
	id     string
	events []object
	conn   *websocket.Conn
}

func open(t *testing.T) *fake {
	f := &fake{
		t: t, changed: make(chan struct{}), ids: 1000, names: map[string]string{"11": "ann", "12": "bob"}, said: map[string][]object{}, nonces: map[string]object{},
		rooms:    map[string]object{"500": {"id": "500", "type": 0, "name": "team"}, "600": {"id": "600", "type": 1}},
		sessions: map[string]*session{}, presses: map[string]bool{}, limits: map[string]time.Time{}, refused: map[string]bool{}, beat: 41250, asked: map[string]int{},
	}
	f.server = httptest.NewServer(f)
	t.Cleanup(func() {
		f.Cut(t)
		f.server.Close()
	})
	return f
}

func (f *fake) Driver(t *testing.T) channel.Driver {
	d, err := discord.Open(map[string]string{"api": f.server.URL + "/api"}, func() (string, error) { return token, nil })
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func (f *fake) Place() channel.Place {
	return channel.Place{Address: "500", Kind: channel.Threaded, Name: "team"}
}

func (f *fake) Direct() channel.Place {
	return channel.Place{Address: "600", Kind: channel.Direct, Name: "ann"}
}

func (f *fake) People() [2]channeltest.Person {
	return [2]channeltest.Person{{Account: "11", Handle: "11", Name: "ann"}, {Account: "12", Handle: "12", Name: "bob"}}
}

func (f *fake) Forwards() {}
func (f *fake) HasBots()  {}

// id is one that nothing else has; mu is held.
func (f *fake) id() string {
	f.ids++
	return fmt.Sprint(f.ids)
}

func (f *fake) wake() {
	close(f.changed)
	f.changed = make(chan struct{})
}

func (f *fake) user(id string, bot bool) object {
	return object{"id": id, "username": "login" + id, "global_name": f.names[id], "bot": bot}
}

func (f *fake) Say(_ *testing.T, s channeltest.Saying) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	m := object{
		"id": f.id(), "channel_id": s.Place.Address, "type": 0, "content": s.Text, "author": f.user(s.By.Account, s.Bot), "mentions": []object{},
		"timestamp": "2026-01-02T03:04:05.678000+00:00", "edited_timestamp": nil, "flags": 0, "attachments": []object{}, "components": []object{{"type": 99}},
	}
	if s.Mention {
		m["content"] = "<@4711> " + s.Text
		m["mentions"] = []object{{"id": "4711", "username": "port", "bot": true}}
	}
	if s.Thread != "" {
		id := "7" + s.Thread
		f.rooms[id] = object{"id": id, "type": 11, "name": "a thread", "parent_id": s.Place.Address}
		m["channel_id"] = id
	}
	if s.Quote != nil {
		m["type"] = 19
		m["message_reference"] = object{"type": 0, "message_id": s.Quote.ID, "channel_id": s.Place.Address}
		m["referenced_message"] = object{"id": s.Quote.ID, "type": 0, "content": s.Quote.Text, "author": object{"id": "12", "global_name": s.Quote.From}}
	}
	if s.Forwarded {
		m["content"] = ""
		m["message_reference"] = object{"type": 1, "message_id": "1", "channel_id": "2"}
		m["message_snapshots"] = []object{{"message": object{"type": 0, "content": s.Text}}}
	}
	f.said[s.Place.Address] = append(f.said[s.Place.Address], m)
	f.event("MESSAGE_CREATE", m)
	return m["id"].(string)
}

// event tells all sessions of something; mu is held.
func (f *fake) event(kind string, data object) {
	for _, s := range f.sessions {
		e := object{"op": 0, "t": kind, "s": len(s.events) + 1, "d": data}
		s.events = append(s.events, e)
		if s.conn != nil {
			s.conn.WriteJSON(e)
		}
	}
}

func (f *fake) Edit(_ *testing.T, place, id, text string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, m := range f.said[place] {
		if m["id"] == id {
			now := object{}
			for k, v := range m {
				now[k] = v
			}
			now["content"], now["edited_timestamp"] = text, time.Now().Format(time.RFC3339Nano)
			f.event("MESSAGE_UPDATE", m) // a link was looked at
			f.event("MESSAGE_UPDATE", now)
		}
	}
}

func (f *fake) Again(_ *testing.T, place string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.event("MESSAGE_CREATE", f.said[place][len(f.said[place])-1])
}

func (f *fake) Rename(_ *testing.T, p channeltest.Person, name string) channeltest.Person {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.names[p.Account], p.Name = name, name
	return p
}

func (f *fake) Press(t *testing.T, place, message string, p channeltest.Person, option string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, m := range f.said[place] {
		if m["id"] != message {
			continue
		}
		for _, b := range buttonsOf(m) {
			if word := b["custom_id"].(string); strings.HasSuffix(word, ":"+option) {
				id := f.id()
				f.presses[id] = false
				i := object{"id": id, "type": 3, "token": "aW50ZXJhY3Rpb24_" + id, "channel_id": place, "data": object{"custom_id": word, "component_type": 2}, "message": m}
				if place == "600" {
					i["user"] = f.user(p.Account, false)
				} else {
					i["member"] = object{"user": f.user(p.Account, false)}
				}
				f.event("INTERACTION_CREATE", i)
				return
			}
		}
	}
	t.Errorf("no button says %q", option)
}

func (f *fake) Limit(_ *testing.T, place string, wait time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.limits[place] = time.Now().Add(wait)
}

func (f *fake) Refuse(_ *testing.T, place string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.refused[place] = true
}

// Cut breaks all connections; the sessions stay.
func (f *fake) Cut(*testing.T) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, s := range f.sessions {
		if s.conn != nil {
			s.conn.Close()
			s.conn = nil
		}
	}
}

// forget has Discord forget all sessions.
func (f *fake) forget() {
	f.mu.Lock()
	defer f.mu.Unlock()
	clear(f.sessions)
}

func buttonsOf(m object) (all []object) {
	rows, _ := m["components"].([]any)
	for _, row := range rows {
		for _, b := range row.(object)["components"].([]any) {
			all = append(all, b.(object))
		}
	}
	return all
}

func (f *fake) Arrived(_ *testing.T, place string) (all []channeltest.Arrived) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, m := range f.said[place] {
		if m["author"] != nil {
			continue
		}
		a := channeltest.Arrived{ID: m["id"].(string), Text: shown(m["content"].(string))}
		calls, _ := m["allowed_mentions"].(object)
		if parse, ok := calls["parse"].([]any); !ok || len(parse) > 0 || calls["users"] != nil || calls["roles"] != nil || calls["replied_user"] == true {
			a.Calls = true
		}
		for _, b := range buttonsOf(m) {
			_, key, _ := strings.Cut(b["custom_id"].(string), ":")
			a.Buttons = append(a.Buttons, channel.Option{Key: key, Label: b["label"].(string)})
		}
		all = append(all, a)
	}
	return all
}

var (
	link    = regexp.MustCompile(`^https?://[^\s<]+[^<.,:;"'\]\s]`)
	smiley  = regexp.MustCompile(`^:[A-Za-z0-9_+-]+:`)
	opening = regexp.MustCompile(`(?m)^[ \t]*(#{1,3} |-# |[-*+] |[0-9]+\. |>>> |> )`)
)

// shown is what people see of a text, as their programs read markup: an escaped letter is itself, and in a link nothing is markup. What is
// markup is gone, or another thing.
func shown(text string) string {
	text = opening.ReplaceAllString(text, "")
	var b strings.Builder
	for text != "" {
		if f := link.FindString(text); f != "" {
			// A bracket that closes nothing is behind the link.
			if strings.HasSuffix(f, ")") && !strings.Contains(f, "(") {
				f = f[:len(f)-1]
			}
			b.WriteString(f)
			text = text[len(f):]
			continue
		}
		if f := smiley.FindString(text); f != "" {
			b.WriteString("🙂")
			text = text[len(f):]
			continue
		}
		letter := []rune(text)[0]
		text = text[len(string(letter)):]
		switch {
		case letter == '\\' && text != "" && !regexp.MustCompile(`^[0-9A-Za-z\s]`).MatchString(text):
			next := []rune(text)[0]
			b.WriteRune(next)
			text = text[len(string(next)):]
		case strings.ContainsRune("*_~`|<[", letter):
		default:
			b.WriteRune(letter)
		}
	}
	return b.String()
}

func (f *fake) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/gateway/" {
		f.gateway(w, r)
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	path := strings.TrimPrefix(r.URL.Path, "/api")
	f.asked[path]++
	if f.tell != nil {
		if h := f.tell(path); h != nil {
			h.ServeHTTP(w, r)
			return
		}
	}
	if r.Header.Get("Authorization") != "Bot "+token || !strings.HasPrefix(r.Header.Get("User-Agent"), "DiscordBot (") {
		say(w, 401, object{"message": "401: Unauthorized", "code": 0})
		return
	}
	ask := object{}
	if r.Method == http.MethodPost || r.Method == http.MethodPatch {
		if err := json.NewDecoder(r.Body).Decode(&ask); err != nil || r.Header.Get("Content-Type") != "application/json" {
			say(w, 400, object{"message": "The request body contains invalid JSON.", "code": 50109})
			return
		}
	}
	code, body := f.answer(r.Method, strings.Split(path, "/")[1:], ask)
	say(w, code, body)
}

func say(w http.ResponseWriter, code int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	if code != http.StatusNoContent {
		json.NewEncoder(w).Encode(body)
	}
}

func (f *fake) url() string { return "ws" + strings.TrimPrefix(f.server.URL, "http") + "/gateway" }

// answer does what is asked for; mu is held.
func (f *fake) answer(verb string, path []string, ask object) (int, any) {
	unknown := object{"message": "Unknown Channel", "code": 10003}
	switch what := verb + " " + path[0]; {
	case what == "GET users":
		return 200, object{"id": "4711", "username": "port", "bot": true}
	case what == "GET gateway":
		return 200, object{"url": f.url(), "shards": 1, "session_start_limit": object{"total": 1000, "remaining": 999, "reset_after": 5000, "max_concurrency": 1}}
	case what == "POST users":
		if ask["recipient_id"] != "11" {
			return 400, object{"message": "Invalid Recipient(s)", "code": 50033}
		}
		return 200, f.rooms["600"]
	case what == "POST interactions":
		if done, ok := f.presses[path[1]]; !ok || done || path[3] != "callback" || ask["type"] != 6.0 {
			return 404, object{"message": "Unknown interaction", "code": 10062}
		}
		f.presses[path[1]] = true
		f.wake()
		return 204, nil
	case path[0] != "channels" || f.rooms[path[1]] == nil:
		return 404, unknown
	case len(path) == 2:
		return 200, f.rooms[path[1]]
	}
	return f.message(path, ask)
}

// message takes one; mu is held.
func (f *fake) message(path []string, ask object) (int, any) {
	room := path[1]
	switch {
	case f.refused[room]:
		return 403, object{"message": "Missing Access", "code": 50001}
	case f.limits[room].After(time.Now()):
		return 429, object{"message": "You are being rate limited.", "retry_after": time.Until(f.limits[room]).Seconds(), "global": false}
	case check(ask) != "":
		return 400, object{"message": "Invalid Form Body: " + check(ask), "code": 50035}
	}
	if len(path) == 4 {
		for i, m := range f.said[room] {
			if m["id"] == path[3] && m["author"] == nil {
				ask["id"] = m["id"]
				f.said[room][i] = ask
				return 200, ask
			}
		}
		return 404, object{"message": "Unknown Message", "code": 10008}
	}
	if n, ok := ask["nonce"].(string); ok && ask["enforce_nonce"] == true {
		if m := f.nonces[n]; m != nil {
			return 200, m
		}
		f.nonces[n] = ask
	}
	ask["id"] = f.id()
	f.said[room] = append(f.said[room], ask)
	f.event("MESSAGE_CREATE", object{"id": ask["id"], "channel_id": room, "type": 0, "content": ask["content"], "author": object{"id": "4711", "bot": true}, "timestamp": "2026-01-02T03:04:05+00:00"})
	return 200, object{"id": ask["id"], "components": []object{{"type": 99}}}
}

// check holds a message to the limits of the documentation.
func check(ask object) string {
	text, _ := ask["content"].(string)
	flags, _ := ask["flags"].(float64)
	nonce, _ := ask["nonce"].(string)
	switch {
	case strings.TrimSpace(text) == "":
		return "Cannot send an empty message"
	case len(utf16.Encode([]rune(text))) > 2000:
		return "Must be 2000 or fewer in length."
	case int(flags)&4 == 0:
		return "a preview of links came"
	case len(nonce) > 25:
		return "the nonce is too long"
	}
	rows, _ := ask["components"].([]any)
	seen := map[any]bool{}
	for _, row := range rows {
		if buttons, ok := row.(object)["components"].([]any); !ok || row.(object)["type"] != 1.0 || len(buttons) > 5 || len(buttons) == 0 || len(rows) > 5 {
			return "rows"
		}
	}
	for _, b := range buttonsOf(ask) {
		id, _ := b["custom_id"].(string)
		label, _ := b["label"].(string)
		if b["type"] != 2.0 || id == "" || len(id) > 100 || seen[id] || label == "" || len([]rune(label)) > 80 {
			return "buttons"
		}
		seen[id] = true
	}
	return ""
}

// gateway is a connection: a greeting, a session that begins or goes on, then what happens.
func (f *fake) gateway(w http.ResponseWriter, r *http.Request) {
	if r.URL.Query().Get("v") != "10" || r.URL.Query().Get("encoding") != "json" {
		http.Error(w, "no", http.StatusBadRequest)
		return
	}
	conn, err := (&websocket.Upgrader{}).Upgrade(w, r, nil)
	if err != nil {
		return
	}
	defer conn.Close()
	f.mu.Lock()
	conn.WriteJSON(object{"op": 10, "d": object{"heartbeat_interval": f.beat}})
	f.mu.Unlock()
	var p struct {
		Op   int `json:"op"`
		Data struct {
			Token   string `json:"token"`
			Intents int    `json:"intents"`
			Session string `json:"session_id"`
			Seq     int    `json:"seq"`
			OS      object `json:"properties"`
		} `json:"d"`
	}
	if conn.ReadJSON(&p) != nil {
		return
	}

	f.mu.Lock()
	greeting := f.greeting
	f.mu.Unlock()
	if greeting != nil && greeting(conn) {
		return
	}
	if p.Data.Token != token {
		closeWith(conn, 4004)
		return
	}
	f.mu.Lock()
	var s *session
	switch {
	case p.Op == 2 && p.Data.Intents != 1<<0|1<<9|1<<12|1<<15, p.Op == 2 && p.Data.OS["browser"] == nil:
		f.mu.Unlock()
		closeWith(conn, 4013)
		return
	case p.Op == 2:
		s = &session{id: "s" + f.id(), conn: conn}
		f.sessions[s.id] = s
		e := object{"op": 0, "t": "READY", "s": 1, "d": object{"session_id": s.id, "resume_gateway_url": f.url(), "user": object{"id": "4711"}}}
		s.events = append(s.events, e)
		conn.WriteJSON(e)
	case p.Op == 6 && f.sessions[p.Data.Session] != nil && p.Data.Seq <= len(f.sessions[p.Data.Session].events):
		s = f.sessions[p.Data.Session]
		s.conn = conn
		for _, e := range s.events[p.Data.Seq:] {
			conn.WriteJSON(e)
		}
		conn.WriteJSON(object{"op": 0, "t": "RESUMED", "s": len(s.events), "d": object{}})
	default:
		conn.WriteJSON(object{"op": 9, "d": false})
	}
	f.mu.Unlock()
	f.listen(conn, s)
}

// listen hears beats until the connection ends.
func (f *fake) listen(conn *websocket.Conn, s *session) {
	for {
		var p struct {
			Op int `json:"op"`
		}
		if conn.ReadJSON(&p) != nil {
			break
		}
		f.mu.Lock()
		if p.Op == 1 {
			f.beats++
			conn.WriteJSON(object{"op": 11})
		}
		f.wake()
		f.mu.Unlock()
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if s != nil && s.conn == conn {
		s.conn = nil
	}
	f.wake()
}

func closeWith(conn *websocket.Conn, code int) {
	conn.WriteControl(websocket.CloseMessage, websocket.FormatCloseMessage(code, "SECRET"), time.Now().Add(time.Second))
}

// until waits until something is so; good is called with mu held.
func (f *fake) until(t *testing.T, what string, good func() bool) {
	t.Helper()
	limit := time.After(time.Minute)
	for {
		f.mu.Lock()
		ok, changed := good(), f.changed
		f.mu.Unlock()
		if ok {
			return
		}
		select {
		case <-changed:
		case <-limit:
			t.Fatalf("%s: not in a minute", what)
		}
	}
}
