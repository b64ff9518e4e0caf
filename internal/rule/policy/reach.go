package policy

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"sallyport/internal/base/git"
	"sallyport/internal/base/inert"
)

// reachShown is how many paths one line of reach names; it counts the rest.
const reachShown = 12

// authority is a kind of path that decides more than its own content, and what a card
// calls it. All is in lower case, and compared without regard to case.
type authority struct {
	says    string
	top     string // paths from the top
	names   string // names of files, at any depth
	forms   string // the same with wildcards (path.Match)
	folders string // names of folders, or folder/folder, at any depth: all below
}

// authorities in the order in which a card shows them. A path may be in several.
var authorities = []authority{
	{
		says: "the rules change (this change was judged by the rules before it)",
		top:  ".sallyport.yaml policy.yaml sallyport.yaml",
	}, {
		says:    "what agents are told changes",
		names:   "agents.md agent.md claude.md gemini.md qwen.md conventions.md skill.md copilot-instructions.md .cursorrules .windsurfrules .clinerules .goosehints .roorules .mcp.json mcp.json opencode.json crush.md crush.json .crush.json warp.md .augment-guidelines .rules",
		forms:   "agents.*.md claude.*.md .aider*",
		folders: ".claude .cursor .codex .gemini .qwen .opencode .windsurf .clinerules .roo .continue .goose .pi .agents .amazonq .augment .crush .factory .junie .kilocode .kiro .trae .github/instructions .github/prompts .github/agents .github/chatmodes",
	}, {
		says:    "what CI runs, or who must review, changes",
		names:   ".gitlab-ci.yml .travis.yml .drone.yml .cirrus.yml .woodpecker.yml .woodpecker.yaml .appveyor.yml appveyor.yml jenkinsfile bitbucket-pipelines.yml cloudbuild.yaml cloudbuild.yml action.yml action.yaml codeowners dependabot.yml dependabot.yaml renovate.json .renovaterc",
		forms:   "*.gitlab-ci.yml jenkinsfile.* azure-pipelines*.yml azure-pipelines*.yaml renovate.json?",
		folders: ".github/workflows .github/actions .gitea/workflows .forgejo/workflows .gitlab/ci .ci .circleci .buildkite .woodpecker .semaphore .tekton .azure-pipelines",
	}, {
		says:    "what git does with files, or runs, changes",
		names:   ".gitattributes .gitmodules .gitignore .gitconfig .lfsconfig .pre-commit-config.yaml .pre-commit-config.yml .pre-commit-hooks.yaml .overcommit.yml",
		forms:   "lefthook*.yml lefthook*.yaml .lefthook*.yml .lefthook*.yaml .huskyrc*",
		folders: ".husky .githooks .git-hooks .hooks",
	}, {
		says: "what is depended on changes",
		names: "go.mod go.sum go.work go.work.sum package.json package-lock.json npm-shrinkwrap.json yarn.lock pnpm-lock.yaml pnpm-workspace.yaml bun.lock bun.lockb deno.json deno.jsonc deno.lock jsr.json " +
			".npmrc .yarnrc .yarnrc.yml .pnpmfile.cjs .pypirc cargo.toml cargo.lock pyproject.toml poetry.lock uv.lock pdm.lock pipfile pipfile.lock setup.py setup.cfg environment.yml environment.yaml " +
			"gemfile gemfile.lock composer.json composer.lock pom.xml gradle.lockfile libs.versions.toml mix.exs mix.lock flake.nix flake.lock package.swift package.resolved pubspec.yaml pubspec.lock podfile podfile.lock rebar.config vcpkg.json conanfile.txt conanfile.py",
		forms:   "*requirements*.txt *requirements*.in *.gemspec",
		folders: ".cargo requirements",
	}, {
		says: "what a build runs changes",
		names: "makefile gnumakefile dockerfile containerfile .dockerignore cmakelists.txt meson.build configure configure.ac build.rs build.zig justfile .justfile rakefile sconstruct wscript tox.ini noxfile.py vagrantfile procfile tiltfile " +
			"build build.bazel workspace workspace.bazel module.bazel .bazelrc taskfile.yml taskfile.yaml gradlew mvnw build.sh install.sh setup.sh .envrc conftest.py sitecustomize.py .devcontainer.json",
		forms:   "*.mk dockerfile.* *.dockerfile containerfile.* compose*.yml compose*.yaml docker-compose*.yml docker-compose*.yaml *.gradle *.gradle.kts *.pth",
		folders: ".devcontainer .vscode .idea .zed",
	}, {
		says:    "database migrations change: rollback may be lossy if migration is non-reversible", // SM-085, in its words
		folders: "migrations",
	},
}

