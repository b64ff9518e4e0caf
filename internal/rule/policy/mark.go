package policy

import (
	"cmp"
	"path"
	"slices"
	"strings"
	"sync"

	"sallyport/internal/base/git"
	"sallyport/internal/base/pattern"
)

// MarkKind says what a mark is about.
type MarkKind string

const (
	MarkRuns    MarkKind = "runs"    // a tool runs it by itself
	MarkAgent   MarkKind = "agent"   // it tells an agent what to do, or what it may
	MarkSecrets MarkKind = "secrets" // it shapes how secrets are looked for
	MarkName    MarkKind = "name"    // its name can be taken for another
	MarkHidden  MarkKind = "hidden"  // a reader does not see all of its text
)

// Mark is one reason why a plain yes is not enough: what a changed path does at a person's next command, and which.
type Mark struct {
	Path string   `json:"path"` // as stored
	Kind MarkKind `json:"kind"`
	Says string   `json:"says"` // what runs it and when, or what is wrong with it; plain words
}

// Marking is what marks depend on.
type Marking struct {
	Changes []Change
	// Entry and Names look at the tree that results: what is at a path (false: nothing), and the names in a folder.
	Entry func(path string) (git.Entry, bool)
	Names func(folder string) []string
	// Text holds both sides of every path that Reads or Hides names; what is absent is "".
	Text map[git.OID]string
	// Named is what of the tree the person's git runs, or reads as configuration.
	Named []git.Named
}

// runner is a tool that runs by itself what stands at a path.
type runner struct {
	says    string
	names   string // of files, at any depth, in lower case
	forms   string // the same with wildcards (path.Match)
	folders string // all that is below, at any depth; folder/folder too
}

