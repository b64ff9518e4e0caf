package sqlite_test

import (
	"context"
	"database/sql"
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

	"sallyport/internal/base/audit"
	"sallyport/internal/base/disk"
	"sallyport/internal/base/disk/disktest"
	"sallyport/internal/base/problem"
	"sallyport/internal/store"
	"sallyport/internal/store/sqlite"
)

// firstSchema is a program that knows schema 1 only.
func firstSchema(t *testing.T) fstest.MapFS {
	t.Helper()
	text, err := fs.ReadFile(sqlite.Migrations(), "00001_path.sql")
	if err != nil {
		t.Fatal(err)
	}
	return fstest.MapFS{"00001_path.sql": {Data: text}}
}

// later is a program that knows more.
func later(first fstest.MapFS, files ...string) fstest.MapFS {
	all := maps.Clone(first)
	for i, text := range files {
		all[fmt.Sprintf("%05d_more.sql", i+2)] = &fstest.MapFile{Data: []byte("-- +goose Up\n" + text)}
	}
	return all
}

// rows of schema 1: one in each table. The audit's are made by the program.
var rows = []string{
	`INSERT INTO owner VALUES (1, 1000, 'alice')`,
	`UPDATE counter SET next = 7`,
	`INSERT INTO change (id, state, top, request, base, uid, attempts, problem, reason, next, reverted_by, cancel, chosen, start_from, identity,
		resumes, rollbacks, created_at, moved_at, due_at, holder, fence, until_at)
		VALUES ('chg-00000001', 'finalized', '/repo', '{"kind":"edit"}', 'b', 3, 1, '', 'done', '', '', 0, 'ckpt-001-00000000', '', '', 0, 0, 1, 2, NULL, '', 4, NULL)`,
	`INSERT INTO session VALUES ('sh-00000', 'chg-00000001', 1, 5, '{}')`,
	`INSERT INTO checkpoint VALUES ('chg-00000001', 1, 'ckpt-001-00000000', 'o', 'valid', 'end', '{}')`,
	`INSERT INTO proposal VALUES ('chg-00000001', 1, 'd', '{}')`,
	`INSERT INTO approval (id, change, kind, proposal, digest, asked_at, decision, actor, at, via, reason)
		VALUES ('apr-00000001', 'chg-00000001', 'landing', 1, 'd', 6, 'approved', '{"kind":"person","name":"alice","uid":1000}', 7, 'command line', '')`,
	`INSERT INTO landing (id, change, common_dir, state, ended_at, reason, doc) VALUES ('lnd-00000001', 'chg-00000001', '/repo/.git', 'landed', 8, '', '{}')`,
	`INSERT INTO lease VALUES ('k', '', 3, 0)`,
}

// old returns a closed database of schema 1 with a row in every table, and all its rows.
func old(t *testing.T, schema fs.FS) (path string, all map[string][]string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "sallyport.db")
	db, err := sqlite.OpenWith(t.Context(), path, disk.Ops{}, schema)
	if err != nil {
		t.Fatal(err)
	}
	closed(t, db)
	file := raw(t, path)
	last := ""
	for n := range 3 { // as the programs of then wrote them
		e := audit.Entry{Seq: int64(n + 1), At: time.UnixMilli(1e12), Actor: audit.Host, Change: "chg-00000001", Verb: "noted", Digests: map[string]string{"a": "b"}, Previous: last}
		last = e.Sum()
		if _, err := file.Exec(`INSERT INTO audit VALUES (?, ?, 'host', 'sallyport', -1, ?, '', 'noted', '', '{"a":"b"}', ?, ?)`, e.Seq, e.At.UnixMilli(), e.Change, e.Previous, last); err != nil {
			t.Fatal(err)
		}
	}
	for _, row := range rows {
		if _, err := file.Exec(row); err != nil {
			t.Fatal(err)
		}
	}
	closed(t, file)
	all = content(t, path, nil)
	for table, rows := range all {
		if len(rows) < 2 { // the first names the columns
			t.Errorf("the test leaves table %s of schema 1 empty", table)
		}
	}
	return path, all
}

