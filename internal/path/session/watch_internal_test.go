package session

import (
	"testing"

	"golang.org/x/sys/unix"

	"sallyport/internal/base/beneath"
)

// Each look at a folder asks for its events again, while an agent goes on.
func TestAFolderThatIsAskedForAgainLosesNoEvent(t *testing.T) {
	const files = 50_000 // with a mask that takes the place of the last, some tens of their events are lost
	dir, err := beneath.Top(t.TempDir(), unix.O_RDONLY)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(dir)
	q, err := openQueue()
	if err != nil {
		t.Fatal(err)
	}
	defer q.close()
	if _, err := q.add(dir, mask); err != nil {
		t.Fatal(err)
	}

	quit, done := make(chan struct{}), make(chan error)
	go func() {
		for {
			select {
			case <-quit:
				done <- nil
				return
			default:
			}
			if _, err := q.add(dir, mask); err != nil {
				done <- err
				return
			}
		}
	}()
	made, gone := 0, 0
	count := func() {
		events, err := q.read()
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range events {
			switch {
			case e.mask&unix.IN_CREATE != 0:
				made++
			case e.mask&unix.IN_DELETE != 0:
				gone++
			case e.mask&unix.IN_Q_OVERFLOW != 0:
				t.Fatal("the kernel's queue was full")
			}
		}
	}
	for i := range files {
		if err := unix.Mknodat(dir, "f", unix.S_IFREG|0o600, 0); err != nil {
			t.Fatal(err)
		}
		if err := unix.Unlinkat(dir, "f", 0); err != nil {
			t.Fatal(err)
		}
		if i%1000 == 0 {
			count()
		}
	}
	close(quit)
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	count()
	if made != files || gone != files {
		t.Errorf("told of %d files that were made and %d that were removed, of %d", made, gone, files)
	}
}
