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
	story    = regexp.MustCompile("`TestScripts` \\((\\w+)\\)")
)

// Each promise names the test that holds it; a name without a test is a promise without one.
func TestEveryPromiseNamesATestThatExists(t *testing.T) {
	exists := tests(t)
	for page, least := range map[string]int{"invariants": 30, "spec": 50} {
		if n := promises(t, "../docs/"+page+".md", exists); n < least {
			t.Errorf("only %d promises were read in docs/%s.md", n, page)
		}
	}
}

// tests returns the names of all tests of the module.
func tests(t *testing.T) map[string]bool {
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
	return exists
}

// promises counts a page's, and names those that no test holds.
func promises(t *testing.T, page string, exists map[string]bool) (n int) {
	doc, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range items(string(doc)) {
		n++
		names := quoted.FindAllStringSubmatch(line, -1)
		if len(names) == 0 {
			t.Errorf("no test holds: %s", strings.TrimSpace(line))
		}
		for _, told := range story.FindAllStringSubmatch(line, -1) {
			if _, err := os.Stat("../cmd/sallyport/testdata/script/" + told[1] + ".txtar"); err != nil {
				t.Errorf("no story %s: %v", told[1], err)
			}
		}
		for _, name := range names {
			if !exists[name[1]] {
				t.Errorf("%s does not exist, and holds: %s", name[1], strings.TrimSpace(line))
			}
		}
	}
	return n
}

// items returns a page's list items, each with the indented lines that go on with it.
func items(doc string) (found []string) {
	open := false
	for line := range strings.Lines(doc) {
		switch {
		case strings.HasPrefix(line, "- "):
			found, open = append(found, line), true
		case open && strings.HasPrefix(line, "  "):
			found[len(found)-1] += line
		default:
			open = false
		}
	}
	return found
}
