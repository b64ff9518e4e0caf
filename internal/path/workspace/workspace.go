// Package workspace is an isolated copy-on-write tree on a base revision.
//
// A base layer is made once per tree id and shared; a workspace is an overlay on
// it whose upper directory holds exactly what the agent changed. What changed is
// a walk of that directory, never an event and never the agent's word.
package workspace

import (
	"sallyport/internal/base/disk"
	"sallyport/internal/base/git"
	"sallyport/internal/base/id"
	"sallyport/internal/port/sandbox"
	"sallyport/internal/rule/policy"
)

// Strategy is how a workspace is copied; chosen by a probe, shown by doctor.
type Strategy string

const (
	Overlay Strategy = "overlay" // milliseconds, independent of the size of the tree
	Reflink Strategy = "reflink"
	Copy    Strategy = "copy"
)

// Spec says what to prepare. Preparing twice gives the same workspace; leftovers of a crash are removed first.
type Spec struct {
	Change  id.Change
	Project git.Project
	Base    git.OID // commit; in the host's repository of the project
	Branch  string  // name the agent's own .git shows; "" = a detached head
	Owner   sandbox.Owner

	// Setup names the stock whose files are seen at paths that the base ignores, over its layers; "" = none, or as before. Whoever
	// asks holds it until the workspace is there.
	Setup string

	// IncludeIgnored are globs of files that the base ignores and that are proposed all the same. Only Walk reads it.
	IncludeIgnored []string
}

// Workspace is one prepared tree. It holds no process and no mount; it can be opened again from its spec alone.
type Workspace struct {
	Spec     Spec
	Strategy Strategy
	Tree     sandbox.Tree // how a sandbox shows it

	host   git.Dir  // the host's repository of its project
	layers []string // folders of the base's layers, lowest first, for comparing
	ignore string   // folder of the base's .gitignore files
	path   string   // its own folder

	ops    disk.Ops
	limits Limits
}

// LeftOver counts files that stay out of a change because the base ignores them.
type LeftOver struct {
	Folder string `json:"folder"` // first component of their paths; "." for files at the top
	Files  int    `json:"files"`
	Bytes  int64  `json:"bytes"`
}

// Diff is what a walk found: every path that may differ from the base, and what is left over.
// A file that was touched and is as before may be among the changes: comparing trees tells.
type Diff struct {
	Changes  []Found // in path order
	LeftOver []LeftOver
	Bytes    int64 // of all regular files found, left over or not
}

// Found is one path on the writable side.
type Found struct {
	Path string
	Mode git.Mode // "" = deleted, or cannot be in a tree (then Fact says why)
	Fact policy.Fact
	// At is when the entry last changed in any way, in ns of the kernel's clock; 0 for a deletion
	// that is known only by absence. It tells two walks apart and is never believed otherwise.
	At int64
}

// Deleted reports whether nothing is at the path any more.
func (f Found) Deleted() bool {
	return f.Mode == "" && f.Fact.Special == "" && f.Fact.Unreadable == ""
}
