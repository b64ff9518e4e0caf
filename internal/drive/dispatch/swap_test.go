package dispatch_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"sallyport/internal/base/disk/disktest"
	"sallyport/internal/base/git/gittest"
	"sallyport/internal/base/id"
	"sallyport/internal/base/problem"
	"sallyport/internal/chat/conversation"
	"sallyport/internal/chat/message"
	"sallyport/internal/chat/prompt"
	"sallyport/internal/drive/dispatch"
	"sallyport/internal/drive/drivetest"
	"sallyport/internal/drive/ledger"
	"sallyport/internal/drive/live"
	"sallyport/internal/drive/standing"
	"sallyport/internal/path/change"
	"sallyport/internal/path/request"
	"sallyport/internal/path/session"
	"sallyport/internal/port/agent"
	"sallyport/internal/port/tool"
	"sallyport/internal/store"
	"sallyport/internal/who/group"
)

// wishes keeps what groups ask for, as changes that a test moves.
type wishes struct {
	s     *scene
	asked []standing.Wish
	told  []string
	row   change.Row
}

func (w *wishes) RequestSwap(ctx context.Context, asked standing.Wish) (change.Row, error) {
	if w.row.ID == asked.Change {
		return w.row, nil
	}
	w.asked = append(w.asked, asked)
	w.row = change.Row{ID: asked.Change, State: change.Working, Created: time.Now(), Moved: time.Now(), Request: request.Request{
		Kind: request.Swap, Group: string(asked.Group), Chat: asked.Chat, Text: asked.Text, Dev: "dev-greets", Agent: "echo", By: asked.By,
	}}
	return w.row, w.s.Parts.DB.InTx(ctx, func(tx store.Tx) error { return tx.AddChange(ctx, w.row) })
}

func (w *wishes) LastSwap(context.Context, group.Folder) (change.Row, error) {
	if w.row.ID == "" {
		return w.row, problem.New(problem.NotFound, "none")
	}
	return w.row, nil
}

func (w *wishes) TellDev(_ context.Context, _ change.Row, words string) error {
	w.told = append(w.told, words)
	return nil
}

// TestWhoeverSpokeWhenAGroupAsksForAChangeMayHaveWishedIt holds SM-912: whom an agent names is its own word, and whom it answers is the host's.
func TestWhoeverSpokeWhenAGroupAsksForAChangeMayHaveWishedIt(t *testing.T) {
	play(t, []string{"echo"}, func(t *testing.T, s *scene) {
		w := &wishes{s: s}
		s.swaps = w
		works, told := s.turn, ""
		s.turn = func(ctx context.Context, words string, st *stage) (string, error) {
			if !strings.Contains(words, "be rude") {
				return works(ctx, words, st)
			}
			told = words
			named := regexp.MustCompile(`id="(msg-[^"]+)"[^>]*>hello all<`).FindStringSubmatch(words)
			_, err := st.ask(tool.RequestDevChanges, tool.DevChanges{Summary: "be rude", Message: named[1]})
			return "begun", err
		}
		d, _ := s.lives()
		m := s.say(d, "echo", "hello")
		s.Tx(func(ctx context.Context, tx store.Tx) error {
			for _, said := range []struct{ who, text string }{{"irc:bea", "hello all"}, {"irc:bea", "and you"}, {"irc:cal", "good day"}} {
				chat, err := tx.Chat(ctx, m.Chat)
				if err != nil {
					return err
				}
				in, _, err := tx.AddIntake(ctx, message.Intake{Conversation: chat.Conversation, Received: time.Now(), Outcome: message.Stored})
				if err != nil {
					return err
				}
				if _, err := tx.PutIn(ctx, message.In{
					ID: id.NewMessage(), Chat: m.Chat, Intake: in.Seq, Kind: prompt.Chat, Identity: said.who, Sender: said.who, Text: said.text, At: time.Now(), Status: message.Pending, Due: time.Now(),
				}); err != nil {
					return err
				}
			}
			return nil
		})
		m = s.say(d, "echo", "be rude")
		time.Sleep(time.Minute)
		if len(w.asked) != 1 || w.asked[0].Message == m.ID || w.asked[0].Message == "" {
			t.Fatalf("it asked for %+v, told %q", w.asked, told)
		}
		same(t, "who spoke", w.asked[0].Heard, "irc:bea", "irc:cal", m.Identity)
	})
}

