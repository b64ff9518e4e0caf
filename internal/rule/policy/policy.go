// Package policy is the one validator: changed paths and facts in, violations out.
//
// It is pure. The same function judges patches, checkpoints and landings, over
// every path, every time (SV-074, SV-901); what it cannot decide it refuses.
// A rename is a deletion and an addition, so both of its sides are judged (SV-071).
//
// # Violations and reach
//
// Landing needs zero violations, whatever their severity (SV-902). What only
// wants a person's eye can therefore not be a violation: it is a line of reach
// (function Reach) on the card that the person approves. A new executable is
// the case in point (SV-067, "a warning and needs review"): by default it is
// reach; a policy that says `executables: refuse` makes it a violation of
// severity warning, except where allow_executable names it. The same holds for
// changes to rules, agent instructions, CI, manifests, hooks, builds and
// migrations: always shown, and refused only where an area forbids them.
// Changes to rules are judged by the rules in force before them (SM-919),
// which is the caller's to hand in.
//
// # Globs
//
// A glob is matched against the whole path from the top, as doublestar does: `*`
// and `?` stay within a folder, `**` as a whole component crosses folders, [a-z]
// and {a,b} are as in a shell, a backslash takes the next character literally.
// A glob whose last component is plain names a file, or a folder with all
// that is below: `docs` and `**/testdata` do, `docs/*` names direct children
// only. `.` is everything. A leading ./ and a trailing / mean nothing more.
// There is no negation. In doubt the stricter wins: what forbids or protects a
// folder does so for all below it, also by a pattern (`docs/*` forbids
// docs/a/b), and backslashes in names count as separators too (SM-074): an
// allowance must match both readings, a prohibition either.
//
// # Names
//
// Names are compared as bytes, and for collisions by Unicode's simple case
// folding; composed and decomposed forms are not folded together.
package policy

import "sallyport/internal/base/git"

// Severity says how loud a violation is; at landing every violation refuses (SV-902).
type Severity string

const (
	Info     Severity = "info"
	Warning  Severity = "warning"
	Error    Severity = "error"
	Critical Severity = "critical"
)

// severities in rising order.
var severities = []Severity{Info, Warning, Error, Critical}

// Worst returns the loudest severity of vs; "" for none.
func Worst(vs []Violation) Severity {
	worst, rank := Severity(""), -1
	for _, v := range vs {
		r := len(severities) // an unknown one is the worst there is
		for i, s := range severities {
			if v.Severity == s {
				r = i
			}
		}
		if r > rank {
			worst, rank = v.Severity, r
		}
	}
	return worst
}

// AtLeast returns s, or floor if that is louder; an unknown s is the loudest there is.
func AtLeast(s, floor Severity) Severity {
	if Worst([]Violation{{Severity: s}, {Severity: floor}}) == floor && floor != "" {
		return floor
	}
	return s
}

// Constraints: the stable names of the rules.
const (
	Name            = "name"             // empty, absolute, "..", not UTF-8, control or format characters, too long
	GitDir          = "git_dir"          // .git in any spelling, at any depth (SV-064)
	CaseCollision   = "case_collision"   // differs from a sibling by case alone
	Duplicate       = "duplicate"        // one path twice in a change
	PathConflict    = "path_conflict"    // something below a file
	AllowedArea     = "allowed_area"     // outside allowed_areas
	ForbiddenArea   = "forbidden_area"   // in forbidden_areas
	ProtectedArea   = "protected_area"   // in protected_areas
	PlanAllow       = "plan_allow"       // outside what the plan allows
	PlanForbid      = "plan_forbid"      // in what the plan forbids
	Symlink         = "symlink"          // a new or changed symbolic link (SV-065)
	SymlinkedParent = "symlinked_parent" // a path that leads through a symbolic link
	HardLink        = "hard_link"        // a file with more than one name
	SpecialFile     = "special_file"     // fifo, socket, device
	SetID           = "setid"            // setuid or setgid
	NewExecutable   = "executable"       // a new executable where policy refuses them (SV-067)
	ModeChange      = "mode"             // a mode git does not know
	SubmoduleChange = "submodule"        // a submodule entry added, moved or removed, or a path inside one
	Converted       = "converted"        // git converts it between its store and the checkout, or would no longer
	Unreadable      = "unreadable"       // could not be read, so could not be judged
	FileBytes       = "file_bytes"       // larger than file_bytes_max
	ChangeBytes     = "change_bytes"     // more than change_bytes_max in all (SV-066)
	Paths           = "paths"            // more than paths_max
	Rule            = "rule"             // a rule that cannot be applied: nothing passes
	RulesLoad       = "rules_load"       // a file that rules are read from, which could not be read from once it has landed
)

