package sqlite_test

import (
	"database/sql"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"sallyport/internal/base/audit"
	"sallyport/internal/base/disk"
	"sallyport/internal/base/disk/disktest"
	"sallyport/internal/store"
	"sallyport/internal/store/sqlite"
)

// logged returns a closed database with n entries, each committed by itself, and what was written.
func logged(t *testing.T, n int) (path string, all []audit.Entry) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "db")
	db := open(t, path)
	for i := range n {
		write(t, db, audit.Entry{At: time.UnixMilli(1e12 + int64(i)), Actor: audit.Actor{Kind: "person", Name: "alice", UID: 1000, Person: "psn-alice000", Identity: "terminal:1000"},
			Change: "chg-00000001", Subject: fmt.Sprint("apr-", i), Verb: "approved", Reason: "because \xff", Digests: map[string]string{"tree": "t"}})
	}
	if err := db.Read(t.Context(), func(tx store.Tx) (err error) { all, err = tx.Entries(t.Context(), "", 0, 0); return err }); err != nil {
		t.Fatal(err)
	}
	closed(t, db)
	return path, all
}

func open(t *testing.T, path string) store.DB {
	t.Helper()
	db, err := sqlite.Open(t.Context(), path, disk.Ops{})
	if err != nil {
		t.Fatal(err)
	}
	return db
}

func closed(t *testing.T, db interface{ Close() error }) {
	t.Helper()
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
}

func write(t *testing.T, db store.DB, e audit.Entry) {
	t.Helper()
	if err := db.InTx(t.Context(), func(tx store.Tx) error { return tx.AppendEntry(t.Context(), e) }); err != nil {
		t.Fatal(err)
	}
}

