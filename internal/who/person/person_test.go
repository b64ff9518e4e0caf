package person_test

import (
	"errors"
	"strings"
	"testing"

	"sallyport/internal/base/audit"
	"sallyport/internal/base/problem"
	"sallyport/internal/who/person"
)

func TestOnlyTheOwnerDecides(t *testing.T) {
	owner := person.Owner{ID: "psn-alice000", UID: 1000, Name: "alice"}
	for name, c := range map[string]struct {
		who audit.Actor
		may bool
	}{
		"the owner":                        {audit.Actor{Kind: "person", Name: "alice", UID: 1000, Person: "psn-alice000", Identity: "terminal:1000"}, true},
		"the owner under another name":     {audit.Actor{Kind: "person", Name: "al", UID: 1000, Person: "psn-alice000"}, true},
		"the owner on another platform":    {audit.Actor{Kind: "person", Name: "@al", UID: -1, Person: "psn-alice000", Identity: "elsewhere:7"}, true},
		"another who takes the name":       {audit.Actor{Kind: "person", Name: "alice", UID: 1001, Person: "psn-mallory0"}, false},
		"a uid that came with a message":   {audit.Actor{Kind: "person", Name: "alice", UID: 1000}, false},
		"root, who is not the owner":       {audit.Actor{Kind: "person", Name: "root", UID: 0, Identity: "terminal:0"}, false},
		"an agent that has the owner's id": {audit.Actor{Kind: "agent", Name: "alice", UID: 1000, Person: "psn-alice000"}, false},
		"the host":                         {audit.Host, false},
		"nobody":                           {audit.Actor{}, false},
	} {
		err := owner.MayDecide(c.who)
		if (err == nil) != c.may {
			t.Errorf("%s: %v", name, err)
		}
		if err != nil && (!errors.Is(err, person.ErrNotOwner) || problem.KindOf(err) != problem.Denied || !strings.Contains(err.Error(), "alice")) {
			t.Errorf("%s: %v does not say who may", name, err)
		}
	}
	if (person.Owner{Name: "root"}).MayDecide(audit.Actor{Kind: "person", Name: "root", UID: 0}) == nil {
		t.Error("in a home without an owner a stranger may decide")
	}
}
