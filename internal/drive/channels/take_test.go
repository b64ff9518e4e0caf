package channels_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"sallyport/internal/base/id"
	"sallyport/internal/base/problem"
	"sallyport/internal/chat/conversation"
	"sallyport/internal/chat/message"
	"sallyport/internal/chat/wiring"
	"sallyport/internal/drive/channels"
	"sallyport/internal/port/channel"
	"sallyport/internal/port/channel/channeltest"
	"sallyport/internal/rule/right"
	"sallyport/internal/store"
	"sallyport/internal/who/group"
)

var (
	dan    = channeltest.Person{Account: "U4", Handle: "U4", Name: "dan"}
	room   = channel.Place{Address: "room", Kind: channel.Threaded, Name: "the room"}
	stream = channel.Place{Address: "stream", Kind: channel.Group, Name: "the stream"}
	danDM  = channeltest.DirectOf(dan)
)

// member is dan, who may talk with echo.
func (s *scene) member() {
	s.know(dan, right.Held{Role: right.Member, Group: "echo"})
}

// hears has a group hear a place as a wiring says.
func (s *scene) hears(at channel.Place, g group.Folder, change func(*wiring.Wiring)) {
	s.T.Helper()
	s.Tx(func(ctx context.Context, tx store.Tx) error {
		where, err := s.place(ctx, tx, at)
		if err != nil {
			return err
		}
		w := wiring.New(where.ID, where.Kind, g, time.Now())
		change(&w)
		return tx.PutWiring(ctx, w)
	})
}

// stored are the texts of what a group was told.
func (s *scene) stored(of group.Folder) (texts []string) {
	for _, m := range s.ins(of) {
		texts = append(texts, m.Text)
	}
	return texts
}

func TestWhatIsSaidIsAnsweredWhereItWasSaid(t *testing.T) {
	play(t, []string{"echo"}, func(t *testing.T, s *scene) {
		s.member()
		s.wire(danDM, "echo")
		s.wire(room, "echo")
		s.lives()
		s.tells(dan, "hello")
		s.platform.Say(t, channeltest.Saying{By: dan, Place: room, Thread: "t1", Text: "@echo in a thread"})
		synctest.Wait()
		same(t, "alone", s.texts(danDM), "heard: hello")
		if all := s.arrived(room); len(all) != 1 || all[0].Thread != "t1" || all[0].Text != "heard: @echo in a thread" {
			t.Errorf("in the room arrived %+v", all)
		}
	})
}

// TestAWiringThatChangesCountsFromTheNextWordOn holds CH-116: one that is added, changed or removed while the host runs.
func TestAWiringThatChangesCountsFromTheNextWordOn(t *testing.T) {
	play(t, []string{"echo", "notes"}, func(t *testing.T, s *scene) {
		s.know(dan, right.Held{Role: right.Member, Group: "echo"}, right.Held{Role: right.Member, Group: "notes"})
		where := s.wire(stream, "echo")
		s.lives()
		s.says(dan, stream, "one")
		s.hears(stream, "echo", func(w *wiring.Wiring) { w.Mode, w.Pattern = wiring.Pattern, "^deploy" })
		s.says(dan, stream, "two")
		s.says(dan, stream, "deploy three")
		s.hears(stream, "notes", func(w *wiring.Wiring) { w.Mode, w.Pattern = wiring.Pattern, wiring.Always })
		s.says(dan, stream, "four")
		s.Tx(func(ctx context.Context, tx store.Tx) error {
			_, err := tx.DropWiring(ctx, where.ID, "notes")
			return err
		})
		s.says(dan, stream, "five")
		same(t, "heard", s.heard(), "echo: deploy three", "notes: four")
	})
}

