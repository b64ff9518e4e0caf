package matrix_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"sallyport/internal/base/problem"
	"sallyport/internal/port/channel"
	"sallyport/internal/port/channel/matrix"
)

// host is the host's side of a session.
type host struct {
	t      *testing.T
	driver channel.Driver

	mu     sync.Mutex
	events []channel.Event
	lost   []string
	ready  int
	moved  chan struct{}
}

// listen runs one session with settings, until the test ends.
func (p *platform) listen(t *testing.T, cursor string, settings ...string) *host {
	t.Helper()
	said := map[string]string{"server": p.URL}
	for _, s := range settings {
		name, value, _ := strings.Cut(s, "=")
		said[name] = value
	}
	d, err := matrix.Open(said, func() (string, error) { return token, nil })
	if err != nil {
		t.Fatal(err)
	}
	h := &host{t: t, driver: d, moved: make(chan struct{}, 1)}
	change := func(f func()) {
		h.mu.Lock()
		defer h.mu.Unlock()
		f()
		select {
		case h.moved <- struct{}{}:
		default:
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() {
		done <- d.Run(ctx, channel.Listener{
			Cursor: cursor,
			Ready:  func(channel.Self) { change(func() { h.ready++ }) },
			Move:   func(context.Context, string) error { return nil },
			Lost:   func(_ context.Context, place string) { change(func() { h.lost = append(h.lost, place) }) },
			Take: func(_ context.Context, e channel.Event) error {
				change(func() { h.events = append(h.events, e) })
				return nil
			},
		})
	}()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("told to end: %v", err)
		}
	})
	h.await("the session", func() bool { return h.ready > 0 })
	return h
}

func (h *host) await(what string, is func() bool) {
	h.t.Helper()
	limit := time.After(time.Minute)
	for {
		h.mu.Lock()
		ok := is()
		h.mu.Unlock()
		if ok {
			return
		}
		select {
		case <-h.moved:
		case <-limit:
			h.t.Fatalf("%s did not come: %+v, lost %q", what, h.events, h.lost)
		}
	}
}

// said waits for a text, and returns its event and all texts up to it.
func (h *host) said(text string) (e channel.Event, before []string) {
	h.t.Helper()
	h.await(text, func() bool {
		before = nil
		for _, one := range h.events {
			before = append(before, one.Text)
			if one.Text == text {
				e = one
				return true
			}
		}
		return false
	})
	return e, before
}

func words(text string) object {
	return object{"msgtype": "m.text", "body": text, "m.mentions": object{}}
}

// until waits for something on the server, which tells when it changes.
func (s *server) until(t *testing.T, what string, is func() bool) {
	t.Helper()
	limit := time.After(time.Minute)
	for {
		s.mu.Lock()
		ok, changed := is(), s.changed
		s.mu.Unlock()
		if ok {
			return
		}
		select {
		case <-changed:
		case <-limit:
			t.Fatalf("%s did not come", what)
		}
	}
}

func TestAnInvitationIsAcceptedAndTheFirstMessageHeard(t *testing.T) {
	p := newPlatform(t)
	h := p.listen(t, "")
	p.makes("!new:h.example", "", "@bob:h.example")
	p.says("!new:h.example", "m.room.message", "@bob:h.example", words("before you came"))
	p.says("!new:h.example", "m.room.message", "@bob:h.example", words("confirm"))
	p.asks("!new:h.example", "@bob:h.example", true)
	for i := range 2 * syncLimit {
		p.says("!new:h.example", "m.room.message", "@bob:h.example", words(fmt.Sprint("hello ", i)))
	}
	_, before := h.said(fmt.Sprint("hello ", 2*syncLimit-1))
	if len(before) != 2*syncLimit || before[0] != "hello 0" {
		t.Errorf("it came as %q", before)
	}
	p.says("!new:h.example", "m.room.message", "@bob:h.example", words("are you there"))
	if e, _ := h.said("are you there"); e.Place.Kind != channel.Direct {
		t.Errorf("%+v", e)
	}
	p.says("!new:h.example", "m.room.member", "@bob:h.example", object{"membership": "invite"}, "@ann:h.example")
	p.says("!new:h.example", "m.room.message", "@bob:h.example", words("now we are three"))
	if e, _ := h.said("now we are three"); e.Place.Kind != channel.Threaded {
		t.Errorf("%+v", e)
	}
}

