// Package racetest runs tests without the race detector from a test that has it: what starts many programs, or computes
// much on one goroutine, takes five times as long with it and shows it nothing.
package racetest

import (
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"sallyport/internal/base/race"
)

// Noted is an option for GORACE: programs write what the race detector finds into files of a folder. What a daemon that runs beside a test
// prints and how it ends nobody looks at.
func Noted(folder string) string { return "log_path=" + filepath.Join(folder, "race") }

// Found returns what programs have found that were started with Noted; "" if that is nothing.
func Found(folder string) string {
	files, _ := filepath.Glob(filepath.Join(folder, "race.*")) // the pattern is well-formed
	var all strings.Builder
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			text = []byte(err.Error())
		}
		fmt.Fprintf(&all, "%s:\n%s\n", filepath.Base(file), text)
	}
	return all.String()
}

// Build builds the tests of the package that is being tested into a folder, without the race detector, and returns their program.
func Build(folder string) (string, error) { return build(folder, "") }

// BuildWithRunner is Build for tests that are sallyport itself: beside their program it puts the small one that stands in for it around and in
// sandboxes, as `make build` does, and the program takes no other.
func BuildWithRunner(folder string) (string, error) {
	runner := filepath.Join(folder, Runner)
	if err := run("build", "-mod=readonly", "-trimpath", bare, "-ldflags", smallest, "-o", runner, "sallyport/cmd/"+Runner); err != nil {
		return "", err
	}
	if err := os.Chmod(runner, 0o755); err != nil { // what others can write to is not taken
		return "", err
	}
	text, err := os.ReadFile(runner)
	if err != nil {
		return "", err
	}
	return build(folder, fmt.Sprintf("-X sallyport/internal/port/sandbox/bwrap.runnerSum=%x", sha256.Sum256(text)))
}

// Runner is the small program's name.
const Runner = "sallyport-runner"

// smallest leaves out what only a debugger reads: it is a third of what is linked, and of what tests copy and read as a release. bare does not
// even make it.
const (
	smallest = "-s -w"
	bare     = "-gcflags=all=-dwarf=false"
)

func build(folder, more string) (string, error) {
	program := filepath.Join(folder, "plain.test")
	return program, run("test", "-c", "-vet=off", "-mod=readonly", "-trimpath", bare, "-ldflags", smallest+" "+more, "-o", program, ".")
}

// run is go with the flags of `make build`, so that most of it is compiled already.
func run(args ...string) error {
	cmd := exec.Command("go", args...)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	cmd.Stderr = os.Stderr
	return cmd.Run()
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
