package rehearsal

import (
	"fmt"
	"go/version"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/mod/modfile"
	"golang.org/x/mod/module"

	"sallyport/internal/base/inert"
	"sallyport/internal/port/sandbox"
)

// installGo is what mends a Go that is not there, or too old: a person's distribution has an old one.
const installGo = "install Go from https://go.dev/dl into a folder of your PATH, and then: sallyport daemon stop"

// Unbuildable says what a build of a source, which is linked of the named modules, does not find in a sandbox of a person's, and what
// mends that; "" if nothing is known to lack.
func Unbuildable(p sandbox.Person, source string, modules []string) (lack, fix string) {
	if lack, fix = LacksTool(p, source); lack == "" {
		lack, fix = lacksModule(p, source, modules)
	}
	return lack, fix
}

// LacksTool says that make, or go as the go.mod of a source asks for it, is not there for a build in a sandbox, and what mends that; "" if
// both are.
func LacksTool(p sandbox.Person, source string) (lack, fix string) {
	if path, err := p.Find("make", "/"); err != nil || !p.Shows(path) {
		return "the build needs make, which is not installed below /usr", "sudo apt-get install make"
	}
	path, err := p.Find("go", "/")
	if err == nil {
		_, err = p.Install(path)
	}
	if err != nil {
		return "the build needs go, which sandboxes do not find: " + err.Error(), installGo
	}
	wanted, _ := readGoMod(source)
	has := goVersion(path)
	if wanted != "" && has != "" && version.Compare(has, "go"+wanted) < 0 {
		return fmt.Sprintf("the build needs Go %s, and %s is %s: a sandbox fetches no other", inert.Line(wanted), inert.Path(path), inert.Line(has)), installGo
	}
	return "", ""
}

// lacksModule says which of the named modules are not in a person's module cache as the go.mod of a source has them, and what fetches
// them; "" if all are, or can be fetched by the build itself. Those that go.mod does not name, or replaces, are passed over.
func lacksModule(p sandbox.Person, source string, names []string) (lack, fix string) {
	if p.Registries {
		return "", ""
	}
	cache := p.GoModules()
	_, required := readGoMod(source)
	var absent []string
	for _, m := range required {
		if slices.Contains(names, m.Path) && !isCached(cache, m) {
			absent = append(absent, m.String())
		}
	}
	if len(absent) == 0 {
		return "", ""
	}
	lack = fmt.Sprintf("the build needs %d Go modules that are not in %s, such as %s, and fetches none without `host: {build: {registries: true}}` in sallyport.yaml", len(absent), inert.Path(cache), inert.Line(absent[0]))
	return lack, FetchModules(p, source)
}

// FetchModules is the command that fetches modules to where builds of a person's look for them, whatever the environment says: those of
// a source, or the named ones.
func FetchModules(p sandbox.Person, source string, names ...string) string {
	return strings.TrimSpace("cd " + inert.Path(source) + " && GOMODCACHE=" + inert.Path(p.GoModules()) + " go mod download " + inert.Command(names))
}

// goVersion is which Go a program is, as the folder that it is installed in says, such as go1.26.0; "" if it does not.
func goVersion(path string) string {
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return ""
	}
	raw, err := os.ReadFile(filepath.Join(filepath.Dir(filepath.Dir(real)), "VERSION"))
	first, _, _ := strings.Cut(string(raw), "\n")
	if first = strings.TrimSpace(first); err != nil || !version.IsValid(first) {
		return ""
	}
	return first
}

// readGoMod reads which Go the go.mod of a source asks for, such as 1.26.0, and the versions of modules that it requires, without those
// that it replaces. What is not there, or is no go.mod, asks for nothing: the build itself says what is wrong with it.
func readGoMod(source string) (wants string, required []module.Version) {
	path := filepath.Join(source, "go.mod")
	raw, err := os.ReadFile(path)
	if err != nil {
		return "", nil
	}
	file, err := modfile.Parse(path, raw, nil)
	if err != nil {
		return "", nil
	}
	if file.Go != nil {
		wants = file.Go.Version
	}
	for _, r := range file.Require {
		if !slices.ContainsFunc(file.Replace, func(by *modfile.Replace) bool { return by.Old.Path == r.Mod.Path }) {
			required = append(required, r.Mod)
		}
	}
	return wants, required
}

// isCached says whether a module cache has the files of a module.
func isCached(cache string, m module.Version) bool {
	path, err := module.EscapePath(m.Path)
	if err != nil {
		return false
	}
	version, err := module.EscapeVersion(m.Version)
	if err != nil {
		return false
	}
	info, err := os.Stat(filepath.Join(cache, path+"@"+version))
	return err == nil && info.IsDir()
}
