package internal_test

import (
	"errors"
	"go/ast"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
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
	below, err2 := filepath.Glob("../docs/*/*.md")
	if err := errors.Join(err, err2); err != nil || len(pages) < 10 || len(below) < 10 {
		t.Fatalf("only %d pages were found in docs/, and %d below: %v", len(pages), len(below), err)
	}
	for _, page := range slices.Concat(pages, below, []string{"../README.md"}) {
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

// told are the packages whose texts a person reads of a change: its errors, notices, reasons and audit.
var told = []string{"base/lock", "path/approval", "path/checkpoint", "path/landing", "path/proposal", "path/request", "path/session", "path/trial", "port/target", "rule/trust", "drive/authorship", "drive/check", "drive/control", "drive/grounds", "drive/stock", "drive/supervise", "drive/tidy", "drive/accept", "drive/redo", "drive/prepare", "drive/approve", "drive/revert", "drive/submit", "drive/land", "drive/ledger", "drive/live", "drive/confirm", "drive/view", "path/change"}

// riddles are words that do not say who does what, or that name only a state.
var riddles = []struct {
	words *regexp.Regexp
	write string
}{
	{regexp.MustCompile(`(?i)\b(put|puts|take|takes|taken|taking|took|go|goes|going|went|gave)( [\w%]+){0,3} back\b`),
		`"sallyport rolls it back", or "ann restored the file"`},
	{regexp.MustCompile(`\b(rejected|rejects|reject)\b`), `"refused"`},
	{regexp.MustCompile(`\bfinalized\b`), `"landed"`},
	{regexp.MustCompile(`\bunder (it|its|their) `), `who was at work when it happened`},
}

func TestAMessageSaysWhoDoesWhat(t *testing.T) {
	texts := 0
	eachText(t, told, func(at token.Position, text string) {
		if !strings.Contains(text, " ") || text == "taken back" { // the event of that name is in rows
			return
		}
		texts++
		for _, r := range riddles {
			if r.words.MatchString(text) {
				t.Errorf("%s: %q: write %s", at, text, r.write)
			}
		}
	})
	if texts < 400 {
		t.Fatalf("only %d texts were found", texts)
	}
}

// classed matches the name of a class of errors, appends a format that ends with the class's text.
var (
	classed = regexp.MustCompile(`^(Err|err)[A-Z]`)
	appends = regexp.MustCompile(`: %w$`)
)

// The text of a class is true of few of its cases: a broken index is no merge that is under way.
func TestNoMessageEndsWithTheTextOfItsClass(t *testing.T) {
	calls := 0
	eachFile(t, []string{".", "../cmd"}, func(set *token.FileSet, file *ast.File) {
		ast.Inspect(file, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok || name(call.Fun) != "Errorf" || owner(call.Fun) != "problem" || len(call.Args) < 4 {
				return true
			}
			calls++
			format, ok := call.Args[2].(*ast.BasicLit)
			if !ok {
				return true
			}
			text, _ := strconv.Unquote(format.Value)
			if last := name(call.Args[len(call.Args)-1]); appends.MatchString(text) && classed.MatchString(last) {
				t.Errorf("%s: %q ends with the text of %s, which is not this case's: write problem.Case", set.Position(call.Pos()), text, last)
			}
			return true
		})
	})
	if calls < 200 {
		t.Fatalf("only %d calls were found", calls)
	}
}

// name is the last name of an expression, owner the one before it; "" if it has none.
func name(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name
	case *ast.SelectorExpr:
		return e.Sel.Name
	}
	return ""
}

func owner(e ast.Expr) string {
	if s, ok := e.(*ast.SelectorExpr); ok {
		return name(s.X)
	}
	return ""
}
