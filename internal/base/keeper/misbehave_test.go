package keeper

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
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

// strikes kills the keeper of a home, once, where the test says at which step. This daemon dies with it, or is alone from then on.
func strikes(home string, keeper int, step Step) {
	raw, err := os.ReadFile(plays(home, "strike"))
	if err != nil || string(raw) != string(step) || os.Remove(plays(home, "strike")) != nil {
		return
	}
	note(home, "struck at %s", step)
	_ = syscall.Kill(keeper, syscall.SIGKILL)
	select {} // the kernel ends who has lost its keeper
}

// misbehaves is what a bad version does at its start, where the test says which it is. It returns of one that is none.
func misbehaves(ctx context.Context, line *Line, home string, r Record) {
	raw, err := os.ReadFile(plays(home, "bad"))
	if err != nil {
		return
	}
	how, arg, _ := strings.Cut(string(raw), " ")
	switch how {
	case "exits":
		status, _ := strconv.Atoi(arg)
		os.Exit(status)
	case "signal":
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
	case "mute":
		select {}
	case "eats":
		eats(home)
	}
	_ = line.Ready()
	if r.Step == Handed { // the keeper starts it again after that
		<-ctx.Done()
		os.Exit(0)
	}
	for now := r; now.Step == ReadyOnce; time.Sleep(time.Millisecond) {
		now, _, _ = RecordOf(home)
	}
	go func() {
		for line.Beat() == nil {
			time.Sleep(100 * time.Millisecond)
		}
	}()
	switch how {
	case "hangs":
		_ = syscall.Kill(os.Getpid(), syscall.SIGSTOP)
	case "forks":
		forks(home)
	case "orphans": // once, and kills its keeper: this one dies with it
		if err := exec.Command("/proc/self/exe", "survive", home, "stubborn").Start(); err != nil {
			note(home, "%v", err)
		}
		for len(alive(home)) == 0 {
			time.Sleep(time.Millisecond)
		}
		strikes(home, line.Keeper.PID, r.Step)
		os.Exit(1)
	case "deaf": // beats, and says nothing else
	case "guesses":
		for n := 0; err == nil || errors.Is(err, ErrCode); n++ {
			_, err = line.Confirm(ctx, r.Change, fmt.Sprintf("AAAA-AAAA-AAA%c", 'A'+n), nil)
		}
	case "forges": // its own code, and that it was right
		plain, mine, _ := code.New()
		forged := r
		forged.Step, forged.Code, forged.By = Confirmed, mine, json.RawMessage(`"nobody"`)
		err := forged.write(disk.Ops{}, home)
		_, wrong := line.Confirm(ctx, r.Change, plain, nil)
		note(home, "forged: %v; its code: %v; finalized: %v", err, wrong, line.Finalized(ctx, r.Change))
		os.Exit(0)
	case "removes": // the record, the reserve, the copy of the old release, and half of that release itself
		err := errors.Join(os.RemoveAll(filepath.Join(Folder(home), recordName)), os.RemoveAll(filepath.Join(Folder(home), reserveName)),
			os.Truncate(filepath.Join(release.In(home, disk.Ops{}).Dir, r.Old, release.Program), 100))
		note(home, "removed: %v", err)
		os.Exit(0)
	case "babbles": // words that nobody knows, halves of words, and one that never ends
		for _, words := range []string{"hello 99\n", "confirm\n", "confirm 1 {\n", "finalized -1 null\n", "answer 1 {}\n", "ready ready\n", "\x00\xff\n", "asked 2 {\"change\":\"chg-2\"}\n"} {
			_, _ = line.file.WriteString(words)
		}
		_, _ = line.file.WriteString(strings.Repeat("x", 2*wordMax))
		os.Exit(0)
	case "replaces": // the file of the keeper that runs
		err := errors.Join(os.WriteFile(arg+".new", []byte("#!/bin/sh\n"), 0o700), os.Rename(arg+".new", arg))
		note(home, "replaced: %v", err)
		os.Exit(0)
	}
	select {}
}