// TestAGroupThatWasMentionedInAThreadHearsItToItsEnd holds CH-017, for that thread alone.
func TestAGroupThatWasMentionedInAThreadHearsItToItsEnd(t *testing.T) {
	play(t, []string{"echo"}, func(t *testing.T, s *scene) {
		s.member()
		s.wire(room, "echo")
		s.lives()
		for _, said := range []struct{ thread, text string }{{"t1", "before"}, {"t1", "@echo come"}, {"t1", "after"}, {"t2", "elsewhere"}} {
			s.platform.Say(t, channeltest.Saying{By: dan, Place: room, Thread: said.thread, Text: said.text})
			synctest.Wait()
		}
		same(t, "heard", s.heard(), "echo: @echo come", "echo: after")
		if d := s.drops(); d[string(wiring.NobodyHears)] != 2 {
			t.Errorf("dropped %v", d)
		}
	})
}

// TestEachGroupOfAConversationHasAChatOfItsOwn holds CH-008 and CH-010 to CH-012: one is woken, one keeps what was said, one hears nothing.
func TestEachGroupOfAConversationHasAChatOfItsOwn(t *testing.T) {
	play(t, []string{"echo", "notes", "deaf"}, func(t *testing.T, s *scene) {
		s.know(dan, right.Held{Role: right.Member, Group: "echo"}, right.Held{Role: right.Member, Group: "notes"})
		s.hears(stream, "echo", func(w *wiring.Wiring) {})
		s.hears(stream, "notes", func(w *wiring.Wiring) { w.Ignored = wiring.Accumulate })
		s.hears(stream, "deaf", func(w *wiring.Wiring) {})
		s.lives()
		s.says(dan, stream, "@echo one")
		s.says(dan, stream, "two")
		same(t, "heard", s.heard(), "echo: @echo one")
		s.says(dan, stream, "@notes three")
		same(t, "heard", slices.Sorted(slices.Values(s.heard())), "echo: @echo one", "notes: @notes three")

		words := s.words[1]
		for _, said := range []string{"@echo one", "two", "@notes three"} {
			if !strings.Contains(words, ">"+said+"<") {
				t.Errorf("the prompt has no %q:\n%s", said, words)
			}
		}
		echo, notes := s.ins("echo"), s.ins("notes")
		if len(echo) != 1 || len(notes) != 3 || len(s.ins("deaf")) != 0 || echo[0].Chat == notes[0].Chat || notes[0].Trigger || !notes[2].Trigger {
			t.Errorf("echo has %+v\nnotes %+v", echo, notes)
		}
		if d := s.drops(); len(d) != 0 {
			t.Errorf("dropped %v", d)
		}
	})
}

// TestWhatIsDroppedIsCountedAndNotKept holds CH-012 and CH-906.
func TestWhatIsDroppedIsCountedAndNotKept(t *testing.T) {
	play(t, []string{"echo"}, func(t *testing.T, s *scene) {
		s.member()
		s.wire(stream, "echo")
		s.lives()
		s.says(dan, stream, "a word that nobody keeps")
		s.says(dan, stream, "a word that nobody keeps")
		if d := s.drops(); d[string(wiring.NobodyHears)] != 2 || len(d) != 1 {
			t.Errorf("dropped %v", d)
		}
		s.Tx(func(ctx context.Context, tx store.Tx) error {
			all, err := tx.Ins(ctx, message.Filter{})
			if len(all) > 0 {
				t.Errorf("kept is %+v", all)
			}
			return err
		})
	})
}

// TestWhatComesAgainChangesNothing holds that a redelivery, an edit and a new name are no new message.
func TestWhatComesAgainChangesNothing(t *testing.T) {
	play(t, []string{"echo"}, func(t *testing.T, s *scene) {
		s.member()
		s.wire(danDM, "echo")
		end := s.lives()
		said := s.tells(dan, "one")
		s.platform.Again(t, danDM.Address)
		s.platform.Edit(t, danDM.Address, said, "another")
		s.platform.Rename(t, dan, "olga")
		s.tells(dan, "two")
		end()
		s.platform.Again(t, danDM.Address)
		s.lives()
		same(t, "heard", s.heard(), "echo: one", "echo: two")
		same(t, "arrived", s.texts(danDM), "heard: one", "heard: two")
		if d := s.drops(); len(d) != 1 || d["an edit of what was said before"] != 1 {
			t.Errorf("dropped %v", d)
		}
		if ins := s.ins("echo"); ins[0].Identity != ins[1].Identity || ins[1].Sender != "olga" {
			t.Errorf("stored %+v", ins)
		}
	})
}

