package internal_test

import (
	"bufio"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	testFunc = regexp.MustCompile(`^func ((?:Test|Fuzz)\w+)\(`)
	quoted   = regexp.MustCompile("`((?:Test|Fuzz)\\w+)`")
)

// Each promise names the test that holds it; a name without a test is a promise without one.
func TestEveryPromiseNamesATestThatExists(t *testing.T) {
	exists := map[string]bool{}
	for _, root := range []string{".", "../cmd"} {
		err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !strings.HasSuffix(path, "_test.go") {
				return err
			}
			f, err := os.Open(path)
			if err != nil {
				return err
			}
			defer f.Close()
			for s := bufio.NewScanner(f); s.Scan(); {
				if m := testFunc.FindStringSubmatch(s.Text()); m != nil {
					exists[m[1]] = true
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	doc, err := os.ReadFile("../docs/invariants.md")
	if err != nil {
		t.Fatal(err)
	}
	promises := 0
	for line := range strings.Lines(string(doc)) {
		if !strings.HasPrefix(line, "- ") {
			continue
		}
		promises++
		names := quoted.FindAllStringSubmatch(line, -1)
		if len(names) == 0 {
			t.Errorf("no test holds: %s", strings.TrimSpace(line))
		}
		for _, name := range names {
			if !exists[name[1]] {
				t.Errorf("%s does not exist, and holds: %s", name[1], strings.TrimSpace(line))
			}
		}
	}
	if promises < 30 {
		t.Errorf("only %d promises were read", promises)
	}
}
