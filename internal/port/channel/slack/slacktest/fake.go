// Package slacktest is a Slack for tests, made from its documentation.
package slacktest

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
	"unicode/utf8"

	"github.com/gorilla/websocket"

	"sallyport/internal/port/channel"
	"sallyport/internal/port/channel/channeltest"
	"sallyport/internal/port/channel/slack"
)

// What a host proves itself by.
const (
	AppToken = "xapp-1-A1-test"
	BotToken = "xoxb-1-test"
)

type object = map[string]any

// Fake is a Slack made from its documentation: it checks tokens and fields, takes JSON where Slack does and words where it does, hands over
// what was not acknowledged again on the next connection, and drops what is said while there is none.
type Fake struct {
	t      *testing.T
	server *httptest.Server

	Mu       sync.Mutex
	changed  chan struct{}
	clock    int
	names    map[string]string
	Said     map[string][]object // of each place, all messages in their order
	last     map[string]object   // event by place
	Sockets  []*websocket.Conn
	Pending  map[string]object // envelopes that were not acknowledged
	order    []string          // of them
	resent   map[string]bool   // envelopes that were handed over again, under another name
	Acked    int
	Lookups  int
	limits   map[string]time.Time
	refused  map[string]bool
	silent   bool                      // no hello
	Tell     func(string) http.Handler // what a test has it say to a method
	Insecure string                    // the address of the connection that is told instead
}

// Open returns one that ends with the test.
func Open(t *testing.T) *Fake {
	f := &Fake{
		t: t, changed: make(chan struct{}), names: map[string]string{"U1": "ann", "U2": "bob", "UBOT": "port"},
		Said: map[string][]object{}, last: map[string]object{},
		Pending: map[string]object{}, resent: map[string]bool{}, limits: map[string]time.Time{}, refused: map[string]bool{},
	}
	f.server = httptest.NewServer(f)
	t.Cleanup(func() {
		f.Cut(t)
		f.server.Close()
	})
	return f
}

