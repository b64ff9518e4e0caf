package internal_test

import (
	"go/ast"
	"go/token"
	"path/filepath"
	"testing"
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
