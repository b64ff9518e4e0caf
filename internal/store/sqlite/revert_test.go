package sqlite_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"sallyport/internal/base/disk"
	"sallyport/internal/base/disk/disktest"
	"sallyport/internal/rule/budget"
	"sallyport/internal/store"
	"sallyport/internal/store/sqlite"
	"sallyport/internal/store/sqlite/sqlitetest"
)

// newer is a program that knows one schema more than this one.
func newer(t *testing.T, text string) fstest.MapFS {
	t.Helper()
	all := fstest.MapFS{fmt.Sprintf("%05d_newer.sql", sqlite.Schema()+1): {Data: []byte("-- +goose Up\n" + text)}}
	files, err := fs.Glob(sqlite.Migrations(), "*.sql")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range files {
		text, err := fs.ReadFile(sqlite.Migrations(), name)
		if err != nil {
			t.Fatal(err)
		}
		all[name] = &fstest.MapFile{Data: text}
	}
	return all
}

const more = `CREATE TABLE more (x INTEGER) STRICT;
ALTER TABLE message_in ADD COLUMN mood TEXT NOT NULL DEFAULT 'calm';
ALTER TABLE audit ADD COLUMN weather TEXT NOT NULL DEFAULT '';
DROP TABLE trust;`

// said is what is in the home before the snapshot: a chat with a message that waits, a change that waits for a yes, and one on trial.
var said = []string{
	`INSERT INTO person (id, name) VALUES ('psn-0000ann0', 'ann')`,
	`INSERT INTO conversation (id, platform, address, kind, name, created_at) VALUES ('cnv-1', 'terminal', '1000/echo', 'direct', 'echo', 1)`,
	`INSERT INTO channel (name, platform, settings, credential, cursor, added_at) VALUES ('team', 'slack', '{}', '', '7', 1)`,
	`INSERT INTO chat (id, folder, conversation, thread, identity, agent, tree, turn, fence, created_at) VALUES ('cht-1', 'echo', 'cnv-1', '', 'echo-00001', 'echo', 't', 4, 5, 1)`,
	`INSERT INTO intake (seq, conversation, platform_id, received_at, outcome, reason) VALUES (1, 'cnv-1', 'p1', 1, 'stored', '')`,
	heard("msg-1", 1, "before", "pending"),
	`INSERT INTO message_out (id, chat, lane, turn, number, call, question, text, at) VALUES ('out-1', 'cht-1', 'talk', 4, 1, '', '', 'said before', 1)`,
	changed("chg-waits", "awaiting_approval"), changed("chg-tried", "in_trial"), changed("chg-other", "awaiting_approval"),
	`INSERT INTO proposal VALUES ('chg-waits', 1, 'd', '{}'), ('chg-other', 1, 'd', '{}')`,
	asks("qst-waits", "chg-waits"), asks("qst-other", "chg-other"),
	`INSERT INTO approval (id, question, change, proposal, message, unsigned) VALUES ('apr-waits', 'qst-waits', 'chg-waits', 1, '', 0), ('apr-other', 'qst-other', 'chg-other', 1, '', 0)`,
	`INSERT INTO landing (id, change, common_dir, state, ended_at, reason, doc) VALUES ('lnd-1', 'chg-tried', '/h/.git', 'landed', 1, '', '{}')`,
	`INSERT INTO trial (change, landing, handshake_state, deadman_started_at, deadman_expires_at, reason, doc) VALUES ('chg-tried', 'lnd-1', 'pending_restart', 1, 2, '', '{}')`,
	`INSERT INTO usage (subject, session, model, minute, requests, estimated, unpriced, input, cached, output, cost) VALUES ('chg-waits', 's', 'm', 60000, 1, 0, 0, 5, 0, 5, 5)`,
}