// bits says which authorities (by index) a word of one of the lists stands for.
type bits uint16

var byTop, byName, byFolder, forms = index()

type form struct {
	pattern string
	is      bits
}

func index() (top, names, folders map[string]bits, patterns []form) {
	top, names, folders = map[string]bits{}, map[string]bits{}, map[string]bits{}
	for i, a := range authorities {
		for _, w := range strings.Fields(a.top) {
			top[w] |= 1 << i
		}
		for _, w := range strings.Fields(a.names) {
			names[w] |= 1 << i
		}
		for _, w := range strings.Fields(a.folders) {
			folders[w] |= 1 << i
		}
		for _, w := range strings.Fields(a.forms) {
			patterns = append(patterns, form{w, 1 << i})
		}
	}
	return top, names, folders, patterns
}

// authorityOf returns the authorities that a path has.
func authorityOf(p string) bits {
	p = strings.ToLower(p)
	is := byTop[p]
	above := ""
	for {
		part, rest, more := strings.Cut(p, "/")
		if !more {
			break
		}
		is |= byFolder[part]
		if strings.HasPrefix(above, ".") {
			is |= byFolder[above+"/"+part]
		}
		above, p = part, rest
	}
	is |= byName[p]
	for _, f := range forms {
		if ok, err := path.Match(f.pattern, p); ok || err != nil {
			is |= f.is // a pattern that is broken hides nothing
		}
	}
	return is
}

// Reach says what authority a change gains or loses beyond the text of its files, one
// inert line a kind, loudest first (SM-908, SM-919, SV-067). A removal counts as much as an addition.
func Reach(changes []Change) []string {
	var sets struct{ executable, plain, links []string }
	kinds := make([][]string, len(authorities))
	for _, c := range changes {
		if c.same() {
			continue
		}
		shown := inert.Path(c.Path) + mark(c)
		for i, is := 0, authorityOf(c.Path); i < len(authorities); i++ {
			if is&(1<<i) != 0 {
				kinds[i] = append(kinds[i], shown)
			}
		}
		switch {
		case c.New.Mode == git.Executable && c.Old.Mode != git.Executable:
			sets.executable = append(sets.executable, shown)
		case c.Old.Mode == git.Executable && c.New.Mode == git.File:
			sets.plain = append(sets.plain, inert.Path(c.Path))
		case c.New.Mode == git.Symlink:
			sets.links = append(sets.links, inert.Path(c.Path)+" → "+inert.Path(c.Fact.LinkTarget))
		}
	}
	var lines []string
	add := func(says string, paths []string) {
		if len(paths) > 0 {
			lines = append(lines, says+": "+some(paths))
		}
	}
	add(authorities[0].says, kinds[0])
	add(authorities[1].says, kinds[1])
	add("new executable", sets.executable)
	add("no longer executable", sets.plain)
	add("symbolic link", sets.links)
	for i := 2; i < len(authorities); i++ {
		add(authorities[i].says, kinds[i])
	}
	return lines
}

func mark(c Change) string {
	switch {
	case c.Old.Absent():
		return " (new)"
	case c.gone():
		return " (removed)"
	}
	return ""
}

// some joins the first few of some names, in order.
func some(names []string) string {
	slices.Sort(names)
	if rest := len(names) - reachShown; rest > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:reachShown], ", "), rest)
	}
	return strings.Join(names, ", ")
}
