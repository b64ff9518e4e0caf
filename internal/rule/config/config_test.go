package config_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/google/jsonschema-go/jsonschema"

	"sallyport/internal/base/disk"
	"sallyport/internal/base/disk/disktest"
	"sallyport/internal/base/problem"
	"sallyport/internal/rule/config"
	"sallyport/internal/rule/mount"
	"sallyport/internal/rule/policy"
	"sallyport/internal/rule/right"
	"sallyport/internal/rule/trust"
)

// parse reads a file by the name of its schema and returns only whether it was taken.
func parse(name string, data []byte) error {
	var err error
	switch name {
	case "sallyport":
		_, err = config.ParseSallyport(config.SallyportFile, data)
	case "policy":
		_, err = config.ParsePolicy(config.PolicyFile, data)
	case "repository":
		_, err = config.ParseRepository("cat it", data)
	case "runner":
		_, err = config.ParseRunner(config.RunnerFile, "sallyport group show ada", data)
	case "plan":
		_, err = config.ParsePlan("plan.yaml", data)
	case "state":
		_, err = config.ParseState("state.md", data)
	}
	return err
}

// kindOf is what becomes of a file that is wrong: one that a command names is a wrong word of it, and one that stands somewhere is refused.
func kindOf(file string) problem.Kind {
	if file == "plan" || file == "state" {
		return problem.Usage
	}
	return problem.Refused
}

func TestAFileBecomesAStruct(t *testing.T) {
	s, err := config.ParseSallyport("s", []byte(`
limits: {memory: 2GiB, processes: 100, output: 10MiB, timeout: 1h30m, descriptors: 256}
shares: [/opt/go/, "/data"]
profiles:
  - go
  - node
changes:
  at_once: 3
commits:
  author_name: Ada's agents
  author_email: agents@example.org
`))
	if err != nil {
		t.Fatal(err)
	}
	want := config.Sallyport{
		Limits: config.Limits{Memory: 2 << 30, Processes: 100, Output: 10 << 20, Timeout: config.Duration(90 * time.Minute), Descriptors: 256},
		Shares: []config.Folder{"/opt/go", "/data"}, Profiles: []config.Profile{"go", "node"},
		Changes: config.Changes{AtOnce: 3}, Commits: config.Commits{AuthorName: "Ada's agents", AuthorEmail: "agents@example.org"},
	}
	if !reflect.DeepEqual(s, want) {
		t.Errorf("got %+v", s)
	}
}

func TestBothFilesSayWhichFoldersAGroupIsShown(t *testing.T) {
	r, err := config.ParseRunner("r", "next", []byte("agent: echo\nmounts:\n- path: /srv/notes/\n- {path: /srv/Your Music, at: music, readonly: true}\n- {path: /srv/box, readonly: false}\n"))
	want := []mount.Wish{{Path: "/srv/notes", Name: "notes"}, {Path: "/srv/Your Music", Name: "music"}, {Path: "/srv/box", Name: "box", Write: true}}
	if err != nil || !slices.Equal(r.Wishes(), want) {
		t.Errorf("a runner.yaml wishes for %+v, %v", r.Wishes(), err)
	}
	s, err := config.ParseSallyport("s", []byte("mounts: [{root: /srv/box, allowReadWrite: true}, {root: /srv}]\n"))
	if roots := []mount.Root{{Path: "/srv/box", Write: true}, {Path: "/srv"}}; err != nil || !slices.Equal(s.Roots(), roots) {
		t.Errorf("a home allows %+v, %v", s.Roots(), err)
	}
}

func TestAPolicyOverridesTheDefaultsItNames(t *testing.T) {
	p, err := config.ParsePolicy("p", []byte("forbidden_areas: [vault, '**/*.pem']\nprotected_areas: []\nallow_symlinks: true\nexecutables: refuse\nallow_executable: [scripts]\nfile_bytes_max: 1KiB\nchange_bytes_max: 5000\npaths_max: 7\n"))
	if err != nil {
		t.Fatal(err)
	}
	want := policy.Rules{
		ForbiddenAreas: []string{"vault", "**/*.pem"}, ProtectedAreas: []string{}, AllowSymlinks: true, Executables: policy.Refuse,
		AllowExecutable: []string{"scripts"}, FileBytesMax: 1024, ChangeBytesMax: 5000, PathsMax: 7, Marks: policy.MarksAsk,
	}
	if got := p.Judgement(); !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v", got)
	}
	empty, err := config.ParsePolicy("p", nil)
	if err != nil || !reflect.DeepEqual(empty.Judgement(), policy.Default()) {
		t.Errorf("an empty policy is %+v, %v", empty.Judgement(), err)
	}
}

func TestARepositoryCanOnlyBeStricter(t *testing.T) {
	home := policy.Default()
	r, err := config.ParseRepository("cat it", []byte("allow_symlinks: true\nfile_bytes_max: 1GiB\nprotected_areas: [x]\nchecks: ['go test ./...']\nprofiles: [go]\ninclude_ignored: [dist]\n"))
	if err != nil {
		t.Fatal(err)
	}
	got := policy.Merge(home, r.Judgement())
	if got.AllowSymlinks || got.FileBytesMax != home.FileBytesMax || len(got.ProtectedAreas) != len(home.ProtectedAreas)+1 {
		t.Errorf("merged %+v", got)
	}
	if !reflect.DeepEqual(config.Strings(r.Checks), []string{"go test ./..."}) || r.Profiles[0] != "go" || r.IncludeIgnored[0] != "dist" {
		t.Errorf("got %+v", r)
	}
	silent, err := config.ParseRepository("cat it", []byte("# nothing\n"))
	if err != nil || policy.Digest(policy.Merge(home, silent.Judgement()), policy.Plan{}) != policy.Digest(home, policy.Plan{}) {
		t.Errorf("a silent repository has an opinion: %+v, %v", silent, err)
	}
}

