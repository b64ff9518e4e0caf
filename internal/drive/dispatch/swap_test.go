package dispatch_test

import (
	"context"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"sallyport/internal/base/id"
	"sallyport/internal/base/problem"
	"sallyport/internal/chat/conversation"
	"sallyport/internal/chat/message"
	"sallyport/internal/chat/prompt"
	"sallyport/internal/drive/dispatch"
	"sallyport/internal/drive/standing"
	"sallyport/internal/path/change"
	"sallyport/internal/path/request"
	"sallyport/internal/path/session"
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
			text := last(words)
			switch {
			case strings.HasPrefix(text, "change"):
				tries++
				if _, err := st.ask(tool.RequestDevChanges, tool.DevChanges{Summary: "greet", Message: "msg-somebody"}); problem.KindOf(err) != problem.Usage {
					t.Errorf("a message that nobody said here: %v", err)
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
		all, err := d.List(t.Context(), "echo")
		if err != nil || !slices.ContainsFunc(all, func(c dispatch.Seen) bool { return c.Platform == conversation.Dev && c.Live }) {
			t.Errorf("no dev agent runs in a chat of its own: %+v, %v", all, err)
		}

		// It is to work again: its session there ends, and leaves to the one at work what it has kept. What waits there is closed.
		at := slices.IndexFunc(all, func(c dispatch.Seen) bool { return c.Platform == conversation.Dev })
		dev := s.chat(all[at].ID)
		kept := filepath.Join(session.HomeDir(filepath.Join(s.Parts.Settings.Sessions, string(dev.Identity))), "kept")
		if err := os.WriteFile(kept, []byte("mine"), 0o600); err != nil {
			t.Fatal(err)
		}
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
		if all, err := d.List(t.Context(), "echo"); err != nil || slices.ContainsFunc(all, func(c dispatch.Seen) bool { return c.Platform == conversation.Dev && c.Live }) {
			t.Errorf("two of it run: %+v, %v", all, err)
		}
	})
}
