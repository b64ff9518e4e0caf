package bench_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"sallyport/internal/base/audit"
	"sallyport/internal/base/disk"
	"sallyport/internal/path/change"
	wt "sallyport/internal/path/workspace/workspacetest"
	"sallyport/internal/port/sandbox"
	"sallyport/internal/port/sandbox/bwrap"
	"sallyport/internal/store"
	"sallyport/internal/store/sqlite"
	"sallyport/internal/store/storetest"
)

// program is one of the product's own, as `make build` leaves it.
func program(b *testing.B, name string) string {
	b.Helper()
	path, err := filepath.Abs("../../bin/" + name)
	must(b, err)
	if _, err := os.Stat(path); err != nil {
		b.Skipf("SKIPPED: bin/%s is not there: make build", name)
	}
	return path
}

// other is a uid that owns nothing here: what is in a sandbox of root's runs as it.
func other() sandbox.Owner {
	if owner := wt.Self(); owner.UID != 0 {
		return owner
	}
	return sandbox.Owner{UID: 64124, GID: 64124}
}

// overlay makes the folders of an empty workspace.
func overlay(b *testing.B) (string, sandbox.Tree) {
	b.Helper()
	dir := b.TempDir()
	must(b, os.Chmod(filepath.Dir(dir), 0o755))
	must(b, os.Chmod(dir, 0o755))
	tree := sandbox.Tree{Layers: []string{filepath.Join(dir, "base")}, Upper: filepath.Join(dir, "upper"), Work: filepath.Join(dir, "work")}
	for _, path := range []string{tree.Layers[0], tree.Upper, tree.Work} {
		must(b, os.Mkdir(path, 0o755))
	}
	who := other()
	for _, path := range []string{tree.Upper, tree.Work} {
		must(b, os.Lchown(path, int(who.UID), int(who.GID)))
	}
	b.Cleanup(func() { os.Chmod(filepath.Join(tree.Work, "work"), 0o700) })
	return dir, tree
}

const sandboxTakes = "three programs start one after another where the rival starts one: the launcher takes 3.7 ms until it is bubblewrap, that takes " +
	"4.4 until init runs, and init 3.3 until the program does; 2 are the driver's, for the control groups, the filter and what goes again. Go's " +
	"own start is 1.3 of the launcher's and of init's: in another language it would be 2.7 times the rival's time, and hardly less, for what " +
	"has limits and an init"

// BenchmarkSandbox measures what every session and every check pays, and how long an agent's processes take to stand.
func BenchmarkSandbox(b *testing.B) {
	needs(b, "bwrap")
	dir, tree := overlay(b)
	// The runner itself: a daemon that knows it by content starts nothing else.
	d := bwrap.New(bwrap.Config{Self: program(b, "sallyport-runner"), Root: dir + "/state"})
	spec := func(n int, argv ...string) sandbox.Spec {
		return sandbox.Spec{ID: "bench-" + strconv.Itoa(n), Owner: other(), Tree: tree, Argv: argv, Env: []string{"PATH=/usr/bin"}}
	}
	n := 0
	ours := func() time.Duration {
		n++
		return timed(func() {
			p, err := d.Start(b.Context(), spec(n, "/usr/bin/true"))
			must(b, err)
			if exit, err := p.Wait(); err != nil || exit.Code != 0 {
				b.Fatal(exit, err)
			}
		})
	}
	inTurn(b, row{path: "a sandbox, from its start to the exit of `true`", ours: "bubblewrap, with a launcher, an init, a filter and limits",
		rival: "bwrap alone, with the same namespaces", goal: goalAt{0: 1.3}, note: "the rival has no init, no filter of system calls and no limits", why: sandboxTakes},
		ours, func() time.Duration { return timed(func() { plain(b, dir) }) })
	b.Run("podman", func(b *testing.B) {
		needs(b, "podman")
		image := busybox(b)
		inTurn(b, row{path: "the same, against podman", ours: "bubblewrap, with a launcher, an init, a filter and limits", rival: "podman run", goal: goalAt{0: 1.0 / 20}},
			ours, func() time.Duration {
				return timed(func() {
					out, err := exec.Command("podman", "--runtime", "runc", "run", "--rm", "--network", "none", "--rootfs", image, "/bin/true").CombinedOutput()
					if err != nil {
						b.Fatalf("%v: %s", err, out)
					}
				})
			})
	})

	ready := &waits{text: "ready", over: make(chan struct{})}
	s := spec(0, "sh", "-c", "for i in $(seq 50); do sleep 600 & done; echo ready; wait")
	s.Stdout = ready
	p, err := d.Start(b.Context(), s)
	must(b, err)
	<-ready.over
	inTurn(b, row{path: "pausing 50 processes", ours: "until all are shown to stand", goal: goalAt{0: 5}}, func() time.Duration {
		took := timed(func() { must(b, p.Freeze(b.Context())) })
		must(b, p.Thaw())
		return took
	}, nil)
	p.Kill()
	_, err = p.Wait()
	must(b, err)
}

