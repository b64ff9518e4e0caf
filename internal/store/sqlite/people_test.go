package sqlite_test

import (
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"sallyport/internal/base/audit"
	"sallyport/internal/base/disk"
	"sallyport/internal/base/id"
	"sallyport/internal/path/approval"
	"sallyport/internal/path/proposal"
	"sallyport/internal/path/request"
	"sallyport/internal/rule/right"
	"sallyport/internal/store"
	"sallyport/internal/store/sqlite"
	"sallyport/internal/who/person"
	"sallyport/internal/who/question"
)

// schemaBefore is the last one without persons.
const schemaBefore = 9

// lived returns a closed database of the schema before persons, as a program of then left it.
func lived(t *testing.T) (path string, schema fs.FS) {
	t.Helper()
	schema = schemaUntil(t, schemaBefore)
	path = filepath.Join(t.TempDir(), "sallyport.db")
	db, err := sqlite.OpenWith(t.Context(), path, disk.Ops{}, schema)
	if err != nil {
		t.Fatal(err)
	}
	closed(t, db)
	file := raw(t, path)
	defer closed(t, file)
	for _, row := range []string{
		`INSERT INTO owner VALUES (1, 1000, 'alice')`,
		`INSERT INTO audit VALUES (1, 1795000000123, 'person', 'alice', 1000, 'chg-00000001', 'apr-00000001', 'approved', '<as> read & ' || char(0x2028) || 'said',
			'{"base":"b","tree":"t"}', '', '053b63900f72330590c74121ee73484b548821fa9aae895ad440fa3f9c3567be')`,
		`INSERT INTO audit VALUES (2, 1795000000000, 'host', 'sallyport', -1, '', '', 'noted', '', 'null',
			'053b63900f72330590c74121ee73484b548821fa9aae895ad440fa3f9c3567be', '0a59b8eadd222f509d5f64efcbedd065e9a93bf0ed5662f1c3d7d7b0c3656164')`,
		`INSERT INTO audit VALUES (3, 1795000000450, 'agent', 'sh-abc12', -1, 'chg-00000001', 'sh-abc12', 'ended', '', '{}',
			'0a59b8eadd222f509d5f64efcbedd065e9a93bf0ed5662f1c3d7d7b0c3656164', '149b158c3f35e695fc38d7e5ff60ef3c5f7d6e0b5aaa11801b9968d886809b8c')`,
	} {
		run(t, file, row)
	}
	for n, by := range []string{
		`{"kind":"person","name":"alice","uid":1000}`, `{"kind":"person","name":"root","uid":0}`, `{"kind":"agent","name":"alice","uid":1000}`,
	} {
		insertChange(t, file, n, fmt.Sprintf(`{"kind":"edit","by":%s,"at":"2026-11-20T08:00:00Z","text":"mend \u003cit\u003e","approve":"yes"}`, by))
	}
	for number := range 5 {
		run(t, file, `INSERT INTO proposal VALUES (?, ?, 'd', '{"card":{"title":"mend <it>"}}')`, changeNumber(0), number+1)
	}
	alice, bob := `{"kind":"person","name":"alice","uid":1000}`, `{"kind":"person","name":"bob \u003cb\u003e","uid":1001}`
	for n, a := range []struct{ decision, actor, at, via, reason, message any }{
		{"void", `{"kind":"host","name":"sallyport","uid":-1}`, 21, "", "apr-2 replaced this card", ""},
		{"refused", bob, 22, "command line", "not like <this>", ""}, // who owned the home before
		{"approved", alice, 23, "pre-approved by flag", "", "say <this>"},
		{"approved", alice, 24, "command line", "", ""},
		{"pending", nil, nil, "", "", ""},
	} {
		run(t, file, `INSERT INTO approval (id, change, kind, proposal, digest, asked_at, decision, actor, at, via, reason, message, unsigned)
			VALUES (?, ?, 'swap', ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`, fmt.Sprintf("apr-%08d", n), changeNumber(0), n+1, fmt.Sprint("d", n), 10+n,
			a.decision, a.actor, a.at, a.via, a.reason, a.message, a.message != "")
	}
	return path, schema
}

func run(t *testing.T, file *sql.DB, query string, args ...any) {
	t.Helper()
	if _, err := file.Exec(query, args...); err != nil {
		t.Fatal(err)
	}
}

func insertChange(t *testing.T, file *sql.DB, n int, request string) {
	t.Helper()
	run(t, file, `INSERT INTO change (id, state, top, request, base, uid, attempts, problem, reason, next, reverted_by, cancel, chosen, start_from, identity,
		resumes, rollbacks, created_at, moved_at, due_at, holder, fence, until_at)
		VALUES (?, 'working', '/repo', ?, 'b', 0, 0, '', '', '', '', 0, '', '', '', 0, 0, 1, 2, NULL, '', 1, NULL)`, changeNumber(n), request)
}

