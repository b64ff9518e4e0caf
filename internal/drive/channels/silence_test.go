package channels_test

import (
	"testing"

	"sallyport/internal/base/audit"
	"sallyport/internal/base/problem"
	"sallyport/internal/chat/conversation"
	"sallyport/internal/chat/wiring"
	"sallyport/internal/drive/channels"
	"sallyport/internal/drive/people"
	"sallyport/internal/port/channel/channeltest"
	"sallyport/internal/rule/right"
)

// TestAnAdminSilencesASender holds CH-112: who decides about the group that hears a place makes it strict, and takes what lets somebody talk. Nobody
// is asked about them then.
func TestAnAdminSilencesASender(t *testing.T) {
	play(t, []string{"echo", "notes"}, func(t *testing.T, s *scene) {
		admin := audit.Actor{Kind: "person", Name: "cyd", UID: -1, Person: s.know(cyd, right.Held{Role: right.GroupAdmin, Group: "echo"})}
		s.member()
		at := s.wire(danDM, "echo")
		shared, other := s.wire(hallway, "echo"), s.wire(room, "notes")
		s.hears(hallway, "notes", func(*wiring.Wiring) {})
		s.lives()
		s.tells(dan, "one")

		all := channels.Places{Channels: s.channels}
		for _, c := range []struct {
			where  conversation.Conversation
			policy conversation.Policy
			want   problem.Kind
		}{
			{other, conversation.Strict, problem.Denied}, {s.where(channeltest.DirectOf(eve)), conversation.Strict, problem.Denied},
			{shared, conversation.Public, problem.Denied}, {shared, conversation.Strict, ""}, {at, conversation.Public, ""}, {at, conversation.Strict, ""},
		} {
			if _, err := all.SetPolicy(t.Context(), c.where.ID, c.policy, admin); problem.KindOf(err) != c.want {
				t.Errorf("%s %s: %v", c.where.Name, c.policy, err)
			}
		}
		home := people.People{Ledger: s.control.Ledger, Groups: s.channels.Groups}
		if _, err := home.Revoke(t.Context(), admin, dan.Name, right.Held{Role: right.Member, Group: "echo"}); err != nil {
			t.Fatal(err)
		}
		s.tells(dan, "two")
		same(t, "heard", s.heard(), "echo: one")
		if n := len(s.questions(danDM)); n > 0 || s.drops()[string(wiring.PolicyStrict)] != 1 {
			t.Errorf("%d questions wait; dropped %v", n, s.drops())
		}
	})
}
