package deadman_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sallyport/internal/base/deadman"
	"sallyport/internal/base/disk"
	"sallyport/internal/base/disk/disktest"
)

// A record that a loss of power empties or forgets would leave a landing that nobody brings to its end.
func TestARecordIsOnTheDiskBeforeItCountsAndItsGoingToo(t *testing.T) {
	calls := disktest.Calls(t, func(dir string) {
		a := armed(t)
		in := filepath.Join(dir, "deadman")
		if err := deadman.Arm(disk.Ops{}, in, a); err != nil {
			t.Error(err)
		}
		disktest.Say("armed")
		if err := deadman.Disarm(disk.Ops{}, in, a.Landing); err != nil {
			t.Error(err)
		}
		disktest.Say("disarmed")
	})
	disktest.Ordered(t, calls, `fsync \.`,
		`fsync deadman/\.lnd-0a1b2c3d\.new`, `rename deadman/\.lnd-0a1b2c3d\.new deadman/lnd-0a1b2c3d\.json`, `fsync deadman`, `say armed`,
		`remove deadman/lnd-0a1b2c3d\.json`, `fsync deadman`, `say disarmed`)
}

// The record holds the daemon's environment, and the command's output may hold anything.
func TestTheFolderOfRecordsAndAllInItAreTheOwnersAlone(t *testing.T) {
	dir, record, d := watched(t, `echo said; umask > "$DIR/umask"; touch "$DIR/made"; rm "$DIR/lnd-0a1b2c3d.json"`)
	if err := d.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	until(t, "the keeper has ended", func() bool { return len(keepers(t, record)) == 0 })
	for _, name := range []string{"lnd-0a1b2c3d.log", "lnd-0a1b2c3d.out", "made"} {
		if info, err := os.Stat(filepath.Join(dir, name)); err != nil || info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s: %v, %v", name, info, err)
		}
	}
	if umask, err := os.ReadFile(filepath.Join(dir, "umask")); err != nil || string(umask) != "0077\n" {
		t.Errorf("the command is run with umask %q, %v", umask, err)
	}

	in := filepath.Join(t.TempDir(), "deadman")
	if err := deadman.Arm(disk.Ops{}, in, armed(t)); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(in); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("%v, %v", info, err)
	}
}

func TestTheCommandSeesTheRecordsEnvironmentAndWhichRecordItIs(t *testing.T) {
	t.Setenv("OF_THE_STARTER", "1")
	dir, record, d := watched(t, `/usr/bin/env > "$DIR/env"; rm "$DIR/lnd-0a1b2c3d.json"`)
	if err := d.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	until(t, "the keeper has ended", func() bool { return len(keepers(t, record)) == 0 })
	raw, err := os.ReadFile(filepath.Join(dir, "env"))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(raw)) {
		name, _, _ := strings.Cut(line, "=")
		if !slices.Contains([]string{"PATH", "DIR", "PWD", "SHLVL", "_", deadman.RecordVariable}, name) { // of the shell's own are three
			t.Errorf("it sees %s", line)
		}
	}
}
