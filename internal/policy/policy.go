// Package policy is the one validator: changed paths and facts in, violations out.
//
// It is pure. The same function judges patches, checkpoints and landings, over
// every path, every time (SV-074, SV-901); what it cannot decide it refuses.
package policy

import "sallyport/internal/git"

// Severity says how loud a violation is; at landing every violation refuses (SV-902).
type Severity string

const (
	Info     Severity = "info"
	Warning  Severity = "warning"
	Error    Severity = "error"
	Critical Severity = "critical"
)

// Violation names one path, the rule it breaks and what to do about it.
type Violation struct {
	File       string   `json:"file"`       // as stored; escape it when showing
	Constraint string   `json:"constraint"` // stable name of the rule: forbidden_area, symlink, executable …
	Message    string   `json:"message"`
	Suggestion string   `json:"suggestion"`
	Severity   Severity `json:"severity"`
}

// Fact is what the walk saw of a path that a tree entry cannot say.
type Fact struct {
	Size       int64  // bytes of a regular file
	Special    string // fifo, socket, device …: cannot be in a tree
	HardLinks  int    // number of names, 1 for an ordinary file
	LinkTarget string // of a symlink
	Unreadable string // why it could not be read; "" if it was
	SetID      bool   // setuid, setgid
}

// Change is one changed path with both sides.
type Change struct {
	git.Edit
	Fact Fact
}

// Plan is what this one change may touch; empty Allow allows everything.
type Plan struct {
	Allow  []string `json:"allow,omitempty"`  // doublestar globs
	Forbid []string `json:"forbid,omitempty"` // doublestar globs
}

// Rules is a policy: the home's policy.yaml and the repository's .sallyport.yaml, the stricter of both.
type Rules struct {
	AllowedAreas    []string `json:"allowed_areas,omitempty" yaml:"allowed_areas"`       // globs; empty = everything
	ForbiddenAreas  []string `json:"forbidden_areas,omitempty" yaml:"forbidden_areas"`   // globs
	ProtectedAreas  []string `json:"protected_areas,omitempty" yaml:"protected_areas"`   // globs; nothing lands there by an agent
	AllowSymlinks   bool     `json:"allow_symlinks" yaml:"allow_symlinks"`               // relative links that stay inside (SV-065)
	AllowExecutable []string `json:"allow_executable,omitempty" yaml:"allow_executable"` // globs where a new executable is no violation
	FileBytesMax    int64    `json:"file_bytes_max" yaml:"file_bytes_max"`               // one file
	ChangeBytesMax  int64    `json:"change_bytes_max" yaml:"change_bytes_max"`           // all added or grown bytes (SV-066)
	PathsMax        int      `json:"paths_max" yaml:"paths_max"`                         // changed paths of one change
}

// Input is everything a verdict depends on.
type Input struct {
	Changes []Change
	Plan    Plan
	Rules   Rules
	// Names returns the names in a folder of the base ("" = top), for case collisions and symlinked parents.
	Base  func(path string) (git.Entry, bool)
	Names func(folder string) []string
}