func (f *Fake) Driver(t *testing.T) channel.Driver {
	d, err := slack.Open(map[string]string{"api": f.API()}, func() (string, error) { return BotToken + "\n" + AppToken + "\n", nil })
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// API is where it listens.
func (f *Fake) API() string { return f.server.URL + "/api/" }

func (f *Fake) Place() channel.Place {
	return channel.Place{Address: "C1", Kind: channel.Threaded, Name: "team"}
}

func (f *Fake) Direct() channel.Place {
	return channel.Place{Address: "D1", Kind: channel.Direct, Name: "ann"}
}

func (f *Fake) People() [2]channeltest.Person {
	return [2]channeltest.Person{{Account: "T1/U1", Handle: "U1", Name: "ann"}, {Account: "T1/U2", Handle: "U2", Name: "bob"}}
}

func (f *Fake) Forwards() {}
func (f *Fake) HasBots()  {}
func (f *Fake) NoQuotes() {}

// ts is a time as Slack tells it, which no other message has; mu is held.
func (f *Fake) ts() string {
	f.clock++
	return fmt.Sprintf("1700000000.%06d", f.clock)
}

// Escape writes a text as Slack tells it.
var Escape = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;")

func (f *Fake) Say(_ *testing.T, s channeltest.Saying) string {
	f.Mu.Lock()
	defer f.Mu.Unlock()
	ts := f.ts()
	m := object{"type": "message", "user": s.By.Handle, "text": Escape.Replace(s.Text), "ts": ts, "event_ts": ts, "team": "T1",
		"channel": s.Place.Address, "channel_type": "channel"}
	if s.Place.Address == "D1" {
		m["channel_type"] = "im"
	}
	if s.Mention {
		m["text"] = "<@UBOT> " + Escape.Replace(s.Text)
	}
	if s.Thread != "" {
		m["thread_ts"] = s.Thread
	}
	if s.Forwarded {
		m["attachments"] = []object{{"is_share": true, "is_msg_unfurl": true, "author_name": "carl", "text": "confirm"}}
	}
	if s.Bot {
		delete(m, "user")
		m["subtype"], m["bot_id"], m["username"] = "bot_message", "B9", "robot"
	}
	f.Said[s.Place.Address] = append(f.Said[s.Place.Address], m)
	f.Event(s.Place.Address, m)
	return ts
}

// event hands an event over; mu is held.
func (f *Fake) Event(place string, e object) {
	f.last[place] = e
	f.Push("events_api", object{"type": "event_callback", "team_id": "T1", "event": e, "event_id": "Ev1"}, 0)
}

// push hands an envelope over on the newest connection; what is said without any is lost. mu is held.
func (f *Fake) Push(kind string, payload object, retry int) {
	if len(f.Sockets) == 0 {
		return
	}
	f.clock++
	id := fmt.Sprintf("env%d", f.clock)
	e := object{"type": kind, "envelope_id": id, "payload": payload, "retry_attempt": retry, "accepts_response_payload": false}
	f.Pending[id] = e
	f.order = append(f.order, id)
	f.Sockets[len(f.Sockets)-1].WriteJSON(e)
}

func (f *Fake) wake() {
	close(f.changed)
	f.changed = make(chan struct{})
}

func (f *Fake) Again(_ *testing.T, place string) {
	f.Mu.Lock()
	defer f.Mu.Unlock()
	f.Push("events_api", object{"type": "event_callback", "team_id": "T1", "event": f.last[place], "event_id": "Ev1"}, 1)
}

func (f *Fake) Edit(_ *testing.T, place, id, text string) {
	f.Mu.Lock()
	defer f.Mu.Unlock()
	for _, m := range f.Said[place] {
		if m["ts"] == id {
			now := object{}
			for k, v := range m {
				now[k] = v
			}
			now["text"], now["edited"] = Escape.Replace(text), object{"user": m["user"], "ts": f.ts()}
			f.Event(place, object{"type": "message", "subtype": "message_changed", "channel": place, "channel_type": m["channel_type"],
				"ts": f.ts(), "event_ts": f.ts(), "message": now, "previous_message": m})
		}
	}
}

func (f *Fake) Rename(_ *testing.T, p channeltest.Person, name string) channeltest.Person {
	f.Mu.Lock()
	defer f.Mu.Unlock()
	f.names[p.Handle], p.Name = name, name
	f.Push("events_api", object{"type": "event_callback", "team_id": "T1", "event": object{"type": "user_change", "user": f.user(p.Handle)}}, 0)
	return p
}

func (f *Fake) user(id string) object {
	return object{"id": id, "team_id": "T1", "name": "login", "profile": object{"display_name": f.names[id], "real_name": "Real Name"}}
}

func (f *Fake) Press(t *testing.T, place, message string, p channeltest.Person, option string) {
	f.Mu.Lock()
	defer f.Mu.Unlock()
	for _, m := range f.Said[place] {
		if m["ts"] != message {
			continue
		}
		for _, b := range buttonsOf(m) {
			if strings.HasSuffix(b["value"].(string), ":"+option) {
				f.Push("interactive", object{
					"type": "block_actions", "team": object{"id": "T1"}, "user": object{"id": p.Handle, "team_id": "T1", "username": "login"},
					"channel": object{"id": place, "name": "x"}, "message": m,
					"actions": []object{{"type": "button", "action_id": b["action_id"], "value": b["value"], "action_ts": f.ts()}},
				}, 0)
				return
			}
		}
	}
	t.Errorf("no button says %q", option)
}

func (f *Fake) Limit(_ *testing.T, place string, wait time.Duration) {
	f.Mu.Lock()
	defer f.Mu.Unlock()
	f.limits[place] = time.Now().Add(wait)
}

func (f *Fake) Refuse(_ *testing.T, place string) {
	f.Mu.Lock()
	defer f.Mu.Unlock()
	f.refused[place] = true
}

// Cut breaks all connections.
func (f *Fake) Cut(*testing.T) {
	f.Mu.Lock()
	defer f.Mu.Unlock()
	for _, s := range f.Sockets {
		s.Close()
	}
	f.Sockets = nil
}

// blocksOf are the blocks of a message of a type.
func blocksOf(m object, kind string) (all []object) {
	blocks, _ := m["blocks"].([]any)
	for _, b := range blocks {
		if b.(object)["type"] == kind {
			all = append(all, b.(object))
		}
	}
	return all
}

func buttonsOf(m object) (all []object) {
	for _, b := range blocksOf(m, "actions") {
		for _, e := range b["elements"].([]any) {
			all = append(all, e.(object))
		}
	}
	return all
}

// ElementsOf is what stands in the rich text of a message.
func ElementsOf(m object) (all []object) {
	for _, b := range blocksOf(m, "rich_text") {
		for _, section := range b["elements"].([]any) {
			for _, e := range section.(object)["elements"].([]any) {
				all = append(all, e.(object))
			}
		}
	}
	return all
}

func (f *Fake) Arrived(_ *testing.T, place string) (all []channeltest.Arrived) {
	f.Mu.Lock()
	defer f.Mu.Unlock()
	for _, m := range f.Said[place] {
		if m["blocks"] == nil {
			continue
		}
		a := channeltest.Arrived{ID: m["ts"].(string), Calls: regexp.MustCompile(`<[!@#]`).MatchString(m["text"].(string))}
		a.Thread, _ = m["thread_ts"].(string)
		for _, e := range ElementsOf(m) {
			switch e["type"] {
			case "text", "link":
				a.Text += e["text"].(string)
			default:
				a.Calls = true
			}
		}
		for _, b := range buttonsOf(m) {
			_, key, _ := strings.Cut(b["value"].(string), ":")
			a.Buttons = append(a.Buttons, channel.Option{Key: key, Label: b["text"].(object)["text"].(string)})
		}
		all = append(all, a)
	}
	return all
}

// methods says which token a method wants, and whether it takes JSON.
var methods = map[string]struct {
	token string
	json  bool
}{
	"auth.test": {BotToken, true}, "apps.connections.open": {AppToken, true}, "conversations.open": {BotToken, true}, "chat.postMessage": {BotToken, true},
	"chat.update": {BotToken, true}, "users.info": {BotToken, false}, "conversations.info": {BotToken, false},
}

func (f *Fake) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/link" {
		f.link(w, r)
		return
	}
	method := strings.TrimPrefix(r.URL.Path, "/api/")
	f.Mu.Lock()
	defer f.Mu.Unlock()
	if f.Tell != nil {
		if h := f.Tell(method); h != nil {
			h.ServeHTTP(w, r)
			return
		}
	}
	m, ok := methods[method]
	ask := object{}
	switch {
	case !ok:
		say(w, object{"ok": false, "error": "unknown_method"})
		return
	case r.Header.Get("Authorization") != "Bearer "+m.token:
		say(w, object{"ok": false, "error": "invalid_auth"})
		return
	case m.json:
		if err := json.NewDecoder(r.Body).Decode(&ask); err != nil || r.Header.Get("Content-Type") != "application/json" {
			say(w, object{"ok": false, "error": "invalid_json"})
			return
		}
	default:
		for k := range r.URL.Query() {
			ask[k] = r.URL.Query().Get(k)
		}
	}
	f.answer(w, method, ask)
}

