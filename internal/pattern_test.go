package internal_test

import (
	"go/ast"
	"go/token"
	"path/filepath"
	"strings"
	"testing"
)

// Every command starts with every package: what a package compiles at its start, each command pays for.
func TestNoPackageCompilesExpressionsAtItsStart(t *testing.T) {
	eachFile(t, []string{"."}, func(files *token.FileSet, file *ast.File) {
		if strings.HasSuffix(filepath.Dir(files.Position(file.Pos()).Filename), "test") {
			return
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
	})
}
