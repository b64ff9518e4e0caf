package daemon

import (
	"context"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"

	"sallyport/internal/base/disk"
	"sallyport/internal/base/git"
	"sallyport/internal/base/problem"
	"sallyport/internal/chat/message"
	"sallyport/internal/drive/ledger"
	wt "sallyport/internal/path/workspace/workspacetest"
	"sallyport/internal/rule/config"
	"sallyport/internal/rule/secret"
	"sallyport/internal/store"
	"sallyport/internal/store/sqlite/sqlitetest"
	"sallyport/internal/who/group"
	"sallyport/internal/who/person"
)

// noted is what a person was notified of.
type noted chan ledger.Note

func (n noted) Tell(_ context.Context, note ledger.Note) error { n <- note; return nil }

// heralded is a home whose owner is told.
type heralded struct {
	herald
	t     *testing.T
	home  string
	notes noted
}

func newHeralded(t *testing.T) *heralded {
	t.Helper()
	home := t.TempDir()
	db := sqlitetest.Open(t, filepath.Join(home, "db"))
	t.Cleanup(func() { db.Close() })
	clean, err := secret.New(secret.Config{})
	if err != nil {
		t.Fatal(err)
	}
	h := &heralded{t: t, home: home, notes: make(noted, 10)}
	h.ledger = ledger.New(ledger.Parts{DB: db, Secrets: clean, Log: slog.New(slog.NewTextHandler(t.Output(), nil)), Tell: h.notes})
	h.owner = "psn-0000ann0"
	err = db.InTx(t.Context(), func(tx store.Tx) error {
		return tx.SetOwner(t.Context(), person.Owner{ID: h.owner, UID: 1234, Name: "ann"})
	})
	if err != nil {
		t.Fatal(err)
	}
	h.restart()
	return h
}

// restart has the next daemon look.
func (h *heralded) restart() {
	h.t.Helper()
	s, err := config.Open(h.home, disk.Ops{})
	if err != nil {
		h.t.Fatal(err)
	}
	h.settings = s
}

func (h *heralded) says(name, text string) {
	h.t.Helper()
	writeFile(h.t, filepath.Join(h.home, name), []byte(text), 0o600)
}

// news are what there is to tell when the files have been found the same twice.
func (h *heralded) news() []config.News {
	h.settings.News()
	return h.settings.News()
}

// told are the owner's messages from the host itself.
func (h *heralded) told() (texts []string) {
	h.t.Helper()
	err := h.ledger.DB.InTx(h.t.Context(), func(tx store.Tx) error {
		chat, err := ledger.TerminalChat(h.t.Context(), tx, group.Host, "1234")
		if err != nil {
			return err
		}
		all, err := tx.NewestOuts(h.t.Context(), chat.ID, 100)
		for _, o := range all {
			if o.Lane != message.Notice {
				h.t.Errorf("in the lane %s: %s", o.Lane, o.Text)
			}
			texts = append(texts, o.Text)
		}
		return err
	})
	if err != nil {
		h.t.Fatal(err)
	}
	return texts
}

func TestTheOwnerIsToldOfAFileThatDoesNotLoad(t *testing.T) {
	h := newHeralded(t)
	h.says("policy.yaml", "paths_max: 7\nsudo: yes\n")
	for range 3 { // the second and the third daemon do not know that it was told: the first died before it was written down
		n := h.news()
		if len(n) != 1 {
			t.Fatalf("%+v", n)
		}
		fresh := h.settings
		h.settings = config.Look(t.TempDir()) // which keeps nothing
		if err := h.tell(t.Context(), n[0]); err != nil {
			t.Fatal(err)
		}
		h.settings = fresh
		h.restart()
	}
	told := h.told()
	for _, want := range []string{"policy.yaml does not load since ", "nothing is approved and nothing lands", h.home + "/policy.yaml:2:1: sudo: ", "To correct it: ${EDITOR:-vi} " + h.home + "/policy.yaml", h.home + "/.state/config/policy.yaml"} {
		if len(told) != 1 || !strings.Contains(told[0], want) {
			t.Errorf("they are told %q, without %q", told, want)
		}
	}
	if note := <-h.notes; note.Kind != ledger.NoteSettings || note.Change != "" || note.Next != "${EDITOR:-vi} "+h.home+"/policy.yaml" || !strings.Contains(note.Text, "sudo") {
		t.Errorf("notified of %+v", note)
	}
	for _, n := range h.news() {
		if err := h.tell(t.Context(), n); err != nil {
			t.Fatal(err)
		}
	}
	h.restart()
	if n := h.news(); len(n) > 0 {
		t.Errorf("told, and told again: %+v", n)
	}

	h.says("policy.yaml", "paths_max: 8\n")
	h.restart()
	n := h.news()
	if len(n) != 1 || !n[0].Loads {
		t.Fatalf("%+v", n)
	}
	if err := h.tell(t.Context(), n[0]); err != nil {
		t.Fatal(err)
	}
	if told = h.told(); len(told) != 2 || !strings.HasPrefix(told[1], "policy.yaml loads again, and counts.") {
		t.Errorf("they are told %q", told)
	}
	if n := h.news(); len(n) > 0 {
		t.Errorf("%+v", n)
	}
	h.ledger.EndAsides()
}