// count writes what a program of any schema can write.
func count(t *testing.T, db store.DB) {
	t.Helper()
	if err := db.InTx(t.Context(), func(tx store.Tx) error { _, err := tx.NextUID(t.Context()); return err }); err != nil {
		t.Fatal(err)
	}
}

// content is every row of every table, with the columns that like has (nil = all), in the tables' order.
func content(t *testing.T, path string, like map[string][]string) map[string][]string {
	t.Helper()
	db := raw(t, path)
	defer closed(t, db)
	tables := texts(t, db, `SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%' AND name NOT LIKE 'goose_%'`)
	all := map[string][]string{}
	for _, table := range tables {
		if like != nil && like[table] == nil {
			continue
		}
		columns := columnsOf(t, db, table)
		if like != nil {
			columns = strings.Split(like[table][0], ",")
		}
		read := slices.Clone(columns)
		if there := columnsOf(t, db, table); slices.Contains(there, "subject") && !slices.Contains(there, "change") { // it has another name since
			for i, name := range read {
				if name == "change" {
					read[i] = "subject"
				}
			}
		}
		rows := texts(t, db, fmt.Sprintf(`SELECT json_array(%s) FROM %s ORDER BY 1`, strings.Join(read, ","), table))
		all[table] = append([]string{strings.Join(columns, ",")}, rows...)
	}
	return all
}

func columnsOf(t *testing.T, db *sql.DB, table string) []string {
	return texts(t, db, `SELECT name FROM pragma_table_info('`+table+`')`)
}

func texts(t *testing.T, db *sql.DB, query string) (all []string) {
	t.Helper()
	rows, err := db.Query(query)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var s string
		if err := rows.Scan(&s); err != nil {
			t.Fatal(err)
		}
		all = append(all, s)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return all
}

func same(t *testing.T, what, path string, want map[string][]string) {
	t.Helper()
	got := content(t, path, want)
	for table := range want {
		if !slices.Equal(got[table], want[table]) {
			t.Errorf("%s, table %s:\n%v, want\n%v", what, table, got[table], want[table])
		}
	}
}