// TestWhatWasSaidWhileTheHostWasAwayIsHeardInItsOrder holds the cursor.
func TestWhatWasSaidWhileTheHostWasAwayIsHeardInItsOrder(t *testing.T) {
	play(t, []string{"echo"}, func(t *testing.T, s *scene) {
		s.member()
		s.wire(danDM, "echo")
		end := s.lives()
		s.tells(dan, "one")
		end()
		for n := range 5 {
			s.tells(dan, fmt.Sprint("away ", n))
		}
		s.lives()
		same(t, "stored", s.stored("echo"), "one", "away 0", "away 1", "away 2", "away 3", "away 4")
	})
}

// TestAFloodIsBoundedAndSilencesNobodyElse holds that strangers and each person have a measure of their own, and that words which link an
// account are no part of it.
func TestAFloodIsBoundedAndSilencesNobodyElse(t *testing.T) {
	play(t, []string{"echo"}, func(t *testing.T, s *scene) {
		s.member()
		s.know(bob, right.Held{Role: right.Member, Group: "echo"})
		s.hears(stream, "echo", func(w *wiring.Wiring) {})
		s.lives()
		const most, over = 6000, 50
		const each, long, short = 60, 95, most - 95*60 // the long ones count as so many messages each
		for n := range long + short + over {
			text := fmt.Sprint("flood ", n)
			if n < long {
				text += strings.Repeat(".", (each-1)*512)
			}
			s.platform.Say(t, channeltest.Saying{By: dan, Place: stream, Text: text})
		}
		synctest.Wait()
		if d := s.drops(); d["too much is said at once"] != over || d[string(wiring.NobodyHears)] != long+short {
			t.Errorf("dropped %v", d)
		}
		s.says(bob, stream, "@echo hello")
		same(t, "heard", s.heard(), "echo: @echo hello")
		time.Sleep(time.Minute)
		s.says(dan, stream, "@echo again")
		same(t, "heard", s.heard(), "echo: @echo hello", "echo: @echo again")
	})
}

// TestWhatIsDroppedInAFloodIsCountedAlone holds that strangers fill no disk by being dropped, in however many places, and that each is counted.
func TestWhatIsDroppedInAFloodIsCountedAlone(t *testing.T) {
	play(t, []string{"echo"}, func(t *testing.T, s *scene) {
		s.wire(stream, "echo")
		s.wire(hallway, "echo")
		s.lives()
		const most, before, each = 6000, 5500, 300
		s.channels.StrangersSaid("chat", before)
		for n := range each {
			s.platform.Say(t, channeltest.Saying{By: bob, Place: stream, Text: fmt.Sprint("flood ", n)})
			s.platform.Say(t, channeltest.Saying{By: eve, Place: hallway, Text: fmt.Sprint("flood ", n)})
		}
		if d := s.drops(); d[string(wiring.NobodyHears)] != 2*each {
			t.Errorf("dropped %v", d)
		}
		s.Tx(func(ctx context.Context, tx store.Tx) error {
			rows, err := tx.DropIntakes(ctx, time.Now().Add(time.Hour))
			if rows > most-before+10 || rows < most-before {
				t.Errorf("there were %d rows", rows)
			}
			return err
		})
		s.mentions(bob, stream, "@echo hello")
		if n := s.undecided(); n != 1 {
			t.Errorf("%d questions wait about who speaks in a flood", n)
		}
	})
}

