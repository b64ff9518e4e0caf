package client

import (
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"sallyport/internal/base/code"
	"sallyport/internal/base/disk"
	"sallyport/internal/base/disk/disktest"
	"sallyport/internal/base/keeper"
	"sallyport/internal/base/problem"
	"sallyport/internal/door/api"
)

// keep holds the lock of a home as its keeper does.
func keep(t *testing.T, home string) {
	t.Helper()
	folder, err := os.Open(keeper.Folder(home))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { folder.Close() })
	if err := syscall.Flock(int(folder.Fd()), syscall.LOCK_EX); err != nil {
		t.Fatal(err)
	}
}

// TestAWatchIsCutAndNotStoppedWhileTheHostMoves holds that whoever follows a change of the host waits for it, and stays away else.
func TestAWatchIsCutAndNotStoppedWhileTheHostMoves(t *testing.T) {
	home := t.TempDir()
	c := answering(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", api.EventsKind)
		_, _ = w.Write([]byte("event: " + api.NoticeStopped + "\ndata: {}\n\n"))
	})
	c.home = home
	says := func(want error, moves bool) {
		t.Helper()
		if err := c.Watch(t.Context(), "chg-1a2b3c4d", func(api.Notice) error { return nil }); !errors.Is(err, want) || c.HostMoves() != moves {
			t.Errorf("%v, moves %t; want %v", err, c.HostMoves(), want)
		}
	}
	says(ErrStopped, false)

	if err := os.MkdirAll(keeper.Folder(home), 0o700); err != nil {
		t.Fatal(err)
	}
	record := filepath.Join(keeper.Folder(home), "record.json")
	disktest.Put(t, record, "{}", 0o600) // one that cannot be read is one
	says(ErrStopped, false)              // nobody would start it again
	if _, err := (Starter{Person: Person{UID: os.Getuid(), Getenv: func(string) string { return "" }}, Self: "/bin/false", Ops: disk.Ops{}}).start(t.Context(), home); problem.KindOf(err) != problem.Unavailable || !strings.Contains(err.Error(), "only sallyport serve starts a daemon there") {
		t.Errorf("a daemon beside a record: %v", err)
	}

	keep(t, home)
	says(ErrCut, true)
	_, code, err := code.New()
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(keeper.Record{Change: "chg-1a2b3c4d", Step: keeper.Asked, Old: strings.Repeat("a", 64), New: strings.Repeat("b", 64), Code: code})
	if err != nil {
		t.Fatal(err)
	}
	disktest.Put(t, record, text, 0o600)
	if !c.Tries("chg-1a2b3c4d") || c.Tries("chg-of-another") {
		t.Error("it is not told which change the host has on trial")
	}
	if err := os.Remove(record); err != nil {
		t.Fatal(err)
	}
	says(ErrStopped, false)
}

// TestAHostThatIsStoppedAsItIsAskedWhatItIsIsAskedAgain holds that whoever waits for a host on trial gets over its second start.
func TestAHostThatIsStoppedAsItIsAskedWhatItIsIsAskedAgain(t *testing.T) {
	s, home := place(t, "")
	s.Self = "/bin/false"
	if err := os.MkdirAll(keeper.Folder(home), 0o700); err != nil {
		t.Fatal(err)
	}
	keep(t, home)
	l, err := net.Listen("unix", socketOf(t, s, home))
	if err != nil {
		t.Fatal(err)
	}
	var asked atomic.Int32
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if n := asked.Add(1); n == 2 || n == 3 { // it has answered once, and ends; net/http asks once more
			panic(http.ErrAbortHandler)
		}
		_ = json.NewEncoder(w).Encode(api.Daemon{Home: home, API: api.Version, Build: api.Build()})
	})}
	go func() { _ = server.Serve(l) }()
	t.Cleanup(func() { server.Close() })
	if _, err := s.Ensure(t.Context(), home); err != nil || asked.Load() < 5 {
		t.Errorf("asked %d times: %v", asked.Load(), err)
	}
}
