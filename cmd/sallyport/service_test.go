package main

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"golang.org/x/sys/unix"
)

// service is a real little web service for the stories of trials. Its code is one file, app.txt, in the
// repository: a version and how that behaves. `service serve ADDRESS FILE MARK` serves, `service get URL` asks,
// `service stop PIDFILE ADDRESS` ends the one that runs and waits until it is gone.
func service() int {
	if err := serviceVerb(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "service:", err)
		return 1
	}
	return 0
}

func serviceVerb(args []string) error {
	switch {
	case len(args) == 4 && args[0] == "serve":
		return serveCode(args[1], args[2], args[3])
	case len(args) == 2 && args[0] == "get":
		return get(args[1])
	case len(args) == 3 && args[0] == "stop":
		return stopService(args[1], args[2])
	}
	return fmt.Errorf("no such verb: %q", args)
}

// serveCode is the service; it behaves as its code says.
func serveCode(address, code, mark string) error {
	raw, err := os.ReadFile(code)
	if err != nil {
		return err
	}
	version, behaviour, _ := strings.Cut(strings.TrimSpace(string(raw)), " ")
	answers := func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, version) }
	health := answers
	switch behaviour {
	case "exits":
		return fmt.Errorf("%s cannot start", version)
	case "starts once": // what it leaves behind does not let it start again
		if _, err := os.Stat(mark); err == nil {
			return fmt.Errorf("%s cannot start again: there is a mark", version)
		}
		if err := os.WriteFile(mark, nil, 0o600); err != nil {
			return err
		}
	case "hangs":
		health = func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }
	case "answers health only":
		answers = func(w http.ResponseWriter, _ *http.Request) {
			http.Error(w, version+" is broken", http.StatusInternalServerError)
		}
	case "eats":
		if err := hungry(); err != nil {
			return err
		}
	}
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return err
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /", answers)
	mux.HandleFunc("GET /health", health)
	mux.HandleFunc("GET /die", func(http.ResponseWriter, *http.Request) { os.Exit(7) })
	return (&http.Server{Handler: mux, ReadHeaderTimeout: time.Minute}).Serve(listener)
}

// hungry begins to eat memory, up to a limit as `ulimit -v` would set it: what is in use and a little more, because
// a program with the race detector is large from the start.
func hungry() error {
	raw, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return err
	}
	first, _, _ := strings.Cut(string(raw), " ")
	pages, err := strconv.ParseUint(first, 10, 64)
	if err != nil {
		return err
	}
	most := pages*uint64(os.Getpagesize()) + 64<<20
	if err := unix.Setrlimit(unix.RLIMIT_AS, &unix.Rlimit{Cur: most, Max: most}); err != nil {
		return err
	}
	go func() {
		for eaten := [][]byte{}; ; {
			eaten = append(eaten, make([]byte, 1<<20))
		}
	}()
	return nil
}

// get prints what a URL answers.
func get(url string) error {
	answer, err := (&http.Client{Timeout: 30 * time.Second}).Get(url)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if _, err := io.Copy(os.Stdout, answer.Body); err != nil {
		return err
	}
	if answer.StatusCode != http.StatusOK {
		return errors.New(answer.Status)
	}
	return nil
}

// stopService ends the service that a file names, if it is the one that serves address; none is fine.
func stopService(pidFile, address string) error {
	raw, err := os.ReadFile(pidFile)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(raw)))
	if err != nil {
		return err
	}
	words, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	if err != nil || !strings.Contains(string(words), "serve\x00"+address+"\x00") {
		return nil // it has ended, and its number may be another's
	}
	if err := kill(pid); err != nil && !errors.Is(err, unix.ESRCH) {
		return err
	}
	return nil
}

// cmdTarget makes a repository's code a service that runs, and the home's target for it: target VARIABLE DIR
// [WITHIN], where WITHIN is how long it may take to answer. VARIABLE becomes its URL. What stands in app.txt is started.
func cmdTarget(ts *testscript.TestScript, _ bool, args []string) {
	if len(args) < 2 || len(args) > 3 {
		ts.Fatalf("usage: target VARIABLE DIR [WITHIN]")
	}
	within := "30s"
	if len(args) == 3 {
		within = args[2]
	}
	repo, home := ts.MkAbs(args[1]), ts.Getenv("SALLYPORT_HOME")
	dir := filepath.Join(ts.Getenv("WORK"), servicesDir, filepath.Base(repo))
	for _, folder := range []string{dir, home} {
		ts.Check(os.MkdirAll(folder, 0o700))
	}
	address, err := freeAddress()
	ts.Check(err)
	restart := filepath.Join(dir, "restart")
	for name, text := range map[string]string{
		"address": address,
		"restart": fmt.Sprintf("#!/bin/sh\nset -e\nexport GORACE=atexit_sleep_ms=0\ncd %[1]s\nservice stop %[2]s/pid %[3]s\n"+
			"service serve %[3]s app.txt %[2]s/mark </dev/null >>%[2]s/log 2>&1 &\necho $! >%[2]s/pid\n", repo, dir, address),
	} {
		ts.Check(os.WriteFile(filepath.Join(dir, name), []byte(text), 0o700))
	}
	config := filepath.Join(home, "sallyport.yaml")
	text, err := os.ReadFile(config)
	if errors.Is(err, os.ErrNotExist) {
		text, err = []byte("targets:\n"), nil
	}
	ts.Check(err)
	text = fmt.Appendf(text, "  - repository: %s\n    restart: %s\n    probe: {http: 'http://%s/health', healthy: 1s, within: %s}\n", repo, restart, address, within)
	ts.Check(os.WriteFile(config, text, 0o600))
	ts.Setenv(args[0], "http://"+address)
	ts.Check(ts.Exec(restart))
	cmdUntil(ts, false, []string{"^v1", "service", "get", "http://" + address})
}

// servicesDir has a folder for each service of a story, below the story's.
const servicesDir = ".services"

// leaveServices ends the services of a story.
func leaveServices(dir string) {
	all, _ := filepath.Glob(filepath.Join(dir, servicesDir, "*", "address")) // the pattern is well-formed
	for _, name := range all {
		address, err := os.ReadFile(name)
		if err == nil {
			err = stopService(filepath.Join(filepath.Dir(name), "pid"), string(address))
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, "stop the service:", err)
		}
	}
}

// freeAddress finds a port that nobody listens on, below those that the kernel hands out by itself, so that
// nobody gets it by chance while the service restarts.
func freeAddress() (string, error) {
	const first, last = 20_000, 32_000
	for try := range last - first {
		address := fmt.Sprintf("127.0.0.1:%d", first+(os.Getpid()*131+int(time.Now().UnixNano()/1000)+try)%(last-first))
		listener, err := net.Listen("tcp", address)
		if err == nil {
			return address, listener.Close()
		}
	}
	return "", errors.New("no port is free")
}
