package keeper

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"sallyport/internal/base/code"
	"sallyport/internal/base/deadman"
	"sallyport/internal/base/disk"
	"sallyport/internal/base/disk/disktest"
	"sallyport/internal/base/release"
)

// TestMain makes of this test's binary what a real keeper starts, too: a daemon of two releases, and what it leaves behind.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 {
		switch args := os.Args[1:]; args[0] {
		case "serve", "again", "start", "watch":
			os.Exit(run(args, os.Stdout, os.Stderr, limitsOf(args[1])))
		case "daemon":
			os.Exit(playDaemon(args[1], args[len(args)-1]))
		case "survive":
			survive(args[1], args[2:])
		case "leave":
			_ = exec.Command("/proc/self/exe", "orphan", args[1], strconv.Itoa(os.Getpid())).Start()
			os.Exit(0)
		case "orphan": // tells who adopted it, and ends
			for strconv.Itoa(os.Getppid()) == args[2] {
				time.Sleep(time.Millisecond)
			}
			_ = os.WriteFile(plays(args[1], "adopted-by"), []byte(strconv.Itoa(os.Getppid())), 0o600)
			os.Exit(0)
		}
	}
	var err error
	if plain, hash, err = code.New(); err == nil {
		err = makeFurnished()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	status := m.Run()
	_ = os.RemoveAll(furnished.home) // a temporary folder
	os.Exit(status)
}

// furnished is a home with two small releases and a copy of the old one, which tests copy.
var furnished struct{ home, old, new string }

func makeFurnished() (err error) {
	if furnished.home, err = os.MkdirTemp("", "furnished"); err != nil {
		return err
	}
	releases := release.In(furnished.home, disk.Ops{})
	for says, digest := range map[string]*string{"old": &furnished.old, "new": &furnished.new} {
		from := filepath.Join(furnished.home, says)
		err := errors.Join(os.Mkdir(from, 0o700), os.WriteFile(filepath.Join(from, release.Program), []byte("#!/bin/sh\necho "+says+"\n"), 0o700))
		if err != nil {
			return err
		}
		r, err := releases.Put(from, release.Release{Build: says})
		if err != nil {
			return err
		}
		*digest = r.Digest
	}
	return errors.Join(releases.Use(furnished.old), os.Mkdir(Folder(furnished.home), 0o700), keepOld(disk.Ops{}, furnished.home, furnished.old))
}

// furnish returns a home of a test's own like that, with the copy of the old release or without.
func furnish(t *testing.T, armed bool) (home string) {
	t.Helper()
	home = t.TempDir()
	if err := os.CopyFS(home, os.DirFS(furnished.home)); err != nil {
		t.Fatal(err)
	}
	if !armed {
		if err := os.RemoveAll(Folder(home)); err != nil {
			t.Fatal(err)
		}
	}
	return home
}

// limitsOf are the limits that a home's version on trial has: those that the test says, or this machine's.
func limitsOf(home string) (l Limits) {
	if raw, err := os.ReadFile(plays(home, "limits")); err != nil || json.Unmarshal(raw, &l) != nil {
		return limitsHere()
	}
	return l
}

// plays is where a home says how its daemons play, and where they note what they do.
func plays(home, name string) string { return filepath.Join(home, name) }

func note(home, format string, a ...any) {
	file, err := os.OpenFile(plays(home, "notes"), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		panic(err)
	}
	defer file.Close()
	fmt.Fprintf(file, format+"\n", a...)
}

