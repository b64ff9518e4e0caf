package dispatch

import (
	"cmp"
	"context"
	"strings"
	"time"
	"unicode/utf8"

	"sallyport/internal/base/audit"
	"sallyport/internal/base/id"
	"sallyport/internal/base/problem"
	"sallyport/internal/chat/conversation"
	"sallyport/internal/chat/message"
	"sallyport/internal/chat/prompt"
	"sallyport/internal/drive/ledger"
	"sallyport/internal/store"
	"sallyport/internal/who/group"
	"sallyport/internal/who/person"
)

// Said is what a person says.
type Said struct {
	Group   group.Folder
	Text    string
	Nonce   string // of this message: saying it again with the same one is saying it once; "" = each is another
	Account string // at a terminal: as the kernel says who they are
	Name    string // shown, never compared
	By      audit.Actor

	// By a channel.
	ID        string                          // of the platform; "" = it has none
	Before    func(first, second string) bool // as channel.Can has it
	Came      time.Time                       // it had been said by then; zero = when it was received
	Brief     bool                            // what decides nothing is not even told so: they have said too much
	Card      id.Out                          // whose button was pressed, which is Text; "" = none was
	Asked     id.Question                     // whose card had the button, where it names that and no card
	Context   bool                            // it wakes nobody
	Answers   bool                            // it quotes something or answers to it, whatever of that the platform says
	ReplyTo   string
	Quote     prompt.Quote
	Forwarded bool
	Edited    bool
	Bot       bool
}

// identity is who said it, as the platform knows them.
func (s Said) identity() string {
	return cmp.Or(s.By.Identity, person.Identity{Platform: person.Terminal, Account: s.Account}.String())
}

// via is the platform.
func (s Said) via() string {
	platform, _, _ := strings.Cut(s.identity(), ":")
	return platform
}

// Say accepts a message: it is a committed row when this returns (CH-901), and what it decides is done. Errors: problem.Usage for what is no message;
// problem.NotFound if there is no such group.
func (d *Dispatcher) Say(ctx context.Context, s Said) (message.In, error) {
	switch {
	case !utf8.ValidString(s.Text) || strings.ContainsRune(s.Text, 0):
		return message.In{}, problem.Errorf(problem.Usage, "sallyport chat --help", "the message is no text: it is not UTF-8, or holds a zero byte")
	case strings.TrimSpace(s.Text) == "":
		return message.In{}, problem.Errorf(problem.Usage, "sallyport chat --help", "the message is empty")
	case len(s.Text) > message.TextBytesMax:
		return message.In{}, problem.Errorf(problem.Usage, "sallyport chat --help", "the message has %d bytes; %d is the limit",
			len(s.Text), message.TextBytesMax)
	case len(s.Nonce) > 64:
		return message.In{}, problem.Errorf(problem.Usage, "sallyport chat --help", "the message's own name has %d bytes; 64 is the limit", len(s.Nonce))
	}
	if err := exists(ctx, d, s.Group); err != nil {
		return message.In{}, err
	}

	var in message.In
	decides := false // and not said again: then another does what it decides, or has
	err := d.DB.InTx(ctx, func(tx store.Tx) error {
		decides = false
		chat, err := ledger.TerminalChat(ctx, tx, s.Group, s.Account)
		if err != nil {
			return err
		}
		intake, fresh, err := tx.AddIntake(ctx, message.Intake{Conversation: chat.Conversation, PlatformID: s.Nonce,
			Received: ledger.Now(), Outcome: message.Stored})
		if err != nil {
			return err
		}
		if !fresh {
			found := false
			if in, found, err = tx.InOf(ctx, chat.ID, intake.Seq); err == nil && !found {
				err = problem.Errorf(problem.Conflict, "sallyport message list", "a message of this name was said to another group")
			}
			return err
		}
		decides = true
		in, err = decider{d}.hear(ctx, tx, chat, intake, s)
		return err
	})
	if err != nil {
		return message.In{}, err
	}
	if decides && in.Open() {
		return decider{d}.carryOut(context.WithoutCancel(ctx), in, s.Text)
	}
	return in, nil
}

// Open returns the chat of a person at a terminal with a group. Errors: problem.NotFound if there is no such group.
func (d *Dispatcher) Open(ctx context.Context, of group.Folder, account string) (chat conversation.Chat, err error) {
	if err := exists(ctx, d, of); err != nil {
		return chat, err
	}
	err = d.DB.InTx(ctx, func(tx store.Tx) error {
		chat, err = ledger.TerminalChat(ctx, tx, of, account)
		return err
	})
	return chat, err
}

// exists refuses a group that there is not. The host's own chat is always there.
func exists(ctx context.Context, d *Dispatcher, of group.Folder) error {
	if of == group.Host {
		return nil
	}
	_, err := d.tree(ctx, of)
	return err
}
