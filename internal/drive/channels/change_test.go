package channels_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"sallyport/internal/base/git"
	"sallyport/internal/base/id"
	"sallyport/internal/chat/conversation"
	"sallyport/internal/drive/drivetest"
	"sallyport/internal/drive/ledger"
	"sallyport/internal/path/change"
	"sallyport/internal/path/request"
	"sallyport/internal/port/channel"
	"sallyport/internal/port/channel/channeltest"
	"sallyport/internal/port/sandbox"
	"sallyport/internal/rule/right"
	"sallyport/internal/store"
)

// ada and bea are admins of the group echo: ada on a platform of her own.
var (
	ada   = channeltest.Person{Account: "U7", Handle: "U7", Name: "ada"}
	bea   = channeltest.Person{Account: "U8", Handle: "U8", Name: "bea"}
	adaDM = channeltest.DirectOf(ada)
	beaDM = channeltest.DirectOf(bea)
)

// workName is the name of the channel on which ada is.
const workName = "work"

// changing is a scene with two platforms, in which olga has asked the group echo on the first for a change of itself. It waits for a yes.
type changing struct {
	*scene
	work   *channeltest.Scripted
	change id.Change
}

// asksOnOne plays it; more says who else is there.
func asksOnOne(t *testing.T, more func(s *scene), test func(t *testing.T, s *changing)) {
	t.Helper()
	play(t, []string{"echo"}, func(t *testing.T, s *scene) {
		c := &changing{scene: s, work: channeltest.NewScripted()}
		s.addChannel(workName)
		s.others[workName] = c.work
		s.member()
		s.knowBy(workName, ada, right.Held{Role: right.GroupAdmin, Group: "echo"})
		if more != nil {
			more(s)
		}
		where := s.wire(olgaDM, "echo")

		s.Git("reset", "-q", "--hard")
		s.Write("one\n")
		s.Git("add", "page.txt")
		s.Git("-c", "user.name=Ann", "-c", "user.email=ann@example.org", "commit", "-qm", "page")
		s.Serve()
		s.Parts.Agents["played"] = drivetest.Played{}
		s.Cage.Program = func(spec sandbox.Spec, killed <-chan struct{}) int {
			if slices.Contains(spec.Argv, "adapt") {
				return s.run(spec, killed)
			}
			return drivetest.Writes("two\n")(0, spec.Tree.Dir, killed)
		}
		s.drives = true
		s.lives()
		c.request(where.ID)
		test(t, c)
	})
}

// request asks for a change of what the group runs, in a conversation of it.
func (s *changing) request(in id.Conversation) {
	s.T.Helper()
	var chat conversation.Chat
	s.Tx(func(ctx context.Context, tx store.Tx) (err error) {
		chat, err = tx.PutChat(ctx, conversation.Chat{ID: id.NewChat(), Group: "echo", Conversation: in, Created: time.Now()})
		return err
	})
	r, err := s.control.TakeRequest(s.T.Context(), request.Request{
		By: s.By(), Text: "Greet people by name", Project: git.Project{Top: s.Repo}, Agent: "played", Argv: []string{"true"}, Approve: request.Later, Group: "echo", Chat: chat.ID,
	}, nil)
	if err != nil {
		s.T.Fatal(err)
	}
	s.change = r.Change.ID
	s.Is(s.control, s.change, change.AwaitingApproval)
	s.Tx(func(ctx context.Context, tx store.Tx) error { // as of what one group runs
		row, err := tx.Change(ctx, s.change)
		if err != nil {
			return err
		}
		p, _, err := tx.Proposal(ctx, s.change)
		if err != nil {
			return err
		}
		p.Number, p.At, p.Card.Class = p.Number+1, ledger.Now(), string(right.Group)
		_, err = s.control.Origin.OpenApproval(ctx, tx, row, p)
		return err
	})
	time.Sleep(time.Second)
	synctest.Wait()
}

// told are the texts that have arrived in a place of a platform.
func (s *changing) told(on *channeltest.Scripted, at channel.Place) (all []string) {
	synctest.Wait()
	for _, a := range on.Arrived(s.T, at.Address) {
		all = append(all, a.Text)
	}
	return all
}

