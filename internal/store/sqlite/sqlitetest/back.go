package sqlitetest

import (
	"database/sql"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// Back is a database that a way back has brought to the schema of its snapshot. Nobody writes to the files.
type Back struct {
	After    string // it
	Snapshot string // from before the trial
	Trial    string // as the trial has left it, by another schema
	// Change is the one that was on trial, where its own row has gone back too: then what the old host says of that may be there. "" = only the
	// database went back.
	Change string
	// Lost are how many rows of the trial's are not kept, by table, since no quiet host writes them.
	Lost map[string]int
}

// moves are the tables to which a quiet host adds, with those columns of an old row that say how far it has come. All else of an old row stays
// byte for byte. chat, conversation and subject are what the new rows of the others refer to; a question and its change follow from an answer.
var moves = map[string][]string{
	"intake":       {"times"},
	"message_in":   {"status", "tries", "due_at", "fence", "turn", "first_turn", "reason", "ended_at"},
	"message_out":  {"delivered_at"},
	"delivery":     {"status", "pieces", "tries", "due_at", "platform_id", "reason", "ended_at"},
	"answer":       nil,
	"audit":        nil,
	"usage":        {"requests", "estimated", "unpriced", "input", "cached", "output", "cost"},
	"conversation": nil,
	"subject":      nil,
	"chat":         {"turn", "fence"},
	"question":     {"outcome", "answer", "ended_at", "reason"},
	"approval":     {"message", "unsigned"},
}

// whole are those of them whose every row of the trial is there afterwards.
var whole = []string{"intake", "message_in", "message_out", "delivery", "answer", "audit", "usage"}

// counts are the columns that never go back, by table, with what a row is known by.
var counts = []struct{ table, key, column string }{
	{"counter", "name", "next"}, {"lease", "key", "fence"}, {"chat", "id", "turn"}, {"chat", "id", "fence"}, {"sqlite_sequence", "name", "seq"},
}

// WentBack compares the whole of a database that went back with its snapshot, row by row: it has that one's schema and rows, and more only
// where a quiet host adds, and there all that the trial has added. It says every fault that it finds.
func WentBack(t testing.TB, b Back) {
	t.Helper()
	for _, fault := range b.faults(t) {
		t.Errorf("%s: %s", b.After, fault)
	}
}

func (b Back) faults(t testing.TB) (faults []string) {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+b.After+"?mode=ro")
	if err != nil {
		t.Fatal(err)
	}
	db.SetMaxOpenConns(1) // what is attached is of one connection
	defer db.Close()      // read only
	rows := func(query string, args ...any) (all []string) {
		found, err := db.Query(query, args...)
		if err != nil {
			t.Fatalf("%s: %v", query, err)
		}
		defer found.Close()
		for found.Next() {
			var s string
			if err := found.Scan(&s); err != nil {
				t.Fatalf("%s: %v", query, err)
			}
			all = append(all, s)
		}
		if err := found.Err(); err != nil {
			t.Fatalf("%s: %v", query, err)
		}
		return all
	}
	none := func(what, query string, args ...any) {
		if found := rows(query, args...); len(found) > 0 {
			faults = append(faults, fmt.Sprintf("%s: %d rows: %s", what, len(found), strings.Join(found[:min(len(found), 3)], "; ")))
		}
	}
	for name, path := range map[string]string{"snap": b.Snapshot, "trial": b.Trial} {
		if _, err := db.Exec(`ATTACH ? AS `+name, "file:"+path+"?mode=ro"); err != nil {
			t.Fatal(err)
		}
	}

	if got := rows(`PRAGMA main.integrity_check`); !slices.Equal(got, []string{"ok"}) {
		faults = append(faults, fmt.Sprintf("it is damaged: %q", got))
	}
	none("what is referred to is missing", `SELECT "table" || ' ' || coalesce(rowid, '') FROM pragma_foreign_key_check`)
	const schema = `SELECT type || ' ' || name || ' ' || coalesce(sql, '') FROM %s.sqlite_master WHERE name NOT LIKE 'sqlite_stat%%' ORDER BY 1`
	is, was := rows(fmt.Sprintf(schema, "main")), rows(fmt.Sprintf(schema, "snap"))
	for what, lines := range map[string][]string{"it has": without(is, was), "it lacks": without(was, is)} {
		if len(lines) > 0 {
			faults = append(faults, fmt.Sprintf("%s, of a schema: %q", what, lines))
		}
	}
	if len(faults) > 0 { // its tables may not be what is looked for below
		return faults
	}

	for _, table := range rows(`SELECT name FROM snap.sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%' ORDER BY name`) {
		all := rows(`SELECT '"' || name || '"' FROM pragma_table_info(?, 'snap') ORDER BY cid`, table)
		stay := slices.DeleteFunc(slices.Clone(all), func(c string) bool { return slices.Contains(moves[table], strings.Trim(c, `"`)) })
		// said are rows as JSON, told apart by all of these columns.
		said := func(schema string, columns []string, where string) string {
			return fmt.Sprintf(`SELECT json_array(%s) FROM %s."%s" WHERE %s`, strings.Join(columns, ", "), schema, table, where)
		}
		_, adds := moves[table]
		switch {
		case table == "counter" || table == "lease":
			none(table+" has lost", `SELECT json_array(s.k) FROM (SELECT `+all[0]+` AS k FROM snap."`+table+
				`") AS s WHERE s.k NOT IN (SELECT `+all[0]+` FROM main."`+table+`")`)
		case table == "change": // its own, and those that were answered in the trial
			decided := `id IN (SELECT id FROM snap.change WHERE state = 'awaiting_approval') AND state IN ('landing', 'rejected')`
			none("change has lost or changed", said("snap", all, `id <> ?1 AND id NOT IN (SELECT id FROM main.change WHERE `+decided+`)`)+
				` EXCEPT `+said("main", all, "1"), b.Change)
			none("change has", said("main", all, `id <> ?1`)+` EXCEPT `+said("snap", all, "1")+` EXCEPT `+said("trial", all, decided), b.Change)
		case table == "trial" || table == "landing":
			none(table+" has lost or changed", said("snap", all, `change <> ?1`)+` EXCEPT `+said("main", all, "1"), b.Change)
			none(table+" has", said("main", all, `change <> ?1`)+` EXCEPT `+said("snap", all, "1"), b.Change)
		case table == "checkpoint": // what lay in its workspace is kept in one more, as at each end of a change
			none(table+" has lost or changed", said("snap", all, "1")+` EXCEPT `+said("main", all, "1"))
			none(table+" has", said("main", all, `change <> ?1`)+` EXCEPT `+said("snap", all, "1"), b.Change)
		case adds:
			none(table+" has lost or changed", said("snap", stay, "1")+` EXCEPT `+said("main", stay, "1"))
			if b.Change == "" || slices.Contains([]string{"intake", "answer", "usage", "conversation", "subject", "chat", "question",
				"approval"}, table) { // the old host speaks, and answers nothing
				none(table+" has what nobody wrote", said("main", stay, "1")+` EXCEPT `+said("snap", stay, "1")+` EXCEPT `+said("trial", stay, "1"))
			}
		default:
			none(table+" has lost or changed", said("snap", all, "1")+` EXCEPT `+said("main", all, "1"))
			none(table+" has what the trial wrote", said("main", all, "1")+` EXCEPT `+said("snap", all, "1"))
		}
		if slices.Contains(whole, table) {
			if lost := rows(said("trial", all, "1") + ` EXCEPT ` + said("main", all, "1")); len(lost) != b.Lost[table] {
				faults = append(faults, fmt.Sprintf("%s lacks %d rows of the trial's, not %d: %s", table, len(lost), b.Lost[table], strings.Join(lost, "; ")))
			}
		}
	}
	for _, c := range counts {
		for _, before := range []string{"snap", "trial"} {
			none(c.table+"."+c.column+" went back",
				fmt.Sprintf(`SELECT json_array(b.%[1]s, b.%[2]s, m.%[2]s) FROM %[4]s.%[3]s AS b LEFT JOIN main.%[3]s AS m ON m.%[1]s = b.%[1]s
				WHERE coalesce(m.%[2]s < b.%[2]s, '%[4]s' = 'snap' OR '%[3]s' = 'counter')`, c.key, c.column, c.table, before))
		}
	}
	if b.Change != "" {
		if got := rows(`SELECT c.state || ' ' || coalesce(t.handshake_state, 'none') FROM main.change AS c LEFT JOIN main.trial AS t ON t.change = c.id WHERE c.id = ?`, b.Change); !slices.Equal(got, []string{"rolled_back rolled_back"}) {
			faults = append(faults, fmt.Sprintf("%s and its trial are at %q", b.Change, got))
		}
	}
	return faults
}

// without are the lines of one that are not among those of another.
func without(one, other []string) []string {
	return slices.DeleteFunc(slices.Clone(one), func(line string) bool { return slices.Contains(other, line) })
}
