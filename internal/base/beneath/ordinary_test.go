package beneath_test

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"

	"sallyport/internal/base/disk/disktest"
	"sallyport/internal/who/person/persontest"
)

// nobody owns what a test of root's closes.
const nobody = 65534

// asOrdinaryUser runs do as one for whom the modes of files count, and who owns tree. For root that is this thread alone.
func asOrdinaryUser(t *testing.T, tree string, do func()) {
	t.Helper()
	if os.Geteuid() != 0 {
		do()
		return
	}
	err := filepath.WalkDir(tree, func(path string, _ os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return os.Lchown(path, nobody, nobody)
	})
	if err != nil {
		t.Fatal(err)
	}
	persontest.OpenWay(t, filepath.Dir(tree)) // a test's folder is closed to others
	asUser(t, do)
}

// asUser runs do as nobody, on this thread of root's alone.
func asUser(t *testing.T, do func()) {
	t.Helper()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	for _, call := range []uintptr{unix.SYS_SETRESGID, unix.SYS_SETRESUID} {
		if _, _, errno := unix.RawSyscall(call, nobody, nobody, 0); errno != 0 {
			t.Fatal(errno)
		}
		defer func() { _, _, _ = unix.RawSyscall(call, 0, 0, 0) }()
	}
	do()
}

// descriptors is how many this process has open.
func descriptors(t *testing.T) int {
	t.Helper()
	open, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(open)
}

// leavesNothingOpen runs do, and wants as many descriptors afterwards as before.
func leavesNothingOpen(t *testing.T, do func()) {
	t.Helper()
	before := descriptors(t)
	do()
	if after := descriptors(t); after != before {
		t.Errorf("%d descriptors were open, and %d are", before, after)
	}
}

// planted writes files below a folder, by path; the folders on the way are made.
func planted(t *testing.T, top string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		path := filepath.Join(top, name)
		disktest.Put(t, path, text, 0o644)
	}
}

// withDescriptors runs do while this process may have few files open.
func withDescriptors(t *testing.T, most uint64, do func()) {
	t.Helper()
	var was unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &was); err != nil {
		t.Fatal(err)
	}
	few := was
	few.Cur = most
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &few); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &was); err != nil {
			t.Fatal(err)
		}
	}()
	do()
}
