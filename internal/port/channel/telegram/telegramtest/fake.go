// Package telegramtest is a Telegram for tests, made from its documentation.
package telegramtest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf16"

	"sallyport/internal/port/channel"
	"sallyport/internal/port/channel/channeltest"
	"sallyport/internal/port/channel/telegram"
)

// Token is the bot's.
const Token = "4711:AAtestTESTtest"

type object = map[string]any

// Fake is a Bot API made from its documentation: it checks the Token and the fields of what it is asked, keeps updates until one behind them
// is asked for, and finds names in texts as Telegram does.
type Fake struct {
	t      *testing.T
	server *httptest.Server

	Mu       sync.Mutex
	Changed  chan struct{}
	updates  []object
	nextID   int64
	messages map[int64][]object // of each chat, in their order
	names    map[int64]string
	limits   map[int64]time.Time
	refused  map[int64]bool
	Queries  map[string]bool // presses: answered or not
	Confirms []int64         // what getUpdates was asked from
	Hook     bool
	cut      bool
	Strict   func(method string) *Answer // what a test has it say
}

// Answer is what it says to a method.
type Answer struct {
	Code  int
	Why   string
	Extra object
}

// Open returns one that ends with the test.
func Open(t *testing.T) *Fake {
	f := &Fake{
		t: t, nextID: 1000, Changed: make(chan struct{}), messages: map[int64][]object{}, names: map[int64]string{11: "ann", 12: "bob"},
		limits: map[int64]time.Time{}, refused: map[int64]bool{}, Queries: map[string]bool{},
	}
	f.server = httptest.NewServer(f)
	t.Cleanup(f.server.Close)
	return f
}

