package sqlite_test

import (
	"database/sql"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sallyport/internal/base/audit"
	"sallyport/internal/base/audit/audittest"
	"sallyport/internal/base/disk"
	"sallyport/internal/base/disk/disktest"
	"sallyport/internal/base/problem"
	"sallyport/internal/store"
	"sallyport/internal/store/sqlite"
)

// made returns the path of a database with three audit entries.
func made(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "state", "db")
	db, err := sqlite.Open(t.Context(), path, disk.Ops{})
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if err := db.InTx(t.Context(), func(tx store.Tx) error {
			return tx.AppendEntry(t.Context(), audit.Entry{At: time.Now(), Actor: audit.Host, Verb: "made"})
		}); err != nil {
			t.Fatal(err)
		}
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}

// raw opens the file as any program could.
func raw(t *testing.T, path string) *sql.DB {
	t.Helper()
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}

func TestAuditRowsOnlyGrow(t *testing.T) {
	db := raw(t, made(t))
	for _, q := range []string{
		`UPDATE audit SET reason = 'x' WHERE seq = 2`,
		`DELETE FROM audit WHERE seq = 3`,
		`DELETE FROM audit`,
		`REPLACE INTO audit SELECT 2, at, actor_kind, 'mallory', actor_uid, change, subject, verb, reason, digests, previous, hash, actor_person, actor_identity, stored FROM audit WHERE seq = 2`,
		`INSERT INTO audit SELECT 9, at, actor_kind, actor_name, actor_uid, change, subject, verb, reason, digests, hash, 'h', actor_person, actor_identity, stored FROM audit WHERE seq = 3`,
		`INSERT INTO audit SELECT 4, at, actor_kind, actor_name, actor_uid, change, subject, verb, reason, digests, 'p', 'h', actor_person, actor_identity, stored FROM audit WHERE seq = 3`,
	} {
		if _, err := db.Exec(q); err == nil || !strings.Contains(err.Error(), "audit rows only grow") {
			t.Errorf("%s: %v", q, err)
		}
	}
	var n int
	if err := db.QueryRow(`SELECT count(*) FROM audit WHERE actor_name = 'sallyport' AND reason = ''`).Scan(&n); err != nil || n != 3 {
		t.Errorf("%d rows as they were, %v", n, err)
	}
}

func TestANewerSchemaIsLeftAlone(t *testing.T) {
	path := made(t)
	db := raw(t, path)
	if _, err := db.Exec(`INSERT INTO goose_db_version (version_id, is_applied) VALUES (999, 1)`); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	before, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	_, err = sqlite.Open(t.Context(), path, disk.Ops{})
	p := problem.Of(err)
	if p.Kind != problem.Unavailable || !strings.Contains(p.Text, "999") || !strings.Contains(p.Text, path) || !strings.Contains(p.Text, "newer") || p.Next == "" {
		t.Errorf("%+v", p)
	}
	if after, err := os.ReadFile(path); err != nil || string(after) != string(before) {
		t.Errorf("the file was changed: %v", err)
	}
}

func TestAnOlderSchemaIsMigratedOnce(t *testing.T) {
	path := made(t)
	for range 2 {
		var ops []string
		db, err := sqlite.Open(t.Context(), path, disk.Ops{Around: func(op string, do func() error) error { ops = append(ops, op); return do() }})
		if err != nil {
			t.Fatal(err)
		}
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
		if strings.Contains(fmt.Sprint(ops), "migrate") {
			t.Errorf("migrated what is up to date: %v", ops)
		}
	}
}

func TestOnlyTheOwnerCanReadTheFiles(t *testing.T) {
	path := made(t)
	if err := os.Chmod(path, 0o644); err != nil { // a person or a backup has put it there so
		t.Fatal(err)
	}
	db, err := sqlite.Open(t.Context(), path, disk.Ops{})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if err := db.InTx(t.Context(), func(tx store.Tx) error { _, err := tx.NextUID(t.Context()); return err }); err != nil {
		t.Fatal(err)
	}
	for file, want := range map[string]os.FileMode{path: 0o600, path + "-wal": 0o600, path + "-shm": 0o600, filepath.Dir(path): 0o700} {
		if info, err := os.Stat(file); err != nil || info.Mode().Perm() != want {
			t.Errorf("%s: %v, %v, want %v", file, info.Mode(), err, want)
		}
	}
}

