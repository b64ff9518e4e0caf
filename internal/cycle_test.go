package internal_test

import (
	"go/ast"
	"go/token"
	"go/types"
	"maps"
	"path/filepath"
	"slices"
	"testing"
)

// cycleMax is how many files of one package may need each other in a cycle, by what they call and what they read of each other. Who reads
// one of them has to read all.
const cycleMax = 10

func TestFewFilesOfAPackageNeedEachOtherInACycle(t *testing.T) {
	packages := map[string][]*ast.File{} // by folder
	names := map[*ast.File]string{}
	eachFile(t, []string{"."}, func(set *token.FileSet, file *ast.File) {
		path := set.Position(file.Pos()).Filename
		names[file] = filepath.Base(path)
		packages[filepath.Dir(path)] = append(packages[filepath.Dir(path)], file)
	})
	for folder, files := range packages {
		if cycle := largestCycle(needs(folder, files)); len(cycle) > cycleMax {
			said := make([]string, len(cycle))
			for i, file := range cycle {
				said[i] = names[file]
			}
			slices.Sort(said)
			t.Errorf("%s: these %d files need each other in a cycle, and %d may: move what others need into a file that needs none of them: %v", folder, len(cycle), cycleMax, said)
		}
	}
}

func TestACycleOfFilesIsFound(t *testing.T) {
	a, b, c, d := &ast.File{}, &ast.File{}, &ast.File{}, &ast.File{}
	of := map[*ast.File][]*ast.File{a: {b}, b: {c}, c: {a, d}, d: nil}
	if cycle := largestCycle(of); len(cycle) != 3 || slices.Contains(cycle, d) {
		t.Errorf("%d files, and one that needs nothing: %t", len(cycle), slices.Contains(cycle, d))
	}
	of[c] = []*ast.File{d}
	if cycle := largestCycle(of); len(cycle) != 1 {
		t.Errorf("where none is there: %d", len(cycle))
	}
}

// needs is, by file, which others of its package declare a function, a method, a variable or a constant that it uses. Types are not counted:
// to read what one is takes no other file. Nothing else is loaded, so what a method of another package returns is not known.
func needs(folder string, files []*ast.File) map[*ast.File][]*ast.File {
	info := &types.Info{Defs: map[*ast.Ident]types.Object{}, Uses: map[*ast.Ident]types.Object{}}
	config := types.Config{Importer: nothing{}, Error: func(error) {}}
	pkg, _ := config.Check(folder, places, files, info)

	declares := map[types.Object]*ast.File{}
	for _, file := range files {
		ast.Inspect(file, func(n ast.Node) bool {
			if name, ok := n.(*ast.Ident); ok && info.Defs[name] != nil {
				declares[info.Defs[name]] = file
			}
			return true
		})
	}
	of := map[*ast.File][]*ast.File{}
	for _, file := range files {
		of[file] = nil
		ast.Inspect(file, func(n ast.Node) bool {
			name, ok := n.(*ast.Ident)
			if !ok {
				return true
			}
			if used := info.Uses[name]; used != nil && counts(used, pkg) && declares[used] != nil && declares[used] != file {
				of[file] = append(of[file], declares[used])
			}
			return true
		})
	}
	return of
}

// counts reports whether one reads on where an object is declared: at a function, or at a variable or constant of the package.
func counts(used types.Object, pkg *types.Package) bool {
	switch used := used.(type) {
	case *types.Func:
		to := used.Signature().Recv()
		return to == nil || !types.IsInterface(to.Type())
	case *types.Var, *types.Const:
		return used.Parent() == pkg.Scope()
	}
	return false
}

// nothing imports every package as one that has nothing in it.
type nothing struct{}

func (nothing) Import(path string) (*types.Package, error) {
	p := types.NewPackage(path, filepath.Base(path))
	p.MarkComplete()
	return p, nil
}

// largestCycle is the most files that all can be reached from each other.
func largestCycle(of map[*ast.File][]*ast.File) (largest []*ast.File) {
	reached := map[*ast.File]map[*ast.File]bool{}
	for file := range of {
		seen := map[*ast.File]bool{}
		for next := []*ast.File{file}; len(next) > 0; {
			last := next[len(next)-1]
			next = next[:len(next)-1]
			if !seen[last] {
				seen[last] = true
				next = append(next, of[last]...)
			}
		}
		reached[file] = seen
	}
	for file, seen := range reached {
		cycle := slices.DeleteFunc(slices.Collect(maps.Keys(seen)), func(other *ast.File) bool { return !reached[other][file] })
		if len(cycle) > len(largest) {
			largest = cycle
		}
	}
	return largest
}