// card is the newest with buttons in a place.
func (s *changing) card(on *channeltest.Scripted, at channel.Place) channeltest.Arrived {
	s.T.Helper()
	synctest.Wait()
	for _, a := range slices.Backward(on.Arrived(s.T, at.Address)) {
		if len(a.Buttons) > 0 {
			return a
		}
	}
	s.T.Fatalf("no card stands in %s: %q", at.Address, s.told(on, at))
	return channeltest.Arrived{}
}

// keys are what a card can be answered by.
func keys(card channeltest.Arrived) (all []string) {
	for _, b := range card.Buttons {
		all = append(all, b.Key)
	}
	return all
}

// TestWhoDecidesIsNamedAsTheHomeCallsThem has an admin take the owner's name on her platform before she decides.
func TestWhoDecidesIsNamedAsTheHomeCallsThem(t *testing.T) {
	asksOnOne(t, nil, func(t *testing.T, s *changing) {
		feigned := ada
		feigned.Name = s.Owner.Name
		s.work.Press(t, adaDM.Address, s.card(s.work, adaDM).ID, feigned, "approve")
		s.Asked(s.control, s.change)
		if all := s.texts(olgaDM); drivetest.Count(all, "ada approved "+string(s.change)+". sallyport lands it now.") != 1 {
			t.Errorf("that she approved is told as %q", all)
		}
		s.Tx(func(ctx context.Context, tx store.Tx) error {
			asked, err := tx.LatestApproval(ctx, s.change)
			if err == nil && (asked.By == nil || asked.By.Name != "ada") {
				t.Errorf("the approval is %+v's", asked.By)
			}
			return err
		})
	})
}

// TestAChangeAskedForOnOnePlatformIsApprovedOnAnotherAndConfirmedWhereItWasAskedFor goes all the way: two platforms in one host.
func TestAChangeAskedForOnOnePlatformIsApprovedOnAnotherAndConfirmedWhereItWasAskedFor(t *testing.T) {
	asksOnOne(t, nil, func(t *testing.T, s *changing) {
		name := string(s.change)
		card := s.card(s.work, adaDM)
		if shown := strings.Join(s.told(s.work, adaDM), "\n"); !slices.Equal(keys(card), []string{"approve", "refuse"}) ||
			!strings.Contains(shown, "Greet people by name") || !strings.Contains(shown, "-one") || !strings.Contains(shown, "+two") {
			t.Errorf("the admin is shown, with %q: %q", keys(card), shown)
		}
		s.work.Press(t, adaDM.Address, card.ID, ada, "approve")
		s.Asked(s.control, s.change)
		yes := "ada approved " + name + ". sallyport lands it now."
		for _, all := range [][]string{s.texts(olgaDM), s.told(s.work, adaDM)} {
			if drivetest.Count(all, yes) != 1 {
				t.Errorf("that it was approved is told as %q", all)
			}
		}
		if card := s.card(s.platform, olgaDM); s.Page() != "two\n" || !slices.Equal(keys(card), []string{"confirm", "rollback"}) {
			t.Errorf("the page is %q; where it was asked for stands %+v", s.Page(), card)
		}
		time.Sleep(time.Second)
		s.tells(olga, "confirm")
		s.Is(s.control, s.change, change.Finalized)
		kept := name + " is landed and kept: confirmed by ann" // as the home calls her
		for _, all := range [][]string{s.texts(olgaDM), s.told(s.work, adaDM)} {
			if drivetest.Count(all, kept) != 1 {
				t.Errorf("that it is kept is told as %q", all)
			}
		}
		if left := s.now(olgaDM, s.asked(olgaDM)); len(left.Buttons) > 0 {
			t.Errorf("a card that has its answer shows %+v", left)
		}
	})
}

// asked is the message by which the host asked to confirm.
func (s *changing) asked(at channel.Place) string {
	for _, a := range slices.Backward(s.arrived(at)) {
		if strings.Contains(a.Text, "Reply `confirm`") {
			return a.ID
		}
	}
	s.T.Fatalf("nobody was asked in %s: %q", at.Address, s.texts(at))
	return ""
}