// Violation names one path, the rule it breaks and what to do about it.
type Violation struct {
	File       string   `json:"file"`       // as stored, escape it when showing; "" = the change as a whole; not UTF-8: with \xNN
	Constraint string   `json:"constraint"` // stable name of the rule: forbidden_area, symlink, executable …
	Message    string   `json:"message"`    // inert
	Suggestion string   `json:"suggestion"` // inert
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

// gone reports whether nothing is left at the path.
func (c Change) gone() bool {
	return c.New.Absent() && c.Fact.Special == "" && c.Fact.Unreadable == ""
}

// same reports whether the tree is the same on both sides: touched, not changed.
func (c Change) same() bool {
	return c.Old == c.New && !c.New.Absent() && c.Fact.Special == "" && c.Fact.Unreadable == ""
}

// Plan is what this one change may touch; empty Allow allows everything.
type Plan struct {
	Allow  []string `json:"allow,omitempty"`  // globs
	Forbid []string `json:"forbid,omitempty"` // globs
}

// Executables says what becomes of a new executable.
type Executables string

const (
	Review Executables = "review" // it is shown on the card (default)
	Refuse Executables = "refuse" // it is a violation, unless AllowExecutable names it
)

// Marks says what becomes of a change that holds what a tool runs by itself.
type Marks string

const (
	MarksAsk    Marks = "ask"    // whoever approves it says so with a word of its own (default)
	MarksRefuse Marks = "refuse" // nobody is asked: it ends
	MarksShow   Marks = "show"   // it is shown on the card, and a plain yes is enough
)

// Rules is a policy: the home's policy.yaml, or that and the repository's
// .sallyport.yaml, the stricter of both (Merge). A size of zero means its default.
type Rules struct {
	AllowedAreas        []string    // globs; empty = everything
	AllowedAlso         [][]string  // further lists, made by Merge: a path must be in every one
	ForbiddenAreas      []string    // globs
	ProtectedAreas      []string    // globs; nothing lands there by an agent
	AllowSymlinks       bool        // relative links that stay inside (SV-065)
	Executables         Executables // "" = Review
	AllowExecutable     []string    // globs where a new executable is no violation
	AllowExecutableAlso [][]string  // further lists, made by Merge: a path must be in every one
	FileBytesMax        int64       // one file
	ChangeBytesMax      int64       // all bytes of added and changed files (SV-066)
	PathsMax            int         // changed paths of one change
	AllowSecretPaths    []string    // globs where a path that holds secrets by custom is no violation; the home's alone
	AllowSecrets        []string    // globs where what looks like a secret is none, each perhaps with @ and the blob it holds for; the home's alone
	TrustSecretRules    []string    // digests of repositories' secret rules that may loosen the built-in ones; the home's alone
	Marks               Marks       // "" = MarksAsk; the home's alone
}

// Input is everything a verdict depends on.
type Input struct {
	Changes []Change
	Plan    Plan
	Rules   Rules
	// Base returns what the base holds at a path, folders included; false if nothing is there.
	Base func(path string) (git.Entry, bool)
	// Names returns the names in a folder of the base ("" = top); none if it is not a folder.
	// It is asked for case collisions and symlinked parents.
	Names func(folder string) []string
	// Secrets is what the scan of every changed path found; a path that was not scanned is in it with the reason.
	Secrets []Secret
}
