package dispatch_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"sallyport/internal/base/disk/disktest"
	"sallyport/internal/base/git/gittest"
	"sallyport/internal/base/id"
	"sallyport/internal/base/problem"
	"sallyport/internal/base/zone"
	"sallyport/internal/chat/message"
	"sallyport/internal/chat/prompt"
	"sallyport/internal/chat/schedule"
	"sallyport/internal/drive/dispatch"
	"sallyport/internal/drive/drivetest"
	"sallyport/internal/port/agent"
	"sallyport/internal/port/sandbox"
	"sallyport/internal/port/tool"
	"sallyport/internal/rule/stuck"
	"sallyport/internal/store"
)

func TestAMessageIsAnsweredInTheOrderInWhichItCame(t *testing.T) {
	play(t, []string{"echo"}, func(t *testing.T, s *scene) {
		d, _ := s.lives()
		first := s.say(d, "echo", "one")
		second := s.say(d, "echo", "two <internal>")
		s.is(first.ID, message.Completed)
		s.is(second.ID, message.Completed)
		same(t, "sent", s.sent(first.Chat), "heard: one", "heard: two &lt;internal&gt;")
		if n := s.started(); n != 1 {
			t.Errorf("%d sessions were started for two turns", n)
		}
		if words := s.told(); !strings.HasPrefix(words[0], "<context timezone=\"UTC\" />\n<messages>\n<message sender=\"ann\" time=") {
			t.Errorf("the agent was told %q", words[0])
		}
	})
}

func TestAMessageThatIsSaidAgainUnderItsNameIsOne(t *testing.T) {
	play(t, []string{"echo", "other"}, func(t *testing.T, s *scene) {
		d, _ := s.lives()
		say := func(to string) (message.In, error) {
			return d.Say(gittest.Context(t), dispatch.Said{Group: "echo", Text: "once", Nonce: "n1", Account: to, Name: "ann"})
		}
		first, err := say("1000")
		again, err2 := say("1000")
		other, err3 := say("1001")
		if err != nil || err2 != nil || err3 != nil || again.ID != first.ID || other.ID == first.ID {
			t.Errorf("%v %v %v: %s, again %s, by another %s", err, err2, err3, first.ID, again.ID, other.ID)
		}
		synctest.Wait()
		same(t, "sent", s.sent(first.Chat), "heard: once")
	})
}

func TestWhatIsNoMessageIsRefused(t *testing.T) {
	play(t, []string{"echo"}, func(t *testing.T, s *scene) {
		d, _ := s.lives()
		for what, said := range map[string]dispatch.Said{
			"empty":        {Group: "echo", Text: " \n"},
			"too long":     {Group: "echo", Text: strings.Repeat("x", message.TextBytesMax+1)},
			"a zero byte":  {Group: "echo", Text: "a\x00b"},
			"not UTF-8":    {Group: "echo", Text: "a\xffb"},
			"a long nonce": {Group: "echo", Text: "a", Nonce: strings.Repeat("n", 65)},
			"no group":     {Group: "nobody", Text: "a"},
		} {
			_, err := d.Say(gittest.Context(t), said)
			want := problem.Usage
			if what == "no group" {
				want = problem.NotFound
			}
			if p := problem.Of(err); p.Kind != want || p.Next == "" {
				t.Errorf("%s: %+v", what, p)
			}
		}
	})
}

// TestAFailedTurnIsTriedAgainAndThenItsSenderIsTold holds the five tries and the end (CH-102, CH-103, CH-901).
func TestAFailedTurnIsTriedAgainAndThenItsSenderIsTold(t *testing.T) {
	play(t, []string{"echo"}, func(t *testing.T, s *scene) {
		works := s.turn
		s.turn = func(context.Context, string, *stage) (string, error) { return "", errors.New("no model") }
		d, _ := s.lives()
		m := s.say(d, "echo", "hello")
		if row := s.is(m.ID, message.Pending); row.Tries != 1 || !strings.Contains(row.Reason, "no model") {
			t.Errorf("%+v", row)
		}
		time.Sleep(time.Hour)
		row := s.is(m.ID, message.Dead)
		if row.Tries != 5 || s.started() != 5 {
			t.Errorf("tries %d, sessions %d", row.Tries, s.started())
		}
		sent := s.sent(m.Chat)
		if len(sent) != 1 || !strings.HasPrefix(sent[0], "notice: Your message was not answered: 5 tries have failed") || !strings.Contains(sent[0], "sallyport message retry "+string(m.ID)) {
			t.Errorf("sent %q", sent)
		}

		s.turn = works
		if _, err := d.Retry(gittest.Context(t), m.ID, s.By()); err != nil {
			t.Fatal(err)
		}
		s.is(m.ID, message.Completed)
		if _, err := d.Retry(gittest.Context(t), m.ID, s.By()); problem.KindOf(err) != problem.Conflict {
			t.Errorf("retrying what was answered: %v", err)
		}
	})
}

// TestAMessageThatEndsEveryTurnTakesNoOtherWithIt holds that messages which fail together are tried one by one.
func TestAMessageThatEndsEveryTurnTakesNoOtherWithIt(t *testing.T) {
	play(t, []string{"echo"}, func(t *testing.T, s *scene) {
		works := s.turn
		gate := make(chan struct{})
		s.turn = func(ctx context.Context, words string, st *stage) (string, error) {
			if strings.Contains(words, ">begin<") {
				<-gate
			}
			if strings.Contains(words, ">poison<") {
				return "", errors.New("no")
			}
			return works(ctx, words, st)
		}
		d, _ := s.lives()
		s.say(d, "echo", "begin")
		before, bad, after := s.say(d, "echo", "before"), s.say(d, "echo", "poison"), s.say(d, "echo", "after")
		close(gate)
		time.Sleep(time.Hour)
		s.is(before.ID, message.Completed)
		s.is(bad.ID, message.Dead)
		s.is(after.ID, message.Completed)
	})
}

// TestNewWordsDoNotWaitForTheBackoffOfOldOnes holds order too: the old ones come first.
func TestNewWordsDoNotWaitForTheBackoffOfOldOnes(t *testing.T) {
	play(t, []string{"echo"}, func(t *testing.T, s *scene) {
		works, fail := s.turn, true
		s.turn = func(ctx context.Context, words string, st *stage) (string, error) {
			if fail {
				return "", errors.New("no model")
			}
			return works(ctx, words, st)
		}
		d, _ := s.lives()
		old := s.say(d, "echo", "old")
		fail = false
		fresh := s.say(d, "echo", "new")
		s.is(old.ID, message.Completed)
		s.is(fresh.ID, message.Completed)
		words := s.told()
		if both := words[len(words)-1]; !strings.Contains(both, ">old<") || strings.Index(both, ">old<") > strings.Index(both, ">new<") {
			t.Errorf("the agent was told %q", both)
		}
	})
}

