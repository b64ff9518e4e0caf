package sqlitetest

import (
	"database/sql"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sallyport/internal/base/disk/disktest"
)

// TestAWayBackThatTakesTooMuchOrTooLittleIsNoticed spoils a database that went back in each way, and one in none.
func TestAWayBackThatTakesTooMuchOrTooLittleIsNoticed(t *testing.T) {
	before := []string{
		`INSERT INTO person (id, name) VALUES ('psn-0000ann0', 'ann')`,
		`INSERT INTO conversation (id, platform, address, kind, name, created_at) VALUES ('cnv-1', 'terminal', '1000/echo', 'direct', 'echo', 1)`,
		`INSERT INTO chat (id, folder, conversation, thread, identity, agent, tree, turn, fence, created_at) VALUES ('cht-1', 'echo', 'cnv-1', '', '', '', '', 4, 5, 1)`,
		`INSERT INTO message_out (id, chat, lane, turn, number, call, question, text, at) VALUES ('out-1', 'cht-1', 'talk', 4, 1, '', '', 'before', 1)`,
		`INSERT INTO change (id, state, top, request, base, uid, attempts, problem, reason, next, reverted_by, cancel, chosen, start_from, identity, resumes, rollbacks, created_at, moved_at, holder, fence)
			VALUES ('chg-tried', 'in_trial', '/h', '{"kind":"edit"}', 'b', 1, 0, '', '', '', '', 0, '', '', '', 0, 0, 1, 1, '', 0)`,
		`INSERT OR REPLACE INTO counter (name, next) VALUES ('uid', 7)`,
	}
	in := []string{
		`INSERT INTO intake (seq, conversation, platform_id, received_at, outcome, reason) VALUES (1, 'cnv-1', 'p1', 1, 'stored', '')`,
		`UPDATE chat SET turn = 5`, `UPDATE counter SET next = 8 WHERE name = 'uid'`,
	}
	made := t.TempDir()
	Make(t, filepath.Join(made, "snapshot"))
	runs(t, filepath.Join(made, "snapshot"), before...)
	image := map[string][]byte{}
	for _, name := range []string{"snapshot", "trial"} {
		text, err := os.ReadFile(filepath.Join(made, "snapshot"))
		if err != nil {
			t.Fatal(err)
		}
		image[name] = text
		if name == "snapshot" {
			runs(t, filepath.Join(made, "snapshot"), in...)
		}
	}
	image["after"] = image["trial"]
	for spoils, want := range map[string]string{
		``: "",
		`INSERT INTO wiring (conversation, folder, created_at) VALUES ('cnv-1', 'ada', 9)`: "wiring has what the trial wrote: 1 rows",
		`DELETE FROM person`:                    "person has lost or changed: 1 rows",
		`UPDATE person SET name = 'bob'`:        "person has lost or changed: 1 rows",
		`UPDATE message_out SET text = 'after'`: "message_out has lost or changed: 1 rows",
		`DELETE FROM message_out`:               "message_out has lost or changed: 1 rows",
		`DELETE FROM intake`:                    "intake lacks 1 rows of the trial's, not 0",
		`INSERT INTO intake (conversation, received_at, outcome, reason) VALUES ('cnv-1', 9, 'stored', '')`: "intake has what nobody wrote: 1 rows",
		`UPDATE change SET reason = 'x'`:                 "change has lost or changed: 1 rows",
		`UPDATE chat SET turn = 4`:                       "chat.turn went back",
		`UPDATE counter SET next = 7 WHERE name = 'uid'`: "counter.next went back",
		`DELETE FROM counter WHERE name = 'uid'`:         "counter has lost",
		`CREATE TABLE more (x INTEGER)`:                  "it has, of a schema",
		`DROP INDEX intake_age`:                          "it lacks, of a schema",
		`PRAGMA foreign_keys = 0; INSERT INTO message_out (id, chat, lane, turn, number, call, question, text, at) VALUES ('out-2', 'cht-2', 'talk', 4, 1, '', '', 'x', 1)`: "what is referred to is missing",
	} {
		dir := t.TempDir()
		b := Back{After: filepath.Join(dir, "after"), Snapshot: filepath.Join(dir, "snapshot"), Trial: filepath.Join(dir, "trial")}
		for name, text := range image {
			disktest.Put(t, filepath.Join(dir, name), text, 0o600)
		}
		runs(t, b.After, spoils)
		faults := b.faults(t)
		if said := strings.Join(faults, "\n"); (len(faults) > 0) != (want != "") || !strings.Contains(said, want) {
			t.Errorf("%s: %q, want %q", spoils, said, want)
		}
		if b.Change = "chg-tried"; spoils == "" {
			if faults := b.faults(t); len(faults) != 1 || !strings.Contains(faults[0], "chg-tried and its trial are at") {
				t.Errorf("a change that is not rolled back: %q", faults)
			}
		}
	}
}

// runs executes statements on a file as any program could.
func runs(t *testing.T, path string, statements ...string) {
	t.Helper()
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	db.SetMaxOpenConns(1)
	for _, text := range statements {
		if _, err := db.Exec(text); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
	}
	if err := db.Close(); err != nil { // folds its log back into the file
		t.Fatal(err)
	}
}