func TestWhatIsRefusedIsNamedWithItsPlace(t *testing.T) {
	for name, test := range map[string]struct{ file, data, want string }{
		"an unknown key":                  {"policy", "# c\nforbiden_areas: [x]\n", "policy.yaml:2:1: forbiden_areas: there is no such key; the keys here are allowed_areas,"},
		"an unknown key below":            {"sallyport", "limits:\n  memry: 1\n", "sallyport.yaml:2:3: limits.memry: there is no such key"},
		"an ill-typed list":               {"policy", "allowed_areas: src\n", "policy.yaml:1:16: allowed_areas: it must be a list, and is text"},
		"an ill-typed entry":              {"policy", "allowed_areas:\n  - src\n  - [a]\n", "policy.yaml:3:5: allowed_areas[1]: it must be text, and is a list"},
		"an entry without a value":        {"policy", "allowed_areas:\n  - src\n  -\n", "allowed_areas[1]: it has no value"},
		"an ill-typed boolean":            {"policy", "allow_symlinks: yes\n", "policy.yaml:1:17: allow_symlinks: it must be true or false, and is text"},
		"an ill-typed number":             {"policy", "paths_max: many\n", "policy.yaml:1:12: paths_max: it must be a whole decimal number, and is text"},
		"an odd number":                   {"policy", "paths_max: 0x10\n", "paths_max: it must be a whole decimal number"},
		"an octal number":                 {"policy", "paths_max: 010\n", "paths_max: it must be a whole decimal number"},
		"a number for a word":             {"repository", "checks: [1]\n", ".sallyport.yaml:1:10: checks[0]: it must be text"},
		"a key without a value":           {"policy", "allowed_areas:\nexecutables: review\n", "policy.yaml:1:1: allowed_areas: it has no value"},
		"a size without a unit":           {"policy", "file_bytes_max: 64MB\n", "policy.yaml:1:17: file_bytes_max: \"64MB\" is not a size; write it like 64MiB"},
		"a size out of range":             {"sallyport", "limits: {memory: 1KiB}\n", "limits.memory: it must lie between 16MiB and 1TiB"},
		"a number out of range":           {"sallyport", "changes: {at_once: 1001}\n", "changes.at_once: it must lie between 1 and 1000"},
		"zero":                            {"policy", "paths_max: 0\n", "paths_max: it must lie between 1 and"},
		"a duration out of range":         {"sallyport", "limits: {timeout: 2d}\n", "limits.timeout: it must lie between 1s and 24h"},
		"a duration without a unit":       {"sallyport", "limits: {timeout: 90}\n", "limits.timeout: it must be text"},
		"a cool-down out of range":        {"policy", "approvals: {cool_down: 2d}\n", "approvals.cool_down: it must lie between 1s and 1d"},
		"too many people":                 {"policy", "approvals:\n  people: 10\n", "policy.yaml:2:11: approvals.people: it must lie between 1 and 9"},
		"a self that is no word of it":    {"policy", "approvals: {self: never}\n", "approvals.self: \"never\" is not one of allow, refuse"},
		"a word that is not one":          {"policy", "executables: maybe\n", "policy.yaml:1:14: executables: \"maybe\" is not one of review, refuse"},
		"an unknown profile":              {"repository", "profiles: [ruby]\n", "profiles[0]: \"ruby\" is not one of go, node, python"},
		"a bad glob":                      {"policy", "forbidden_areas: ['a[']\n", "forbidden_areas[0]: glob \"a[\" is not well-formed"},
		"a relative share":                {"sallyport", "shares: [opt]\n", "shares[0]: \"opt\" is not an absolute path"},
		"an empty command":                {"repository", "checks: ['  ']\n", "checks[0]: the command is empty"},
		"a name for a commit":             {"sallyport", "commits: {author_name: 'a <b>'}\n", "commits.author_name: \"a <b>\" is no name that a commit can hold"},
		"a mount of nothing":              {"runner", "agent: echo\nmounts: [{at: notes}]\n", "runner.yaml:2:10: mounts[0]: path is missing"},
		"a mount at a path":               {"runner", "agent: echo\nmounts: [{path: /srv/notes, at: ../agent}]\n", "mounts[0].at: \"../agent\" is no name of a folder"},
		"a mount whose name is none":      {"runner", "agent: echo\nmounts: [{path: '/srv/my notes'}]\n", "mounts[0]: the last name of \"/srv/my notes\" is no name"},
		"two mounts at one place":         {"runner", "agent: echo\nmounts: [{path: /a/notes}, {path: /b, at: notes}]\n", "mounts[1]: /extra/notes is another entry's place"},
		"a mount that is half writable":   {"runner", "agent: echo\nmounts: [{path: /a, readonly: no}]\n", "mounts[0].readonly: it must be true or false"},
		"a root of mounts twice":          {"sallyport", "mounts: [{root: /a}, {root: /a/}]\n", "mounts[1]: \"/a\" is a root already"},
		"a root of mounts that is none":   {"sallyport", "mounts: [{allowReadWrite: true}]\n", "mounts[0]: root is missing"},
		"a repeated key":                  {"policy", "paths_max: 1\npaths_max: 2\n", "policy.yaml:2:1: mapping key \"paths_max\" already defined"},
		"an anchor":                       {"policy", "allowed_areas: &a [x]\nforbidden_areas: *a\n", "an anchor (&) does not work here"},
		"a merge key":                     {"policy", "<<: {paths_max: 1}\n", "a merge key (<<) does not work here"},
		"a tag":                           {"policy", "paths_max: !!int 1\n", "a tag (!) does not work here"},
		"a directive":                     {"policy", "%YAML 1.2\n---\npaths_max: 1\n", "a directive (%) does not work here"},
		"a second document":               {"policy", "paths_max: 1\n---\npaths_max: 2\n", "a second YAML document"},
		"not YAML":                        {"policy", "a: b: c\n", "policy.yaml:1:4: "},
		"a list at the top":               {"policy", "- a\n", "policy.yaml:1:1: it must hold keys, and is a list"},
		"not UTF-8":                       {"policy", "# ok\n# \xff\n", "policy.yaml:2:3: it is not UTF-8"},
		"a control character":             {"policy", "paths_max: 1 # \x1b[2J\n", "policy.yaml:1:16: it holds U+001B"},
		"a hidden direction":              {"policy", "allowed_areas: ['a\u202eb']\n", "it holds U+202E"},
		"too large":                       {"policy", "# " + strings.Repeat("x", config.FileBytesMax), "65536 is the limit"},
		"too deep":                        {"policy", "a: " + strings.Repeat("[", 1000), "nested more than 32 deep"},
		"too deep a list":                 {"policy", "a: 1\n" + strings.Repeat("- ", 1000), "policy.yaml:2:65: lists or groups are nested more than 32 deep"},
		"too long a list":                 {"policy", "allowed_areas: [" + strings.Repeat("a,", 300) + "a]", "it has 301 entries; 256 is the limit"},
		"an unknown key of supervision":   {"sallyport", "interactive:\n  stategy: direct_worktree\n", "sallyport.yaml:2:3: interactive.stategy: there is no such key"},
		"an unknown key of a shadow":      {"repository", "interactive: {shadow_workspace: {size: 1}}\n", "interactive.shadow_workspace.size: there is no such key"},
		"an ill-typed key of supervision": {"repository", "interactive: {revert_on_violation: 1}\n", "interactive.revert_on_violation: it must be true or false, and is the number 1"},
		"a strategy that is none":         {"repository", "interactive: {strategy: shadow}\n", "interactive.strategy: \"shadow\" is not one of direct_worktree, shadow_workspace"},
		"a mode that is none":             {"sallyport", "runtime: {execution_mode: auto}\n", "runtime.execution_mode: \"auto\" is not one of deterministic, interactive"},
		"a home's mode in a repository":   {"repository", "runtime: {execution_mode: interactive}\n", ".sallyport.yaml:1:1: runtime: there is no such key"},
		"a checkpoint too often":          {"repository", "interactive: {checkpoint_interval_ms: 4999}\n", "interactive.checkpoint_interval_ms: it must lie between 5000 and 3600000"},
		"a look too often":                {"repository", "interactive: {watchdog_poll_interval_ms: 99}\n", "interactive.watchdog_poll_interval_ms: it must lie between 100 and 60000"},
		"no changes at all":               {"repository", "interactive: {max_uncommitted_changes: 0}\n", "interactive.max_uncommitted_changes: it must lie between 1 and 10000"},
		"a shadow without room":           {"repository", "interactive: {shadow_workspace: {max_shadow_size_mb: 0}}\n", "interactive.shadow_workspace.max_shadow_size_mb: it must lie between 1 and 1048576"},
		"an unknown key of a plan":        {"plan", "allowed: [src]\n", "plan.yaml:1:1: allowed: there is no such key; the keys here are allowed_areas, forbidden_areas"},
		"an unknown key of a runner":      {"runner", "agent: echo\nbudgets:\n  token_per_day: 1\n", "runner.yaml:3:3: budgets.token_per_day: there is no such key; the keys here are tokens_per_hour, tokens_per_day, cost_per_hour, cost_per_day"},
		"a runner without an agent":       {"runner", "", "runner.yaml names no agent; write agent: echo, or another"},
		"a plan that bounds nothing":      {"plan", "allowed_areas: []\n", "plan.yaml names no allowed_areas and no forbidden_areas"},
		"a plan that is too large":        {"plan", "# " + strings.Repeat("x", config.FileBytesMax), "65536 is the limit"},
		"a target without a repository":   {"sallyport", "targets:\n  - restart: x\n", "sallyport.yaml:2:12: targets[0]: repository is missing"},
		"a target twice":                  {"sallyport", "targets: [{repository: /r, restart: x}, {repository: /r/, restart: y}]\n", `targets[1]: "/r" has a target already`},
		"a target with nothing to try":    {"sallyport", "targets: [{repository: /r, trial: 1m}]\n", "targets[0]: it has neither restart nor probe"},
		"a proposal of nothing":           {"repository", "target: {}\n", "target: it has neither restart nor probe"},
		"a time for no restart":           {"repository", "target: {probe: {command: x}, restart_within: 1m}\n", "target: restart_within is set without restart"},
		"a restart that may last":         {"repository", "target: {restart: x, restart_within: 11m}\n", "target.restart_within: it must lie between 1s and 10m"},
		"a probe that asks twice":         {"repository", "target: {probe: {command: x, http: 'http://localhost'}}\n", "target.probe: command and http are both set"},
		"a probe that asks nothing":       {"repository", "target: {restart: x, probe: {every: 1s}}\n", "target.probe: neither command nor http is set"},
		"a probe too often":               {"repository", "target: {probe: {command: x, every: 0s}}\n", "target.probe.every: "},
		"a probe too seldom":              {"repository", "target: {probe: {command: x, every: 6s}}\n", "target.probe.every: it must lie between 1s and 5s"},
		"a try without an end":            {"repository", "target: {probe: {command: x, timeout: 31s}}\n", "target.probe.timeout: it must lie between 1s and 30s"},
		"health that takes too long":      {"repository", "target: {probe: {command: x, healthy: 6m}}\n", "target.probe.healthy: it must lie between 1s and 5m"},
		"an answer that takes too long":   {"repository", "target: {probe: {command: x, within: 11m}}\n", "target.probe.within: it must lie between 1s and 10m"},
		"a trial too short":               {"repository", "target: {restart: x, trial: 9s}\n", "target.trial: it must lie between 10s and 10m0s, or be 0s"},
		"a trial too long":                {"repository", "target: {restart: x, trial: 10m1s}\n", "target.trial: it must lie between 10s and 10m0s, or be 0s"},
		"a probe elsewhere":               {"repository", "target: {probe: {http: 'http://192.0.2.1/'}}\n", `target: probe.http "http://192.0.2.1/" does not name this machine`},
		"a probe with a password":         {"sallyport", "targets: [{repository: /r, probe: {http: 'http://me:hunter2@localhost/'}}]\n", "targets[0].probe.http: the address holds a user name or a password"},
		"an agent that there is not":      {"sallyport", "agents:\n  claud: {}\n", "sallyport.yaml:2:3: agents.claud: \"claud\" is no agent; write one of codex, "},
		"an unknown key of an agent":      {"sallyport", "agents:\n  pi:\n    modell: x\n", "sallyport.yaml:3:5: agents.pi.modell: there is no such key; the keys here are model, wire,"},
		"a key itself":                    {"sallyport", "agents:\n  pi: {key: sk-ant-abcdef}\n", "sallyport.yaml:2:13: agents.pi.key: a key itself cannot stand in a file"},
		"a key of digits":                 {"sallyport", "agents:\n  pi: {key: 1234567890}\n", "agents.pi.key: it must be text, and is a number"},
		"a key in a relative file":        {"sallyport", "agents: {pi: {key: 'file:key'}}\n", "agents.pi.key: file: must be followed by the absolute path"},
		"a key inside":                    {"sallyport", "agents: {pi: {env: {ANTHROPIC_API_KEY: x}}}\n", "agents.pi.env.ANTHROPIC_API_KEY: ANTHROPIC_API_KEY names a key, and no key enters a sandbox"},
		"a key inside, by reference":      {"sallyport", "agents: {pi: {env: {A: $ANTHROPIC_API_KEY}}}\n", "agents.pi.env.A: what begins with $ must be $NAME, a variable of your environment: ANTHROPIC_API_KEY names a key"},
		"a key inside, in another word":   {"sallyport", "agents: {pi: {env: {A: $GH_PAT}}}\n", "GH_PAT names a key"},
		"a reference that is none":        {"sallyport", "agents: {pi: {env: {A: $B/c}}}\n", "agents.pi.env.A: what begins with $ must be $NAME"},
		"a variable of the host's":        {"sallyport", "agents: {pi: {env: {https_proxy: x}}}\n", "the host sets https_proxy itself inside a sandbox"},
		"a base with a password":          {"sallyport", "agents: {pi: {base: 'https://me:hunter2@x.example'}}\n", "agents.pi.base: a name or a password cannot stand in it"},
		"a base in the clear":             {"sallyport", "agents: {pi: {base: 'http://x.example'}}\n", "agents.pi.base: http:// is taken only for this machine and a private network"},
		"a price in words":                {"sallyport", "agents: {pi: {price: {input: cheap}}}\n", "agents.pi.price.input: it must be a number, and is text"},
		"a price too fine":                {"sallyport", "agents: {pi: {price: {input: 0.1234567}}}\n", `agents.pi.price.input: "0.1234567" is no amount`},
		"no price":                        {"sallyport", "agents: {pi: {price: {}}}\n", "agents.pi.price: it names no price"},
		"too many rounds":                 {"sallyport", "agents: {pi: {rounds: 21}}\n", "agents.pi.rounds: it must lie between 1 and 20"},
		"an address to reach":             {"sallyport", "egress: [10.0.0.1]\n", `sallyport.yaml:1:10: egress[0]: "10.0.0.1" is no host`},
		"a rule without a host":           {"sallyport", "egress:\n  - methods: [GET]\n", "egress[0]: host is missing"},
		"an unknown key of a rule":        {"sallyport", "egress:\n  - {host: a.org, verbs: [GET]}\n", "egress[0].verbs: there is no such key; the keys here are host, ports, methods, paths"},
		"a port too high":                 {"sallyport", "egress: [{host: a.org, ports: [70000]}]\n", "egress[0].ports[0]: it must lie between 1 and 65535"},
		"a command as a repository's":     {"repository", "agent: 'acp:evil'\n", `.sallyport.yaml:1:8: agent: "acp:evil" is not one of codex, `},
		"a way out of a repository's own": {"repository", "egress: [registries]\n", ".sallyport.yaml:1:1: egress: there is no such key"},
		"a key that is no word":           {"policy", "1: 2\n", "a key must be a plain word"},
		"a hostile key":                   {"policy", "\"a\\e[31m\": 2\n", `policy.yaml:1:1: a\x1b[31m: there is no such key`},
	} {
		t.Run(name, func(t *testing.T) {
			err := parse(test.file, []byte(test.data))
			if problem.KindOf(err) != kindOf(test.file) || problem.Of(err).Next == "" {
				t.Fatalf("taken, or refused without a way out: %v", err)
			}
			if !strings.Contains(err.Error(), test.want) {
				t.Errorf("says  %s\nwants %s", err, test.want)
			}
			if strings.ContainsAny(err.Error(), "\x1b\u202e\xff") {
				t.Errorf("the message is not inert: %q", err)
			}
		})
	}
}

