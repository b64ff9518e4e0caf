package channels_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"sallyport/internal/base/audit"
	"sallyport/internal/base/id"
	"sallyport/internal/drive/dispatch"
	"sallyport/internal/port/channel/channeltest"
	"sallyport/internal/rule/right"
	"sallyport/internal/store"
	"sallyport/internal/who/group"
	"sallyport/internal/who/person"
)

// TestAnAdminWhomTheTerminalAloneKnowsIsAskedThereAndAnswers holds CH-052 and CH-112 for another user of this machine.
func TestAnAdminWhomTheTerminalAloneKnowsIsAskedThereAndAnswers(t *testing.T) {
	play(t, []string{"echo", "notes"}, func(t *testing.T, s *scene) {
		const account = "1002"
		ada := person.Person{ID: id.NewPerson(), Name: "ada"}
		s.Tx(func(ctx context.Context, tx store.Tx) error {
			return errors.Join(tx.AddPerson(ctx, ada), tx.Link(ctx, person.AtTerminal(1002), ada.ID, "ada"), tx.Grant(ctx, ada.ID, right.Held{Role: right.GroupAdmin, Group: "echo"}))
		})
		at := channeltest.DirectOf(bob)
		s.wire(at, "echo")
		s.lives()
		s.tells(bob, "one")
		by := audit.Actor{Kind: "person", Name: "ada", UID: 1002, Person: ada.ID, Identity: person.AtTerminal(1002).String()}
		for _, verb := range []string{"POST /v1/groups/{group}/say", "GET /v1/groups/{group}/watch"} {
			if err := right.May(right.Asker{Held: []right.Held{{Role: right.GroupAdmin, Group: "echo"}}}, verb, string(group.Host)); err != nil {
				t.Errorf("%s: %v", verb, err)
			}
		}

		chat, err := s.dispatch.Open(t.Context(), group.Host, account)
		if err != nil {
			t.Fatal(err)
		}
		ctx, leave := context.WithCancel(t.Context())
		defer leave()
		var shown []string
		err = s.dispatch.Watch(ctx, chat.ID, 10, func(lines []dispatch.Line) error {
			for _, l := range lines {
				if l.Out != nil {
					shown = append(shown, l.Out.Text)
				}
				if l.Kind == dispatch.LineReady {
					leave()
				}
			}
			return nil
		})
		if err != nil || len(shown) != 1 || !strings.Contains(shown[0], "bob") {
			t.Fatalf("shown %q, %v", shown, err)
		}
		time.Sleep(time.Second)
		if _, err := s.dispatch.Say(t.Context(), dispatch.Said{Group: group.Host, Text: "Allow", Account: account, Name: "ada", By: by}); err != nil {
			t.Fatal(err)
		}
		same(t, "heard", s.heard(), "echo: one")
	})
}
