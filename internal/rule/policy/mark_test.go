package policy_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"sallyport/internal/base/git"
	"sallyport/internal/rule/policy"
)

// world is the tree that results, and both sides of some of its files.
type world struct {
	files map[string]string // after
	old   map[string]string // before, of those that were there
	named []git.Named
}

// marked judges every file of w but those that are as they were.
func (w world) marked() []policy.Mark {
	in := policy.Marking{Text: map[git.OID]string{}, Named: w.named}
	oid := func(side, p string) git.OID { return git.OID(side + " " + p) }
	for p, text := range w.files {
		if old, was := w.old[p]; was && old == text {
			continue
		}
		e := git.Edit{Path: p, New: git.Entry{Mode: git.File, OID: oid("new", p)}}
		in.Text[oid("new", p)] = text
		if old, was := w.old[p]; was {
			e.Old = git.Entry{Mode: git.File, OID: oid("old", p)}
			in.Text[oid("old", p)] = old
		}
		in.Changes = append(in.Changes, policy.Change{Edit: e})
	}
	in.Entry = func(at string) (git.Entry, bool) {
		for p := range w.files {
			if p == at || strings.HasPrefix(p, at+"/") {
				return git.Entry{Mode: git.File}, true
			}
		}
		return git.Entry{}, false
	}
	in.Names = func(folder string) []string {
		var names []string
		for p := range w.files {
			if folder == "" || strings.HasPrefix(p, folder+"/") {
				name, _, _ := strings.Cut(strings.TrimPrefix(strings.TrimPrefix(p, folder), "/"), "/")
				names = append(names, name)
			}
		}
		return names
	}
	return policy.Marked(in)
}

func TestWhatAToolRunsByItselfIsMarked(t *testing.T) {
	for _, p := range strings.Fields(`flake.nix nix/shell.nix devenv.nix devenv.yaml devbox.json tailwind.config.ts web/svelte.config.js postcss.config.cjs graphql.config.mts
		.envrc.local .postcssrc.ts .graphqlrc.js .mocharc.cjs .mocharc.yml jest.config.json vite.config.ts vitest.config.mjs vitest.workspace.ts jest.config.js e2e/playwright.config.ts .envrc sub/.envrc .ENVRC .mise.toml .tool-versions .bashrc .profile .zshrc dotfiles/.zshenv .husky/pre-commit .githooks/post-checkout .pre-commit-config.yaml
		lefthook.yml .gitmodules .lfsconfig .gitconfig .vscode/tasks.json web/.vscode/settings.json .vscode/launch.json app.code-workspace .idea/workspace.xml .run/app.run.xml
		.vimrc .exrc .nvim.lua .dir-locals.el sub/.vim/ftplugin/go.vim .devcontainer/devcontainer.json .devcontainer.json .gitpod.yml .npmrc .yarnrc.yml .yarn/releases/yarn.cjs .pnpmfile.cjs
		setup.py sitecustomize.py x.pth build.rs .cargo/config.toml Gemfile app.gemspec .bundle/config gradlew .mvn/extensions.xml gradle/wrapper/gradle-wrapper.jar .gdbinit .tmux.conf .irbrc .vscode
		binding.gyp native/binding.gyp hatch_build.py .pnp.cjs eslint.config.mjs web/.eslintrc.cjs prettier.config.js .lintstagedrc.json commitlint.config.js .rvmrc .hg/hgrc .jj/repo/config.toml .sl/config
		.venv/bin/python pyvenv.cfg node_modules/.bin/tsc .bsp/sbt.json .helix/languages.toml .ycm_extra_conf.py .merlin hie.yaml .luacheckrc app.ipr .replit .idx/dev.nix Podfile mix.exs
		.bazelrc tools/bazel .bazeliskrc ansible.cfg Directory.Build.rsp .jvmopts gradle/init.d/x.gradle .ssh/config .config/fish/conf.d/a.fish .gitconfig.local dev.gitconfig .lldbinit-Xcode python-gdb.py`) {
		if ms := (world{files: map[string]string{p: "x\n"}}).marked(); len(ms) != 1 || ms[0].Kind != policy.MarkRuns || ms[0].Path != p || ms[0].Says == "" {
			t.Errorf("%s: %v", p, ms)
		}
	}
	for _, p := range strings.Fields("AGENTS.md docs/CLAUDE.md .claude/settings.json .codex/config.toml .gemini/settings.json .mcp.json .cursor/rules/a.mdc .github/copilot-instructions.md " +
		".kiro/settings/mcp.json .amazonq/mcp.json crush.json .crush.json CRUSH.md .junie/guidelines.md .kilocode/mcp.json .factory/mcp.json .trae/mcp.json .augment-guidelines WARP.md .rules") {
		if ms := (world{files: map[string]string{p: "x\n"}}).marked(); len(ms) != 1 || ms[0].Kind != policy.MarkAgent {
			t.Errorf("%s: %v", p, ms)
		}
	}
	for _, p := range strings.Fields(".gitleaks.toml .gitleaksignore") {
		if ms := (world{files: map[string]string{p: "x\n"}}).marked(); len(ms) != 1 || ms[0].Kind != policy.MarkSecrets {
			t.Errorf("%s: %v", p, ms)
		}
	}
	for _, p := range strings.Fields(`flake.lock pkgs/default.nix vite.config.json tailwind.css src/vitest.ts main.go Makefile justfile .editorconfig .gitignore README.md src/profile.go vscode/tasks.json HEAD objects/a package-lock.json go.mod Dockerfile .github/workflows/ci.yml bashrc setup.cfg env.rc x.envrc2
		tests/conftest.py noxfile.py tox.ini pytest.ini requirements.txt bindings.gyp src/binding.go my_hatch_build.py hatch.toml eslint.config.json src/eslint.config.rs prettier.md src/venv/binary.go cmd/hg/main.go docs/.html
		src/bin/python.c node_modules/a/index.js tools/bazel.go ansible.yml jvmopts.txt build.gradle settings.gradle.kts pom.xml gradle/libs.versions.toml CMakeLists.txt BUILD.bazel .bazelversion ssh/config.go
		.nvmrc .node-version .java-version .python-version .env.example .clang-format .prettierignore .eslintignore .golangci.yml .pylintrc rust-toolchain.toml gradle.properties pnpm-workspace.yaml
		src/App.csproj Directory.Build.props pubspec.yaml analysis_options.yaml .github/dependabot.yml .dockerignore compose.yaml .gitlab-ci.yml hooks/useState.ts web/hooks/index.js githooks.md lefthook.md mixer.exs`) {
		if ms := (world{files: map[string]string{p: "x\n"}}).marked(); len(ms) != 0 {
			t.Errorf("%s: %v", p, ms)
		}
	}
	gone := policy.Marking{Changes: []policy.Change{{Edit: git.Edit{Path: ".envrc", Old: git.Entry{Mode: git.File, OID: "1"}}}}}
	if ms := policy.Marked(gone); len(ms) != 0 {
		t.Errorf("what goes away is marked: %v", ms)
	}
}