func TestAllThatIsWrongIsSaidAtOnceUpToALimit(t *testing.T) {
	err := parse("policy", []byte("a: 1\nb: 2\nc: 3\nd: 4\ne: 5\nf: 6\ng: 7\nh: 8\ni: 9\nj: 10\n"))
	if n := strings.Count(err.Error(), "there is no such key"); n != 8 || !strings.HasSuffix(err.Error(), "and 2 more") {
		t.Errorf("%d are named: %v", n, err)
	}
}

func TestARefusedFileLeavesNothingBehind(t *testing.T) {
	p, err := config.ParsePolicy("p", []byte("paths_max: 5\nnope: 1\n"))
	if err == nil || p.PathsMax != 0 {
		t.Errorf("got %+v, %v", p, err)
	}
}

func TestTheSchemasInTheDocsAreTheseOfTheCode(t *testing.T) {
	for _, name := range config.Schemas {
		want, err := config.Schema(name)
		if err != nil {
			t.Fatal(err)
		}
		file := filepath.Join("..", "..", "..", "docs", "schema", name+".json")
		if os.Getenv("UPDATE_DOCS") != "" {
			disktest.Put(t, file, want, 0o644)
		}
		got, err := os.ReadFile(file)
		if err != nil || string(got) != string(want) {
			t.Errorf("%s is not what the code says (%v): run `make docs`", file, err)
		}
	}
}