// plain runs true in bubblewrap alone.
func plain(b *testing.B, dir string) {
	cmd := exec.Command("bwrap", "--unshare-user", "--unshare-ipc", "--unshare-pid", "--unshare-net", "--unshare-uts", "--unshare-cgroup",
		"--ro-bind", "/usr", "/usr", "--symlink", "usr/bin", "/bin", "--symlink", "usr/lib", "/lib", "--symlink", "usr/lib64", "/lib64",
		"--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp", "--tmpfs", sandbox.Home, "--bind", dir, sandbox.Mountpoint,
		"--new-session", "--die-with-parent", "/usr/bin/true")
	if who := other(); os.Geteuid() == 0 {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: who.UID, Gid: who.GID}}
	}
	if out, err := cmd.CombinedOutput(); err != nil {
		b.Fatalf("%v: %s", err, out)
	}
}

// busybox is a root folder with one static program in it, for want of a registry.
func busybox(b *testing.B) string {
	b.Helper()
	needs(b, "busybox")
	root := filepath.Join(b.TempDir(), "root")
	must(b, os.MkdirAll(filepath.Join(root, "bin"), 0o755))
	from, err := lookPath("busybox")
	must(b, err)
	raw, err := os.ReadFile(from)
	must(b, err)
	must(b, os.WriteFile(filepath.Join(root, "bin/true"), raw, 0o755))
	return root
}

// waits closes over once a text has been written.
type waits struct {
	text string
	over chan struct{}
	once sync.Once
	held bytes.Buffer
}

func (w *waits) Write(text []byte) (int, error) {
	w.held.Write(text)
	if strings.Contains(w.held.String(), w.text) {
		w.once.Do(func() { close(w.over) })
	}
	return len(text), nil
}

// transitions is how many moves a round makes in all.
const transitions = 2048

// BenchmarkTransition compares a durable move of a row with its audit entry with the same two statements in PostgreSQL on the same disk.
func BenchmarkTransition(b *testing.B) {
	needs(b, "initdb", "pg_ctl", "pgbench", "setpriv")
	db, err := sqlite.Open(b.Context(), filepath.Join(b.TempDir(), "bench.db"), disk.Ops{})
	must(b, err)
	defer db.Close()
	server := postgres(b)
	rows := storetest.Rows(b, db, 256)
	for _, waiters := range []int{1, len(rows)} {
		name, goal, n := "a durable transition, alone", 1.0, transitions/8
		if waiters > 1 {
			name, goal, n = fmt.Sprintf("%d durable transitions, with %d waiters", transitions, waiters), 1/1.5, transitions
		}
		each := time.Duration(1)
		if waiters == 1 {
			each = time.Duration(n)
		}
		inTurn(b, row{path: name, ours: "SQLite, synced in full: one move and its audit entry", rival: "PostgreSQL 15, pgbench: one UPDATE and one INSERT",
			goal: goalAt{0: goal}}, func() time.Duration {
			return timed(func() { move(b, db, rows[:waiters], n) }) / each
		}, func() time.Duration { return server.run(b, waiters, n) / each })
	}
}

// move makes n moves, shared among as many callers as there are rows.
func move(b *testing.B, db store.DB, rows []change.Row, n int) {
	var all sync.WaitGroup
	failed := make(chan error, len(rows))
	for i := range rows {
		all.Go(func() {
			for range n / len(rows) {
				if err := moveOnce(db, rows[i]); err != nil {
					failed <- err
					return
				}
			}
		})
	}
	all.Wait()
	close(failed)
	must(b, errors.Join(<-failed))
}

