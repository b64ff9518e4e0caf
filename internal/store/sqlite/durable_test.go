package sqlite_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"sallyport/internal/base/audit"
	"sallyport/internal/base/audit/audittest"
	"sallyport/internal/base/disk"
	"sallyport/internal/base/disk/disktest"
	"sallyport/internal/store"
	"sallyport/internal/store/sqlite"
)

// TestHelperProcess writes to the database until it has nothing more to write, and says
// each thing it was told is on the disk. What kills it on the way comes from disktest.
func TestHelperProcess(t *testing.T) {
	path := os.Getenv("SQLITETEST_PATH")
	if path == "" {
		t.Skip("only as a child of other tests")
	}
	check := func(err error) {
		if err != nil {
			fmt.Println("error:", err)
			os.Exit(9)
		}
	}
	ops, err := disktest.FromEnv()
	check(err)
	db, err := sqlite.Open(t.Context(), path, ops)
	check(err)
	for n := range 3 {
		count := func(tx store.Tx) error {
			uid, err := tx.NextUID(t.Context())
			long := strings.Repeat("long ", 20_000) // some pages
			if os.Getenv("SQLITETEST_HUGE") != "" { // more than the cache is meant to hold
				long = strings.Repeat(long, 60)
			}
			return errors.Join(err, tx.AppendEntry(t.Context(), audit.Entry{At: time.Now(), Actor: audit.Host, Verb: "counted",
				Subject: fmt.Sprint(uid), Reason: long}))
		}
		err := db.InTx(t.Context(), count)
		if ballast := os.Getenv("SQLITETEST_BALLAST"); err != nil && ballast != "" { // room is made; the same program goes on
			fmt.Println("refused:", err)
			check(os.Remove(ballast))
			err = db.InTx(t.Context(), count)
		}
		check(err)
		fmt.Println("told", n)
		check(db.Read(t.Context(), func(tx store.Tx) error { _, err := tx.Entries(t.Context(), "", 0, 0); return err }))
	}
	check(db.Close())
	fmt.Println("closed")
	os.Exit(0)
}

// helper runs the process above and returns what it said. env as in disktest.
func helper(path string, wrap []string, env ...string) (said []string, killed bool) {
	argv := append(slices.Clone(wrap), os.Args[0], "-test.run=^TestHelperProcess$")
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Env = append(os.Environ(), append(env, "SQLITETEST_PATH="+path)...)
	out, _ := cmd.Output()
	status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus)
	for lines := bufio.NewScanner(strings.NewReader(string(out))); lines.Scan(); {
		said = append(said, lines.Text())
	}
	return said, ok && status.Signaled() && status.Signal() == syscall.SIGKILL
}

// counted returns how many transactions of the helper are in the database, after checking
// that each is there whole.
func counted(t *testing.T, path string) (n int) {
	t.Helper()
	db, err := sqlite.Open(t.Context(), path, disk.Ops{})
	if err != nil {
		t.Fatalf("open again: %v", err)
	}
	defer db.Close()
	err = db.InTx(t.Context(), func(tx store.Tx) error {
		all, err := tx.Entries(t.Context(), "", 0, 0)
		if err := audittest.Verify(all); err != nil {
			t.Error(err)
		}
		uid, err2 := tx.NextUID(t.Context())
		if n = len(all); int(uid) != n {
			t.Errorf("%d audit entries, but %d uids were taken", n, uid)
		}
		return errors.Join(err, err2, errors.New("undo"))
	})
	if err.Error() != "undo" {
		t.Error(err)
	}
	return n
}

func TestAKilledProcessLosesNothingItWasTold(t *testing.T) {
	dir := t.TempDir()
	log := filepath.Join(dir, "operations")
	if said, _ := helper(filepath.Join(dir, "state", "db"), nil, disktest.KillLog+"="+log); !slices.Contains(said, "closed") {
		t.Fatalf("helper said %q", said)
	}
	raw, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for line := range strings.Lines(string(raw)) {
		_, name, _ := strings.Cut(strings.TrimSpace(line), " ")
		names = append(names, name)
	}
	if len(names) < 7 {
		t.Fatalf("operations %q", names)
	}

	for _, at := range disktest.Points(t, names) {
		for _, when := range []string{"before", "after"} {
			path := filepath.Join(t.TempDir(), "state", "db")
			said, killed := helper(path, nil, fmt.Sprintf("%s=%d:%s", disktest.KillAt, at, when))
			told := 0
			for _, s := range said {
				if strings.HasPrefix(s, "told ") {
					told++
				}
				if strings.HasPrefix(s, "error") {
					t.Fatal(s)
				}
			}
			if !killed {
				t.Errorf("not killed %s operation %d, %s: %q", when, at, names[at], said)
			}
			n := counted(t, path)
			if n != told && (n != told+1 || when != "after") {
				t.Errorf("killed %s operation %d, %s: %d transactions are there, %d were told", when, at, names[at], n, told)
			}
		}
	}
}

