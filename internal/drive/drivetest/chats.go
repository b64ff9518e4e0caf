package drivetest

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing/synctest"
	"time"

	"sallyport/internal/base/audit"
	"sallyport/internal/base/git"
	"sallyport/internal/base/git/gittest"
	"sallyport/internal/base/id"
	"sallyport/internal/chat/conversation"
	"sallyport/internal/chat/message"
	"sallyport/internal/drive/control"
	"sallyport/internal/path/change"
	"sallyport/internal/path/request"
	"sallyport/internal/port/tool"
	"sallyport/internal/rule/right"
	"sallyport/internal/store"
	"sallyport/internal/who/group"
	"sallyport/internal/who/person"
)

// SwapChat is the conversation in which a group of a test asks for a change.
const SwapChat id.Chat = "cht-abcdefgh"

// SwapPrompt is the file of the group that such a change writes.
const SwapPrompt = "groups/echo/runner/prompts/system.md"

// Chats plays the sessions of a group: what they run is the prompt as it is committed.
type Chats struct {
	mu      sync.Mutex
	h       *Home
	renewed []string
	begun   []string
	OnRenew func(ctx context.Context, prompt string) error
	OnBegin func(prompt string) error
	OnAsk   func() error
}

func (c *Chats) Renew(ctx context.Context, _ group.Folder, chat id.Chat) error {
	prompt := c.h.Git("show", "HEAD:"+SwapPrompt)
	c.mu.Lock()
	c.renewed = append(c.renewed, prompt)
	on := c.OnRenew
	c.mu.Unlock()
	if chat != SwapChat {
		c.h.T.Errorf("%s begins anew", chat)
	}
	if on == nil {
		return nil
	}
	return on(ctx, prompt)
}

func (c *Chats) Begin(context.Context, group.Folder, id.Chat) error {
	prompt := c.h.Git("show", "HEAD:"+SwapPrompt)
	c.mu.Lock()
	c.begun = append(c.begun, prompt)
	on := c.OnBegin
	c.mu.Unlock()
	if on == nil {
		return nil
	}
	return on(prompt)
}

func (c *Chats) Ask(context.Context, group.Folder, id.Chat) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.OnAsk == nil {
		return nil
	}
	return c.OnAsk()
}

// Set changes how they are played.
func (c *Chats) Set(f func(*Chats)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	f(c)
}

// Ran are the prompts on which the group began anew and had to answer, and those on which it began without.
func (c *Chats) Ran() (renewed, begun []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.renewed), slices.Clone(c.begun)
}

// Swapping is a home whose group asks for a change of its prompt to text, in a conversation that there is.
func (h *Home) Swapping(text string) (*Assistants, *Chats, *Service) {
	h.T.Helper()
	s := h.Serve()
	h.Cage.Play = nil
	a, _ := h.Assist(func(_ context.Context, s *Scene, words string) (string, error) {
		if _, path, ok := strings.Cut(words, "Write by hand: "); ok {
			s.Write(strings.Fields(path)[0], "by hand\n")
			return "done", nil
		}
		s.Write("template/runner/prompts/system.md", text)
		return "", nil
	})
	c := &Chats{h: h}
	h.Parts.Chats = c
	h.Tx(func(ctx context.Context, tx store.Tx) error {
		where, err := tx.PutConversation(ctx, conversation.Conversation{ID: id.NewConversation(), Platform: conversation.Terminal,
			Address: "1000/echo", Kind: conversation.Direct, Name: "echo", Created: time.Now().UTC()})
		if err != nil {
			return err
		}
		_, err = tx.PutChat(ctx, conversation.Chat{ID: SwapChat, Group: group.First, Conversation: where.ID, Created: time.Now().UTC()})
		return err
	})
	return a, c, s
}

// Swap has the group ask for its change, and a person approve it; it returns once nothing moves without time.
func (a *Assistants) Swap(c *control.Controller) id.Change {
	a.T.Helper()
	chg := a.Offer(c)
	a.Yes(c, chg)
	return chg
}

// Offer has the group ask for its change, and its dev agent propose it, which waits for a yes then; meanwhile is done while that agent works.
func (a *Assistants) Offer(c *control.Controller, meanwhile ...func()) id.Change {
	a.T.Helper()
	chg := a.Propose(c, meanwhile...)
	a.Is(c, chg, change.AwaitingApproval)
	return chg
}

// Propose is Offer, whatever becomes of what is proposed.
func (a *Assistants) Propose(c *control.Controller, meanwhile ...func()) id.Change {
	a.T.Helper()
	row := a.Wished(c, id.NewChange(), "Greet people")
	time.Sleep(time.Minute)
	for _, do := range meanwhile {
		do()
	}
	tree := string(a.Show(c, row.ID).Checkpoints[0].Tree)
	swap := tool.Swap{PerFileSummaries: map[string]string{"template/runner/prompts/system.md": "greets"}, OverallSummary: "Greet people", CommitSHA: "0123456"}
	if _, err := a.Call(gittest.Context(a.T), tool.RequestSwap, swap, tree); err != nil {
		a.T.Fatal(err)
	}
	time.Sleep(time.Minute)
	return row.ID
}

// Admin makes somebody an admin of a group.
func (a *Assistants) Admin(name, of string) audit.Actor {
	a.T.Helper()
	i := person.Identity{Platform: "slack", Account: "U-" + name}
	by := audit.Actor{Kind: "person", Name: name, UID: -1, Person: id.Person("psn-0000" + name + "0"), Identity: i.String()}
	a.Tx(func(ctx context.Context, tx store.Tx) error {
		return errors.Join(
			tx.AddPerson(ctx, person.Person{ID: by.Person, Name: name}), tx.Link(ctx, i, by.Person, name),
			tx.Grant(ctx, by.Person, right.Held{Role: right.GroupAdmin, Group: of}),
		)
	})
	return by
}

// YesBy is somebody's yes to what a change waits with.
func (a *Assistants) YesBy(c *control.Controller, chg id.Change, by audit.Actor) {
	a.T.Helper()
	yes(a.Home, c, chg, by)
}

// Write has an ordinary change write a file, approved beforehand.
func (a *Assistants) Write(c *control.Controller, path string) id.Change {
	a.T.Helper()
	r, err := c.TakeRequest(gittest.Context(a.T), request.Request{By: a.By(), Text: "Write by hand: " + path, Project: git.Project{Top: a.Repo},
		Agent: "echo", Approve: request.Yes}, nil)
	if err != nil {
		a.T.Fatal(err)
	}
	time.Sleep(10 * time.Second)
	return r.Change.ID
}

// Said is what was said in the conversation since a person was asked to approve: the lane, what card it is, and the text.
func (a *Assistants) Said() (all []string) {
	a.T.Helper()
	synctest.Wait()
	a.Tx(func(ctx context.Context, tx store.Tx) error {
		outs, err := tx.Outs(ctx, SwapChat, 0, 0, 1000)
		all = nil
		asked := slices.IndexFunc(outs, func(o message.Out) bool { return o.Card == message.CardApproval })
		for _, o := range outs[asked+1:] {
			if o.Card != "" {
				o.Lane += message.Lane(" " + o.Card)
			}
			all = append(all, string(o.Lane)+": "+o.Text)
		}
		return err
	})
	return all
}
