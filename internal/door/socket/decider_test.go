package socket

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"sallyport/internal/base/audit"
	"sallyport/internal/base/id"
	"sallyport/internal/chat/conversation"
	"sallyport/internal/chat/wiring"
	"sallyport/internal/door/api"
	"sallyport/internal/drive/channels"
	"sallyport/internal/rule/right"
	"sallyport/internal/who/group"
	"sallyport/internal/who/person"
)

// ruled and ruledIn are the people and the places of a home with two groups, and what was asked of them.
type ruled struct {
	Members
	did []string
}

type ruledIn struct {
	Places
	of *ruled
}

func (r *ruled) List(context.Context) ([]person.Known, error) {
	known := func(name string, held ...right.Held) person.Known {
		return person.Known{Person: person.Person{ID: id.Person("psn-0000" + name), Name: name}, Held: held}
	}
	return []person.Known{
		known("olga", right.Held{Role: right.Owner}), known("dan0", right.Held{Role: right.Member, Group: "ada"}, right.Held{Role: right.Member, Group: "bob"}),
		known("eve0", right.Held{Role: right.Member, Group: "bob"}), known("nobo"),
	}, nil
}

func (r *ruled) Revoke(_ context.Context, by audit.Actor, name string, h right.Held) (person.Known, error) {
	r.did = append(r.did, fmt.Sprintf("%s takes %s from %s", by.Person, h.Words(), name))
	return person.Known{Held: []right.Held{{Role: right.Member, Group: "bob"}}}, nil
}

func (r ruledIn) Wirings(context.Context, string) ([]channels.Wired, error) {
	heard := func(of id.Conversation, by ...group.Folder) (w channels.Wired) {
		w.ID = of
		for _, g := range by {
			w.Wirings = append(w.Wirings, wiring.New(of, conversation.Group, g, w.Created))
		}
		return w
	}
	return []channels.Wired{heard("cnv-00000001", "ada"), heard("cnv-00000002", "bob"), heard("cnv-00000003", "bob", "ada"), heard("cnv-00000004")}, nil
}

func (r ruledIn) SetPolicy(_ context.Context, of id.Conversation, policy conversation.Policy, by audit.Actor) (channels.Wired, error) {
	r.of.did = append(r.of.did, fmt.Sprintf("%s makes %s %s", by.Person, of, policy))
	return channels.Wired{Wirings: []wiring.Wiring{wiring.New(of, conversation.Group, "bob", time.Time{})}}, nil
}

// TestWhoDecidesAboutAGroupIsServedOnTheSecondSocket holds CH-112 there: they see the people and places of their groups, and no others, and what
// they ask for is asked as them; a member sees none.
func TestWhoDecidesAboutAGroupIsServedOnTheSecondSocket(t *testing.T) {
	r := &ruled{}
	o := options(&verbs{})
	o.Members, o.Places = r, ruledIn{of: r}
	o.People = roles{1001: {{Role: right.Member, Group: "ada"}}, 1002: {{Role: right.GroupAdmin, Group: "ada"}}, 1003: {{Role: right.GlobalAdmin}}}
	h := New(o).userHandler()
	for uid, want := range map[int]struct {
		code           int
		people, places []string
	}{
		1001: {http.StatusForbidden, nil, nil},
		1002: {http.StatusOK, []string{"dan0 member of ada"}, []string{"cnv-00000001 ada", "cnv-00000003 ada"}},
		1003: {http.StatusOK, []string{"olga owner", "dan0 member of ada, member of bob", "eve0 member of bob"}, []string{"cnv-00000001 ada", "cnv-00000002 bob", "cnv-00000003 bob ada", "cnv-00000004"}},
	} {
		var people []api.Person
		var places []api.Conversation
		for path, into := range map[string]any{"GET /v1/people": &people, "GET /v1/conversations": &places} {
			w := asked(t, h, uid, path, "")
			if w.Code != want.code {
				t.Errorf("uid %d: %s: %d %s", uid, path, w.Code, w.Body)
			}
			if w.Code == http.StatusOK {
				if err := json.Unmarshal(w.Body.Bytes(), into); err != nil {
					t.Error(err)
				}
			}
		}
		var names, ids []string
		for _, p := range people {
			text := p.Name
			for n, role := range p.Roles {
				text += []string{" ", ", "}[min(n, 1)] + right.Held{Role: right.Role(role.Role), Group: role.Group}.Words()
			}
			names = append(names, text)
		}
		for _, c := range places {
			text := c.ID
			for _, w := range c.Wirings {
				text += " " + w.Group
			}
			ids = append(ids, text)
		}
		if !slices.Equal(names, want.people) || !slices.Equal(ids, want.places) {
			t.Errorf("uid %d sees %q and %q", uid, names, ids)
		}

		r.did = nil
		a := asked(t, h, uid, "POST /v1/people/dan0/role", `{"role":"member","group":"ada","remove":true}`)
		b := asked(t, h, uid, "POST /v1/conversations/cnv-00000001/policy", `{"unknown_sender_policy":"strict"}`)
		if a.Code != want.code || b.Code != want.code || (len(r.did) == 2) != (want.code == http.StatusOK) {
			t.Errorf("uid %d: %d %s, %d %s; done %q", uid, a.Code, a.Body, b.Code, b.Body, r.did)
		}
		if want.code == http.StatusOK && !slices.Equal(r.did, []string{"psn-known000 takes member of ada from dan0", "psn-known000 makes cnv-00000001 strict"}) {
			t.Errorf("uid %d: %q", uid, r.did)
		}
		for _, w := range []string{a.Body.String(), b.Body.String()} {
			if want.code == http.StatusOK && strings.Contains(w, `"bob"`) != (uid == 1003) {
				t.Errorf("uid %d is answered %s", uid, w)
			}
		}
	}
}
