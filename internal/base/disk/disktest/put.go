package disktest

import (
	"io/fs"
	"os"
	"path/filepath"
)

// TB is what a test or a property's check offers.
type TB interface {
	Helper()
	Fatal(args ...any)
}

// Put writes a file in place of the one that may be there, and makes the folders on its way.
func Put[T ~string | ~[]byte](t TB, path string, data T, mode fs.FileMode) {
	t.Helper()
	err := os.MkdirAll(filepath.Dir(path), 0o755)
	if err == nil {
		err = os.WriteFile(path, []byte(data), mode)
	}
	if err != nil {
		t.Fatal(err)
	}
}
