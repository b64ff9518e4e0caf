package secret

import (
	"cmp"
	"fmt"
	"slices"

	"sallyport/internal/base/problem"
)

// Severity of a finding; the words are those of a policy's violations.
type Severity string

const (
	Error    Severity = "error"    // likely a secret: a general pattern
	Critical Severity = "critical" // the form of a known kind of secret
)

// Finding says where a secret stands and what kind it is, and nothing of the secret itself (CW-024).
type Finding struct {
	Rule     string   `json:"rule"`     // the kind, as `aws-access-key`
	File     string   `json:"file"`     // the path; `outer!inner` inside an archive. A secret in the path itself is blotted out
	Line     int      `json:"line"`     // from 1; 0: the path itself, or the file as a whole
	Severity Severity `json:"severity"` // Critical or Error
}

func (f Finding) String() string {
	return fmt.Sprintf("%s in %q, line %d (%s)", f.Rule, f.File, f.Line, f.Severity)
}

// ErrNotScanned is wrapped by every error of a scan: what could not be scanned is not clean.
var ErrNotScanned = problem.New(problem.Refused, "not scanned for secrets")

// NotScanned names one file that could not be scanned, and why.
type NotScanned struct {
	File   string // as in Finding
	Reason string // one clause, no secret
	cause  error
}

func (n *NotScanned) Error() string {
	return fmt.Sprintf("%q is %s: %s", n.File, ErrNotScanned.Text, n.Reason)
}

// Unwrap gives ErrNotScanned and, if there is one, the cause.
func (n *NotScanned) Unwrap() []error {
	if n.cause == nil {
		return []error{ErrNotScanned}
	}
	return []error{ErrNotScanned, n.cause}
}

// tidy sorts findings and drops what is said twice.
func tidy(fs []Finding) []Finding {
	slices.SortFunc(fs, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Rule, b.Rule))
	})
	return slices.Compact(fs)
}