// since is what the newer host writes while it is quiet, and what it should not have written.
var since = []string{
	`INSERT INTO intake (conversation, platform_id, received_at, outcome, reason) VALUES ('cnv-1', 'p2', 9, 'stored', '')`,
	heard("msg-2", 2, "in the trial", "pending"),
	`UPDATE message_in SET status = 'completed', ended_at = 9, turn = 5, first_turn = 5, mood = 'glad' WHERE id = 'msg-1'`,
	`INSERT INTO message_out (id, chat, lane, turn, number, call, question, text, at) VALUES ('out-2', 'cht-1', 'talk', 5, 1, '', '', 'said in the trial', 9)`,
	`INSERT INTO delivery (out, channel, conversation, lane, status, pieces, tries, due_at, platform_id, reason, ended_at) VALUES ('out-2', 'team', 'cnv-1', 'talk', 'sent', 1, 0, 9, 'p9', '', 9)`,
	`INSERT INTO conversation (id, platform, address, kind, name, created_at) VALUES ('cnv-2', 'terminal', '1000/ada', 'direct', 'ada', 9)`,
	`INSERT INTO chat (id, folder, conversation, thread, identity, agent, tree, turn, fence, created_at) VALUES ('cht-2', 'ada', 'cnv-2', '', '', '', '', 0, 0, 9)`,
	strings.ReplaceAll(heard("msg-3", 3, "to another", "pending"), "cht-1", "cht-2"),
	`UPDATE chat SET turn = 5, fence = 9, identity = 'echo-00002' WHERE id = 'cht-1'`,
	`INSERT INTO answer (question, person, identity, actor, option, text, edit, via, at) VALUES ('qst-waits', 'psn-0000ann0', 'terminal:1000', '{}', 'approve', '', '', 'chat', 9), ('qst-other', 'psn-0000ann0', 'terminal:1000', '{}', 'approve', '', '', 'chat', 9)`,
	`UPDATE question SET outcome = 'approve', ended_at = 9, answer = (SELECT seq FROM answer WHERE answer.question = question.id)`,
	`UPDATE change SET state = 'landing', moved_at = 9 WHERE id = 'chg-waits'`,
	`UPDATE change SET state = 'finalized', moved_at = 9 WHERE id = 'chg-other'`, // no quiet host does that
	`UPDATE trial SET handshake_state = 'message1_sent'`,
	`UPDATE counter SET next = next + 3`,
	`INSERT INTO wiring (conversation, folder, created_at) VALUES ('cnv-1', 'ada', 9)`, // nor that
	`INSERT INTO more VALUES (1)`,
}

// lostSince are the rows of since that no quiet host writes: the answer to what went on to its end.
var lostSince = map[string]int{"answer": 1}

func heard(id string, intake int, text, status string) string {
	return fmt.Sprintf(`INSERT INTO message_in (id, chat, intake, kind, identity, sender, text, reply_to, quote_from, quote, question, at, status, tries, due_at, fence, turn, reason, task)
		VALUES ('%s', 'cht-1', %d, 'chat', 'terminal:1000', 'ann', '%s', '', '', '', '', 1, '%s', 0, 1, 0, 0, '', '')`, id, intake, text, status)
}

func changed(id, state string) string {
	return fmt.Sprintf(`INSERT INTO change (id, state, top, request, base, uid, attempts, problem, reason, next, reverted_by, cancel, chosen, start_from, identity, resumes, rollbacks, created_at, moved_at, holder, fence)
		VALUES ('%s', '%s', '/h', '{"kind":"edit"}', 'b', 1, 0, '', '', '', '', 0, '', '', '', 0, 0, 1, 1, '', 0)`, id, state)
}

func asks(id, change string) string {
	return fmt.Sprintf(`INSERT INTO question (id, kind, subject, card, digest, options, words, need, asked_at, reason) VALUES ('%s', 'swap', '%s', '{}', 'd', '[]', 0, 1, 1, '')`, id, change)
}

// runs executes statements on a file as any program could.
func runs(t *testing.T, path string, statements ...string) {
	t.Helper()
	file := raw(t, path)
	defer closed(t, file)
	for _, text := range statements {
		if _, err := file.Exec(text); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
	}
}

