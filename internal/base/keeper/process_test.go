package keeper

import (
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"sallyport/internal/base/deadman"
	"sallyport/internal/base/disk"
	"sallyport/internal/base/release"
)

// TestARealTrialIsConfirmed has real processes on both ends of the pipe.
func TestARealTrialIsConfirmed(t *testing.T) {
	home, r := armedHome(t)
	if err := os.WriteFile(plays(home, "code"), []byte(plain), 0o600); err != nil {
		t.Fatal(err)
	}
	keeper := keeps(t, home, InService+"=1")
	await(t, "end of the host change", over(home))
	want := lines("old at armed", "handed over: <nil>", "new at handed", "new ends", "new at ready 1",
		"asked: <nil>; a wrong code: 4 left, this is not the code", `confirmed by "somebody", <nil>`)
	if got := noted(t, home); got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
	if now, err := release.In(home, disk.Ops{}).Current(); now != r.New || err != nil {
		t.Errorf("current is %.12s, %v", now, err)
	}
	if left := lies(t, home); left != "" {
		t.Errorf("left over: %q", left)
	}

	// What a daemon on trial leaves is the keeper's, and it takes the dead away.
	await(t, "keeper that adopts", func() bool {
		raw, err := os.ReadFile(plays(home, "adopted-by"))
		return err == nil && string(raw) == strconv.Itoa(keeper.Process.Pid)
	})
	await(t, "end of the dead", func() bool { return childrenOf(keeper) == 1 })
}

// What a version on trial leaves behind would work on beside the old one, in the same home. The way back runs from a copy, and after
// all of that is gone.
func TestNothingSurvivesATrialThatGoesBack(t *testing.T) {
	home, r := armedHome(t)
	if err := os.WriteFile(plays(home, "fail"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	keeps(t, home, InService+"=1")
	await(t, "end of the host change", over(home))
	want := lines("old at armed", "handed over: <nil>", "new at handed", "new ends", "new at ready 1", "it dies",
		"revert from old at back with 0 survivors", "revert from old at back with 0 survivors", "old at back")
	if got := noted(t, home); got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
	if now, err := release.In(home, disk.Ops{}).Current(); now != r.Old || err != nil {
		t.Errorf("current is %.12s, %v", now, err)
	}
	if left := alive(home); len(left) > 0 {
		t.Errorf("these run on: %v", left)
	}
	raw, err := os.ReadFile(plays(home, "log"))
	if err != nil || strings.Count(string(raw), `not yet`) != 1 {
		t.Errorf("the log does not say what the way back said: %v", err)
	}
	if left := lies(t, home); left != "" {
		t.Errorf("left over: %q", left)
	}
}

// Services that somebody restarted long before are the keeper's children by then, too.
func TestWhatBeganBeforeADaemonIsNotItsSurvivor(t *testing.T) {
	began := func() (*exec.Cmd, deadman.Process) {
		cmd := exec.Command("/proc/self/exe", "survive", t.TempDir(), "stubborn")
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		is, err := deadman.Look(cmd.Process.Pid)
		if err != nil {
			t.Fatal(err)
		}
		return cmd, is
	}
	end := func(cmd *exec.Cmd) { _ = cmd.Process.Kill(); _ = cmd.Wait() }
	service, older := began()
	defer end(service)
	daemon, is := began()
	for is.Start == older.Start { // the clock of processes is a coarse one
		end(daemon)
		daemon, is = began()
	}
	end(daemon)
	_, survivor := began()
	if err := endSurvivors(is); err != nil {
		t.Error(err)
	}
	if deadman.Alive(survivor) || !deadman.Alive(older) {
		t.Errorf("the survivor is alive: %t, the service is: %t", deadman.Alive(survivor), deadman.Alive(older))
	}
}