func TestWhoIsAskedInAgainHearsWhatIsSaidFromThenOn(t *testing.T) {
	p := newPlatform(t)
	h := p.listen(t, "")
	p.throws(team, "@ann:h.example")
	p.says(team, "m.room.message", "@bob:h.example", words("confirm"))
	p.asks(team, "@bob:h.example", false)
	for i := range 2 * syncLimit {
		p.says(team, "m.room.message", "@bob:h.example", words(fmt.Sprint("hello ", i)))
		if i == syncLimit {
			p.until(t, "us", func() bool { return p.joined[team] })
		}
	}
	if _, before := h.said(fmt.Sprint("hello ", 2*syncLimit-1)); len(before) != 2*syncLimit || before[0] != "hello 0" || len(h.lost) > 0 {
		t.Errorf("it came as %q, lost %q", before, h.lost)
	}
}

func TestOnlyInvitationsThatAreWantedAreAccepted(t *testing.T) {
	p := newPlatform(t)
	p.listen(t, "", "invites=server")
	p.makes("!far:else.example", "", "@eve:else.example")
	p.makes("!near:h.example", "", "@bob:h.example")
	p.asks("!far:else.example", "@eve:else.example", false)
	p.asks("!near:h.example", "@bob:h.example", false)
	p.until(t, "the room of the same server", func() bool { return p.joined["!near:h.example"] })
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.joined["!far:else.example"] {
		t.Error("an invitation of another server was accepted")
	}
}

func TestWhatWasSaidMeanwhileComesOrIsToldToBeLost(t *testing.T) {
	p := newPlatform(t)
	for i := range 40 {
		p.says(team, "m.room.message", "@ann:h.example", words(fmt.Sprint("number ", i)))
	}
	h := p.listen(t, "s6")
	if _, before := h.said("number 39"); len(before) != 40 || before[0] != "number 0" || len(h.lost) > 0 {
		t.Errorf("%q, lost %q", before, h.lost)
	}
	for i := range 200 {
		p.says(team, "m.room.message", "@ann:h.example", words(fmt.Sprint("more ", i)))
	}
	late := p.listen(t, "s46")
	late.said("more 199")
	late.mu.Lock()
	if !slices.Equal(late.lost, []string{team}) {
		t.Errorf("of 200, lost is %q", late.lost)
	}
	late.mu.Unlock()
	h.said("more 199") // so that no cursor of theirs is one that is forgotten
	p.mu.Lock()
	p.forgot = 50
	p.mu.Unlock()
	again := p.listen(t, "s49")
	p.says(team, "m.room.message", "@ann:h.example", words("now"))
	if _, before := again.said("now"); len(before) != 1 || !slices.Equal(again.lost, []string{""}) {
		t.Errorf("with an unknown cursor: %q, lost %q", before, again.lost)
	}
}

