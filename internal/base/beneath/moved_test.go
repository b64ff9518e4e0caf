package beneath_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"sallyport/internal/base/beneath"
)

// A folder that leaves the tree in the middle of a lookup is one that is not there: who looks hears of no other file system.
func TestAFolderThatIsMovedOutMeanwhileIsNotThere(t *testing.T) {
	dir := t.TempDir()
	in, out := filepath.Join(dir, "tree", "d"), filepath.Join(dir, "out")
	if err := os.MkdirAll(in, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(filepath.Dir(in), "e"), 0o700); err != nil {
		t.Fatal(err)
	}
	top, err := beneath.Top(filepath.Dir(in), unix.O_PATH)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(top)
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for {
			select {
			case <-stop:
				return
			default:
			}
			if err := unix.Rename(in, out); err != nil {
				t.Error(err)
				return
			}
			if err := unix.Rename(out, in); err != nil {
				t.Error(err)
				return
			}
		}
	}()
	defer func() { close(stop); <-stopped }()
	for n := range 20_000 {
		for _, path := range []string{"d", strings.Repeat("e/../", 80) + "d"} { // the way up has its own tries, while anything at all is renamed
			fd, err := beneath.Open(top, path, unix.O_RDONLY|unix.O_DIRECTORY)
			if err == nil {
				err = unix.Close(fd)
			}
			if err != nil && err != unix.ENOENT && (err != unix.EAGAIN || path == "d") {
				t.Fatalf("%.20s, time %d: %v", path, n, err)
			}
		}
	}
}
