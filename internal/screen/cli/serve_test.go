package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sallyport/internal/base/problem"
	"sallyport/internal/door/api"
	"sallyport/internal/door/client"
)

// A daemon that a command has started ends for a keeper that is there, and for none else: where no keeper can be, it serves on.
func TestServeEndsADaemonForAKeeperAlone(t *testing.T) {
	none := problem.Errorf(problem.Unavailable, "ls -l /bin", "there is no keeper beside this program")
	for name, row := range map[string]struct {
		is     api.Daemon
		turn   bool // an assistant is in the middle of one
		cannot error
		ends   bool
	}{
		"it does nothing":    {ends: true},
		"it is at work":      {is: api.Daemon{Working: 1}},
		"it is in a turn":    {turn: true},
		"a keeper has it":    {is: api.Daemon{Keeper: &api.Keeper{}}},
		"there is no keeper": {cannot: none},
	} {
		home := t.TempDir()
		if err := os.Mkdir(filepath.Join(home, ".state"), 0o700); err != nil {
			t.Fatal(err)
		}
		serves := exec.Command("sleep", "1000")
		if err := serves.Start(); err != nil {
			t.Fatal(err)
		}
		ended := make(chan error, 1)
		go func() { ended <- serves.Wait() }()
		stops := false
		mux := http.NewServeMux()
		mux.HandleFunc(api.DaemonShow.Pattern(), func(w http.ResponseWriter, _ *http.Request) {
			row.is.PID = serves.Process.Pid
			_ = json.NewEncoder(w).Encode(row.is)
		})
		mux.HandleFunc(api.ChatList.Pattern(), func(w http.ResponseWriter, _ *http.Request) {
			_ = json.NewEncoder(w).Encode([]api.Chat{{ID: "cht-00000001", Live: true}, {ID: "cht-00000002", Live: true, Working: row.turn}})
		})
		mux.HandleFunc(api.DaemonStop.Pattern(), func(w http.ResponseWriter, _ *http.Request) {
			stops = true
			_ = serves.Process.Kill()
			_, _ = w.Write([]byte("{}"))
		})
		socket := filepath.Join(t.TempDir(), "s")
		l, err := net.Listen("unix", socket)
		if err != nil {
			t.Fatal(err)
		}
		server := &http.Server{Handler: mux, ReadHeaderTimeout: time.Minute}
		served := make(chan error, 1)
		go func() { served <- server.Serve(l) }()

		var out, errs bytes.Buffer
		keeps := false
		code := Main(Program{
			In: strings.NewReader(""), Out: &out, Err: &errs, Dir: func() (string, error) { return "/", nil }, Getenv: func(string) string { return "" },
			Connect: func(context.Context, string, bool) (*client.Client, error) { return client.New(socket), nil },
			Host: Host{Keep: func(_ context.Context, of string, makeWay func() error) error {
				if row.cannot != nil {
					return row.cannot
				}
				keeps = of == home
				return makeWay()
			}},
		}, []string{"serve", home})
		server.Close()
		<-served
		if stops != row.ends || keeps != (row.cannot == nil) || (code == 0) != (row.cannot == nil) {
			t.Errorf("%s: stopped %t, kept %t, exit %d: %s%s", name, stops, keeps, code, out.String(), errs.String())
		}
		_ = serves.Process.Kill() // ended already is as good
		<-ended
	}
}

// TestStopWithWaitWaitsForATurnToo holds that no assistant is interrupted by who has said that all work is to come to its end.
func TestStopWithWaitWaitsForATurnToo(t *testing.T) {
	for name, row := range map[string]struct {
		words  []string
		api    int // that the daemon speaks
		broken bool
		turns  int // how often it says that one is under way
		asked  int // how often it was asked by the time it was stopped; -1 = it was not
		told   string
	}{
		"without":                {words: []string{"daemon", "stop"}, api: api.Version, turns: 1000},
		"a turn":                 {words: []string{"daemon", "stop", "--wait"}, api: api.Version, turns: 1, asked: 3, told: "waiting for the turn of echo in cht-00000001 and 1 more\n"},
		"nothing":                {words: []string{"daemon", "stop", "--wait"}, api: api.Version, asked: 2},
		"it cannot be seen":      {words: []string{"daemon", "stop", "--wait"}, api: api.Version, broken: true, asked: -1},
		"it speaks another wire": {words: []string{"daemon", "stop", "--wait"}, api: api.Version + 7, broken: true, asked: 2},
	} {
		serves := exec.Command("sleep", "1000")
		if err := serves.Start(); err != nil {
			t.Fatal(err)
		}
		ended := make(chan error, 1)
		go func() { ended <- serves.Wait() }()
		asked, stopped := 0, -1
		mux := http.NewServeMux()
		mux.HandleFunc(api.DaemonShow.Pattern(), func(w http.ResponseWriter, _ *http.Request) {
			_ = json.NewEncoder(w).Encode(api.Daemon{PID: serves.Process.Pid, API: row.api})
		})
		mux.HandleFunc(api.ChatList.Pattern(), func(w http.ResponseWriter, _ *http.Request) {
			if asked++; row.broken {
				w.WriteHeader(http.StatusInternalServerError)
				return
			}
			at := asked <= row.turns
			_ = json.NewEncoder(w).Encode([]api.Chat{{ID: "cht-00000009", Group: "idle", Live: true}, {ID: "cht-00000001", Group: "echo", Working: at}, {ID: "cht-00000002", Group: "echo", Working: at}})
		})
		mux.HandleFunc(api.DaemonStop.Pattern(), func(w http.ResponseWriter, _ *http.Request) {
			stopped = asked
			_ = serves.Process.Kill()
			_, _ = w.Write([]byte("{}"))
		})
		socket := filepath.Join(t.TempDir(), "s")
		l, err := net.Listen("unix", socket)
		if err != nil {
			t.Fatal(err)
		}
		server := &http.Server{Handler: mux, ReadHeaderTimeout: time.Minute}
		served := make(chan error, 1)
		go func() { served <- server.Serve(l) }()

		var out, errs bytes.Buffer
		code := Main(Program{
			In: strings.NewReader(""), Out: &out, Err: &errs, Dir: func() (string, error) { return "/", nil }, Getenv: func(string) string { return "/h" },
			Connect: func(context.Context, string, bool) (*client.Client, error) { return client.New(socket), nil },
		}, row.words)
		server.Close()
		<-served
		if stopped != row.asked || (code == 0) != (row.asked >= 0) || row.asked >= 0 && errs.String() != row.told {
			t.Errorf("%s: stopped after %d questions, exit %d: %s%s", name, stopped, code, out.String(), errs.String())
		}
		_ = serves.Process.Kill() // ended already is as good
		<-ended
	}
}
