package drivetest

import (
	"context"
	"path/filepath"
	"sync"

	"sallyport/internal/base/audit"
	"sallyport/internal/base/disk/disktest"
	"sallyport/internal/base/git/gittest"
	"sallyport/internal/base/id"
	"sallyport/internal/chat/conversation"
	"sallyport/internal/drive/control"
	"sallyport/internal/drive/ledger"
	"sallyport/internal/drive/live"
	"sallyport/internal/drive/standing"
	"sallyport/internal/path/change"
	"sallyport/internal/port/agent"
	"sallyport/internal/port/sandbox"
	"sallyport/internal/port/tool"
	"sallyport/internal/store"
	"sallyport/internal/who/group"
	"sallyport/internal/who/question"
)

// Assistants is a home with the group echo, whose played agent may have what it runs on changed.
type Assistants struct {
	*Home

	mu     sync.Mutex
	has    map[tool.Name]live.Handler // of the session that began last
	intake func() string
	keys   map[string]bool // of what was heard
	heard  []string        // by the group's agent, from its dev agents

	Wisher id.Message // whose sender wishes what the group asks for; "" = nobody does
	Spoke  []string   // the accounts that its agent answers when it asks
}

// Assist makes the repository that of a home with one group.
func (h *Home) Assist(turns ...Deed) (*Assistants, *Troupe) {
	h.T.Helper()
	files, err := group.NewHome([]group.Beginning{{Folder: group.First}})
	if err != nil {
		h.T.Fatal(err)
	}
	for _, f := range files {
		at := filepath.Join(h.Repo, f.Name)
		disktest.Put(h.T, at, f.Text, 0o644)
	}
	h.Git("add", "-A")
	h.Git("-c", "user.name=Ann", "-c", "user.email=ann@example.org", "commit", "-qm", "home")
	h.Parts.Home = h.Repo
	troupe := h.Converses(turns...)
	h.Parts.Agents = map[string]agent.Driver{"echo": Turning{}}
	a := &Assistants{Home: h, keys: map[string]bool{}}
	h.Parts.Desk = live.Desk{Log: h.Parts.Log, Open: func(_ string, _ sandbox.Owner, has map[tool.Name]live.Handler,
		intake func() string) (func(context.Context) error, error) {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.has, a.intake = has, intake
		return func(ctx context.Context) error { <-ctx.Done(); return nil }, nil
	}}
	return a, troupe
}

// Begin starts a daemon whose dev agents speak with these assistants.
func (a *Assistants) Begin() (c *control.Controller, end func()) {
	a.T.Helper()
	c = control.New(a.Parts)
	c.Originator = a
	return c, a.Runs(c)
}

// Hear keeps what a dev agent says, once for each key.
func (a *Assistants) Hear(_ context.Context, _ change.Row, words, key string) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.keys[key] {
		a.keys[key] = true
		a.heard = append(a.heard, words)
	}
	return nil
}

// Yield does nothing: nobody speaks with a dev agent that has proposed something.
func (a *Assistants) Yield(context.Context, change.Row, string) error { return nil }

// Heard is what dev agents said, in order.
func (a *Assistants) Heard() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return append([]string(nil), a.heard...)
}

// Call makes a call of the session that began last.
func (a *Assistants) Call(ctx context.Context, verb tool.Name, args any, tree string) (tool.Result, error) {
	a.mu.Lock()
	do, intake := a.has[verb], a.intake
	a.mu.Unlock()
	return do(ctx, tool.Call{Verb: verb, Intake: intake(), Args: args, Tree: tree})
}

// Has reports whether the session that began last has a tool.
func (a *Assistants) Has(verb tool.Name) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.has[verb] != nil
}

// Wish has the group ask for a change.
func (a *Assistants) Wish(c *control.Controller, of id.Change, words string) (change.Row, error) {
	a.T.Helper()
	return c.RequestSwap(gittest.Context(a.T), standing.Wish{
		Change: of, Group: group.First, Chat: "cht-abcdefgh", Message: a.Wisher, Heard: a.Spoke, Text: words, Dev: "dev-greets",
		By: audit.Actor{Kind: "agent", Name: "echo-abcde", UID: -1},
	})
}

// Wished is the change that the group has asked for.
func (a *Assistants) Wished(c *control.Controller, of id.Change, words string) change.Row {
	a.T.Helper()
	row, err := a.Wish(c, of, words)
	if err != nil {
		a.T.Fatal(err)
	}
	return row
}

// Converse makes the conversation in which the group asks for changes.
func (a *Assistants) Converse(chat id.Chat) {
	a.T.Helper()
	now := ledger.Now()
	a.Tx(func(ctx context.Context, tx store.Tx) error {
		where, err := tx.PutConversation(ctx, conversation.Conversation{
			ID: id.NewConversation(), Platform: conversation.Terminal, Address: "1000/echo", Kind: conversation.Direct, Name: "echo", Created: now,
		})
		if err == nil {
			_, err = tx.PutChat(ctx, conversation.Chat{ID: chat, Group: group.First, Conversation: where.ID, Created: now})
		}
		return err
	})
}

// Questions are those about a change that wait.
func (a *Assistants) Questions(of id.Subject) (open []question.Question) {
	a.T.Helper()
	a.Tx(func(ctx context.Context, tx store.Tx) (err error) {
		open, err = tx.OpenQuestions(ctx, of)
		return err
	})
	return open
}

// Says has the owner answer the one question about a change that waits.
func (a *Assistants) Says(of id.Subject, option string) {
	a.T.Helper()
	a.Tx(func(ctx context.Context, tx store.Tx) error {
		open, err := tx.OpenQuestions(ctx, of)
		if err == nil {
			_, err = question.Say(ctx, tx, question.Saying{ID: open[0].ID, Need: a.Owner.Need(), By: a.By(), Option: option,
				Via: conversation.Terminal, At: ledger.Now()})
		}
		return err
	})
}
