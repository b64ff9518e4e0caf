package runner

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"testing"

	"sallyport/internal/base/disk/disktest"
	"sallyport/internal/port/sandbox"
)

// Both kinds of domain are tried on every kernel that has the newer one.
func TestWhoIsInADomainLooksIntoNobodyOutsideAndMovesFilesAsBefore(t *testing.T) {
	newest := sandbox.LandlockVersion()
	if newest < sandbox.LandlockMin {
		t.Skipf("SKIPPED: Landlock has version %d here", newest)
	}
	other := exec.Command("cat")
	in, err := other.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := other.Start(); err != nil {
		t.Fatal(err)
	}
	defer other.Wait()
	defer in.Close()
	looked := "/proc/" + strconv.Itoa(other.Process.Pid) + "/fd/0"
	if _, err := os.Readlink(looked); err != nil {
		t.Fatalf("the control: %v", err)
	}
	for _, version := range []int{sandbox.LandlockMin, newest} {
		dir := t.TempDir()
		from, to := filepath.Join(dir, "a", "file"), filepath.Join(dir, "b", "file")
		for _, sub := range []string{"a", "b"} {
			if err := os.Mkdir(filepath.Join(dir, sub), 0o755); err != nil {
				t.Fatal(err)
			}
		}
		disktest.Put(t, from, "", 0o644)
		var entered, read, moved error
		done := make(chan struct{})
		go func() {
			defer close(done)
			runtime.LockOSThread()
			if entered = enterDomain(version); entered == nil {
				_, read = os.Readlink(looked)
				moved = os.Rename(from, to)
			}
		}()
		<-done
		if entered != nil || !errors.Is(read, fs.ErrPermission) || moved != nil {
			t.Errorf("version %d: entered %v, read %v, moved %v", version, entered, read, moved)
		}
	}
	if err := enterDomain(sandbox.LandlockMin - 1); err == nil {
		t.Error("a domain in which no file can be moved was entered")
	}
}
