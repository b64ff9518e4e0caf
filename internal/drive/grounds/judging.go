// Package grounds reads by what a change is judged: the rules of its home and its repository as they stand at a commit, and what an
// offer is that they judge.
package grounds

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"

	"sallyport/internal/base/git"
	"sallyport/internal/path/request"
	"sallyport/internal/path/session"
	"sallyport/internal/rule/policy"
	"sallyport/internal/rule/right"
	"sallyport/internal/rule/secret"
)

// Rulebook says which rules judge a change: the home's and the repository's as they stand at a commit.
type Rulebook interface {
	// At reads the repository's rules at a commit and joins them with the home's, the stricter of both. An error's next command
	// names the person's own files, in project.
	At(ctx context.Context, project git.Project, host git.Dir, commit git.OID) (Judging, error)
	// Load returns a violation for each file that edits change in a project, that rules are read from, and that could not be read at commit.
	Load(ctx context.Context, project git.Project, host git.Dir, commit git.OID, edits []git.Edit) ([]policy.Violation, error)
	// Approvals are what the home says now of who approves what a group asks for.
	Approvals() right.Rules
	// Decidable returns why nothing is approved and nothing lands now, a config.ErrUnloaded; nil while the home's policy loads. What goes
	// back is never held by it.
	Decidable() error
}

// Judging is what a change is judged by.
type Judging struct {
	Rules          policy.Rules
	Checks         []string // commands of the repository's own that must pass
	Setup          []string // commands of the repository's own that make ready what a build needs
	Profiles       []string
	IncludeIgnored []string
	Secrets        *secret.Scanner     // by the repository's .gitleaks.toml; nil = by the built-in rules
	SecretNote     string              // what of the repository's rules about secrets does not count, and why; "" = all does
	Subject        string              // what the commit's subject is made of: words with {request} in them; "" = the request's first line
	Agent          string              // of run, when nobody names another; "" = none
	Supervision    session.Supervision // the home's and the repository's, the stricter of both; defaults are not filled in
	Approvals      right.Rules         // who approves what a group asks for; the home's alone
}

// Digest names all that judges a change: rules, plan, and the repository's own checks (SM-907).
func (j Judging) Digest(r request.Request) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s\n%q\n%s\n", policy.Digest(j.Rules, Plan(r)), j.Checks, j.secretRules()))
	if len(j.Setup) > 0 {
		sum = sha256.Sum256(fmt.Appendf(sum[:], "%q", j.Setup))
	}
	if r.Kind == request.Swap && j.Approvals != (right.Rules{}) {
		sum = sha256.Sum256(fmt.Appendf(sum[:], "%+v", j.Approvals))
	}
	return hex.EncodeToString(sum[:])
}

// secretRules names what a change is scanned by.
func (j Judging) secretRules() string {
	if j.Secrets == nil {
		return secret.Default().Digest()
	}
	return j.Secrets.Digest()
}

// Plan is what a request said the change may touch.
func Plan(r request.Request) policy.Plan { return policy.Plan{Allow: r.Allow, Forbid: r.Forbid} }

// ChecksOf are the commands that judge a change: the request's and the repository's own. One that both name runs once.
func (j Judging) ChecksOf(r request.Request) []string {
	own := slices.DeleteFunc(slices.Clone(j.Checks), func(check string) bool { return slices.Contains(r.Checks, check) })
	return slices.Concat(r.Checks, own)
}

// SetupsOf are the setup commands of a change, the repository's own first.
func (j Judging) SetupsOf(r request.Request) []string { return slices.Concat(j.Setup, r.Setup) }

// Watch is how a change is watched: as the rules at its base say, but for the strategy that
// the person chose.
func (j Judging) Watch(r request.Request) session.Supervision {
	mode := j.Supervision
	if r.Strategy != "" {
		mode.Strategy = session.Strategy(r.Strategy)
	}
	return mode.Filled()
}
