package telegram_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"sallyport/internal/base/problem"
	"sallyport/internal/port/channel"
	"sallyport/internal/port/channel/channeltest"
	"sallyport/internal/port/channel/telegram"
	"sallyport/internal/port/channel/telegram/telegramtest"
)

type object = map[string]any

func TestTelegramKeepsWhatChannelsPromise(t *testing.T) {
	channeltest.Run(t, func(t *testing.T) channeltest.Platform { return telegramtest.Open(t) })
}

// run listens until the test ends, and hands over what comes.
func run(t *testing.T, f *telegramtest.Fake, take func(channel.Event) error) (d channel.Driver, events <-chan channel.Event, lost <-chan string) {
	t.Helper()
	h := channeltest.Listen(t, f.Driver(t), "", take)
	<-h.Ready
	t.Cleanup(func() {
		h.Cancel()
		if err := <-h.Done; err != nil {
			t.Errorf("told to end: %v", err)
		}
	})
	return h.Driver, h.Events, h.Lost
}

func TestAnUpdateIsConfirmedOnlyOnceItWasTaken(t *testing.T) {
	f := telegramtest.Open(t)
	tries := 0
	var early []int64
	_, events, _ := run(t, f, func(channel.Event) error {
		f.Mu.Lock()
		defer f.Mu.Unlock()
		for _, c := range f.Confirms {
			if c > 1001 {
				early = append(early, c)
			}
		}
		if tries++; tries < 3 {
			return errors.New("not now")
		}
		return nil
	})
	f.Say(t, channeltest.Saying{By: f.People()[0], Place: f.Place(), Text: "one"})
	if e := <-events; e.Cursor != "1002" || e.Text != "one" {
		t.Errorf("%+v", e)
	}
	if len(early) > 0 || tries != 3 {
		t.Errorf("after %d tries these were confirmed: %v", tries, early)
	}
}

func TestWhatCannotBeReadIsToldAndHoldsUpNothing(t *testing.T) {
	f := telegramtest.Open(t)
	_, events, lost := run(t, f, nil)
	f.Mu.Lock()
	f.Put(object{"message": object{"message_id": "not a number"}})
	f.Put(object{"message": object{"message_id": 5, "date": 1, "chat": f.Chat("11"), "new_chat_members": []object{{"id": 1}}}})
	f.Put(object{"callback_query": object{"id": "x", "from": object{"id": 11}, "message": object{"message_id": 5, "date": 0, "chat": f.Chat("11")}, "data": "no word of ours"}})
	f.Mu.Unlock()
	f.Say(t, channeltest.Saying{By: f.People()[0], Place: f.Direct(), Text: "after"})
	if place := <-lost; place != "" {
		t.Errorf("lost in %q", place)
	}
	if e := <-events; e.Text != "after" {
		t.Errorf("%+v", e)
	}
}

func TestAPressIsAnsweredOnceItWasTaken(t *testing.T) {
	f := telegramtest.Open(t)
	d, events, _ := run(t, f, nil)
	id, err := d.Deliver(t.Context(), channel.Message{Place: "11", Text: "?", Card: &channel.Card{Question: "q1", Options: []channel.Option{{Key: "yes", Label: "Yes"}}}})
	if err != nil {
		t.Fatal(err)
	}
	f.Press(t, "11", id, f.People()[0], "yes")
	if e := <-events; e.Press == nil || *e.Press != (channel.Press{Question: "q1", Option: "yes"}) || e.Place.Kind != channel.Direct || e.Text != "" {
		t.Errorf("%+v", e)
	}
	for {
		f.Mu.Lock()
		done, changed := f.Queries["q0"], f.Changed
		f.Mu.Unlock()
		if done {
			return
		}
		select {
		case <-changed:
		case <-time.After(time.Minute):
			t.Fatal("the button waits for ever")
		}
	}
}

