package storage

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"sallyport/internal/base/disk/disktest"
	"sallyport/internal/base/id"
	"sallyport/internal/base/leftover"
	"sallyport/internal/path/change"
	"sallyport/internal/path/repository"
)

// What a killed git has left goes from the host's own repositories, and from a project only what locks refs of ours.
func TestLocksOfAGitThatWasKilledGo(t *testing.T) {
	o := newOwned(t)
	host, err := o.Workspaces.Repositories.Open(t.Context(), o.project, o.base)
	if err != nil {
		t.Fatal(err)
	}
	c, _ := o.add(change.Working, time.Hour)
	ours := filepath.Join(o.project.GitDir, repository.BaseRef(c)+".lock")
	theirs := filepath.Join(o.project.GitDir, "refs/heads/main.lock")
	own := filepath.Join(host.Path, "packed-refs.lock")
	for _, path := range []string{ours, theirs, own} {
		disktest.Put(t, path, "", 0o600)
	}
	if err := o.Sweep(t.Context()); err != nil {
		t.Fatal(err)
	}
	for path, stays := range map[string]bool{ours: false, theirs: true, own: false} {
		if _, err := os.Lstat(path); (err == nil) != stays {
			t.Errorf("%s: %v", path, err)
		}
	}
}

// The log of a keeper that fired stays as long as a transcript, after its record; a record, and what is none of these, stays.
func TestTheLogOfAKeeperGoesSomeTimeAfterItsRecord(t *testing.T) {
	o := newOwned(t)
	o.Retention.Transcripts = time.Hour
	stays := map[string]bool{
		"deadman/lnd-1.log": false, "deadman/lnd-1.out": false, "deadman/lnd-2.log": true, "deadman/lnd-2.json": true, "deadman/lnd-3.log": true, "deadman/notes.txt": true,
		"deadman/lnd-4.log/in": true,
	}
	for name := range stays {
		o.put(name, "x")
	}
	o.put("deadman/.lnd-5.new", "x") // half made: it is looked after elsewhere
	if err := os.Symlink("lnd-2.log", filepath.Join(o.State, "deadman/lnd-6.log")); err != nil {
		t.Fatal(err)
	}
	r := &round{Steward: o.Steward, hand: hand{do: true}, now: time.Now().Add(2 * time.Hour), rows: map[Kind]*Row{Logs: {}}}
	at := func(name string, age time.Duration) {
		t.Helper()
		if err := os.Chtimes(filepath.Join(o.State, name), r.now, r.now.Add(-age)); err != nil {
			t.Fatal(err)
		}
	}
	at("deadman/lnd-3.log", time.Hour-time.Second)
	if err := r.keepers(t.Context()); err != nil {
		t.Fatal(err)
	}
	for name, want := range stays {
		if o.has(name) != want {
			t.Errorf("%s is there: %t", name, !want)
		}
	}
	if got := *r.rows[Logs]; got.Count != 6 || got.Gone != 2 {
		t.Errorf("%+v", got)
	}
	// To the moment.
	now, err := os.Stat(filepath.Join(o.State, "deadman/lnd-3.log"))
	if err != nil {
		t.Fatal(err)
	}
	if r.now = now.ModTime().Truncate(time.Second).Add(time.Hour); r.keepers(t.Context()) != nil || o.has("deadman/lnd-3.log") {
		t.Error("it stays longer than it is to")
	}
	if err := os.RemoveAll(filepath.Join(o.State, "deadman")); err != nil {
		t.Fatal(err)
	}
	if err := r.keepers(t.Context()); err != nil {
		t.Errorf("a home that was never armed: %v", err)
	}
	o.put("deadman", "a file")
	if err := r.keepers(t.Context()); err == nil {
		t.Error("records that cannot be read are none")
	}
}