// TestLongTextsFillNoDisk holds that what somebody may say at once is bounded in bytes as well, words and quotes, and that short words of others
// are heard meanwhile.
func TestLongTextsFillNoDisk(t *testing.T) {
	play(t, []string{"echo"}, func(t *testing.T, s *scene) {
		s.member()
		s.know(bob, right.Held{Role: right.Member, Group: "echo"})
		s.hears(stream, "echo", func(w *wiring.Wiring) { w.Ignored = wiring.Accumulate })
		s.lives()
		const each, many, most = 32 << 10, 300, 3 << 20
		for n := range many {
			text := fmt.Sprint(n, strings.Repeat(" x", each/2))
			s.platform.Say(t, channeltest.Saying{By: dan, Place: stream, Text: text, Quote: &channel.Quote{ID: "m0", From: "bob", Text: text}})
		}
		s.says(bob, stream, "@echo hello")
		same(t, "heard", s.heard(), "echo: @echo hello")
		kept := 0
		for _, m := range s.ins("echo") {
			kept += len(m.Text) + len(m.Quote.Text)
		}
		if kept < most/2 || kept > most || s.drops()["too much is said at once"] < many/2 {
			t.Errorf("kept are %d bytes; dropped %v", kept, s.drops())
		}
		s.says(dan, stream, "@echo it is dan")
		same(t, "heard", s.heard(), "echo: @echo hello", "echo: @echo it is dan")
	})
}

// TestWhatDecidesNothingIsPartOfAFlood holds that being told so again and again fills no disk either, and that whoever has said too much still
// decides.
func TestWhatDecidesNothingIsPartOfAFlood(t *testing.T) {
	play(t, []string{"echo", "notes"}, func(t *testing.T, s *scene) {
		s.wire(olgaDM, "echo")
		s.lives()
		s.mentions(bob, hallway, "hi")
		s.mentions(bob, channel.Place{Address: "yard", Kind: channel.Group, Name: "the yard"}, "hi")
		card := s.newest(olgaDM).ID
		const each, many = 64, 6000 // so much is said, in messages that count as so many
		for range many / each * 2 {
			s.platform.Say(t, channeltest.Saying{By: olga, Place: olgaDM, Text: "ignore" + strings.Repeat(" ", (each-1)*512)})
		}
		synctest.Wait()
		told := 0
		for _, text := range s.texts(olgaDM) {
			if strings.HasPrefix(text, "Nothing is decided: that could mean more than one card") {
				told++
			}
		}
		if most := many / each; told > most || told < most/2 || s.drops()["too much is said at once"] < most/2 {
			t.Errorf("told %d times; dropped %v", told, s.drops())
		}

		s.platform.Press(t, olgaDM.Address, card, olga, channels.Ignore)
		if n := s.undecided(); n != 1 {
			t.Errorf("whoever has said too much decides nothing: %d questions wait, %q", n, s.newest(olgaDM).Text)
		}
	})
}

// TestOneThingThatWasSaidIsOneTransaction breaks each operation of it in turn: nothing of it is there, and it comes again.
func TestOneThingThatWasSaidIsOneTransaction(t *testing.T) {
	for _, op := range []string{"move-cursor", "add-intake", "put-chat", "put-in", "stick"} {
		t.Run(op, func(t *testing.T) {
			play(t, []string{"echo"}, func(t *testing.T, s *scene) {
				s.member()
				s.wire(room, "echo")
				broken := s.breaks(op)
				s.lives()
				s.platform.Say(t, channeltest.Saying{By: dan, Place: room, Thread: "t1", Text: "@echo hello"})
				s.platform.Say(t, channeltest.Saying{By: dan, Place: room, Thread: "t1", Text: "more"})
				time.Sleep(time.Minute)
				same(t, "stored", s.stored("echo"), "@echo hello", "more")
				if broken() != 1 || len(s.drops()) != 0 {
					t.Errorf("%q was broken %d times; dropped %v", op, broken(), s.drops())
				}
			})
		})
	}
}