func TestWhoWritesAsAChatHasNoAccount(t *testing.T) {
	f := telegramtest.Open(t)
	_, events, _ := run(t, f, nil)
	f.Mu.Lock()
	f.Put(object{"message": object{
		"message_id": 7, "date": 1, "chat": f.Chat("-100200300"), "from": object{"id": 1087968824, "is_bot": true, "first_name": "Group"},
		"sender_chat": f.Chat("-100200300"), "text": "confirm",
	}})
	f.Mu.Unlock()
	if e := <-events; e.Sender.Account != "" || e.Sender.Handle != "chat -100200300" {
		t.Errorf("%+v", e.Sender)
	}
}

func TestANumberOfAThreadCountsInForumsAlone(t *testing.T) {
	f := telegramtest.Open(t)
	d, events, _ := run(t, f, nil)
	f.Mu.Lock()
	f.Put(object{"message": object{"message_id": 8, "date": 1, "chat": object{"id": -5, "type": "supergroup", "title": "g"}, "message_thread_id": 3, "from": object{"id": 11}, "text": "x"}})
	f.Mu.Unlock()
	if e := <-events; e.Thread != "" || e.Place.Kind != channel.Group {
		t.Errorf("%+v", e)
	}
	f.Say(t, channeltest.Saying{By: f.People()[0], Place: f.Place(), Thread: "9", Text: "z"})
	if e := <-events; e.Thread != "9" || e.Quote != nil {
		t.Errorf("%+v answers to %+v", e, e.Quote)
	}
	if _, err := d.Deliver(t.Context(), channel.Message{Place: "-100200300", Thread: "9", ReplyTo: "8", Text: "y"}); err != nil {
		t.Fatal(err)
	}
	if got := f.Arrived(t, "-100200300")[0]; got.Thread != "9" {
		t.Errorf("%+v", got)
	}
}

func TestTwoEditsOfOneSecondHaveTwoNames(t *testing.T) {
	f := telegramtest.Open(t)
	_, events, _ := run(t, f, nil)
	id := f.Say(t, channeltest.Saying{By: f.People()[0], Place: f.Direct(), Text: "a"})
	f.Edit(t, "11", id, "b")
	f.Edit(t, "11", id, "c")
	<-events
	if b, c := <-events, <-events; b.ID == c.ID || !b.Edited || !c.Edited {
		t.Errorf("%+v, %+v", b, c)
	}
}

func TestManyNamesCallNobody(t *testing.T) {
	f := telegramtest.Open(t)
	d, _, _ := run(t, f, nil)
	text := strings.Repeat("😀 @someone é ", 150) + "me@example.org @"
	if _, err := d.Deliver(t.Context(), channel.Message{Place: "11", Text: text}); err != nil {
		t.Fatal(err)
	}
	if a := f.Arrived(t, "11")[0]; a.Calls || a.Text != text {
		t.Errorf("%+v", a)
	}
}

func TestARefusalSaysWhatToDo(t *testing.T) {
	for _, c := range []struct {
		answer telegramtest.Answer
		hook   bool
		kind   problem.Kind
	}{
		{answer: telegramtest.Answer{Code: 401, Why: "Unauthorized"}, kind: problem.Denied},
		{answer: telegramtest.Answer{Code: 404, Why: "Not Found"}, kind: problem.Denied},
		{hook: true, kind: problem.Refused},
		{answer: telegramtest.Answer{Code: 409, Why: "Conflict: terminated by other getUpdates request"}, kind: problem.Internal},
		{answer: telegramtest.Answer{Code: 500, Why: "Internal " + telegramtest.Token}, kind: problem.Internal},
	} {
		f := telegramtest.Open(t)
		f.Hook = c.hook
		if !c.hook {
			f.Strict = func(string) *telegramtest.Answer { return &c.answer }
		}
		err := f.Driver(t).Run(t.Context(), channel.Listener{Ready: func(channel.Self) {}})
		if problem.KindOf(err) != c.kind || strings.Contains(fmt.Sprint(err), telegramtest.Token) {
			t.Errorf("%+v: %v is %s", c.answer, err, problem.KindOf(err))
		}
	}
}

