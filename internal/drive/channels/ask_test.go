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
	"sallyport/internal/store"
	"sallyport/internal/who/group"
	"sallyport/internal/who/person"
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
			s.mu.Lock()
			defer s.mu.Unlock()
			*made, s.groups = append(*made, string(g)), append(s.groups, g)
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
		if told := s.newest(olgaDM).Text; !strings.HasPrefix(told, "What is the new group to be called?") || len(*made) > 0 || len(s.questions(hallway)) != 1 {
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

// TestWhoWasAskedForANameSaysItNext is CH-067: the next words there of who pressed the button are the name, for ten minutes, and "cancel" is none.
func TestWhoWasAskedForANameSaysItNext(t *testing.T) {
	play(t, []string{"echo", "notes"}, func(t *testing.T, s *scene) {
		made, _ := s.making()
		s.wire(olgaDM, "echo")
		s.lives()
		s.mentions(bob, hallway, "hello")
		for _, last := range []struct {
			says  string
			after time.Duration
		}{{"Cancel", 0}, {"the kitchen", 10 * time.Minute}} {
			s.press(olga, olgaDM, dispatch.CreateNew)
			time.Sleep(last.after)
			s.tells(olga, last.says)
			s.tells(olga, "how are you?")
		}
		same(t, "heard", s.heard(), "echo: how are you?", "echo: the kitchen", "echo: how are you?")
		same(t, "made", *made)

		s.press(olga, olgaDM, dispatch.CreateNew)
		s.tells(olga, "Kitchen Table")
		s.tells(olga, "how are you?")
		same(t, "made", *made, "kitchen-table")
		same(t, "heard", slices.Sorted(slices.Values(s.heard()[3:])), "echo: how are you?", "kitchen-table: hello")
		if n := len(s.questions(hallway)); n > 0 {
			t.Errorf("%d questions wait", n)
		}
	})
}

// TestNobodyIsOfferedAGroupWhoMayHaveNoneMade holds that a card which goes to others than the owner has no such option.
func TestNobodyIsOfferedAGroupWhoMayHaveNoneMade(t *testing.T) {
	play(t, []string{"echo", "notes"}, func(t *testing.T, s *scene) {
		made, _ := s.making()
		s.know(cyd, right.Held{Role: right.GlobalAdmin})
		at := channeltest.DirectOf(cyd)
		s.wire(at, "echo")
		s.Tx(func(ctx context.Context, tx store.Tx) error {
			_, err := tx.Unlink(ctx, person.Identity{Platform: chatName, Account: olga.Account})
			if err == nil {
				_, err = tx.Unlink(ctx, person.AtTerminal(s.Owner.UID))
			}
			return err
		})
		s.lives()
		s.mentions(bob, hallway, "hello")
		if text := s.newest(at).Text; strings.Contains(text, "reate") {
			t.Errorf("the card is\n%s", text)
		}
		s.tells(cyd, "create kitchen")
		same(t, "made", *made)
		s.press(cyd, at, channels.WireTo+"notes")
		same(t, "heard", s.heard(), "echo: create kitchen", "notes: hello")
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

// TestAGroupThatIsThereAfterAllIsHeard holds that a place is wired also where another has made the group that was named.
func TestAGroupThatIsThereAfterAllIsHeard(t *testing.T) {
	play(t, []string{"echo", "notes"}, func(t *testing.T, s *scene) {
		s.making()
		making := s.parts
		s.parts = func(p *channels.Parts) {
			making(p)
			create := p.Create
			p.Create = func(ctx context.Context, g group.Folder, by audit.Actor) error {
				return errors.Join(create(ctx, g, by), errors.New("it is there already"))
			}
		}
		s.lives()
		s.mentions(bob, hallway, "hello")
		s.tells(olga, "create kitchen")
		same(t, "heard", s.heard(), "kitchen: hello")
	})
}

// waiting has the making of groups wait until a test lets it go on, or the host ends.
func (s *scene) waiting(goOn <-chan struct{}) {
	making := s.parts
	s.parts = func(p *channels.Parts) {
		making(p)
		create := p.Create
		p.Create = func(ctx context.Context, g group.Folder, by audit.Actor) error {
			select {
			case <-goOn:
				return create(ctx, g, by)
			case <-ctx.Done():
				return ctx.Err()
			}
		}
	}
}

// TestWhileAGroupIsMadeOthersAreHeard holds that no conversation of a channel waits for it.
func TestWhileAGroupIsMadeOthersAreHeard(t *testing.T) {
	play(t, []string{"echo", "notes"}, func(t *testing.T, s *scene) {
		s.making()
		goOn := make(chan struct{})
		s.waiting(goOn)
		s.member()
		s.wire(danDM, "echo")
		s.lives()
		s.mentions(bob, hallway, "hello")
		s.tells(olga, "create kitchen")
		s.tells(dan, "is anybody there?")
		same(t, "heard while it is made", s.heard(), "echo: is anybody there?")

		close(goOn)
		same(t, "heard", s.heard(), "echo: is anybody there?", "kitchen: hello")
	})
}

// TestAHostThatEndsWhileAGroupIsMadeGoesOnWithItLater holds that its end waits for no group, and that the answer is not lost.
func TestAHostThatEndsWhileAGroupIsMadeGoesOnWithItLater(t *testing.T) {
	play(t, []string{"echo", "notes"}, func(t *testing.T, s *scene) {
		made, _ := s.making()
		goOn := make(chan struct{})
		s.waiting(goOn)
		end := s.lives()
		s.mentions(bob, hallway, "hello")
		s.tells(olga, "create kitchen")
		at := time.Now()
		end()
		if took := time.Since(at); took > 10*time.Second || len(*made) > 0 {
			t.Errorf("the host ended after %s; made %v", took, *made)
		}

		close(goOn)
		s.lives()
		same(t, "heard", s.heard(), "kitchen: hello")
		if told := s.newest(olgaDM).Text; !strings.HasPrefix(told, "The group kitchen is a copy of the template") || len(s.questions(hallway)) > 0 {
			t.Errorf("told %q, %d questions wait", told, len(s.questions(hallway)))
		}
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