func TestAnEncryptedRoomIsToldOnceThatItCannotBeRead(t *testing.T) {
	p := newPlatform(t)
	h := p.listen(t, "")
	p.says(dm, "m.room.encryption", "@ann:h.example", object{"algorithm": "m.megolm.v1.aes-sha2"}, "")
	for range 3 {
		p.says(dm, "m.room.encrypted", "@ann:h.example", object{"algorithm": "m.megolm.v1.aes-sha2", "ciphertext": "x"})
	}
	p.says(team, "m.room.message", "@ann:h.example", words("here you can"))
	if _, before := h.said("here you can"); len(before) != 1 {
		t.Errorf("it came as %q", before)
	}
	told := p.Arrived(t, dm)
	if len(told) != 1 || !strings.Contains(told[0].Text, "encrypted") {
		t.Errorf("they are told %+v", told)
	}
	if _, err := h.driver.Deliver(t.Context(), channel.Message{Place: dm, Text: "a secret"}); !errors.Is(err, channel.ErrDead) {
		t.Errorf("sent where it should be hidden: %v", err)
	}
	if to, err := h.driver.Direct(t.Context(), "@ann:h.example"); err != nil || to == dm {
		t.Errorf("the place of ann is %q, %v", to, err)
	}
}

func TestACardReachesAnAccountThatIsAlone(t *testing.T) {
	p := newPlatform(t)
	h := p.listen(t, "")
	to, err := h.driver.Direct(t.Context(), "@bob:h.example")
	if err != nil || to == "" {
		t.Fatalf("%q, %v", to, err)
	}
	if again, err := h.driver.Direct(t.Context(), "@bob:h.example"); err != nil || again != to {
		t.Errorf("the second time it is %q, %v", again, err)
	}
	card := channel.Message{Place: to, Account: "@bob:h.example", Nonce: "n", Text: "your card"}
	if _, err := h.driver.Deliver(t.Context(), card); err != nil {
		t.Errorf("while bob is asked: %v", err)
	}
	p.says(to, "m.room.member", us, object{"membership": "invite"}, "@eve:else.example")
	if _, err := h.driver.Deliver(t.Context(), card); err == nil || errors.Is(err, channel.ErrDead) {
		t.Errorf("with somebody else there: %v", err)
	}
	p.says(to, "m.room.member", "@eve:else.example", object{"membership": "leave"}, "@eve:else.example")
	p.says(to, "m.room.member", "@bob:h.example", object{"membership": "leave"}, "@bob:h.example")
	if _, err := h.driver.Deliver(t.Context(), card); problem.KindOf(err) != problem.NotFound {
		t.Errorf("while bob is away: %v", err)
	}
	if got := p.Arrived(t, to); len(got) != 1 || got[0].Text != "your card" {
		t.Errorf("there is %+v", got)
	}
	for _, nobody := range []string{"@nobody:h.example", "bob", us, ""} {
		if _, err := h.driver.Direct(t.Context(), nobody); !errors.Is(err, channel.ErrDead) {
			t.Errorf("of %q: %v", nobody, err)
		}
	}
}

// TestARoomThatSomebodyElseMadeIsNobodysOwn holds that whoever makes a room and asks somebody and the assistant in is not told what is meant for
// that person alone: who has made a room rules it, and may come back and read.
func TestARoomThatSomebodyElseMadeIsNobodysOwn(t *testing.T) {
	for name, also := range map[string][]string{"alone": nil, "together": {"@eve:else.example"}} {
		t.Run(name, func(t *testing.T) {
			p := newPlatform(t)
			h := p.listen(t, "")
			const trap, by = "!trap:else.example", "@eve:else.example"
			maker := by
			if also != nil {
				maker = "@ann:h.example"
			}
			p.makes(trap, "", maker)
			p.mu.Lock()
			p.state[trap+" m.room.create "]["content"].(object)["additional_creators"] = also
			p.mu.Unlock()
			p.asks(trap, by, true)
			p.until(t, "us", func() bool { return p.joined[trap] })
			p.says(trap, "m.room.member", by, object{"membership": "join"}, "@ann:h.example")
			p.says(trap, "m.room.member", by, object{"membership": "leave"}, by)
			p.says(trap, "m.room.message", "@ann:h.example", words("are you there"))
			if e, _ := h.said("are you there"); e.Place.Kind == channel.Direct {
				t.Errorf("it counts as a place of ann alone: %+v", e)
			}
			card := channel.Message{Place: trap, Account: "@ann:h.example", Nonce: "n", Text: "your card"}
			if _, err := h.driver.Deliver(t.Context(), card); problem.KindOf(err) != problem.Refused {
				t.Errorf("a card of ann's: %v", err)
			}
			if to, err := h.driver.Direct(t.Context(), "@ann:h.example"); err != nil || to == trap {
				t.Errorf("ann is reached in %q, %v", to, err)
			}
		})
	}
}

