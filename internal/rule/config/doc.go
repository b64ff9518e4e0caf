// Package config turns files into checked plain structs.
//
// Five files exist: a plan bounds one change; a group's runner.yaml says how its agent runs, and is read as it stands
// in a commit; a home's sallyport.yaml (how this host works) and policy.yaml (what
// may land), both written by the owner, and a repository's .sallyport.yaml, which
// is read from the base commit only, so that a change is judged by the rules
// before it (SM-919). The last is written by strangers: it can make rules
// stricter, its checks run in a sandbox, and the target that it proposes is run
// only once the owner has trusted exactly these words (SM-925).
//
// A file is taken whole or refused whole. An unknown key, a value of another
// type or out of range is refused with file, line, column and dotted path
// (SV-008); so is every part of YAML that makes a file mean something else than
// it shows: anchors, aliases, merge keys, tags, directives, repeated keys, a
// second document.
package config

import (
	"time"

	"sallyport/internal/rule/policy"
	"sallyport/internal/rule/right"
)

// Names of the files, and of a folder.
const (
	SallyportFile  = "sallyport.yaml"
	PolicyFile     = "policy.yaml"
	RepositoryFile = ".sallyport.yaml"
	SourceFolder   = "src" // of a home: the source of its host
)

// FileBytesMax bounds a file; the YAML parser is quadratic in what a stranger may write.
const FileBytesMax = 64 << 10

// Sallyport is a home's sallyport.yaml. A zero means that the file is silent and the
// default of whoever uses the value holds.
type Sallyport struct {
	Limits        Limits        `json:"limits,omitzero" jsonschema:"What one sandbox may use; whatever breaks a limit is ended, and the limit is named."`
	Shares        []Folder      `json:"shares,omitempty" jsonschema:"Folders of this machine that every sandbox sees, read-only, as with --share."`
	Mounts        []MountRoot   `json:"mounts,omitempty" jsonschema:"Folders of this machine below which a group may be shown folders, if its runner.yaml says so. Default: none."`
	Profiles      []Profile     `json:"profiles,omitempty" jsonschema:"Module caches that every sandbox sees, read-only, as with --profile."`
	Changes       Changes       `json:"changes,omitzero" jsonschema:"How changes are worked on."`
	Conversations Conversations `json:"conversations,omitzero" jsonschema:"How the agents of groups are kept running."`
	Secrets       Secrets       `json:"secrets,omitzero" jsonschema:"How changes are scanned for secrets, beside the built-in scanner."`
	Commits       Commits       `json:"commits,omitzero" jsonschema:"Who stands in the commits that land."`
	Runtime       Runtime       `json:"runtime,omitzero" jsonschema:"How agents run."`
	Host          HostChanges   `json:"host,omitzero" jsonschema:"How changes of the host itself go."`

	Agents  map[AgentName]Agent `json:"agents,omitempty" jsonschema:"Models, keys and limits by agent: codex, claude, codex-acp, gemini, opencode, qwen, pi, api, or 'acp:COMMAND'."`
	Egress  []Egress            `json:"egress,omitempty" jsonschema:"What every agent's sandbox may reach beside its model: the set registries, names of hosts, or hosts with methods and paths. Default: nothing."`
	Budgets Budgets             `json:"budgets,omitzero" jsonschema:"How much models may be used. What would go beyond is refused, and the change waits for a person."` // CW-095

	Retention Retention `json:"retention,omitzero" jsonschema:"How long things are kept once their change has ended; nothing of an open change goes, and the audit log and the rows stay."`
	Layers    Layers    `json:"layers,omitzero" jsonschema:"How many base trees are kept for the next change; one that a workspace stands on is never removed."`

	Interactive Supervision `json:"interactive,omitzero" jsonschema:"How a working agent is watched; a repository can only make it stricter."`

	Targets []HomeTarget `json:"targets,omitempty" jsonschema:"How the code of a repository is started again and asked whether it answers when a change has landed."`
	Notify  Notify       `json:"notify,omitzero" jsonschema:"Who is told that something waits for a person, was rolled back or failed."`
}

