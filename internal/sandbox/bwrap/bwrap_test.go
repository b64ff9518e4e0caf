package bwrap_test

import (
	"os"
	"testing"

	"sallyport/internal/runner"
	"sallyport/internal/sandbox/bwrap"
)

func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == "runner" {
		os.Exit(runner.Main(os.Args[2:]))
	}
	os.Exit(m.Run())
}

func TestProbe(t *testing.T) {
	d := bwrap.New(bwrap.Config{Self: os.Args[0], Root: t.TempDir()})
	r, err := d.Probe(t.Context())
	t.Logf("%+v", r)
	for _, c := range r.Checks {
		t.Logf("%+v", c)
	}
	if err != nil {
		t.Fatal(err)
	}
}
