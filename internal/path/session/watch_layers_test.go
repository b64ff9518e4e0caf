package session_test

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"testing"

	"golang.org/x/sys/unix"

	wt "sallyport/internal/path/workspace/workspacetest"
)

// A base of two layers is one base: what the higher one hides is not counted, what both have together is.
func TestAWatchTellsAgainstAllLayersOfABase(t *testing.T) {
	wt.CanOverlay(t)
	s := stage(t, true, map[string]string{"d/old": "1", "d/hidden": "1", "stays": "1"})
	higher := filepath.Join(s.dir, "higher")
	put(t, filepath.Join(higher, "d/new"), "1")
	if err := unix.Mknod(filepath.Join(higher, "d/hidden"), unix.S_IFCHR, 0); errors.Is(err, unix.EPERM) {
		t.Skip("SKIPPED: whiteouts cannot be made here")
	} else {
		must(t, err)
	}
	s.Base = append(s.Base, higher)
	s.tree.Layers = s.Base
	w := start(t, s.Watched)
	s.edit(t, wt.Remove("d"), wt.Write("stays", "2"))
	want := []string{"d/new", "d/old", "stays"}
	until(t, func() string { return fmt.Sprintf("the watch has %q, want %q", w.Changed(), want) }, func() bool { return slices.Equal(w.Changed(), want) })
	s.edit(t, wt.Write("d/hidden", "2"))
	want = []string{"d/hidden", "d/new", "d/old", "stays"}
	until(t, func() string { return fmt.Sprintf("the watch has %q, want %q", w.Changed(), want) }, func() bool { return slices.Equal(w.Changed(), want) })
}
