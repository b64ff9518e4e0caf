package config

import "fmt"

// File is a file that a new home gets.
type File struct {
	Name string // relative to the home
	Text string
}

// NewHome returns the files of a new home. Each says all there is to say, commented out
// where the default holds.
func NewHome() []File {
	return []File{
		{SallyportFile, sallyportText},
		{PolicyFile, policyText},
		{".gitignore", ignoreText},
	}
}

const sallyportText = `# How this host works. A key that is left out has its default, which is the value shown.
# A key that is not known is refused, with its line.

# What one sandbox may use. Whatever breaks a limit is ended, and the limit is named.
#limits:
#  memory: 2GiB        # of all processes together
#  processes: 512      # and threads, at once
#  output: 10MiB       # stdout and stderr together
#  timeout: 1h         # at most 24h
#  processor: 4h       # processor time of all processes; by default the timeout for each of 4 processors, or half of them
#  descriptors: 4096   # open files of one process
#  files: 1000000      # files and folders that a workspace may grow by

# Folders of this machine that every sandbox sees, read-only (as with --share).
#shares: []

# Folders of this machine below which a group may be shown folders, if its runner.yaml says so. What a group may also write says
# {root: /srv/notes, allowReadWrite: true}; then what its agent writes there is what you have there.
#mounts: []

# Module caches that every sandbox sees, read-only: go, node, python.
#profiles: []

#changes:
#  at_once: 5          # agents that work at the same time; more wait. "sallyport doctor" says how many the machine holds

#conversations:
#  at_once: 8          # agents of groups that are kept running; when another must wake, the one longest without work ends and goes on later

# The built-in scanner for secrets always looks. With a command: here, a second one (such as trufflehog) runs in a sandbox
# on every proposed tree as one more check.
#secrets: {}

# Who stands in the commits where git config names no user.name and user.email for a repository.
#commits:
#  author_name: sallyport
#  author_email: sallyport@localhost

# How long things are kept once their change has ended: refs and checkpoints, transcripts, and what lies in
# .state/changes; and what a crash has left. Nothing of an open change goes; the audit log and the rows stay.
#retention:
#  refs: 30d
#  transcripts: 30d
#  exports: 30d
#  grace: 1h           # from the last change of what nobody owns

# Base trees are kept for the next change on them. One that a workspace stands on never goes.
#layers:
#  quota: 10GiB        # all together; the one that was used longest ago goes first
#  keep: 14d           # after the last use
#  history: 10000      # commits at most that are copied with a base; it counts where a history is copied anew

# How agents run that can do both: deterministic (through the host's tools) or interactive (on
# the files of a copy, watched). A plain command is always interactive.
#runtime:
#  execution_mode: deterministic

# What agents are given, by name: codex, claude, codex-acp, gemini, opencode, qwen, pi, api, or "acp:COMMAND" for any other that
# speaks ACP. With its key in your environment (sallyport agent list says under which name) an agent needs no entry. A key
# never stands here: it is named, added outside the sandbox to what goes to base, and nowhere else. An entry:
#
#| codex:
#|   model: gpt-5               # as its endpoint calls it; --model names another
#|   key: $OPENAI_API_KEY       # or file:/path, which only you may read, or login: that of codex or claude itself
#|   base: https://models.example.org/v1
#|   wire: responses            # chat, messages, gemini: the language of base
#|   args: []                   # added to its command line
#|   env: {}                    # added to its environment; no key
#|   permissions: {fetch: deny} # when it asks, by kind of tool call; without a word it is allowed
#|   rounds: 5                  # how often it may try until rules and checks pass, 1 to 20
#|   price: {input: 1.25, cached: 0.125, output: 10} # per million tokens, in your money
#|   memory: 2GiB               # instead of limits: memory:
#|   timeout: 1h                # instead of limits: timeout:
#agents: {}

# Where whoever approves a change of the host is given its code: conversation, where they approve it, or terminal, at this
# machine alone; then it is approved there, too. A build of the host's source or image reaches package registries if build
# says so; and images are what image/Dockerfile may stand on of those that this machine has: agents read what is in them.
#host:
#  code: conversation
#  build:
#    registries: false
#    images: []                 # such as debian:12, as FROM names it

# What every agent's sandbox may reach beside its model: nothing. registries is the set of hosts that packages come from.
# Entries: registries, example.org, "*.example.org", {host: api.example.org, ports: [443], methods: [GET], paths: [/v1]}
#egress: []

# How much models may be used; what goes beyond is refused, and the change waits for you. Tokens are read and written together,
# costs are by the agents' price:
#| tokens_per_change: 1000000
#| tokens_per_hour: 5000000     # of all agents together
#| tokens_per_day: 20000000
#| cost_per_change: 5
#| cost_per_hour: 10
#| cost_per_day: 50
#budgets: {}

# How a working agent is watched. A repository's .sallyport.yaml may have the same keys; of
# both the stricter holds.
#interactive:
#  strategy: direct_worktree        # shadow_workspace: a tree that breaks a rule goes back to the last valid one
#  watchdog_poll_interval_ms: 2000  # between looks at the workspace
#  checkpoint_interval_ms: 30000    # between checkpoints at the most
#  max_uncommitted_changes: 50      # changed paths that make a checkpoint due
#  validation_on_checkpoint: true   # false: only the last checkpoint is judged
#  revert_on_violation: false       # true: a file that breaks a rule is put back at once
#  violation_severity: warning      # the least a violation counts as: info, warning, error, critical
#  pause_resume_protocol: signal    # message asks an agent that reads messages to pause before it is stopped
#  shadow_workspace:
#    enabled: false                 # true selects the strategy
#    promotion_strategy: atomic     # incremental: of a tree that breaks a rule the files that break none are kept
#    cleanup_on_failure: true       # false: the tree of an agent that failed stays
#    max_shadow_size_mb: 2048       # what a workspace may grow by

# How the code of a repository is started again and asked whether it answers when a change has landed. Commands run
# outside of every sandbox, in the work tree. What does not answer, or is not confirmed in time, goes back by itself.
# An entry, with what each key may be:
#
#| - repository: /srv/app       # work tree
#|   restart: systemctl restart app
#|   restart_within: 1m         # at most 10m
#|   probe:                     # http or command
#|     http: http://127.0.0.1:8080/health
#|     healthy: 3s              # without a miss, before it counts
#|     within: 30s              # to answer for the first time
#|     every: 1s                # at most 5s
#|     timeout: 5s              # of one try, at most 30s
#|   trial: 2m                  # to confirm; 10s to 10m, 0s asks nobody
#targets: []

# Who is told that something waits for a person, was rolled back or failed: with a command:, it gets the text on its standard
# input, and SALLYPORT_CHANGE, SALLYPORT_KIND, SALLYPORT_TEXT and SALLYPORT_NEXT.
#notify: {}
`

