package matrix

import (
	"encoding/json"
	"testing"
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
		e, ok := raw(data).event()
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