func (f *Fake) Driver(t *testing.T) channel.Driver {
	d, err := telegram.Open(map[string]string{"api": f.API()}, func() (string, error) { return Token + "\n", nil })
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// API is where it listens.
func (f *Fake) API() string { return f.server.URL }

func (f *Fake) Place() channel.Place {
	return channel.Place{Address: "-100200300", Kind: channel.Threaded, Name: "the team"}
}

func (f *Fake) Direct() channel.Place {
	return channel.Place{Address: "11", Kind: channel.Direct, Name: "ann"}
}

func (f *Fake) People() [2]channeltest.Person {
	return [2]channeltest.Person{{Account: "11", Handle: "11", Name: "ann"}, {Account: "12", Handle: "12", Name: "bob"}}
}

func (f *Fake) Forwards() {}
func (f *Fake) HasBots()  {}

// chat is a place as Telegram shows it.
func (f *Fake) Chat(address string) object {
	id, _ := strconv.ParseInt(address, 10, 64)
	if id > 0 {
		return object{"id": id, "type": "private", "first_name": f.names[id]}
	}
	return object{"id": id, "type": "supergroup", "title": "the team", "is_forum": true}
}

func (f *Fake) user(p channeltest.Person, bot bool) object {
	id, _ := strconv.ParseInt(p.Account, 10, 64)
	return object{"id": id, "is_bot": bot, "first_name": f.names[id]}
}

// put keeps an update; mu is held.
func (f *Fake) Put(update object) {
	f.nextID++
	update["update_id"] = f.nextID
	f.updates = append(f.updates, update)
	f.wake()
}

func (f *Fake) wake() {
	close(f.Changed)
	f.Changed = make(chan struct{})
}

// add keeps a message in its chat, and gives it its number; mu is held.
func (f *Fake) add(chat int64, m object) int {
	id := len(f.messages[chat]) + 1
	m["message_id"], m["date"] = id, time.Now().Unix()
	f.messages[chat] = append(f.messages[chat], m)
	return id
}

func (f *Fake) Say(t *testing.T, s channeltest.Saying) string {
	f.Mu.Lock()
	defer f.Mu.Unlock()
	m := object{"chat": f.Chat(s.Place.Address), "from": f.user(s.By, s.Bot), "text": s.Text}
	if s.Mention {
		m["text"] = "@Port_Bot " + s.Text
		m["entities"] = []object{{"type": "mention", "offset": 0, "length": 9}}
	}
	if s.Thread != "" {
		topic, _ := strconv.Atoi(s.Thread)
		m["message_thread_id"], m["is_topic_message"] = topic, true
		m["reply_to_message"] = object{"message_id": topic, "date": 1, "chat": m["chat"], "forum_topic_created": object{"name": "x"}}
	}
	if s.Quote != nil {
		id, _ := strconv.Atoi(s.Quote.ID)
		m["reply_to_message"] = object{"message_id": id, "date": 1, "chat": m["chat"],
			"from": object{"id": 12, "first_name": s.Quote.From}, "text": s.Quote.Text}
	}
	if s.Forwarded {
		m["forward_origin"] = object{"type": "hidden_user", "date": 1, "sender_user_name": "somebody"}
	}
	chat, _ := strconv.ParseInt(s.Place.Address, 10, 64)
	id := f.add(chat, m)
	f.Put(object{"message": m})
	return strconv.Itoa(id)
}

func (f *Fake) Again(_ *testing.T, place string) {
	f.Mu.Lock()
	defer f.Mu.Unlock()
	chat, _ := strconv.ParseInt(place, 10, 64)
	f.Put(object{"message": f.messages[chat][len(f.messages[chat])-1]})
}

func (f *Fake) Edit(_ *testing.T, place, id, text string) {
	f.Mu.Lock()
	defer f.Mu.Unlock()
	chat, _ := strconv.ParseInt(place, 10, 64)
	n, _ := strconv.Atoi(id)
	m := object{"text": text, "edit_date": 5}
	for k, v := range f.messages[chat][n-1] {
		if k != "text" {
			m[k] = v
		}
	}
	f.Put(object{"edited_message": m})
}

func (f *Fake) Rename(_ *testing.T, p channeltest.Person, name string) channeltest.Person {
	f.Mu.Lock()
	defer f.Mu.Unlock()
	id, _ := strconv.ParseInt(p.Account, 10, 64)
	f.names[id], p.Name = name, name
	return p
}

func (f *Fake) Press(t *testing.T, place, message string, p channeltest.Person, option string) {
	f.Mu.Lock()
	defer f.Mu.Unlock()
	chat, _ := strconv.ParseInt(place, 10, 64)
	n, _ := strconv.Atoi(message)
	m := f.messages[chat][n-1]
	for _, b := range buttonsOf(m) {
		if strings.HasSuffix(b.word, ":"+option) {
			query := fmt.Sprintf("q%d", len(f.Queries))
			f.Queries[query] = false
			f.Put(object{"callback_query": object{"id": query, "from": f.user(p, false), "message": m, "data": b.word, "chat_instance": "1"}})
			return
		}
	}
	t.Errorf("no button says %q", option)
}

type pressable struct{ word, label string }

func buttonsOf(m object) (all []pressable) {
	markup, _ := m["reply_markup"].(object)
	rows, _ := markup["inline_keyboard"].([]any)
	for _, row := range rows {
		for _, b := range row.([]any) {
			all = append(all, pressable{word: b.(object)["callback_data"].(string), label: b.(object)["text"].(string)})
		}
	}
	return all
}

func (f *Fake) Limit(_ *testing.T, place string, wait time.Duration) {
	f.Mu.Lock()
	defer f.Mu.Unlock()
	chat, _ := strconv.ParseInt(place, 10, 64)
	f.limits[chat] = time.Now().Add(wait)
}

func (f *Fake) Refuse(_ *testing.T, place string) {
	f.Mu.Lock()
	defer f.Mu.Unlock()
	chat, _ := strconv.ParseInt(place, 10, 64)
	f.refused[chat] = true
}

// Cut breaks the connection that waits for updates, or the next one that does.
func (f *Fake) Cut(*testing.T) {
	f.Mu.Lock()
	defer f.Mu.Unlock()
	f.cut = true
	f.wake()
}

func (f *Fake) Arrived(_ *testing.T, place string) (all []channeltest.Arrived) {
	f.Mu.Lock()
	defer f.Mu.Unlock()
	chat, _ := strconv.ParseInt(place, 10, 64)
	for _, m := range f.messages[chat] {
		if m["from"] != nil {
			continue
		}
		a := channeltest.Arrived{ID: fmt.Sprint(m["message_id"]), Text: m["text"].(string), Calls: namesSomebody(m)}
		if topic, ok := m["message_thread_id"]; ok {
			a.Thread = fmt.Sprint(topic)
		}
		for _, b := range buttonsOf(m) {
			_, key, _ := strings.Cut(b.word, ":")
			a.Buttons = append(a.Buttons, channel.Option{Key: key, Label: b.label})
		}
		all = append(all, a)
	}
	return all
}

// namesSomebody finds names that are in no code, as Telegram does when a message is sent.
func namesSomebody(m object) bool {
	letters := utf16.Encode([]rune(m["text"].(string)))
	entities, _ := m["entities"].([]any)
	for _, e := range entities[:min(len(entities), 100)] {
		at, n := int(e.(object)["offset"].(float64)), int(e.(object)["length"].(float64))
		for i := at; i < at+n; i++ {
			letters[i] = '.'
		}
	}
	return regexp.MustCompile(`@\w`).MatchString(string(utf16.Decode(letters)))
}

func (f *Fake) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	method, ok := strings.CutPrefix(r.URL.Path, "/bot"+Token+"/")
	ask := object{}
	if r.ContentLength != 0 {
		if err := json.NewDecoder(r.Body).Decode(&ask); err != nil || r.Header.Get("Content-Type") != "application/json" {
			say(w, &Answer{Code: 400, Why: "Bad Request: can't parse the body"}, nil)
			return
		}
	}
	if !ok {
		say(w, &Answer{Code: 401, Why: "Unauthorized"}, nil)
		return
	}
	f.Mu.Lock()
	strict := f.Strict
	f.Mu.Unlock()
	if strict != nil {
		if a := strict(method); a != nil {
			say(w, a, nil)
			return
		}
	}
	switch method {
	case "getMe":
		say(w, nil, object{"id": 4711, "is_bot": true, "first_name": "Port", "username": "port_bot"})
	case "getUpdates":
		f.getUpdates(w, r, ask)
	default:
		f.Mu.Lock()
		defer f.Mu.Unlock()
		a, result := f.change(method, ask)
		say(w, a, result)
	}
}

