package internal_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"
)

// columnsMax is how wide a line of the docs may be, so that it can be read in a terminal and beside another window.
const columnsMax = 120

// Pages that the program writes have the width of what they are written from.
var writtenByTheProgram = map[string]bool{
	"../docs/cli.md": true, // from the commands' help, whose tables of flags wrap for nobody
}

// Tables are as wide as their rows: Markdown has no way to break one.
func TestNoLineOfTheDocsIsTooWideToRead(t *testing.T) {
	pages, err := filepath.Glob("../docs/*.md")
	if err != nil || len(pages) < 10 {
		t.Fatalf("only %d pages were found in docs/: %v", len(pages), err)
	}
	for _, page := range append(pages, "../README.md") {
		if writtenByTheProgram[page] {
			continue
		}
		doc, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}

		n := 0
		for line := range strings.Lines(string(doc)) {
			n++
			wide := utf8.RuneCountInString(strings.TrimRight(line, "\n"))
			if wide > columnsMax && !strings.HasPrefix(line, "|") {
				t.Errorf("%s:%d has %d columns; at most %d", strings.TrimPrefix(page, "../"), n, wide, columnsMax)
			}
		}
	}
}