// Retention says how long what belongs to a change that has ended is kept.
type Retention struct {
	Refs        Duration `json:"refs,omitempty" min:"1s" max:"3650d" jsonschema:"Refs and checkpoints of a change that has ended, such as 30d (default 30d). What has landed stays in the branch and can be rolled back."`
	Transcripts Duration `json:"transcripts,omitempty" min:"1s" max:"3650d" jsonschema:"Transcripts of its sessions (default 30d)."`
	Exports     Duration `json:"exports,omitempty" min:"1s" max:"3650d" jsonschema:"Its folder in .state/changes: state.md and exported diffs (default 30d)."`
	Grace       Duration `json:"grace,omitempty" min:"1m" max:"30d" jsonschema:"What a crash has left and nobody owns, from its last change on (default 1h)."`
}

// Layers bound the cache of base trees.
type Layers struct {
	Quota Size     `json:"quota,omitempty" min:"1MiB" max:"1024TiB" jsonschema:"Bytes of disk that all base trees together may take, such as 10GiB (default 10GiB); the one that was used longest ago goes first."`
	Keep  Duration `json:"keep,omitempty" min:"1m" max:"3650d" jsonschema:"How long a base tree that nothing stands on is kept after it was last used, such as 14d (default 14d); at most sixteen of these are kept for one repository."`

	History int `json:"history,omitempty" min:"100" max:"1000000" jsonschema:"Commits at most that are copied with a base, the newest first: what an agent sees of a repository's history (default 10000). It counts where a history is copied anew."`
}

// Limits hold one sandbox.
type Limits struct {
	Memory      Size     `json:"memory,omitempty" min:"16MiB" max:"1TiB" jsonschema:"Memory of all processes together, such as 2GiB (default 2GiB)."`
	Processes   int      `json:"processes,omitempty" min:"8" max:"32768" jsonschema:"Processes and threads at once (default 512)."`
	Output      Size     `json:"output,omitempty" min:"1KiB" max:"1GiB" jsonschema:"Bytes of stdout and stderr together, such as 10MiB (default 10MiB)."`
	Timeout     Duration `json:"timeout,omitempty" min:"1s" max:"24h" jsonschema:"How long an agent may run, such as 1h or 90m (default 1h)."`
	Processor   Duration `json:"processor,omitempty" min:"1s" max:"3650d" jsonschema:"Processor time of all processes together, such as 8h (default: the timeout for each of four processors, or for half of the machine's where that is more). The session of a conversation has no end, and this does not end it."`
	Files       int      `json:"files,omitempty" min:"100" max:"100000000" jsonschema:"Files and folders that a workspace may grow by, and as many in /tmp and the home folder (default 1000000)."`
	Descriptors int      `json:"descriptors,omitempty" min:"64" max:"1048576" jsonschema:"Open files of one process (default 4096)."`
}

// Changes says how changes are worked on.
type Changes struct {
	AtOnce int `json:"at_once,omitempty" min:"1" max:"1000" jsonschema:"Agents that work at the same time, as far as the machine holds them: sallyport doctor says how many that are. More wait (default 5)."` // SV-095
}

// Conversations says how groups are kept.
type Conversations struct {
	AtOnce int `json:"at_once,omitempty" min:"1" max:"1000" jsonschema:"Conversations whose agents are kept running at the same time; when another must wake, the one longest without work ends and goes on later (default 8). One place more is kept for the trial of a group that has changed."`
}

// HostChanges says how the host changes itself.
type HostChanges struct {
	Code  Handing   `json:"code,omitempty" jsonschema:"Where whoever approves a change of the host is given the code that it is confirmed with: conversation, where they approve it, or terminal, at this machine alone; then it is approved there (default conversation)."` // SM-923
	Build HostBuild `json:"build,omitzero" jsonschema:"How a release is built of the home's own source."`
}

// HostBuild says what a build of the host may do.
type HostBuild struct {
	Registries bool        `json:"registries,omitempty" jsonschema:"Whether a build may fetch from package registries; else it has the Go modules of this machine alone (default false)."`
	Images     []ImageName `json:"images,omitempty" max:"100" jsonschema:"Images of this machine's own that image/Dockerfile may stand on, as its FROM names them, such as debian:12. An agent reads all that is in them before anybody is asked (default none)."`
}

