package internal_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// How what an agent wrote is opened is decided, and audited, in one place.
func TestOnlyBeneathSaysHowAPathIsResolved(t *testing.T) {
	resolves := regexp.MustCompile(`unix\.(Openat2|OpenHow|RESOLVE_\w+)\b`)
	seen := false
	err := filepath.WalkDir(".", func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") || strings.HasSuffix(filepath.Dir(path), "test") {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		switch found := resolves.Find(text); {
		case found == nil:
		case filepath.Dir(path) == filepath.FromSlash("base/beneath"):
			seen = true
		default:
			t.Errorf("%s uses %s: base/beneath opens, and names each exception", path, found)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if !seen {
		t.Error("base/beneath does not call openat2")
	}
}
