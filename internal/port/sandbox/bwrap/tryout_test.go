package bwrap_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	seccomp "github.com/elastic/go-seccomp-bpf"
	"golang.org/x/sys/unix"

	"sallyport/internal/port/sandbox"
	"sallyport/internal/port/sandbox/bwrap"
)

// faultMark stands at the end of a copy of this test that misbehaves as runner, before the word for how.
const faultMark = "\nfault: "

// misbehave is what a faulty build of the runner does in one of its parts.
func misbehave(part string) {
	f, err := os.Open("/proc/self/exe")
	if err != nil {
		return
	}
	defer f.Close()
	var end [64]byte
	if at, err := f.Seek(-int64(len(end)), io.SeekEnd); err != nil || at < 0 {
		return
	}
	if _, err := io.ReadFull(f, end[:]); err != nil {
		return
	}
	_, fault, ok := strings.Cut(string(end[:]), faultMark)
	if !ok {
		return
	}
	during := func(do func()) {
		runtime.GOMAXPROCS(4)
		go func() {
			for {
				do()
			}
		}()
	}
	switch part + " " + fault {
	case "init exits":
		fmt.Fprintln(os.Stderr, "panic: nothing is ready")
		os.Exit(3)
	case "init hangs":
		hang()
	case "init other":
		frame, _ := sandbox.Frame(sandbox.Event{Hello: sandbox.Protocol + 1})
		_, _ = unix.Write(sandbox.ControlFD, frame)
		hang()
	case "init newer": // in what its launcher is told
		frame, _ := sandbox.Frame(sandbox.Event{Hello: sandbox.Protocol + 1, Speaks: sandbox.Orders})
		_, _ = unix.Write(sandbox.ControlFD, frame)
		hang()
	case "init open":
		during(func() { _ = unix.Prctl(unix.PR_SET_DUMPABLE, 1, 0, 0, 0) })
	case "init weak": // it may stop nobody, and is told so
		stops := []seccomp.NameWithConditions{{Name: "kill", Conditions: []seccomp.Condition{{Argument: 1, Operation: seccomp.Equal, Value: uint64(unix.SIGSTOP)}}}}
		err := seccomp.LoadFilter(seccomp.Filter{NoNewPrivs: true, Flag: seccomp.FilterFlagTSync, Policy: seccomp.Policy{
			DefaultAction: seccomp.ActionAllow, Syscalls: []seccomp.SyscallGroup{{Action: seccomp.ActionErrno, NamesWithCondtions: stops}},
		}})
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	case "init greedy":
		raw := make([]byte, 2<<30)
		for i := 0; i < len(raw); i += os.Getpagesize() {
			raw[i] = 1
		}
		hang()
	case "init chatty":
		during(func() {
			if others, _ := filepath.Glob("/proc/[2-9]"); len(others) == 0 {
				return // it has not said hello yet
			}
			time.Sleep(time.Millisecond) // more would fill the socket
			frame, _ := sandbox.Frame(sandbox.Event{Started: 2})
			_, _ = unix.Write(sandbox.ControlFD, frame)
		})
	case "relay deaf":
		os.Exit(1)
	case "probe silent":
		os.Exit(0)
	case "probe odd", "probe new":
		name := map[string]string{"odd": "become root", "new": "do what no host knew of"}[fault]
		raw, _ := json.Marshal([]sandbox.Tried{{Name: name, Worked: true}})
		_, _ = os.Stdout.Write(raw)
		os.Exit(0)
	}
}

// another lays a folder of programs with a runner that is another build than this one.
func another(t *testing.T, fault string) string {
	t.Helper()
	own, err := os.ReadFile(unwatched(t))
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Dir(newPair(t, append(slices.Clone(own), faultMark+fault...)).runner)
}

