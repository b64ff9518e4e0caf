package checkpoint

import (
	"fmt"

	"sallyport/internal/rule/policy"
)

// What a record names one by one. A session may have thousands of checkpoints, each is read whole with all
// of its change, and how many paths differ is the agent's to choose; the tree has them all.
const (
	filesNamed      = 1000
	filesNamedBytes = 64 << 10
	foldersNamed    = 200
	violationsNamed = 1000
)

// bound leaves out what a record need not name, and says how much that is.
func (c *Checkpoint) bound() {
	c.FilesTotal = len(c.FilesChanged)
	size := 0
	for i, name := range c.FilesChanged {
		if size += len(name); i == filesNamed || size > filesNamedBytes {
			c.FilesChanged = c.FilesChanged[:i:i]
			break
		}
	}
	if over := len(c.LeftOver) - foldersNamed; over > 0 {
		rest := c.LeftOver[foldersNamed:]
		c.LeftOver = c.LeftOver[: foldersNamed+1 : foldersNamed+1]
		last := &c.LeftOver[foldersNamed]
		for _, l := range rest[1:] {
			last.Files += l.Files
			last.Bytes += l.Bytes
		}
		last.Folder = fmt.Sprintf("%d more folders", over)
	}
	if len(c.Violations) > violationsNamed {
		c.Violations = shortened(c.Violations)
	}
}

// shortened keeps the first of each rule, whatever its place, and of the others the first ones, in order.
func shortened(all []policy.Violation) []policy.Violation {
	seen, keep := map[string]bool{}, make([]bool, len(all))
	left := violationsNamed
	for i, v := range all {
		if !seen[v.Constraint] {
			seen[v.Constraint], keep[i] = true, true
			left--
		}
	}
	var out []policy.Violation
	for i, v := range all {
		if !keep[i] && left <= 0 {
			continue
		}
		if !keep[i] {
			left--
		}
		out = append(out, v)
	}
	return append(out, policy.Violation{
		Constraint: policy.Rule, Severity: policy.Worst(all),
		Message: fmt.Sprintf("%d more violations are not listed", len(all)-len(out)), Suggestion: "correct the listed ones first",
	})
}

// Total is how many paths differ from the base, named or not.
func (c Checkpoint) Total() int { return max(c.FilesTotal, len(c.FilesChanged)) }
