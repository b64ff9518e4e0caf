package policy

import (
	"path"
	"regexp"
	"strings"
	"sync"
)

// telling is a kind of file in which only some lines make something run by itself.
type telling struct {
	names string // of files, at any depth, in lower case
	forms string // the same with wildcards (path.Match)
	line  string // a pattern (RE2) of a line that does
	whole bool   // where such a line stands, any other line can change what it runs
	says  string
}

// Paths of code in the tree. What is escaped can be one.
const (
	ownScript = `(?i)(?:\.{1,2}/[^"'\s]*|['"/][^"'\s]*)\.(?:[cm]?[jt]s|rb|py|lua|so)\b|\\[ux]`
	ownShort  = `['"\s\[,](?:\.{1,2}/)|\\[ux]`
)

var tellings = []telling{
	{names: ".eslintrc .eslintrc.json .eslintrc.yml .eslintrc.yaml .prettierrc .prettierrc.json .prettierrc.json5 .prettierrc.yml .prettierrc.yaml .prettierrc.toml .stylelintrc .stylelintrc.json .stylelintrc.yml .stylelintrc.yaml",
		line: ownShort, says: "an editor that checks or formats what you open runs the code that it names"},
	{names: ".rubocop.yml .solargraph.yml", line: ownScript, says: "an editor that checks what you open runs the code that it names"},
	{names: ".golangci.yml .golangci.yaml .golangci.toml .golangci.json", line: ownScript,
		says: "an editor that checks what you open loads the library that it names"},
	{names: ".pylintrc pylintrc", line: `(?i)^\s*(?:init-hook|load-plugins)\b`, says: "an editor that checks what you open runs the Python that it names"},
	{names: "mypy.ini .mypy.ini", line: `(?i)^\s*plugins\b`, says: "an editor that checks what you open runs the plugins that it names"},
	{names: ".flake8 tox.ini", line: `(?i)local.plugins`, says: "an editor that checks what you open runs the plugins that it names"},
	{names: "setup.cfg", line: `(?i)^\s*(?:cmdclass|setup_requires|command_packages)\b|local.plugins|^\s*plugins\b|(?:^|[=:\s])attr:`,
		says: "pip runs what it names when the project is installed or built, or an editor when it checks"},
	{names: ".luarc.json .luarc.jsonc", line: `(?i)plugin|\\[ux]`, says: "an editor with Lua's language server loads the plugin that it names"},
	{names: "analysis_options.yaml", line: `(?i)^\s*['"]?plugins\b`, says: "an IDE for Dart runs the plugins that it names"},
	{names: ".project", line: `(?i)ExternalToolBuilder|<!(?:DOCTYPE|ENTITY)`, whole: true, says: "Eclipse runs the builder in it when the project is open"},
	{names: "rust-toolchain rust-toolchain.toml", line: `(?i)\bpath\b|/|\\[ux]`, says: "rustup runs cargo and rustc from the folder that it names"},
	{names: ".python-version", line: `/`, says: "uv takes the program that it names for Python, and runs it"},
	{names: "gradle.properties", line: `(?i)jvmargs|java\.home|javaagent|installations|\\u`,
		says: "gradle starts the Java that it names, or with the options in it, at your next command here"},
	{names: "pnpm-workspace.yaml", line: `(?i)onlyBuilt|neverBuilt|dangerously|allowBuilds|configDependencies|pnpmfile|ignoreScripts|scriptShell|nodeOptions|patchedDependencies|\\[ux]`,
		says: "it decides which scripts pnpm runs by itself at your next install"},
	{forms: ".env .env.*", line: `(?i)^\s*(?:export\s+)?(?:LD_|DYLD_|GIT_|BASH_ENV|ENV=|PROMPT_COMMAND|PATH=|NODE_OPTIONS|NODE_PATH|PYTHONSTARTUP|PYTHONPATH|PYTHONHOME|PERL5|RUBYOPT|RUBYLIB|JAVA_TOOL_OPTIONS|JDK_JAVA_OPTIONS|_JAVA_OPTIONS|EDITOR=|VISUAL=|PAGER=|BROWSER=)|\$\(|` + "`",
		says: "a tool or a shell that loads it starts programs with what it sets"},
	{forms: "*.csproj *.fsproj *.vbproj *.vcxproj *.proj *.props *.targets *.sln.targets", whole: true,
		line: `(?i)<(?:[\w.-]+:)?(?:Exec|UsingTask|Task|Analyzer|PreBuildEvent|PostBuildEvent|PreLinkEvent|CustomBuild\w*|\w*Tool(?:Exe|Path))\b|<!(?:DOCTYPE|ENTITY)`,
		says: "an IDE with MSBuild runs the tasks, tools or analyzers in it when the project is open"},
}

type readyTelling struct {
	telling
	line *regexp.Regexp
}

var readyTellings = sync.OnceValues(func() (byName map[string]*readyTelling, forms []*readyTelling) {
	byName = map[string]*readyTelling{}
	for _, t := range tellings {
		ready := &readyTelling{t, regexp.MustCompile(t.line)}
		for _, name := range strings.Fields(t.names) {
			byName[name] = ready
		}
		if t.forms != "" {
			forms = append(forms, ready)
		}
	}
	return byName, forms
})

// linesOf returns what decides by the lines that were added to a file, nil for a file in which none does; p is in lower case.
func linesOf(p string) func(old, new string) string {
	name := path.Base(p)
	byName, forms := readyTellings()
	if t := byName[name]; t != nil {
		return t.in
	}
	for _, t := range forms {
		for _, form := range strings.Fields(t.forms) {
			if ok, err := path.Match(form, name); ok || err != nil {
				return t.in
			}
		}
	}
	return nil
}

// in says what a text makes run that it did not before. What is no text to us can be one to the tool.
func (t *readyTelling) in(old, new string) string {
	if new == TooLong || Binary(new) {
		return "it cannot be read as text, so what it makes a tool run is not known"
	}
	added := addedLines(old, new)
	if t.whole && len(added) > 0 && t.line.MatchString(new) {
		return t.says
	}
	for _, line := range added {
		if t.line.MatchString(line) {
			return t.says
		}
	}
	return ""
}