// playDaemon is `daemon run --kept --home HOME` and `daemon revert --home HOME`.
func playDaemon(verb, home string) int {
	r, _, err := RecordOf(home)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	if verb == "revert" {
		strikes(home, os.Getppid(), r.Step)
		self, _ := os.Executable()
		note(home, "revert from %s at %s with %d survivors", filepath.Base(filepath.Dir(filepath.Dir(self))), r.Step, len(alive(home)))
		if os.Remove(plays(home, "fail")) == nil { // once
			fmt.Println("not yet")
			return 3
		}
		fmt.Println("without a row")
		return 0
	}
	line, err := Answer()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	which := "new"
	if old, _ := os.ReadFile(plays(home, "old")); line.Release == string(old) {
		which = "old"
	}
	note(home, "%s at %s", which, r.Step)
	raw, _ := json.Marshal(line.Keeper)
	_ = os.WriteFile(plays(home, "keeper"), raw, 0o600)
	if which == "new" {
		misbehaves(ctx, line, home, r)
	}
	if err := line.Ready(); err != nil {
		return 1
	}
	go func() {
		for line.Beat() == nil {
			time.Sleep(time.Second)
		}
	}()
	switch {
	case which == "old" && r.Step == Armed:
		strikes(home, line.Keeper.PID, Armed)
		err = line.HandOver(ctx, r.Change)
		note(home, "handed over: %v", err)
		return 0
	case which == "new" && r.Step == Handed:
		strikes(home, line.Keeper.PID, Handed)
	case which == "new": // the keeper starts it again after that
		if err = playNew(ctx, line, home, r); err != nil {
			note(home, "%v", err)
			return 1
		}
	}
	<-ctx.Done()
	note(home, "%s ends", which)
	return 0
}

func playNew(ctx context.Context, line *Line, home string, r Record) error {
	strikes(home, line.Keeper.PID, r.Step)
	raw, err := os.ReadFile(plays(home, "code"))
	if err != nil { // nobody has it: this version leaves something behind, and dies
		for _, how := range []string{"stubborn", "chain"} {
			cmd := exec.Command("/proc/self/exe", "survive", home, how)
			cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
			if err := cmd.Start(); err != nil {
				return err
			}
		}
		for len(alive(home)) < 2 {
			time.Sleep(time.Millisecond)
		}
		return fmt.Errorf("it dies")
	}
	if err := exec.Command("/proc/self/exe", "leave", home).Run(); err != nil {
		return err
	}
	if r.Step == Confirmed {
		return line.Finalized(ctx, r.Change)
	}
	for now := r; now.Step == ReadyOnce; { // what the keeper has heard
		if now, _, err = RecordOf(home); err != nil {
			return err
		}
		time.Sleep(time.Millisecond)
	}
	strikes(home, line.Keeper.PID, Ready)
	err = line.Asked(ctx, r.Change)
	strikes(home, line.Keeper.PID, Asked)
	left, wrong := line.Confirm(ctx, r.Change, "AAAA-AAAA-AAAA", nil)
	note(home, "asked: %v; a wrong code: %d left, %v", err, left, wrong)
	if _, err = line.Confirm(ctx, r.Change, string(raw), []byte(`"somebody"`)); err != nil {
		return err
	}
	now, _, err := RecordOf(home)
	note(home, "%s by %s, %v", now.Step, now.By, err)
	strikes(home, line.Keeper.PID, Confirmed)
	return line.Finalized(ctx, r.Change)
}

// survive is what a version leaves behind: a process that does not end when asked, and one that is another every few moments. Both end by
// themselves after some minutes, should nobody end them.
func survive(home string, how []string) {
	signal.Ignore(syscall.SIGTERM, syscall.SIGHUP)
	_ = os.WriteFile(plays(home, "survivor-"+strconv.Itoa(os.Getpid())), nil, 0o600)
	end := time.Now().Add(5 * time.Minute)
	if len(how) > 1 {
		unix, _ := strconv.ParseInt(how[1], 10, 64)
		end = time.Unix(unix, 0)
	}
	for ; time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		if how[0] == "chain" {
			cmd := exec.Command("/proc/self/exe", "survive", home, "chain", strconv.FormatInt(end.Unix(), 10))
			cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
			if cmd.Start() == nil {
				break
			}
		}
	}
	os.Exit(0)
}