func schema(t *testing.T, name string) *jsonschema.Resolved {
	t.Helper()
	raw, err := config.Schema(name)
	if err != nil {
		t.Fatal(err)
	}
	var s jsonschema.Schema
	if err := json.Unmarshal(raw, &s); err != nil {
		t.Fatal(err)
	}
	r, err := s.Resolve(nil)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// What an editor with the schema accepts is what the parser accepts, as far as JSON schema can say it.
func TestParserAndSchemaAgree(t *testing.T) {
	for _, test := range []struct {
		file, data string
		taken      bool
	}{
		{"policy", "{}", true}, {"policy", "", true},
		{"policy", "allowed_areas: [a, b]", true}, {"policy", "allowed_areas: []", true}, {"policy", "allowed_areas: a", false},
		{"policy", "allowed_areas: [1]", false}, {"policy", "allowed_areas: ['']", false}, {"policy", "allowed_areas: null", false}, {"policy", "allowed_areas: [null]", false},
		{"policy", "allowed_areas: ['" + strings.Repeat("x", 1001) + "']", false}, {"policy", "allowed_areas: [" + strings.Repeat("a,", 256) + "a]", false},
		{"policy", "allow_symlinks: true", true}, {"policy", "allow_symlinks: 'true'", false}, {"policy", "allow_symlinks: null", false},
		{"policy", "executables: refuse", true}, {"policy", "executables: Refuse", false}, {"policy", "executables: ''", false},
		{"policy", "file_bytes_max: 64MiB", true}, {"policy", "file_bytes_max: 1000", true}, {"policy", "file_bytes_max: 0", false}, {"policy", "file_bytes_max: -1", false},
		{"policy", "file_bytes_max: 64MB", false}, {"policy", "file_bytes_max: 1.5", false}, {"policy", "file_bytes_max: true", false}, {"policy", "file_bytes_max: 0MiB", false},
		{"policy", "paths_max: 1", true}, {"policy", "paths_max: 0", false}, {"policy", "paths_max: '1'", false}, {"policy", "paths_max: 10000001", false},
		{"policy", "checks: [a]", false}, {"policy", "nope: 1", false}, {"policy", "[]", false}, {"policy", "text", false},
		{"repository", "checks: [go test]", true}, {"repository", "checks: ['']", false}, {"repository", "checks: [' ']", false}, {"repository", "profiles: [go]", true},
		{"repository", "profiles: [ruby]", false}, {"repository", "include_ignored: [dist]", true}, {"repository", "paths_max: 3", true}, {"repository", "limits: {}", false},
		{"policy", "allow_secret_paths: [internal/rule/secret]", true}, {"repository", "allow_secret_paths: [internal/rule/secret]", false}, // it would loosen
		{"policy", "allow_secrets: [a.md, 'b.md@0123456789ab']", true}, {"repository", "allow_secrets: [a]", false}, {"policy", "marks: show", true}, {"policy", "marks: maybe", false}, {"repository", "marks: show", false},
		{"policy", "approvals: {}", true}, {"policy", "approvals: {people: 2, self: refuse, cool_down: 1h30m}", true}, {"policy", "approvals: {people: 0}", false}, {"policy", "approvals: {people: 10}", false},
		{"policy", "approvals: {people: '2'}", false}, {"policy", "approvals: {self: false}", false}, {"policy", "approvals: {self: no}", false}, {"policy", "approvals: {cool_down: 60}", false},
		{"policy", "approvals: {cooldown: 1m}", false}, {"policy", "approvals: [2]", false}, {"repository", "approvals: {people: 2}", false}, // it is the home's to say
		{"policy", "trust_secret_rules: [" + strings.Repeat("0a", 32) + "]", true}, {"policy", "trust_secret_rules: [0a]", false}, {"repository", "trust_secret_rules: []", false},
		{"sallyport", "secrets: {command: scan .}", true}, {"sallyport", "secrets: {command: ''}", false},
		{"sallyport", "limits: {}", true}, {"sallyport", "limits: {memory: 1GiB, processes: 8, timeout: 1h30m}", true}, {"sallyport", "limits: {processes: 7}", false},
		{"sallyport", "limits: {memory: 1024}", false}, {"sallyport", "limits: {timeout: 90}", false}, {"sallyport", "limits: {timeout: 90x}", false}, {"sallyport", "limits: {timeout: ''}", false},
		{"sallyport", "limits: []", false}, {"sallyport", "limits: {nope: 1}", false}, {"sallyport", "changes: {at_once: 1000}", true}, {"sallyport", "changes: {at_once: 1001}", false},
		{"sallyport", "shares: [/a]", true}, {"sallyport", "shares: [a]", false}, {"sallyport", "commits: {author_name: x, author_email: a@b}", true},
		{"sallyport", "commits: {author_name: 'a<b'}", false}, {"sallyport", "commits: {author_email: 'a b@c'}", false}, {"sallyport", "commits: {author_email: a}", false},
		{"sallyport", "interactive: {}", true}, {"sallyport", "interactive: {strategy: shadow_workspace, shadow_workspace: {enabled: true}}", true},
		{"sallyport", "interactive: {strategy: shadow}", false}, {"sallyport", "interactive: {checkpoint_interval_ms: 4999}", false}, {"sallyport", "interactive: {violation_severity: fatal}", false},
		{"sallyport", "interactive: {validation_on_checkpoint: 'no'}", false}, {"sallyport", "interactive: {shadow_workspace: {nope: 1}}", false}, {"sallyport", "runtime: {execution_mode: interactive}", true},
		{"repository", "{execution_mode: deterministic, interactive: {max_uncommitted_changes: 1}}", true}, {"repository", "execution_mode: both", false}, {"repository", "runtime: {}", false},
		{"repository", "interactive: {shadow_workspace: {promotion_strategy: some}}", false}, {"repository", "interactive: {shadow_workspace: {max_shadow_size_mb: 1048577}}", false},
		{"plan", "allowed_areas: [src]", true}, {"plan", "forbidden_areas: [src, '**/x']", true}, {"plan", "allowed_areas: src", false}, {"plan", "{}", false}, {"plan", "checks: [x]", false},
		{"runner", "agent: echo", true}, {"runner", "{agent: codex, model: gpt-5, rounds: 3, tools_off: [cancel_task, send_message], budgets: {tokens_per_hour: 1, cost_per_day: 2.5}}", true},
		{"runner", "{}", false}, {"runner", "agent: 'acp:evil'", false}, {"runner", "agent: sh", false}, {"runner", "{agent: echo, hooks: [x]}", false}, {"runner", "{agent: echo, rounds: 0}", false},
		{"runner", "{agent: echo, tools_off: ['a b']}", false}, {"runner", "{agent: echo, budgets: {tokens_per_change: 1}}", false}, {"runner", "{agent: echo, egress: [registries]}", false},
		{"sallyport", "allowed_areas: []", false}, {"sallyport", "retention: 1", false},
		{"sallyport", "targets: []", true}, {"sallyport", "targets: {}", false}, {"sallyport", "targets: [{repository: /r, restart: x, restart_within: 10m, trial: 0s}]", true},
		{"sallyport", "targets: [{restart: x}]", false}, {"sallyport", "targets: [{repository: r, restart: x}]", false}, {"sallyport", "targets: [{repository: /r, restart: ''}]", false},
		{"sallyport", "targets: [{repository: /r, probe: {http: 'http://example.org/health', healthy: 3s, within: 1m, every: 1s, timeout: 5s}}]", true},
		{"sallyport", "targets: [{repository: /r, restart: x, trial: 0}]", false}, {"sallyport", "targets: [{repository: /r, restart: x, trial: ''}]", false},
		{"sallyport", "targets: [{repository: /r, probe: {http: 'https://localhost'}}]", false}, {"sallyport", "targets: [{repository: /r, probe: {http: 'http://a:b@localhost'}}]", false},
		{"sallyport", "targets: [{repository: /r, restart: x, nope: 1}]", false}, {"sallyport", "targets: [{repository: /r, restart: x, trial: null}]", false},
		{"sallyport", "notify: {command: mail me}", true}, {"sallyport", "notify: {command: ' '}", false}, {"sallyport", "notify: mail", false},
		{"repository", "target: {restart: x, probe: {command: y}, trial: 1m30s}", true}, {"repository", "target: {repository: /r, restart: x}", false}, {"repository", "targets: []", false},
		{"repository", "notify: {command: x}", false},

		{"sallyport", "agents: {}", true}, {"sallyport", "agents: []", false}, {"sallyport", "agents: null", false}, {"sallyport", "agents: {codex: {}}", true}, {"sallyport", "agents: {codex: null}", false},
		{"sallyport", "agents: {claud: {}}", false}, {"sallyport", "agents: {'acp:my-agent --acp': {wire: chat, base: 'http://127.0.0.1:11434/v1'}}", true}, {"sallyport", "agents: {'acp:': {}}", false}, {"sallyport", "agents: {'acp: ': {}}", false},
		{"sallyport", "agents: {codex: {model: gpt-5, key: $OPENAI_API_KEY, base: 'https://api.example.org/v1', args: [-c, 'x=y'], env: {RUST_LOG: info}, permissions: {fetch: deny, execute: allow}, rounds: 20}}", true},
		{"sallyport", "agents: {codex: {key: 'file:/etc/keys/openai', price: {input: 1.25, cached: 0.125, output: 10}, memory: 4GiB, timeout: 2h}}", true},
		{"sallyport", "agents: {codex: {key: sk-1234}}", false}, {"sallyport", "agents: {codex: {key: 1234}}", false}, {"sallyport", "agents: {codex: {key: '$'}}", false}, {"sallyport", "agents: {codex: {key: 'file:relative'}}", false},
		{"sallyport", "agents: {codex: {model: ''}}", false}, {"sallyport", "agents: {codex: {model: 'a b'}}", false}, {"sallyport", "agents: {codex: {wire: soap}}", false},
		{"sallyport", "agents: {codex: {base: 'ftp://x'}}", false}, {"sallyport", "agents: {codex: {base: 'https://x.example/'}}", false}, {"sallyport", "agents: {codex: {base: 'https://a:b@x.example'}}", false},
		{"sallyport", "agents: {codex: {rounds: 0}}", false}, {"sallyport", "agents: {codex: {rounds: 21}}", false}, {"sallyport", "agents: {codex: {permissions: {fly: deny}}}", false}, {"sallyport", "agents: {codex: {permissions: {fetch: false}}}", false},
		{"sallyport", "agents: {codex: {env: {'A-B': x}}}", false}, {"sallyport", "agents: {codex: {env: {A: 1}}}", false}, {"sallyport", "agents: {codex: {args: x}}", false}, {"sallyport", "agents: {codex: {nope: x}}", false},
		{"sallyport", "agents: {codex: {price: {input: '1'}}}", false}, {"sallyport", "agents: {codex: {price: {input: -1}}}", false}, {"sallyport", "agents: {codex: {price: {input: 0}}}", false}, {"sallyport", "agents: {codex: {price: 1}}", false},
		{"sallyport", "egress: [registries, example.org, '*.example.org']", true}, {"sallyport", "egress: registries", false}, {"sallyport", "egress: [{host: api.example.org, ports: [443, 8443], methods: [GET], paths: [/v1, /v2/]}]", true},
		{"sallyport", "egress: [{methods: [GET]}]", false}, {"sallyport", "egress: [{}]", false}, {"sallyport", "egress: ['*']", false}, {"sallyport", "egress: ['']", false}, {"sallyport", "egress: [localhost]", false}, {"sallyport", "egress: [127.0.0.1]", false},
		{"sallyport", "egress: ['[::1]']", false}, {"sallyport", "egress: [Example.org]", false}, {"sallyport", "egress: ['example.org.']", false}, {"sallyport", "egress: ['example.org:443']", false}, {"sallyport", "egress: ['https://example.org']", false},
		{"sallyport", "egress: [0x7f.1]", false}, {"sallyport", "egress: ['a.*.org']", false}, {"sallyport", "egress: ['-a.org']", false}, {"sallyport", "egress: [{host: a.org, ports: [0]}]", false}, {"sallyport", "egress: [{host: a.org, ports: [65536]}]", false},
		{"sallyport", "egress: [{host: a.org, methods: [get]}]", false}, {"sallyport", "egress: [{host: a.org, paths: [v1]}]", false}, {"sallyport", "egress: [{host: a.org, paths: ['/a?b']}]", false}, {"sallyport", "egress: [{host: registries, nope: 1}]", false}, {"sallyport", "egress: [[a.org]]", false},
		{"sallyport", "budgets: {}", true}, {"sallyport", "budgets: {tokens_per_change: 1000000, tokens_per_hour: 1, tokens_per_day: 2, cost_per_change: 0.5, cost_per_hour: 1, cost_per_day: 12.25}", true},
		{"sallyport", "budgets: {tokens_per_day: 0}", false}, {"sallyport", "budgets: {tokens_per_day: 1.5}", false}, {"sallyport", "budgets: {cost_per_day: 0}", false}, {"sallyport", "budgets: {cost_per_day: '1'}", false}, {"sallyport", "budgets: {cost_per_week: 1}", false},
		{"repository", "agent: codex", true}, {"repository", "agent: 'acp:evil'", false}, {"repository", "agent: sh", false}, {"repository", "agent: [codex]", false}, {"repository", "agents: {}", false}, {"repository", "egress: []", false}, {"repository", "budgets: {}", false},
	} {
		if got := parse(test.file, []byte(test.data)) == nil; got != test.taken {
			t.Errorf("the parser of %s on %.60q: %v", test.file, test.data, parse(test.file, []byte(test.data)))
		}
		var value any
		if err := yaml.Unmarshal([]byte(test.data), &value); err != nil {
			t.Fatal(err)
		}
		if value == nil {
			value = map[string]any{}
		}
		raw, err := json.Marshal(value)
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(raw, &value); err != nil {
			t.Fatal(err)
		}
		if err := schema(t, test.file).Validate(value); (err == nil) != test.taken {
			t.Errorf("the schema of %s on %.60q: %v", test.file, test.data, err)
		}
	}
}

var commented = regexp.MustCompile(`(?m)^#( *[a-z_]+:.*)$`)

func TestTheFilesOfANewHomeSayTheDefaults(t *testing.T) {
	home := t.TempDir()
	for _, f := range config.NewHome() {
		disktest.Put(t, filepath.Join(home, f.Name), f.Text, 0o600)
	}
	got := config.Look(home)
	if len(got.Unloaded()) > 0 || !reflect.DeepEqual(got.Policy().Judgement(), policy.Default()) || !reflect.DeepEqual(got.Sallyport(), config.Sallyport{}) || got.Policy().Approvals.Rules() != (right.Rules{}) {
		t.Errorf("a new home is %+v, %+v, %+v", got.Sallyport(), got.Policy(), got.Unloaded())
	}
	// Every key that is commented out is one, with a value that is taken: the default.
	files := config.NewHome()
	s, err := config.ParseSallyport("s", []byte(commented.ReplaceAllString(files[0].Text, "$1")))
	want := config.Sallyport{
		Limits: config.Limits{Memory: 2 << 30, Processes: 512, Output: 10 << 20, Timeout: config.Duration(time.Hour), Processor: config.Duration(4 * time.Hour), Files: 1_000_000, Descriptors: 4096},
		Shares: []config.Folder{}, Mounts: []config.MountRoot{}, Profiles: []config.Profile{}, Changes: config.Changes{AtOnce: 5}, Conversations: config.Conversations{AtOnce: 8},
		Commits: config.Commits{AuthorName: "sallyport", AuthorEmail: "sallyport@localhost"},
		Runtime: config.Runtime{ExecutionMode: config.Deterministic}, Host: config.HostChanges{Code: config.HandedThere, Build: config.HostBuild{Images: []config.ImageName{}}},
		Retention: config.Retention{
			Refs: config.Duration(720 * time.Hour), Transcripts: config.Duration(720 * time.Hour), Exports: config.Duration(720 * time.Hour), Grace: config.Duration(time.Hour),
		},
		Layers: config.Layers{Quota: 10 << 30, Keep: config.Duration(14 * 24 * time.Hour), History: 10_000},
		Interactive: config.Supervision{
			Strategy: "direct_worktree", WatchdogPollIntervalMS: 2000, CheckpointIntervalMS: 30000, MaxUncommittedChanges: 50,
			ValidationOnCheckpoint: new(true), RevertOnViolation: new(false), ViolationSeverity: "warning", PauseResumeProtocol: "signal",
			ShadowWorkspace: config.ShadowWorkspace{Enabled: new(false), PromotionStrategy: "atomic", CleanupOnFailure: new(true), MaxShadowSizeMB: 2048},
		},
		Targets: []config.HomeTarget{}, Agents: map[config.AgentName]config.Agent{}, Egress: []config.Egress{},
	}
	if err != nil || !reflect.DeepEqual(s, want) {
		t.Errorf("uncommented: %+v, %v", s, err)
	}
	p, err := config.ParsePolicy("p", []byte(commented.ReplaceAllString(files[1].Text, "$1")))
	if err != nil || policy.Digest(p.Judgement(), policy.Plan{}) != policy.Digest(policy.Default(), policy.Plan{}) || p.Approvals.Rules() != (right.Rules{People: 1, CoolDown: right.CoolDownDefault}) {
		t.Errorf("uncommented: %+v, %v", p, err)
	}
	for _, f := range []struct {
		text string
		v    any
	}{{files[0].Text, config.Sallyport{}}, {files[1].Text, config.Policy{}}} {
		for _, key := range keys(reflect.TypeOf(f.v)) {
			if !strings.Contains(f.text, key+":") {
				t.Errorf("the text for a new home does not speak of %s", key)
			}
		}
	}
}

func keys(t reflect.Type) (all []string) {
	for i := range t.NumField() {
		f := t.Field(i)
		if key, _, _ := strings.Cut(f.Tag.Get("json"), ","); key != "" {
			all = append(all, key)
		}
		switch f.Type.Kind() {
		case reflect.Struct:
			all = append(all, keys(f.Type)...)
		case reflect.Map:
			if f.Type.Elem().Kind() == reflect.Struct {
				all = append(all, keys(f.Type.Elem())...)
			}
		}
	}
	return all
}

func TestAHomeWithoutFilesHasDefaultsAndABrokenOneIsRefused(t *testing.T) {
	home := t.TempDir()
	got, err := config.Open(home, disk.Ops{})
	if err != nil || !reflect.DeepEqual(got.Policy().Judgement(), policy.Default()) {
		t.Errorf("got %+v, %v", got.Policy(), err)
	}
	home = t.TempDir()
	name := filepath.Join(home, config.PolicyFile)
	disktest.Put(t, name, "x: 1\n", 0o600)
	if _, err := config.Open(home, disk.Ops{}); problem.KindOf(err) != problem.Refused || !strings.Contains(err.Error(), name+":1:1: x:") {
		t.Errorf("got %v", err)
	}
	if err := os.Remove(name); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(name, 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := config.Open(home, disk.Ops{}); problem.KindOf(err) != problem.Unavailable {
		t.Errorf("a folder in its place: %v", err)
	}
}

func FuzzNoFileHangsOrPanics(f *testing.F) {
	for _, file := range config.NewHome() {
		f.Add([]byte(file.Text))
	}
	for _, s := range []string{"agents: {codex: {key: $A, price: {input: 1.5}, env: {A: b}}}", "egress: [registries, {host: a.org, ports: [1]}]", "agents: {1: {}}", "a: [x, {b: c}]", "<<: *a", "? a\n: b", "a: |\n  x\n", "- - -", "'", "a: &b !!c d", "limits: {memory: 1GiB}", "checks: [>-\n x]"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, name := range config.Schemas {
			if err := parse(name, data); err != nil && (problem.KindOf(err) != kindOf(name) || err.Error() == "") {
				t.Errorf("%v", err)
			}
		}
	})
}

func TestAPlanThatIsNotThereIsNoEmptyPlan(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "plan.yaml")
	if _, err := config.LoadPlan(name); problem.KindOf(err) != problem.Usage || !strings.Contains(err.Error(), "does not exist") {
		t.Errorf("got %v", err)
	}
	disktest.Put(t, name, "allowed_areas: [src]\nforbidden_areas: [src/gen, vendor]\n", 0o600)
	p, err := config.LoadPlan(name)
	if err != nil || !reflect.DeepEqual(p, config.Plan{AllowedAreas: []config.Glob{"src"}, ForbiddenAreas: []config.Glob{"src/gen", "vendor"}}) {
		t.Errorf("got %+v, %v", p, err)
	}
	if _, err := config.LoadPlan(dir); problem.KindOf(err) != problem.Unavailable {
		t.Errorf("a folder in its place: %v", err)
	}
}

