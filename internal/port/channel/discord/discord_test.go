package discord_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"sallyport/internal/base/problem"
	"sallyport/internal/port/channel"
	"sallyport/internal/port/channel/channeltest"
	"sallyport/internal/port/channel/discord"
)

func TestDiscordKeepsWhatChannelsPromise(t *testing.T) {
	channeltest.Run(t, func(t *testing.T) channeltest.Platform { return open(t) })
}

func TestASessionGoesOnBehindWhatWasTaken(t *testing.T) {
	f := open(t)
	tries, tried := 0, make(chan bool, 100)
	first := channeltest.Listen(t, f.Driver(t), "", func(channel.Event) error {
		tried <- true
		if tries++; tries > 1 {
			return errors.New("the host dies")
		}
		return nil
	})
	<-first.Ready
	f.Say(t, channeltest.Saying{By: f.People()[0], Place: f.Place(), Text: "one"})
	f.Say(t, channeltest.Saying{By: f.People()[0], Place: f.Place(), Text: "two"})
	one := <-first.Events
	<-tried
	<-tried
	first.Cancel()
	if err := <-first.Done; err != nil {
		t.Fatal(err)
	}
	f.Say(t, channeltest.Saying{By: f.People()[0], Place: f.Place(), Text: "three"})
	second := channeltest.Listen(t, f.Driver(t), one.Cursor, nil)
	for _, want := range []string{"two", "three"} {
		if e := <-second.Events; e.Text != want {
			t.Errorf("%q came, not %q", e.Text, want)
		}
	}
	<-second.Ready
	if len(second.Lost) != 0 {
		t.Error("it is said that something is lost")
	}
}

func TestWhatAnotherSessionDoesNotTellIsLost(t *testing.T) {
	f := open(t)
	first := channeltest.Listen(t, f.Driver(t), "", nil)
	<-first.Ready
	cursor := <-first.Moved
	first.Cancel()
	<-first.Done
	if len(first.Lost) != 0 {
		t.Error("something was lost before anybody listened")
	}
	f.forget()
	second := channeltest.Listen(t, f.Driver(t), cursor, nil)
	if err := <-second.Done; err == nil {
		t.Error("nothing says why the session has ended")
	}
	if cursor = <-second.Moved; cursor == "" {
		t.Error("the host would go on where nothing goes on")
	}
	third := channeltest.Listen(t, f.Driver(t), cursor, nil)
	if place := <-third.Lost; place != "" {
		t.Errorf("lost in %q", place)
	}
	<-third.Ready
}

func TestAWishForAnotherConnectionLosesNothing(t *testing.T) {
	f := open(t)
	h := channeltest.Listen(t, f.Driver(t), "", nil)
	<-h.Ready
	f.Say(t, channeltest.Saying{By: f.People()[0], Place: f.Place(), Text: "one"})
	<-h.Events
	f.mu.Lock()
	for _, s := range f.sessions {
		s.conn.WriteJSON(object{"op": 7})
		s.conn = nil
	}
	f.mu.Unlock()
	f.Say(t, channeltest.Saying{By: f.People()[0], Place: f.Place(), Text: "two"})
	if e := <-h.Events; e.Text != "two" {
		t.Errorf("%+v", e)
	}
	if len(h.Lost) != 0 || len(h.Done) != 0 {
		t.Errorf("%d lost, %d ended", len(h.Lost), len(h.Done))
	}
}

func TestWhereASessionWasToBeResumedMayBeGone(t *testing.T) {
	f := open(t)
	first := channeltest.Listen(t, f.Driver(t), "", nil)
	<-first.Ready
	words := strings.Fields(<-first.Moved)
	first.Cancel()
	<-first.Done
	f.Say(t, channeltest.Saying{By: f.People()[0], Place: f.Place(), Text: "meanwhile"})
	second := channeltest.Listen(t, f.Driver(t), words[0]+" "+words[1]+" ws://127.0.0.1:1", nil)
	if e := <-second.Events; e.Text != "meanwhile" || len(strings.Fields(e.Cursor)) != 3 {
		t.Errorf("%+v", e)
	}
}

