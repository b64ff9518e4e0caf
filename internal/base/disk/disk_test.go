package disk_test

import (
	"errors"
	"syscall"
	"testing"

	"sallyport/internal/base/disk"
)

func TestTheZeroOpsJustRuns(t *testing.T) {
	want := errors.New("full")
	if err := (disk.Ops{}).Do("file:write", func() error { return want }); err != want {
		t.Errorf("err = %v, want what the operation returned", err)
	}
}

func TestAroundStandsInForTheOperationOnOneThread(t *testing.T) {
	ran := false
	ops := disk.Ops{Around: func(op string, do func() error) error {
		if op != "file:write" {
			t.Errorf("op = %q", op)
		}
		before := syscall.Gettid()
		err := do()
		if after := syscall.Gettid(); after != before {
			t.Errorf("moved from thread %d to %d inside an operation", before, after)
		}
		return err
	}}
	if err := ops.Do("file:write", func() error { ran = true; return nil }); err != nil || !ran {
		t.Errorf("ran = %v, err = %v", ran, err)
	}
}