// alive returns the survivors that run.
func alive(home string) (pids []int) {
	paths, _ := filepath.Glob(plays(home, "survivor-*"))
	for _, path := range paths {
		pid, _ := strconv.Atoi(strings.TrimPrefix(filepath.Base(path), "survivor-"))
		if is, err := deadman.Look(pid); err == nil && deadman.Alive(is) {
			pids = append(pids, pid)
		}
	}
	return pids
}

// armedHome is a home with two releases of this binary and an armed host change.
func armedHome(t *testing.T) (string, Record) {
	t.Helper()
	home := t.TempDir()
	self, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	r := Record{Change: "chg-1", Code: hash}
	for _, version := range []*string{&r.Old, &r.New} {
		from := t.TempDir()
		self = append(self, 0) // another version
		disktest.Put(t, filepath.Join(from, release.Program), self, 0o700)
		is, err := release.In(home, disk.Ops{}).Put(from, release.Release{})
		if err != nil {
			t.Fatal(err)
		}
		*version = is.Digest
	}
	now, err := deadman.Now()
	if err != nil {
		t.Fatal(err)
	}
	r.Due = deadman.Deadline{Set: now, In: 30 * time.Minute}
	r.Slack = 10 * time.Minute // no busy machine is to be judged here
	if err := release.In(home, disk.Ops{}).Use(r.Old); err != nil {
		t.Fatal(err)
	}
	disktest.Put(t, plays(home, "old"), r.Old, 0o600)
	if err := Arm(disk.Ops{}, home, r, 1<<20); err != nil {
		t.Fatal(err)
	}
	return home, r
}

// keeps starts a keeper of a home. The test's end ends it, and whatever keeper comes after it.
func keeps(t *testing.T, home string, env ...string) *exec.Cmd {
	t.Helper()
	return keepsBy(t, "/proc/self/exe", home, env...)
}

func keepsBy(t *testing.T, program, home string, env ...string) *exec.Cmd {
	t.Helper()
	log, err := os.OpenFile(plays(home, "log"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(program, "serve", home)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.Env = append(os.Environ(), env...)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		_ = cmd.Wait()
		var next deadman.Process
		if raw, err := os.ReadFile(plays(home, "keeper")); err == nil && json.Unmarshal(raw, &next) == nil && deadman.Alive(next) {
			_ = syscall.Kill(next.PID, syscall.SIGTERM)
			await(t, "end of the next keeper", func() bool { return !deadman.Alive(next) })
		}
		await(t, "end of all that runs in the home", func() bool { return killsAll(home) })
		log.Close()
		if t.Failed() {
			raw, _ := os.ReadFile(log.Name())
			notes, _ := os.ReadFile(plays(home, "notes"))
			t.Logf("the keeper:\n%s\nthe daemons:\n%s", raw, notes)
		}
	})
	return cmd
}

// killsAll kills what names a home in its command line, which may write there yet; true if nothing does.
func killsAll(home string) bool {
	none := true
	paths, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, path := range paths {
		raw, err := os.ReadFile(path)
		if err != nil || !bytes.Contains(raw, []byte("\x00"+home+"\x00")) { // its last word ends so, too
			continue
		}
		none = false
		if pid, err := strconv.Atoi(filepath.Base(filepath.Dir(path))); err == nil {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	}
	return none
}

// await waits for something that is about to come.
func await(t *testing.T, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(4 * time.Minute); !is(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("no %s", what)
		}
	}
}

func over(home string) func() bool {
	return func() bool {
		_, is, err := RecordOf(home)
		return !is && err == nil
	}
}

// childrenOf says how many children a keeper has, the dead ones that nobody took away among them.
func childrenOf(keeper *exec.Cmd) (n int) {
	paths, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", keeper.Process.Pid))
	for _, path := range paths {
		raw, _ := os.ReadFile(path)
		n += len(strings.Fields(string(raw)))
	}
	return n
}

func noted(t *testing.T, home string) string {
	t.Helper()
	raw, err := os.ReadFile(plays(home, "notes"))
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(raw))
}
