package beneath_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"sallyport/internal/base/beneath"
	"sallyport/internal/base/disk/disktest"
)

// world is a folder with a tree, and what lies beside it.
func world(t *testing.T) (tree string, top int) {
	t.Helper()
	root := t.TempDir()
	tree = filepath.Join(root, "tree")
	for _, dir := range []string{"tree/folder", "outside"} {
		if err := os.MkdirAll(filepath.Join(root, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for path, text := range map[string]string{"tree/file": "ours", "tree/folder/file": "ours", "outside/file": "theirs"} {
		disktest.Put(t, filepath.Join(root, path), text, 0o644)
	}
	for link, target := range map[string]string{
		"to-file": "file", "to-folder": "folder", "to-outside": "../outside", "absolute": "/etc/passwd", "nowhere": "missing", "folder/up": "../file",
	} {
		if err := os.Symlink(target, filepath.Join(tree, link)); err != nil {
			t.Fatal(err)
		}
	}
	return tree, opened(t)(beneath.Top(tree, unix.O_RDONLY))
}

func opened(t *testing.T) func(fd int, err error) int {
	return func(fd int, err error) int {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { unix.Close(fd) })
		return fd
	}
}

func TestWithinIsAsSeenByWhoseRootTheFolderIs(t *testing.T) {
	tree, top := world(t)
	for link, target := range map[string]string{"rooted": "/folder/file", "up": "../../../../folder/../file", "out": "/../outside/file", "magic": "/proc/self/root/etc/passwd"} {
		if err := os.Symlink(target, filepath.Join(tree, link)); err != nil {
			t.Fatal(err)
		}
	}
	for path, want := range map[string]error{
		"file": nil, "/file": nil, "../../file": nil, "to-file": nil, "to-folder/file": nil, "folder/up": nil, "rooted": nil, "up": nil,
		"to-outside/file": fs.ErrNotExist, "out": fs.ErrNotExist, "absolute": fs.ErrNotExist, "magic": fs.ErrNotExist, "nowhere": fs.ErrNotExist,
	} {
		fd, err := beneath.Within(top, path, unix.O_RDONLY)
		if !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", path, err, want)
		}
		if err != nil {
			continue
		}
		text := make([]byte, 10)
		if n, err := unix.Read(fd, text); err != nil || string(text[:n]) != "ours" {
			t.Errorf("%s holds %q, %v", path, text[:n], err)
		}
		unix.Close(fd)
	}
}

func TestNothingIsOpenedThroughALinkOrOutsideTheFolder(t *testing.T) {
	_, top := world(t)
	for path, want := range map[string]error{
		"file":               nil,
		"folder":             nil,
		"folder/file":        nil,
		".":                  nil,
		"missing":            unix.ENOENT,
		"file/below":         unix.ENOTDIR,
		"to-file":            unix.ELOOP,
		"to-folder":          unix.ELOOP,
		"to-folder/file":     unix.ELOOP,
		"to-outside/file":    unix.ELOOP,
		"absolute":           unix.ELOOP,
		"nowhere":            unix.ELOOP,
		"folder/up":          unix.ELOOP,
		"..":                 unix.EXDEV,
		"../outside/file":    unix.EXDEV,
		"folder/../../tree":  unix.EXDEV,
		"/etc/passwd":        unix.EXDEV,
		"to-folder/../file":  unix.ELOOP,
		"to-outside/../tree": unix.ELOOP,
	} {
		for _, flags := range []int{unix.O_RDONLY, unix.O_PATH, unix.O_RDONLY | unix.O_NOFOLLOW, unix.O_PATH | unix.O_NOFOLLOW} {
			fd, err := beneath.Open(top, path, flags)
			if err == nil {
				unix.Close(fd)
			}
			if err != want {
				t.Errorf("Open(%q, %#x): %v, want %v", path, flags, err, want)
			}
		}
	}
}

func TestALinkIsLookedAtAsItself(t *testing.T) {
	_, top := world(t)
	for _, link := range []string{"to-file", "to-folder", "to-outside", "nowhere"} {
		fd := opened(t)(beneath.Look(top, link))
		var st unix.Stat_t
		if err := unix.Fstat(fd, &st); err != nil || st.Mode&unix.S_IFMT != unix.S_IFLNK {
			t.Errorf("Look(%q) has mode %o (%v), want a link", link, st.Mode, err)
		}
		byName, err := beneath.Link(top, link)
		if err != nil {
			t.Error(err)
		}
		if byFD, err := beneath.Link(fd, ""); err != nil || byFD != byName || byFD == "" {
			t.Errorf("the target of %q is %q by name and %q by descriptor (%v)", link, byName, byFD, err)
		}
	}
	for path, want := range map[string]error{"to-folder/file": unix.ELOOP, "../outside": unix.EXDEV, "missing": unix.ENOENT} {
		if _, err := beneath.Look(top, path); err != want {
			t.Errorf("Look(%q): %v, want %v", path, err, want)
		}
	}
}

func TestNoMagicLinkIsFollowed(t *testing.T) {
	self := opened(t)(beneath.Top("/proc/"+strconv.Itoa(os.Getpid()), unix.O_RDONLY))
	for _, path := range []string{"cwd", "cwd/beneath.go", "root", "root/etc/passwd", "exe", "fd/0"} {
		if _, err := beneath.Open(self, path, unix.O_RDONLY); err != unix.ELOOP {
			t.Errorf("Open(%q): %v, want %v", path, err, unix.ELOOP)
		}
	}
	if _, err := beneath.Real("/proc/self/cwd", unix.O_RDONLY); !errors.Is(err, unix.ELOOP) {
		t.Errorf("Real through a magic link: %v, want %v", err, unix.ELOOP)
	}
}

func TestNoMountIsEntered(t *testing.T) {
	root := opened(t)(beneath.Top("/", unix.O_RDONLY))
	for _, path := range []string{"proc", "proc/version"} {
		if _, err := beneath.Open(root, path, unix.O_RDONLY); err != unix.EXDEV {
			t.Errorf("Open(%q): %v, want %v", path, err, unix.EXDEV)
		}
		if _, err := beneath.Look(root, path); err != unix.EXDEV {
			t.Errorf("Look(%q): %v, want %v", path, err, unix.EXDEV)
		}
	}
	if fd, err := beneath.Real("/proc/sys", unix.O_PATH|unix.O_DIRECTORY); err != nil {
		t.Errorf("Real does not pass a mount: %v", err)
	} else {
		unix.Close(fd)
	}
}

func TestAFileIsMadeWhereNothingIs(t *testing.T) {
	tree, top := world(t)
	for path, want := range map[string]error{
		"new":               nil,
		"folder/new":        nil,
		"file":              unix.EEXIST,
		"folder":            unix.EEXIST,
		"to-file":           unix.EEXIST,
		"nowhere":           unix.EEXIST, // not through the link
		"to-outside/new":    unix.ELOOP,
		"../outside/new":    unix.EXDEV,
		"missing/new":       unix.ENOENT,
		"folder/../../none": unix.EXDEV,
	} {
		fd, err := beneath.Create(top, path, unix.O_WRONLY, 0o640)
		if err == nil {
			unix.Close(fd)
		}
		if err != want {
			t.Errorf("Create(%q): %v, want %v", path, err, want)
		}
	}
	if st, err := os.Stat(filepath.Join(tree, "new")); err != nil || st.Mode().Perm()&^0o640 != 0 {
		t.Errorf("made with %v (%v), want at most 0640", st.Mode(), err)
	}
	for _, path := range []string{"missing", "../outside/new"} {
		if _, err := os.Lstat(filepath.Join(tree, path)); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%q was made: %v", path, err)
		}
	}
}