func TestOnlyTheExecutionModeIsReadFromAState(t *testing.T) {
	for name, test := range map[string]struct {
		data string
		mode config.ExecutionMode
		want string // in the refusal
	}{
		"as it is written":     {"---\nexecution_mode: interactive\nchange: x\ncheckpoints:\n  - {a: 1}\n---\n# x\n", config.Interactive, ""},
		"another mode":         {"---\nexecution_mode: deterministic\n---\n", config.Deterministic, ""},
		"no mode":              {"---\nchange: x\n---\n", "", ""},
		"nothing":              {"---\n---\n", "", ""},
		"other keys wild":      {"---\ncheckpoints: no list\nexecution_mode: interactive\nnope: [1]\n---\n", config.Interactive, ""},
		"a mode in the text":   {"---\nchange: x\n---\nexecution_mode: deterministic\n---\n", "", ""},
		"a mode below":         {"---\nx: {execution_mode: both}\n---\n", "", ""},
		"a mode that is none":  {"---\nchange: x\nexecution_mode: both\n---\n", "", "state.md:3:17: execution_mode: \"both\" is not one of deterministic, interactive"},
		"a mode of no type":    {"---\nexecution_mode: [x]\n---\n", "", "it must be text, and is a list"},
		"a mode without value": {"---\nexecution_mode:\n---\n", "", "it has no value"},
		"no front matter":      {"# x\n", "", "has no front matter"},
		"no end":               {"---\nexecution_mode: interactive\n", "", "has no front matter"},
		"an anchor":            {"---\nx: &a b\nexecution_mode: interactive\n---\n", "", "an anchor (&) does not work here"},
	} {
		mode, err := config.ParseState("state.md", []byte(test.data))
		if mode != test.mode || (err == nil) != (test.want == "") || err != nil && (problem.KindOf(err) != problem.Usage || !strings.Contains(err.Error(), test.want)) {
			t.Errorf("%s: %q, %v", name, mode, err)
		}
	}
	if mode, err := config.LoadState(filepath.Join(t.TempDir(), "state.md")); mode != "" || err != nil {
		t.Errorf("no file: %q, %v", mode, err)
	}
}