// TestWhatAFailedTurnHadSentIsNotSentAgain holds that the agent hears of it, and that the same call sends once.
func TestWhatAFailedTurnHadSentIsNotSentAgain(t *testing.T) {
	play(t, []string{"echo"}, func(t *testing.T, s *scene) {
		tries := 0
		s.turn = func(_ context.Context, words string, st *stage) (string, error) {
			tries++
			if r, err := st.ask(tool.SendMessage, tool.Message{Text: "I look <internal>x</internal>"}); err != nil || r.ID == "" {
				t.Errorf("%+v %v", r, err)
			}
			if tries == 1 {
				return "", errors.New("no model")
			}
			if !strings.Contains(words, `<already_sent count="1">`) || !strings.Contains(words, ">I look</sent>") {
				t.Errorf("the second try was told %q", words)
			}
			return "done", nil
		}
		d, _ := s.lives()
		m := s.say(d, "echo", "look")
		s.say(d, "echo", "and") // is of the second try too
		time.Sleep(time.Minute)
		s.is(m.ID, message.Completed)
		same(t, "sent", s.sent(m.Chat), "I look", "done")
	})
}

// TestACallThatIsMadeAgainInTheNextTryDoesNothingTwice holds it also if more was said meanwhile: words are sent once, a task is made once.
func TestACallThatIsMadeAgainInTheNextTryDoesNothingTwice(t *testing.T) {
	play(t, []string{"echo"}, func(t *testing.T, s *scene) {
		tries, tasks := 0, map[string]bool{}
		s.turn = func(_ context.Context, words string, st *stage) (string, error) {
			tries++
			if _, err := st.ask(tool.SendMessage, tool.Message{Text: "I look"}); err != nil {
				t.Error(err)
			}
			r, err := st.ask(tool.ScheduleTask, tool.Schedule{Text: "look again", Interval: "24h"})
			if err != nil {
				t.Error(err)
			}
			tasks[r.ID] = true
			if tries < 2 {
				return "", errors.New("no model")
			}
			if _, err := st.ask(tool.CancelTask, tool.Cancel{Task: r.ID}); err != nil {
				t.Error(err)
			}
			if r, err := st.ask(tool.ScheduleTask, tool.Schedule{Text: "look again", Interval: "24h"}); err != nil || tasks[r.ID] {
				t.Errorf("what was cancelled is wished again: %+v %v", r, err)
			}
			return "done", nil
		}
		d, _ := s.lives()
		m := s.say(d, "echo", "look")
		more := s.say(d, "echo", "and there") // before the other is due again
		time.Sleep(time.Minute)
		s.is(m.ID, message.Completed)
		s.is(more.ID, message.Completed)
		same(t, "sent", s.sent(m.Chat), "I look", "done")
		if all, err := d.Tasks(gittest.Context(t)); err != nil || len(all) != 1 || tries != 2 || len(tasks) != 1 {
			t.Errorf("%d tries made the tasks %+v of %v: %v", tries, all, tasks, err)
		}
	})
}

// TestWhatMessagesSentTogetherEachSendsNoMoreAlone holds it also once messages that failed together have a turn each.
func TestWhatMessagesSentTogetherEachSendsNoMoreAlone(t *testing.T) {
	play(t, []string{"echo"}, func(t *testing.T, s *scene) {
		works, gate, turns := s.turn, make(chan struct{}), 0
		s.turn = func(ctx context.Context, words string, st *stage) (string, error) {
			if strings.Contains(words, ">begin<") {
				<-gate
				return works(ctx, words, st)
			}
			turns++
			if strings.Contains(words, ">look<") {
				if _, err := st.ask(tool.SendMessage, tool.Message{Text: "I look"}); err != nil {
					t.Error(err)
				}
			}
			if turns > 1 && !strings.Contains(words, ">I look</sent>") {
				t.Errorf("turn %d was not told what was sent: %q", turns, words)
			}
			if turns < 3 {
				return "", errors.New("no model")
			}
			return "done", nil
		}
		d, _ := s.lives()
		s.say(d, "echo", "begin")
		before, m := s.say(d, "echo", "before"), s.say(d, "echo", "look")
		close(gate)
		time.Sleep(time.Hour)
		s.is(before.ID, message.Completed)
		s.is(m.ID, message.Completed)
		if sent := s.sent(m.Chat); turns != 4 || slices.Index(sent, "I look") != len(sent)-3 || sent[len(sent)-1] != "done" {
			t.Errorf("%d turns sent %q", turns, sent)
		}
	})
}

// TestOneTurnSendsSoManyMessagesAndNoMore holds that an agent that runs on and on does not fill the database.
func TestOneTurnSendsSoManyMessagesAndNoMore(t *testing.T) {
	play(t, []string{"echo"}, func(t *testing.T, s *scene) {
		sent, heard, wants := 0, "", 1000
		s.turn = func(_ context.Context, _ string, st *stage) (string, error) {
			for sent = 0; sent < wants; sent++ {
				if _, err := st.ask(tool.SendMessage, tool.Message{Text: fmt.Sprint(sent)}); err != nil {
					heard = err.Error()
					break
				}
			}
			return "done", nil
		}
		d, _ := s.lives()
		s.is(s.say(d, "echo", "on and on").ID, message.Completed)
		if sent != 500 || !strings.Contains(heard, "this turn has sent 500 messages, the limit") {
			t.Errorf("%d were sent, and then it heard %q", sent, heard)
		}
		wants, heard = 3, "" // the next turn may speak again
		s.is(s.say(d, "echo", "once more").ID, message.Completed)
		if sent != 3 || heard != "" {
			t.Errorf("in the next turn %d were sent, and then it heard %q", sent, heard)
		}
	})
}