// TestAGroupAsksForAChangeAndSpeaksWithWhoMakesIt holds SM-020, SM-022, SM-023, SM-032 and SM-042.
func TestAGroupAsksForAChangeAndSpeaksWithWhoMakesIt(t *testing.T) {
	play(t, []string{"echo"}, func(t *testing.T, s *scene) {
		w := &wishes{s: s}
		tries, named := 0, regexp.MustCompile(`id="(msg-[^"]+)"`)
		var older string
		s.turn = func(_ context.Context, words string, st *stage) (string, error) {
			text := drivetest.Last(words)
			switch {
			case strings.HasPrefix(text, "change"):
				tries++
				st.Began(agent.Tool{ID: "t1", Kind: "execute", Title: "sallyport-tool"})
				for range 20 { // the worker moves the chat's row meanwhile
					if _, err := st.ask(tool.RequestDevChanges, tool.DevChanges{Summary: "greet", Message: "msg-somebody"}); problem.KindOf(err) != problem.Usage {
						t.Errorf("a message that nobody said here: %v", err)
					}
				}
				if _, err := st.ask(tool.RequestDevChanges, tool.DevChanges{Summary: "greet", Message: older}); problem.KindOf(err) != problem.Usage {
					t.Errorf("a message of an earlier turn, %q: %v", older, err)
				}
				r, err := st.ask(tool.RequestDevChanges, tool.DevChanges{Summary: "greet people", Message: named.FindStringSubmatch(words)[1]})
				if err != nil || r.ID == "" {
					t.Errorf("%+v %v", r, err)
				}
				if tries == 1 {
					return "", problem.New(problem.Unavailable, "no model")
				}
				return "begun", nil
			case text == "hello":
				older = named.FindStringSubmatch(words)[1]
			case strings.HasPrefix(text, "tell "):
				r, err := st.ask(tool.SendMessage, tool.Message{Text: strings.TrimPrefix(text, "tell "), To: "dev-greets"})
				if err != nil {
					return "", err
				}
				return r.Text, nil
			case strings.Contains(words, `sender="echo"`): // it is the dev agent that hears
				return "dev heard: " + text, nil
			}
			return "heard: " + text, nil
		}
		s.swaps = w
		d, _ := s.lives()

		s.say(d, "echo", "hello")
		m := s.say(d, "echo", "change")
		time.Sleep(time.Minute)
		if len(w.asked) != 1 || w.asked[0].Message != m.ID || w.asked[0].Text != "greet people" || w.asked[0].Chat != m.Chat || w.asked[0].By.Kind != "agent" {
			t.Fatalf("it asked for %+v in %d tries", w.asked, tries)
		}
		if err := (dispatch.DevAgents{Dispatcher: d}).Hear(t.Context(), w.row, "Which <internal>x</internal>name?", "key"); err != nil {
			t.Fatal(err)
		}
		if err := (dispatch.DevAgents{Dispatcher: d}).Hear(t.Context(), w.row, "Which name?", "key"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		s.say(d, "echo", "tell theirs")
		same(t, "the dev agent was told", w.told, "theirs")

		w.row.State = change.Finalized // and now it is spoken with in a chat of its own
		s.Tx(func(ctx context.Context, tx store.Tx) error { return tx.MoveChange(ctx, change.Working, w.row) })
		s.say(d, "echo", "tell thanks")
		time.Sleep(time.Minute)
		same(t, "the conversation was sent", s.sent(m.Chat), "heard: hello", "begun", "heard: Which name?", "dev-greets has it.",
			"dev-greets has it; its change is finalized, so it can change nothing more.", "heard: dev heard: thanks")
		all, err := d.List(gittest.Context(t), "echo")
		if err != nil || !slices.ContainsFunc(all, func(c dispatch.Seen) bool { return c.Platform == conversation.Dev && c.Live }) {
			t.Errorf("no dev agent runs in a chat of its own: %+v, %v", all, err)
		}

		// It is to work again: its session there ends, and leaves to the one at work what it has kept. What waits there is closed.
		at := slices.IndexFunc(all, func(c dispatch.Seen) bool { return c.Platform == conversation.Dev })
		dev := s.chat(all[at].ID)
		kept := filepath.Join(session.HomeDir(filepath.Join(s.Parts.Settings.Sessions, string(dev.Identity))), "kept")
		disktest.Put(t, kept, "mine", 0o600)
		w.row.State = change.Working
		s.Tx(func(ctx context.Context, tx store.Tx) error { return tx.MoveChange(ctx, change.Finalized, w.row) })
		to := filepath.Join(t.TempDir(), "work")
		if err := (dispatch.DevAgents{Dispatcher: d}).Yield(t.Context(), w.row, to); err != nil {
			t.Fatal(err)
		}
		if raw, err := os.ReadFile(filepath.Join(session.HomeDir(to), "kept")); err != nil || string(raw) != "mine" {
			t.Errorf("it goes on with %q, %v", raw, err)
		}
		late := message.In{ID: id.NewMessage(), Chat: dev.ID, Kind: prompt.System, Trigger: true, Text: "late", At: time.Now(), Status: message.Pending, Due: time.Now()}
		s.Tx(func(ctx context.Context, tx store.Tx) error { _, err := tx.PutIn(ctx, late); return err })
		time.Sleep(time.Minute)
		if m := s.now(late.ID); m.Status != message.Completed || m.Reason != "dev-greets works at "+string(w.row.ID)+" again" {
			t.Errorf("what waits there is %s: %s", m.Status, m.Reason)
		}
		if all, err := d.List(gittest.Context(t), "echo"); err != nil || slices.ContainsFunc(all, func(c dispatch.Seen) bool { return c.Platform == conversation.Dev && c.Live }) {
			t.Errorf("two of it run: %+v, %v", all, err)
		}
	})
}

// TestWhatADevAgentIsToldIsNotGivenUpWhereTheHostEndsItsSession holds that words which their agent did not come to the end of are put before
// it anew, or closed where it hears nothing in that chat any more (SM-021, SM-110).
func TestWhatADevAgentIsToldIsNotGivenUpWhereTheHostEndsItsSession(t *testing.T) {
	yield := func(s *scene, d *dispatch.Dispatcher, w *wishes) error {
		return dispatch.DevAgents{Dispatcher: d}.Yield(s.T.Context(), w.row, filepath.Join(s.T.TempDir(), "work"))
	}
	for name, c := range map[string]struct {
		ends   func(s *scene, d *dispatch.Dispatcher, w *wishes) error
		turns  int32
		reason string // by the change that the group asked for last
	}{
		"its change is over": {yield, 2, ""},
		"it works at its change again": {func(s *scene, d *dispatch.Dispatcher, w *wishes) error {
			w.row.State = change.Preparing
			s.Tx(func(ctx context.Context, tx store.Tx) error { return tx.MoveChange(ctx, change.Rejected, w.row) })
			return yield(s, d, w)
		}, 1, "dev-greets works at %s again"},
		"its group asks for another change": {func(s *scene, d *dispatch.Dispatcher, _ *wishes) error {
			s.say(d, "echo", "change")
			return nil
		}, 1, "dev-greets has ended: the group asked for another change, %s"},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, []string{"echo"}, func(t *testing.T, s *scene) {
				w := &wishes{s: s}
				s.swaps = w
				var turns atomic.Int32
				var wish live.Handler
				var intake func() string
				s.turn = func(ctx context.Context, words string, _ *stage) (string, error) {
					switch {
					case strings.Contains(words, "ann refused it"):
						if turns.Add(1) == 1 {
							<-ctx.Done()
							return "", ctx.Err()
						}
					case drivetest.Last(words) == "change":
						s.mu.Lock()
						if wish == nil { // of the group's session, which is the first
							wish, intake = s.desk[tool.RequestDevChanges], s.intake
						}
						s.mu.Unlock()
						_, err := wish(ctx, tool.Call{Verb: tool.RequestDevChanges, Intake: intake(), Args: tool.DevChanges{Summary: "greet people"}})
						return "begun", err
					}
					return "heard", nil
				}
				d, _ := s.lives()
				s.say(d, "echo", "change")
				w.row.State = change.Rejected
				var told message.In
				s.Tx(func(ctx context.Context, tx store.Tx) error {
					chat, err := ledger.DevChat(ctx, tx, w.row)
					told = message.In{ID: id.NewMessage(), Chat: chat.ID, Kind: prompt.System, Trigger: true, Text: "ann refused it", At: time.Now(), Status: message.Pending, Due: time.Now()}
					_, err2 := tx.PutIn(ctx, told)
					return errors.Join(err, err2, tx.MoveChange(ctx, change.Working, w.row))
				})
				time.Sleep(time.Minute)
				s.is(told.ID, message.Processing)

				if err := c.ends(s, d, w); err != nil {
					t.Fatal(err)
				}
				time.Sleep(time.Minute)
				m, want := s.is(told.ID, message.Completed), c.reason
				if want != "" {
					want = fmt.Sprintf(want, w.row.ID)
				}
				if m.Tries != 0 || m.Reason != want || turns.Load() != c.turns {
					t.Errorf("%d tries, %d turns, %q; want no try, %d turns, %q", m.Tries, turns.Load(), m.Reason, c.turns, want)
				}
				if said := s.sent(told.Chat); slices.ContainsFunc(said, func(text string) bool { return strings.HasPrefix(text, "notice: ") }) {
					t.Errorf("its chat is told %q", said)
				}
			})
		})
	}
}