func copies(t *testing.T, path string) []string {
	t.Helper()
	all, err := filepath.Glob(filepath.Join(filepath.Dir(path), "backups", "*"))
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// dump is what makes a database like the one at path: its tables, indexes and triggers in their order, then its rows.
func dump(t *testing.T, path string) string {
	t.Helper()
	db := raw(t, path)
	defer closed(t, db)
	var out strings.Builder
	for _, text := range texts(t, db, `SELECT sql FROM sqlite_master WHERE name NOT LIKE 'sqlite_%' ORDER BY rowid`) {
		fmt.Fprintf(&out, "%s;\n\n", text)
	}
	for _, table := range texts(t, db, `SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%' ORDER BY rowid`) {
		columns := slices.DeleteFunc(columnsOf(t, db, table), func(name string) bool { return name == "tstamp" }) // of goose: it is the clock's
		for _, row := range texts(t, db, fmt.Sprintf(`SELECT quote("%s") FROM "%s" ORDER BY "%s"`, strings.Join(columns, `") || ', ' || quote("`), table, strings.Join(columns, `", "`))) {
			fmt.Fprintf(&out, "INSERT INTO %s (%s) VALUES (%s);\n", table, strings.Join(columns, ", "), row)
		}
	}
	return out.String()
}

func TestAnEmptyFileGetsWhatTheMigrationsComeTo(t *testing.T) {
	climbed := filepath.Join(t.TempDir(), "climbed.db")
	db, err := sqlite.OpenWith(t.Context(), climbed, disk.Ops{}, sqlite.Migrations())
	if err != nil {
		t.Fatal(err)
	}
	closed(t, db)
	const head = "-- A database of this program before anything is written to it: what the migrations in schema/ come to. Written by `make docs`.\n\n"
	want := head + dump(t, climbed)
	if os.Getenv("UPDATE_DOCS") != "" {
		disktest.Put(t, "schema.sql", want, 0o644)
		return
	}
	if sqlite.Newest != want {
		t.Error("schema.sql is not what the migrations come to: make docs")
	}

	made := filepath.Join(t.TempDir(), "made.db")
	closed(t, open(t, made))
	if got := head + dump(t, made); got != want {
		t.Errorf("an empty file becomes\n%s\nwant\n%s", got, want)
	}
}

func TestADatabaseOfTheFirstSchemaIsMigratedWithAllItsRowsAndCopiedBefore(t *testing.T) {
	path, before := old(t, firstSchema(t))
	db := open(t, path)
	if r := verify(t, db, nil); len(r.Faults) > 0 || r.Entries != 3 {
		t.Errorf("%+v", r)
	}
	if err := db.Read(t.Context(), func(tx store.Tx) error {
		c, err := tx.Change(t.Context(), "chg-00000001")
		if err == nil && (c.State != "finalized" || c.UID != 3) {
			err = fmt.Errorf("%+v", c)
		}
		return err
	}); err != nil {
		t.Error(err)
	}
	closed(t, db)
	rewritten := map[string]bool{"owner": true, "approval": true} // what became of it is TestAHomeOfTheSchemaBeforePersonsKeepsAllItHad's
	stays := maps.Clone(before)
	maps.DeleteFunc(stays, func(table string, _ []string) bool { return rewritten[table] })
	same(t, "migrated", path, stays)
	kept := copies(t, path)
	if len(kept) != 1 || !strings.Contains(kept[0], "sallyport-schema1-") {
		t.Fatalf("copies: %v", kept)
	}
	same(t, "the copy", kept[0], before)
	for at, want := range map[string]fs.FileMode{kept[0]: 0o600, filepath.Dir(kept[0]): 0o700} {
		if info, err := os.Stat(at); err != nil || info.Mode().Perm() != want {
			t.Errorf("%s: %v %v", at, info.Mode(), err)
		}
	}

	// The program from before is refused, and told of the copy, which it can open.
	_, err := sqlite.OpenWith(t.Context(), path, disk.Ops{}, firstSchema(t))
	if p := problem.Of(err); p.Kind != problem.Unavailable || !strings.Contains(p.Text, "newer sallyport") || !strings.Contains(p.Text, kept[0]) {
		t.Errorf("%+v", p)
	}
	again, err := sqlite.OpenWith(t.Context(), kept[0], disk.Ops{}, firstSchema(t))
	if err != nil {
		t.Fatal(err)
	}
	closed(t, again)
}

func TestAMigrationThatFailsLeavesTheDatabaseAsItWasAndNamesTheCopy(t *testing.T) {
	first := firstSchema(t)
	for name, files := range map[string][]string{
		"the first": {`CREATE TABLE more (x INTEGER); INSERT INTO nowhere VALUES (1);`},
		"the second": {`CREATE TABLE more (x INTEGER); DELETE FROM lease; ALTER TABLE session ADD COLUMN y TEXT;`,
			`UPDATE counter SET next = 99; INSERT INTO nowhere VALUES (1);`},
	} {
		t.Run(name, func(t *testing.T) {
			path, before := old(t, first)
			_, err := sqlite.OpenWith(t.Context(), path, disk.Ops{}, later(first, files...))
			p := problem.Of(err)
			kept := copies(t, path)
			if len(kept) != 1 || p.Kind != problem.Unavailable || !strings.Contains(p.Text, kept[0]) || !strings.Contains(p.Text, "as it was") || !strings.Contains(p.Text, "nowhere") || p.Next == "" {
				t.Errorf("%+v, copies %v", p, kept)
			}
			same(t, "after the failure", path, before)
			db, err := sqlite.OpenWith(t.Context(), path, disk.Ops{}, first)
			if err != nil {
				t.Fatal(err)
			}
			count(t, db)
			closed(t, db)
			closed(t, open(t, path)) // a better program
		})
	}
}

func TestADatabaseThatCannotBeCopiedIsNotMigrated(t *testing.T) {
	path, before := old(t, firstSchema(t))
	in := filepath.Join(filepath.Dir(path), "backups")
	put(t, in, []byte("in the way"))
	_, err := sqlite.Open(t.Context(), path, disk.Ops{})
	if err == nil || !strings.Contains(err.Error(), in) {
		t.Errorf("%v", err)
	}
	same(t, "not migrated", path, before)
	if err := os.Remove(in); err != nil {
		t.Fatal(err)
	}
	closed(t, open(t, path))
}

func TestCopiesAreBoundedAndNothingElseIsTouched(t *testing.T) {
	first := firstSchema(t)
	path, _ := old(t, first)
	folder := filepath.Join(filepath.Dir(path), "backups")
	if err := os.Mkdir(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	put(t, filepath.Join(folder, "mine.db"), nil)
	put(t, filepath.Join(folder, "sallyport-schema1-20200101T000000.000Z.db"), nil)
	put(t, filepath.Join(folder, "sallyport-schema1-20200101T000000.000Z.db.new"), nil)
	var files []string
	for n := range 7 {
		files = append(files, fmt.Sprintf(`CREATE TABLE more%d (x INTEGER);`, n))
		db, err := sqlite.OpenWith(t.Context(), path, disk.Ops{}, later(first, files...))
		if err != nil {
			t.Fatal(err)
		}
		closed(t, db)
	}
	var names []string
	for _, path := range copies(t, path) {
		name, _, _ := strings.Cut(filepath.Base(path), "-2")
		names = append(names, name)
	}
	want := []string{"mine.db", "sallyport-schema3", "sallyport-schema4", "sallyport-schema5", "sallyport-schema6", "sallyport-schema7"}
	if !slices.Equal(names, want) {
		t.Errorf("%v, want %v", names, want)
	}
}

func TestAMigrationThatLosesPowerAnywhereIsFinishedByTheNext(t *testing.T) {
	first := firstSchema(t)
	next := later(first, `CREATE TABLE more (x INTEGER);`, `ALTER TABLE session ADD COLUMN y TEXT;`)
	made, before := old(t, first)
	image, head := read(t, made), read(t, filepath.Join(filepath.Dir(made), audit.HeadName))
	try := func(t *testing.T, c *disktest.Crash) {
		path := filepath.Join(t.TempDir(), "sallyport.db")
		put(t, path, image)
		put(t, filepath.Join(filepath.Dir(path), audit.HeadName), head)
		_, err := disktest.Run(func() error {
			db, err := sqlite.OpenWith(context.Background(), path, c.Ops(), next)
			if err == nil {
				err = db.Close()
			}
			return err
		})
		if err != nil {
			t.Error(err)
		}
		db, err := sqlite.OpenWith(t.Context(), path, disk.Ops{}, next)
		if err != nil {
			t.Fatal(err)
		}
		closed(t, db)
		if marks, damaged, err := audit.ReadMarks(filepath.Join(filepath.Dir(path), audit.HeadName)); err != nil || damaged > 0 || len(marks) != 1 || marks[0].Seq != 3 {
			t.Errorf("the head record has %v, %d damaged, %v", marks, damaged, err)
		}
		same(t, "after the crash", path, before)
		if !slices.ContainsFunc(copies(t, path), func(p string) bool { return strings.Contains(p, "schema1-") && strings.HasSuffix(p, ".db") }) {
			t.Errorf("no copy of schema 1: %v", copies(t, path))
		}
	}
	// Between opening the file and the record of the audit: the rest is any start's (TestHelperProcess).
	for at := 1; ; at++ {
		c := &disktest.Crash{At: at, After: true}
		t.Run(fmt.Sprint(at), func(t *testing.T) { try(t, c) })
		seen := c.Seen()
		if last := seen[len(seen)-1]; !c.Crashed() || last == "db:head" {
			if !slices.Contains(seen, "backup:commit") || !slices.Contains(seen, "db:migrate") {
				t.Errorf("not tried: %v", seen)
			}
			break
		}
	}
}
