package bench_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"sallyport/internal/base/disk"
	"sallyport/internal/base/id"
	"sallyport/internal/chat/conversation"
	"sallyport/internal/chat/message"
	"sallyport/internal/chat/prompt"
	"sallyport/internal/door/api"
	"sallyport/internal/door/client"
	wt "sallyport/internal/path/workspace/workspacetest"
	"sallyport/internal/store"
	"sallyport/internal/store/sqlite"
	"sallyport/internal/who/group"
)

const (
	liveTalks = 8   // conversations with an agent that lives
	waiters   = 256 // terminals that watch and wait to be heard, shared among those
	accepts   = 2048
	turns     = 200
	groupsAll = 50
	talksAll  = 200 // conversations, of all groups
)

// talking is a home with many groups, each a copy of the first, and a client of its daemon.
type talking struct {
	host
	home string
	*client.Client
}

func newTalking(b *testing.B) talking {
	b.Helper()
	needs(b, "bwrap", "git")
	h := newHost(b)
	t := talking{host: h, home: filepath.Join(h.dir, "home")}
	h.run(b, "", "daemon", "start")
	h.run(b, "", "daemon", "stop")
	for n := range groupsAll {
		must(b, exec.Command("cp", "-a", filepath.Join(t.home, "groups", "echo"), filepath.Join(t.home, "groups", t.group(n))).Run())
	}
	wt.Git(b, t.home, "add", "groups")
	wt.Git(b, t.home, "-c", "user.name=P", "-c", "user.email=p@example.org", "commit", "-qm", "groups")
	t.fill(b)
	h.run(b, "", "daemon", "start")
	t.Client = h.client(b)
	return t
}

// client speaks to the host's daemon.
func (h host) client(b *testing.B) *client.Client {
	b.Helper()
	env := map[string]string{}
	for _, kv := range h.env {
		name, value, _ := strings.Cut(kv, "=")
		env[name] = value
	}
	c, err := client.Person{UID: os.Geteuid(), Getenv: func(name string) string { return env[name] }}.Dial(b.Context(), filepath.Join(h.dir, "home"))
	must(b, err)
	return c
}

func (t talking) group(n int) string { return fmt.Sprintf("g%d", n) }

// fill makes the conversations of people who are not here now.
func (t talking) fill(b *testing.B) {
	b.Helper()
	db, err := sqlite.Open(b.Context(), filepath.Join(t.home, ".state", "sallyport.db"), disk.Ops{})
	must(b, err)
	defer db.Close()
	must(b, db.InTx(b.Context(), func(tx store.Tx) error {
		for n := range talksAll - liveTalks {
			if _, err := putChat(b.Context(), tx, t.group(n%groupsAll), fmt.Sprint(20_000+n)); err != nil {
				return err
			}
		}
		return nil
	}))
}

func putChat(ctx context.Context, tx store.Tx, of, account string) (conversation.Chat, error) {
	where, err := tx.PutConversation(ctx, conversation.Conversation{
		ID: id.NewConversation(), Platform: conversation.Terminal, Address: account + "/" + of, Kind: conversation.Direct, Name: of, Created: time.Now(),
	})
	if err != nil {
		return conversation.Chat{}, err
	}
	return tx.PutChat(ctx, conversation.Chat{ID: id.NewChat(), Group: group.Folder(of), Conversation: where.ID, Created: time.Now()})
}

func (t talking) say(ctx context.Context, to, text string) error {
	_, err := client.Call(ctx, t.Client, api.ChatSay, api.Say{Group: to, Text: text})
	return err
}

// watch calls hear with each line of a chat, from when it is watched; ready is closed then. With no hear, the lines that follow are read and
// not looked at.
func (t talking) watch(ctx context.Context, of string, hear func(api.ChatLine)) (ready chan struct{}) {
	ready = make(chan struct{})
	r, w := io.Pipe()
	go func() { w.CloseWithError(client.Copy(ctx, t.Client, api.ChatWatch, api.WatchChat{Group: of}, w)) }() // ends with ctx
	go func() {
		for lines := json.NewDecoder(r); ; {
			var l api.ChatLine
			if lines.Decode(&l) != nil {
				return
			}
			if l.Kind == api.ChatReady {
				close(ready)
			}
			switch {
			case hear != nil:
				hear(l)
			case l.Kind == api.ChatReady:
				_, _ = io.Copy(io.Discard, r) // ends with ctx too
				return
			}
		}
	}()
	return ready
}