func TestOnlyThePartThatRunsIsMarked(t *testing.T) {
	for name, c := range map[string]struct {
		path, old, new string
		want           string // in what is said; "" = no mark
	}{
		"a script before an install":   {"package.json", `{"scripts":{"test":"jest"}}`, `{"scripts":{"test":"jest","postinstall":"node x.js"}}`, "postinstall"},
		"one that changed":             {"web/package.json", `{"scripts":{"prepare":"a"}}`, `{"scripts":{"prepare":"b"}}`, "prepare"},
		"beside another":               {"package.json", `{}`, `{"scripts":{"pretest":"x"}}`, "pretest"},
		"spelt twice, emptied":         {"package.json", `{}`, `{"scripts":{"postinstall":"evil"},"Scripts":null}`, "postinstall"},
		"spelt twice, as it was":       {"package.json", `{"scripts":{"postinstall":"x"}}`, `{"scripts":{"postinstall":"evil"},"SCRIPTS":{"postinstall":"x"}}`, "postinstall"},
		"the last of a name counts":    {"package.json", `{}`, `{"scripts":null,"scripts":{"postinstall":"evil"}}`, "postinstall"},
		"composer's, spelt twice":      {"composer.json", `{}`, `{"scripts":{"post-install-cmd":"x"},"Scripts":null}`, "composer"},
		"an ordinary script":           {"package.json", `{"scripts":{}}`, `{"scripts":{"build":"tsc"},"dependencies":{"a":"1"}}`, ""},
		"one that begins like one":     {"package.json", `{}`, `{"scripts":{"prettier":"prettier .","postcss":"postcss .","prepare-it":"x"}}`, ""},
		"before one of its own":        {"package.json", `{}`, `{"scripts":{"lint":"a","postlint":"b"}}`, "postlint"},
		"a script that stayed":         {"package.json", `{"scripts":{"prepare":"a"}}`, `{"scripts":{"prepare":"a"},"version":"2"}`, ""},
		"no JSON":                      {"package.json", `{}`, `{"scripts":`, "cannot be read"},
		"the first that there is":      {"package.json", "", `{"scripts":{"postinstall":"x"}}`, "postinstall"},
		"two, in their order":          {"package.json", `{}`, `{"scripts":{"prepare":"b","preinstall":"x","install":"y"}}`, "install, preinstall"},
		"nothing in it":                {"package.json", `{}`, "", ""},
		"scripts that are none":        {"package.json", `{}`, `{"scripts":5}`, "cannot be read"},
		"git hooks that stayed":        {"package.json", `{"husky":{"a":1}}`, `{"husky":{"a":1},"version":"2"}`, ""},
		"who may, as it was":           {"package.json", `{"pnpm":{"a":1}}`, `{"pnpm":{"a":1},"version":"2"}`, ""},
		"composer's plugins, as ever":  {"composer.json", `{"config":{"allow-plugins":true}}`, `{"config":{"allow-plugins":true},"require":{}}`, ""},
		"composer's other settings":    {"composer.json", `{}`, `{"config":{"sort-packages":true}}`, ""},
		"composer":                     {"composer.json", `{}`, `{"scripts":{"post-install-cmd":["x"]}}`, "composer"},
		"composer's dependencies":      {"composer.json", `{"scripts":{"a":"b"}}`, `{"scripts":{"a":"b"},"require":{}}`, ""},
		"a build system":               {"pyproject.toml", "[project]\n", "[project]\n[build-system]\nrequires = [\"x\"]\nbuild-backend = \"b\"\nbackend-path = [\".\"]\n", "[build-system]"},
		"one with blanks":              {"pyproject.toml", "[project]\n", "[project]\n [ build-system ]\nbuild-backend = 'b'\n", "[build-system]"},
		"one in quotes":                {"pyproject.toml", "", "[\"build\\u002dsystem\"]\nbuild-backend = 'b'\n", "[build-system]"},
		"one with dots":                {"pyproject.toml", "", "build-system.build-backend = 'b'\n", "[build-system]"},
		"one in a line":                {"pyproject.toml", "", "build-system = {build-backend = 'b', backend-path = ['.']}\n", "[build-system]"},
		"behind what looks like one":   {"pyproject.toml", "[build-system]\nrequires = []\n", "[build-system]\nrequires = []\nx = \"\"\"\n[y]\n\"\"\"\nbuild-backend = 'b'\n", "[build-system]"},
		"no TOML":                      {"pyproject.toml", "", "[build-system\n", "cannot be read"},
		"deeper than a reader goes":    {"pyproject.toml", "", "x = " + strings.Repeat("[", 1<<20), "too long"},
		"a project's dependencies":     {"pyproject.toml", "[build-system]\nrequires = []\n[project]\n", "[build-system]\nrequires = []\n[project]\nname = 'a'\n", ""},
		"a filter":                     {".gitattributes", "* text\n", "* text\n*.c filter=evil\n", "driver"},
		"a driver behind a quote":      {".gitattributes", "", "\"*.c\"filter=evil\n", "driver"},
		"a macro in quotes":            {".gitattributes", "", "\"[attr]foo\\tbar\" merge\n", "driver"},
		"a pattern with an escape":     {".gitattributes", "", "\"*.c\\000z\" text\n", "driver"},
		"a macro that was there":       {".gitattributes", "[attr]foo merge=evil\n", "[attr]foo merge=evil\n* foo\n", "driver"},
		"a macro of another file":      {"a/.gitattributes", "", "* foo\n", "driver"},
		"what took a driver away":      {".gitattributes", "* filter=evil\n*.c -filter\n", "* filter=evil\n", "driver"},
		"two lines the other way":      {".gitattributes", "*.c filter=evil\n* -filter\n", "* -filter\n*.c filter=evil\n", "driver"},
		"a comment that git may split": {".gitattributes", "", "#" + strings.Repeat("x", 2050) + " text\n", "driver"},
		"a comment that git reads":     {".gitattributes", "", "#" + strings.Repeat("x", 2044) + "\n", ""},
		"a comment that is as long":    {".gitattributes", "", "#" + strings.Repeat("x", 2045) + "\n", "driver"},
		"comments and blank lines":     {".gitattributes", "", "# no filter=here\n\n*.txt text\n", ""},
		"a plain line that goes":       {".gitattributes", "*.txt text\n*.c text\n", "*.c text\n", ""},
		"what takes a driver away":     {".gitattributes", "* filter=lfs\n", "* filter=lfs\n*.c -filter\n", ""},
		"line ends":                    {".gitattributes", "", "* text=auto eol=lf\n*.png -diff\n", ""},
		"hatch's hook":                 {"pyproject.toml", "[build-system]\nrequires = []\n", "[build-system]\nrequires = []\n[tool.hatch.build.hooks.custom]\npath = 'x.py'\n", "tool.hatch.build.hooks"},
		"of one of its targets":        {"pyproject.toml", "", "[tool.hatch.build.targets.wheel.hooks.custom]\n", "tool.hatch.build.targets.wheel.hooks"},
		"as long as can be read":       {"pyproject.toml", "", "#" + strings.Repeat("x", 64<<10-1), ""},
		"its packages":                 {"pyproject.toml", "", "[tool.hatch.build.targets.wheel]\npackages = ['a']\n[tool.hatch.version]\npath = 'a.py'\n", ""},
		"hatch's version, by code":     {"pyproject.toml", "", "[tool.hatch.version]\nsource = 'code'\npath = 'a.py'\n", "tool.hatch.version.source"},
		"poetry's script":              {"pyproject.toml", "", "[tool.poetry.build]\nscript = 'b.py'\n", "tool.poetry.build"},
		"poetry's dependencies":        {"pyproject.toml", "[tool.poetry]\n", "[tool.poetry]\nname = 'a'\n[tool.poetry.dependencies]\na = '1'\n[tool.poetry.scripts]\na = 'a:main'\n", ""},
		"pdm's hook":                   {"pyproject.toml", "", "[tool.pdm.scripts]\npost_install = 'x'\n", "tool.pdm.scripts.post_install"},
		"pdm's own script":             {"pyproject.toml", "", "[tool.pdm.scripts]\nstart = 'x'\n", ""},
		"setuptools' commands":         {"pyproject.toml", "", "[tool.setuptools.cmdclass]\nbuild_py = 'x.Y'\n", "tool.setuptools.cmdclass"},
		"setuptools' packages":         {"pyproject.toml", "", "[tool.setuptools]\npackages = ['a']\n[tool.ruff]\nline-length = 100\n[tool.mypy]\nstrict = true\n", ""},
		"mypy's plugins":               {"pyproject.toml", "", "[tool.mypy]\nplugins = ['x.py']\n", "tool.mypy.plugins"},
		"a hook that stayed":           {"pyproject.toml", "[tool.pdm.scripts]\npre_run = 'x'\n", "[tool.pdm.scripts]\npre_run = 'x'\na = 'b'\n", ""},
		"a build script elsewhere":     {"Cargo.toml", "[package]\nname = 'a'\n", "[package]\nname = 'a'\nbuild = 'src/x.rs'\n", "package.build"},
		"a macro of the compiler":      {"Cargo.toml", "", "[lib]\nproc-macro = true\n", "lib.proc-macro"},
		"cargo's dependencies":         {"Cargo.toml", "", "[package]\nversion = '2'\n[dependencies]\nbuild = '1'\n[build-dependencies]\ncc = '1'\n", ""},
		"a toolchain of one's own":     {"rust-toolchain.toml", "", "[toolchain]\npath = 'tools/rust'\n", "rustup"},
		"a newer toolchain":            {"rust-toolchain.toml", "[toolchain]\nchannel = '1.80'\n", "[toolchain]\nchannel = '1.81'\n", ""},
		"git hooks":                    {"package.json", `{}`, `{"husky":{"hooks":{"pre-commit":"x"}}}`, "husky"},
		"who may run scripts":          {"package.json", `{}`, `{"trustedDependencies":["x"]}`, "trustedDependencies"},
		"a manager from elsewhere":     {"package.json", `{}`, `{"packageManager":"yarn@https://x.example/y.js"}`, "corepack"},
		"a newer manager":              {"package.json", `{"packageManager":"pnpm@9.0.0"}`, `{"packageManager":"pnpm@9.1.0+sha512.aa","jest":{},"eslintConfig":{}}`, ""},
		"composer's plugins":           {"composer.json", `{}`, `{"config":{"allow-plugins":true}}`, "allow-plugins"},
		"pnpm's packages":              {"pnpm-workspace.yaml", "", "packages:\n  - 'a/*'\ncatalog:\n  react: 19\n", ""},
		"pnpm's builds":                {"pnpm-workspace.yaml", "", "onlyBuiltDependencies:\n  - x\n", "pnpm"},
		"a parser in the tree":         {".eslintrc.json", "", `{"parser": "./x.js"}`, "editor"},
		"a rule":                       {".eslintrc.json", "", `{"extends": "eslint:recommended", "ignorePatterns": ["dist/"], "rules": {"semi": 2}}`, ""},
		"a plugin in the tree":         {".prettierrc", "", "plugins:\n  - ./x.mjs\n", "editor"},
		"a width":                      {".prettierrc", "", "{\"printWidth\": 100, \"plugins\": [\"prettier-plugin-go\"]}\n", ""},
		"a cop in the tree":            {".rubocop.yml", "", "require:\n  - ./lib/x.rb\n", "editor"},
		"a cop":                        {".rubocop.yml", "", "require: rubocop-rspec\nLayout/LineLength:\n  Max: 100\n  Exclude:\n    - 'spec/**/*'\n", ""},
		"an own linter":                {".golangci.yml", "", "custom:\n  x:\n    path: ./x.so\n", "library"},
		"linters":                      {".golangci.yml", "", "linters:\n  enable: [errcheck]\nrun:\n  timeout: 5m\n", ""},
		"pylint's hook":                {".pylintrc", "", "[MAIN]\ninit-hook='import x'\n", "Python"},
		"pylint's rules":               {".pylintrc", "", "[MAIN]\ndisable=C0111\n", ""},
		"setuptools' old commands":     {"setup.cfg", "", "[options]\ncmdclass =\n  x = y\n", "pip"},
		"its old metadata":             {"setup.cfg", "", "[metadata]\nname = a\n[flake8]\nmax-line-length = 100\n", ""},
		"a Python by its path":         {".python-version", "", "./tools/python\n", "uv"},
		"a Python by its number":       {".python-version", "3.11\n", "3.12.1\n", ""},
		"what a shell begins with":     {".env", "", "A=1\nexport BASH_ENV=./x\n", "sets"},
		"what a loader begins with":    {"web/.env.local", "", "NODE_OPTIONS=--require ./x.js\n", "sets"},
		"settings of an application":   {".env.example", "", "DATABASE_URL=postgres://localhost/x\nNODE_ENV=test\nAPP_PATH=/srv\nMY_EDITOR=a\n", ""},
		"gradle's Java":                {"gradle.properties", "", "org.gradle.java.home=tools/jdk\n", "Java"},
		"gradle's Java, as it was":     {"gradle.properties", "org.gradle.java.home=tools/jdk\n", "org.gradle.java.home=tools/jdk\nversion=1.2\n", ""},
		"gradle's switches":            {"gradle.properties", "", "org.gradle.parallel=true\nkotlin.code.style=official\nversion=1.2\n", ""},
		"a task of MSBuild":            {"a/App.csproj", "<Project>\n</Project>\n", "<Project>\n<Target><Exec Command=\"x\"/></Target>\n</Project>\n", "MSBuild"},
		"beside one that was there":    {"Directory.Build.targets", "<Exec\n Command=\"a\"/>\n", "<Exec\n Command=\"b\"/>\n", "MSBuild"},
		"a task that stayed":           {"Directory.Build.targets", "<Exec Command=\"a\"/>\n<!-- -->\n", "<Exec Command=\"a\"/>\n", ""},
		"in another encoding":          {"a.csproj", "", "<\x00E\x00x\x00e\x00c\x00", "cannot be read"},
		"packages of a project":        {"App.csproj", "", "<Project Sdk=\"Microsoft.NET.Sdk\"><ItemGroup><PackageReference Include=\"A.Analyzers\" Version=\"1\"/></ItemGroup><PropertyGroup><OutputType>Exe</OutputType></PropertyGroup></Project>\n", ""},
		"a filter that was there":      {"a/.gitattributes", "*.bin filter=lfs\n", "*.bin filter=lfs\n*.txt text\n", ""},
	} {
		w := world{files: map[string]string{c.path: c.new}}
		if c.old != "" {
			w.old = map[string]string{c.path: c.old}
		}
		ms := w.marked()
		if c.want == "" && len(ms) > 0 || c.want != "" && (len(ms) != 1 || !strings.Contains(ms[0].Says, c.want)) {
			t.Errorf("%s: %v", name, ms)
		}
	}
}