func verify(t *testing.T, db store.DB, expected *audit.Mark) audit.Report {
	t.Helper()
	r, err := db.VerifyAudit(t.Context(), expected)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// forger writes to the file as who has its owner's rights: no trigger stands in the way.
type forger struct {
	t   *testing.T
	db  *sql.DB
	all []audit.Entry
}

func forge(t *testing.T, path string, all []audit.Entry) forger {
	f := forger{t, raw(t, path), all}
	f.db.SetMaxOpenConns(1)
	f.do(`PRAGMA ignore_check_constraints = 1`)
	for _, trigger := range []string{"audit_never_changes", "audit_never_shrinks", "audit_is_a_chain"} {
		f.do(`DROP TRIGGER IF EXISTS ` + trigger)
	}
	return f
}

func (f forger) do(query string, args ...any) {
	f.t.Helper()
	if _, err := f.db.Exec(query, args...); err != nil {
		f.t.Fatal(err)
	}
}

// anew replaces the whole log by entries whose chain is right from the one at index from on.
func (f forger) anew(entries []audit.Entry, from int) {
	f.t.Helper()
	f.do(`DELETE FROM audit`)
	for i := range entries {
		e := &entries[i]
		if i >= from {
			e.Seq, e.Previous = int64(i+1), ""
			if i > 0 {
				e.Previous = entries[i-1].Hash
			}
			*e = e.Seal()
		}
		digests, _ := json.Marshal(e.Digests)
		f.do(`INSERT INTO audit VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`, e.Seq, e.At.UnixMilli(), e.Actor.Kind, e.Actor.Name, e.Actor.UID,
			e.Change, e.Subject, e.Verb, e.Reason, string(digests), e.Previous, e.Hash, e.Actor.Person, e.Actor.Identity, e.Stored)
	}
}

const loggedEntries = 6

var tampering = map[string]struct {
	do   func(f forger)
	at   int64  // the entry that the first fault names
	says string // what it says of it
}{
	"another time":     {func(f forger) { f.do(`UPDATE audit SET at = at + 1 WHERE seq = 3`) }, 3, "entry 3 (approved, \"apr-2\") was altered"},
	"another kind":     {func(f forger) { f.do(`UPDATE audit SET actor_kind = 'host' WHERE seq = 3`) }, 3, "altered"},
	"another actor":    {func(f forger) { f.do(`UPDATE audit SET actor_name = 'mallory' WHERE seq = 3`) }, 3, "altered"},
	"another uid":      {func(f forger) { f.do(`UPDATE audit SET actor_uid = 0 WHERE seq = 3`) }, 3, "altered"},
	"another person":   {func(f forger) { f.do(`UPDATE audit SET actor_person = 'psn-mallory0' WHERE seq = 3`) }, 3, "altered"},
	"another identity": {func(f forger) { f.do(`UPDATE audit SET actor_identity = 'terminal:0' WHERE seq = 3`) }, 3, "altered"},
	"its JSON altered": {func(f forger) { f.do(`UPDATE audit SET stored = replace(stored, 'approved', 'refused') WHERE seq = 3`) }, 3, "altered"},
	"JSON and column": {func(f forger) {
		f.do(`UPDATE audit SET stored = replace(stored, 'approved', 'refused'), verb = 'refused' WHERE seq = 3`)
	}, 3, "altered"},
	"JSON of another": {func(f forger) {
		f.do(`UPDATE audit SET (stored, hash) = (SELECT stored, hash FROM audit WHERE seq = 2) WHERE seq = 3`)
	}, 3, "altered"},
	"its JSON is none": {func(f forger) { f.do(`UPDATE audit SET stored = '{"seq' WHERE seq = 3`) }, 3, "altered"},
	"another change":   {func(f forger) { f.do(`UPDATE audit SET change = 'chg-00000002' WHERE seq = 3`) }, 3, "altered"},
	"another subject":  {func(f forger) { f.do(`UPDATE audit SET subject = 'apr-9' WHERE seq = 3`) }, 3, "altered"},
	"another verb":     {func(f forger) { f.do(`UPDATE audit SET verb = 'refused' WHERE seq = 3`) }, 3, "altered"},
	"no reason":        {func(f forger) { f.do(`UPDATE audit SET reason = '' WHERE seq = 3`) }, 3, "altered"},
	"what JSON hides":  {func(f forger) { f.do(`UPDATE audit SET reason = CAST(x'6265636175736520ff' AS TEXT) WHERE seq = 3`) }, 3, "altered"},
	"another digest":   {func(f forger) { f.do(`UPDATE audit SET digests = '{"tree":"x"}' WHERE seq = 3`) }, 3, "altered"},
	"no digests":       {func(f forger) { f.do(`UPDATE audit SET digests = 'null' WHERE seq = 3`) }, 3, "altered"},
	"broken digests":   {func(f forger) { f.do(`UPDATE audit SET digests = '{"tree' WHERE seq = 3`) }, 3, "cannot be read"},
	"another hash":     {func(f forger) { f.do(`UPDATE audit SET hash = replace(hash, substr(hash, 1, 1), 'z') WHERE seq = 3`) }, 3, "altered"},
	"another previous": {func(f forger) { f.do(`UPDATE audit SET previous = hash WHERE seq = 3`) }, 3, "altered"},
	"one taken out":    {func(f forger) { f.do(`DELETE FROM audit WHERE seq = 3`) }, 3, "entry 3 is missing"},
	"three taken out":  {func(f forger) { f.do(`DELETE FROM audit WHERE seq BETWEEN 2 AND 4`) }, 2, "entries 2 to 4 are missing"},
	"the first gone":   {func(f forger) { f.do(`DELETE FROM audit WHERE seq = 1`) }, 1, "entry 1 is missing"},
	"the last gone":    {func(f forger) { f.do(`DELETE FROM audit WHERE seq = 6`) }, 6, "entry 6 is missing at the end"},
	"the end gone":     {func(f forger) { f.do(`DELETE FROM audit WHERE seq > 2`) }, 3, "entries 3 to 6 are missing at the end"},
	"all gone":         {func(f forger) { f.do(`DELETE FROM audit`) }, 1, "entries 1 to 6 are missing at the end"},
	"two exchanged": {func(f forger) {
		f.do(`UPDATE audit SET seq = 99 WHERE seq = 3`)
		f.do(`UPDATE audit SET seq = 3 WHERE seq = 4`)
		f.do(`UPDATE audit SET seq = 4 WHERE seq = 99`)
	}, 3, "altered"},
	"one put before all": {func(f forger) {
		f.do(`INSERT INTO audit SELECT -7, at, actor_kind, actor_name, actor_uid, change, subject, verb, reason, digests, '', hash, actor_person, actor_identity, stored FROM audit WHERE seq = 1`)
	}, -7, "stands where entry 1 belongs"},
	"one hashed anew": {func(f forger) {
		e := f.all[2]
		e.Actor.Name = "mallory"
		e = e.Seal()
		f.do(`UPDATE audit SET actor_name = ?, hash = ?, stored = ? WHERE seq = 3`, e.Actor.Name, e.Hash, e.Stored)
	}, 3, "entry 3 is not what was written"},
	"all hashed anew from one on": {func(f forger) { f.all[2].Verb = "refused"; f.anew(f.all, 2) }, 3, "entry 3 is not what was written"},
	"one cut out, all hashed anew": {func(f forger) {
		f.anew(append(f.all[:2:2], f.all[3:]...), 2)
	}, 3, "entry 3 is not what was written"},
	"the end written anew, longer": {func(f forger) {
		more := append(f.all, f.all...)
		more[5].Verb = "refused"
		f.anew(more, 5)
	}, 6, "entry 6 is not what was written"},
}

// Each tampering is done under the feet of a daemon; what a daemon finds that starts after it is the next test's.
func TestTamperingWithADatabaseIsFoundAndNamed(t *testing.T) {
	path, all := logged(t, loggedEntries)
	db := open(t, path)
	defer closed(t, db)
	f := forge(t, path, nil)
	defer closed(t, f.db)
	for name, c := range tampering {
		f.all = slices.Clone(all)
		f.anew(f.all, loggedEntries) // as it was written
		if r := verify(t, db, nil); len(r.Faults) > 0 {
			t.Fatalf("a good log: %+v", r.Faults)
		}
		c.do(f)
		if r := verify(t, db, nil); len(r.Faults) == 0 || r.Faults[0].Entry != c.at || !strings.Contains(r.Faults[0].Text, c.says) {
			t.Errorf("%s: %+v, want entry %d: %s", name, r.Faults, c.at, c.says)
		}
	}
}

func TestTamperingWhileNoDaemonRunsIsFoundByTheNext(t *testing.T) {
	path, all := logged(t, loggedEntries)
	for _, name := range []string{"another actor", "the end gone", "all hashed anew from one on", "the end written anew, longer"} {
		c := tampering[name]
		f := forge(t, path, slices.Clone(all))
		f.anew(f.all, loggedEntries)
		c.do(f)
		closed(t, f.db)
		db := open(t, path)
		if r := verify(t, db, nil); len(r.Faults) == 0 || r.Faults[0].Entry != c.at || !strings.Contains(r.Faults[0].Text, c.says) {
			t.Errorf("%s: %+v, want entry %d: %s", name, r.Faults, c.at, c.says)
		}
		closed(t, db)
	}
}

func read(t *testing.T, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func put(t *testing.T, path string, b []byte) {
	t.Helper()
	disktest.Put(t, path, b, 0o600)
}

func TestALogThatWasCutOffIsStillKnownToBeWhenItHasGrownAgain(t *testing.T) {
	path, all := logged(t, loggedEntries)
	f := forge(t, path, all)
	f.do(`DELETE FROM audit WHERE seq > 3`)
	closed(t, f.db)
	db := open(t, path)
	defer closed(t, db)
	for range 5 {
		write(t, db, audit.Entry{At: time.Now(), Actor: audit.Host, Verb: "noted"})
		if r := verify(t, db, nil); len(r.Faults) == 0 || r.Faults[0].Entry != 4 {
			t.Errorf("%+v", r)
		}
	}
}

func TestAHeadRecordThatLagsIsNoTruncationAndIsMended(t *testing.T) {
	path, all := logged(t, loggedEntries)
	head := filepath.Join(filepath.Dir(path), audit.HeadName)
	lines := strings.SplitAfter(string(read(t, head)), "\n")
	for name, text := range map[string]string{
		"power went between the commit and the line": strings.Join(lines[:5], ""),
		"power went within the line":                 strings.Join(lines[:5], "") + lines[5][:20],
		"the line's end is missing":                  strings.TrimSuffix(strings.Join(lines[:6], ""), "\n"),
		"several lines never came to the disk":       strings.Join(lines[:2], ""),
	} {
		put(t, head, []byte(text))
		db := open(t, path)
		if r := verify(t, db, nil); len(r.Faults) > 0 || r.Newer != 0 || r.Last.Hash != all[5].Hash || r.Since != 1 {
			t.Errorf("%s: %+v", name, r)
		}
		put(t, head, []byte(text)) // and while the daemon goes on
		if r := verify(t, db, nil); len(r.Faults) > 0 || r.Newer == 0 {
			t.Errorf("%s: %+v", name, r)
		}
		closed(t, db)
	}
}

func TestAHeadRecordThatIsGoneOrDamagedIsTold(t *testing.T) {
	path, _ := logged(t, loggedEntries)
	head := filepath.Join(filepath.Dir(path), audit.HeadName)
	good := string(read(t, head))
	db := open(t, path)
	defer closed(t, db)
	other := "1 " + strings.Repeat("0a", 32) + "\n"
	for name, c := range map[string]struct {
		text *string
		at   int64
	}{
		"gone": {nil, loggedEntries}, "emptied": {new(string), loggedEntries},
		"a line is no line": {ptr("x\n" + good), 0}, "another hash": {ptr(other + good), 1}, "more than there is": {ptr(good + "9" + other[1:]), 7},
	} {
		if err := os.Remove(head); err != nil {
			t.Fatal(err)
		}
		if c.text != nil {
			put(t, head, []byte(*c.text))
		}
		if r := verify(t, db, nil); len(r.Faults) == 0 || r.Faults[0].Entry != c.at {
			t.Errorf("%s: %+v", name, r)
		}
		put(t, head, []byte(good))
	}
}

func ptr(s string) *string { return &s }

func TestAMarkThatWasKeptElsewhereFindsWhatAReplacedRecordHides(t *testing.T) {
	path, all := logged(t, loggedEntries)
	kept := audit.Mark{Seq: 5, Hash: all[4].Hash}
	f := forge(t, path, all)
	f.all[2].Verb = "refused"
	f.anew(f.all, 2)
	closed(t, f.db)
	if err := os.Remove(filepath.Join(filepath.Dir(path), audit.HeadName)); err != nil {
		t.Fatal(err)
	}
	db := open(t, path)
	defer closed(t, db)
	if r := verify(t, db, nil); len(r.Faults) > 0 || r.Since != loggedEntries {
		t.Errorf("a good forgery is found by itself, or its new record is not told: %+v", r)
	}
	if r := verify(t, db, &kept); len(r.Faults) == 0 || r.Faults[0].Entry != 5 {
		t.Errorf("%+v", r)
	}
	if r := verify(t, db, &audit.Mark{Seq: 8, Hash: kept.Hash}); len(r.Faults) == 0 || r.Faults[0].Entry != 7 {
		t.Errorf("%+v", r)
	}
}
