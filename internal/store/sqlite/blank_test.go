package sqlite_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"sallyport/internal/base/audit"
	"sallyport/internal/base/disk"
	"sallyport/internal/base/disk/disktest"
	"sallyport/internal/chat/conversation"
	"sallyport/internal/chat/message"
	"sallyport/internal/chat/schedule"
	"sallyport/internal/path/change"
	"sallyport/internal/path/checkpoint"
	"sallyport/internal/path/landing"
	"sallyport/internal/path/proposal"
	"sallyport/internal/path/request"
	"sallyport/internal/path/session"
	"sallyport/internal/path/trial"
	"sallyport/internal/rule/trust"
	"sallyport/internal/store/sqlite"
	"sallyport/internal/who/question"
)

// docs are the values that columns of JSON hold.
var docs = map[string]any{
	"answer.actor": audit.Actor{}, "audit.digests": map[string]string{}, "change.request": request.Request{}, "change.swap": change.Swap{}, "channel.settings": map[string]string{},
	"checkpoint.doc": checkpoint.Checkpoint{}, "landing.doc": landing.Landing{}, "pending.event": message.In{}, "proposal.doc": proposal.Proposal{}, "question.card": question.Card{},
	"question.options": []question.Option{}, "session.doc": session.Session{}, "trial.actor": audit.Actor{}, "trial.doc": trial.Trial{}, "trust.words": trust.Target{},
	"chat.tool": conversation.Tool{}, "message_in.recurrence": schedule.Schedule{}, "message_in.decides": message.Decision{},
}

// marker is what nobody may find in a blank copy.
const marker = "Marker of %s!"

// fill sets all that a value can hold; texts become the marker.
func fill(v reflect.Value, text string) {
	switch v.Kind() {
	case reflect.String:
		v.SetString(text)
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		v.SetInt(1)
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		v.SetUint(1)
	case reflect.Float64:
		v.SetFloat(0.5)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem(), text)
	case reflect.Slice:
		if v.Type() == reflect.TypeFor[json.RawMessage]() {
			v.SetBytes([]byte(fmt.Sprintf("%q", text)))
			return
		}
		if v.Type().Elem().Kind() == reflect.Uint8 {
			v.SetBytes([]byte(text))
			return
		}
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		fill(v.Index(0), text)
		fill(v.Index(1), text+" again")
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		name, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		fill(name, text)
		fill(value, text)
		v.SetMapIndex(name, value)
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[time.Time]() {
			v.Set(reflect.ValueOf(time.UnixMilli(1e12).UTC()))
			return
		}
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				fill(v.Field(i), text)
			}
		}
	}
}

// keptValues are what stands in columns that stay, where not any text or number may.
var keptValues = map[string]string{
	"change.id": "'chg-00000001'", "change.state": "'finalized'", "change.problem": "''", "change.outcome": "''", "change.blocked": "''", "approval.id": "'apr-00000001'",
	"asked.verdict": "'allowed'", "audit.actor_kind": "'person'", "channel.name": "'slack'", "chat.id": "'cht-00000001'", "checkpoint.id": "'ckpt-001-00000000'",
	"checkpoint.status": "'valid'", "checkpoint.cause": "'end'", "conversation.id": "'cnv-00000001'", "conversation.kind": "'direct'", "conversation.policy": "'strict'",
	"delivery.lane": "'talk'", "delivery.status": "'sent'", "intake.outcome": "'stored'", "landing.id": "'lnd-00000001'", "landing.state": "'journaled'", "message_in.id": "'msg-00000001'",
	"message_in.kind": "'chat'", "message_in.status": "'pending'", "message_out.id": "'out-00000001'", "message_out.lane": "'talk'", "message_out.digits": "10", "message_out.card": "'question'",
	"pending.kind": "'sender'", "person.id": "'psn-00000001'", "question.id": "'qst-00000001'", "role.role": "'member'", "subject.id": "'chg-00000001'",
	"trial.handshake_state": "'confirmed'", "trust.digest": "'" + strings.Repeat("0", 64) + "'", "usage.minute": "60000", "wiring.engage_mode": "'pattern'", "wiring.sender_scope": "'all'",
	"wiring.ignored_message_policy": "'drop'", "counter.name": "'more'", "chat.tool": "NULL", "audit.seq": "2",
}

