package bwrap_test

import (
	"os"
	"testing"

	"sallyport/internal/runner"
	"sallyport/internal/sandbox"
	"sallyport/internal/sandbox/bwrap"
	"sallyport/internal/sandbox/sandboxtest"
)

// The test binary is its own launcher and init.
func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == "runner" {
		os.Exit(runner.Main(os.Args[2:]))
	}
	os.Exit(m.Run())
}

func self(t testing.TB) string {
	t.Helper()
	path, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

func owner() sandbox.Owner {
	if os.Geteuid() == 0 {
		return sandbox.Owner{UID: 64123, GID: 64123}
	}
	return sandbox.Owner{UID: uint32(os.Geteuid()), GID: uint32(os.Getegid())}
}

func needBwrap(t testing.TB) {
	t.Helper()
	if _, err := os.Stat("/usr/bin/bwrap"); err != nil {
		t.Skip("SKIPPED: bubblewrap is not installed")
	}
}

func TestTheDriverHoldsThePortsPromises(t *testing.T) {
	needBwrap(t)
	state := t.TempDir()
	d := bwrap.New(bwrap.Config{Self: self(t), Root: state})
	sandboxtest.Run(t, func(t *testing.T) sandboxtest.Setup {
		return sandboxtest.Setup{Driver: d, Owner: owner(), Root: t.TempDir()}
	})
}
