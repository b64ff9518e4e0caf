package internal_test

import (
	"bufio"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const module = "sallyport/internal/"

// rules is layers.txt: for each noun, the nouns it may import. A noun is folder/package, or the folder's name where it
// holds one package.
type rules struct {
	may  map[string][]string
	pure []string
}

func readRules(t *testing.T) rules {
	t.Helper()
	f, err := os.Open("layers.txt")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()

	r := rules{may: map[string][]string{}}
	members := map[string][]string{} // of a folder, as nouns
	granted := map[string][]string{} // folders that a folder may import
	for s := bufio.NewScanner(f); s.Scan(); {
		text, _, _ := strings.Cut(s.Text(), "#")
		folder, rest, ok := strings.Cut(text, ":")
		if !ok {
			continue
		}
		left, right, _ := strings.Cut(rest, "|")
		if folder == "pure" {
			r.pure = strings.Fields(left)
			continue
		}

		for grant := range strings.FieldsSeq(right) {
			if grant == "+" {
				continue
			}
			if _, ok := members[grant]; !ok {
				t.Errorf("layers.txt: %s may import %q, which is no folder above it", folder, grant)
			}
			if strings.Contains(right, "+") {
				granted[folder] = append(granted[folder], granted[grant]...)
			}
			granted[folder] = append(granted[folder], grant)
		}
		var above []string
		for _, grant := range granted[folder] {
			above = append(above, members[grant]...)
		}

		for name := range strings.FieldsSeq(left) {
			noun := path.Join(folder, name)
			if name == folder {
				noun = folder
			}
			r.may[noun] = slices.Concat(above, members[folder])
			members[folder] = append(members[folder], noun)
		}
	}
	return r
}

// nounOf returns the noun that a package under internal/ belongs to, and whether it is a driver of it.
func (r rules) nounOf(pkg string) (noun string, driver bool) {
	for noun = pkg; noun != "."; noun = path.Dir(noun) {
		if _, ok := r.may[noun]; ok {
			return noun, noun != pkg
		}
	}
	return pkg, false
}

// imports returns what the files of a package folder import, split into product and test files.
func imports(t *testing.T, folder string) (product, tests []string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(folder, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ImportsOnly)
		if err != nil {
			t.Fatal(err)
		}
		for _, spec := range f.Imports {
			name, _ := strconv.Unquote(spec.Path.Value)
			if strings.HasSuffix(file, "_test.go") {
				tests = append(tests, name)
			} else {
				product = append(product, name)
			}
		}
	}
	return product, tests
}

func TestPackagesImportOnlyWhatTheirLayerMay(t *testing.T) {
	r := readRules(t)
	seen := map[string]bool{}
	err := filepath.WalkDir(".", func(folder string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() || folder == "." || d.Name() == "testdata" {
			return err
		}
		if files, err := filepath.Glob(folder + "/*.go"); err != nil || len(files) == 0 {
			return err
		}
		product, _ := imports(t, folder)
		noun, isDriver := r.nounOf(folder)
		seen[noun] = true
		may, listed := r.may[noun]
		if !listed {
			t.Errorf("%s stands in no line of layers.txt", noun)
			return nil
		}
		if isDriver {
			may = append(slices.Clone(may), noun)
		}
		if strings.HasSuffix(path.Base(folder), "test") {
			return nil
		}
		for _, name := range product {
			if to, ours := strings.CutPrefix(name, module); ours {
				checkImport(t, r, folder, noun, may, to)
			} else if slices.Contains(r.pure, noun) && !isDriver && impure(name) {
				t.Errorf("%s imports %s: it must be decidable without the world", folder, name)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for noun := range r.may {
		if !seen[noun] {
			t.Errorf("layers.txt lists %s, which does not exist", noun)
		}
	}
}

func checkImport(t *testing.T, r rules, folder, noun string, may []string, to string) {
	t.Helper()
	target, driver := r.nounOf(to)
	switch {
	case strings.HasSuffix(to, "test"):
		t.Errorf("%s imports %s, which is for tests", folder, to)
	case driver && noun != "daemon" && target != noun && !(noun == "inside/adapter" && target == "port/agent"): // an adapter is the inside of agent drivers
		t.Errorf("%s imports the driver %s; only daemon and tests may", folder, to)
	case target != noun && !slices.Contains(may, target):
		t.Errorf("%s may not import %s (may: %s)", folder, to, strings.Join(may, " "))
	}
}

func impure(name string) bool {
	return name == "os" || name == "net" || name == "database/sql" || name == "syscall" ||
		strings.HasPrefix(name, "os/") || strings.HasPrefix(name, "net/")
}

// The keeper judges what everything else built: it may stand on nothing that a change can touch.
func TestTheKeeperStandsOnNothingElse(t *testing.T) {
	product, _ := imports(t, "../cmd/sallyport-keeper")
	allowed := []string{"base/cgroup", "base/code", "base/deadman", "base/disk", "base/keeper", "base/race", "base/release"}
	for _, folder := range allowed {
		more, _ := imports(t, folder)
		product = append(product, more...)
	}
	for _, name := range product {
		to, ours := strings.CutPrefix(name, module)
		switch {
		case ours && !slices.Contains(allowed, to):
			t.Errorf("the keeper reaches %s", name)
		case !ours && strings.Contains(strings.Split(name, "/")[0], "."):
			t.Errorf("the keeper reaches %s, which is not in the standard library", name)
		}
	}
}

// Each start of a sandbox pays for all that the runner links: it may not grow in silence.
func TestTheRunnerLinksLittle(t *testing.T) {
	product, _ := imports(t, "../cmd/sallyport-runner")
	for i := 0; i < len(product); i++ {
		to, ours := strings.CutPrefix(product[i], module)
		switch {
		case ours && slices.Contains([]string{"inside/runner", "port/sandbox", "port/agent", "base/beneath", "base/problem"}, to):
			more, _ := imports(t, to)
			for _, name := range more {
				if !slices.Contains(product, name) {
					product = append(product, name)
				}
			}
		case ours:
			t.Errorf("the runner reaches %s", product[i])
		case product[i] == "golang.org/x/sys/unix":
		case strings.Contains(strings.Split(product[i], "/")[0], "."), product[i] == "net", product[i] == "regexp", product[i] == "net/http":
			t.Errorf("the runner reaches %s", product[i])
		}
	}
}

// What the library for MCP costs is paid by the one program that speaks it.
func TestMCPIsLinkedByTheToolAlone(t *testing.T) {
	speakers := map[string]bool{}
	for _, root := range []string{".", "../cmd"} {
		err := filepath.WalkDir(root, func(folder string, d fs.DirEntry, err error) error {
			if err != nil || !d.IsDir() {
				return err
			}
			product, _ := imports(t, folder)
			for _, name := range product {
				if strings.HasPrefix(name, "github.com/modelcontextprotocol/") || name == module+"inside/tools" {
					speakers[filepath.ToSlash(folder)] = true
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if len(speakers) != 2 || !speakers["inside/tools"] || !speakers["../cmd/sallyport-tool"] {
		t.Errorf("these link the library for MCP: %v", speakers)
	}
}
