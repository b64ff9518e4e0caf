package slack_test

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"sallyport/internal/base/problem"
	"sallyport/internal/port/channel"
	"sallyport/internal/port/channel/channeltest"
	"sallyport/internal/port/channel/slack"
	"sallyport/internal/port/channel/slack/slacktest"
)

type object = map[string]any

func TestSlackKeepsWhatChannelsPromise(t *testing.T) {
	channeltest.Run(t, func(t *testing.T) channeltest.Platform { return slacktest.Open(t) })
}

func TestAnEventIsAcknowledgedOnlyOnceItWasTaken(t *testing.T) {
	f := slacktest.Open(t)
	tries, early := 0, 0
	h := channeltest.Listen(t, f.Driver(t), "", func(channel.Event) error {
		f.Mu.Lock()
		defer f.Mu.Unlock()
		early += f.Acked
		if tries++; tries < 3 {
			return errors.New("not now")
		}
		return nil
	})
	<-h.Ready
	f.Say(t, channeltest.Saying{By: f.People()[0], Place: f.Place(), Text: "one"})
	<-h.Events
	f.Until(t, "it is acknowledged", func() bool { return len(f.Pending) == 0 })
	if early != 0 || tries != 3 {
		t.Errorf("%d acknowledged early, after %d tries", early, tries)
	}
}

func TestWhatWasNotAcknowledgedComesAgainUnderItsName(t *testing.T) {
	f := slacktest.Open(t)
	taken := make(chan bool, 1)
	first := channeltest.Listen(t, f.Driver(t), "", func(channel.Event) error {
		select {
		case taken <- true:
		default:
		}
		return errors.New("the host dies")
	})
	<-first.Ready
	id := f.Say(t, channeltest.Saying{By: f.People()[0], Place: f.Place(), Text: "one"})
	<-taken
	first.Cancel()
	if err := <-first.Done; err != nil {
		t.Fatal(err)
	}
	second := channeltest.Listen(t, f.Driver(t), "1700000000.000000", nil)
	if e := <-second.Events; e.ID != id || e.Text != "one" {
		t.Errorf("%+v", e)
	}
	if place := <-second.Lost; place != "" {
		t.Errorf("lost in %q", place)
	}
}

func TestTheFirstSessionHasLostNothing(t *testing.T) {
	f := slacktest.Open(t)
	h := channeltest.Listen(t, f.Driver(t), "", nil)
	if me := <-h.Ready; me.Account != "T1/UBOT" || me.Names[0] != "port" {
		t.Errorf("%+v", me)
	}
	if len(h.Lost) != 0 {
		t.Error("something was lost before anybody listened")
	}
}

func TestAnotherConnectionIsOpenedBeforeTheOldOneEnds(t *testing.T) {
	f := slacktest.Open(t)
	h := channeltest.Listen(t, f.Driver(t), "", nil)
	<-h.Ready
	f.Mu.Lock()
	old := f.Sockets[0]
	old.WriteJSON(object{"type": "disconnect", "reason": "refresh_requested", "debug_info": object{}})
	f.Mu.Unlock()
	f.Until(t, "a second connection", func() bool { return len(f.Sockets) == 2 })
	f.Mu.Lock()
	old.WriteJSON(object{"type": "events_api", "envelope_id": "late", "payload": object{"team_id": "T1", "event": object{"type": "message", "user": "U1", "text": "late", "ts": "1.2", "channel": "C1"}}})
	f.Pending["late"] = object{}
	f.Mu.Unlock()
	if e := <-h.Events; e.Text != "late" {
		t.Errorf("%+v", e)
	}
	f.Mu.Lock()
	old.Close()
	f.Mu.Unlock()
	f.Until(t, "the old connection is gone", func() bool { return len(f.Sockets) == 1 })
	for range 20 {
		f.Say(t, channeltest.Saying{By: f.People()[0], Place: f.Place(), Text: "new"})
		select {
		case e := <-h.Events:
			if e.Text != "new" {
				t.Errorf("%+v", e)
			}
		case err := <-h.Done:
			t.Fatalf("the end of the old one has ended the session: %v", err)
		}
	}
	if len(h.Lost) != 0 || len(h.Ready) != 0 {
		t.Errorf("%d lost, %d times ready", len(h.Lost), len(h.Ready))
	}
}