// runners are in the order in which the first that fits names a path. What a person starts by its name, such as a Makefile's target, is
// ordinary work and in none.
var runners = []runner{
	{says: "direnv, or a shell with it, runs it when you enter the folder", names: ".envrc .envrc.local .direnvrc"},
	{says: "direnv, once it may use nix, devenv or devbox here, runs it when you enter the folder",
		names: "flake.nix shell.nix devenv.nix devenv.yaml devenv.local.nix devbox.json"},
	{says: "a shell with rvm or autoenv runs it when you enter the folder", names: ".rvmrc .autoenv .autoenv.zsh .autoenv_leave.zsh .env.leave"},
	{says: "mise or asdf runs its hooks and plugins when you enter the folder",
		names: ".tool-versions .mise.toml mise.toml .mise.local.toml mise.local.toml .rtx.toml .prototools",
		forms: "mise.*.toml .mise.*.toml", folders: ".mise .config/mise mise/config.toml"},
	{says: "a shell that starts in this folder, or whose home it is, runs it",
		names: ".bashrc .bash_profile .bash_login .bash_logout .bash_aliases .profile .zshrc .zshenv .zprofile .zlogin .zlogout .kshrc .cshrc .tcshrc .login .inputrc config.fish .env.ps1 profile.ps1", forms: "*.zsh-theme", folders: ".config/fish .bashrc.d .zshrc.d .oh-my-zsh"},
	{says: "a session, or ssh, obeys it where this is a home folder", names: ".xinitrc .xsession .xsessionrc .xprofile .pam_environment",
		folders: ".ssh .config/autostart .config/systemd .config/environment.d"},
	{says: "a git hook: it runs at your next commit, merge or push once hooks are installed",
		names: ".pre-commit-config.yaml .pre-commit-config.yml .overcommit.yml .simple-git-hooks.json .simple-git-hooks.js .simple-git-hooks.cjs .huskyrc .lintstagedrc .commitlintrc captainhook.json grumphp.yml grumphp.yml.dist rusty-hook.toml .rusty-hook.toml hk.pkl prek.toml",
		forms: ".lintstagedrc.* lint-staged.config.* .commitlintrc.* commitlint.config.* lefthook*.yml lefthook*.yaml lefthook*.toml lefthook*.json .lefthook*.yml .lefthook*.yaml .huskyrc.*", folders: ".husky .githooks .git-hooks .hooks .lefthook .cargo-husky"},
	{says: "Mercurial, Jujutsu or Sapling takes its folder for a repository, and runs what its configuration says", folders: ".hg .jj .sl"},
	{says: "git fetches and checks out what it names at your next submodule command", names: ".gitmodules"},
	{says: "git lfs asks it where files come from, at your next checkout", names: ".lfsconfig"},
	{says: "it is a git configuration: where it is included, it can make every git command run something", names: ".gitconfig",
		forms: ".gitconfig.* *.gitconfig", folders: ".config/git"},
	{says: "VS Code runs its tasks, debuggers and settings when the folder is open", forms: "*.code-workspace", folders: ".vscode .theia .fleet"},
	{says: "an IDE of JetBrains runs its configurations and watchers when the folder is open", forms: "*.run.xml *.ipr *.iws", folders: ".idea .run"},
	{says: "an editor runs it when a file of this folder is opened",
		names: ".vimrc _vimrc .exrc .nvimrc .nvim.lua .lvimrc .gvimrc .dir-locals.el .dir-locals-2.el .emacs .nano_local .kateproject .lazy.lua .neoconf.json .vimspector.json .ycm_extra_conf.py .ccls .merlin .ocamlinit hie.yaml omnisharp.json .luacheckrc .formatter.exs .factorypath",
		forms: "*.sublime-project", folders: ".vim .nvim .emacs.d .zed .nova .helix .vs .bsp .externaltoolbuilders"},
	{says: "an editor that checks or formats what you open runs it",
		names: ".eslintrc.js .eslintrc.cjs .prettierrc.js .prettierrc.cjs .prettierrc.mjs .prettierrc.ts .stylelintrc.js .stylelintrc.cjs .stylelintrc.mjs .php-cs-fixer.php .php-cs-fixer.dist.php .postcssrc.js .postcssrc.cjs .postcssrc.mjs .postcssrc.ts .graphqlrc.js .graphqlrc.cjs .graphqlrc.mjs .graphqlrc.ts",
		forms: "eslint.config.[jt]s eslint.config.[cm][jt]s prettier.config.[jt]s prettier.config.[cm][jt]s stylelint.config.[jt]s stylelint.config.[cm][jt]s " +
			"tailwind.config.[jt]s tailwind.config.[cm][jt]s svelte.config.[jt]s svelte.config.[cm][jt]s postcss.config.[jt]s postcss.config.[cm][jt]s graphql.config.[jt]s graphql.config.[cm][jt]s"},
	{says: "an editor that looks for tests when the folder is open runs it", names: ".mocharc.js .mocharc.cjs .mocharc.mjs .mocharc.json .mocharc.jsonc .mocharc.yml .mocharc.yaml jest.config.json",
		forms: "vite.config.[jt]s vite.config.[cm][jt]s vitest.config.[jt]s vitest.config.[cm][jt]s vitest.workspace.[jt]s jest.config.[jt]s jest.config.[cm][jt]s playwright.config.[jt]s playwright.config.[cm][jt]s"},
	{says: "an editor or a tool takes it for the project's own interpreter or tools, and runs it", names: "pyvenv.cfg .pdm-python",
		folders: ".venv/bin venv/bin .venv/scripts venv/scripts node_modules/.bin node_modules/.hooks"},
	{says: "a development container or a hosted workspace runs its commands when it is made or started",
		names:   ".devcontainer.json .gitpod.yml .gitpod.yaml devfile.yaml .devfile.yaml .replit .stackblitzrc",
		folders: ".devcontainer .gitpod .idx .codesandbox .daytona"},
	{says: "npm, yarn or pnpm obey it at your next install, and can be told to run something",
		names: ".npmrc .yarnrc .yarnrc.yml .yarnrc.yaml .pnpmfile.cjs .pnpmfile.js .pnpmfile.mjs bunfig.toml .pnp.cjs .pnp.js .pnp.loader.mjs", folders: ".yarn/plugins .yarn/releases"},
	{says: "npm, yarn or pnpm build with it, by themselves, at your next install", names: "binding.gyp"},
	{says: "pip, or another builder, runs it when the project is installed or built", names: "setup.py hatch_build.py pdm_build.py"},
	{says: "Python runs it at every start in this environment", names: "sitecustomize.py usercustomize.py", forms: "*.pth"},
	{says: "cargo runs it at your next build", names: "build.rs"},
	{says: "cargo obeys it at your next command, and can be told to run something", folders: ".cargo"},
	{says: "bundler, ruby or rake run it at your next command here", names: "gemfile .pryrc .irbrc .rspec", forms: "*.gemspec", folders: ".bundle"},
	{says: "pod runs it at your next install", names: "podfile", forms: "*.podspec"},
	{says: "mix, rebar or lein run it at your next command here", names: "mix.exs rebar.config.script profiles.clj"},
	{says: "bazel obeys it at your next command, and can be told to run something", names: ".bazelrc user.bazelrc .bazeliskrc", folders: "tools/bazel"},
	{says: "ansible obeys it at your next command here, and can be told to load code", names: "ansible.cfg"},
	{says: "MSBuild or an IDE with it obeys it at its next build, and can be told to load code", names: "msbuild.rsp directory.build.rsp"},
	{says: "the build's own starter: it is what runs at your next ./gradlew or ./mvnw",
		names: "gradlew gradlew.bat mvnw mvnw.cmd millw sbtw", folders: ".mvn gradle/wrapper"},
	{says: "gradle runs it at your next command here", names: "init.gradle init.gradle.kts", folders: "gradle/init.d .gradle/init.d"},
	{says: "sbt or mill start with the options in it, which can load code", names: ".jvmopts .sbtopts .sbtrc .mill-jvm-opts"},
	{says: "a debugger or an interpreter runs it when it starts in this folder",
		names: ".gdbinit .lldbinit .rdbgrc .byebugrc .perldb .rprofile .renviron .proverc .busted .user.ini .pythonrc .pythonrc.py .ipython .jlrc .octaverc .psqlrc .sqliterc .guile .ghci .iex.exs .tmux.conf .screenrc", forms: ".lldbinit-* *-gdb.py *-gdb.gdb *-gdb.scm"},
}

