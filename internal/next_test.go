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
	"sync"
	"testing"
)

// gitVerb is the start of a git command that works on a repository; one that makes a repository names it.
var gitVerb = regexp.MustCompile(`^git (add|apply|bisect|branch|check-attr|checkout|commit|config|diff|fetch|fsck|gc|log|ls-files|ls-tree|` +
	`merge|rebase|reset|restore|rev-parse|rm|show|stash|status|submodule|switch|update-index|worktree)\b`)

func TestAGitCommandThatAPersonIsToldWorksFromAnywhere(t *testing.T) {
	eachText(t, []string{".", "../cmd"}, func(at token.Position, text string) {
		if gitVerb.MatchString(text) {
			t.Errorf("%s: %q depends on where the person stands: it needs git -C (see git.Dir.Command)", at, text)
		}
	})
}

// eachText hands over every text of the product's own source below the roots, tests left out.
func eachText(t *testing.T, roots []string, do func(at token.Position, text string)) {
	t.Helper()
	eachFile(t, roots, func(set *token.FileSet, file *ast.File) {
		ast.Inspect(file, func(n ast.Node) bool {
			if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING {
				if text, err := strconv.Unquote(lit.Value); err == nil {
					do(set.Position(lit.Pos()), text)
				}
			}
			return true
		})
	})
}

// eachFile hands over every file of the product's own source below the roots, tests left out, to be read and not changed.
func eachFile(t *testing.T, roots []string, do func(set *token.FileSet, file *ast.File)) {
	t.Helper()
	for _, root := range roots {
		err := filepath.WalkDir(root, func(path string, _ fs.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") || strings.Contains(path, "testdata") {
				return err
			}
			once, _ := sources.LoadOrStore(path, sync.OnceValues(func() (*ast.File, error) {
				return parser.ParseFile(places, path, nil, parser.SkipObjectResolution)
			}))
			file, err := once.(func() (*ast.File, error))()
			if err == nil {
				do(places, file)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

// sources are the files that were parsed, and places says where in them something is. To parse all of them is most of what a test of them
// costs: it is done once.
var (
	sources sync.Map // path → func() (*ast.File, error)
	places  = token.NewFileSet()
)