func TestWhatCannotBeReadIsAcknowledgedAndTold(t *testing.T) {
	f := slacktest.Open(t)
	h := channeltest.Listen(t, f.Driver(t), "", nil)
	<-h.Ready
	f.Mu.Lock()
	f.Push("events_api", object{"team_id": "T1", "event": object{"type": "message", "channel": 5}}, 0)
	f.Push("events_api", object{"team_id": "T1", "event": object{"type": "something_new", "of": object{}}}, 0)
	f.Push("slash_commands", object{"command": "/x"}, 0)
	f.Event("C1", object{"type": "message", "subtype": "channel_join", "user": "U1", "text": "joined", "ts": "1.1", "channel": "C1"})
	f.Event("C1", object{"type": "message", "user": "UBOT", "text": "of the app itself", "ts": "1.2", "channel": "C1"})
	m := object{"user": "U1", "text": "see http://x", "ts": "1.1"}
	f.Event("C1", object{"type": "message", "subtype": "message_changed", "ts": "1.3", "channel": "C1", "message": m, "previous_message": m})
	f.Mu.Unlock()
	f.Until(t, "all is acknowledged", func() bool { return len(f.Pending) == 0 && f.Acked == 6 })
	if len(h.Events) != 0 || len(h.Lost) != 1 {
		t.Errorf("%d events, %d lost", len(h.Events), len(h.Lost))
	}
}

func TestWhoIsOfAnotherTeamIsAnotherAccount(t *testing.T) {
	f := slacktest.Open(t)
	h := channeltest.Listen(t, f.Driver(t), "", nil)
	<-h.Ready
	f.Mu.Lock()
	f.Event("C1", object{"type": "message", "user": "U1", "user_team": "T2", "text": "confirm", "ts": "1.1", "channel": "C1"})
	f.Mu.Unlock()
	if e := <-h.Events; e.Sender.Account != "T2/U1" {
		t.Errorf("%+v", e.Sender)
	}
}

func TestAPersonWhoSharesSaysWhoseWordsItAre(t *testing.T) {
	f := slacktest.Open(t)
	h := channeltest.Listen(t, f.Driver(t), "", nil)
	<-h.Ready
	share := []object{{"is_share": true, "author_name": "carl", "text": "confirm &amp; go"}}
	f.Mu.Lock()
	f.Event("C1", object{"type": "message", "user": "U1", "text": "", "ts": "1.1", "channel": "C1", "attachments": share})
	f.Event("C1", object{"type": "message", "user": "U1", "text": "look", "ts": "1.2", "channel": "C1", "attachments": share})
	f.Mu.Unlock()
	if e := <-h.Events; !e.Forwarded || e.Text != "confirm & go" {
		t.Errorf("%+v", e)
	}
	if e := <-h.Events; !e.Forwarded || e.Text != "look" || e.Quote == nil || e.Quote.From != "carl" || e.Quote.Text != "confirm & go" {
		t.Errorf("%+v", e)
	}
}

func TestAnEditAndAPressStandInTheThreadThatTheirMessageBegins(t *testing.T) {
	f := slacktest.Open(t)
	h := channeltest.Listen(t, f.Driver(t), "", nil)
	<-h.Ready
	for _, place := range []channel.Place{f.Place(), f.Direct()} {
		id := f.Say(t, channeltest.Saying{By: f.People()[0], Place: place, Text: "yes"})
		if e := <-h.Events; e.Thread != "" || e.ID != id {
			t.Errorf("%+v", e)
		}
		f.Edit(t, place.Address, id, "confirm")
		card, err := h.Driver.Deliver(t.Context(), channel.Message{Place: place.Address, Text: "?", Card: &channel.Card{Question: "q", Options: []channel.Option{{Key: "a", Label: "A"}}}})
		if err != nil {
			t.Fatal(err)
		}
		f.Press(t, place.Address, card, f.People()[0], "a")
		edit, press := <-h.Events, <-h.Events
		if place.Kind == channel.Direct {
			id, card = "", ""
		}
		if edit.Thread != id || press.Thread != card || press.Place.Kind != place.Kind {
			t.Errorf("an edit stands in %q, a press in %q, of %q and %q", edit.Thread, press.Thread, id, card)
		}
	}
}

