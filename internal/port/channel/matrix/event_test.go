package matrix

import (
	"encoding/json"
	"testing"
	"time"
	"unicode/utf8"

	"maunium.net/go/mautrix"
)

func TestAQuoteIsNoPartOfWhatIsSaid(t *testing.T) {
	for body, want := range map[string]string{
		"> <@a:h> confirm\n\nno": "no", "> <@a:h> one\n> two\n\nyes\n> no": "yes\n> no", "> * <@a:h> waves\n\nhi": "hi",
		"> quoted by hand\n\nx": "> quoted by hand\n\nx", "> <@a:h> only": "> <@a:h> only", "plain": "plain", "": "",
	} {
		if got := withoutFallback(body); got != want {
			t.Errorf("%q is read as %q, not %q", body, got, want)
		}
	}
}

// What comes late says so by the server's own clock, or where that is silent by its sender's, and never that it comes from the future.
func TestWhatComesLateSaysSinceWhen(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for event, late := range map[string]time.Duration{
		`{"type":"m.room.message","origin_server_ts":1,"unsigned":{"age":90000}}`:            90 * time.Second,
		`{"type":"m.room.message","origin_server_ts":1,"unsigned":{"age":0}}`:                0,
		`{"type":"m.room.message","origin_server_ts":1767323040000}`:                         5 * time.Second,
		`{"type":"m.room.message","origin_server_ts":1767323040000,"unsigned":{"age":-9}}`:   5 * time.Second,
		`{"type":"m.room.message","origin_server_ts":1767323040000,"unsigned":{"age":"no"}}`: 5 * time.Second,
		`{"type":"m.room.message","origin_server_ts":1999999999999}`:                         0,
		`{"type":"m.room.message"}`:                                                           0,
		`{"type":"m.room.message","unsigned":{"age":9223372036854775807}}`:                    0,
		`{"type":"m.room.message","unsigned":{"age":1e300},"origin_server_ts":1767323040000}`: 5 * time.Second,
		`{"type":"m.room.message","unsigned":{"age":8796093022207},"origin_server_ts":1}`:     8796093022207 * time.Millisecond,
	} {
		e, ok := raw{data: json.RawMessage(event), read: now}.event()
		if !ok || now.Sub(e.Came) != late {
			t.Errorf("%s came at %s, %s late and not %s", event, e.Came, now.Sub(e.Came), late)
		}
	}
}

// FuzzEvent reads what somebody with a server of their own may send.
func FuzzEvent(f *testing.F) {
	f.Add([]byte(`{"type":"m.room.message","event_id":"$1","sender":"@a:h","origin_server_ts":1,"content":{"msgtype":"m.text","body":"> <@b:h> x\n\ny","m.mentions":{"user_ids":["@port:h"]}}}`))
	f.Add([]byte(`{"type":"m.room.member","state_key":"@a:h","content":{"membership":"join","displayname":"A"},"unsigned":{"prev_content":{"membership":"invite"}}}`))
	f.Add([]byte(`{"content":7,"type":[],"origin_server_ts":1e300}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		if !json.Valid(data) {
			return
		}
		s := &session{client: &mautrix.Client{UserID: "@port:h"}}
		e, ok := raw{data: data}.event()
		if !ok {
			return
		}
		_ = e.member()
		_ = memberOf(e.Before)
		_, _ = s.mentioned(e.Content), s.entered([]envelope{e}, true)
		for _, quotes := range []bool{true, false} {
			if text := text(e.Content, quotes); !utf8.ValidString(text) {
				t.Errorf("%q", text)
			}
		}
		if !e.At.IsZero() && e.At.Year() < 1970 {
			t.Errorf("it was said at %s", e.At)
		}
	})
}
