package accept

import (
	"context"

	"sallyport/internal/base/audit"
	"sallyport/internal/base/git"
	"sallyport/internal/drive/grounds"
	"sallyport/internal/drive/ledger"
	"sallyport/internal/path/change"
	"sallyport/internal/path/request"
	"sallyport/internal/store"
)

// Examined is a repository in which changes can be made.
type Examined struct {
	Top      string
	Branch   string
	Converts []string // what in it makes git convert files: a change to one of those is refused
	Ignored  []string // what the repository says that does not count, and how it would
}

// Examine looks at the repository that a folder lies in as a request there would, and writes nothing. Errors: what a request
// is refused with because of the repository.
func (rs *Requests) Examine(ctx context.Context, folder string) (Examined, error) {
	r := request.Request{Kind: request.Edit, Project: git.Project{Top: folder}}
	if err := rs.locate(ctx, &r); err != nil {
		return Examined{}, err
	}
	if err := r.Project.Plain(); err != nil {
		return Examined{}, err
	}
	converts, err := rs.Opener.Grounds.Fit(ctx, change.Row{Request: r}, r.Head)
	if err != nil {
		return Examined{}, err
	}
	judging, err := rs.Opener.Grounds.At(ctx, r.Project, r.Project.Common(rs.Ops), r.Head)
	if err != nil {
		return Examined{}, err
	}

	x := Examined{Top: r.Project.Top, Branch: r.Branch, Converts: converts}
	if judging.SecretNote != "" {
		x.Ignored = append(x.Ignored, judging.SecretNote)
	}
	_, unproven, err := rs.Targets.Of(ctx, r.Project.Common(rs.Ops), r.Project, r.Head)
	if unproven != "" {
		x.Ignored = append(x.Ignored, unproven)
	}
	return x, err
}

// ExamineBase looks at the base as a whole before anything is kept or copied: what cannot
// be worked on is refused by name (a partial clone, one that is too large).
func (rs *Requests) ExamineBase(ctx context.Context, row change.Row) error {
	if row.Request.Worked() {
		if _, err := rs.Opener.Grounds.Fit(ctx, row, row.Request.Head); err != nil {
			return err
		}
	}
	_, err := rs.InTx(ctx, row, func(tx store.Tx, row *change.Row) error {
		return rs.Move(ctx, tx, row, ledger.Move{Event: change.Accepted, By: audit.Host})
	})
	return err
}

// fits looks at the base as a whole, and at the rules in it. It reads the person's repository, and writes nothing.
func (rs *Requests) fits(ctx context.Context, r request.Request) (grounds.Judging, error) {
	if err := r.Project.Plain(); err != nil {
		return grounds.Judging{}, err
	}
	theirs := r.Project.Common(rs.Ops)
	if _, err := rs.Opener.Grounds.Fit(ctx, change.Row{Request: r}, r.Head); err != nil {
		return grounds.Judging{}, err
	}
	return rs.Opener.Grounds.At(ctx, r.Project, theirs, r.Head)
}