func say(w http.ResponseWriter, body object) {
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	json.NewEncoder(w).Encode(body)
}

// answer does what a method does; mu is held.
func (f *Fake) answer(w http.ResponseWriter, method string, ask object) {
	no := func(why string) { say(w, object{"ok": false, "error": why}) }
	place, _ := ask["channel"].(string)
	switch method {
	case "auth.test":
		say(w, object{"ok": true, "team_id": "T1", "user_id": "UBOT", "bot_id": "BBOT", "user": "port"})
		return
	case "apps.connections.open":
		address := f.Insecure
		if address == "" {
			address = "ws" + strings.TrimPrefix(f.server.URL, "http") + "/link?ticket=SECRET"
		}
		say(w, object{"ok": true, "url": address})
		return
	case "users.info":
		f.Lookups++
		if id, _ := ask["user"].(string); f.names[id] != "" {
			say(w, object{"ok": true, "user": f.user(id)})
			return
		}
		no("user_not_found")
		return
	case "conversations.open":
		if ask["users"] != "U1" {
			no("user_not_found")
			return
		}
		say(w, object{"ok": true, "channel": object{"id": "D1"}})
		return
	}

	switch {
	case f.limits[place].After(time.Now()):
		w.Header().Set("Retry-After", fmt.Sprint(int(time.Until(f.limits[place]).Seconds())+1))
		w.WriteHeader(http.StatusTooManyRequests)
		no("ratelimited")
	case f.refused[place]:
		no("is_archived")
	case place != "C1" && place != "D1":
		no("channel_not_found")
	case method == "conversations.info":
		say(w, object{"ok": true, "channel": object{"id": place, "name": "team"}})
	case check(ask) != "":
		no(check(ask))
	case method == "chat.postMessage":
		ask["ts"] = f.ts()
		f.Said[place] = append(f.Said[place], ask)
		// The app hears what it has said itself.
		f.Event(place, object{"type": "message", "subtype": "bot_message", "bot_id": "BBOT", "user": "UBOT", "text": ask["text"],
			"ts": ask["ts"], "event_ts": ask["ts"], "channel": place, "channel_type": "channel"})
		say(w, object{"ok": true, "channel": place, "ts": ask["ts"], "message": object{"blocks": "in no form that anybody knows"}})
	case method == "chat.update":
		for i, m := range f.Said[place] {
			if m["ts"] == ask["ts"] && m["blocks"] != nil {
				f.Said[place][i] = ask
				say(w, object{"ok": true, "channel": place, "ts": ask["ts"]})
				return
			}
		}
		no("message_not_found")
	}
}