// What is read as a link is not what the tree shows.
func TestALinkWhereContentDecidesIsMarked(t *testing.T) {
	in := policy.Marking{Changes: []policy.Change{{Edit: git.Edit{Path: "package.json", New: git.Entry{Mode: git.Symlink, OID: "1"}}}}}
	in.Entry, in.Names = func(string) (git.Entry, bool) { return git.Entry{}, false }, func(string) []string { return nil }
	if ms := policy.Marked(in); len(ms) != 1 || ms[0].Kind != policy.MarkRuns {
		t.Errorf("%v", ms)
	}
}

func TestWhatThePersonsGitNamesIsMarked(t *testing.T) {
	w := world{files: map[string]string{"scripts/hooks/pre-commit": "x\n", "scripts/hooks.md": "x\n", "tools/clean.py": "x\n", "tools/clean.pyc": "x\n", "scripts": "link"},
		named: []git.Named{{Path: "scripts/hooks", By: "git's core.hookspath"}, {Path: "tools/clean.py", By: "git's filter.x.clean"}}}
	var paths []string
	for _, m := range w.marked() {
		if m.Kind != policy.MarkRuns || !strings.Contains(m.Says, "git's ") {
			t.Errorf("%+v", m)
		}
		paths = append(paths, m.Path)
	}
	if want := []string{"scripts", "scripts/hooks/pre-commit", "tools/clean.py"}; !slices.Equal(paths, want) {
		t.Errorf("marked are %q, want %q", paths, want)
	}
}