func TestAnAnswerStandsWhereItBelongs(t *testing.T) {
	p := newPlatform(t)
	h := p.listen(t, "")
	for i, row := range []struct {
		m    channel.Message
		want string
	}{
		{channel.Message{ReplyTo: "$a"}, "map[m.in_reply_to:map[event_id:$a]]"},
		{channel.Message{Thread: "$t"}, "map[event_id:$t is_falling_back:true m.in_reply_to:map[event_id:$t] rel_type:m.thread]"},
		{channel.Message{Thread: "$t", ReplyTo: "$a"}, "map[event_id:$t m.in_reply_to:map[event_id:$a] rel_type:m.thread]"},
	} {
		row.m.Place, row.m.Nonce, row.m.Text = team, fmt.Sprint("a/b?", i), "x\x1b\x00y"
		if _, err := h.driver.Deliver(t.Context(), row.m); err != nil {
			t.Fatal(err)
		}
		p.mu.Lock()
		content := p.stream[len(p.stream)-1].data["content"].(object)
		p.mu.Unlock()
		if got := fmt.Sprint(content["m.relates_to"]); got != row.want || content["body"] != "xy" || fmt.Sprint(content["m.mentions"]) != "map[]" {
			t.Errorf("%+v goes as %v", row.m, content)
		}
	}
}

func TestAnEventOfAStrangeShapeStopsNobody(t *testing.T) {
	p := newPlatform(t)
	h := p.listen(t, "")
	for i, strange := range []object{
		{"content": "text"}, {"content": object{"msgtype": 1, "body": 2}}, {"origin_server_ts": 1e300}, {"sender": 7}, {"sender": "nobody"}, {"event_id": nil}, {"unsigned": 3}, {"type": object{}},
		{"content": object{"msgtype": "m.text", "body": "x", "m.relates_to": "y", "m.mentions": 4}}, {"state_key": 5},
		{"content": object{"msgtype": "m.text", "body": "x", "m.relates_to": object{"rel_type": "m.replace", "event_id": 1}, "m.new_content": 3}},
	} {
		e := object{"type": "m.room.message", "event_id": fmt.Sprint("$x", i), "sender": "@bob:h.example", "content": words("odd")}
		for name, value := range strange {
			e[name] = value
		}
		p.mu.Lock()
		p.put(team, e)
		p.mu.Unlock()
	}
	p.says(team, "m.room.message", "@ann:h.example", words("still here"))
	h.said("still here")
}

// TestTheNameOfAFileIsNobodysWord holds that a file decides nothing by what it is called.
func TestTheNameOfAFileIsNobodysWord(t *testing.T) {
	p := newPlatform(t)
	h := p.listen(t, "")
	for body, row := range map[string]struct {
		kind, name string
		handed     bool
	}{
		"words":         {"m.text", "", false},
		"a notice":      {"m.notice", "", false},
		"a file":        {"m.file", "", true},
		"an image":      {"m.image", "an image", true},
		"below a video": {"m.video", "approve", false},
		"a new kind":    {"org.example.new", "", true},
	} {
		content := object{"msgtype": row.kind, "body": body}
		if row.name != "" {
			content["filename"] = row.name
		}
		p.says(team, "m.room.message", "@ann:h.example", content)
		e, _ := h.said(body)
		if e.Forwarded != row.handed {
			t.Errorf("%s is handed on: %v", body, e.Forwarded)
		}
	}
}