// secretFiles shape how secrets are looked for.
var secretFiles = map[string]bool{".gitleaks.toml": true, ".gitleaksignore": true}

// Marked returns what on a card needs a word of its own, in the order of paths. What goes away is no mark.
func Marked(in Marking) []Mark {
	var marks []Mark
	beside := &neighbours{names: in.Names, folders: map[string]map[string][]string{}}
	hidden := map[[2]git.OID]string{} // many paths may hold one text
	for _, c := range in.Changes {
		if c.New.Absent() || c.same() {
			continue
		}
		add := func(kind MarkKind, says string) {
			if says != "" {
				marks = append(marks, Mark{Path: c.Path, Kind: kind, Says: says})
			}
		}
		lower := strings.ToLower(c.Path)
		add(MarkRuns, cmp.Or(in.named(c.Path), runsIt(lower)))
		if folder := in.bare(c.Path); folder != "" { // said once for all of its files
			marks = append(marks, Mark{Path: folder, Kind: MarkRuns, Says: bareSays})
		} else if path.Base(c.Path) == "HEAD" && (c.New.Mode == git.Symlink || headForm().MatchString(in.Text[c.New.OID])) {
			add(MarkRuns, headSays) // the rest may come with another change
		}
		switch part := partOf(lower); {
		case part == nil:
		case c.New.Mode == git.Symlink:
			add(MarkRuns, "a link stands in its place, so what a tool would run of it is not known")
		default:
			add(MarkRuns, part(in.Text[c.Old.OID], in.Text[c.New.OID]))
		}
		if authorityOf(c.Path)&(1<<1) != 0 {
			add(MarkAgent, "it tells an agent what to do, or what it may, the next time one works here")
		}
		if secretFiles[lower] {
			add(MarkSecrets, "it shapes how secrets are looked for from the next base on")
		}
		if c.Old.Absent() {
			add(MarkName, beside.twin(c.Path))
		}
		if c.New.Mode == git.File || c.New.Mode == git.Executable {
			sides := [2]git.OID{c.Old.OID, c.New.OID}
			why, known := hidden[sides]
			if !known {
				why = hiddenIn(in.Text[c.Old.OID], in.Text[c.New.OID])
				hidden[sides] = why
			}
			add(MarkHidden, why)
		}
	}
	slices.SortStableFunc(marks, func(a, b Mark) int {
		return cmp.Or(strings.Compare(a.Path, b.Path), strings.Compare(string(a.Kind), string(b.Kind)))
	})
	return slices.Compact(marks)
}