// onTrial is a home whose newer program has migrated the database and written since; before is what the snapshot holds.
func onTrial(t *testing.T, wrote ...string) (live, snapshot string) {
	t.Helper()
	live = filepath.Join(t.TempDir(), "sallyport.db")
	snapshot = store.SnapshotPath(filepath.Join(filepath.Dir(live), store.BackupsFolder), "chg-tried")
	db := open(t, live)
	noted(t, db, "before")
	closed(t, db)
	runs(t, live, said...)
	db = open(t, live)
	if err := db.Snapshot(t.Context(), snapshot); err != nil {
		t.Fatal(err)
	}
	closed(t, db)

	db, err := sqlite.OpenWith(t.Context(), live, disk.Ops{}, newer(t, more))
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		noted(t, db, "since")
	}
	if err := db.InTx(t.Context(), func(tx store.Tx) error { // updated in place
		return tx.AddUse(t.Context(), budget.Use{Subject: "chg-waits", Session: "s", Model: "m", Minute: time.UnixMilli(60000), Requests: 1, Tokens: budget.Tokens{Input: 5}})
	}); err != nil {
		t.Fatal(err)
	}
	closed(t, db)
	runs(t, live, wrote...)
	return live, snapshot
}

// reverted brings a database back that has to be able to.
func reverted(t *testing.T, live, snapshot string) sqlite.Reverted {
	t.Helper()
	done, err := sqlite.Revert(t.Context(), live, snapshot, disk.Ops{})
	if err != nil {
		t.Fatal(err)
	}
	return done
}

// TestADatabaseGoesBackToAnOlderSchemaWithAllThatWasSaidSince is SM-128 of a change of the host, and SM-905.
func TestADatabaseGoesBackToAnOlderSchemaWithAllThatWasSaidSince(t *testing.T) {
	live, snapshot := onTrial(t, since...)
	trial := filepath.Join(t.TempDir(), "trial.db")
	put(t, trial, read(t, live))
	was := texts(t, raw(t, live), `SELECT json_array(seq, at, actor_kind, actor_name, actor_uid, change, subject, verb, reason, digests, previous, hash, actor_person, actor_identity, stored) FROM audit ORDER BY seq`)
	done := reverted(t, live, snapshot)
	if len(done.Left) > 0 {
		t.Fatalf("left: %q", done.Left)
	}

	file := raw(t, live)
	for query, want := range map[string]string{
		`SELECT group_concat(id || ' ' || status || ' ' || turn, ', ') FROM message_in`:                                "msg-1 completed 5, msg-2 pending 0, msg-3 pending 0",
		`SELECT group_concat(id || ' ' || text, ', ') FROM message_out`:                                                "out-1 said before, out-2 said in the trial",
		`SELECT group_concat(out || ' ' || status, ', ') FROM delivery`:                                                "out-2 sent",
		`SELECT group_concat(platform_id, ' ') FROM intake`:                                                            "p1 p2",
		`SELECT group_concat(question || ' ' || option, ', ') FROM answer`:                                             "qst-waits approve",
		`SELECT group_concat(id || ' ' || coalesce(outcome, 'waits'), ', ') FROM (SELECT * FROM question ORDER BY id)`: "qst-other waits, qst-waits approve",
		`SELECT group_concat(id || ' ' || state, ', ') FROM (SELECT * FROM change ORDER BY id)`:                        "chg-other awaiting_approval, chg-tried in_trial, chg-waits landing",
		`SELECT group_concat(id || ' ' || turn || ' ' || fence || ' ' || identity, ', ') FROM chat`:                    "cht-1 5 9 echo-00001, cht-2 0 0 ",
		`SELECT group_concat(id, ' ') FROM subject WHERE id GLOB 'cht*'`:                                               "cht-1 cht-2",
		`SELECT handshake_state FROM trial`:                                                                            "pending_restart",
		`SELECT CAST(next AS TEXT) FROM counter`:                                                                       "3",
		`SELECT requests || ' ' || input FROM usage`:                                                                   "2 10",
		`SELECT CAST(count(*) AS TEXT) FROM wiring`:                                                                    "0",
		`SELECT CAST(count(*) AS TEXT) FROM pragma_table_info('message_in') WHERE name = 'mood'`:                       "0",
		`SELECT CAST(count(*) AS TEXT) FROM sqlite_master WHERE name = 'more'`:                                         "0",
		`SELECT CAST(count(*) AS TEXT) FROM sqlite_master WHERE type = 'trigger'`:                                      fmt.Sprint(len(texts(t, raw(t, snapshot), `SELECT name FROM sqlite_master WHERE type = 'trigger'`))),
		`SELECT CAST(count(*) AS TEXT) FROM pragma_foreign_key_check`:                                                  "0",
		`PRAGMA integrity_check`: "ok",
	} {
		if got := texts(t, file, query); len(got) != 1 || got[0] != want {
			t.Errorf("%s: %q, want %q", query, got, want)
		}
	}
	if now := texts(t, file, `SELECT json_array(seq, at, actor_kind, actor_name, actor_uid, change, subject, verb, reason, digests, previous, hash, actor_person, actor_identity, stored) FROM audit ORDER BY seq`); !slices.Equal(now, was) {
		t.Errorf("the audit log is\n%v, was\n%v", now, was)
	}
	closed(t, file)
	sqlitetest.WentBack(t, sqlitetest.Back{After: live, Snapshot: snapshot, Trial: trial, Lost: lostSince})

	// What was written elsewhere is named, and nothing but that.
	if want := map[string]int{"wiring": 1, "question": 1, "answer": 1, "change": 1}; !maps.Equal(done.Elsewhere, want) || !done.Done || done.Unread != "" {
		t.Errorf("%+v, want elsewhere %v", done, want)
	}
	if len(done.Left) != 0 || done.Carried["message_in"] != 3 || done.Carried["audit"] != 2 || done.Carried["change"] != 1 {
		t.Errorf("%+v", done)
	}

	// The old program goes on with it, and a second time does nothing.
	if again := reverted(t, live, snapshot); again.Done {
		t.Errorf("again: %+v", again)
	}
	db := open(t, live)
	noted(t, db, "after")
	if r := verify(t, db, nil); len(r.Faults) > 0 || r.Entries != 4 {
		t.Errorf("%+v", r)
	}
	closed(t, db)
	if again := reverted(t, live, snapshot); again.Done || verbs(t, live) != "before since since after" {
		t.Errorf("what the old program has written since is gone: %+v", again)
	}
	if left, err := filepath.Glob(filepath.Join(filepath.Dir(live), ".new*")); err != nil || len(left) > 0 {
		t.Errorf("left: %v, %v", left, err)
	}
}