// check holds a message to the limits of the documentation.
func check(ask object) string {
	text, _ := ask["text"].(string)
	if text == "" {
		return "no_text"
	}
	seen := map[any]bool{}
	for _, b := range buttonsOf(ask) {
		label := b["text"].(object)
		if seen[b["action_id"]] || len(b["value"].(string)) > 2000 || label["type"] != "plain_text" || utf8.RuneCountInString(label["text"].(string)) > 75 {
			return "invalid_blocks"
		}
		seen[b["action_id"]] = true
	}
	for _, e := range ElementsOf(ask) {
		if e["text"] == "" {
			return "invalid_blocks"
		}
	}
	switch {
	case utf8.RuneCountInString(text) > 40000:
		return "msg_too_long"
	case len(buttonsOf(ask)) > 25 || len(blocksOf(ask, "rich_text")) != 1:
		return "invalid_blocks"
	case ask["mrkdwn"] != false || ask["parse"] != "none" || ask["link_names"] != nil || ask["unfurl_links"] != false || ask["unfurl_media"] != false:
		return "it_would_be_markup"
	}
	return ""
}

// link is a connection: a greeting, what was not acknowledged once more, then what is said.
func (f *Fake) link(w http.ResponseWriter, r *http.Request) {
	if r.URL.Query().Get("ticket") != "SECRET" {
		http.Error(w, "no", http.StatusForbidden)
		return
	}
	conn, err := (&websocket.Upgrader{}).Upgrade(w, r, nil)
	if err != nil {
		return
	}
	defer conn.Close()
	f.Mu.Lock()
	if !f.silent {
		f.Sockets = append(f.Sockets, conn)
		conn.WriteJSON(object{"type": "hello", "num_connections": len(f.Sockets)})
		again := f.order
		f.order = nil
		for _, id := range again {
			if e, ok := f.Pending[id]; ok {
				delete(f.Pending, id)
				f.resent[id] = true
				f.Push(e["type"].(string), e["payload"].(object), 1)
			}
		}
	}
	f.wake()
	f.Mu.Unlock()
	for {
		var ack struct {
			ID string `json:"envelope_id"`
		}
		if conn.ReadJSON(&ack) != nil {
			break
		}
		f.acknowledge(ack.ID)
	}
	f.Mu.Lock()
	defer f.Mu.Unlock()
	for i, s := range f.Sockets {
		if s == conn {
			f.Sockets = append(f.Sockets[:i:i], f.Sockets[i+1:]...)
			break
		}
	}
	f.wake()
}

// acknowledge takes back an envelope. One that was handed over again meanwhile waits under its other name: what is said on a connection
// that was cut is heard late.
func (f *Fake) acknowledge(id string) {
	f.Mu.Lock()
	defer f.Mu.Unlock()
	switch {
	case f.resent[id]:
		delete(f.resent, id)
		return
	case f.Pending[id] == nil:
		f.t.Errorf("an envelope %q was acknowledged that waits for nothing", id)
	}
	delete(f.Pending, id)
	f.Acked++
	f.wake()
}

// until waits until something is so; good is called with mu held.
func (f *Fake) Until(t *testing.T, what string, good func() bool) {
	t.Helper()
	limit := time.After(time.Minute)
	for {
		f.Mu.Lock()
		ok, changed := good(), f.changed
		f.Mu.Unlock()
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