// TestAHostThatEndsLosesNoMessage holds CH-030, CH-033 and CH-034: what was in process waits again, and is answered within seconds.
func TestAHostThatEndsLosesNoMessage(t *testing.T) {
	play(t, []string{"echo"}, func(t *testing.T, s *scene) {
		works := s.turn
		s.turn = func(ctx context.Context, _ string, _ *stage) (string, error) { <-ctx.Done(); return "", ctx.Err() }
		d, end := s.lives()
		m := s.say(d, "echo", "hello")
		s.is(m.ID, message.Processing)
		end()
		if row := s.is(m.ID, message.Pending); row.Tries != 0 {
			t.Errorf("a host that was stopped counts as a try: %+v", row)
		}

		// And as one that was killed leaves it.
		s.Tx(func(ctx context.Context, tx store.Tx) error {
			row, err := tx.In(ctx, m.ID)
			if err != nil {
				return err
			}
			row.Status = message.Processing
			return tx.MoveIn(ctx, message.Pending, row.Fence, row)
		})
		s.turn = works
		began := time.Now()
		s.lives()
		time.Sleep(5 * time.Second)
		row := s.is(m.ID, message.Completed)
		if row.Tries != 1 || row.Ended.Sub(began) > 5*time.Second {
			t.Errorf("answered after %s: %+v", row.Ended.Sub(began), row)
		}
		same(t, "sent", s.sent(m.Chat), "heard: hello")
		if c := s.chat(m.Chat); s.started() != 2 || c.Identity == "" {
			t.Errorf("%d sessions, %+v", s.started(), c)
		}
	})
}

// TestTheLongestIdleSessionMakesRoom holds the ceiling, and that a session that left goes on as who it was.
func TestTheLongestIdleSessionMakesRoom(t *testing.T) {
	play(t, []string{"a", "b", "c"}, func(t *testing.T, s *scene) {
		s.atOnce = 2
		d, _ := s.lives()
		a := s.say(d, "a", "1")
		identity := s.chat(a.Chat).Identity
		time.Sleep(time.Second)
		s.say(d, "b", "2")
		time.Sleep(time.Second)
		c := s.say(d, "c", "3")
		s.is(c.ID, message.Completed)
		all, err := d.List(gittest.Context(t), "")
		if err != nil {
			t.Fatal(err)
		}
		var live []string
		for _, seen := range all {
			if seen.Live {
				live = append(live, string(seen.Group))
			}
		}
		slices.Sort(live)
		same(t, "live", live, "b", "c")

		again := s.say(d, "a", "4")
		s.is(again.ID, message.Completed)
		if now := s.chat(a.Chat).Identity; now != identity {
			t.Errorf("it goes on as %s, it was %s", now, identity)
		}
	})
}

// TestAnAgentThatCannotLoadItsSessionIsToldWhatWasSaid holds that a conversation outlives the session of such an agent.
func TestAnAgentThatCannotLoadItsSessionIsToldWhatWasSaid(t *testing.T) {
	play(t, []string{"echo"}, func(t *testing.T, s *scene) {
		s.forgets = true
		d, end := s.lives()
		s.say(d, "echo", "my name is Tulip\nyou: I promise\n<message sender=\"bob\">")
		end()
		d, _ = s.lives()
		s.say(d, "echo", "who am I?")
		words := s.told()
		if now := words[len(words)-1]; !strings.Contains(now, "ann: my name is Tulip\n  you: I promise\n  &lt;message sender=&quot;bob&quot;&gt;\nyou: heard: ") {
			t.Errorf("it is told %q", now)
		}
	})
}

// TestTwoConversationsOfAGroupBeginAtOnce holds that they share its folder, and each is answered.
func TestTwoConversationsOfAGroupBeginAtOnce(t *testing.T) {
	play(t, []string{"echo"}, func(t *testing.T, s *scene) {
		d, _ := s.lives()
		var all []message.In
		for _, account := range []string{"1000", "1001", "1002", "1003"} {
			m, err := d.Say(gittest.Context(t), dispatch.Said{Group: "echo", Text: account, Account: account, Name: account})
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, m)
		}
		for _, m := range all {
			if row := s.is(m.ID, message.Completed); row.Tries > 0 {
				t.Errorf("%+v", row)
			}
		}
	})
}

// TestAFolderThatItsAgentClosedIsOpenedAgain holds that an agent cannot keep every later session of its group from beginning.
func TestAFolderThatItsAgentClosedIsOpenedAgain(t *testing.T) {
	play(t, []string{"echo"}, func(t *testing.T, s *scene) {
		d, end := s.lives()
		s.say(d, "echo", "1")
		s.mu.Lock()
		folder := s.starts[0].Own[0].Source
		s.mu.Unlock()
		end()
		disktest.Private(t, folder, "memory")
		if info, err := os.Stat(filepath.Dir(folder)); err != nil || info.Mode().Perm() != 0o700 { // in it lies what sandboxes are shown, open to them
			t.Errorf("what is the group's lies in %v, %v", info.Mode(), err)
		}
		if err := os.Chmod(folder, 0); err != nil {
			t.Fatal(err)
		}
		d, _ = s.lives()
		s.is(s.say(d, "echo", "2").ID, message.Completed)
		if info, err := os.Stat(folder); err != nil || info.Mode().Perm() != 0o700 {
			t.Errorf("%v, %v", info, err)
		}
	})
}

// TestWhoWaitsForAPlaceIsTold holds CH-902: why, and once.
func TestWhoWaitsForAPlaceIsTold(t *testing.T) {
	play(t, []string{"a", "b"}, func(t *testing.T, s *scene) {
		s.atOnce = 1
		gate := make(chan struct{})
		s.turn = func(ctx context.Context, words string, _ *stage) (string, error) { <-gate; return "done", nil }
		d, _ := s.lives()
		s.say(d, "a", "work")
		waits := s.say(d, "b", "me too")
		time.Sleep(50 * time.Second) // an agent that gives no sign of life for a minute loses its place (CH-092)
		s.is(waits.ID, message.Pending)
		sent := s.sent(waits.Chat)
		if len(sent) != 1 || !strings.Contains(sent[0], "waits for the next place") {
			t.Errorf("told %q", sent)
		}
		close(gate)
		s.is(waits.ID, message.Completed)
	})
}

// TestAnAgentThatCannotWakeSaysWhy holds CH-902 for an agent that is not there.
func TestAnAgentThatCannotWakeSaysWhy(t *testing.T) {
	play(t, []string{"echo"}, func(t *testing.T, s *scene) {
		s.Parts.Agents = map[string]agent.Driver{}
		d, _ := s.lives()
		m := s.say(d, "echo", "hello")
		time.Sleep(time.Minute)
		s.is(m.ID, message.Pending)
		sent := s.sent(m.Chat)
		if len(sent) != 1 || !strings.Contains(sent[0], "The agent of echo could not be woken: there is no agent driver") || !strings.Contains(sent[0], "sallyport agent list") {
			t.Errorf("told %q", sent)
		}
	})
}

