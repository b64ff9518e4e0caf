package policy

import (
	"encoding/json"
	"path"
	"slices"
	"strings"
)

// inside are files of which only a part runs by itself: content decides.
var inside = map[string]func(old, new string) string{
	"package.json":   packageScripts,
	"composer.json":  composerScripts,
	"pyproject.toml": pythonBuild,
	"cargo.toml":     cargoBuild,
	".gitattributes": drivers,
}

// partOf returns what decides about a file of which only a part runs by itself, nil for any other; p is in lower case.
func partOf(p string) func(old, new string) string {
	if part := inside[path.Base(p)]; part != nil {
		return part
	}
	return linesOf(p)
}

// lifecycle are scripts that a package manager runs by itself, and those that it knows without being told: pre and post of them run too.
var (
	lifecycle = strings.Fields("install prepare prepublish prepublishOnly prepack dependencies")
	known     = strings.Fields("install uninstall update publish pack version prepare shrinkwrap test start stop restart")
)

// runsAlone reports whether a package manager runs a script that nobody asks for. A word that only begins like one, such as
// prettier, is no script before another.
func runsAlone(name string, scripts map[string]string) bool {
	if slices.Contains(lifecycle, name) {
		return true
	}
	for _, when := range []string{"pre", "post"} {
		of, is := strings.CutPrefix(name, when)
		if _, there := scripts[of]; is && (there || slices.Contains(known, of)) {
			return true
		}
	}
	return false
}

// packageScripts says which scripts of a package.json run by themselves and are new or other than before.
func packageScripts(old, new string) string {
	scripts, ok := jsonScripts(new)
	if !ok {
		return "it cannot be read as JSON, so which of its scripts npm would run is not known"
	}
	before, _ := jsonScripts(old)
	var changed []string
	for name, script := range scripts {
		if runsAlone(name, scripts) && before[name] != script {
			changed = append(changed, name)
		}
	}
	if len(changed) == 0 {
		return packageHooks(old, new)
	}
	slices.Sort(changed)
	return "npm, yarn or pnpm run its scripts " + some(changed) + " by themselves, at your next install or beside another script"
}

// packageHooks says whether a package.json has git hooks, or lets the scripts of what it depends on run, otherwise than before.
func packageHooks(old, new string) string {
	now, before := jsonKeys(new), jsonKeys(old)
	for _, key := range []string{"husky", "simple-git-hooks", "gitHooks", "pre-commit", "pre-push", "lint-staged", "commitlint"} {
		if now[key] != "" && now[key] != before[key] {
			return "a git hook runs its " + key + " at your next commit or push, once hooks are installed"
		}
	}
	for _, key := range []string{"trustedDependencies", "pnpm", "gypfile"} {
		if now[key] != "" && now[key] != before[key] {
			return "its " + key + " decides which scripts of what it depends on run by themselves at your next install"
		}
	}
	if version := now["packageManager"]; version != before["packageManager"] && strings.Contains(version, ":") {
		return "corepack fetches the package manager from the address in it, and runs that, at your next command here"
	}
	return ""
}

// jsonKeys returns the values of a JSON object, each as it is written; none if it is no object.
func jsonKeys(text string) map[string]string {
	var doc map[string]json.RawMessage
	_ = json.Unmarshal([]byte(strings.TrimPrefix(text, "\ufeff")), &doc) // what cannot be read was said before
	out := map[string]string{}
	for key, value := range doc {
		out[key] = string(value)
	}
	return out
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
	if now := jsonKeys(new)["config"]; strings.Contains(now, "allow-plugins") && now != jsonKeys(old)["config"] {
		return "its allow-plugins decides which plugins composer runs at your next command"
	}
	return ""
}

// drivers says whether a .gitattributes may have git run drivers that it did not. What decides about drivers has to stay as it
// is, in its order: what goes can uncover another line. Only what takes drivers away may come.
func drivers(old, new string) string {
	const says = "git may run a driver by it that it did not run, where your configuration has one, at your next diff, merge or checkout"
	if new == TooLong {
		return says
	}
	before := driverLines(old)
	for _, line := range driverLines(new) {
		switch {
		case len(before) > 0 && line == before[0]:
			before = before[1:]
		case mayGive(line):
			return says
		}
	}
	if len(before) > 0 {
		return says
	}
	return ""
}

// driverLines returns the lines of a .gitattributes that can decide which driver git runs.
func driverLines(text string) (lines []string) {
	for line := range strings.Lines(strings.TrimPrefix(text, "\ufeff")) {
		line = strings.Trim(line, " \t\r\n")
		about := slices.ContainsFunc([]string{"filter", "diff", "merge", "binary", "[attr]"}, func(s string) bool { return strings.Contains(line, s) })
		if comment := strings.HasPrefix(line, "#"); mayGive(line) || about && !comment {
			lines = append(lines, line)
		}
	}
	return lines
}

// plainAttributes are words that give no driver when they stand alone.
var plainAttributes = strings.Fields("text crlf eol ident whitespace diff merge binary delta export-ignore export-subst lockable")

// mayGive reports whether a line of attributes can give a driver: by name, by a macro, which another file may define, or because
// versions of git read it in different ways.
func mayGive(line string) bool {
	if len(line) >= 2046 || strings.Contains(line, "\x00") { // an older git reads the rest of a long line as another, of a comment, too
		return true
	}
	if line == "" || line[0] == '#' {
		return false
	}
	for _, named := range []string{"filter=", "diff=", "merge="} {
		if strings.Contains(line, named) {
			return true
		}
	}
	words := ""
	if line[0] == '"' {
		pattern, rest, closed := strings.Cut(line[1:], `"`)
		if !closed || strings.Contains(pattern, `\`) || strings.HasPrefix(pattern, "[attr]") {
			return true
		}
		words = rest
	} else if at := strings.IndexAny(line, " \t\r"); at >= 0 {
		words = line[at:]
	}
	return slices.ContainsFunc(strings.Fields(words), func(word string) bool {
		takes := strings.HasPrefix(word, "-") || strings.HasPrefix(word, "!") || strings.Contains(word, "=")
		return !takes && !slices.Contains(plainAttributes, word) && !strings.HasPrefix(word, "linguist-")
	})
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