const policyText = `# What may land, in every repository of this home. A repository's own .sallyport.yaml can
# only make it stricter. A change to this file is judged by the rules before it.
#
# A glob is matched from the top of the repository: * and ? stay within a folder, ** crosses
# folders, and a plain name at the end stands for a file, or a folder with all below it.

# A change may touch these only; empty: everything.
#allowed_areas: []

# No change may touch these.
#forbidden_areas: []

# Nothing that an agent made lands here.
protected_areas:
  - .state
  - "**/.env"
  - "**/.env.*"

# Paths that hold secrets by custom are refused: .env, *.pem, *.key, credentials.*, secrets/, .ssh/ and their like.
# Where that is no secret (a package named secret), allow the path; what is in it is scanned all the same.
#allow_secret_paths: []

# What looks like a secret and is none: a file, or docs/login.md@3f2a9c10be77 for exactly this content of it.
#allow_secrets: []

# A repository's .gitleaks.toml and .gitleaksignore only make the rules stricter, but for those whose digest stands here.
#trust_secret_rules: []

# A change that holds what a tool runs by itself (.envrc, tasks of an editor, hooks, install scripts): ask wants a word of
# its own from whoever approves it, refuse ends it, show only shows it.
#marks: ask

# Who has to approve a change that a group asks for, of what it runs or of the host: how many people; whether who asked for
# it may be the one (allow or refuse); and how long one person alone waits before a yes to a change of the host counts.
#approvals:
#  people: 1
#  self: allow
#  cool_down: 1m

# Does who speaks on a platform have to be known? on asks about strangers; off lets everybody talk with the groups that hear a
# place, and decide nothing.
#permissions: on

# May relative symbolic links that stay inside the repository be added?
#allow_symlinks: false

# A new executable: review shows it on the card, refuse makes it a violation.
#executables: review
#allow_executable: []  # with refuse: where it is none

# Sizes: of one file, and of all added and changed files of one change; paths of one change.
#file_bytes_max: 64MiB
#change_bytes_max: 1GiB
#paths_max: 100000
`