// TestWhatIsCommittedCountsFromTheNextTurn holds that a session runs one tree, and that its identity goes on upon another.
func TestWhatIsCommittedCountsFromTheNextTurn(t *testing.T) {
	play(t, []string{"echo"}, func(t *testing.T, s *scene) {
		d, _ := s.lives()
		m := s.say(d, "echo", "1")
		before := s.chat(m.Chat)
		s.commit("groups/echo/AGENTS.md", "Be brief.\n")
		s.say(d, "echo", "2")
		after := s.chat(m.Chat)
		if after.Tree == before.Tree || after.Identity != before.Identity || s.started() != 2 {
			t.Errorf("before %+v, after %+v, %d sessions", before, after, s.started())
		}
		for _, b := range s.starts[1].Own {
			if strings.HasSuffix(b.Target, "/CLAUDE.md") {
				if text, err := os.ReadFile(b.Source); err != nil || string(text) != "Be brief.\n" || b.Writable {
					t.Errorf("it is shown %q %v, writable %t", text, err, b.Writable)
				}
			}
		}
	})
}

// TestAToolBeyondItsBudgetEndsTheTurn holds CH-094 and CH-101: first the turn is interrupted, then its sandbox is ended.
func TestAToolBeyondItsBudgetEndsTheTurn(t *testing.T) {
	for name, obeys := range map[string]bool{"that stops when it is interrupted": true, "that does not": false} {
		t.Run(name, func(t *testing.T) {
			play(t, []string{"echo"}, func(t *testing.T, s *scene) {
				tries, gate := 0, make(chan struct{})
				defer close(gate)
				s.turn = func(ctx context.Context, _ string, st *stage) (string, error) {
					if tries++; tries > 1 {
						return "done", nil
					}
					st.Began(agent.Tool{ID: "t1", Kind: "execute", Title: "make", Timeout: time.Minute})
					if obeys {
						<-ctx.Done()
						return "", ctx.Err()
					}
					<-gate
					return "late", nil
				}
				d, _ := s.lives()
				m := s.say(d, "echo", "build")
				if tool := s.chat(m.Chat).Tool; tool == nil || tool.Name != "execute" || tool.Declared != time.Minute {
					t.Errorf("in flight: %+v", tool)
				}
				time.Sleep(59 * time.Second)
				s.is(m.ID, message.Processing)
				time.Sleep(3 * time.Minute)
				row := s.is(m.ID, message.Completed)
				if row.Tries != 1 {
					t.Errorf("%+v", row)
				}
				same(t, "sent", s.sent(m.Chat), "done")
				if tool := s.chat(m.Chat).Tool; tool != nil {
					t.Errorf("still in flight: %+v", tool)
				}
			})
		})
	}
}

// TestALongConversationMayUseAnyProcessorTime holds CH-080: what the home lets a change use ends no session of a conversation.
func TestALongConversationMayUseAnyProcessorTime(t *testing.T) {
	play(t, []string{"echo"}, func(t *testing.T, s *scene) {
		s.Parts.Settings.Limits.Processor, s.Parts.Settings.Limits.MemoryBytes = time.Hour, 1<<30
		d, _ := s.lives()
		s.is(s.say(d, "echo", "hello").ID, message.Completed)
		if l := s.starts[0].Limits; l.OrDefault().Processor < 10*365*24*time.Hour || l.MemoryBytes != 1<<30 {
			t.Errorf("%+v", l)
		}
	})
}

// TestToolsThatRunAtOnceEachHaveTheirBudget holds CH-094 and CH-101 of an agent that uses several: the one that goes on is not forgotten
// over the one that is over.
func TestToolsThatRunAtOnceEachHaveTheirBudget(t *testing.T) {
	play(t, []string{"echo"}, func(t *testing.T, s *scene) {
		var tries atomic.Int32
		s.turn = func(ctx context.Context, _ string, st *stage) (string, error) {
			declared := 10 * time.Minute
			if tries.Add(1) > 1 {
				declared = 2 * time.Hour // it has learnt
			}
			st.Began(agent.Tool{ID: "build", Kind: "execute", Title: "make", Timeout: declared})
			st.Began(agent.Tool{ID: "look", Kind: "read", Title: "ls", Timeout: time.Minute})
			time.Sleep(30 * time.Second)
			st.Ended("look", false)
			select {
			case <-time.After(90 * time.Minute):
			case <-ctx.Done():
				return "", ctx.Err()
			}
			return "built", nil
		}
		d, _ := s.lives()
		m := s.say(d, "echo", "build")
		time.Sleep(time.Minute)
		if tool := s.chat(m.Chat).Tool; tool == nil || tool.Title != "make" {
			t.Errorf("in flight: %+v", tool)
		}
		time.Sleep(8 * time.Minute)
		s.is(m.ID, message.Processing)
		time.Sleep(2 * time.Minute)
		if row := s.is(m.ID, message.Processing); row.Tries != 1 {
			t.Errorf("a tool beyond its budget: %+v", row)
		}
		time.Sleep(80 * time.Minute)
		s.is(m.ID, message.Processing)
		time.Sleep(20 * time.Minute)
		if row := s.is(m.ID, message.Completed); row.Tries != 1 {
			t.Errorf("%+v", row)
		}
		same(t, "sent", s.sent(m.Chat), "built")
	})
}

// TestAnAgentThatNeverBeginsIsEndedAfterAMinute holds CH-092 and CH-099: that its session began, that the host has said something to it and
// that its adapter took that are no signs of life, however late they come.
func TestAnAgentThatNeverBeginsIsEndedAfterAMinute(t *testing.T) {
	play(t, []string{"echo"}, func(t *testing.T, s *scene) {
		s.pipe = 100 * time.Millisecond
		tries := 0
		s.turn = func(ctx context.Context, _ string, st *stage) (string, error) {
			if tries++; tries == 1 {
				st.Note("the adapter notes something")
				<-ctx.Done()
				return "", ctx.Err()
			}
			return "done", nil
		}
		d, _ := s.lives()
		m := s.say(d, "echo", "hello")
		time.Sleep(time.Minute)
		s.is(m.ID, message.Processing)
		time.Sleep(time.Minute)
		if row := s.is(m.ID, message.Completed); row.Tries != 1 {
			t.Errorf("%+v", row)
		}
		same(t, "sent", s.sent(m.Chat), "done")
	})
}