// A machine that stands still for a beat has not heard its answer, and is right to leave. It is given more time then.
func TestTheGatewayHearsThatSomebodyListens(t *testing.T) {
	t.Parallel() // it waits, and does little
	var err error
	for beat := int64(500); beat <= 8000; beat *= 2 {
		f := open(t)
		f.beat = beat
		h := channeltest.Listen(t, f.Driver(t), "", nil)
		<-h.Ready
		if err = heardTwice(f, h); err == nil {
			return
		}
	}
	t.Errorf("no second beat came, which comes when the first one was answered: %v", err)
}

// heardTwice waits for the second beat of a session, or its end.
func heardTwice(f *fake, h *channeltest.Heard) error {
	limit := time.After(time.Minute)
	for {
		f.mu.Lock()
		beats, changed := f.beats, f.changed
		f.mu.Unlock()
		if beats > 1 {
			return nil
		}
		select {
		case <-changed:
		case err := <-h.Done:
			return err
		case <-limit:
			return fmt.Errorf("%d beats in a minute", beats)
		}
	}
}

func TestAGatewayThatAnswersNoBeatIsLeft(t *testing.T) {
	f := open(t)
	f.beat = 1
	f.greeting = func(conn *websocket.Conn) bool {
		for {
			if _, _, err := conn.ReadMessage(); err != nil {
				return true
			}
		}
	}
	if err := <-channeltest.Listen(t, f.Driver(t), "", nil).Done; err == nil || !strings.Contains(err.Error(), "does not answer") {
		t.Error(err)
	}
}

func TestAnEndSaysWhatToDo(t *testing.T) {
	for code, kind := range map[int]problem.Kind{4004: problem.Denied, 4014: problem.Refused, 4013: problem.Refused, 4011: problem.Refused, 4000: problem.Internal, 1001: problem.Internal} {
		f := open(t)
		f.greeting = func(conn *websocket.Conn) bool { closeWith(conn, code); return true }
		if err := <-channeltest.Listen(t, f.Driver(t), "", nil).Done; err == nil || problem.KindOf(err) != kind || strings.Contains(err.Error(), "SECRET") {
			t.Errorf("%d: %v is %s", code, err, problem.KindOf(err))
		}
	}
	for status, kind := range map[int]problem.Kind{401: problem.Denied, 500: problem.Internal, 429: problem.Internal} {
		f := open(t)
		f.tell = func(string) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { say(w, status, object{"message": token}) })
		}
		if err := f.Driver(t).Run(t.Context(), channel.Listener{}); problem.KindOf(err) != kind || strings.Contains(fmt.Sprint(err), token) {
			t.Errorf("%d: %v is %s", status, err, problem.KindOf(err))
		}
	}
}

func TestAPressIsAnsweredAlsoWhileItIsNotTaken(t *testing.T) {
	f := open(t)
	h := channeltest.Listen(t, f.Driver(t), "", func(channel.Event) error { return errors.New("not now") })
	<-h.Ready
	m := channel.Message{Place: "600", Text: "?", Card: &channel.Card{Question: "q1"}}
	for i := range 12 {
		m.Card.Options = append(m.Card.Options, channel.Option{Key: fmt.Sprintf("o%d", i), Label: "label"})
	}
	id, err := h.Driver.Deliver(t.Context(), m)
	if err != nil {
		t.Fatal(err)
	}
	f.Press(t, "600", id, f.People()[0], "o7")
	f.until(t, "the answer", func() bool {
		for _, done := range f.presses {
			return done
		}
		return false
	})
}

func TestAMessageThatWasSentIsNotSentAgain(t *testing.T) {
	f := open(t)
	h := channeltest.Listen(t, f.Driver(t), "", nil)
	<-h.Ready
	for _, nonce := range []string{"short", strings.Repeat("long", 20)} {
		first, err := h.Driver.Deliver(t.Context(), channel.Message{Place: "500", Nonce: nonce, Text: "once", ReplyTo: "12"})
		if err != nil {
			t.Fatal(err)
		}
		if again, err := h.Driver.Deliver(t.Context(), channel.Message{Place: "500", Nonce: nonce, Text: "once", ReplyTo: "press 5"}); err != nil || again != first {
			t.Errorf("%q, then %q, %v", first, again, err)
		}
	}
	if all := f.Arrived(t, "500"); len(all) != 2 {
		t.Errorf("%d arrived", len(all))
	}
}