func moveOnce(db store.DB, row change.Row) error {
	ctx := context.Background()
	return db.InTx(ctx, func(tx store.Tx) error {
		c, err := tx.Change(ctx, row.ID)
		if err != nil {
			return err
		}
		from := c.State
		if c.State = "working"; from == "working" {
			c.State = "submitted"
		}
		return errors.Join(tx.MoveChange(ctx, from, c), tx.AppendEntry(ctx, audit.Entry{
			At: time.Now(), Actor: audit.Host, Change: string(c.ID), Subject: string(c.ID), Verb: "moved", Digests: map[string]string{"base": c.Base}}))
	})
}

// nobody is whom a PostgreSQL of root's runs as: it wants a user that has a name, and is not root.
const nobody = 65534

// cluster is a PostgreSQL of this run's own.
type cluster struct{ dir, script string }

// postgres makes one and starts it; it ends with the benchmark.
func postgres(b *testing.B) cluster {
	b.Helper()
	dir := b.TempDir()
	for at := dir; at != "/" && at != os.TempDir(); at = filepath.Dir(at) {
		must(b, os.Chmod(at, 0o755))
	}
	c := cluster{dir: dir, script: filepath.Join(dir, "move.sql")}
	must(b, os.WriteFile(c.script, []byte(`\set id :client_id + 1
BEGIN;
UPDATE change SET state = CASE state WHEN 'working' THEN 'submitted' ELSE 'working' END, fence = fence + 1 WHERE id = :id;
INSERT INTO entry (change, at, body) VALUES (:id, now(), repeat('x', 400));
COMMIT;
`), 0o644))
	must(b, os.Mkdir(filepath.Join(dir, "data"), 0o700))
	if os.Geteuid() == 0 {
		must(b, os.Chown(filepath.Join(dir, "data"), nobody, nobody))
		must(b, os.Chown(dir, nobody, nobody))
	}
	c.must(b, "initdb", "-D", "data", "-A", "trust", "-U", "bench")
	c.must(b, "pg_ctl", "-D", "data", "-w", "-l", "log", "-o", "-c listen_addresses='' -c unix_socket_directories="+dir+" -c max_connections=300", "start")
	b.Cleanup(func() { c.must(b, "pg_ctl", "-D", "data", "-w", "-m", "immediate", "stop") })
	c.must(b, "psql", "-h", dir, "-U", "bench", "-q", "postgres", "-c",
		"CREATE TABLE change (id int PRIMARY KEY, state text, fence int); INSERT INTO change SELECT n, 'working', 0 FROM generate_series(1, 256) n;"+
			"CREATE TABLE entry (seq bigserial PRIMARY KEY, change int, at timestamptz, body text)")
	return c
}

func (c cluster) must(b *testing.B, program string, args ...string) string {
	b.Helper()
	path, err := lookPath(program)
	must(b, err)
	cmd := exec.Command(path, args...)
	cmd.Dir, cmd.Env = c.dir, append(os.Environ(), "LC_ALL=C")
	if os.Geteuid() == 0 {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	}
	// A file, not a pipe: a server that stays would hold it open.
	out, err := os.CreateTemp(c.dir, "out-")
	must(b, err)
	defer out.Close()
	cmd.Stdout, cmd.Stderr = out, out
	err = cmd.Run()
	said, _ := os.ReadFile(out.Name())
	if err != nil {
		b.Fatalf("%s: %v: %s", program, err, said)
	}
	return string(said)
}

// run has n transactions made by as many clients as wait, and returns what pgbench says they took without connecting.
func (c cluster) run(b *testing.B, waiters, n int) time.Duration {
	b.Helper()
	said := c.must(b, "pgbench", "-h", c.dir, "-U", "bench", "-n", "-f", c.script, "-c", strconv.Itoa(waiters), "-j", "2", "-t", strconv.Itoa(n/waiters), "postgres")
	for line := range strings.Lines(said) {
		if text, ok := strings.CutPrefix(line, "tps = "); ok {
			number, _, _ := strings.Cut(text, " ")
			tps, err := strconv.ParseFloat(number, 64)
			must(b, err)
			return time.Duration(float64(n) / tps * float64(time.Second))
		}
	}
	b.Fatalf("pgbench said no figure: %s", said)
	return 0
}
