package bwrap

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"testing"
)

// TestARunnerOfHolesIsNotReadIntoMemory: whoever changes the host says what its runner is, before anybody has approved it.
func TestARunnerOfHolesIsNotReadIntoMemory(t *testing.T) {
	dir := t.TempDir()
	own, same, large := filepath.Join(dir, "own"), filepath.Join(dir, "same"), filepath.Join(dir, "large")
	err := errors.Join(os.WriteFile(own, []byte("a runner"), 0o755), os.WriteFile(same, []byte("a runner"), 0o755),
		os.WriteFile(large, nil, 0o755), os.Truncate(large, 256<<20))
	if err != nil {
		t.Fatal(err)
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	if is, err := alike(large, own); err != nil || is {
		t.Errorf("it is the same: %v, %v", is, err)
	}
	runtime.ReadMemStats(&after)
	if took := after.TotalAlloc - before.TotalAlloc; took > 64<<20 {
		t.Errorf("it took %d MiB of memory", took>>20)
	}
	if is, err := alike(same, own); err != nil || !is {
		t.Errorf("the same is not: %v, %v", is, err)
	}
}