// planted returns a database with a row in every table, in which every text that does not stay is a marker.
func planted(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "sallyport.db")
	db := open(t, path)
	noted(t, db, "one")
	closed(t, db)
	file := raw(t, path)
	defer closed(t, file)
	for _, trigger := range texts(t, file, `SELECT name FROM sqlite_master WHERE type = 'trigger' AND name <> 'audit_never_changes'`) {
		if _, err := file.Exec(`DROP TRIGGER ` + trigger); err != nil {
			t.Fatal(err)
		}
	}
	for _, table := range slices.Sorted(maps.Keys(sqlite.Blanks)) {
		if table == "goose_db_version" {
			continue
		}
		var names, values []string
		for _, column := range texts(t, file, `SELECT name FROM pragma_table_info('`+table+`')`) {
			at := table + "." + column
			kind := texts(t, file, `SELECT type FROM pragma_table_info('`+table+`') WHERE name = '`+column+`'`)[0]
			value, text := keptValues[at], fmt.Sprintf(marker, at)
			if kept := sqlite.Blanks[table][column] == sqlite.Stays; value == "" && kept && kind == "INTEGER" {
				value = "1"
			} else if value == "" && kept {
				value = "'" + column + "'"
			}
			if at == "trust.repository" {
				text = "/" + text
			}
			if like, is := docs[at]; is && value == "" {
				v := reflect.New(reflect.TypeOf(like))
				fill(v.Elem(), text)
				raw, err := json.Marshal(v.Interface())
				if err != nil {
					t.Fatal(err)
				}
				text = string(raw)
			}
			if value == "" {
				value = "'" + text + "'"
			}
			names, values = append(names, column), append(values, value)
		}
		if _, err := file.Exec(fmt.Sprintf(`INSERT INTO %s ("%s") VALUES (%s)`, table, strings.Join(names, `","`), strings.Join(values, ","))); err != nil {
			t.Fatalf("%s: %v", table, err)
		}
	}
	return path
}

func TestEveryColumnHasItsWayInABlankCopy(t *testing.T) {
	path := filepath.Join(t.TempDir(), "sallyport.db")
	closed(t, open(t, path))
	file := raw(t, path)
	defer closed(t, file)
	there := map[string]bool{}
	for _, table := range texts(t, file, `SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'`) {
		for _, column := range texts(t, file, `SELECT name FROM pragma_table_xinfo('`+table+`')`) {
			there[table+"."+column] = true
			if _, ok := sqlite.Blanks[table][column]; !ok {
				t.Errorf("say in blanks what a rehearsal may read of %s.%s", table, column)
			}
		}
	}
	for table, columns := range sqlite.Blanks {
		for column, way := range columns {
			if at := table + "." + column; !there[at] {
				t.Errorf("there is no %s", at)
			} else if docs[at] == nil && way == "doc" {
				t.Errorf("say in docs what stands in %s", at)
			}
		}
	}
}

