package internal_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"
)

// Every command starts with every package: what a package compiles at its start, each command pays for.
func TestNoPackageCompilesExpressionsAtItsStart(t *testing.T) {
	files := token.NewFileSet()
	err := filepath.WalkDir(".", func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") || strings.HasSuffix(filepath.Dir(path), "test") {
			return err
		}
		file, err := parser.ParseFile(files, path, nil, 0)
		if err != nil {
			return err
		}
		for _, d := range file.Decls {
			if d, ok := d.(*ast.GenDecl); ok {
				ast.Inspect(d, func(n ast.Node) bool {
					call, ok := n.(*ast.CallExpr)
					if ok {
						if f, ok := call.Fun.(*ast.SelectorExpr); ok && strings.HasPrefix(f.Sel.Name, "MustCompile") {
							t.Errorf("%s compiles an expression at its start: pattern.Of does when it is used", files.Position(call.Pos()))
						}
					}
					_, function := n.(*ast.FuncLit)
					return !function
				})
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