func TestWhoWritesByAWebHookHasNoAccount(t *testing.T) {
	f := open(t)
	h := channeltest.Listen(t, f.Driver(t), "", nil)
	<-h.Ready
	f.mu.Lock()
	f.event("MESSAGE_CREATE", object{"id": "5", "channel_id": "500", "type": 0, "content": "confirm", "webhook_id": "99", "author": f.user("11", false), "timestamp": "2026-01-02T03:04:05+00:00"})
	f.mu.Unlock()
	if e := <-h.Events; e.Sender.Account != "" || !e.Sender.Bot || e.Sender.Handle != "webhook 99" {
		t.Errorf("%+v", e.Sender)
	}
}

func TestAThreadBelongsToItsRoom(t *testing.T) {
	f := open(t)
	h := channeltest.Listen(t, f.Driver(t), "", nil)
	<-h.Ready
	for range 5 {
		f.Say(t, channeltest.Saying{By: f.People()[0], Place: f.Place(), Thread: "1", Text: "x"})
		if e := <-h.Events; e.Thread != "71" || e.Place != (channel.Place{Address: "500", Kind: channel.Threaded, Name: "team"}) {
			t.Errorf("%+v", e)
		}
	}
	f.mu.Lock()
	asked := f.asked["/channels/71"]
	f.rooms["500"]["name"] = "renamed"
	f.event("CHANNEL_UPDATE", f.rooms["500"])
	f.mu.Unlock()
	if asked != 1 {
		t.Errorf("it was asked for %d times what the thread is", asked)
	}
	if _, err := h.Driver.Deliver(t.Context(), channel.Message{Place: "500", Thread: "71", Text: "there"}); err != nil {
		t.Fatal(err)
	}
	if all := f.Arrived(t, "71"); len(all) != 1 {
		t.Errorf("%+v", all)
	}
	f.Say(t, channeltest.Saying{By: f.People()[0], Place: f.Place(), Text: "x"})
	if e := <-h.Events; e.Place != (channel.Place{Address: "500", Kind: channel.Threaded, Name: "renamed"}) {
		t.Errorf("%+v", e)
	}
}

func TestWhatCannotBeReadIsToldAndHoldsUpNothing(t *testing.T) {
	f := open(t)
	h := channeltest.Listen(t, f.Driver(t), "", nil)
	<-h.Ready
	f.mu.Lock()
	f.event("MESSAGE_CREATE", object{"id": 5})
	f.event("MESSAGE_CREATE", object{"id": "5", "channel_id": "../users", "type": 0, "content": "x", "author": f.user("11", false), "timestamp": "2026-01-02T03:04:05+00:00"})
	f.event("SOMETHING_NEW", object{"id": 5})
	f.event("MESSAGE_CREATE", object{"id": "6", "channel_id": "500", "type": 7, "content": "", "author": f.user("11", false), "timestamp": "2026-01-02T03:04:05+00:00"})
	f.mu.Unlock()
	f.Say(t, channeltest.Saying{By: f.People()[0], Place: f.Direct(), Text: "after"})
	if e := <-h.Events; e.Text != "after" {
		t.Errorf("%+v", e)
	}
	if len(h.Lost) != 2 {
		t.Errorf("%d times lost", len(h.Lost))
	}
}

func TestAMessageThatCanNeverArriveIsDead(t *testing.T) {
	f := open(t)
	h := channeltest.Listen(t, f.Driver(t), "", nil)
	<-h.Ready
	for _, m := range []channel.Message{
		{Place: "999", Text: "x"}, {Place: "../x", Text: "x"}, {Place: "500", Thread: "a/b", Text: "x"}, {Place: "500", Text: ""},
		{Place: "500", Account: "11", Text: "for ann alone"}, {Place: "500", Text: strings.Repeat("*", 1001)},
	} {
		if _, err := h.Driver.Deliver(t.Context(), m); !errors.Is(err, channel.ErrDead) {
			t.Errorf("%.60v: %v", m, err)
		}
	}
	for _, id := range []string{"5", "../5"} {
		if err := h.Driver.Update(t.Context(), id, channel.Message{Place: "500", Text: "x"}); !errors.Is(err, channel.ErrDead) {
			t.Error(err)
		}
	}
	f.mu.Lock()
	f.tell = func(string) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "<html>blocked", http.StatusForbidden) })
	}
	f.mu.Unlock()
	if _, err := h.Driver.Deliver(t.Context(), channel.Message{Place: "500", Text: "x"}); err == nil || errors.Is(err, channel.ErrDead) {
		t.Errorf("a no of something before Discord: %v", err)
	}
}