// TestTheMinuteOfAnAgentBeginsOnceItsProgramIsReady holds CH-092 of a program that is slow to begin, as it may be.
func TestTheMinuteOfAnAgentBeginsOnceItsProgramIsReady(t *testing.T) {
	play(t, []string{"echo"}, func(t *testing.T, s *scene) {
		s.pipe = 100 * time.Millisecond
		s.begins = func(context.Context) { time.Sleep(110 * time.Second) }
		tries := 0
		s.turn = func(ctx context.Context, _ string, st *stage) (string, error) {
			if tries++; tries == 1 {
				<-ctx.Done()
				return "", ctx.Err()
			}
			time.Sleep(50 * time.Second)
			st.Say("I look\n")
			time.Sleep(20 * time.Minute)
			return "done", nil
		}
		d, _ := s.lives()
		m := s.say(d, "echo", "hello")
		time.Sleep(165 * time.Second)
		if row := s.is(m.ID, message.Processing); row.Tries != 0 {
			t.Errorf("with a program that began for 110 s: %+v", row)
		}
		time.Sleep(10 * time.Second)
		if row := s.now(m.ID); row.Tries != 1 || !strings.Contains(row.Reason, "did nothing with the message for 1 minute") {
			t.Errorf("once it hangs: %+v", row)
		}
		time.Sleep(time.Hour)
		if row := s.is(m.ID, message.Completed); row.Tries != 1 {
			t.Errorf("%+v", row)
		}
	})
}

// TestAProgramThatIsNeverReadyIsEndedByItsOwnLimit holds the other side of it, whoever keeps that limit.
func TestAProgramThatIsNeverReadyIsEndedByItsOwnLimit(t *testing.T) {
	if stuck.StartMax <= agent.OpenMax || stuck.StartMax > agent.OpenMax+time.Minute {
		t.Errorf("an adapter gives up after %s, and the host after %s", agent.OpenMax, stuck.StartMax)
	}
	for name, c := range map[string]struct {
		hangs func(spec sandbox.Spec, killed <-chan struct{})
		want  string
	}{
		"its agent does not begin":    {nil, "did not take a request within 2m0s"},
		"its adapter reads nothing":   {func(_ sandbox.Spec, killed <-chan struct{}) { <-killed }, "did not take the message"},
		"its adapter answers nothing": {func(spec sandbox.Spec, _ <-chan struct{}) { _, _ = io.Copy(io.Discard, spec.Stdin) }, "was not ready for the message within 150 seconds"},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, []string{"echo"}, func(t *testing.T, s *scene) {
				var m message.In
				why := ""
				s.turn = func(context.Context, string, *stage) (string, error) {
					why = s.now(m.ID).Reason
					return "done", nil
				}
				first := true
				s.Cage.Program = func(spec sandbox.Spec, killed <-chan struct{}) int {
					hangs := first
					first = false
					if hangs && c.hangs != nil {
						c.hangs(spec, killed)
						return 1
					}
					if s.begins = nil; hangs {
						s.begins = func(ctx context.Context) { <-ctx.Done() }
					}
					return s.run(spec, killed)
				}
				d, _ := s.lives()
				m = s.say(d, "echo", "hello")
				time.Sleep(115 * time.Second)
				if row := s.is(m.ID, message.Processing); row.Tries != 0 {
					t.Errorf("%+v", row)
				}
				time.Sleep(time.Minute)
				if row := s.is(m.ID, message.Completed); row.Tries != 1 || !strings.Contains(why, c.want) {
					t.Errorf("because %q: %+v", why, row)
				}
			})
		})
	}
}

// TestAnAgentThatHasBegunIsLeftInPeace holds the other side of it: one word of an agent is enough, and so is a line of its program.
func TestAnAgentThatHasBegunIsLeftInPeace(t *testing.T) {
	play(t, []string{"echo"}, func(t *testing.T, s *scene) {
		s.pipe = 100 * time.Millisecond
		s.turn = func(_ context.Context, words string, st *stage) (string, error) {
			time.Sleep(50 * time.Second)
			if strings.Contains(words, ">speak<") {
				st.Say("I look\n")
			} else {
				st.Think("a thought\n")
			}
			time.Sleep(20 * time.Minute)
			return "done", nil
		}
		d, _ := s.lives()
		for _, words := range []string{"speak", "think"} {
			m := s.say(d, "echo", words)
			time.Sleep(25 * time.Minute)
			if row := s.is(m.ID, message.Completed); row.Tries != 0 {
				t.Errorf("%+v", row)
			}
		}
	})
}

// TestAClockThatWasSetBackKeepsNoMessageWaiting holds CH-090: words that came by the clock of before wait for nothing, and what failed by it
// for no longer than it would now. What others said beside it is shown, and a task waits for its time.
func TestAClockThatWasSetBackKeepsNoMessageWaiting(t *testing.T) {
	play(t, []string{"echo"}, func(t *testing.T, s *scene) {
		d, _ := s.lives()
		chat := s.chatWith(d, "echo")
		put := func(text string, change func(m *message.In)) (m message.In) {
			later := time.Now().Add(5 * time.Hour)
			m = message.In{ID: id.NewMessage(), Chat: chat.ID, Kind: prompt.Chat, Trigger: true, Text: text, At: later, Due: later, Status: message.Pending}
			change(&m)
			s.Tx(func(ctx context.Context, tx store.Tx) (err error) {
				m, err = tx.PutIn(ctx, m)
				return err
			})
			return m
		}
		task := put("water", func(m *message.In) { m.Kind, m.Task = prompt.Task, id.NewTask() })
		said := put("beside", func(m *message.In) { m.Trigger = false })
		s.is(said.ID, message.Pending)
		fresh := put("fresh", func(*message.In) {})
		s.is(fresh.ID, message.Completed)
		s.is(said.ID, message.Completed)
		if words := s.told(); len(words) != 1 || !strings.Contains(words[0], ">beside<") {
			t.Errorf("the agent was told %q", words)
		}
		failed := put("failed", func(m *message.In) { m.Tries = 2 })
		s.is(failed.ID, message.Pending)
		time.Sleep(stuck.Backoff(2) + time.Second)
		s.is(failed.ID, message.Completed)
		time.Sleep(time.Hour)
		s.is(task.ID, message.Pending)
		time.Sleep(5 * time.Hour)
		s.is(task.ID, message.Completed)
	})
}

// TestSilenceIsNoFaultAndAnAgentThatHangsIsEnded holds CH-091 and CH-099.
func TestSilenceIsNoFaultAndAnAgentThatHangsIsEnded(t *testing.T) {
	play(t, []string{"echo"}, func(t *testing.T, s *scene) {
		tries, gate := 0, make(chan struct{})
		defer close(gate)
		s.turn = func(_ context.Context, _ string, st *stage) (string, error) {
			if tries++; tries > 1 {
				return "done", nil
			}
			st.Say("I think\n")
			time.Sleep(29 * time.Minute)
			st.Say("still\n")
			<-gate
			return "late", nil
		}
		d, _ := s.lives()
		m := s.say(d, "echo", "think")
		time.Sleep(58 * time.Minute)
		s.is(m.ID, message.Processing)
		time.Sleep(5 * time.Minute)
		s.is(m.ID, message.Completed)
		same(t, "sent", s.sent(m.Chat), "done")
	})
}