// Reads reports whether marks need both sides of a file, whatever is in it.
func Reads(p string) bool {
	name := path.Base(p)
	return name == "HEAD" || partOf(strings.ToLower(p)) != nil
}

// named says what of the person's git names a path, or a folder above it.
func (in Marking) named(p string) string {
	for _, n := range in.Named {
		if p == n.Path || strings.HasPrefix(p, n.Path+"/") || strings.HasPrefix(n.Path, p+"/") { // a link can stand for a folder
			return "your git runs it, or reads it as configuration, by itself: " + n.By + " names it"
		}
	}
	return ""
}

// runsIt says which tool runs a path by itself; p is in lower case.
func runsIt(p string) string {
	name := path.Base(p)
	above := "/" + path.Dir(p) + "/"
	for _, r := range readyRunners() {
		if r.names[name] {
			return r.says
		}
		for _, f := range r.forms {
			if ok, err := path.Match(f, name); ok || err != nil {
				return r.says
			}
		}
		for _, f := range r.folders {
			if strings.Contains(above, f) || strings.HasSuffix("/"+p, strings.TrimSuffix(f, "/")) { // a link can stand for the folder
				return r.says
			}
		}
	}
	return ""
}

type readyRunner struct {
	says           string
	names          map[string]bool
	forms, folders []string
}

var readyRunners = sync.OnceValue(func() []readyRunner {
	var out []readyRunner
	for _, r := range runners {
		ready := readyRunner{says: r.says, names: map[string]bool{}, forms: strings.Fields(r.forms)}
		for _, n := range strings.Fields(r.names) {
			ready.names[n] = true
		}
		for _, f := range strings.Fields(r.folders) {
			ready.folders = append(ready.folders, "/"+f+"/")
		}
		out = append(out, ready)
	}
	return out
})

const bareSays = "git takes it for a repository, obeys its configuration, and runs what that says, at your next git command in there"

const headSays = "git takes its folder for a repository once objects and refs stand beside it, and runs what a config there says"

// headForm is how a HEAD begins that git takes for one.
var headForm = pattern.Of(`^(?:ref:\s*refs/|[0-9a-fA-F]{40})`)

// bare returns the folder above a path that git takes for a repository, by HEAD, objects and refs in it; "" if there is none.
func (in Marking) bare(p string) string {
	has := func(names ...string) bool {
		_, ok := in.Entry(path.Join(names...))
		return ok
	}
	for folder := path.Dir(p); ; folder = path.Dir(folder) {
		if has(folder, "HEAD") && (has(folder, "objects") && has(folder, "refs") || has(folder, "commondir")) {
			return folder
		}
		if folder == "." {
			return ""
		}
	}
}