func TestALimitOfAllIsOneOfAll(t *testing.T) {
	f := open(t)
	h := channeltest.Listen(t, f.Driver(t), "", nil)
	<-h.Ready
	f.mu.Lock()
	f.tell = func(string) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { say(w, 429, object{"retry_after": 2.5, "global": true}) })
	}
	f.mu.Unlock()
	_, err := h.Driver.Deliver(t.Context(), channel.Message{Place: "500", Text: "x"})
	var later *channel.Later
	if !errors.As(err, &later) || !later.All {
		t.Errorf("%v", err)
	}
}

func TestWithoutASessionNothingIsSent(t *testing.T) {
	d := open(t).Driver(t)
	if _, err := d.Deliver(t.Context(), channel.Message{Place: "500", Text: "x"}); !errors.Is(err, channel.ErrAway) {
		t.Error(err)
	}
	if err := d.Update(t.Context(), "1", channel.Message{Place: "500", Text: "x"}); !errors.Is(err, channel.ErrAway) {
		t.Error(err)
	}
	if _, err := d.Direct(t.Context(), "11"); !errors.Is(err, channel.ErrAway) {
		t.Error(err)
	}
}

func TestMarkupIsReadLetterByLetter(t *testing.T) {
	for _, text := range []string{
		"# a", "  ## b", "-# c", "- d\n* e\n+ f", "1. g\n23. h", "> i\n>>> j", "**k** __l__ ~~m~~ ||n||", "`o` ```p```", "[q](https://r.example)", "<@11> <#500> <:s:1> <t:0>",
		":smile: a:b c::d", "https://x.example/a_b_c*d?e=f|g~h", "see https://x.example/_, ok", `\* \\ \`, "http://x.example/*_*", "snake_case_name 2*3*4", "- https://x.example/- # x",
		"@everyone @here", "a | b\n--|--\n", "1.5 and 2) three", "http://", "",
	} {
		if got := shown(discord.Escape(text)); got != text {
			t.Errorf("%q is sent as %q, and reads %q", text, discord.Escape(text), got)
		}
	}
}

func FuzzEscape(f *testing.F) {
	f.Add("# a *b* https://x_y.example/_z_ :smile: <@1> \\")
	f.Fuzz(func(t *testing.T, text string) {
		text = strings.ToValidUTF8(text, "")
		if strings.Contains(text, "://") || strings.ContainsAny(text, "\r\v\f") {
			return // where a link ends, programs do not agree about
		}
		if got := shown(discord.Escape(text)); got != text {
			t.Errorf("%q is sent as %q, and reads %q", text, discord.Escape(text), got)
		}
	})
}

func TestATextIsWhatPeopleRead(t *testing.T) {
	for text, want := range map[string]string{
		"hi <@11> <@!11> <@12>": "hi @ann @ann <@12>", "<:party:123> <a:dance:5>": ":party: :dance:", "<#500> <@&7> <b>": "<#500> <@&7> <b>",
	} {
		if got := discord.Plain(text, "11", "ann"); got != want {
			t.Errorf("%q reads %q, not %q", text, got, want)
		}
	}
}

func TestAWrongSettingIsRefusedByName(t *testing.T) {
	for name, settings := range map[string]map[string]string{"guild": {"guild": "x"}, "api": {"api": "http://example.org"}} {
		if _, err := discord.Open(settings, nil); problem.KindOf(err) != problem.Usage || !strings.Contains(err.Error(), name) {
			t.Errorf("%v: %v", settings, err)
		}
	}
}

func FuzzCursor(f *testing.F) {
	f.Add("s1 5 wss://x")
	f.Fuzz(func(t *testing.T, cursor string) {
		if again := discord.Cursor(cursor); again != "" && discord.Cursor(again) != again {
			t.Errorf("%q is %q, which is %q", cursor, again, discord.Cursor(again))
		}
	})
}

func FuzzMessage(f *testing.F) {
	f.Add(`{"id":"1","author":{"id":"1"},"type":19,"message_reference":{"message_id":"5"},"referenced_message":{"content":"<@1>"}}`)
	f.Fuzz(func(t *testing.T, text string) { discord.Read(json.RawMessage(text)) })
}