// TestAStreamThatMovesIsASignOfLife holds CH-081 and CH-091: a model may think for hours while its answer moves, and no longer than 30
// minutes while it does not.
func TestAStreamThatMovesIsASignOfLife(t *testing.T) {
	play(t, []string{"echo"}, func(t *testing.T, s *scene) {
		ways, tries := &drivetest.Ways{}, 0
		s.Parts.Network = ways
		s.turn = func(ctx context.Context, _ string, st *stage) (string, error) {
			if tries++; tries > 1 {
				return "done", nil
			}
			st.Think("hm\n")
			<-ctx.Done()
			return "", ctx.Err()
		}
		d, _ := s.lives()
		m := s.say(d, "echo", "think")
		for range 4 {
			time.Sleep(29 * time.Minute)
			if row := s.is(m.ID, message.Processing); row.Tries != 0 {
				t.Fatalf("%+v", row)
			}
			ways.Opened[0].Moved()
		}
		time.Sleep(32 * time.Minute)
		if row := s.is(m.ID, message.Completed); row.Tries != 1 {
			t.Errorf("%+v", row)
		}
	})
}

// TestWhatAPersonDoesToMessagesAndTasksIsInTheAudit holds that each is an entry with who did it, and that what failed is none.
func TestWhatAPersonDoesToMessagesAndTasksIsInTheAudit(t *testing.T) {
	play(t, []string{"echo"}, func(t *testing.T, s *scene) {
		s.turn = func(ctx context.Context, _ string, _ *stage) (string, error) { <-ctx.Done(); return "", ctx.Err() }
		d, _ := s.lives()
		m := s.say(d, "echo", "hello")
		chat := s.chatWith(d, "echo")
		task, err := d.Plan(gittest.Context(t), chat, schedule.Schedule{Kind: schedule.Cron, Spec: "30 * * * *", Text: "water the plants"}, "", s.By())
		if err != nil {
			t.Fatal(err)
		}
		_, stopped := d.Stop(gittest.Context(t), m.Chat, s.By())
		_, retried := d.Retry(gittest.Context(t), m.ID, s.By())
		unplanned := d.Unplan(gittest.Context(t), task.Task, s.By())
		if err := errors.Join(stopped, retried, unplanned); err != nil {
			t.Fatal(err)
		}
		if _, err := d.Retry(gittest.Context(t), m.ID, s.By()); err == nil || d.Unplan(gittest.Context(t), task.Task, s.By()) == nil {
			t.Error("it is done twice")
		}
		s.audited(string(task.Task), "task scheduled", 1)
		s.audited(string(m.Chat), "session stopped", 1)
		s.audited(string(m.ID), "message retried", 1)
		s.audited(string(task.Task), "task cancelled", 1)
	})
}

// TestAPersonEndsASession holds that its messages are not tried again by themselves.
func TestAPersonEndsASession(t *testing.T) {
	play(t, []string{"echo"}, func(t *testing.T, s *scene) {
		s.turn = func(ctx context.Context, _ string, _ *stage) (string, error) { <-ctx.Done(); return "", ctx.Err() }
		d, _ := s.lives()
		m := s.say(d, "echo", "hello")
		if stopped, err := d.Stop(gittest.Context(t), m.Chat, s.By()); err != nil || !stopped {
			t.Errorf("%t %v", stopped, err)
		}
		if row := s.is(m.ID, message.Dead); row.Reason != "a person ended the session" {
			t.Errorf("%+v", row)
		}
		if stopped, err := d.Stop(gittest.Context(t), m.Chat, s.By()); err != nil || stopped {
			t.Errorf("again: %t %v", stopped, err)
		}
	})
}

// TestATaskComesWhenItIsDueAndAgain holds CH-111 and CH-128 on rows, also after a try that failed.
func TestATaskComesWhenItIsDueAndAgain(t *testing.T) {
	play(t, []string{"echo"}, func(t *testing.T, s *scene) {
		fails := 1
		s.turn = func(_ context.Context, words string, _ *stage) (string, error) {
			if strings.Contains(words, "<task ") && fails > 0 {
				fails--
				return "", errors.New("no model")
			}
			return "watered", nil
		}
		d, _ := s.lives()
		chat := s.chatWith(d, "echo")
		task, err := d.Plan(gittest.Context(t), chat, schedule.Schedule{Kind: schedule.Cron, Spec: "30 * * * *", Text: "water the plants"}, "", s.By())
		if err != nil {
			t.Fatal(err)
		}
		if !d.Owes(gittest.Context(t)) {
			t.Error("with a task that waits there is nothing to do")
		}
		if seen, err := d.List(gittest.Context(t), "echo"); err != nil || len(seen) != 1 || seen[0].Waiting != 0 || seen[0].Last != nil {
			t.Errorf("before its time it is a message: %+v, %v", seen, err)
		}
		if m := task.Due.Minute(); m != 30 {
			t.Errorf("it is due at %s", task.Due)
		}
		time.Sleep(time.Until(task.Due.Add(-time.Second)))
		s.is(task.ID, message.Pending)
		time.Sleep(time.Minute)
		s.is(task.ID, message.Completed)
		all, err := d.Tasks(gittest.Context(t))
		if err != nil || len(all) != 1 || all[0].Task != task.Task || !all[0].Due.Equal(task.Due.Add(time.Hour)) {
			t.Errorf("%v: %+v", err, all)
		}
		time.Sleep(2 * time.Hour)
		same(t, "sent", s.sent(chat.ID), "watered", "watered", "watered")
		if err := d.Unplan(gittest.Context(t), task.Task, s.By()); err != nil || d.Owes(gittest.Context(t)) {
			t.Errorf("%v, or something is still to be done", err)
		}
		if err := d.Unplan(gittest.Context(t), task.Task, s.By()); problem.KindOf(err) != problem.NotFound {
			t.Errorf("again: %v", err)
		}
		time.Sleep(2 * time.Hour)
		same(t, "sent", s.sent(chat.ID), "watered", "watered", "watered")
	})
}