func TestAnAbsolutePathIsOpenedOnlyIfNoLinkIsOnIt(t *testing.T) {
	tree, _ := world(t)
	tree, err := filepath.EvalSymlinks(tree)
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]error{
		"folder": nil, "to-folder": unix.ELOOP, "to-outside/file": unix.ELOOP, "missing": fs.ErrNotExist,
	} {
		fd, err := beneath.Real(filepath.Join(tree, path), unix.O_RDONLY)
		if err == nil {
			unix.Close(fd)
		}
		if !errors.Is(err, want) {
			t.Errorf("Real(%q): %v, want %v", path, err, want)
		}
	}
}

func TestAFolderOfTheHostIsNoLinkAndNoFile(t *testing.T) {
	tree, _ := world(t)
	for path, good := range map[string]bool{
		"folder": true, "to-outside/../tree/folder": true, "to-folder": false, "file": false, "missing": false,
	} {
		for _, flags := range []int{unix.O_RDONLY, unix.O_PATH} {
			fd, err := beneath.Top(tree+"/"+path, flags)
			if err == nil {
				unix.Close(fd)
			}
			if (err == nil) != good {
				t.Errorf("Top(%q): %v", path, err)
			}
		}
	}
}

func TestNoProgramThatIsStartedInheritsADescriptor(t *testing.T) {
	tree, top := world(t)
	get := opened(t)
	for what, fd := range map[string]int{
		"Open":   get(beneath.Open(top, "file", unix.O_RDONLY)),
		"Look":   get(beneath.Look(top, "to-file")),
		"Create": get(beneath.Create(top, "new", unix.O_WRONLY, 0o600)),
		"Top":    top,
		"Real":   get(beneath.Real(filepath.Join(tree, "folder"), unix.O_RDONLY)),
	} {
		if flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0); err != nil || flags&unix.FD_CLOEXEC == 0 {
			t.Errorf("what %s opens is inherited (%v)", what, err)
		}
	}
}