func TestATargetIsWhatIsSaidAndOneThatIsProposedSaysSo(t *testing.T) {
	const words = "restart: |\n    a\n    b\n  restart_within: 5s\n  probe: {http: 'http://127.0.0.1:80/h?x=1', healthy: 1s, within: 2s, every: 3s, timeout: 4s}\n  trial: "
	want := trust.Target{
		Restart: "a\nb\n", Within: 5 * time.Second, Trial: time.Minute,
		Probe: trust.Probe{HTTP: "http://127.0.0.1:80/h?x=1", Healthy: time.Second, Within: 2 * time.Second, Every: 3 * time.Second, Timeout: 4 * time.Second},
	}
	s, err := config.ParseSallyport("s", []byte("targets:\n- repository: /srv/app/\n  "+words+"1m\n"))
	if err != nil || len(s.Targets) != 1 || s.Targets[0].Repository != "/srv/app" || s.Targets[0].Said() != want {
		t.Errorf("got %+v, %v", s, err)
	}
	r, err := config.ParseRepository("r", []byte("target:\n  "+words+"0s\n"))
	want.Trial, want.Proposed = 0, true
	if got, ok := r.Target.Proposed(); err != nil || !ok || got != want {
		t.Errorf("got %+v, %v, %v", got, ok, err)
	}
	if r, err = config.ParseRepository("r", []byte("target: {probe: {command: x}}\n")); err != nil {
		t.Fatal(err)
	}
	if got, _ := r.Target.Proposed(); got.Trial != trust.TrialDefault {
		t.Errorf("a trial that is not named lasts %s", got.Trial)
	}
	if got, ok := (config.Repository{}).Target.Proposed(); ok {
		t.Errorf("a silent repository proposes %+v", got)
	}
}

// TestThePolicySaysWhoHasToApprove holds SM-912: how many people, whether who asked may, and how long one alone waits.
func TestThePolicySaysWhoHasToApprove(t *testing.T) {
	for text, want := range map[string]right.Rules{
		"":                              {},
		"marks: show":                   {},
		"approvals: {}":                 {},
		"approvals: {people: 2}":        {People: 2},
		"approvals: {self: refuse}":     {NoSelf: true},
		"approvals: {self: allow}":      {},
		"approvals: {cool_down: 1h30m}": {CoolDown: 90 * time.Minute},
		"approvals: {people: 1}":        {People: 1},
		"approvals: {people: 2, self: refuse, cool_down: 5m}": {People: 2, NoSelf: true, CoolDown: 5 * time.Minute},
	} {
		home := t.TempDir()
		disktest.Put(t, filepath.Join(home, config.PolicyFile), text, 0o600)
		if got := config.Look(home); len(got.Unloaded()) > 0 || got.Policy().Approvals.Rules() != want {
			t.Errorf("%q: %+v, %+v", text, got.Policy().Approvals, got.Unloaded())
		}
	}
}
