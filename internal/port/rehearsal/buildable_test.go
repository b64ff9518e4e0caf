package rehearsal_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sallyport/internal/port/rehearsal"
	"sallyport/internal/port/sandbox"
)

const goMod = `module example.org/host

go 1.26.0 // or newer

require example.org/Single v1.0.0

require (
	example.org/block v1.2.3 // indirect
	example.org/moved v0.0.1
	example.org/tests v0.0.1
)

exclude example.org/Single v0.9.0

replace example.org/moved => ../moved
`

// TestWhatABuildOfTheHostLacksIsNamedWithWhatMendsIt holds that of a machine's tools, their age, and the modules that are linked.
func TestWhatABuildOfTheHostLacksIsNamedWithWhatMendsIt(t *testing.T) {
	linked := []string{"example.org/Single", "example.org/block", "example.org/moved", "example.org/elsewhere"}
	const single, block = "ann/go/pkg/mod/example.org/!single@v1.0.0/x.go", "ann/go/pkg/mod/example.org/block@v1.2.3/x.go"
	for name, c := range map[string]struct {
		version    string // of go; "" = none is there
		files      []string
		makeless   bool
		registries bool
		lack, fix  string
	}{
		"all is there":           {"go1.26.1", []string{single, block}, false, false, "", ""},
		"an odd version":         {"devel +abc", []string{single, block}, false, false, "", ""},
		"no make":                {"go1.26.1", []string{single, block}, true, false, "needs make", "apt-get install make"},
		"no go":                  {"", []string{single, block}, false, false, "needs go", "https://go.dev/dl"},
		"an old go":              {"go1.24.4\ntime 2025", []string{single, block}, false, false, "needs Go 1.26.0, and % is go1.24.4", "https://go.dev/dl"},
		"one module":             {"go1.26.1", []string{single}, false, false, "needs 1 Go modules that are not in %, such as example.org/block@v1.2.3,", "GOMODCACHE=% go mod download"},
		"no module":              {"go1.26.1", nil, false, false, "needs 2 Go modules that are not in %, such as example.org/Single@v1.0.0,", "cd % && GOMODCACHE=% go mod download"},
		"a module may be had":    {"go1.26.1", nil, false, true, "", ""},
		"an old go, with a web":  {"go1.24.4", nil, false, true, "needs Go 1.26.0", "https://go.dev/dl"},
		"a file for a module's":  {"go1.26.1", []string{single, strings.TrimSuffix(block, "/x.go")}, false, false, "needs 1 Go modules", "go mod download"},
		"another version of one": {"go1.26.1", []string{single, strings.Replace(block, "1.2.3", "1.2.4", 1)}, false, false, "example.org/block@v1.2.3", "go mod download"},
	} {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			put := func(path, text string, mode os.FileMode) {
				path = filepath.Join(root, path)
				err := os.MkdirAll(filepath.Dir(path), 0o755)
				if err == nil {
					err = os.WriteFile(path, []byte(text), mode)
				}
				if err != nil {
					t.Fatal(err)
				}
			}
			p := sandbox.Person{Path: filepath.Join(root, "sdk/bin"), Home: filepath.Join(root, "ann"), Registries: c.registries}
			if !c.makeless {
				p.Path += ":/usr/bin"
			}
			put("src/go.mod", goMod, 0o644)
			for _, f := range c.files {
				put(f, "", 0o644)
			}
			if c.version != "" {
				put("sdk/bin/go", "\x7fELF", 0o755)
				put("sdk/VERSION", c.version, 0o644)
			} else if path, err := p.Find("go", "/"); err == nil {
				t.Skipf("this machine has %s", path)
			}
			lack, fix := rehearsal.Unbuildable(p, filepath.Join(root, "src"), linked)
			if !like(lack, c.lack) || !like(fix, c.fix) {
				t.Errorf("it lacks %q, and %q mends that", lack, fix)
			}
		})
	}
}

// like reports whether a text has the pieces of a pattern in their order, which stand around %; nothing is like "" but itself.
func like(text, pattern string) bool {
	if pattern == "" {
		return text == ""
	}
	for piece := range strings.SplitSeq(pattern, "%") {
		_, after, found := strings.Cut(text, piece)
		if !found {
			return false
		}
		text = after
	}
	return true
}
