package channels_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"sallyport/internal/base/audit"
	"sallyport/internal/base/git"
	"sallyport/internal/drive/channels"
	"sallyport/internal/drive/dispatch"
	"sallyport/internal/port/channel/channeltest"
	"sallyport/internal/rule/right"
	"sallyport/internal/who/group"
)

// making has the scene make groups; it returns the names that were made, and what the next is to fail with.
func (s *scene) making() (made *[]string, failing *error) {
	made, failing = &[]string{}, new(error)
	s.parts = func(p *channels.Parts) {
		p.Create = func(ctx context.Context, g group.Folder, _ audit.Actor) error {
			if *failing != nil {
				return *failing
			}
			head, err := s.repo.Head(ctx)
			if err != nil {
				return err
			}
			by := group.By{Ref: "refs/heads/main", Author: git.Signature{Name: "Olga", Email: "olga@example.org", At: time.Now()}}
			by.Committer = by.Author
			if _, err := group.Create(ctx, s.repo, head, group.Beginning{Folder: g}, by); err != nil {
				return err
			}
			*made = append(*made, string(g))
			s.groups = append(s.groups, g)
			return nil
		}
	}
	return made, failing
}

// TestANewGroupIsMadeForAPlaceByTheNameThatIsSaid is CH-065 and CH-067: the button asks for a name, and none is made without one.
func TestANewGroupIsMadeForAPlaceByTheNameThatIsSaid(t *testing.T) {
	play(t, []string{"echo", "notes"}, func(t *testing.T, s *scene) {
		made, _ := s.making()
		s.lives()
		s.mentions(bob, hallway, "hello")
		s.press(olga, olgaDM, dispatch.CreateNew)
		if told := s.newest(olgaDM).Text; !strings.HasSuffix(told, "Say: create NAME") || len(*made) > 0 || len(s.questions(hallway)) != 1 {
			t.Errorf("told %q, made %v, %d questions wait", told, *made, len(s.questions(hallway)))
		}

		s.tells(olga, "Create Kitchen Table!")
		same(t, "made", *made, "kitchen-table")
		same(t, "heard", s.heard(), "kitchen-table: hello")
		if k, _ := s.person(bob); len(k.Held) != 1 || k.Held[0] != (right.Held{Role: right.Member, Group: "kitchen-table"}) {
			t.Errorf("bob holds %+v", k.Held)
		}
		if told := s.newest(olgaDM).Text; !strings.HasPrefix(told, "The group kitchen-table is a copy of the template") || len(s.questions(hallway)) > 0 {
			t.Errorf("told %q, %d questions wait", told, len(s.questions(hallway)))
		}
	})
}

// TestAGroupThatIsThereIsNotMadeAgain holds that its name says that one, also where the host ended between making it and wiring it.
func TestAGroupThatIsThereIsNotMadeAgain(t *testing.T) {
	play(t, []string{"echo", "notes"}, func(t *testing.T, s *scene) {
		made, _ := s.making()
		s.lives()
		s.mentions(bob, hallway, "hello")
		s.tells(olga, "create notes")
		same(t, "made", *made)
		same(t, "heard", s.heard(), "notes: hello")
	})
}

// TestAGroupThatCannotBeMadeLeavesTheQuestion holds that the owner is told, and can answer something else.
func TestAGroupThatCannotBeMadeLeavesTheQuestion(t *testing.T) {
	play(t, []string{"echo", "notes"}, func(t *testing.T, s *scene) {
		_, failing := s.making()
		*failing = errors.New("the disk is full")
		s.lives()
		s.mentions(bob, hallway, "hello")
		s.tells(olga, "create kitchen")
		if told := s.newest(olgaDM).Text; !strings.Contains(told, "the disk is full") || len(s.questions(hallway)) != 1 {
			t.Errorf("told %q, %d questions wait", told, len(s.questions(hallway)))
		}
		s.press(olga, olgaDM, channels.WireTo+"echo")
		same(t, "heard", s.heard(), "echo: hello")
	})
}

// TestNobodyElseHasAGroupMade holds that only who is asked about a place names a group for it.
func TestNobodyElseHasAGroupMade(t *testing.T) {
	play(t, []string{"echo", "notes"}, func(t *testing.T, s *scene) {
		made, _ := s.making()
		s.know(cyd, right.Held{Role: right.GroupAdmin, Group: "echo"})
		s.wire(channeltest.DirectOf(cyd), "echo")
		s.lives()
		s.mentions(bob, hallway, "hello")
		s.tells(cyd, "create kitchen")
		s.mentions(bob, hallway, "create kitchen")
		if len(*made) > 0 || len(s.questions(hallway)) != 1 || slices.Contains(s.heard(), "kitchen: hello") {
			t.Errorf("made %v, %d questions wait, heard %v", *made, len(s.questions(hallway)), s.heard())
		}
	})
}

// TestTheOwnerAloneWithTheAssistantIsHeardByTheOnlyGroup holds that what the owner says in a new place needs no question where there is but
// one group (CH-061, CH-062).
func TestTheOwnerAloneWithTheAssistantIsHeardByTheOnlyGroup(t *testing.T) {
	play(t, []string{"echo"}, func(t *testing.T, s *scene) {
		s.lives()
		s.tells(olga, "good morning")

		same(t, "heard", s.heard(), "echo: good morning")
		same(t, "answered", s.texts(channeltest.DirectOf(olga)), "heard: good morning")
	})
}