// What the trial wrote last lies in the log beside its file. It is carried over, and the log does not bring the newer schema back (SECURITY 21).
func TestWhatATrialThatDiedLeftInItsLogIsCarriedOver(t *testing.T) {
	live, snapshot := onTrial(t)
	image := map[string][]byte{}
	file := raw(t, live)
	if _, err := file.Exec(`PRAGMA wal_autocheckpoint = 0`); err != nil {
		t.Fatal(err)
	}
	for _, text := range since {
		if _, err := file.Exec(text); err != nil {
			t.Fatal(err)
		}
	}
	for _, beside := range []string{"", "-wal"} { // as the dead leave it
		image[beside] = read(t, live+beside)
	}
	closed(t, file)
	if len(image["-wal"]) == 0 {
		t.Fatal("there is no log")
	}
	for beside, text := range image {
		put(t, live+beside, text)
	}
	reverted(t, live, snapshot)
	for range 2 {
		closed(t, open(t, live))
	}
	file = raw(t, live)
	if got := texts(t, file, `SELECT text FROM message_in ORDER BY seq`); !slices.Equal(got, []string{"before", "in the trial", "to another"}) {
		t.Errorf("messages %q", got)
	}
	closed(t, file)
}

func TestAFileOfATrialThatCannotBeReadGoesAsideAndTheSnapshotIsInItsPlace(t *testing.T) {
	for name, spoil := range map[string]func(t *testing.T, live string){
		"no database": func(t *testing.T, live string) { put(t, live, bytes.Repeat([]byte("no "), 9999)) },
		"empty":       func(t *testing.T, live string) { put(t, live, nil) },
		"damaged": func(t *testing.T, live string) {
			text := read(t, live)
			for i := 4096; i < len(text); i += 4096 {
				copy(text[i:], bytes.Repeat([]byte{0xff}, 200))
			}
			put(t, live, text)
		},
		"cut off": func(t *testing.T, live string) { text := read(t, live); put(t, live, text[:len(text)/2]) },
	} {
		t.Run(name, func(t *testing.T) {
			live, snapshot := onTrial(t, since...)
			runs(t, snapshot, `INSERT INTO link_code (hash, person, expires_at) VALUES ('may-be-spent', 'psn-0000ann0', 99)`)
			spoil(t, live)
			put(t, live+"-wal", []byte("the trial's log"))
			spoiled := read(t, live)
			done := reverted(t, live, snapshot)
			if done.Unread == "" || done.Lost || len(done.Left) != 2 || !strings.HasPrefix(done.Left[0], "all that was written since the snapshot: ") || !strings.HasPrefix(done.Left[1], "link codes: ") {
				t.Fatalf("%+v", done)
			}
			if !bytes.Equal(read(t, done.Unread), spoiled) {
				t.Error("what could not be read is not what was there")
			}
			if got := verbs(t, live); got != "before" {
				t.Errorf("the audit log is %q", got)
			}
			file := raw(t, live)
			if good := texts(t, file, `SELECT hash FROM link_code`); len(good) > 0 { // it may have been said where others read it
				t.Errorf("these link codes are good: %q", good)
			}
			closed(t, file)
			closed(t, open(t, live))
			if again := reverted(t, live, snapshot); again.Done {
				t.Errorf("again: %+v", again)
			}
		})
	}
}

