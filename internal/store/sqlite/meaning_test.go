package sqlite_test

import (
	"fmt"
	"io/fs"
	"path/filepath"
	"testing"
	"testing/fstest"

	"sallyport/internal/base/disk"
	"sallyport/internal/base/id"
	"sallyport/internal/path/session"
	"sallyport/internal/store"
	"sallyport/internal/store/sqlite"
)

// schemaUntil is a program that knows the schemas up to one.
func schemaUntil(t *testing.T, last int) fs.FS {
	t.Helper()
	all, err := fs.Glob(sqlite.Migrations(), "*.sql")
	if err != nil {
		t.Fatal(err)
	}
	some := fstest.MapFS{}
	for _, name := range all[:last] {
		text, err := fs.ReadFile(sqlite.Migrations(), name)
		if err != nil {
			t.Fatal(err)
		}
		some[name] = &fstest.MapFile{Data: text}
	}
	return some
}

// TestWhatOldRowsSaidInSentencesTheyStillMean holds migration 9: until then the host read a meaning out of texts.
func TestWhatOldRowsSaidInSentencesTheyStillMean(t *testing.T) {
	path := filepath.Join(t.TempDir(), "sallyport.db")
	db, err := sqlite.OpenWith(t.Context(), path, disk.Ops{}, schemaUntil(t, 8))
	if err != nil {
		t.Fatal(err)
	}
	closed(t, db)
	file := raw(t, path)
	exec := func(query string, args ...any) {
		t.Helper()
		if _, err := file.Exec(query, args...); err != nil {
			t.Fatal(err)
		}
	}

	changes := []struct{ state, problem, want string }{
		{"blocked", "unavailable", "credential_missing"},
		{"blocked", "agent_failed", "budget_used_up"},
		{"blocked", "refused", "interactive_mode_failure"},
		{"failed", "unavailable", ""},
		{"paused", "", ""},
	}
	for n, c := range changes {
		exec(`INSERT INTO change (id, state, top, request, base, uid, attempts, problem, reason, next, reverted_by, cancel, chosen, start_from, identity,
			resumes, rollbacks, created_at, moved_at, due_at, holder, fence, until_at)
			VALUES (?, ?, '/repo', '{}', 'b', 0, 0, ?, '', '', '', 0, '', '', '', 0, 0, 1, 2, NULL, '', 1, NULL)`, changeNumber(n), c.state, c.problem)
	}
	sessions := []struct {
		doc  string
		want session.Interruption
	}{
		{`{"reason":"interrupted: the daemon ended while the agent worked"}`, session.HostStopped},
		{`{"reason":"its files could not be restored while it worked"}`, session.NotRestored},
		{`{"reason":"the session did not run to its end"}`, session.NotRun},
		{`{"reason":"resumed"}`, session.Resumed},
		{`{"reason":"redone"}`, session.Redone},
		{`{"reason":"redone","exit":{"code":1}}`, ""}, // the agent says so
		{`{"exit":{"code":0}}`, ""},
		{`{}`, ""}, // it runs
	}
	for n, s := range sessions {
		exec(`INSERT INTO session VALUES (?, ?, ?, 5, ?)`, fmt.Sprintf("sh-%05d", n), changeNumber(0), n+1, s.doc)
	}
	trials := []struct {
		reason, kind string
		want         bool
	}{
		{"deadman timeout", "host", true},
		{"deadman timeout", "person", false},
		{"it does not answer", "host", false},
	}
	for n, r := range trials {
		landing := fmt.Sprintf("lnd-%08d", n)
		exec(`INSERT INTO landing (id, change, common_dir, state, ended_at, reason, doc) VALUES (?, ?, '/repo/.git', 'landed', 8, '', '{}')`, landing, changeNumber(n))
		exec(`INSERT INTO trial (change, landing, handshake_state, deadman_started_at, deadman_expires_at, actor, at, reason, doc)
			VALUES (?, ?, 'rolled_back', 1, 2, ?, 3, ?, '{}')`, changeNumber(n), landing, fmt.Sprintf(`{"kind":%q}`, r.kind), r.reason)
	}
	closed(t, file)

	db = open(t, path)
	defer closed(t, db)
	if err := db.Read(t.Context(), func(tx store.Tx) error {
		for n, want := range changes {
			if c, err := tx.Change(t.Context(), changeNumber(n)); err != nil || c.Blocked != want.want {
				t.Errorf("%+v is blocked by %q, %v", want, c.Blocked, err)
			}
		}
		all, err := tx.Sessions(t.Context(), changeNumber(0).Subject())
		for n, want := range sessions {
			if all[n].Interrupted != want.want {
				t.Errorf("%s is interrupted by %q", want.doc, all[n].Interrupted)
			}
		}
		for n, want := range trials {
			if r, _, err := tx.Trial(t.Context(), changeNumber(n)); err != nil || r.TimedOut != want.want {
				t.Errorf("%+v timed out: %v, %v", want, r.TimedOut, err)
			}
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
}

func changeNumber(n int) id.Change { return id.Change(fmt.Sprintf("chg-%08d", n)) }