func say(w http.ResponseWriter, a *Answer, result any) {
	w.Header().Set("Content-Type", "application/json")
	if a != nil {
		w.WriteHeader(a.Code)
		body := object{"ok": false, "error_code": a.Code, "description": a.Why}
		if a.Extra != nil {
			body["parameters"] = a.Extra
		}
		json.NewEncoder(w).Encode(body)
		return
	}
	json.NewEncoder(w).Encode(object{"ok": true, "result": result})
}

// getUpdates forgets what stands before the offset, and waits for what stands behind.
func (f *Fake) getUpdates(w http.ResponseWriter, r *http.Request, ask object) {
	if f.Hook {
		say(w, &Answer{Code: 409, Why: "Conflict: can't use getUpdates method while webhook is active; use deleteWebhook to delete the webhook first"}, nil)
		return
	}
	offset, _ := ask["offset"].(float64)
	f.Mu.Lock()
	f.Confirms = append(f.Confirms, int64(offset))
	f.updates = slices.DeleteFunc(f.updates, func(u object) bool { return u["update_id"].(int64) < int64(offset) })
	f.Mu.Unlock()
	wait := time.After(time.Duration(ask["timeout"].(float64) * float64(time.Second)))
	for {
		f.Mu.Lock()
		now, changed, cut := slices.Clone(f.updates), f.Changed, f.cut
		f.cut = false
		f.Mu.Unlock()
		if cut {
			panic(http.ErrAbortHandler)
		}
		if len(now) > 0 {
			say(w, nil, now[:min(len(now), int(ask["limit"].(float64)))])
			return
		}
		select {
		case <-changed:
		case <-wait:
			say(w, nil, []object{})
			return
		case <-r.Context().Done():
			return
		}
	}
}

