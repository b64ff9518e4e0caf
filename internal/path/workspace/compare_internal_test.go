package workspace

import (
	"fmt"
	"strings"
	"testing"
)

// TestFilesAreTheSameToTheirLastByte holds it for sizes around that of what is read at a time, also where one of them has grown or shrunk since
// its size was taken.
func TestFilesAreTheSameToTheirLastByte(t *testing.T) {
	for _, size := range []int{0, 1, 2, compareMost - 2, compareMost - 1, compareMost, compareMost + 1, 2*compareMost - 1, 2 * compareMost, 3*compareMost + 7} {
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			text := strings.Repeat("x", size)
			others := map[string]string{"grown": text + "y", "grown much": text + strings.Repeat("y", 2*compareMost)}
			if size > 0 {
				others["last"], others["shrunk"], others["gone"] = text[:size-1]+"y", text[:size-1], ""
			}
			if !same(strings.NewReader(text), strings.NewReader(text), int64(size)) {
				t.Error("a file is not the same as itself")
			}
			for name, other := range others {
				if same(strings.NewReader(text), strings.NewReader(other), int64(size)) || same(strings.NewReader(other), strings.NewReader(text), int64(size)) {
					t.Errorf("%s: they are said to be the same", name)
				}
			}
		})
	}
}
