package socket

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"sallyport/internal/chat/message"
	"sallyport/internal/drive/dispatch"
	"sallyport/internal/drive/standing"
	"sallyport/internal/rule/right"
	"sallyport/internal/who/group"
)

// saying takes what is said.
type saying struct {
	Chats
	of []group.Folder
}

func (s *saying) Say(_ context.Context, said dispatch.Said) (message.In, error) {
	s.of = append(s.of, said.Group)
	return message.In{}, nil
}

// noGroups is a home without any.
type noGroups struct{ Groups }

func (noGroups) List(context.Context, string) ([]standing.Seen, []string, error) {
	return nil, nil, nil
}

// TestWhoDecidesAboutAGroupOpensTheHostsOwnChatOnTheSecondSocket holds that whoever is asked there can answer there (CH-052, CH-112).
func TestWhoDecidesAboutAGroupOpensTheHostsOwnChatOnTheSecondSocket(t *testing.T) {
	heard := &saying{}
	o := options(&verbs{})
	o.Chats, o.Groups = heard, noGroups{}
	o.People = roles{1001: {{Role: right.Member, Group: "ada"}}, 1002: {{Role: right.GroupAdmin, Group: "ada"}}, 1003: {{Role: right.GlobalAdmin}}, 1004: {}}
	s := New(o)
	for uid, want := range map[int]int{1001: http.StatusForbidden, 1002: http.StatusOK, 1003: http.StatusOK, 1004: http.StatusForbidden} {
		heard.of = nil
		w := asked(t, s.userHandler(), uid, "POST /v1/groups/host/say", `{"text":"1"}`)
		if w.Code != want || len(heard.of) > 0 != (want == http.StatusOK) {
			t.Errorf("uid %d: %d %s, heard %v", uid, w.Code, w.Body, heard.of)
		}
		if w := asked(t, s.userHandler(), uid, "GET /v1/groups", ""); strings.Contains(w.Body.String(), `"asked":true`) != (want == http.StatusOK) {
			t.Errorf("uid %d: the groups are %s", uid, w.Body)
		}
	}
}