// answered says something and waits for the answer; it returns when the first word came.
func (t talking) answered(b *testing.B, lines <-chan api.ChatLine, to, text string) time.Duration {
	b.Helper()
	began, first := time.Now(), time.Duration(0)
	must(b, t.say(b.Context(), to, text))
	for l := range lines {
		if first == 0 && (l.Kind == api.ChatSaid || l.Kind == api.ChatOut) {
			first = time.Since(began)
		}
		if l.Kind == api.ChatOut {
			break
		}
	}
	return first
}

// BenchmarkConversations measures what carries messages: 50 groups with 200 conversations, 8 of them with an agent that lives.
func BenchmarkConversations(b *testing.B) {
	t := newTalking(b)
	ctx, cancel := context.WithCancel(b.Context())
	defer cancel()
	first, hangUp := context.WithCancel(ctx)
	defer hangUp()
	lines := make([]chan api.ChatLine, liveTalks)
	for n := range lines {
		lines[n] = make(chan api.ChatLine, 1<<16)
		<-t.watch(first, t.group(n), func(l api.ChatLine) { lines[n] <- l })
		t.answered(b, lines[n], t.group(n), "wake up")
	}
	t.receipts(b, lines[0])
	t.neighbours(b, lines)
	hangUp()
	t.acceptances(b, ctx)
}

// receipts measures how long a message takes to an agent that is awake, and that one's first word back.
func (t talking) receipts(b *testing.B, lines <-chan api.ChatLine) {
	toCat, fromCat := cat(b)
	r := row{path: "a message to an agent that is awake, and its first word back", ours: "said over the socket, stored durably, given to the agent in its sandbox, answered, told to the terminal",
		rival: "a line to `cat` through a pipe, and back", note: "the rival stores nothing"}
	worst := row{path: "the same, the slowest but one in a hundred", ours: "as above, of " + fmt.Sprint(turns) + " messages a round", within: 50 * time.Millisecond}
	for range max(*rounds, 1) {
		var took []time.Duration
		for n := range turns {
			took = append(took, t.answered(b, lines, t.group(0), fmt.Sprint("message ", n)))
			r.rivals = append(r.rivals, timed(func() {
				_, err := io.WriteString(toCat, "a line\n")
				_, err2 := io.ReadFull(fromCat, make([]byte, len("a line\n")))
				must(b, errors.Join(err, err2))
			}))
		}
		slices.Sort(took)
		r.took, worst.took = append(r.took, took...), append(worst.took, took[len(took)*99/100])
	}
	record(b, r)
	record(b, worst)
}

// cat is a process that gives back what it is given.
func cat(b *testing.B) (io.Writer, io.Reader) {
	b.Helper()
	cmd := exec.Command("cat")
	in, err := cmd.StdinPipe()
	must(b, err)
	out, err := cmd.StdoutPipe()
	must(b, err)
	must(b, cmd.Start())
	b.Cleanup(func() {
		in.Close()
		_ = cmd.Wait() // it was given all that it had to say
	})
	return in, out
}

// neighbours has all but one of the agents be busy, and the one that is not answer.
func (t talking) neighbours(b *testing.B, lines []chan api.ChatLine) {
	r := row{path: "a message to one of 8 agents", ours: "while the other 7 are in the middle of a turn, in a home of 50 groups with 200 conversations",
		rival: "while nobody else has a turn", goal: goalAt{0: 1.5}}
	last := liveTalks - 1
	const asked = 50
	for range asked {
		r.rivals = append(r.rivals, t.answered(b, lines[last], t.group(last), "hello"))
	}
	for n := range last {
		must(b, t.say(b.Context(), t.group(n), "/tool 600"))
		for l := range lines[n] {
			if l.Kind == api.ChatTool && l.Tool != nil {
				break
			}
		}
	}
	for range asked {
		r.took = append(r.took, t.answered(b, lines[last], t.group(last), "hello"))
	}
	held := resident(b, t.daemon(b))
	b.ReportMetric(float64(held)/1e6, "MB")
	r.note = fmt.Sprintf("the daemon held %d MB; the goal is under 150", held/1e6)
	record(b, r)
	chats, err := client.Call(b.Context(), t.Client, api.ChatList, api.InGroup{})
	must(b, err)
	for _, c := range chats {
		if c.Live {
			_, err := client.Call(b.Context(), t.Client, api.ChatStop, c.ID)
			must(b, err)
		}
	}
	if len(chats) != talksAll {
		b.Errorf("there are %d conversations, not %d", len(chats), talksAll)
	}
}