// A loss of power on the way leaves what was there aside, and a snapshot that is whole.
// What a version on trial has written does not choose whether there is a way back: rows that cannot be carried at any try go aside with all else.
func TestRowsThatCanNeverBeCarriedKeepNobodyFromGoingBack(t *testing.T) {
	live, snapshot := onTrial(t, `PRAGMA foreign_keys = 0`, `DROP TRIGGER question_ends_once`, `UPDATE question SET id = 'qst-taken' WHERE id = 'qst-waits'`)
	runs(t, snapshot, `INSERT INTO pending VALUES ('qst-waits', 'sender', 'cnv-1', 'slack:1', 'echo', 'bob', '{}', 1)`)
	done := reverted(t, live, snapshot)
	if done.Unread == "" || done.Lost || !strings.HasPrefix(done.Left[0], "all that was written since the snapshot: ") {
		t.Fatalf("%+v", done)
	}
	if got := verbs(t, live); got != "before" {
		t.Errorf("the audit log is %q", got)
	}
	file := raw(t, live)
	if waits := texts(t, file, `SELECT question FROM pending`); len(waits) != 1 {
		t.Errorf("these strangers wait: %q", waits)
	}
	closed(t, file)
	closed(t, open(t, live))
}

func TestASnapshotIsOnTheDiskBeforeItTakesAPlaceAndItsOwnersAlone(t *testing.T) {
	calls := disktest.Calls(t, func(dir string) {
		live, snapshot := filepath.Join(dir, "db"), filepath.Join(dir, "backups", "swap.sqlite")
		db := open(t, live)
		if err := db.Snapshot(t.Context(), snapshot); err != nil {
			t.Fatal(err)
		}
		closed(t, db)
		put(t, live, []byte("no database"))
		disktest.Say("revert")
		if done := reverted(t, live, snapshot); done.Unread == "" {
			t.Fatalf("%+v", done)
		}
		disktest.Private(t, live, ".")
		disktest.Say("reverted")
	})
	disktest.Ordered(t, calls, `say revert`, `rename db db\.unread-\S+`, `fsync \.`, `fsync \S+`, `rename \S+ db`, `fsync \.`, `say reverted`)
}

