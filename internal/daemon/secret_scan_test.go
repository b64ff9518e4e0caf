package daemon

import (
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"testing"

	"golang.org/x/sys/unix"

	"sallyport/internal/door/api"
	"sallyport/internal/rule/metric"
)

// A scan that would enter a mount could end in /proc, or in a disk that answers after minutes.
func TestASecretScanNamesAMountAndDoesNotEnterIt(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root may mount")
	}
	root := t.TempDir()
	disk := filepath.Join(root, "disk")
	if err := os.Mkdir(disk, 0o755); err != nil {
		t.Fatal(err)
	}
	writeFile(t, filepath.Join(root, "plain"), []byte("nothing\n"), 0o644)

	var failed []api.SecretFailure
	var done api.SecretProgress
	scan := func() error {
		runtime.LockOSThread() // and never unlocked: the thread ends with its mounts
		if err := unix.Unshare(unix.CLONE_NEWNS); err != nil {
			return err
		}
		if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
			return err
		}
		if err := unix.Mount("none", disk, "tmpfs", 0, "size=64k"); err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(disk, "entered"), []byte("nothing\n"), 0o644); err != nil {
			return err
		}
		rules, err := newSecretRules(nil, &metric.Set{})
		if err != nil {
			return err
		}
		return rules.Scan(t.Context(), root, 0, func(line api.SecretLine) error {
			if line.Failed != nil {
				failed = append(failed, *line.Failed)
			}
			if line.Done != nil {
				done = *line.Done
			}
			return nil
		})
	}
	answer := make(chan error)
	go func() { answer <- scan() }()
	if err := <-answer; err != nil {
		t.Fatal(err)
	}

	want := []api.SecretFailure{{File: "disk", Reason: "it lies on another file system: scan it by its own path"}}
	if !slices.Equal(failed, want) || done.Files != 1 {
		t.Errorf("%d files scanned and failed %v, want one and %v", done.Files, failed, want)
	}
}
