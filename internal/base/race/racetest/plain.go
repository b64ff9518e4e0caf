// Package racetest runs tests without the race detector from a test that has it: what starts many programs, or computes
// much on one goroutine, takes five times as long with it and shows it nothing.
package racetest

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"sallyport/internal/base/race"
)

// Build builds the tests of the package that is being tested into a folder, without the race detector, and returns their program.
func Build(folder string) (string, error) {
	program := filepath.Join(folder, "plain.test")
	// The flags of `make build`, so that most of it is compiled already.
	cmd := exec.Command("go", "test", "-c", "-mod=readonly", "-trimpath", "-o", program, ".")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	cmd.Stderr = os.Stderr
	return program, cmd.Run()
}

// Part reports whether a test that only computes is to do a part of it: with -short, and where the race detector is,
// because Whole does all of it without.
func Part() bool { return testing.Short() || race.Enabled }

// Whole runs all tests of the package once more, without the race detector, if this program has it.
func Whole(t *testing.T) {
	t.Helper()
	if !race.Enabled || testing.Short() {
		t.Skip("SKIPPED: without the race detector each test does all of its work itself; with -short a part is enough")
	}
	if _, err := exec.LookPath("go"); err != nil {
		t.Skip("SKIPPED: go is not installed")
	}
	program, err := Build(t.TempDir())
	if err != nil {
		t.Fatalf("build the tests without the race detector: %v", err)
	}
	out, err := exec.CommandContext(t.Context(), program, "-test.v", "-test.timeout=20m").CombinedOutput()
	t.Logf("%s", out)
	if err != nil {
		t.Errorf("without the race detector: %v", err)
	}
}
