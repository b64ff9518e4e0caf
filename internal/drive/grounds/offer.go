package grounds

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"sallyport/internal/base/git"
	"sallyport/internal/base/inert"
	"sallyport/internal/base/problem"
	"sallyport/internal/path/change"
	"sallyport/internal/path/checkpoint"
	"sallyport/internal/path/proposal"
	"sallyport/internal/path/request"
	"sallyport/internal/rule/policy"
	"sallyport/internal/rule/right"
)

// Offer is a tree that a person is to be asked about.
type Offer struct {
	Host      git.Dir
	Base      git.OID // commit the edits are against
	Commit    git.OID // the proposed tree upon the base, as one commit
	Tree      git.OID
	Edits     []git.Edit
	From      *checkpoint.Checkpoint // nil for a revert
	Judging   Judging
	Policy    string // digest
	Marks     []policy.Mark
	Breaks    []policy.Violation // of the rules in Judging, which may be stricter than those of its checkpoint
	Note      string
	LastWord  string
	Class     string         // of a swap
	Typed     string         // words that a yes to it is typed with; "" = none
	Think     time.Duration  // from when it is asked until a yes to it counts
	People    int            // how many have to approve it; 0 = one
	Banner    []string       // that its card begins with
	Rehearsed *proposal.Host // how the host was rehearsed with it; nil = it was not, or it is no change of the host
	Reach     []string       // what it gains and loses beside what its paths say
}

// ForHost reports whether more changes than what one group runs.
func (o Offer) ForHost() bool {
	return o.Class == string(right.Host) || o.Class == string(right.Combined)
}

// Refused returns why nobody is asked about what an offer holds, if a rule or the home's policy says so. What goes back was there before.
func (o Offer) Refused(row change.Row) error {
	if len(o.Breaks) > 0 {
		return Refusal(row, o.Breaks)
	}
	if len(o.Marks) == 0 || o.Judging.Rules.Marks != policy.MarksRefuse || row.Request.Kind == request.Revert {
		return nil
	}
	return problem.Errorf(problem.Refused, "sallyport change show "+string(row.ID), "%s: %s; the home's policy.yaml refuses such a change (marks: refuse)",
		inert.Path(o.Marks[0].Path), o.Marks[0].Says)
}

// Noted is what a card notes of an offer.
func (o Offer) Noted() string {
	notes := slices.DeleteFunc([]string{o.Note, o.Judging.SecretNote}, func(s string) bool { return s == "" })
	return strings.Join(notes, "; ")
}

// Refusal says which rules a checkpoint breaks: the first by name, and how many more.
func Refusal(row change.Row, violations []policy.Violation) error {
	next := "sallyport checkpoint list " + string(row.ID)
	if row.Request.Drafted() { // it has none
		next = "sallyport change diff " + string(row.ID)
	}
	if len(violations) == 0 {
		return problem.Errorf(problem.Refused, next, "the last checkpoint is not valid")
	}
	if slices.IndexFunc(violations, func(v policy.Violation) bool { return v.Constraint != policy.Converted }) < 0 {
		next = ByOwnGit(row) // their git can convert it
	}
	v := violations[0]
	file := fmt.Sprintf("%q", v.File)
	if v.File == "" {
		file = "the change as a whole"
	}
	more := ""
	if n := len(violations) - 1; n > 0 {
		more = fmt.Sprintf(" (and %d more)", n)
	}
	return problem.Errorf(problem.Refused, next, "%s breaks the rule %s: %s%s", file, v.Constraint, v.Message, more)
}

// ByOwnGit is the command that has a person's own git take over what a change did, also one that has nothing to approve.
func ByOwnGit(row change.Row) string {
	return "sallyport change export " + string(row.ID) + " | " + git.Dir{Path: row.Request.Project.Top}.Command("apply --index")
}
