package keeper

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sallyport/internal/base/deadman"
	"sallyport/internal/base/disk"
	"sallyport/internal/base/disk/disktest"
)

// Who starts a keeper again has what a daemon needs to find its way, and nothing else that its first starter had.
func TestAWatchedKeeperIsStartedAgainWithWhatIsPassed(t *testing.T) {
	home := t.TempDir()
	if err := os.MkdirAll(Folder(home), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("LANG", "xx_XX")
	t.Setenv("SALLYPORT_TOKEN", "not to be passed")
	self, err := deadman.Self()
	if err != nil {
		t.Fatal(err)
	}
	if err := watch(home, self); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := deadman.Disarm(disk.Ops{}, Folder(home), watchName); err != nil {
			t.Error(err)
		}
		await(t, "end of who watches", func() bool { return len(speakingOf(home)) == 0 })
	})
	if len(speakingOf(home)) == 0 {
		t.Error("nobody watches")
	}
	a, err := deadman.Read(deadman.Path(Folder(home), watchName))
	if err != nil {
		t.Fatal(err)
	}
	program, err := os.Executable()
	if err != nil || !slices.Equal(a.Argv, []string{program, "again", home}) {
		t.Errorf("it runs %q, %v", a.Argv, err)
	}
	if a.Daemon != self || !a.Kept || a.Due.In != deadman.LifeMax {
		t.Errorf("it is armed with %+v", a)
	}
	var want []string
	for _, name := range Passed {
		if value, set := os.LookupEnv(name); set {
			want = append(want, name+"="+value)
		}
	}
	if !slices.Equal(a.Env, want) || !slices.Contains(a.Env, "LANG=xx_XX") || strings.Contains(strings.Join(a.Env, " "), "TOKEN") {
		t.Errorf("it passes %q, want %q", a.Env, want)
	}
}

// Whoever stops a daemon once the host change is over finds no keeper started after that.
func TestNoKeeperIsStartedAgainForWhatIsOver(t *testing.T) {
	home := t.TempDir()
	t.Setenv(deadman.RecordVariable, deadman.Path(Folder(home), watchName))
	if err := again(home); err != nil {
		t.Error(err)
	}
	if left, err := os.ReadDir(home); err != nil || len(left) > 0 {
		t.Errorf("it leaves %v, %v", left, err)
	}
}

// What cannot be watched is said before the host is changed.
func TestAKeeperThatNobodyCanWatchIsAnError(t *testing.T) {
	home := t.TempDir()
	if err := errors.Join(os.Mkdir(filepath.Join(home, ".state"), 0o700), os.WriteFile(Folder(home), nil, 0o600)); err != nil { // nothing can be armed there
		t.Fatal(err)
	}
	self, err := deadman.Self()
	if err != nil {
		t.Fatal(err)
	}
	if err := watch(home, self); err == nil {
		t.Error("no error")
	}
}

// A word that is none of a keeper's starts nothing.
func TestAKeeperTakesItsOwnWordsAlone(t *testing.T) {
	home := t.TempDir()
	for _, args := range [][]string{{"serve", "home"}, {"again", "home"}, {"serve", home, home}, {"again", home, home}} {
		cmd := exec.CommandContext(t.Context(), "/proc/self/exe", args...)
		cmd.Dir = home
		out, err := cmd.CombinedOutput()
		if ended := new(exec.ExitError); !errors.As(err, &ended) || ended.ExitCode() != 2 || !strings.Contains(string(out), "usage:") {
			t.Errorf("%q: %v, %q", args, err, out)
		}
	}
	if _, err := os.Stat(filepath.Join(home, ".state")); err == nil {
		t.Error("something was done")
	}
}

// A second keeper ends at once with a status of its own, and one that can keep nothing with another: a service manager tells them apart.
func TestAKeeperThatCannotKeepSaysWhyByItsStatus(t *testing.T) {
	kept, broken := t.TempDir(), t.TempDir()
	held, err := hold(kept, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer held.Close()
	disktest.Put(t, filepath.Join(broken, ".state"), "", 0o600)
	for _, row := range []struct {
		verb, home string
		status     int
		says       string
	}{
		{"serve", kept, ExitTaken, "another sallyport serve keeps this home"},
		{"serve", broken, 1, "keep the home"},
		{"again", broken, 1, "start a keeper again"},
		{"again", kept, 0, ""}, // it is kept
	} {
		out, err := exec.CommandContext(t.Context(), "/proc/self/exe", row.verb, row.home).CombinedOutput()
		status := 0
		if ended := new(exec.ExitError); errors.As(err, &ended) {
			status = ended.ExitCode()
		}
		if status != row.status || !strings.Contains(string(out), row.says) || (len(out) > 0) != (row.says != "") {
			t.Errorf("%s ends with %d, %q; want %d, %q", row.verb, status, out, row.status, row.says)
		}
	}
	for _, pid := range speakingOf(kept) { // who waits for the home; nobody's child who asks by a key
		raw, err := os.ReadFile("/proc/" + pid + "/stat")
		if fields := strings.Fields(string(raw)); err == nil && fields[5] != pid {
			t.Errorf("it has no session of its own: %s", raw)
		}
	}
	if err := held.Close(); err != nil {
		t.Fatal(err)
	}
	await(t, "end of the keeper that was started again", func() bool { return killsAll(kept) })
}

// Where nobody can see whether a keeper has the home, one has it.
func TestAHomeThatCannotBeLookedAtIsKept(t *testing.T) {
	at := t.TempDir()
	err := errors.Join(os.WriteFile(filepath.Join(at, "file"), nil, 0o600), os.Symlink("loop", filepath.Join(at, "loop")))
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]bool{"nothing": false, "file": false, "loop": true} {
		if got := Kept(filepath.Join(at, name)); got != want {
			t.Errorf("%s is kept: %t", name, got)
		}
	}
	for _, name := range []string{"file", "loop"} {
		if _, err := hold(filepath.Join(at, name), 0); err == nil || errors.Is(err, ErrKept) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
