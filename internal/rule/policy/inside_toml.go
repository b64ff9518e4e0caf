package policy

import (
	"fmt"
	"maps"
	"path"
	"reflect"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2"
)

// tomlBytesMax bounds what is read as TOML: its reader goes as deep as the text does.
const tomlBytesMax = 64 << 10

// running is a place in a TOML file whose value runs by itself; a step of it may have wildcards (path.Match).
type running struct {
	at   string // steps with blanks between them
	says string // %s = the place
}

const (
	builds = "pip, or another builder, runs what its [%s] names when the project is installed or built"
	lints  = "an editor that checks what you open runs what its [%s] names"
	tools  = "the project's tool runs what its [%s] names, at its next command here"
)

// pythonBuild says whether what of a pyproject.toml runs by itself changed.
func pythonBuild(old, new string) string {
	return tomlRuns(old, new, "pip", []running{
		{"build-system", builds},
		{"tool hatch build hooks", builds}, {"tool hatch build targets * hooks", builds}, {"tool hatch metadata hooks", builds},
		{"tool hatch version source", builds},
		{"tool hatch envs * pre-install-commands", tools}, {"tool hatch envs * post-install-commands", tools}, {"tool hatch env", tools},
		{"tool poetry build", builds}, {"tool poetry requires-plugins", tools},
		{"tool pdm build custom-hook", builds}, {"tool pdm build run-setuptools", builds}, {"tool pdm build setup-script", builds},
		{"tool pdm version source", builds},
		{"tool pdm plugins", tools}, {"tool pdm scripts pre_*", tools}, {"tool pdm scripts post_*", tools},
		{"tool setuptools cmdclass", builds}, {"tool setuptools_scm *command*", builds}, {"tool setuptools_scm scm git *command*", builds},
		{"tool mypy plugins", lints}, {"tool pylint * init-hook", lints}, {"tool pylint * load-plugins", lints}, {"tool pylint init-hook", lints},
	})
}

// cargoBuild says whether a Cargo.toml names another program that its build, or an editor, runs.
func cargoBuild(old, new string) string {
	const says = "cargo, and an editor with rust-analyzer, runs what its [%s] names at the next build"
	return tomlRuns(old, new, "cargo", []running{{"package build", says}, {"lib proc-macro", says}, {"lib proc_macro", says}})
}

// tomlRuns says which of the places have another value than before. What goes away is none.
func tomlRuns(old, new, reader string, places []running) string {
	read := func(text string) (doc map[string]any, ok bool) {
		return doc, len(text) <= tomlBytesMax && toml.Unmarshal([]byte(strings.TrimPrefix(text, "\ufeff")), &doc) == nil
	}
	now, ok := read(new)
	if !ok {
		return "it cannot be read as TOML, or is too long, so what " + reader + " would run of it is not known"
	}
	before, _ := read(old)
	for _, p := range places {
		had := map[string]any{}
		valuesAt(before, strings.Fields(p.at), "", had)
		has := map[string]any{}
		valuesAt(now, strings.Fields(p.at), "", has)
		for _, at := range slices.Sorted(maps.Keys(has)) {
			if !reflect.DeepEqual(has[at], had[at]) {
				return fmt.Sprintf(p.says, at)
			}
		}
	}
	return ""
}

// valuesAt collects the values at a place, each by its full name.
func valuesAt(doc any, steps []string, name string, into map[string]any) {
	if len(steps) == 0 {
		into[name] = doc
		return
	}
	table, _ := doc.(map[string]any)
	for key, value := range table {
		if ok, _ := path.Match(steps[0], key); ok {
			valuesAt(value, steps[1:], strings.TrimPrefix(name+"."+key, "."), into)
		}
	}
}