// RepositoryText is a new .sallyport.yaml, which says all that there is to say, commented out where the default holds; agent "" and
// strategy "" are left to the default too.
func RepositoryText(agent, strategy string) string {
	chosen := func(key, value, usual string) string {
		if value == "" {
			return "#" + key + ": " + usual
		}
		return key + ": " + value
	}
	interactive := "#interactive:\n#  strategy: direct_worktree"
	if strategy != "" {
		interactive = "interactive:\n  strategy: " + strategy
	}
	return fmt.Sprintf(repositoryText, chosen("agent", agent, Agents[0]), interactive)
}

const repositoryText = `# How sallyport changes this repository. It counts as it stands in the commit that a change starts from, and joins what the
# owner of a home has said: of both the stricter holds. A key that is left out has its default; one that is not known is refused.

# The agent of "sallyport run" when no other is named: codex, claude, codex-acp, gemini, opencode, qwen, pi, api.
%s

# Commands that must succeed in a sandbox, without a network, on the proposed tree before a person is asked. An agent that has failed one is
# told so and tries again.
#checks: []

# Commands that run in a sandbox before the agent begins, once for each lock file, such as ["npm ci"]. Agent and checks find what they
# install. Package registries are in reach with run --egress registries, or where the home's egress: names registries.
#setup: []

# Where changes may work, and where not. * and ? stay within a folder, ** crosses folders.
#allowed_areas: []
#forbidden_areas: []
#protected_areas: []      # added to the home's: nothing an agent made lands there

# How a working agent is watched. direct_worktree lets it mend a file that breaks a rule; shadow_workspace takes its tree back to the
# last valid checkpoint.
%s

# Module caches that sandboxes see, read-only: go, node, python. Those that the files at the top ask for are seen anyway.
#profiles: []

# Ignored files that are part of a change all the same.
#include_ignored: []

# What may be in a change: symbolic links, new executables, and how much.
#allow_symlinks: false
#executables: review      # refuse makes a new one a violation
#allow_executable: []     # with refuse: where it is none
#file_bytes_max: 64MiB
#change_bytes_max: 1GiB
#paths_max: 100000

# How agents work that can do it both ways: deterministic or interactive.
#execution_mode: deterministic

# The subject of the commit; {request} is the first line of what was asked:
#landing: {subject: "fix: {request}"}

# How the code is started again and asked whether it answers once a change has landed; what does not answer goes back by itself. It
# runs only after the owner of a home has trusted exactly these words (sallyport target trust):
#target:
#  restart: systemctl restart app
#  probe: {http: "http://127.0.0.1:8080/health"}
#  trial: 2m
`

const ignoreText = `.state/
.env
.env.*
`