// Secrets adds to the built-in scanner, which always looks.
type Secrets struct {
	Command Command `json:"command,omitempty" jsonschema:"A scanner of the home's own, run as one more check in a sandbox on every proposed tree; if it cannot run or does not end with 0, nothing is asked or landed."` // CW-025
}

// Commits says who stands in the commits that land.
type Commits struct {
	AuthorName  Name  `json:"author_name,omitempty" jsonschema:"Author and committer where git config names no user.name and user.email for a repository (default sallyport)."`
	AuthorEmail Email `json:"author_email,omitempty" jsonschema:"Their e-mail address (default sallyport@localhost)."`
}

// Rules are the rules of either file, as written.
type Rules struct {
	AllowedAreas    []Glob      `json:"allowed_areas,omitempty" jsonschema:"Globs; a change may touch these paths only. Empty: every path."`
	ForbiddenAreas  []Glob      `json:"forbidden_areas,omitempty" jsonschema:"Globs; no change may touch these paths."`
	ProtectedAreas  []Glob      `json:"protected_areas,omitempty" jsonschema:"Globs; nothing an agent made lands there, which is critical. In policy.yaml this list replaces the built-in one."`
	AllowSymlinks   *bool       `json:"allow_symlinks,omitempty" jsonschema:"Whether relative symbolic links that stay inside the repository may be added (default false)."`
	Executables     Executables `json:"executables,omitempty" jsonschema:"What becomes of a new executable: review shows it on the card, refuse makes it a violation (default review)."`
	AllowExecutable []Glob      `json:"allow_executable,omitempty" jsonschema:"Globs where a new executable is no violation although executables says refuse."`
	FileBytesMax    Size        `json:"file_bytes_max,omitempty" min:"1" max:"1TiB" jsonschema:"The largest file that may be added or changed, such as 64MiB (default 64MiB)."`
	ChangeBytesMax  Size        `json:"change_bytes_max,omitempty" min:"1" max:"1TiB" jsonschema:"All added and changed files of one change together, such as 1GiB (default 1GiB)."`
	PathsMax        int         `json:"paths_max,omitempty" min:"1" max:"10000000" jsonschema:"Paths that one change may touch (default 100000)."`
}

// Policy is a home's policy.yaml.
type Policy struct {
	Rules
	AllowSecretPaths []Glob `json:"allow_secret_paths,omitempty" jsonschema:"Globs where a path that holds secrets by custom, such as secrets/ or *.pem, is no violation; its content is scanned all the same. A repository cannot allow itself any."`
	AllowSecrets     []Glob `json:"allow_secrets,omitempty" jsonschema:"Globs of files where what looks like a secret is none. With @ and the first digits of a blob's id behind it, an entry holds for exactly that content."`
	TrustSecretRules []Sum  `json:"trust_secret_rules,omitempty" jsonschema:"Digests of .gitleaks.toml and .gitleaksignore, as a card or secret scan names them, that may loosen the built-in rules. All others only tighten them."`
	Marks            Marks  `json:"marks,omitempty" jsonschema:"What becomes of a change that holds what a tool runs by itself: ask wants a word of its own from whoever approves it, refuse ends it, show only shows it (default ask)."`

	Approvals Approvals `json:"approvals,omitzero" jsonschema:"Who has to approve a change that a group asks for, of what it runs itself or of the host."` // SM-912

	Permissions Permissions `json:"permissions,omitempty" jsonschema:"Whether who speaks on a platform has to be known: on asks about strangers, off lets everybody talk with the groups that hear a place, and decide nothing (default on)."` // CH-019, CH-059
}

// Approvals say who has to approve what a group asks for.
type Approvals struct {
	People   int      `json:"people,omitempty" min:"1" max:"9" jsonschema:"How many people have to say yes (default 1). While the home knows fewer, such a change is refused, and what refuses it says so."`
	Self     Self     `json:"self,omitempty" jsonschema:"Whether who asked for a change may be the one who approves it: allow or refuse (default allow). Where a group's agent asked, that is whoever it says, and whoever else it answered then. Where nobody knows who asked, refuse wants two people."`
	CoolDown Duration `json:"cool_down,omitempty" min:"1s" max:"1d" jsonschema:"How long one person alone has to wait before a yes to a change of the host counts, such as 1m (default 1m)."`
}