// TestAnotherRunnerIsTriedBehindTheWallsOfNow holds SM-913: what can be found out about a candidate's runner without running it outside.
func TestAnotherRunnerIsTriedBehindTheWallsOfNow(t *testing.T) {
	needBwrap(t)
	usual := bwrap.New(bwrap.Config{Self: unwatched(t), Root: t.TempDir()})
	began := time.Now()
	if got, err := usual.TryRunner(t.Context(), another(t, "none")); err != nil || got.Failed != "" || got.Untried != "" || got.Same || got.Tries < 25 {
		t.Fatalf("one without a fault: %+v, %v", got, err)
	}
	patience := max(4*time.Second, 2*time.Since(began)) // one without a fault takes longer on a busy machine
	hasty := bwrap.New(bwrap.Config{Self: unwatched(t), Root: t.TempDir()}).WithPatience(patience).WithoutGroups()
	for fault, want := range map[string]struct{ failed, untried, tail string }{
		"exits":  {failed: "does not start as the first program", tail: "panic: nothing is ready"},
		"hangs":  {failed: "did not start in time"},
		"other":  {untried: fmt.Sprintf("speaks version %d", sandbox.Protocol+1)},
		"newer":  {failed: "does not start as the first program"}, // for it brings no workspace: that it was asked for one counts
		"open":   {failed: "behind it a program in a sandbox can reach into the sandbox's init"},
		"weak":   {failed: "it did not freeze a sandbox: stop every process: "},
		"greedy": {failed: "memory"},
		"deaf":   {failed: "the self-test of this host ended with 1", tail: "the way out:"},
		"silent": {failed: "its own self-test gives no report"},
		"odd":    {failed: "its own self-test says that a program in a sandbox can become root"},
		"new":    {},
		"chatty": {},
	} {
		t.Run(fault, func(t *testing.T) {
			d := usual
			switch fault {
			case "hangs":
				d = hasty
			case "greedy":
				d = bwrap.New(bwrap.Config{Self: unwatched(t), Root: t.TempDir()}).WithoutGroups()
			}
			got, err := d.TryRunner(t.Context(), another(t, fault))
			if err != nil {
				t.Fatal(err)
			}
			switch {
			case want.failed == "" && want.untried == "":
				if got.Failed != "" || got.Untried != "" || got.Same || got.Tries < 25 {
					t.Errorf("%+v", got)
				}
			case want.failed == "" && got.Failed != "", want.untried == "" && got.Untried != "",
				!strings.Contains(got.Failed, want.failed), !strings.Contains(got.Untried, want.untried), !strings.Contains(got.Tail, want.tail):
				t.Errorf("%+v", got)
			}
		})
	}
}

// Nothing of a candidate's runner runs but inside a sandbox, whoever the host is.
func TestAnotherRunnerIsNeverLauncher(t *testing.T) {
	needBwrap(t)
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	mark := filepath.Join(dir, "outside")
	// Inside, that path is not there.
	script := "#!/bin/sh\n(: >" + mark + ") 2>/dev/null\nexec " + sandbox.SelfPath + ` "$@"` + "\n"
	programs := filepath.Dir(newPair(t, []byte(script)).runner)
	d := bwrap.New(bwrap.Config{Self: unwatched(t), Root: t.TempDir()})
	got, err := d.TryRunner(t.Context(), programs)
	if err != nil || got.Failed != "" || got.Tries == 0 {
		t.Errorf("%+v, %v", got, err)
	}
	if _, err := os.Lstat(mark); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("it ran outside of a sandbox: %v", err)
	}
}

// The runner of now is not tried again, and a host that goes takes its try with it.
func TestTheRunnerOfNowIsNotTried(t *testing.T) {
	needBwrap(t)
	p := newPair(t, nil)
	d := p.driver(t, sum(t, p.runner))
	if got, err := d.TryRunner(t.Context(), filepath.Dir(p.runner)); err != nil || got != (sandbox.Tryout{Same: true}) {
		t.Errorf("%+v, %v", got, err)
	}
	gone := errors.New("the host goes")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(gone)
	if got, err := d.TryRunner(ctx, another(t, "none")); err == nil {
		t.Errorf("%+v", got)
	}
}

// What fails with the runner of now as well is no fault of another.
func TestAMachineWhoseSandboxesFailBlamesNoRunner(t *testing.T) {
	needBwrap(t)
	d := bwrap.New(bwrap.Config{Self: unwatched(t), Root: t.TempDir()})
	if _, err := d.Probe(t.Context()); err != nil {
		t.Fatal(err)
	}
	d.WithoutFilter()
	if got, err := d.TryRunner(t.Context(), another(t, "none")); err == nil || !strings.Contains(err.Error(), "the runner of now fails here as well") {
		t.Errorf("%+v, %v", got, err)
	}
}

// hang does nothing for ever. Without a system call Go would end a program all of which waits, where no C is linked.
func hang() {
	for {
		_ = unix.Pause()
	}
}
