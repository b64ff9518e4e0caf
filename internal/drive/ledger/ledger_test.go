package ledger_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sallyport/internal/base/audit"
	"sallyport/internal/base/disk"
	"sallyport/internal/base/git"
	"sallyport/internal/base/id"
	"sallyport/internal/chat/conversation"
	"sallyport/internal/chat/message"
	"sallyport/internal/drive/ledger"
	"sallyport/internal/path/change"
	"sallyport/internal/path/request"
	"sallyport/internal/rule/metric"
	"sallyport/internal/rule/secret"
	"sallyport/internal/store"
	"sallyport/internal/store/sqlite"
	"sallyport/internal/store/sqlite/sqlitetest"
	"sallyport/internal/who/group"
	"sallyport/internal/who/person"
)

// planted looks like a key of GitHub's.
const planted = "ghp_" + "9fK2mQx7LbR4vTz1WcN8sYd3HjP6gUe5AoXi"

var alice = audit.Actor{Kind: "person", Name: "alice", UID: 1000}

// book is a ledger on a database of its own.
type book struct {
	*ledger.Ledger
	t     *testing.T
	said  bytes.Buffer // the daemon's log
	deaf  error        // of who is told
	told  chan ledger.Note
	ended []id.Change
	made  int
}

func (b *book) Tell(_ context.Context, n ledger.Note) error { b.told <- n; return b.deaf }

func open(t *testing.T) *book {
	t.Helper()
	b := &book{t: t, told: make(chan ledger.Note, 100)}
	path := filepath.Join(t.TempDir(), "db")
	sqlitetest.Make(t, path)
	b.Ledger = again(t, b, path)
	return b
}

// again is a ledger of another life of the daemon on the same database.
func again(t *testing.T, b *book, path string) *ledger.Ledger {
	t.Helper()
	db, err := sqlite.Open(t.Context(), path, disk.Ops{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return on(t, b, db)
}

func on(t *testing.T, b *book, db store.DB) *ledger.Ledger {
	t.Helper()
	scanner := secret.Default()
	return ledger.New(ledger.Parts{
		DB: db, Secrets: scanner, Meter: metric.New(metric.Options{}), Log: slog.New(slog.NewTextHandler(&b.said, nil)), Tell: b,
		Ended: func(row change.Row) { b.ended = append(b.ended, row.ID) },
	})
}

func (b *book) do(f func(tx store.Tx) error) {
	b.t.Helper()
	if err := b.DB.InTx(b.t.Context(), f); err != nil {
		b.t.Fatal(err)
	}
}

// add stores a change that is due.
func (b *book) add(state change.State, edit ...func(*change.Row)) change.Row {
	b.t.Helper()
	b.made++
	now := ledger.Now()
	row := change.Row{
		ID: id.Change(fmt.Sprintf("chg-%08d", b.made)), State: state, Created: now, Moved: now, Due: now.Add(-time.Second),
		Request: request.Request{Kind: request.Edit, By: alice, At: now, Text: "mend it", Project: git.Project{Top: "/src/a", GitDir: "/src/a/.git", CommonDir: "/src/a/.git"}, Branch: "main"},
	}
	for _, e := range edit {
		e(&row)
	}
	b.do(func(tx store.Tx) error { return tx.AddChange(b.t.Context(), row) })
	return row
}

func (b *book) row(of id.Change) change.Row {
	b.t.Helper()
	row, err := b.Row(b.t.Context(), of)
	if err != nil {
		b.t.Fatal(err)
	}
	return row
}

// entries are the audit log, a line each.
func (b *book) entries() (lines []string) {
	b.t.Helper()
	all, err := b.Audit(b.t.Context(), "", 0, 100)
	if err != nil {
		b.t.Fatal(err)
	}
	for _, e := range all {
		lines = append(lines, strings.Join([]string{e.Actor.Name, e.Change, e.Subject, e.Verb, e.Reason, e.Digests["tree"]}, "|"))
	}
	return lines
}

// talks makes a chat of a group in a conversation of its own.
func (b *book) talks(platform, address string, of group.Folder) (chat conversation.Chat) {
	b.t.Helper()
	b.do(func(tx store.Tx) error {
		where, err := tx.PutConversation(b.t.Context(), conversation.Conversation{ID: id.NewConversation(), Platform: platform, Address: address, Kind: conversation.Direct, Name: string(of), Created: ledger.Now()})
		if err != nil {
			return err
		}
		chat, err = tx.PutChat(b.t.Context(), conversation.Chat{ID: id.NewChat(), Group: of, Conversation: where.ID, Created: ledger.Now()})
		return err
	})
	return chat
}

// knows makes somebody of the home who is alone with the assistant on a platform, and returns them, and the host's chat with them there.
func (b *book) knows(name, platform string) (who audit.Actor, alone conversation.Chat) {
	b.t.Helper()
	alone = b.talks(platform, name, group.Host)
	i := person.Identity{Platform: platform, Account: "U-" + name}
	who = audit.Actor{Kind: "person", Name: name, UID: -1, Person: id.Person("psn-" + name), Identity: i.String()}
	b.do(func(tx store.Tx) error {
		return errors.Join(tx.AddPerson(b.t.Context(), person.Person{ID: who.Person, Name: name}), tx.Link(b.t.Context(), i, who.Person, name), tx.NoteDirect(b.t.Context(), i, alone.Conversation))
	})
	return who, alone
}

// outs are what was said in a chat.
func (b *book) outs(in id.Chat) (all []message.Out) {
	b.t.Helper()
	b.do(func(tx store.Tx) (err error) { all, err = tx.Outs(b.t.Context(), in, 0, 0, 100); return err })
	return all
}