func TestAnEmbeddedRepositoryIsMarked(t *testing.T) {
	files := map[string]string{"lib/x/HEAD": "ref: refs/heads/main\n", "lib/x/objects/pack/a": "", "lib/x/refs/heads/main": "", "lib/x/config": "[core]\nfsmonitor = evil\n", "lib/y.go": "package y\n"}
	if ms := (world{files: files}).marked(); len(ms) != 1 || ms[0].Path != "lib/x" || ms[0].Kind != policy.MarkRuns {
		t.Errorf("%v", ms)
	}
	// The last file that makes it one is enough, wherever the others come from, and however deep it lies.
	for _, last := range []string{"lib/x/HEAD", "lib/x/objects/pack/a"} {
		old := maps.Clone(files)
		delete(old, last)
		if ms := (world{files: files, old: old}).marked(); len(ms) != 1 || ms[0].Path != "lib/x" {
			t.Errorf("%s: %v", last, ms)
		}
	}
	for _, half := range []string{"objects/a", "refs/a"} {
		if ms := (world{files: map[string]string{"lib/x/HEAD": "of the table\n", "lib/x/" + half: "x"}}).marked(); len(ms) != 0 {
			t.Errorf("one with %s alone: %v", half, ms)
		}
	}
	if ms := (world{files: map[string]string{"lib/x/HEAD": "of the table\n", "lib/x/commondir": "../y\n"}}).marked(); len(ms) != 1 || ms[0].Path != "lib/x" {
		t.Errorf("one that has its objects elsewhere: %v", ms)
	}
}

