package config

import "sallyport/internal/rule/policy"

// The words of supervision; package session owns their meaning.
type (
	ExecutionMode string // deterministic or interactive
	Strategy      string // direct_worktree or shadow_workspace
	Promotion     string // atomic or incremental
	Severity      string // info, warning, error or critical
	PauseProtocol string // signal, message or none
)

// The execution modes (SV-001).
const (
	Deterministic ExecutionMode = "deterministic" // the agent reads and writes through the host's tools
	Interactive   ExecutionMode = "interactive"   // it works on the files of its copy, and is watched; a plain command always does
)

var (
	executionModes = []string{string(Deterministic), string(Interactive)}
	strategies     = []string{"direct_worktree", "shadow_workspace"}
	promotions     = []string{"atomic", "incremental"}
	pauseProtocols = []string{"signal", "message", "none"}
	severities     = []string{string(policy.Info), string(policy.Warning), string(policy.Error), string(policy.Critical)}
)

func (m *ExecutionMode) parse(text string) error { return oneOf(m, text, executionModes) }

func (s *Strategy) parse(text string) error { return oneOf(s, text, strategies) }

func (p *Promotion) parse(text string) error { return oneOf(p, text, promotions) }

func (s *Severity) parse(text string) error { return oneOf(s, text, severities) }

func (p *PauseProtocol) parse(text string) error { return oneOf(p, text, pauseProtocols) }

// Runtime says how agents run.
type Runtime struct {
	ExecutionMode ExecutionMode `json:"execution_mode,omitempty" jsonschema:"How agents that can do both work: deterministic (through the host's tools) or interactive (on the files of a copy, watched); default deterministic. A plain command is always interactive."` // SV-002
}

// Supervision says how a working agent is watched and what is done when it breaks a rule
// (SV-007). A zero or nil means that the file is silent. Of a home's and a repository's the
// stricter holds, key by key.
type Supervision struct {
	Strategy               Strategy        `json:"strategy,omitempty" jsonschema:"What becomes of a tree that breaks a rule: direct_worktree leaves it for the agent to mend, shadow_workspace takes it back to the last valid checkpoint (default direct_worktree; shadow_workspace is stricter)."`
	WatchdogPollIntervalMS int             `json:"watchdog_poll_interval_ms,omitempty" min:"100" max:"60000" jsonschema:"Milliseconds between looks at the workspace (default 2000; less is stricter)."`
	CheckpointIntervalMS   int             `json:"checkpoint_interval_ms,omitempty" min:"5000" max:"3600000" jsonschema:"Milliseconds between checkpoints at the most, while there is something to record (default 30000; less is stricter)."`
	MaxUncommittedChanges  int             `json:"max_uncommitted_changes,omitempty" min:"1" max:"10000" jsonschema:"Changed paths since the last checkpoint that make one due (default 50; less is stricter)."`
	ValidationOnCheckpoint *bool           `json:"validation_on_checkpoint,omitempty" jsonschema:"Whether checkpoints before the last one are judged; one that is not is skipped, never valid (default true; true is stricter)."`
	RevertOnViolation      *bool           `json:"revert_on_violation,omitempty" jsonschema:"Whether files that break a rule are reverted while the agent works (default false; true is stricter)."`
	ViolationSeverity      Severity        `json:"violation_severity,omitempty" jsonschema:"The least that a violation counts as: info, warning, error or critical (default warning; more is stricter)."`
	PauseResumeProtocol    PauseProtocol   `json:"pause_resume_protocol,omitempty" jsonschema:"What an agent that reads messages hears before it is stopped for a checkpoint: signal and none nothing, message a request to pause, which it has 10 s to answer; it is stopped whatever it says (default signal)."` // SV-046, SV-082
	ShadowWorkspace        ShadowWorkspace `json:"shadow_workspace,omitzero" jsonschema:"The strategy shadow_workspace."`
}

// ShadowWorkspace is how the strategy shadow_workspace works.
type ShadowWorkspace struct {
	Enabled           *bool     `json:"enabled,omitempty" jsonschema:"true selects the strategy shadow_workspace (default false)."`
	PromotionStrategy Promotion `json:"promotion_strategy,omitempty" jsonschema:"What of a tree that breaks a rule is kept: atomic nothing, incremental the files that break none (default atomic, which is stricter)."`
	CleanupOnFailure  *bool     `json:"cleanup_on_failure,omitempty" jsonschema:"Whether the tree of an agent that failed is removed; its checkpoints stay (default true, which is stricter)."`
	MaxShadowSizeMB   int       `json:"max_shadow_size_mb,omitempty" min:"1" max:"1048576" jsonschema:"What a workspace may grow by, in MB of 1048576 bytes (default 2048; less is stricter)."` // SV-033
}

// Shadowed reports whether s asks for the strategy shadow_workspace, in either way.
func (s Supervision) Shadowed() bool {
	return s.Strategy == "shadow_workspace" || s.ShadowWorkspace.Enabled != nil && *s.ShadowWorkspace.Enabled
}