// Where the file itself is gone there is nothing to look into: that is said, and not that something was kept.
func TestARevertSaysThatTheDatabaseWasGone(t *testing.T) {
	live, snapshot := onTrial(t)
	for _, file := range []string{live, live + "-wal", live + "-shm"} {
		if err := os.Remove(file); err != nil && !errors.Is(err, fs.ErrNotExist) {
			t.Fatal(err)
		}
	}
	if done := reverted(t, live, snapshot); !done.Done || !done.Lost || done.Unread != "" {
		t.Errorf("%+v", done)
	}
	closed(t, open(t, live))
}

// A crash while the file goes aside: what is beside it follows before the snapshot comes (SECURITY 21).
func TestTheLogOfAFileThatWentAsideIsNeverBesideTheSnapshot(t *testing.T) {
	live, snapshot := onTrial(t)
	aside := live + ".unread-20260102T030405.000Z"
	if err := os.Rename(live, aside); err != nil {
		t.Fatal(err)
	}
	put(t, live+"-wal", []byte("the trial's log"))
	done := reverted(t, live, snapshot)
	if done.Unread != aside || string(read(t, aside+"-wal")) != "the trial's log" {
		t.Errorf("%+v", done)
	}
	if _, err := os.Lstat(live + "-wal"); err == nil {
		t.Error("the log is beside the snapshot")
	}
	if got := verbs(t, live); got != "before" {
		t.Errorf("the audit log is %q", got)
	}
}

func TestRowsThatTheOldSchemaDoesNotTakeAreLeftAndNamed(t *testing.T) {
	live, snapshot := onTrial(t, heard("msg-2", 2, "in the trial", "pending"),
		`PRAGMA ignore_check_constraints = 1`, `UPDATE message_in SET status = 'dreaming' WHERE id = 'msg-2'`,
		`PRAGMA foreign_keys = 0`, `INSERT INTO answer (question, person, identity, actor, option, text, edit, via, at) VALUES ('qst-waits', 'psn-newcomer', 'slack:7', '{}', 'approve', '', '', 'chat', 9)`,
		`DROP TRIGGER audit_never_changes`, `UPDATE audit SET reason = 'another' WHERE seq = 3`)
	done := reverted(t, live, snapshot)
	said := strings.Join(done.Left, "\n")
	for _, want := range []string{"message_in", "answer", "1 audit entries, from 3 on"} {
		if !strings.Contains(said, want) {
			t.Errorf("%q does not name %s", said, want)
		}
	}
	if got := verbs(t, live); got != "before since" {
		t.Errorf("the audit log is %q", got)
	}
}

func TestADatabaseOfTheSameSchemaIsLeftAlone(t *testing.T) {
	live := filepath.Join(t.TempDir(), "sallyport.db")
	db := open(t, live)
	snapshot := filepath.Join(filepath.Dir(live), "s.sqlite")
	if err := db.Snapshot(t.Context(), snapshot); err != nil {
		t.Fatal(err)
	}
	noted(t, db, "since")
	closed(t, db)
	if done := reverted(t, live, snapshot); done.Done || verbs(t, live) != "since" {
		t.Errorf("%+v", done)
	}
	put(t, snapshot, []byte("no database"))
	for _, snapshot := range []string{snapshot, snapshot + ".none"} {
		if _, err := sqlite.Revert(t.Context(), live, snapshot, disk.Ops{}); err == nil || !strings.Contains(err.Error(), "snapshot") {
			t.Errorf("%v", err)
		}
	}
	if verbs(t, live) != "since" {
		t.Error("it was touched")
	}
}