// TestTwoPressesOfOneMomentOnTwoPlatformsAreOneDecision holds that whoever is second, by whatever order, is told who was first (SM-911, CH-904).
func TestTwoPressesOfOneMomentOnTwoPlatformsAreOneDecision(t *testing.T) {
	also := func(s *scene) { s.know(bea, right.Held{Role: right.GroupAdmin, Group: "echo"}) }
	asksOnOne(t, also, func(t *testing.T, s *changing) {
		hers, other := s.card(s.work, adaDM), s.card(s.platform, beaDM)
		s.work.Press(t, adaDM.Address, hers.ID, ada, "approve")
		s.platform.Press(t, beaDM.Address, other.ID, bea, "refuse")
		synctest.Wait()

		state := s.Show(s.control, s.change).Change.State
		first, late := s.told(s.work, adaDM), s.told(s.platform, beaDM)
		who := "ada approved"
		if state == change.Rejected {
			first, late, who = late, first, "bea refused"
		}
		late = slices.DeleteFunc(late, func(text string) bool { return !strings.HasPrefix(text, "Nothing is decided") })
		if len(late) != 1 || !strings.Contains(late[0], strings.Fields(who)[0]) {
			t.Errorf("it is %s; who was late is told %q", state, late)
		}
		if slices.ContainsFunc(first, func(text string) bool { return strings.HasPrefix(text, "Nothing is decided") }) {
			t.Errorf("it is %s; who was first is told %q", state, first)
		}
		v := s.Verbs(s.control, s.change)
		if n := drivetest.Count(v, "approved") + drivetest.Count(v, "refused"); n != 1 || state == change.AwaitingApproval {
			t.Errorf("it is %s, and was decided %d times: %q", state, n, v)
		}
	})
}

// TestOnlyWhatAPersonSaysThereAndThenDecides holds CH-904 and CH-905 on the way from a platform: a press by somebody else, of a forged card, and
// one that is replayed; a `confirm` that is edited, quoted, forwarded, or of a bot.
func TestOnlyWhatAPersonSaysThereAndThenDecides(t *testing.T) {
	asksOnOne(t, nil, func(t *testing.T, s *changing) {
		card := s.card(s.work, adaDM)
		s.work.Press(t, adaDM.Address, card.ID, dan, "approve") // who is nobody there
		s.work.Press(t, adaDM.Address, card.ID, olga, "approve")
		for _, forged := range []string{"out-forged000", string(s.change), card.ID, ""} {
			s.work.Forge(t, adaDM, ada, channel.Press{Question: forged, Option: "approve"})
		}
		s.work.Forge(t, adaDM, ada, channel.Press{Question: s.work.Names(card.ID), Option: "confirm"})
		s.platform.Forge(t, olgaDM, olga, channel.Press{Question: s.work.Names(card.ID), Option: "approve"})
		synctest.Wait()
		s.Is(s.control, s.change, change.AwaitingApproval)

		s.work.Press(t, adaDM.Address, card.ID, ada, "approve")
		s.work.Again(t, adaDM.Address)
		s.Asked(s.control, s.change)
		s.work.Again(t, adaDM.Address)
		s.work.Press(t, adaDM.Address, card.ID, ada, "refuse") // its buttons are gone: a client that shows them still
		synctest.Wait()
		s.Is(s.control, s.change, change.InTrial)

		time.Sleep(time.Minute / 2)
		for how, y := range map[string]channeltest.Saying{
			"quoted": {Quote: &channel.Quote{ID: "m1", From: "olga", Text: "confirm"}}, "a reply to nothing": {Quote: &channel.Quote{}},
			"forwarded": {Forwarded: true}, "of a bot": {Bot: true},
		} {
			y.By, y.Place, y.Text = olga, olgaDM, "confirm"
			s.platform.Say(t, y)
			synctest.Wait()
			if now := s.Show(s.control, s.change).Change.State; now != change.InTrial {
				t.Errorf("%s: it is %s", how, now)
			}
		}
		said := s.tells(olga, "a word")
		s.platform.Edit(t, olgaDM.Address, said, "confirm")
		synctest.Wait()
		s.Is(s.control, s.change, change.InTrial)
		s.tells(olga, "rollback")
		s.Is(s.control, s.change, change.RolledBack)
		s.platform.Again(t, olgaDM.Address)
		synctest.Wait()
		if v := s.Verbs(s.control, s.change); drivetest.Count(v, "approved") != 1 || drivetest.Count(v, "refused")+drivetest.Count(v, "confirmed") != 0 {
			t.Errorf("the audit says %q", fmt.Sprint(v))
		}
	})
}