// TestAVersionThatMisbehavesGoesBack has real processes do what a bad version may do. Whatever it is: the old version is back, whole, by its
// own way back, and nothing is left. What is a matter of patience alone (a beat that does not come) is held by TestATrialOfTheHost.
func TestAVersionThatMisbehavesGoesBack(t *testing.T) {
	for _, row := range []struct {
		name, does string
		short      bool   // the keeper begins with two seconds of the trial left
		says       string // in the keeper's log
	}{
		{"exits with 0", "exits 0", false, "exit status 0"},
		{"exits with 1", "exits 1", false, "exit status 1"},
		{"exits with 75", "exits 75", false, "exit status 75"},
		{"ends by a signal", "signal", false, "signal: "},
		{"is never ready", "mute", true, "in time"},
		{"is ready and hangs", "hangs", true, "in time"},
		{"beats and hears nothing", "deaf", true, "in time"},
		{"guesses codes", "guesses", false, "5 wrong codes"},
		{"forges the record", "forges", false, "exit status 0"},
		{"removes what going back takes", "removes", false, "exit status 0"},
		{"babbles", "babbles", false, "exit status 0"},
		{"replaces the keeper's file", "replaces", false, "exit status 0"},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			home, r := armedHome(t)
			program := filepath.Join(t.TempDir(), Program)
			if err := os.Link("/proc/self/exe", program); err != nil {
				self, err := os.ReadFile("/proc/self/exe")
				syscall.ForkLock.RLock() // what another test starts meanwhile would hold the file open for writing, and nobody could start it
				err = errors.Join(err, os.WriteFile(program, self, 0o700))
				syscall.ForkLock.RUnlock()
				if err != nil {
					t.Fatal(err)
				}
			}
			if row.does == "replaces" {
				row.does += " " + program
			}
			disktest.Put(t, plays(home, "bad"), row.does, 0o600)
			if row.short { // another keeper had it until now
				now, err := deadman.Now()
				if err != nil {
					t.Fatal(err)
				}
				begun := now
				begun.Wall, begun.Up = now.Wall.Add(2*time.Second-trialMin), now.Up+2*time.Second-trialMin
				r.Step, r.Handed, r.Due, r.Armed = Handed, begun, deadman.Deadline{Set: begun, In: trialMin}, begun
				if err := errors.Join(r.write(disk.Ops{}, home), release.In(home, disk.Ops{}).Use(r.New)); err != nil {
					t.Fatal(err)
				}
			}
			k := keepsBy(t, program, home, InService+"=1")
			said := func() string {
				raw, _ := os.ReadFile(plays(home, "log"))
				return string(raw)
			}
			await(t, "end of the host change", func() bool { return strings.Contains(said(), "is over") })
			wentBackWhole(t, home, r)
			if got := noted(t, home); !strings.HasSuffix(got, lines("revert from old at back with 0 survivors", "old at back")) || strings.Contains(got, "confirmed by") {
				t.Errorf("the daemons:\n%s", got)
			}
			if !strings.Contains(said(), row.says) {
				t.Errorf("it is not said: %q", row.says)
			}
			if n := childrenOf(k); n != 1 {
				t.Errorf("the keeper has %d children", n)
			}
		})
	}
}

// wentBackWhole holds that a home is as before its host change.
func wentBackWhole(t *testing.T, home string, r Record) {
	t.Helper()
	releases := release.In(home, disk.Ops{})
	if now, err := releases.Current(); now != r.Old || err != nil {
		t.Errorf("current is %.12s, %v", now, err)
	}
	program, _, err := releases.Open(r.Old)
	if err != nil {
		t.Errorf("the old release: %v", err)
	} else {
		program.Close()
	}
	for _, name := range strings.Fields(lies(t, home)) {
		if name != watchName+".log" && name != watchName+".out" { // what a watcher has to tell
			t.Errorf("left over: %q", name)
		}
	}
}

// TestAHostChangeComesToItsEndWhoeverStartsItsKeeperAgain kills a real keeper at each step, and its daemon with it. With a service the test
// starts it again, as systemd does; without one nobody does but the process apart that the keeper had started.
func TestAHostChangeComesToItsEndWhoeverStartsItsKeeperAgain(t *testing.T) {
	type blow struct {
		at      Step
		service bool
	}
	var blows []blow
	for _, step := range []Step{Armed, Handed, ReadyOnce, Ready, Asked, Confirmed, Back} {
		blows = append(blows, blow{step, true}, blow{step, false})
	}
	for _, b := range disktest.Sample(t, blows, 3) {
		t.Run(fmt.Sprintf("%s, service %t", b.at, b.service), func(t *testing.T) {
			t.Parallel()
			home, r := armedHome(t)
			err := os.WriteFile(plays(home, "strike"), []byte(b.at), 0o600)
			if b.at == Back {
				err = errors.Join(err, os.WriteFile(plays(home, "bad"), []byte("exits 1"), 0o600))
			} else {
				err = errors.Join(err, os.WriteFile(plays(home, "code"), []byte(plain), 0o600))
			}
			if err != nil {
				t.Fatal(err)
			}
			service := InService + "="
			if b.service {
				service += "1"
			}
			keepsBy(t, "/proc/self/exe", home, service)
			await(t, "blow", func() bool { _, err := os.Stat(plays(home, "strike")); return err != nil })
			if b.service {
				await(t, "end of the keeper", func() bool { return !Kept(home) })
				keepsBy(t, "/proc/self/exe", home, service)
			}
			await(t, "end of the host change", over(home))
			if b.at == Back {
				wentBackWhole(t, home, r)
			} else if now, err := release.In(home, disk.Ops{}).Current(); now != r.New || err != nil {
				t.Errorf("current is %.12s, %v", now, err)
			}
			if got := noted(t, home); strings.Count(got, "struck at "+string(b.at)) != 1 {
				t.Errorf("the daemons:\n%s", got)
			}
			await(t, "end of all others", func() bool { // watchers are among them
				return len(speakingOf(home)) <= 2 // keeper and daemon
			})
		})
	}
}

// speakingOf returns the processes that have a home on their command line.
func speakingOf(home string) (pids []string) {
	paths, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, path := range paths {
		if raw, err := os.ReadFile(path); err == nil && strings.Contains(string(raw), home) {
			pids = append(pids, filepath.Base(filepath.Dir(path)))
		}
	}
	return pids
}