// Two changes that begin on one base can bring the halves, and neither sees the other's.
func TestAHeadThatWaitsForTheRestOfARepositoryIsMarked(t *testing.T) {
	for text, want := range map[string]int{"ref: refs/heads/main\n": 1, strings.Repeat("0a", 20) + "\n": 1, "ref:\trefs/x": 1, "of the table\n": 0} {
		if ms := (world{files: map[string]string{"lib/x/HEAD": text, "lib/x/config": "[core]\n"}}).marked(); len(ms) != want {
			t.Errorf("%q: %v", text, ms)
		}
	}
	link := policy.Marking{Changes: []policy.Change{{Edit: git.Edit{Path: "HEAD", New: git.Entry{Mode: git.Symlink, OID: "1"}}}}}
	link.Entry, link.Names = func(string) (git.Entry, bool) { return git.Entry{}, false }, func(string) []string { return nil }
	if ms := policy.Marked(link); len(ms) != 1 {
		t.Errorf("a link: %v", ms)
	}
}

// A change may add any number of files to a folder: each is compared with the others, and the folder is read once.
func TestAFolderIsLookedThroughOnceForNamesThatLookAlike(t *testing.T) {
	var in policy.Marking
	var names []string
	for i := range 200 {
		names = append(names, fmt.Sprintf("\u0444%03d.txt", i))
		in.Changes = append(in.Changes, policy.Change{Edit: git.Edit{Path: "d/" + names[i], New: git.Entry{Mode: git.File, OID: "1"}}})
	}
	read := 0
	in.Entry = func(string) (git.Entry, bool) { return git.Entry{}, false }
	in.Names = func(folder string) []string {
		if read++; folder == "d" {
			return names
		}
		return []string{"d"}
	}
	if ms := policy.Marked(in); len(ms) != 0 || read != 2 {
		t.Errorf("folders were read %d times, want 2: %v", read, ms)
	}
}