func TestAWayBackThatLosesPowerAnywhereIsFinishedByTheNext(t *testing.T) {
	for _, damaged := range []bool{false, true} {
		made, kept := onTrial(t, since...)
		image, old := read(t, made), read(t, kept)
		if damaged {
			image = image[:len(image)/2]
		}
		seen := disktest.Everywhere(t, func(t *testing.T, c *disktest.Crash) {
			live, snapshot := filepath.Join(t.TempDir(), "sallyport.db"), filepath.Join(t.TempDir(), "swap.sqlite")
			put(t, live, image)
			put(t, snapshot, old)
			if damaged {
				put(t, live+"-wal", []byte("the trial's log"))
			}
			if _, err := disktest.Run(func() error { _, err := sqlite.Revert(context.Background(), live, snapshot, c.Ops()); return err }); err != nil {
				t.Fatal(err)
			}
			reverted(t, live, snapshot)
			want := "before since since"
			if damaged {
				want = "before"
			} else {
				sqlitetest.WentBack(t, sqlitetest.Back{After: live, Snapshot: snapshot, Trial: made, Lost: lostSince})
			}
			if got := verbs(t, live); got != want {
				t.Errorf("the audit log is %q", got)
			}
			there, err := filepath.Glob(filepath.Join(filepath.Dir(live), "*"))
			hidden, err2 := filepath.Glob(filepath.Join(filepath.Dir(live), ".new*"))
			aside := slices.ContainsFunc(there, func(path string) bool {
				return strings.Contains(path, ".unread-") && strings.HasSuffix(path, "Z") && bytes.Equal(read(t, path), image)
			})
			if err != nil || err2 != nil || len(hidden) > 0 || aside != damaged {
				t.Errorf("there is %v, %v", there, hidden)
			}
			if _, err := os.Stat(snapshot); err != nil {
				t.Error(err)
			}
		})
		if !slices.Contains(seen, "revert:lay") && !slices.Contains(seen, "revert:place") {
			t.Errorf("not tried: %v", seen)
		}
	}
}

// A way back reads what a newer program has written by the columns that it knows itself. So a migration may add tables, and columns to what
// is carried over, and change nothing else of that.
func TestAMigrationOnlyAddsToWhatAWayBackCarries(t *testing.T) {
	const firstHeld = 17 // those before were there before there was a way back over them
	schemas := func(all fs.FS, upTo int) map[string][]string {
		path := filepath.Join(t.TempDir(), "db")
		some := fstest.MapFS{}
		files, err := fs.Glob(all, "*.sql")
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range files[:upTo] {
			text, err := fs.ReadFile(all, name)
			if err != nil {
				t.Fatal(err)
			}
			some[name] = &fstest.MapFile{Data: text}
		}
		db, err := sqlite.OpenWith(t.Context(), path, disk.Ops{}, some)
		if db == nil {
			t.Fatal(err)
		}
		closed(t, db)
		file := raw(t, path)
		defer closed(t, file)
		columns := map[string][]string{}
		for _, table := range append(sqlite.Carried(), "audit") {
			columns[table] = texts(t, file, `SELECT name || ' ' || type || ' ' || "notnull" || ' ' || coalesce(dflt_value, '') || ' ' || pk FROM pragma_table_info('`+table+`')`)
		}
		return columns
	}
	broken := func(before, after map[string][]string) (tables []string) {
		for _, table := range slices.Sorted(maps.Keys(before)) {
			if len(after[table]) < len(before[table]) || !slices.Equal(before[table], after[table][:len(before[table])]) {
				tables = append(tables, table)
			}
		}
		return tables
	}
	last := schemas(sqlite.Migrations(), firstHeld)
	for n := firstHeld; n < sqlite.Schema(); n++ {
		before := last
		last = schemas(sqlite.Migrations(), n+1)
		if tables := broken(before, last); len(tables) > 0 {
			t.Errorf("migration %d changes %v otherwise than by a column at the end: the way back from it would lose their rows", n+1, tables)
		}
	}
	for text, want := range map[string][]string{
		more: nil,
		`ALTER TABLE message_in RENAME COLUMN text TO words;`:                {"message_in"},
		`ALTER TABLE message_out DROP COLUMN delivered_at;`:                  {"message_out"},
		`DROP TRIGGER answer_never_goes; ALTER TABLE answer RENAME TO said;`: {"answer"},
	} {
		if got := broken(last, schemas(newer(t, text), sqlite.Schema()+1)); !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", text, got, want)
		}
	}
}
