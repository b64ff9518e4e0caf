package cli

import (
	"strings"
	"testing"
	"time"

	"sallyport/internal/door/api"
)

// TestACardIsShownWithAllThatItIsAbout: what an agent writes into it, the id of the message that is being answered also, leaves nothing out.
func TestACardIsShownWithAllThatItIsAbout(t *testing.T) {
	m := api.Message{ID: "msg-5k2m9a0b", At: time.Now()}
	w := &answerWait{app: &app{json: true}, said: spoken{Message: m}, told: map[string]bool{}}
	for i, o := range []api.Sent{
		{ID: "out-1", Lane: "notice", Card: api.CardDiff, Change: "chg-1", Text: "chg-1  Change what it runs\n  > please " + m.ID},
		{ID: "out-2", Lane: "notice", Card: api.CardDiff, Change: "chg-1", Text: "diff of chg-1, 1 of 1\n+a # " + m.ID},
		{ID: "out-3", Lane: "notice", Card: "approval", Change: "chg-1", Unseen: true, Text: "May chg-1 land?\n1. approve\n2. refuse"},
		{ID: "out-4", Lane: "notice", Text: "The message " + m.ID + " is dead"}, // which is told at the end
	} {
		o.At = m.At.Add(time.Duration(i+1) * time.Second)
		w.sent(o)
	}
	var all []string
	for _, n := range w.said.Notices {
		all = append(all, n.ID)
	}
	if got := strings.Join(all, " "); got != "out-1 out-2 out-3" {
		t.Errorf("shown is %s", got)
	}
}