// acceptances measures how fast messages are taken from many who wait for that, while agents answer and all of them watch, beside the same
// rows written by hand.
func (t talking) acceptances(b *testing.B, ctx context.Context) {
	terminals := make([]talking, waiters)
	for n := range terminals {
		terminals[n] = talking{t.host, t.home, client.New(t.Socket())}
		<-terminals[n].watch(ctx, t.group(n%liveTalks), nil)
	}
	db, err := sqlite.Open(b.Context(), filepath.Join(b.TempDir(), "bare.db"), disk.Ops{})
	must(b, err)
	defer db.Close()
	bare := make([]conversation.Chat, liveTalks)
	must(b, db.InTx(b.Context(), func(tx store.Tx) (err error) {
		for n := range bare {
			bare[n], err = putChat(b.Context(), tx, t.group(n), "1000")
			if err != nil {
				return err
			}
		}
		return nil
	}))
	ours := func() time.Duration {
		t.settle(b)
		return atOnce(b, func(n, at int) error {
			return terminals[n].say(b.Context(), t.group(n%liveTalks), fmt.Sprint("message ", at))
		})
	}
	rows := func() time.Duration {
		t.settle(b)
		return atOnce(b, func(n, at int) error {
			return db.InTx(b.Context(), func(tx store.Tx) error {
				return bareMessage(b.Context(), tx, bare[n%liveTalks], fmt.Sprint("message ", at))
			})
		})
	}
	r := row{path: fmt.Sprintf("taking a message of %d, from %d terminals at once", accepts, waiters),
		ours:  fmt.Sprintf("said over the socket, stored durably, and acknowledged, in %d conversations; the agents answer, and all terminals watch", liveTalks),
		rival: "the same two rows alone, committed durably, by as many at once", within: time.Millisecond,
		note: "the goal is 1,000 messages in a second; the terminals take their share of the processors"}
	inTurn(b, r, ours, rows)
}

// settle waits until every message was answered.
func (t talking) settle(b *testing.B) {
	b.Helper()
	for {
		open, err := client.Call(b.Context(), t.Client, api.MessageList, api.Messages{Status: []string{string(message.Pending), string(message.Processing)}, Limit: 1})
		must(b, err)
		if len(open) == 0 {
			return
		}
		<-time.After(20 * time.Millisecond)
	}
}

// atOnce has each of those who wait do something again and again, all at once, and returns what one took.
func atOnce(b *testing.B, do func(n, at int) error) time.Duration {
	failed := make(chan error, waiters)
	took := timed(func() {
		var all sync.WaitGroup
		for n := range waiters {
			all.Go(func() {
				for at := range accepts / waiters {
					if err := do(n, at); err != nil {
						failed <- err
						return
					}
				}
			})
		}
		all.Wait()
	})
	close(failed)
	must(b, errors.Join(<-failed))
	return took / accepts
}

// bareMessage writes what accepting a message does.
func bareMessage(ctx context.Context, tx store.Tx, chat conversation.Chat, text string) error {
	now := time.Now()
	intake, _, err := tx.AddIntake(ctx, message.Intake{Conversation: chat.Conversation, Received: now, Outcome: message.Stored})
	if err != nil {
		return err
	}
	_, err = tx.PutIn(ctx, message.In{
		ID: id.NewMessage(), Chat: chat.ID, Intake: intake.Seq, Kind: prompt.Chat, Trigger: true, Identity: "terminal:1000", Text: text, At: now, Status: message.Pending, Due: now,
	})
	return err
}