// What one agent tells another goes through the host, as what it tells people does (I8).
func TestNoSecretGoesFromOneAgentToAnother(t *testing.T) {
	const planted = "ghp_" + "9fK2mQx7LbR4vTz1WcN8sYd3HjP6gUe5AoXi"
	play(t, []string{"echo"}, func(t *testing.T, s *scene) {
		w := &wishes{s: s}
		s.swaps = w
		named, heard := regexp.MustCompile(`id="(msg-[^"]+)"`), make(chan string, 1)
		s.turn = func(_ context.Context, words string, st *stage) (said string, err error) {
			switch drivetest.Last(words) {
			case "change":
				_, err = st.ask(tool.RequestDevChanges, tool.DevChanges{Summary: "greet with " + planted, Message: named.FindStringSubmatch(words)[1]})
			case "tell":
				_, err = st.ask(tool.SendMessage, tool.Message{Text: "use " + planted, To: "dev-greets"})
			default:
				heard <- words
			}
			return "done", err
		}
		d, _ := s.lives()
		s.say(d, "echo", "change")
		time.Sleep(time.Minute)
		s.say(d, "echo", "tell")
		time.Sleep(time.Minute)
		if err := (dispatch.DevAgents{Dispatcher: d}).Hear(t.Context(), w.row, "found "+planted, "key"); err != nil {
			t.Fatal(err)
		}
		found := <-heard
		if len(w.asked) != 1 || len(w.told) != 1 {
			t.Fatalf("it asked for %+v and told %q", w.asked, w.told)
		}
		for want, said := range map[string]string{"greet with [secret: ": w.asked[0].Text, "use [secret: ": w.told[0], "found [secret: ": found} {
			if strings.Contains(said, planted) || !strings.Contains(said, want) {
				t.Errorf("%q instead of %q", said, want)
			}
		}
	})
}
