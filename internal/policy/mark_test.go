package policy_test

import (
	"fmt"
	"maps"
	"strings"
	"testing"

	"sallyport/internal/git"
	"sallyport/internal/policy"
)

// world is the tree that results, and both sides of some of its files.
type world struct {
	files map[string]string // after
	old   map[string]string // before, of those that were there
}

// marked judges every file of w but those that are as they were.
func (w world) marked() []policy.Mark {
	in := policy.Marking{Text: map[git.OID]string{}}
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
	for _, p := range strings.Fields(`.envrc sub/.envrc .ENVRC .mise.toml .tool-versions .bashrc .profile .zshrc dotfiles/.zshenv .husky/pre-commit .githooks/post-checkout .pre-commit-config.yaml
		lefthook.yml .gitmodules .lfsconfig .gitconfig .vscode/tasks.json web/.vscode/settings.json .vscode/launch.json app.code-workspace .idea/workspace.xml .run/app.run.xml
		.vimrc .exrc .nvim.lua .dir-locals.el sub/.vim/ftplugin/go.vim .devcontainer/devcontainer.json .devcontainer.json .gitpod.yml .npmrc .yarnrc.yml .yarn/releases/yarn.cjs .pnpmfile.cjs
		setup.py sitecustomize.py x.pth build.rs .cargo/config.toml Gemfile app.gemspec .bundle/config gradlew .mvn/extensions.xml gradle/wrapper/gradle-wrapper.jar .gdbinit .tmux.conf .irbrc .vscode`) {
		if ms := (world{files: map[string]string{p: "x\n"}}).marked(); len(ms) != 1 || ms[0].Kind != policy.MarkRuns || ms[0].Path != p || ms[0].Says == "" {
			t.Errorf("%s: %v", p, ms)
		}
	}
	for _, p := range strings.Fields("AGENTS.md docs/CLAUDE.md .claude/settings.json .codex/config.toml .gemini/settings.json .mcp.json .cursor/rules/a.mdc .github/copilot-instructions.md") {
		if ms := (world{files: map[string]string{p: "x\n"}}).marked(); len(ms) != 1 || ms[0].Kind != policy.MarkAgent {
			t.Errorf("%s: %v", p, ms)
		}
	}
	for _, p := range strings.Fields(".gitleaks.toml .gitleaksignore") {
		if ms := (world{files: map[string]string{p: "x\n"}}).marked(); len(ms) != 1 || ms[0].Kind != policy.MarkSecrets {
			t.Errorf("%s: %v", p, ms)
		}
	}
	for _, p := range strings.Fields("main.go Makefile justfile .editorconfig .gitignore README.md src/profile.go vscode/tasks.json HEAD objects/a package-lock.json go.mod Dockerfile .github/workflows/ci.yml bashrc setup.cfg env.rc x.envrc2") {
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
		"a script before an install": {"package.json", `{"scripts":{"test":"jest"}}`, `{"scripts":{"test":"jest","postinstall":"node x.js"}}`, "postinstall"},
		"one that changed":           {"web/package.json", `{"scripts":{"prepare":"a"}}`, `{"scripts":{"prepare":"b"}}`, "prepare"},
		"beside another":             {"package.json", `{}`, `{"scripts":{"pretest":"x"}}`, "pretest"},
		"spelt twice, emptied":       {"package.json", `{}`, `{"scripts":{"postinstall":"evil"},"Scripts":null}`, "postinstall"},
		"spelt twice, as it was":     {"package.json", `{"scripts":{"postinstall":"x"}}`, `{"scripts":{"postinstall":"evil"},"SCRIPTS":{"postinstall":"x"}}`, "postinstall"},
		"the last of a name counts":  {"package.json", `{}`, `{"scripts":null,"scripts":{"postinstall":"evil"}}`, "postinstall"},
		"composer's, spelt twice":    {"composer.json", `{}`, `{"scripts":{"post-install-cmd":"x"},"Scripts":null}`, "composer"},
		"an ordinary script":         {"package.json", `{"scripts":{}}`, `{"scripts":{"build":"tsc"},"dependencies":{"a":"1"}}`, ""},
		"a script that stayed":       {"package.json", `{"scripts":{"prepare":"a"}}`, `{"scripts":{"prepare":"a"},"version":"2"}`, ""},
		"no JSON":                    {"package.json", `{}`, `{"scripts":`, "cannot be read"},
		"composer":                   {"composer.json", `{}`, `{"scripts":{"post-install-cmd":["x"]}}`, "composer"},
		"composer's dependencies":    {"composer.json", `{"scripts":{"a":"b"}}`, `{"scripts":{"a":"b"},"require":{}}`, ""},
		"a build system":             {"pyproject.toml", "[project]\n", "[project]\n[build-system]\nrequires = [\"x\"]\nbuild-backend = \"b\"\nbackend-path = [\".\"]\n", "[build-system]"},
		"one with blanks":            {"pyproject.toml", "[project]\n", "[project]\n [ build-system ]\nbuild-backend = 'b'\n", "[build-system]"},
		"one in quotes":              {"pyproject.toml", "", "[\"build\\u002dsystem\"]\nbuild-backend = 'b'\n", "[build-system]"},
		"one with dots":              {"pyproject.toml", "", "build-system.build-backend = 'b'\n", "[build-system]"},
		"one in a line":              {"pyproject.toml", "", "build-system = {build-backend = 'b', backend-path = ['.']}\n", "[build-system]"},
		"behind what looks like one": {"pyproject.toml", "[build-system]\nrequires = []\n", "[build-system]\nrequires = []\nx = \"\"\"\n[y]\n\"\"\"\nbuild-backend = 'b'\n", "[build-system]"},
		"no TOML":                    {"pyproject.toml", "", "[build-system\n", "cannot be read"},
		"deeper than a reader goes":  {"pyproject.toml", "", "x = " + strings.Repeat("[", 1<<20), "too long"},
		"a project's dependencies":   {"pyproject.toml", "[build-system]\nrequires = []\n[project]\n", "[build-system]\nrequires = []\n[project]\nname = 'a'\n", ""},
		"a filter":                   {".gitattributes", "* text\n", "* text\n*.c filter=evil\n", "driver"},
		"line ends":                  {".gitattributes", "", "* text=auto eol=lf\n*.png -diff\n", ""},
		"a filter that was there":    {"a/.gitattributes", "*.bin filter=lfs\n", "*.bin filter=lfs\n*.txt text\n", ""},
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