// What a home of the schema before persons had, it has after the upgrade, and the copy from before is as good as it was.
func TestAHomeOfTheSchemaBeforePersonsKeepsAllItHad(t *testing.T) {
	path, schema := lived(t)
	before := content(t, path, nil)
	db := open(t, path)
	if err := db.Read(t.Context(), func(tx store.Tx) error {
		owner, there, err := tx.Owner(t.Context())
		if err != nil || !there || owner.UID != 1000 || owner.Name != "alice" || !strings.HasPrefix(string(owner.ID), "psn-") || len(owner.ID) != 12 {
			t.Errorf("the owner is %+v, %v, %v", owner, there, err)
		}
		alice := audit.Actor{Kind: "person", Name: "alice", UID: 1000, Person: owner.ID, Identity: "terminal:1000"}
		for n, want := range []audit.Actor{alice, {Kind: "person", Name: "root"}, {Kind: "agent", Name: "alice", UID: 1000}} {
			c, err := tx.Change(t.Context(), changeNumber(n))
			if r := c.Request; err != nil || r.By != want || r.Text != "mend <it>" || r.Approve != request.Yes {
				t.Errorf("%+v, %v, want it by %+v", r, err, want)
			}
		}
		bob := audit.Actor{Kind: "person", Name: "bob <b>", UID: 1001, Identity: "terminal:1001"}
		p, known, err := tx.Whose(t.Context(), person.AtTerminal(1001))
		if bob.Person = p.ID; err != nil || !known || owner.MayDecide(bob) == nil {
			t.Errorf("bob is %+v, %v, %v", p, known, err)
		}
		keptApprovals(t, tx, alice, bob)
		return err
	}); err != nil {
		t.Error(err)
	}
	if err := db.InTx(t.Context(), func(tx store.Tx) error { // what was asked before can be answered now
		owner, _, err := tx.Owner(t.Context())
		by := audit.Actor{Kind: "person", Name: "alice", UID: 1000, Person: owner.ID, Identity: "terminal:1000"}
		return errors.Join(err, approval.Refuse(t.Context(), tx, approval.Saying{ID: "apr-00000004", Need: owner.Need(), By: by, Via: approval.ViaCommandLine, At: time.UnixMilli(30)}, "too late"))
	}); err != nil {
		t.Error(err)
	}
	write(t, db, audit.Entry{Actor: audit.Actor{Kind: "person", Name: "alice", UID: 1000, Person: "psn-alice000", Identity: "terminal:1000"}, Verb: "approved"})
	if r := verify(t, db, nil); len(r.Faults) > 0 || r.Entries != 4 {
		t.Errorf("the audit: %+v", r)
	}
	closed(t, db)

	kept := copies(t, path)
	if len(kept) != 1 || !strings.Contains(kept[0], fmt.Sprintf("sallyport-schema%d-", schemaBefore)) {
		t.Fatalf("copies: %v", kept)
	}
	same(t, "the copy", kept[0], before)
	again, err := sqlite.OpenWith(t.Context(), kept[0], disk.Ops{}, schema)
	if err != nil {
		t.Fatal(err)
	}
	closed(t, again)
}

// keptApprovals holds that approvals are what they were, under their own ids.
func keptApprovals(t *testing.T, tx store.Tx, alice, bob audit.Actor) {
	t.Helper()
	all, err := tx.Approvals(t.Context(), false, 0)
	if err != nil || len(all) != 5 {
		t.Fatalf("%d approvals, %v", len(all), err)
	}
	at := func(ms int64) *time.Time { when := time.UnixMilli(ms).UTC(); return &when }
	host := audit.Host
	for n, want := range []approval.Approval{
		{Decision: approval.Void, By: &host, At: at(21), Reason: "apr-2 replaced this card"},
		{Decision: approval.Refused, By: &bob, At: at(22), Via: "command line", Reason: "not like <this>"},
		{Decision: approval.Approved, By: &alice, At: at(23), Via: "pre-approved by flag", Message: "say <this>", Unsigned: true},
		{Decision: approval.Approved, By: &alice, At: at(24), Via: "command line"},
		{Decision: approval.Pending},
	} {
		want.ID, want.Change, want.Kind, want.Proposal, want.Asked = id.Approval(fmt.Sprintf("apr-%08d", n)), changeNumber(0), "swap", n+1, *at(int64(10 + n))
		want.Question, want.Digest = id.Question(fmt.Sprintf("qst-%08d", n)), proposal.Digest(fmt.Sprint("d", n))
		got, err := tx.Approval(t.Context(), want.ID)
		if a, b, c := asJSON(t, got), asJSON(t, want), asJSON(t, all[4-n]); err != nil || a != b || a != c {
			t.Errorf("%s, %s, %v, want\n%s", a, c, err, b)
		}
	}
	open, err := tx.OpenQuestions(t.Context(), "chg-00000000")
	if err != nil || len(open) != 1 || open[0].ID != "qst-00000004" || open[0].Card.Title != "mend <it>" || open[0].Need != 1 || len(open[0].Options) != 2 {
		t.Errorf("open: %+v, %v", open, err)
	}
}