// TestNothingIsWrittenOutsideANamedOperation reads a trace of the helper's system calls: on a
// thread, between the marks of an operation, or not at all.
func TestNothingIsWrittenOutsideANamedOperation(t *testing.T) {
	strace, err := exec.LookPath("strace")
	if err != nil {
		t.Skip("SKIPPED: needs strace")
	}
	dir := t.TempDir()
	trace, home := filepath.Join(dir, "trace"), filepath.Join(dir, "home")
	said, _ := helper(filepath.Join(home, "db"), []string{strace, "-f", "--seccomp-bpf", "-qq", "-y", "-s", "200", "-o", trace, "-e",
		"trace=access,faccessat,openat,pwrite64,write,ftruncate,fsync,fdatasync,unlink,unlinkat,rename,renameat,mkdirat,mkdir,fchmod,chmod,fallocate"},
		disktest.Mark+"=1", "SQLITETEST_HUGE=1")
	if !slices.Contains(said, "closed") {
		t.Fatalf("helper said %q", said)
	}
	raw, err := os.ReadFile(trace)
	if err != nil {
		t.Fatal(err)
	}
	inside, writes := map[string]string{}, map[string]int{}
	for line := range strings.Lines(string(raw)) {
		tid, call, _ := strings.Cut(line, " ")
		call = strings.TrimSpace(call)
		if _, op, ok := strings.Cut(call, disktest.MarkBegin); ok {
			inside[tid] = op[:strings.IndexByte(op, '"')]
		} else if strings.Contains(call, disktest.MarkEnd) {
			delete(inside, tid)
		} else if strings.Contains(call, home) && !reading(call) {
			writes[inside[tid]]++
			if inside[tid] == "" {
				t.Errorf("outside of every operation: %s", call)
			}
		}
	}
	for _, op := range []string{"db:create", "db:migrate", "db:counted"} {
		if writes[op] == 0 {
			t.Errorf("no system call of %s was seen: is the trace read rightly? %v", op, writes)
		}
	}
}

// reading reports whether a traced call only looks.
func reading(call string) bool {
	return strings.HasPrefix(call, "access") || strings.HasPrefix(call, "faccessat") ||
		strings.HasPrefix(call, "openat") && !strings.Contains(call, "O_CREAT") && !strings.Contains(call, "O_TRUNC")
}

func TestAFailedCommitFailsAllThatSharedIt(t *testing.T) {
	no := errors.New("the disk says no")
	var fail bool
	db, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "db"), disk.Ops{Around: func(op string, do func() error) error {
		if fail && op == "db:tried" {
			return no
		}
		return do()
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	try := func(tx store.Tx) error {
		return tx.AppendEntry(t.Context(), audit.Entry{At: time.Now(), Actor: audit.Host, Verb: "tried"})
	}
	fail = true
	const callers = 8
	begun, open, errs := make(chan struct{}), make(chan struct{}), make(chan error)
	go func() {
		errs <- db.InTx(t.Context(), func(tx store.Tx) error { close(begun); <-open; return try(tx) })
	}()
	<-begun
	for range callers - 1 {
		go func() { errs <- db.InTx(t.Context(), try) }()
	}
	close(open)
	for range callers {
		if err := <-errs; !errors.Is(err, no) {
			t.Errorf("err = %v", err)
		}
	}
	fail = false
	if err := db.InTx(t.Context(), try); err != nil {
		t.Errorf("the next transaction: %v", err)
	}
	_ = db.Read(t.Context(), func(tx store.Tx) error {
		if all, err := tx.Entries(t.Context(), "", 0, 0); err != nil || len(all) != 1 {
			t.Errorf("%d entries, %v: want only the one that committed", len(all), err)
		}
		return nil
	})
}

func TestAnOperationIsNamedAfterWhatWasWritten(t *testing.T) {
	var ops []string
	ctx := context.Background()
	db, err := sqlite.Open(ctx, filepath.Join(t.TempDir(), "db"), disk.Ops{Around: func(op string, do func() error) error {
		ops = append(ops, op)
		return do()
	}})
	if err != nil {
		t.Fatal(err)
	}
	entry := func(verb string) func(store.Tx) error {
		return func(tx store.Tx) error {
			return tx.AppendEntry(ctx, audit.Entry{At: time.Now(), Actor: audit.Host, Verb: verb})
		}
	}
	for _, do := range []func(store.Tx) error{
		entry("landed"),
		entry("Was it\n../so?"),
		func(tx store.Tx) error { _, err := tx.NextUID(ctx); return err },
		func(tx store.Tx) error { _, err := tx.NextUID(ctx); return errors.Join(err, entry("approved")(tx)) },
		func(tx store.Tx) error { _, _, err := tx.ClaimDue(ctx, "x", time.Now(), 1); return err }, // finds nothing
		func(tx store.Tx) error { return tx.ReleaseClaims(ctx, "x") },                             // releases nothing
		func(tx store.Tx) error { return errors.Join(entry("undone")(tx), errors.New("no")) },
	} {
		_ = db.InTx(ctx, do)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	want := []string{"db:create", "db:open", "db:migrate", "db:head", "db:read", "db:landed", "db:_as_it____so_", "db:next-uid", "db:approved", "db:close"}
	if ops = slices.Compact(ops); !slices.Equal(ops, want) { // one migration after the other
		t.Errorf("operations\n%q, want\n%q", ops, want)
	}
}