func TestANameThatLooksLikeAnotherIsMarked(t *testing.T) {
	for name, c := range map[string]struct {
		files []string
		want  bool
	}{
		"Cyrillic among Latin": {[]string{"p\u0430ckage.go"}, true},
		"Greek among Latin":    {[]string{"src/c\u03bfnfig.go"}, true},
		"all Cyrillic, a twin": {[]string{"\u0441\u043e\u0440.go", "cop.go"}, true},
		"composed differently": {[]string{"caf\u00e9.txt", "cafe\u0301.txt"}, true},
		"full width":           {[]string{"\uff4dain.go", "main.go"}, true},
		"a hyphen of another":  {[]string{"a\u2010b.go", "a-b.go"}, true},
		"a folder":             {[]string{"s\u0441/a.go"}, true},
		"Russian words":        {[]string{"\u0434\u043e\u043a\u0443\u043c\u0435\u043d\u0442.md"}, false},
		"French":               {[]string{"r\u00e9sum\u00e9.md", "a.md"}, false},
		"Chinese":              {[]string{"\u6587\u6863.md", "\u6587\u4ef6.md"}, false},
		"plain":                {[]string{"main.go", "main_test.go"}, false},
		"a twin":               {[]string{"ma\u0131n.go", "main.go"}, true},
		"marks in any order":   {[]string{"a\u0301\u034f\u0323.go", "a\u0323\u0301.go"}, true},
		"what nobody sees":     {[]string{"ma\u034fin.go"}, true},
		"a form of Mongolian":  {[]string{"main\u180b.go"}, true},
		"Mongolian":            {[]string{"\u1828\u180b.md"}, false},
		"a twin of an older":   {[]string{"main.go", "ma\u0131n.go"}, true},
		"another case":         {[]string{"Main.go", "main.go"}, false},
		"another twin's case":  {[]string{"\u0421\u041e\u0420.go", "cop.go"}, true},
		"Armenian among Latin": {[]string{"a\u0561b.go"}, true},
		"Cherokee among Latin": {[]string{"\u13a0bc.go"}, true},
		"Chinese among Latin":  {[]string{"a\u6587b.go"}, false},
		"units":                {[]string{"x\u00b5.md", "x\u03bc.md.txt", "x\u03a9.md", "x\u2126.txt"}, false},
		"a picture":            {[]string{"\u2764\ufe0f.png"}, false},
		"a family":             {[]string{"\U0001f468\u200d\U0001f469.png"}, false},
		"a joiner first":       {[]string{"\u200d\u6587.md"}, true},
	} {
		w := world{files: map[string]string{}, old: map[string]string{}}
		for i, f := range c.files {
			if w.files[f] = "x\n"; i > 0 { // the first is new, and looks like one that was there
				w.old[f] = "x\n"
			}
		}
		ms := w.marked()
		if (len(ms) > 0) != c.want || len(ms) > 0 && ms[0].Kind != policy.MarkName {
			t.Errorf("%s: %v", name, ms)
		}
	}
}