func TestAMessageThatCanNeverArriveIsDead(t *testing.T) {
	f := telegramtest.Open(t)
	d, _, _ := run(t, f, nil)
	for _, m := range []channel.Message{
		{Place: "99", Text: "x"}, {Place: "ann", Text: "x"}, {Place: "11", Text: " "}, {Place: "11", Thread: "x", Text: "x"},
		{Place: "-100200300", Account: "11", Text: "for ann alone"}, {Place: "11", Text: strings.Repeat("x", 4097)},
	} {
		if _, err := d.Deliver(t.Context(), m); !errors.Is(err, channel.ErrDead) {
			t.Errorf("%+v: %v", m, err)
		}
	}
	if err := d.Update(t.Context(), "5", channel.Message{Place: "11", Text: "x"}); !errors.Is(err, channel.ErrDead) {
		t.Error(err)
	}
	id, err := d.Deliver(t.Context(), channel.Message{Place: "11", Text: "x"})
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Update(t.Context(), id, channel.Message{Place: "11", Text: "x"}); err != nil {
		t.Errorf("nothing changed: %v", err)
	}
	f.Mu.Lock()
	f.Strict = func(method string) *telegramtest.Answer {
		if method == "sendMessage" { // the first poll may come after this
			return &telegramtest.Answer{Code: 500, Why: "Internal Server Error"}
		}
		return nil
	}
	f.Mu.Unlock()
	if _, err := d.Deliver(t.Context(), channel.Message{Place: "11", Text: "x"}); err == nil || errors.Is(err, channel.ErrDead) {
		t.Errorf("a fault of the server: %v", err)
	}
}

func TestWithoutASessionNothingIsSent(t *testing.T) {
	if _, err := telegramtest.Open(t).Driver(t).Deliver(t.Context(), channel.Message{Place: "11", Text: "x"}); !errors.Is(err, channel.ErrAway) {
		t.Error(err)
	}
}

func TestTheTokenIsReadAtEachConnectAndShownNowhere(t *testing.T) {
	d, err := telegram.Open(map[string]string{"api": "http://127.0.0.1:1"}, func() (string, error) { return telegramtest.Token, nil })
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Run(t.Context(), channel.Listener{}); err == nil || strings.Contains(err.Error(), "AAtest") {
		t.Errorf("%v", err)
	}
	d, _ = telegram.Open(nil, func() (string, error) { return "", errors.New("no file") })
	if err := d.Run(t.Context(), channel.Listener{}); err == nil || err.Error() != "no file" {
		t.Errorf("%v", err)
	}
}

func TestAWrongSettingIsRefusedByName(t *testing.T) {
	for name, settings := range map[string]map[string]string{"url": {"url": "x"}, "api": {"api": "http://example.org"}} {
		if _, err := telegram.Open(settings, nil); problem.KindOf(err) != problem.Usage || !strings.Contains(err.Error(), name) {
			t.Errorf("%v: %v", settings, err)
		}
	}
}

func FuzzEvent(f *testing.F) {
	f.Add(`{"update_id":1,"message":{"message_id":1,"date":1,"chat":{"id":1},"text":"@port_bot","entities":[{"type":"mention","offset":0,"length":9}]}}`)
	f.Add(`{"update_id":1,"message":{"message_id":1,"text":"é😀","entities":[{"type":"mention","offset":-1,"length":9},{"type":"mention","offset":9223372036854775807,"length":9223372036854775807}]}}`)
	f.Add(`{"update_id":1,"callback_query":{"id":"1","message":{"date":0},"data":"a:b"}}`)
	f.Fuzz(func(t *testing.T, text string) { telegram.Read(json.RawMessage(text)) })
}
