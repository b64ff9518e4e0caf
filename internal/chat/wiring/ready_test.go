package wiring_test

import (
	"fmt"
	"testing"

	"sallyport/internal/base/id"
	"sallyport/internal/chat/conversation"
	"sallyport/internal/chat/wiring"
)

// TestAConversationIsCompiledOnceForWhatItIs holds that a pattern is compiled once, and anew as soon as anything of its conversation is another.
func TestAConversationIsCompiledOnceForWhatItIs(t *testing.T) {
	var ready wiring.Ready
	where := conversation.Conversation{ID: "cnv-1", Kind: conversation.Group, Policy: conversation.Request}
	said := wiring.Said{Text: "deploy", Sender: who("member of ada")}
	for _, c := range []struct {
		change func()
		lines  []string
		fresh  bool
		want   wiring.Kind
	}{
		{func() {}, []string{"ada pattern/deploy all drop"}, true, wiring.Heard},
		{func() { where.Name = "another name" }, []string{"ada pattern/deploy all drop"}, false, wiring.Heard},
		{func() {}, []string{"ada pattern/release all drop"}, true, wiring.Dropped},
		{func() {}, []string{"ada pattern/release all drop", "bob pattern/. all drop"}, true, wiring.Heard},
		{func() {}, []string{"bob pattern/. all drop"}, true, wiring.AskSender},
		{func() { where.Policy = conversation.Public }, []string{"bob pattern/. all drop"}, true, wiring.Heard},
		{func() { where.Kind = conversation.Threaded }, []string{"bob pattern/. all drop"}, true, wiring.Heard},
		{func() { where.ID = "cnv-2" }, []string{"bob pattern/. all drop"}, true, wiring.Heard},
		{func() { where.ID, where.Name = "cnv-1", "" }, []string{"bob pattern/. all drop"}, false, wiring.Heard},
	} {
		c.change()
		p, fresh := ready.Place(where, read(c.lines...))
		if v := p.Route(said, wiring.Home{Approver: true}); fresh != c.fresh || v.Kind != c.want {
			t.Errorf("%v: fresh %t; %s", c.lines, fresh, told(v))
		}
	}
	for n := range 2000 { // however many there are
		where.ID = id.Conversation(fmt.Sprint("cnv-many-", n))
		if p, fresh := ready.Place(where, nil); !fresh || len(p.Groups()) > 0 {
			t.Fatalf("%s is there already", where.ID)
		}
	}
}