func TestNamesAreAskedForOnce(t *testing.T) {
	f := slacktest.Open(t)
	h := channeltest.Listen(t, f.Driver(t), "", nil)
	<-h.Ready
	for range 20 {
		f.Say(t, channeltest.Saying{By: f.People()[0], Place: f.Place(), Text: "x"})
		<-h.Events
	}
	f.Mu.Lock()
	defer f.Mu.Unlock()
	if f.Lookups != 1 {
		t.Errorf("%d times", f.Lookups)
	}
}

func TestATextFullOfNamesHoldsUpNobody(t *testing.T) {
	f := slacktest.Open(t)
	h := channeltest.Listen(t, f.Driver(t), "", nil)
	<-h.Ready
	text := ""
	for i := range 500 {
		text += fmt.Sprintf("<@U9%d> <#C9%d> ", i, i)
	}
	f.Mu.Lock()
	f.Event("C1", object{"type": "message", "user": "U1", "text": text, "ts": "1.1", "channel": "C1"})
	f.Mu.Unlock()
	if e := <-h.Events; e.Sender.Name != "ann" || e.Place.Name != "team" || !strings.HasSuffix(e.Text, "@U9499 #C9499 ") {
		t.Errorf("%+v", e)
	}
	f.Mu.Lock()
	defer f.Mu.Unlock()
	if f.Lookups > 10 {
		t.Errorf("%d people were asked for", f.Lookups)
	}
}

func TestATextIsWhatPeopleRead(t *testing.T) {
	for text, want := range map[string]string{
		"a &lt;b&gt; &amp;amp; c":                     "a <b> &amp; c",
		"hi <@U7> and <@U7|bob>":                      "hi @user-U7 and @bob",
		"in <#C7> and <#C7|general>":                  "in #room-C7 and #general",
		"<!here> <!channel> <!subteam^S1|@team>":      "@here @channel @team",
		"<!date^1392734382^{date}|February 18th>":     "February 18th",
		"<https://x.example>":                         "https://x.example",
		"<https://x.example|https://x.example>":       "https://x.example",
		"<http://x.example|x.example>":                "http://x.example",
		"<https://evil.example|https://good.example>": "https://good.example (https://evil.example)",
		"<https://x.example/?a=1&amp;b=2|docs &gt;>":  "docs > (https://x.example/?a=1&b=2)",
		"<mailto:a@b.example|a@b.example>":            "a@b.example",
		"a < b":                                       "a < b", "<": "<", "<>": "", "<|>": "", "<@>": "@user-", "": "",
	} {
		if got := slack.Plain(text); got != want {
			t.Errorf("%q reads %q, not %q", text, got, want)
		}
	}
}

func FuzzPlain(f *testing.F) {
	f.Add("a &lt;b&gt; <@U1> <http://x|y> <!here>")
	f.Fuzz(func(t *testing.T, text string) {
		plain := slack.Plain(text)
		if !strings.ContainsAny(text, "<&") && plain != text {
			t.Errorf("%q reads %q", text, plain)
		}
		if got := slack.Plain(slacktest.Escape.Replace(text)); got != text {
			t.Errorf("%q was typed, and reads %q", text, got)
		}
	})
}

func TestLinksCanBeFollowed(t *testing.T) {
	f := slacktest.Open(t)
	h := channeltest.Listen(t, f.Driver(t), "", nil)
	<-h.Ready
	text := "see https://x.example/a?b=c&d=(e), or (http://y.example)."
	if _, err := h.Driver.Deliver(t.Context(), channel.Message{Place: "C1", Thread: "1.1", Text: text}); err != nil {
		t.Fatal(err)
	}
	if a := f.Arrived(t, "C1")[0]; a.Text != text || a.Thread != "1.1" {
		t.Errorf("%+v", a)
	}
	f.Mu.Lock()
	defer f.Mu.Unlock()
	var found []any
	for _, e := range slacktest.ElementsOf(f.Said["C1"][0]) {
		if e["type"] == "link" {
			found = append(found, e["url"])
		}
	}
	if fmt.Sprint(found) != "[https://x.example/a?b=c&d=(e http://y.example]" {
		t.Errorf("links: %v", found)
	}
}

