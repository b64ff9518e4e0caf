package internal_test

import (
	"go/ast"
	"go/token"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"
)

// methodsMax is how many methods a type has at the most. What needs more is more than one thing.
const methodsMax = 42

func TestNoTypeDoesEverything(t *testing.T) {
	methods := map[string]int{} // of folder.Type
	eachFile(t, []string{"."}, func(set *token.FileSet, file *ast.File) {
		for _, decl := range file.Decls {
			if f, ok := decl.(*ast.FuncDecl); ok && f.Recv != nil {
				methods[filepath.Dir(set.Position(file.Pos()).Filename)+"."+receiver(f.Recv.List[0].Type)]++
			}
		}
	})
	for name, n := range methods {
		if n > methodsMax {
			t.Errorf("%s has %d methods, more than %d: give what it does for another noun a type of its own", name, n, methodsMax)
		}
	}
}

// receiver names a receiver's type, without star and parameters.
func receiver(e ast.Expr) string {
	for {
		switch x := e.(type) {
		case *ast.StarExpr:
			e = x.X
		case *ast.IndexExpr:
			e = x.X
		case *ast.IndexListExpr:
			e = x.X
		case *ast.Ident:
			return x.Name
		default:
			return "?"
		}
	}
}

// wideMax is how many columns a line of code has at the most. What stands in quotes is not counted: a text is looked for as a whole.
const wideMax = 160

func TestNoLineIsTooWide(t *testing.T) {
	eachFile(t, []string{".", "../cmd"}, func(set *token.FileSet, file *ast.File) {
		path := set.Position(file.Pos()).Filename
		raw, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		quoted := map[int]int{} // columns by line
		ast.Inspect(file, func(n ast.Node) bool {
			if text, ok := n.(*ast.BasicLit); ok && text.Kind == token.STRING {
				first := set.Position(text.Pos()).Line
				for i, line := range strings.Split(text.Value, "\n") {
					quoted[first+i] += utf8.RuneCountInString(line)
				}
			}
			return true
		})
		n := 0
		for line := range strings.Lines(string(raw)) {
			n++
			line, _, _ = strings.Cut(line, " //nolint")
			wide := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")) + 3*strings.Count(line, "\t") - quoted[n]
			if wide > wideMax {
				t.Errorf("%s:%d has %d columns; at most %d: begin a new line after a comma", path, n, wide, wideMax)
			}
		}
	})
}