// A daemon that is gone leaves a folder with a socket in it; one that answers, one's own, and what has another name stays.
func TestTheSocketsOfDaemonsThatAreGoneGo(t *testing.T) {
	o := newOwned(t)
	runtime, err := os.MkdirTemp("", "st") // a socket's path is short
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(runtime)
	stays := map[string]bool{"aaaaaaaaaaaa": false, "bbbbbbbbbbbb": true, "cccccccccccc": true, "dddddddddddd": true, "odd": true}
	for name := range stays {
		folder := filepath.Join(runtime, name)
		if err := errors.Join(os.Mkdir(folder, 0o700), leaveSocket(filepath.Join(folder, "daemon.sock"))); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(os.Remove(filepath.Join(runtime, "bbbbbbbbbbbb/daemon.sock")), os.Chmod(filepath.Join(runtime, "dddddddddddd"), 0o710)); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("unix", filepath.Join(runtime, "bbbbbbbbbbbb/daemon.sock"))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	o.Socket, o.Runtime = filepath.Join(runtime, "cccccccccccc/daemon.sock"), []string{filepath.Join(runtime, "absent"), runtime}
	if err := o.Sweep(t.Context()); err != nil {
		t.Fatal(err)
	}
	for name, want := range stays {
		if _, err := os.Lstat(filepath.Join(runtime, name)); (err == nil) != want {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestARoundThatIsToldToEndRemovesNothingMore(t *testing.T) {
	o := newOwned(t)
	ended, _ := o.add(change.Failed, 31*24*time.Hour)
	o.put("workspaces/"+string(ended)+"/upper/a.txt", "x")
	ctx, end := context.WithCancelCause(t.Context())
	why := errors.New("told to end")
	o.stuck = errors.New("it is stuck")
	o.Changes = ending{o, func() { end(why) }}
	report, err := o.Collect(ctx, ann)
	if !errors.Is(err, why) || len(report.Notes)+len(report.Rows) > 0 || !o.has("changes/"+string(ended)) {
		t.Errorf("%v, %+v", err, report)
	}
}

// ending ends a round as it clears a workspace.
type ending struct {
	*owned
	end func()
}

func (e ending) ClearWorkspace(ctx context.Context, c id.Change, kept bool) (bool, error) {
	e.end()
	return e.owned.ClearWorkspace(ctx, c, kept)
}

func TestEverythingInTheStateOfAHomeHasAKind(t *testing.T) {
	for name, want := range map[string]Kind{
		"sallyport.db": Database, "sallyport.db-wal": Database, "sallyport.db-shm": Database, "trees": Layers, "groups": GroupFiles, "releases": Releases, "logs": Logs,
		"sallyport.db.old": Backups, "strange": Other,
	} {
		if kind, counted := kindOf(name); kind != want || counted {
			t.Errorf("%s is %q, counted %t", name, kind, counted)
		}
	}
	for _, name := range []string{"layers", "stock", "workspaces", "repos", "sessions", "changes", "deadman", "gone", "backups"} {
		if kind, counted := kindOf(name); kind != "" || !counted {
			t.Errorf("%s is %q, counted %t", name, kind, counted)
		}
	}
}

// A daemon that stays sweeps at its start and every day; what did not finish is told, unless the daemon ends.
func TestADaemonThatStaysSweepsEveryDay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newOwned(t)
		var mu sync.Mutex // a timer of the bubble orders nothing for the race detector
		var said bytes.Buffer
		o.Log = slog.New(slog.NewTextHandler(&said, nil))
		ctx, end := context.WithCancel(t.Context())
		defer end()
		sweeps, left := 0, func() error { return nil }
		o.Left = []leftover.Part{part(func(context.Context) ([]leftover.Item, error) {
			mu.Lock()
			defer mu.Unlock()
			sweeps++
			return nil, left()
		})}
		mu.Lock()
		ran := make(chan error, 1)
		go func() { ran <- o.Run(ctx) }()
		after := func(d time.Duration, want, told int) {
			t.Helper()
			mu.Unlock()
			time.Sleep(d)
			synctest.Wait()
			mu.Lock()
			if n := strings.Count(said.String(), "the sweep did not finish"); sweeps != want || n != told {
				t.Errorf("after %s it has swept %d times and told %d times, want %d and %d", d, sweeps, n, want, told)
			}
		}
		after(0, 1, 0)
		after(sweepEvery-1, 1, 0)
		after(1, 2, 0)
		left = func() error { return errors.New("cannot tell") }
		after(sweepEvery, 3, 1)
		left = func() error { return nil }
		for told := range 2 { // that what every change adds to could not be made smaller
			if err := o.Workspaces.Remove(t.Context(), id.NewChange()); err != nil {
				t.Error(err)
			}
			after(0, 3, 1)
			if n := strings.Count(said.String(), "could not be made smaller"); n != told {
				t.Errorf("the daemon's log has %q", said.String())
			}
			if told == 0 {
				o.put("repos", "a file")
			}
		}
		left = func() error { end(); return ctx.Err() }
		after(sweepEvery, 4, 1)
		mu.Unlock()
		if err := <-ran; err != nil {
			t.Error(err)
		}
	})
}

func TestAFirstSweepThatDidNotFinishIsToldUnlessTheDaemonEnds(t *testing.T) {
	for ends, told := range map[bool]bool{false: true, true: false} {
		synctest.Test(t, func(t *testing.T) {
			o := newOwned(t)
			var said bytes.Buffer
			o.Log = slog.New(slog.NewTextHandler(&said, nil))
			ctx, end := context.WithCancel(t.Context())
			defer end()
			o.Left = []leftover.Part{part(func(context.Context) ([]leftover.Item, error) {
				if ends {
					end()
				}
				return nil, errors.New("cannot tell")
			})}
			ran := make(chan error, 1)
			go func() { ran <- o.Run(ctx) }()
			synctest.Wait()
			end()
			if err := <-ran; err != nil || strings.Contains(said.String(), "the sweep did not finish") != told {
				t.Errorf("the daemon's log has %q, %v", said.String(), err)
			}
		})
	}
}