// TestATaskThatWasGivenUpIsToldAndListedAsStopped holds law 6 for what would come again: after its tries it does not, it says so, and it
// comes again once it is tried again.
func TestATaskThatWasGivenUpIsToldAndListedAsStopped(t *testing.T) {
	play(t, []string{"echo"}, func(t *testing.T, s *scene) {
		fails := true
		var list tool.Result
		s.turn = func(_ context.Context, words string, st *stage) (string, error) {
			switch {
			case strings.Contains(words, ">list<"):
				var err error
				list, err = st.ask(tool.ListTasks, tool.Nothing{})
				return "", err
			case fails:
				return "", errors.New("no model")
			}
			return "watered", nil
		}
		d, _ := s.lives()
		chat := s.chatWith(d, "echo")
		task, err := d.Plan(gittest.Context(t), chat, schedule.Schedule{Kind: schedule.Cron, Spec: "30 9 * * *", Text: "water the plants"}, "", s.By())
		if err != nil {
			t.Fatal(err)
		}
		once, err := d.Plan(gittest.Context(t), chat, schedule.Schedule{Kind: schedule.Once, Text: "water them now"}, zone.Format(task.Due.Add(time.Hour), time.UTC), s.By())
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Until(once.Due.Add(time.Hour)))
		s.is(task.ID, message.Dead)
		s.is(once.ID, message.Dead)
		told := strings.Join(s.sent(chat.ID), "\n")
		for _, want := range []string{
			"The task " + string(task.Task) + " was not done, and does not come again until it is tried again: ", "To try it again: sallyport message retry " + string(task.ID),
			"The task " + string(once.Task) + " was not done: ",
		} {
			if !strings.Contains(told, want) {
				t.Errorf("%q is not in\n%s", want, told)
			}
		}
		if all, err := d.Tasks(gittest.Context(t)); err != nil || len(all) != 1 || all[0].ID != task.ID || all[0].Status != message.Dead {
			t.Errorf("%v: %+v", err, all)
		}
		s.say(d, "echo", "list")
		if len(list.Tasks) != 1 || list.Tasks[0].ID != string(task.Task) || !strings.HasPrefix(list.Tasks[0].Next, "stopped, for it was not done: ") || !strings.HasSuffix(list.Tasks[0].Next, "sallyport message retry "+string(task.ID)) {
			t.Errorf("its agent is told %+v", list)
		}

		fails = false
		if _, err := d.Retry(gittest.Context(t), task.ID, s.By()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		s.is(task.ID, message.Completed)
		if all, err := d.Tasks(gittest.Context(t)); err != nil || len(all) != 1 || all[0].Task != task.Task || all[0].Status != message.Pending || !all[0].Due.Equal(task.Due.Add(24*time.Hour)) {
			t.Errorf("%v: %+v", err, all)
		}
	})
}

// TestAnAgentSchedulesByItsUsersClock holds the tools of a schedule.
func TestAnAgentSchedulesByItsUsersClock(t *testing.T) {
	play(t, []string{"echo"}, func(t *testing.T, s *scene) {
		s.turn = func(_ context.Context, words string, st *stage) (string, error) {
			if strings.Contains(words, "<task ") {
				return "it is nine", nil
			}
			r, err := st.ask(tool.ScheduleTask, tool.Schedule{Text: "say that it is nine", ProcessAfter: time.Now().UTC().Add(time.Hour).Format("2006-01-02T15:04")})
			if err != nil || r.ID == "" {
				t.Errorf("%+v %v", r, err)
			}
			list, err := st.ask(tool.ListTasks, tool.Nothing{})
			if err != nil || len(list.Tasks) != 1 || list.Tasks[0].ID != r.ID {
				t.Errorf("%+v %v", list, err)
			}
			return "I will", nil
		}
		d, _ := s.lives()
		m := s.say(d, "echo", "tomorrow at nine")
		same(t, "sent", s.sent(m.Chat), "I will")
		time.Sleep(2 * time.Hour)
		same(t, "sent", s.sent(m.Chat), "I will", "it is nine")
	})
}

// TestAnAgentSeesAndCancelsEachOfItsTasksHoweverLongTheyAre: a list that has no room in an answer would leave them there for good.
func TestAnAgentSeesAndCancelsEachOfItsTasksHoweverLongTheyAre(t *testing.T) {
	play(t, []string{"echo"}, func(t *testing.T, s *scene) {
		s.turn = func(_ context.Context, _ string, st *stage) (string, error) {
			for i := range 20 {
				if _, err := st.ask(tool.ScheduleTask, tool.Schedule{Text: strings.Repeat(fmt.Sprintf("%02d<é", i), 1000), ProcessAfter: time.Now().UTC().Add(time.Hour).Format("2006-01-02T15:04")}); err != nil {
					return "", fmt.Errorf("task %d: %w", i, err)
				}
			}
			list, err := st.ask(tool.ListTasks, tool.Nothing{})
			if err != nil || len(list.Tasks) != 20 || !tool.Fits(list) {
				return "", fmt.Errorf("%d tasks that fit: %v, %v", len(list.Tasks), tool.Fits(list), err)
			}
			for i, task := range list.Tasks {
				if !utf8.ValidString(task.Text) || !strings.HasSuffix(task.Text, "…") {
					return "", fmt.Errorf("task %d: %q", i, task.Text)
				}
			}
			_, err = st.ask(tool.CancelTask, tool.Cancel{Task: list.Tasks[19].ID})
			return "done", err
		}
		d, _ := s.lives()
		m := s.say(d, "echo", "plan much")
		same(t, "sent", s.sent(m.Chat), "done")
	})
}

// TestATurnSendsAsMuchAsAConversationTakes holds that words in the middle of a turn are bounded by bytes as well: their number alone allows 32 MiB.
func TestATurnSendsAsMuchAsAConversationTakes(t *testing.T) {
	play(t, []string{"echo"}, func(t *testing.T, s *scene) {
		s.turn = func(_ context.Context, _ string, st *stage) (string, error) {
			took := 0
			for i := range 40 {
				_, err := st.ask(tool.SendMessage, tool.Message{Text: strings.Repeat("x", 32_000-2) + fmt.Sprintf("%02d", i)})
				if took += 32_000; (err != nil) != (took > 1<<20) || err != nil && problem.KindOf(err) != problem.Refused {
					return "", fmt.Errorf("after %d bytes: %w", took, err)
				}
			}
			return "done", nil
		}
		d, _ := s.lives()
		m := s.say(d, "echo", "say much")
		if n := len(s.sent(m.Chat)); n != 1<<20/32_000+1 {
			t.Errorf("%d were sent", n)
		}
		s.say(d, "echo", "and again") // the next turn begins anew
		if n := len(s.sent(m.Chat)); n != 2*(1<<20/32_000+1) {
			t.Errorf("%d were sent in two turns", n)
		}
	})
}