// TestWhatNothingCanBecomeOfStandsInTheWayOfNothing holds that an event which meets the same error each time is tried once and dropped with its
// reason, and that what is said after it is heard.
func TestWhatNothingCanBecomeOfStandsInTheWayOfNothing(t *testing.T) {
	for _, kind := range []problem.Kind{problem.Denied, problem.Refused, problem.Conflict, problem.NotFound} {
		t.Run(string(kind), func(t *testing.T) {
			play(t, []string{"echo"}, func(t *testing.T, s *scene) {
				s.member()
				s.wire(danDM, "echo")
				tries := 0
				s.spoils(func(m message.In) error {
					if m.Text != "bad" {
						return nil
					}
					tries++
					return fmt.Errorf("store it: %w", problem.New(kind, "it holds a secret word"))
				})
				end := s.lives()
				s.tells(dan, "bad")
				s.tells(dan, "good")
				end()
				s.lives()
				time.Sleep(time.Minute)
				same(t, "stored", s.stored("echo"), "good")
				if d := s.drops(); tries != 1 || len(d) != 1 || d["nothing can become of it: "+string(kind)+" (see the daemon's log)"] != 1 {
					t.Errorf("tried %d times; dropped %v", tries, d)
				}
			})
		})
	}
}

// TestWhatIsTriedAgainIsSaidOnce holds that trying again uses up nothing of what somebody may say.
func TestWhatIsTriedAgainIsSaidOnce(t *testing.T) {
	play(t, []string{"echo"}, func(t *testing.T, s *scene) {
		s.member()
		s.wire(danDM, "echo")
		var measured time.Duration
		tries := 0
		s.spoils(func(message.In) error {
			measured = s.channels.Measured()
			if tries++; tries < 50 {
				return errBroken
			}
			return nil
		})
		s.lives()
		s.tells(dan, "hello")
		time.Sleep(time.Minute)
		same(t, "stored", s.stored("echo"), "hello")
		if measured > time.Second {
			t.Errorf("%d tries count as talk of %s", tries, measured)
		}
	})
}

// TestManyConversationsLoseNothingAndKeepTheirOrder has several speak at once, while the platform hands over again and its session is lost.
func TestManyConversationsLoseNothingAndKeepTheirOrder(t *testing.T) {
	const places, each = 20, 30
	play(t, []string{"notes"}, func(t *testing.T, s *scene) {
		var at []channel.Place
		for n := range places {
			p := channel.Place{Address: fmt.Sprint("many-", n), Kind: channel.Group, Name: fmt.Sprint("many ", n)}
			at = append(at, p)
			s.hears(p, "notes", func(w *wiring.Wiring) { w.Ignored = wiring.Accumulate })
			s.Tx(func(ctx context.Context, tx store.Tx) error {
				where, err := s.place(ctx, tx, p)
				return errors.Join(err, tx.SetPolicy(ctx, where.ID, conversation.Public))
			})
		}
		s.lives()
		for n := range each {
			for _, p := range at {
				s.platform.Say(t, channeltest.Saying{By: dan, Place: p, Text: fmt.Sprint(p.Address, " ", n)})
			}
			switch n {
			case 7:
				s.platform.Again(t, at[3].Address)
			case 13:
				s.platform.Cut(t)
			}
		}
		time.Sleep(time.Minute)

		heard := map[id.Chat][]string{}
		s.Tx(func(ctx context.Context, tx store.Tx) error {
			all, err := tx.Ins(ctx, message.Filter{Group: "notes", Limit: 2 * places * each})
			for _, m := range all {
				heard[m.Chat] = append(heard[m.Chat], m.Text)
			}
			return err
		})
		if len(heard) != places {
			t.Errorf("%d of %d conversations are heard", len(heard), places)
		}
		for _, texts := range heard {
			of, _, _ := strings.Cut(texts[0], " ")
			var want []string
			for n := range each {
				want = append(want, fmt.Sprint(of, " ", n))
			}
			same(t, of, texts, want...)
		}
	})
}