func TestWhatAReaderDoesNotSeeIsMarked(t *testing.T) {
	for name, c := range map[string]struct {
		old, new string
		want     bool
	}{
		"another order":            {"", "if x { /* \u202e } */ }\n", true},
		"an isolate":               {"", "a \u2066b\u2069\n", true},
		"no width":                 {"", "ad\u200bmin := 1\n", true},
		"a filler that is a name":  {"", "var \u3164 = 1\n", true},
		"tags":                     {"", "x\U000e0041\U000e0042\n", true},
		"selectors without end":    {"", "x\U000e0101\U000e0102\n", true},
		"a joiner in Latin":        {"", "a\u200db\n", true},
		"a joiner behind a digit":  {"", "x1\u200d\u6587\n", true},
		"Mongolian":                {"", "\u182e\u1823\u1829\u182d\u1823\u182f \u1828\u180b\u1820 \u1820\u180e\u1820\n", false},
		"a terminal's escape":      {"", "echo \x1b[2K\n", true},
		"a line overwritten":       {"", "evil()\r// ok     \n", true},
		"far to the right":         {"", "x := 1" + strings.Repeat(" ", 150) + "; evil()\n", true},
		"far by tabs":              {"", "x := 1" + strings.Repeat("\t", 20) + "; evil()\n", true},
		"in a line that was there": {"a \u202e b\nold\n", "a \u202e b\nnew\n", false},
		"there once, now twice":    {"a \u202e b\n", "a \u202e b\na \u202e b\n", true},
		"a mark of byte order":     {"", "\ufeffusing System;\r\nclass A {}\r\n", false},
		"a family":                 {"", "\U0001f468\u200d\U0001f469\u200d\U0001f467 \u2764\ufe0f\n", false},
		"Persian":                  {"", "\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645\n", false},
		"deep, but no more":        {"", strings.Repeat("\t", 10) + "x()\n", false},
		"blanks at the end":        {"", "x()" + strings.Repeat(" ", 300) + "\n", false},
		"a binary":                 {"", "\x00\x01\x1b\u202e", false},
		"text that ends in a zero": {"", strings.Repeat("// a line\n", 900) + "// \u202e }\n/*\x00*/\n", true},
		"a line that is none":      {"", "// a\u2028evil()\n", true},
		"a blank that is a name":   {"", "let \u2800 = 1\n", true},
		"what pictures look like":  {"", "x\ufe0f\ufe01\ufe0f\ufe0e\n", true},
		"a key's cap":              {"", "1\ufe0f\u20e3 \u2600\ufe0e\n", false},
		"too large":                {"", policy.TooLong, true},
		"a deletion":               {"", "x\x7f := 1\n", true},
		"a control of another set": {"", "x\u0080 := 1\n", true},
		"the last of that set":     {"", "x\u009f := 1\n", true},
		"a blank of another width": {"", "x\u00a0:= 1\n", false},
		"blanks that are seen":     {"", "x" + strings.Repeat(" ", 100) + "y\n", false},
		"one blank more":           {"", "x" + strings.Repeat(" ", 101) + "y\n", true},
		"tabs that are seen":       {"", "x" + strings.Repeat("\t", 12) + "y\n", false},
		"one tab more":             {"", "x" + strings.Repeat("\t", 13) + "y\n", true},
		"blanks here and there":    {"", strings.Repeat("x             ", 20) + "y\n", false},
		"a joiner behind a letter": {"", "\u02ff\u200d\u6587\n", true},
		"a joiner before one":      {"", "\u6587\u200d\u02ff\n", true},
		"a picture's look, twice":  {"", "\u2764\ufe0f\ufe0e\n", true},
		"a look of nothing":        {"", "\ufe0fx\n", true},
		"forms of Chinese":         {"", "\u845b\U000e0100 \u845b\ufe00 \u845b\ufe02\n", false},
		"no form of Chinese":       {"", "\u845b\ufe03\n", true},
		"nor of Latin":             {"", "a\ufe00\n", true},
		"a form of a sign":         {"", "\u2229\ufe00\n", false},
		"no form of a sign":        {"", "\u2229\ufe01\n", true},
		"Syriac":                   {"", "\u0710\u070f\u0712\n", false},
		"hieroglyphs":              {"", "\U00013000\U00013430\U00013001 \U00013000\U0001343f\n", false},
		"their joiner in Latin":    {"", "a\U00013430b\n", true},
		"the last of them":         {"", "a\U0001343fb\n", true},
		"a flag":                   {"", "\U0001f3f4\U000e0067\U000e0062\U000e007f \U0001f3f4\U000e0020\U000e0020\n", false},
		"no part of a flag":        {"", "\U0001f3f4\U000e0001\n", true},
		"behind a flag's end":      {"", "\U0001f3f4\U000e007f\U000e007f\n", false},
		"other tongues":            {"", "gr\u00fc\u00dfe, \u4f60\u597d, \u043f\u0440\u0438\u0432\u0435\u0442\n", false},
	} {
		w := world{files: map[string]string{"a.go": c.new}, old: map[string]string{}}
		if c.old != "" {
			w.old["a.go"] = c.old
		}
		ms := w.marked()
		if (len(ms) > 0) != c.want || len(ms) > 0 && ms[0].Kind != policy.MarkHidden {
			t.Errorf("%s: %v", name, ms)
		}
		if c.want && !policy.Hides(c.new) {
			t.Errorf("%s: its other side is not asked for", name)
		}
	}
}

func TestBothSidesAreReadOfWhatAToolRunsAndOfAHead(t *testing.T) {
	for p, want := range map[string]bool{"HEAD": true, "a/HEAD": true, "web/package.json": true, "Web/Package.JSON": true, "a.go": false, "HEAD.md": false} {
		if policy.Reads(p) != want {
			t.Errorf("%s is read: %v", p, !want)
		}
	}
}

func TestAProgramIsLookedThroughLikeAFile(t *testing.T) {
	in := policy.Marking{Changes: []policy.Change{{Edit: git.Edit{Path: "run", New: git.Entry{Mode: git.Executable, OID: "1"}}}}, Text: map[git.OID]string{"1": "a \u202e b\n"}}
	in.Entry, in.Names = func(string) (git.Entry, bool) { return git.Entry{}, false }, func(string) []string { return nil }
	if ms := policy.Marked(in); len(ms) != 1 || ms[0].Kind != policy.MarkHidden {
		t.Errorf("%v", ms)
	}
}
