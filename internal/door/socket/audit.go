package socket

import (
	"context"

	"sallyport/internal/base/audit"
	"sallyport/internal/base/id"
	"sallyport/internal/door/api"
)

// Audit is the home's log of who did what.
type Audit interface {
	Audit(ctx context.Context, change id.Change, after int64, limit int) ([]audit.Entry, error)
	// AuditVerify reads the whole audit log and reports what is not as it was written; expected is a mark that somebody kept, or nil.
	AuditVerify(ctx context.Context, expected *audit.Mark) (audit.Report, error)
}

// entries answers from the home's log of who did what.
type entries struct{ part Audit }

func (n entries) list(ctx context.Context, _ audit.Actor, in api.Entries) ([]api.Entry, error) {
	rows, err := n.part.Audit(ctx, id.Change(in.Change), in.After, min(in.Limit, listMax))
	return each(rows, func(e api.Entry) api.Entry { return e }), err
}

func (n entries) verify(ctx context.Context, _ audit.Actor, in api.Expected) (out api.AuditReport, err error) {
	var expected *audit.Mark
	if in.Expect != "" {
		m, err := audit.ParseMark(in.Expect)
		if err != nil {
			return out, err
		}
		expected = &m
	}
	return n.part.AuditVerify(ctx, expected)
}