func TestWhoAsksIsShownWhatDoesNotLoad(t *testing.T) {
	h := newHeralded(t)
	show := unloaded(h.settings)
	if all := show(); len(all) > 0 {
		t.Errorf("all is well: %+v", all)
	}
	h.says("sallyport.yaml", "limits: {memory: 2GiB}\nagents: [\n")
	all := show()
	if len(all) != 1 || all[0].File != "sallyport.yaml" || all[0].Line != 2 || all[0].Since.IsZero() || !strings.Contains(all[0].Problem, "sallyport.yaml:2:") ||
		!strings.Contains(all[0].InForce, h.home+"/.state/config/sallyport.yaml") || all[0].Next != "${EDITOR:-vi} "+h.home+"/sallyport.yaml" {
		t.Errorf("%+v", all)
	}
}

// Rules of the home that do not load are those that loaded last; they are no rules by which anything is decided.
func TestChangesAreJudgedByThePolicyThatLoadedLast(t *testing.T) {
	h := newHeralded(t)
	h.says("policy.yaml", "approvals: {people: 2}\n")
	book := rulebook{settings: h.settings}
	if book.Approvals().People != 2 || book.Decidable() != nil {
		t.Fatalf("%+v, %v", book.Approvals(), book.Decidable())
	}
	h.says("policy.yaml", "approvals: {people: two}\n")
	if book.Approvals().People != 2 || problem.KindOf(book.Decidable()) != problem.Refused {
		t.Errorf("%+v, %v", book.Approvals(), book.Decidable())
	}
}

// What a change of the home would leave in it is read before it lands, as rules of a repository are; in another repository such a file is any file.
func TestAChangeOfTheHomeLeavesFilesThatLoad(t *testing.T) {
	secrets, err := newSecretRules(nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ name, file, text, wrong string }{
		{"a typo in the policy", "policy.yaml", "paths_max: 7\nsudo: yes\n", "policy.yaml:2:1: sudo"},
		{"a typo in the settings", "sallyport.yaml", "limits: [\n", "sallyport.yaml:1:"},
		{"a link", "policy.yaml", "->elsewhere", "is not an ordinary file"},
		{"settings", "sallyport.yaml", "changes: {at_once: 7}\n", ""},
		{"a policy", "policy.yaml", "paths_max: 7\n", ""},
	} {
		project, head := wt.Project(t, map[string]string{c.file: c.text})
		host := git.Dir{Path: filepath.Join(t.TempDir(), "host.git")}
		wt.Git(t, "/", "clone", "-q", "--bare", project.Top, host.Path)
		edits := []git.Edit{{Path: c.file, New: git.Entry{Mode: git.File, OID: git.OID(strings.Repeat("a", 40))}}}
		for home, want := range map[string]string{project.Top: c.wrong, t.TempDir(): ""} {
			book := rulebook{home: home, settings: config.Look(t.TempDir()), secrets: secrets}
			found, err := book.Load(t.Context(), project, host, head, edits)
			if err != nil || (len(found) > 0) != (want != "") || want != "" && (found[0].File != c.file || !strings.Contains(found[0].Message, want)) {
				t.Errorf("%s: %+v, %v, want %q", c.name, found, err, want)
			}
		}
	}
}
