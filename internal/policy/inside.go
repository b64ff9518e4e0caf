package policy

import (
	"encoding/json"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/pelletier/go-toml/v2"
)

// inside are files of which only a part runs by itself: content decides.
var inside = map[string]func(old, new string) string{
	"package.json":   packageScripts,
	"composer.json":  composerScripts,
	"pyproject.toml": buildSystem,
	".gitattributes": drivers,
}

// lifecycle are scripts that a package manager runs by itself.
var lifecycle = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^(?:install|prepare|prepublish|prepublishOnly|prepack|dependencies|pre.+|post.+)$`)
})

// packageScripts says which scripts of a package.json run by themselves and are new or other than before.
func packageScripts(old, new string) string {
	scripts, ok := jsonScripts(new)
	if !ok {
		return "it cannot be read as JSON, so which of its scripts npm would run is not known"
	}
	before, _ := jsonScripts(old)
	var changed []string
	for name, script := range scripts {
		if lifecycle().MatchString(name) && before[name] != script {
			changed = append(changed, name)
		}
	}
	if len(changed) == 0 {
		return ""
	}
	slices.Sort(changed)
	return "npm, yarn or pnpm run its scripts " + some(changed) + " by themselves, at your next install or beside another script"
}

// jsonScripts returns the scripts of a package.json or composer.json, each as it is written. Names count as they are spelt and the
// last of a name counts, as for the tools that read it; Go's own reading of a struct takes Scripts for scripts.
func jsonScripts(text string) (map[string]string, bool) {
	if text == "" {
		return nil, true
	}
	var doc, scripts map[string]json.RawMessage
	if err := json.Unmarshal([]byte(strings.TrimPrefix(text, "\ufeff")), &doc); err != nil {
		return nil, false
	}
	if raw, ok := doc["scripts"]; ok && json.Unmarshal(raw, &scripts) != nil {
		return nil, false
	}
	out := map[string]string{}
	for name, script := range scripts {
		out[name] = string(script)
	}
	return out, true
}

func composerScripts(old, new string) string {
	scripts, ok := jsonScripts(new)
	before, _ := jsonScripts(old)
	for name, script := range scripts {
		if before[name] != script {
			return "composer runs its scripts by itself, at your next install or update"
		}
	}
	if !ok {
		return "it cannot be read as JSON, so which of its scripts composer would run is not known"
	}
	return ""
}

// tomlBytesMax bounds what is read as TOML: its reader goes as deep as the text does.
const tomlBytesMax = 64 << 10

// buildSystem says whether what a pyproject.toml builds with changed.
func buildSystem(old, new string) string {
	section := func(text string) (is any, ok bool) {
		var doc map[string]any
		if len(text) > tomlBytesMax || toml.Unmarshal([]byte(strings.TrimPrefix(text, "\ufeff")), &doc) != nil {
			return nil, false
		}
		return doc["build-system"], true
	}
	now, ok := section(new)
	if !ok {
		return "it cannot be read as TOML, or is too long, so what pip would run of it is not known"
	}
	if before, _ := section(old); now != nil && !reflect.DeepEqual(now, before) {
		return "pip runs what its [build-system] names when the project is installed or built"
	}
	return ""
}

// drivers says whether a .gitattributes has git run drivers that it did not.
func drivers(old, new string) string {
	for _, line := range addedLines(old, new) {
		for _, word := range strings.Fields(line) {
			if strings.HasPrefix(word, "filter=") || strings.HasPrefix(word, "diff=") || strings.HasPrefix(word, "merge=") {
				return "git runs the driver that it names, where your configuration has one, at your next diff, merge or checkout"
			}
		}
	}
	return ""
}

// addedLines returns the lines of new that old has not, or not so often.
func addedLines(old, new string) []string {
	had := map[string]int{}
	for line := range strings.Lines(old) {
		had[strings.TrimRight(line, "\r\n")]++
	}
	var added []string
	for line := range strings.Lines(new) {
		line = strings.TrimRight(line, "\r\n")
		if had[line]--; had[line] < 0 {
			added = append(added, line)
		}
	}
	return added
}
