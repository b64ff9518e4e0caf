package release

import (
	"testing"

	"golang.org/x/sys/unix"
)

// TestABuildLeavesTheHostHalfOfItsDisk: who writes a Dockerfile is nobody yet that this machine should be full for.
func TestABuildLeavesTheHostHalfOfItsDisk(t *testing.T) {
	if room, err := imageRoom(t.TempDir()); err != nil || room <= 0 || room > imageDiskMax {
		t.Errorf("it has %d, %v", room, err)
	}
	small := t.TempDir()
	if err := unix.Mount("tmpfs", small, "tmpfs", 0, "size=8m"); err != nil {
		t.Skip("SKIPPED: a small disk is mounted by root:", err)
	}
	t.Cleanup(func() { _ = unix.Unmount(small, 0) })
	if room, err := imageRoom(small); err != nil || room != 4<<20 {
		t.Errorf("of 8 MiB it has %d, %v", room, err)
	}
}
