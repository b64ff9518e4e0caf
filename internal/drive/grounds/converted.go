package grounds

import (
	"context"

	"sallyport/internal/base/conversion"
	"sallyport/internal/base/git"
	"sallyport/internal/base/problem"
	"sallyport/internal/path/change"
	"sallyport/internal/path/checkpoint"
	"sallyport/internal/path/request"
	"sallyport/internal/rule/policy"
)

// Fit refuses, by name, a commit that cannot be worked on, and returns what converts files there.
func (g Reader) Fit(ctx context.Context, row change.Row, head git.OID) ([]string, error) {
	project := row.Request.Project
	settings, err := conversion.Read(ctx, project, row.Request.ConfigHome())
	if err != nil {
		return nil, err
	}
	converts, err := g.Workspaces.Projects.Fit(ctx, project.Common(g.Ops), project, head)
	if err != nil {
		return nil, err
	}
	return append(settings.Said(), converts...), nil
}

// Dirty names the uncommitted paths of who asks.
func (g Reader) Dirty(ctx context.Context, r request.Request) ([]string, error) {
	converts, err := conversion.Read(ctx, r.Project, r.ConfigHome())
	if err != nil {
		return nil, err
	}
	return g.Workspaces.Projects.Dirty(ctx, r.Project, r.Head, converts)
}

// Loading looks at what an offer upon base would be once it has landed: the rules in it load, and each path that it changes is in a
// checkout what it is in git's store.
func (g Reader) Loading(row change.Row, base git.OID) checkpoint.Loading {
	return func(ctx context.Context, host git.Dir, commit git.OID, edits []git.Edit) ([]policy.Violation, error) {
		violations, err := g.Rules.Load(ctx, row.Request.Project, host, commit, edits)
		if err != nil || len(edits) == 0 {
			return violations, err
		}
		settings, err := conversion.Read(ctx, row.Request.Project, row.Request.ConfigHome())
		var refused []conversion.Refusal
		if err == nil {
			refused, err = settings.Judge(ctx, host, base, edits, conversion.Propose)
		}
		if problem.KindOf(err) == problem.Refused { // what cannot be told is no yes
			refused, err = []conversion.Refusal{{Why: problem.Of(err).Text}}, nil
		}
		for _, r := range refused {
			violations = append(violations, policy.Violation{
				File: r.Path, Constraint: policy.Converted, Severity: policy.Error, Message: r.Why,
				Suggestion: "leave it as it is in the base; a person takes it over with their own git: " + ByOwnGit(row),
			})
		}
		return violations, err
	}
}