// A read that waits for the far end of a FIFO, or for the holder of a lease, waits for an agent.
func TestAnOpenWaitsForNobody(t *testing.T) {
	tree, top := world(t)
	if err := unix.Mkfifo(filepath.Join(tree, "fifo"), 0o600); err != nil {
		t.Fatal(err)
	}
	held, err := os.OpenFile(filepath.Join(tree, "file"), os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer held.Close()
	if _, err := unix.FcntlInt(held.Fd(), unix.F_SETLEASE, unix.F_WRLCK); err != nil {
		t.Skipf("this file system has no leases: %v", err)
	}
	for path, want := range map[string]error{"fifo": nil, "file": unix.EAGAIN} {
		answer := make(chan error, 1)
		go func() {
			fd, err := beneath.Open(top, path, unix.O_RDONLY)
			if err == nil {
				unix.Close(fd)
			}
			answer <- err
		}()
		select {
		case err := <-answer:
			if err != want {
				t.Errorf("Open(%q): %v, want %v", path, err, want)
			}
		case <-time.After(30 * time.Second):
			t.Errorf("Open(%q) waits", path)
		}
	}
}

// SECURITY.md, measured 8: stat and open by name read a planted file while names were being exchanged.
func TestAFolderThatIsExchangedForALinkIsNeverPassed(t *testing.T) {
	tree, top := world(t)
	if err := os.Symlink("../outside", filepath.Join(tree, "other")); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() {
		for range 20_000 {
			if err := unix.Renameat2(top, "folder", top, "other", unix.RENAME_EXCHANGE); err != nil {
				done <- err
				return
			}
		}
		done <- nil
	}()
	for {
		fd, err := beneath.Open(top, "folder/file", unix.O_RDONLY)
		switch {
		case err == nil:
			var text [16]byte
			n, err := unix.Read(fd, text[:])
			unix.Close(fd)
			if string(text[:n]) != "ours" {
				t.Fatalf("read %q (%v) through the exchanged name", text[:n], err)
			}
		case err != unix.ELOOP:
			t.Fatalf("open: %v, want %v", err, unix.ELOOP)
		}
		select {
		case err := <-done:
			if err != nil {
				t.Fatal(err)
			}
			return
		default:
		}
	}
}

func TestAnOpenFolderStaysWhatItIsWhenItsNameIsExchanged(t *testing.T) {
	tree, top := world(t)
	folder := opened(t)(beneath.Open(top, "folder", unix.O_RDONLY|unix.O_DIRECTORY))
	if err := unix.Renameat2(top, "folder", top, "to-outside", unix.RENAME_EXCHANGE); err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(filepath.Join(tree, "folder/file")); err != nil || string(text) != "theirs" {
		t.Fatalf("by its name the folder has %q (%v), so nothing was exchanged", text, err)
	}
	fd := opened(t)(beneath.Open(folder, "file", unix.O_RDONLY))
	var text [16]byte
	if n, err := unix.Read(fd, text[:]); err != nil || string(text[:n]) != "ours" {
		t.Errorf("read %q (%v), want what was opened", text[:n], err)
	}
}

func TestAllNamesOfAFolderAreGivenEachTime(t *testing.T) {
	_, top := world(t)
	folder := opened(t)(beneath.Open(top, "folder", unix.O_RDONLY|unix.O_DIRECTORY))
	want := []string{"file", "up"}
	for i := range 2500 { // more than two batches
		name := fmt.Sprint("file-", i)
		want = append(want, name)
		if err := unix.Mknodat(folder, name, unix.S_IFREG|0o600, 0); err != nil {
			t.Fatal(err)
		}
	}
	slices.Sort(want)
	for range 2 {
		var got []string
		if err := beneath.Names(folder, func(name string) error { got = append(got, name); return nil }); err != nil {
			t.Fatal(err)
		}
		if slices.Sort(got); !slices.Equal(got, want) {
			t.Errorf("%d names, want %d", len(got), len(want))
		}
	}
	enough := errors.New("enough")
	asked := 0
	err := beneath.Names(folder, func(string) error { asked++; return enough })
	if err != enough || asked != 1 {
		t.Errorf("%v after %d names, want it to end with the first error", err, asked)
	}
}