func TestARefusalSaysWhatToDo(t *testing.T) {
	no := func(code int, body string) func(string) http.Handler {
		return func(string) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(code)
				fmt.Fprint(w, body)
			})
		}
	}
	for _, c := range []struct {
		tell func(string) http.Handler
		kind problem.Kind
	}{
		{no(200, `{"ok":false,"error":"invalid_auth"}`), problem.Denied},
		{no(200, `{"ok":false,"error":"missing_scope","needed":"chat:write"}`), problem.Denied},
		{no(200, `{"ok":false,"error":"internal_error"}`), problem.Internal},
		{no(502, `<html>`+slacktest.BotToken), problem.Internal},
		{no(200, `{"ok":false,"error":"`+slacktest.BotToken+`"}`), problem.Internal},
		{no(429, ``), problem.Internal},
	} {
		f := slacktest.Open(t)
		f.Tell = c.tell
		err := f.Driver(t).Run(t.Context(), channel.Listener{})
		if problem.KindOf(err) != c.kind || strings.Contains(fmt.Sprint(err), slacktest.BotToken) {
			t.Errorf("%v is %s, not %s", err, problem.KindOf(err), c.kind)
		}
	}

	f := slacktest.Open(t)
	h := channeltest.Listen(t, f.Driver(t), "", nil)
	<-h.Ready
	f.Mu.Lock()
	f.Sockets[0].WriteJSON(object{"type": "disconnect", "reason": "link_disabled"})
	f.Mu.Unlock()
	if err := <-h.Done; problem.KindOf(err) != problem.Refused {
		t.Errorf("socket mode is off: %v", err)
	}
}

func TestNoErrorShowsTheTicketOfAConnection(t *testing.T) {
	f := slacktest.Open(t)
	for _, address := range []string{"ws://127.0.0.1:1/link?ticket=SECRET", "http://x/?ticket=SECRET", "ws://%zz?ticket=SECRET", "ws://127.0.0.1:1/\x7f?ticket=SECRET"} {
		f.Mu.Lock()
		f.Insecure = address
		f.Mu.Unlock()
		if err := f.Driver(t).Run(t.Context(), channel.Listener{}); err == nil || strings.Contains(err.Error(), "SECRET") {
			t.Errorf("%s: %v", address, err)
		}
	}
}

func TestAMessageThatCanNeverArriveIsDead(t *testing.T) {
	f := slacktest.Open(t)
	h := channeltest.Listen(t, f.Driver(t), "", nil)
	<-h.Ready
	for _, m := range []channel.Message{
		{Place: "C9", Text: "x"}, {Place: "C1", Text: ""}, {Place: "C1", Account: "T1/U1", Text: "for ann alone"}, {Place: "D1", Account: "U1", Text: "x"},
	} {
		if _, err := h.Driver.Deliver(t.Context(), m); !errors.Is(err, channel.ErrDead) {
			t.Errorf("%+v: %v", m, err)
		}
	}
	if err := h.Driver.Update(t.Context(), "1.1", channel.Message{Place: "C1", Text: "x"}); !errors.Is(err, channel.ErrDead) {
		t.Error(err)
	}
}

func TestWithoutASessionNothingIsSent(t *testing.T) {
	d := slacktest.Open(t).Driver(t)
	if _, err := d.Deliver(t.Context(), channel.Message{Place: "C1", Text: "x"}); !errors.Is(err, channel.ErrAway) {
		t.Error(err)
	}
	if err := d.Update(t.Context(), "1", channel.Message{Place: "C1", Text: "x"}); !errors.Is(err, channel.ErrAway) {
		t.Error(err)
	}
	if _, err := d.Direct(t.Context(), "T1/U1"); !errors.Is(err, channel.ErrAway) {
		t.Error(err)
	}
}

func TestBothTokensAreNeeded(t *testing.T) {
	for _, text := range []string{"", "xoxb-1", "xapp-1", "xoxp-1 xapp-1"} {
		d, err := slack.Open(nil, func() (string, error) { return text, nil })
		if err != nil {
			t.Fatal(err)
		}
		if err := d.Run(t.Context(), channel.Listener{}); problem.KindOf(err) != problem.Refused {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestAWrongSettingIsRefusedByName(t *testing.T) {
	for name, settings := range map[string]map[string]string{"team": {"team": "x"}, "api": {"api": "http://example.org"}} {
		if _, err := slack.Open(settings, nil); problem.KindOf(err) != problem.Usage || !strings.Contains(err.Error(), name) {
			t.Errorf("%v: %v", settings, err)
		}
	}
}