func asJSON(t *testing.T, v any) string {
	t.Helper()
	raw, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// The database itself holds what was asked, and that answers are only ever added.
func TestAQuestionStandsAndAnswersAreOnlyAdded(t *testing.T) {
	path, _ := lived(t)
	closed(t, open(t, path))
	file := raw(t, path)
	defer closed(t, file)
	for _, query := range []string{
		`UPDATE question SET card = '{}' WHERE outcome IS NULL`,
		`UPDATE question SET options = '[]' WHERE outcome IS NULL`,
		`UPDATE question SET outcome = NULL, answer = NULL, ended_at = NULL WHERE outcome = 'approve'`,
		`UPDATE question SET outcome = 'refuse' WHERE outcome = 'approve'`,
		`UPDATE question SET outcome = 'approve', ended_at = 1 WHERE outcome IS NULL`, // which nobody has said
		`UPDATE answer SET option = 'approve'`,
		`DELETE FROM answer`,
		`INSERT INTO answer (question, person, identity, actor, option, text, edit, via, at) SELECT 'qst-00000003', id, 'x:y', '{}', 'refuse', '', '', '', 1 FROM person`,
	} {
		if _, err := file.Exec(query); err == nil {
			t.Errorf("the database lets it be: %s", query)
		}
	}
}

// Of many people who answer at once each is kept or told who was first, and the need ends the question, once.
func TestPeopleWhoAnswerAtOnceAreOneOutcome(t *testing.T) {
	path := filepath.Join(t.TempDir(), "sallyport.db")
	db := open(t, path)
	defer closed(t, db)
	file := raw(t, path)
	insertChange(t, file, 0, `{"kind":"edit"}`)
	const people, need = 16, 3
	var may []id.Person
	for n := range people {
		may = append(may, id.Person(fmt.Sprintf("psn-%08d", n)))
		run(t, file, `INSERT INTO person (id, name) VALUES (?, 'p')`, fmt.Sprintf("psn-%08d", n))
	}
	closed(t, file)
	q := question.New(id.Subject(changeNumber(0)), "which?", []string{"a", "b"}, time.UnixMilli(1))
	q.Need = need
	if err := db.InTx(t.Context(), func(tx store.Tx) error { return question.Put(t.Context(), tx, q) }); err != nil {
		t.Fatal(err)
	}

	kept := make([]bool, people)
	var all sync.WaitGroup
	for n := range people {
		all.Go(func() {
			who := may[n]
			s := question.Saying{ID: q.ID, Need: right.Only(may...), By: audit.Actor{Kind: "person", Name: "p", Person: who}, Option: fmt.Sprint(n%2 + 1), At: time.UnixMilli(int64(n))}
			err := db.InTx(t.Context(), func(tx store.Tx) error { _, err := question.Say(t.Context(), tx, s); return err })
			if kept[n] = err == nil; err != nil && !errors.Is(err, question.ErrEnded) {
				t.Error(err)
			}
		})
	}
	all.Wait()

	if err := db.Read(t.Context(), func(tx store.Tx) error {
		said, err := tx.Answers(t.Context(), q.ID)
		chosen := map[string]int{}
		for _, a := range said {
			chosen[a.Option]++
			var n int
			if _, err := fmt.Sscanf(string(a.By.Person), "psn-%d", &n); err != nil || !kept[n] {
				t.Errorf("%+v is kept, and was told otherwise: %v", a, err)
			}
			kept[n] = false
		}
		if slices.Contains(kept, true) {
			t.Errorf("an answer that was taken is lost: %v", kept)
		}
		q, err2 := tx.Question(t.Context(), q.ID)
		last := said[len(said)-1]
		if string(q.Outcome) != last.Option || chosen[last.Option] != need || len(said) > 2*need-1 || q.Answer.By != last.By {
			t.Errorf("the outcome is %q by %v of %+v", q.Outcome, q.Answer, said)
		}
		return errors.Join(err, err2)
	}); err != nil {
		t.Error(err)
	}
}
