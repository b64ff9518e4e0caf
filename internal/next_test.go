package internal_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// gitVerb is the start of a git command that works on a repository; one that makes a repository names it.
var gitVerb = regexp.MustCompile(`^git (add|apply|bisect|branch|check-attr|checkout|commit|config|diff|fetch|fsck|gc|log|ls-files|ls-tree|` +
	`merge|rebase|reset|restore|rev-parse|rm|show|stash|status|submodule|switch|update-index|worktree)\b`)

func TestAGitCommandThatAPersonIsToldWorksFromAnywhere(t *testing.T) {
	for _, root := range []string{".", "../cmd"} {
		err := filepath.WalkDir(root, func(path string, _ fs.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") || strings.Contains(path, "testdata") {
				return err
			}
			set := token.NewFileSet()
			file, err := parser.ParseFile(set, path, nil, 0)
			if err != nil {
				return err
			}
			ast.Inspect(file, func(n ast.Node) bool {
				lit, ok := n.(*ast.BasicLit)
				if !ok || lit.Kind != token.STRING {
					return true
				}
				if text, err := strconv.Unquote(lit.Value); err == nil && gitVerb.MatchString(text) {
					t.Errorf("%s: %q depends on where the person stands: it needs git -C (see git.Dir.Command)", set.Position(lit.Pos()), text)
				}
				return true
			})
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}
