package policy

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"sallyport/internal/base/git"
	"sallyport/internal/base/inert"
)

// Validate returns every violation of every changed path, ordered by file, constraint
// and message; none means that the change may be proposed. The order of the changes
// does not matter.
func Validate(in Input) []Violation {
	v := newValidator(in)
	for _, c := range v.changes {
		v.name(c)
		v.area(c)
		v.entry(c)
		v.parents(c)
	}
	v.collisions()
	v.sizes()
	v.secrets()
	return v.verdict()
}

// validator is one verdict in the making.
type validator struct {
	in      Input
	rules   Rules
	changes []Change          // by path
	at      map[string]Change // the same by path

	allowed, executable  []globs // a path must be in every one
	forbidden, protected globs
	planAllow            globs
	planForbid           globs

	blocked map[string]string // constraint of a folder that nothing may be below; "" = none
	based   map[string]bool   // whether the base has a path
	found   []Violation
}

func newValidator(in Input) *validator {
	v := &validator{in: in, rules: in.Rules.filled(), blocked: map[string]string{}, based: map[string]bool{}}
	v.changes = slices.Clone(in.Changes)
	slices.SortStableFunc(v.changes, func(a, b Change) int { return strings.Compare(a.Path, b.Path) })
	v.at = make(map[string]Change, len(v.changes))
	for _, c := range v.changes {
		if _, ok := v.at[c.Path]; ok {
			v.add(c.Path, Duplicate, Error, "it is in the change twice", "take a new checkpoint")
		}
		v.at[c.Path] = c
	}
	if in.Base == nil || in.Names == nil {
		v.add("", Rule, Critical, "the host could not read the base to compare with it", "sallyport doctor")
		v.in.Base = func(string) (git.Entry, bool) { return git.Entry{}, false }
		v.in.Names = func(string) []string { return nil }
	}
	for _, list := range lists(v.rules.AllowedAreas, v.rules.AllowedAlso) {
		v.allowed = append(v.allowed, v.globs("allowed_areas", list))
	}
	switch v.rules.Executables {
	case Review:
	case Refuse:
		for _, list := range append([][]string{v.rules.AllowExecutable}, v.rules.AllowExecutableAlso...) {
			v.executable = append(v.executable, v.globs("allow_executable", list))
		}
	default:
		v.add("", Rule, Error, fmt.Sprintf("executables: is %q, and must be review or refuse", v.rules.Executables), "write review or refuse in policy.yaml")
	}
	v.forbidden = v.globs("forbidden_areas", v.rules.ForbiddenAreas)
	v.protected = v.globs("protected_areas", v.rules.ProtectedAreas)
	v.planAllow = v.globs("--allow", in.Plan.Allow)
	v.planForbid = v.globs("--forbid", in.Plan.Forbid)
	return v
}

// globs compiles a list; a glob that cannot be used is a violation of the change as a
// whole, since what it would have forbidden is not known.
func (v *validator) globs(list string, patterns []string) globs {
	var gs globs
	for _, p := range patterns {
		g, err := compile(p)
		if err != nil {
			v.add("", Rule, Error, list+": "+err.Error(), "correct the glob")
			continue
		}
		gs = append(gs, g)
	}
	return gs
}

// add notes a violation. Message and suggestion are made inert here, once.
func (v *validator) add(file, constraint string, severity Severity, message, suggestion string) {
	if !utf8.ValidString(file) {
		file = inert.Line(file) // it could not be written down otherwise
	}
	v.found = append(v.found, Violation{
		File: file, Constraint: constraint, Severity: severity,
		Message: inert.Line(message), Suggestion: inert.Line(suggestion),
	})
}

func (v *validator) verdict() []Violation {
	slices.SortFunc(v.found, func(a, b Violation) int {
		return cmp.Or(
			strings.Compare(a.File, b.File), strings.Compare(a.Constraint, b.Constraint),
			strings.Compare(a.Message, b.Message), strings.Compare(a.Suggestion, b.Suggestion))
	})
	return slices.Compact(v.found)
}

// undo says how to be rid of a change to one path.
func undo(c Change) string {
	switch {
	case c.Old.Absent():
		return "remove it"
	case c.gone():
		return "put it back as it is in the base"
	}
	return "leave it as it is in the base"
}

// area judges a path by where it lies: policy first, then the plan of this one change.
func (v *validator) area(c Change) {
	if c.same() {
		return
	}
	for _, list := range v.allowed {
		if !list.allow(c.Path) {
			v.add(c.Path, AllowedArea, Error, "it is outside the allowed areas of the policy", undo(c)+
				", or widen allowed_areas where they are set, in policy.yaml or .sallyport.yaml")
			break
		}
	}
	if g, ok := v.forbidden.forbid(c.Path); ok {
		v.add(c.Path, ForbiddenArea, Error, fmt.Sprintf("the policy forbids %q", g), undo(c))
	}
	if g, ok := v.protected.forbid(c.Path); ok {
		v.add(c.Path, ProtectedArea, Critical, fmt.Sprintf("%q is protected: no agent's change lands there", g), undo(c))
	}
	if len(v.in.Plan.Allow) > 0 && !v.planAllow.allow(c.Path) {
		v.add(c.Path, PlanAllow, Error, "it is outside what this change may touch", undo(c)+", or start the change again with an --allow that names it")
	}
	if g, ok := v.planForbid.forbid(c.Path); ok {
		v.add(c.Path, PlanForbid, Error, fmt.Sprintf("this change may not touch %q", g), undo(c))
	}
}

// sizes judges the change as a whole and each file of it. What was changed counts
// whole: how much of it grew is the agent's arithmetic.
func (v *validator) sizes() {
	total := int64(0)
	over := false
	changed := 0
	for _, c := range v.changes {
		if c.same() {
			continue
		}
		changed++
		size := c.Fact.Size
		if c.New.Absent() {
			continue
		}
		if size < 0 {
			v.add(c.Path, Unreadable, Error, "its size is not known", undo(c))
			continue
		}
		if size > v.rules.FileBytesMax {
			v.add(c.Path, FileBytes, Error, fmt.Sprintf("it has %d bytes; one file may have %d (file_bytes_max)", size,
				v.rules.FileBytesMax), undo(c)+", or make it smaller")
		}
		if total+size < total {
			over = true
			continue
		}
		total += size
	}
	if over || total > v.rules.ChangeBytesMax {
		v.add("", ChangeBytes, Critical, fmt.Sprintf("added and changed files have %d bytes together; a change may have %d (change_bytes_max)", total, v.rules.ChangeBytesMax), "remove what is not needed")
	}
	if changed > v.rules.PathsMax {
		v.add("", Paths, Error, fmt.Sprintf("%d paths changed; a change may have %d (paths_max)", changed, v.rules.PathsMax), "split the change")
	}
}