// change does what is no question; mu is held.
func (f *Fake) change(method string, ask object) (*Answer, any) {
	if method == "answerCallbackQuery" {
		id, _ := ask["callback_query_id"].(string)
		if done, ok := f.Queries[id]; !ok || done {
			return &Answer{Code: 400, Why: "Bad Request: query is too old and response timeout expired or query ID is invalid"}, nil
		}
		f.Queries[id] = true
		f.wake()
		return nil, true
	}

	number, _ := ask["chat_id"].(float64)
	chat := int64(number)
	switch {
	case f.refused[chat]:
		return &Answer{Code: 403, Why: "Forbidden: bot was kicked from the supergroup chat"}, nil
	case f.limits[chat].After(time.Now()):
		wait := int(time.Until(f.limits[chat]).Seconds()) + 1
		return &Answer{Code: 429, Why: fmt.Sprintf("Too Many Requests: retry after %d", wait), Extra: object{"retry_after": wait}}, nil
	case chat != 11 && chat != -100200300:
		return &Answer{Code: 400, Why: "Bad Request: chat not found"}, nil
	case method == "getChat":
		return nil, f.Chat(strconv.FormatInt(chat, 10))
	}

	if a := checked(ask); a != nil {
		return a, nil
	}
	delete(ask, "chat_id")
	ask["chat"] = f.Chat(strconv.FormatInt(chat, 10))
	switch method {
	case "sendMessage":
		id := f.add(chat, ask)
		f.wake()
		return nil, object{"message_id": id, "date": 1, "chat": f.Chat(strconv.FormatInt(chat, 10)), "text": ask["text"]}
	case "editMessageText":
		id, _ := ask["message_id"].(float64)
		if id < 1 || int(id) > len(f.messages[chat]) || f.messages[chat][int(id)-1]["from"] != nil {
			return &Answer{Code: 400, Why: "Bad Request: message to edit not found"}, nil
		}
		m := f.messages[chat][int(id)-1]
		if m["text"] == ask["text"] && len(buttonsOf(m)) == len(buttonsOf(ask)) {
			return &Answer{Code: 400, Why: "Bad Request: message is not modified: specified new message content and reply markup are exactly the same"}, nil
		}
		f.messages[chat][int(id)-1] = object{"message_id": m["message_id"], "date": 1, "chat": ask["chat"], "text": ask["text"],
			"reply_markup": ask["reply_markup"]}
		return nil, f.messages[chat][int(id)-1]
	}
	return &Answer{Code: 404, Why: "Not Found: method not found"}, nil
}

// checked holds a message to the limits of the documentation.
func checked(ask object) *Answer {
	text, _ := ask["text"].(string)
	preview, _ := ask["link_preview_options"].(object)
	switch n := len(utf16.Encode([]rune(text))); {
	case strings.TrimSpace(text) == "":
		return &Answer{Code: 400, Why: "Bad Request: message text is empty"}
	case n > 4096:
		return &Answer{Code: 400, Why: "Bad Request: message is too long"}
	case ask["parse_mode"] != nil:
		return &Answer{Code: 400, Why: "a parse_mode came"}
	case preview["is_disabled"] != true:
		return &Answer{Code: 400, Why: "a preview of links came"}
	}
	for _, b := range buttonsOf(ask) {
		if len(b.word) < 1 || len(b.word) > 64 {
			return &Answer{Code: 400, Why: "Bad Request: BUTTON_DATA_INVALID"}
		}
	}
	return nil
}
