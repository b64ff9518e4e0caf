package config

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
#  descriptors: 4096   # open files of one process
#  files: 1000000      # files and folders that a workspace may grow by

# Folders of this machine that every sandbox sees, read-only (as with --share).
#shares: []

# Module caches that every sandbox sees, read-only: go, node, python.
#profiles: []

#changes:
#  at_once: 5          # agents that work at the same time; at most 10, more wait

# The built-in scanner for secrets always looks. With a command: here, a second one (such as trufflehog) runs in a sandbox
# on every proposed tree as one more check.
#secrets: {}

# Who stands in the commits that land what an agent made.
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

# How agents run that can do both: deterministic (through the host's tools) or interactive (on
# the files of a copy, watched). A plain command is always interactive.
#runtime:
#  execution_mode: deterministic

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

const ignoreText = `.state/
.env
.env.*
`