func TestWhatIsNoDatabaseIsNamed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "db")
	disktest.Put(t, path, strings.Repeat("no database at all\n", 1000), 0o600)
	_, err := sqlite.Open(t.Context(), path, disk.Ops{})
	if p := problem.Of(err); p.Kind != problem.Unavailable || !strings.Contains(p.Text, path) || p.Next == "" {
		t.Errorf("%+v", p)
	}
}

func TestTwoWhoOpenItDoNotHarmEachOther(t *testing.T) {
	path := made(t)
	one, err := sqlite.Open(t.Context(), path, disk.Ops{})
	if err != nil {
		t.Fatal(err)
	}
	defer one.Close()
	two, err := sqlite.Open(t.Context(), path, disk.Ops{})
	if err != nil {
		t.Fatal(err)
	}
	defer two.Close()
	errs := make(chan error)
	for _, db := range []store.DB{one, two} {
		go func() {
			var all error
			for range 20 {
				all = errors.Join(all, db.InTx(t.Context(), func(tx store.Tx) error {
					return tx.AppendEntry(t.Context(), audit.Entry{At: time.Now(), Actor: audit.Host, Verb: "shared"})
				}))
			}
			errs <- all
		}()
	}
	if err := errors.Join(<-errs, <-errs); err != nil {
		t.Error(err)
	}
	_ = one.Read(t.Context(), func(tx store.Tx) error {
		all, err := tx.Entries(t.Context(), "", 0, 0)
		if err := errors.Join(err, audittest.Verify(all)); err != nil || len(all) != 43 {
			t.Errorf("%d entries, %v", len(all), err)
		}
		return nil
	})
}

// mounted runs the helper with a small file system of its own at dir. script has $HELPER.
func mounted(t *testing.T, dir, script string) []string {
	t.Helper()
	unshare, err := exec.LookPath("unshare")
	if err != nil {
		t.Skip("SKIPPED: needs unshare")
	}
	if out, err := exec.Command(unshare, "-rm", "mount", "-t", "tmpfs", "none", dir).CombinedOutput(); err != nil {
		t.Skipf("SKIPPED: needs a mount in a namespace of its own: %v: %s", err, out)
	}
	t.Setenv("DIR", dir)
	said, _ := helper(filepath.Join(dir, "home", "db"), []string{unshare, "-rm", "sh", "-c", script, "sh"})
	return said
}

func TestAFullDiskIsNamed(t *testing.T) {
	for _, blocks := range []string{"0", "100", "250", "900"} { // at opening, at migrating, at a commit
		t.Run(blocks+" KiB left", func(t *testing.T) {
			dir := t.TempDir()
			said := mounted(t, dir, `mount -t tmpfs -o size=1000k none "$DIR" && head -c $(( (1000 - `+blocks+`) * 1024 )) /dev/zero > "$DIR/ballast"; exec "$@"`)
			last := ""
			if len(said) > 0 {
				last = said[len(said)-1]
			}
			if !strings.Contains(last, "the disk is full") || !strings.Contains(last, filepath.Join(dir, "home")) {
				t.Errorf("said %q", said)
			}
		})
	}
}

func TestAProgramGoesOnOnceThereIsRoom(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("SQLITETEST_BALLAST", filepath.Join(dir, "ballast"))
	said := mounted(t, dir, `mount -t tmpfs -o size=2000k none "$DIR" && head -c 1100k /dev/zero > "$DIR/ballast"; exec "$@"`)
	if all := strings.Join(said, "; "); !strings.Contains(all, "refused: commit: the disk is full") || !strings.HasSuffix(all, "told 2; closed") {
		t.Errorf("said %q", said)
	}
}

func TestAReadOnlyHomeIsNamed(t *testing.T) {
	dir := t.TempDir()
	said := mounted(t, dir, `mount -t tmpfs none "$DIR" && mount -o remount,bind,ro "$DIR" && exec "$@"`)
	if len(said) != 1 || !strings.Contains(said[0], "cannot be written") || !strings.Contains(said[0], dir) {
		t.Errorf("said %q", said)
	}
	said = mounted(t, dir, `mount -t tmpfs none "$DIR" && "$@" > /dev/null; mount -o remount,bind,ro "$DIR" && exec "$@"`)
	if len(said) != 1 || !strings.Contains(said[0], "cannot be written") {
		t.Errorf("with a database that is there: said %q", said)
	}
}
