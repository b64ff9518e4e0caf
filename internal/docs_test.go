package internal_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// A page names a file by its folder and its name, and a folder by its last two names: `landing/doc.go`, `sandbox/bwrap`.
var (
	fence       = regexp.MustCompile("(?s)```.*?```")
	inBackticks = regexp.MustCompile("`([^`]+)`")
	namesFolder = regexp.MustCompile(`^[a-z0-9]+(/[a-z0-9-]+)+/?$`)
)

// Who reads how it works looks for the file that is named: it is there, and only one has this name.
func TestEveryPathInThePagesOnTheCodeExists(t *testing.T) {
	files, folders := tree(t)
	checklists, err := filepath.Glob("../docs/checklists/*.md")
	if err != nil || len(checklists) < 5 {
		t.Fatalf("only %d checklists were found: %v", len(checklists), err)
	}

	for _, page := range append(checklists, "../docs/ARCHITECTURE.md", "../docs/walks.md", "../docs/decisions.md") {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		named := inBackticks.FindAllStringSubmatch(fence.ReplaceAllString(string(text), ""), -1)
		for _, words := range named {
			for path := range strings.FieldsSeq(words[1]) {
				switch {
				case strings.HasSuffix(path, ".go"):
					if n := below(files, path); n != 1 || !strings.Contains(path, "/") {
						t.Errorf("%s: %d files are called `%s`; write the folder and the name of one", page, n, path)
					}
				case namesFolder.MatchString(path):
					if below(folders, strings.TrimSuffix(path, "/")) == 0 {
						t.Errorf("%s: no folder is called `%s`", page, path)
					}
				}
			}
		}
		if strings.HasPrefix(filepath.Base(page), "ARCH") && len(named) < 50 {
			t.Errorf("%s: only %d names were found", page, len(named))
		}
	}
}

// What a test or a tool writes where it stands is no part of the sources, and whoever looks for something finds it first.
func TestNoStateOfARunLiesAmongTheSources(t *testing.T) {
	_, folders := tree(t)
	for _, folder := range folders {
		if strings.HasPrefix(filepath.Base(folder), ".") {
			t.Errorf("%s is a hidden folder", folder)
		}
	}
}

// tree returns the Go files and all folders of the module, each from its top.
func tree(t *testing.T) (files, folders []string) {
	for _, root := range []string{"../internal", "../cmd", "../docs"} {
		err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			path = strings.TrimPrefix(path, "..")
			switch {
			case err != nil:
				return err
			case d.IsDir():
				folders = append(folders, path)
			case strings.HasSuffix(path, ".go"):
				files = append(files, path)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return files, folders
}

// below counts the paths that end with a path.
func below(all []string, path string) (n int) {
	for _, one := range all {
		if strings.HasSuffix(one, "/"+path) {
			n++
		}
	}
	return n
}
