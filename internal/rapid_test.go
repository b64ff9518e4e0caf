package internal_test

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A property that calls the library itself has its result believed for any seed.
func TestPropertiesAreTriedByRapidtest(t *testing.T) {
	tried := 0
	err := filepath.WalkDir(".", func(path string, e fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, "_test.go") || path == "rapid_test.go" {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		tried += bytes.Count(text, []byte("rapidtest.Check("))
		if bytes.Contains(text, []byte("rapid.Check(")) {
			t.Errorf("%s calls rapid.Check: rapidtest.Check reads the seed", path)
		}
		return nil
	})
	if err != nil || tried == 0 {
		t.Fatalf("%d properties, %v", tried, err)
	}
}