// Rules are the approvals as they are decided by: what is left out has its default.
func (a Approvals) Rules() right.Rules {
	return right.Rules{People: a.People, NoSelf: a.Self == SelfRefuse, CoolDown: time.Duration(a.CoolDown)}
}

// Repository is a repository's .sallyport.yaml.
type Repository struct {
	Rules
	Checks         []Command `json:"checks,omitempty" jsonschema:"Commands that must succeed in a sandbox on the proposed tree before a person is asked, in addition to --check."`
	Setup          []Command `json:"setup,omitempty" jsonschema:"Commands that run in a sandbox on the base, once for what it depends on, such as npm ci: agents and checks find what they leave in ignored paths and in the folder of caches. Package registries are in reach where the home's egress or --egress says so."`
	Profiles       []Profile `json:"profiles,omitempty" jsonschema:"Module caches that sandboxes of this repository see, read-only."`
	IncludeIgnored []Glob    `json:"include_ignored,omitempty" jsonschema:"Globs of ignored files that are part of a change all the same."`

	Agent         KnownAgent    `json:"agent,omitempty" jsonschema:"The agent of run without --agent and without a command: codex, claude, codex-acp, gemini, opencode, qwen, pi or api."`
	ExecutionMode ExecutionMode `json:"execution_mode,omitempty" jsonschema:"How agents that can do both work here: deterministic or interactive. A plain command is always interactive."` // SV-007
	Interactive   Supervision   `json:"interactive,omitzero" jsonschema:"How a working agent is watched; it counts where it is stricter than the home's."`

	Landing Landing `json:"landing,omitzero" jsonschema:"How a change lands here."`

	Target Proposal `json:"target,omitzero" jsonschema:"How the code of this repository is started again and asked whether it answers. It is run once the owner of a home has trusted exactly these words (sallyport target trust)."` // SM-925
}

// Landing says how a change lands in a repository.
type Landing struct {
	Subject Subject `json:"subject,omitempty" jsonschema:"The subject of the commit, such as 'fix: {request}': {request} is the first line of what was asked. It is cut at 72 columns; who approves can say another."`
}

// Judgement returns the rules of a policy.yaml: what it leaves out has its default.
func (p Policy) Judgement() policy.Rules {
	rules := p.over(policy.Default())
	if p.AllowSecretPaths != nil {
		rules.AllowSecretPaths = Strings(p.AllowSecretPaths)
	}
	if p.AllowSecrets != nil {
		rules.AllowSecrets = Strings(p.AllowSecrets)
	}
	if p.TrustSecretRules != nil {
		rules.TrustSecretRules = Strings(p.TrustSecretRules)
	}
	if p.Marks != "" {
		rules.Marks = policy.Marks(p.Marks)
	}
	return rules
}

// Judgement returns the rules of a repository: what it leaves out is no opinion. They
// only count merged with a home's (policy.Merge).
func (r Repository) Judgement() policy.Rules { return r.over(policy.Silent()) }

// over returns what is written in r, and what is not from rules.
func (r Rules) over(rules policy.Rules) policy.Rules {
	list := func(to *[]string, from []Glob) {
		if from != nil {
			*to = Strings(from)
		}
	}
	list(&rules.AllowedAreas, r.AllowedAreas)
	list(&rules.ForbiddenAreas, r.ForbiddenAreas)
	list(&rules.ProtectedAreas, r.ProtectedAreas)
	list(&rules.AllowExecutable, r.AllowExecutable)
	if r.AllowSymlinks != nil {
		rules.AllowSymlinks = *r.AllowSymlinks
	}
	if r.Executables != "" {
		rules.Executables = policy.Executables(r.Executables)
	}
	if r.FileBytesMax != 0 {
		rules.FileBytesMax = int64(r.FileBytesMax)
	}
	if r.ChangeBytesMax != 0 {
		rules.ChangeBytesMax = int64(r.ChangeBytesMax)
	}
	if r.PathsMax != 0 {
		rules.PathsMax = r.PathsMax
	}
	return rules
}

// Strings returns a list of checked words as plain strings.
func Strings[W ~string](words []W) []string {
	out := make([]string, len(words))
	for i, w := range words {
		out[i] = string(w)
	}
	return out
}