// SM-913: a new version that nobody has approved is rehearsed on a copy in which nothing stands that anybody wrote.
func TestNothingThatAnybodyWroteIsInABlankCopy(t *testing.T) {
	path := planted(t)
	to := filepath.Join(t.TempDir(), "rehearsal", "sallyport.db")
	if !bytes.Contains(read(t, path), []byte("arker of")) {
		t.Fatal("no marker was planted")
	}
	put(t, filepath.Join(filepath.Dir(path), "mine"), nil)
	if err := sqlite.Blank(t.Context(), path, to, disk.Ops{}); err != nil {
		t.Fatal(err)
	}
	text := read(t, to)
	for at := range bytes.SplitSeq(text, []byte("arker of ")) {
		if name, _, is := bytes.Cut(at, []byte("!")); is && bytes.Contains(name, []byte(".")) && len(name) < 60 {
			t.Errorf("what was written in %s is in the copy", name)
		}
	}
	if bytes.Contains(text, []byte("arker of")) {
		t.Error("a marker is in the copy")
	}
	if there, err := os.ReadDir(filepath.Dir(to)); err != nil || len(there) != 1 {
		t.Errorf("beside it lies %v, %v", there, err)
	}
	if left, err := filepath.Glob(filepath.Join(filepath.Dir(path), ".new*")); err != nil || len(left) > 0 {
		t.Errorf("left beside the database: %v, %v", left, err)
	}
	if info, err := os.Stat(to); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("its mode is %v, %v", info.Mode(), err)
	}

	file := raw(t, to)
	if ok := texts(t, file, `PRAGMA integrity_check`); !slices.Equal(ok, []string{"ok"}) {
		t.Error(ok)
	}
	for table := range sqlite.Blanks { // what is there stays, row by row
		if n := texts(t, file, `SELECT count(*) FROM `+table); n[0] == "0" {
			t.Errorf("%s is empty", table)
		}
	}
	if got := texts(t, file, `SELECT text FROM message_in`); got[0] != strings.Repeat("x", len("Marker of message_in.text!")) {
		t.Errorf("a message is %q", got)
	}
	for at, like := range docs {
		table, column, _ := strings.Cut(at, ".")
		if sqlite.Blanks[table][column] != "doc" {
			continue
		}
		for _, text := range texts(t, file, fmt.Sprintf(`SELECT %s FROM %s WHERE %[1]s NOT IN ('', 'null')`, column, table)) {
			if err := json.Unmarshal([]byte(text), reflect.New(reflect.TypeOf(like)).Interface()); err != nil {
				t.Errorf("%s cannot be read any more: %v in %s", at, err, text)
			}
		}
	}
	closed(t, file)
	if _, err := os.Stat(filepath.Join(filepath.Dir(path), "mine")); err != nil {
		t.Error(err)
	}
}

// A daemon starts on it, and its audit log is one.
func TestABlankCopyIsADatabase(t *testing.T) {
	path := filepath.Join(t.TempDir(), "sallyport.db")
	db := open(t, path)
	for range 3 {
		noted(t, db, "noted")
	}
	to := filepath.Join(t.TempDir(), "sallyport.db")
	if err := sqlite.Blank(t.Context(), path, to, disk.Ops{}); err != nil { // while it is in use
		t.Fatal(err)
	}
	closed(t, db)
	copied := open(t, to)
	noted(t, copied, "more")
	if r := verify(t, copied, nil); len(r.Faults) > 0 || r.Entries != 4 {
		t.Errorf("%+v", r)
	}
	closed(t, copied)
	file := raw(t, to)
	defer closed(t, file)
	if n := texts(t, file, `SELECT name FROM sqlite_master WHERE name = 'audit_never_changes'`); len(n) != 1 {
		t.Error("its triggers are gone")
	}
}

func TestABlankCopyThatLosesPowerAnywhereIsThereWholeOrNotAtAll(t *testing.T) {
	path := planted(t)
	seen := disktest.Everywhere(t, func(t *testing.T, c *disktest.Crash) {
		to := filepath.Join(t.TempDir(), "sallyport.db")
		crashed, err := disktest.Run(func() error { return sqlite.Blank(context.Background(), path, to, c.Ops()) })
		if err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(to)
		if !crashed && err != nil || bytes.Contains(text, []byte("arker of")) {
			t.Errorf("crashed %v, %v: a marker is in it: %v", crashed, err, len(text))
		}
	})
	if len(seen) < 5 {
		t.Errorf("not tried: %v", seen)
	}
}