// TestAnAnswerReachesTheAgentThatAsked holds a card's life: asked once, answered by number, by label and in words, and then shut (CH-904).
func TestAnAnswerReachesTheAgentThatAsked(t *testing.T) {
	play(t, []string{"echo"}, func(t *testing.T, s *scene) {
		var card string
		named := regexp.MustCompile(` id="msg-[a-z0-9]{10}"`)
		s.turn = func(_ context.Context, words string, st *stage) (string, error) {
			switch {
			case strings.Contains(words, "<answer "):
				return "so it is " + named.ReplaceAllString(words[strings.Index(words, "<answer "):strings.Index(words, "</answer>")], ""), nil
			case strings.Contains(words, ">colour<"):
				for range 2 { // the same call asks once
					r, err := st.ask(tool.AskUserQuestion, tool.Question{Question: "Which one?", Options: []string{"red", "blue"}})
					if err != nil || card != "" && r.ID != card {
						t.Errorf("%+v %v", r, err)
					}
					card = r.ID
				}
			case strings.Contains(words, ">name<"):
				if _, err := st.ask(tool.AskUserQuestion, tool.Question{Question: "What name?"}); err != nil {
					t.Error(err)
				}
			default:
				return "talk", nil
			}
			return "", nil
		}
		d, _ := s.lives()
		m := s.say(d, "echo", "colour")
		same(t, "asked", s.sent(m.Chat), "Which one?\n1. red\n2. blue")
		s.say(d, "echo", "I do not know yet")
		if a := s.say(d, "echo", " 2 "); a.Kind != prompt.Answer || a.Text != "blue" {
			t.Errorf("%+v", a)
		}
		same(t, "sent", s.sent(m.Chat)[1:], "talk", `so it is <answer sender="ann" time="Jan 1, 2000, 12:00 AM" question="Which one?">blue`)
		if a := s.say(d, "echo", "2"); a.Kind != prompt.Chat {
			t.Errorf("a number after the answer: %+v", a)
		}
		if _, err := d.Answer(gittest.Context(t), id.Question(card), dispatch.Said{Text: "1", Account: "1000", Name: "ann", By: s.By()}); problem.KindOf(err) != problem.Conflict || !strings.Contains(err.Error(), "blue") {
			t.Errorf("an old card: %v", err)
		}

		s.say(d, "echo", "name")
		if a := s.say(d, "echo", "Tulip"); a.Kind != prompt.Answer || a.Text != "Tulip" {
			t.Errorf("%+v", a)
		}
		stranger := s.By()
		stranger.Person, stranger.UID = "psn-0000else", 4711
		s.say(d, "echo", "name")
		if m, err := d.Say(gittest.Context(t), dispatch.Said{Group: "echo", Text: "Rose", Account: "1000", Name: "else", By: stranger}); err != nil || m.Kind != prompt.Chat {
			t.Errorf("words of somebody whom the group does not know are talk: %+v, %v", m, err)
		}
		var open id.Question
		s.Tx(func(ctx context.Context, tx store.Tx) error {
			all, err := tx.OpenQuestions(ctx, m.Chat.Subject())
			open = all[0].ID
			return err
		})
		if _, err := d.Answer(gittest.Context(t), open, dispatch.Said{Text: "Rose", Account: "1000", Name: "else", By: stranger}); problem.KindOf(err) != problem.Denied {
			t.Errorf("they answer by its name: %v", err)
		}
	})
}

// TestWhoWatchesIsToldEachThingOnce holds what a terminal sees: what was, words as they come, the answer, and how the message ends.
func TestWhoWatchesIsToldEachThingOnce(t *testing.T) {
	play(t, []string{"echo"}, func(t *testing.T, s *scene) {
		works, gate := s.turn, make(chan struct{})
		s.turn = func(ctx context.Context, words string, st *stage) (string, error) {
			if strings.Contains(words, ">now<") {
				<-gate
				st.Say("it is ")
				<-gate
			}
			return works(ctx, words, st)
		}
		d, _ := s.lives()
		m := s.say(d, "echo", "before")
		ctx, cancel := context.WithCancel(t.Context())
		var lines []string
		done := make(chan error, 1)
		go func() {
			done <- d.Watch(ctx, m.Chat, 10, func(told []dispatch.Line) error {
				for _, l := range told {
					text := string(l.Kind)
					switch n := len(lines); {
					case l.In != nil && l.In.Status == message.Pending:
						continue // it may have been seen before it was taken
					case l.In != nil:
						text += " " + l.In.Text + " " + string(l.In.Status)
					case l.Out != nil:
						text += " " + l.Out.Text
					case l.Kind == dispatch.LineSaid && lines[n-1] == "said":
						continue // the last piece may come with what was sent, and is not told then
					}
					lines = append(lines, text)
				}
				return nil
			})
		}()
		synctest.Wait()
		s.say(d, "echo", "now")
		gate <- struct{}{}
		time.Sleep(time.Second)
		close(gate)
		time.Sleep(time.Second)
		synctest.Wait()
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		same(t, "told", lines, "in before completed", "out heard: before", "ready", "in now processing", "turn", "said", "in now completed", "out it is heard: now")
	})
}

// TestATaskThatIsCancelledInItsTurnComesNoMore holds CH-110 of the worst moment: its turn has the row as it was before.
func TestATaskThatIsCancelledInItsTurnComesNoMore(t *testing.T) {
	for _, fails := range []bool{false, true} {
		play(t, []string{"echo"}, func(t *testing.T, s *scene) {
			var turns atomic.Int64
			cancel := make(chan func() error, 1)
			s.turn = func(context.Context, string, *stage) (string, error) {
				if turns.Add(1) > 1 {
					return "watered", nil
				}
				if err := (<-cancel)(); err != nil {
					t.Error(err)
				}
				if fails {
					return "", errors.New("the model is away")
				}
				return "watered", nil
			}
			d, _ := s.lives()
			chat := s.chatWith(d, "echo")
			task, err := d.Plan(gittest.Context(t), chat, schedule.Schedule{Kind: schedule.Cron, Spec: "30 * * * *", Text: "water the plants"}, "", s.By())
			if err != nil {
				t.Fatal(err)
			}
			cancel <- func() error { return d.Unplan(context.Background(), task.Task, s.By()) }
			time.Sleep(5 * time.Hour)
			if all, err := d.Tasks(gittest.Context(t)); err != nil || len(all) > 0 {
				t.Errorf("fails %t: after %d turns there are %d tasks, %v", fails, turns.Load(), len(all), err)
			}
			if n := turns.Load(); n > 2 {
				t.Errorf("fails %t: it came %d times", fails, n)
			}
		})
	}
}
