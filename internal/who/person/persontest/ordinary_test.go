package persontest_test

import (
	"os"
	"path/filepath"
	"testing"

	"sallyport/internal/who/person/persontest"
)

// A test that opens its folder to other users leaves the one alone in which everybody has theirs.
func TestTheFolderOfEverybodysFilesStaysAsItIs(t *testing.T) {
	shared := filepath.Join(t.TempDir(), "shared")
	inner := filepath.Join(shared, "test/001")
	if err := os.MkdirAll(inner, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(shared, 0o777|os.ModeSticky); err != nil {
		t.Fatal(err)
	}
	persontest.OpenWay(t, inner)
	for path, want := range map[string]os.FileMode{inner: 0o755, filepath.Dir(inner): 0o755, shared: 0o777 | os.ModeSticky} {
		if info, err := os.Stat(path); err != nil || info.Mode() != os.ModeDir|want {
			t.Errorf("%s is %v, %v", path, info.Mode(), err)
		}
	}
}
