package socket

import (
	"context"

	"sallyport/internal/base/audit"
	"sallyport/internal/door/api"
	"sallyport/internal/host/storage"
)

// Storage looks after what the home has on disk.
type Storage interface {
	// Look reports what there is and what Collect would remove.
	Look(ctx context.Context) (storage.Report, error)
	// Collect removes what need not be kept.
	Collect(ctx context.Context, by audit.Actor) (storage.Report, error)
}

// stored answers what the home has on disk.
type stored struct {
	part Storage
	home string
}

func (n stored) show(ctx context.Context, _ audit.Actor, _ api.Nothing) (api.Storage, error) {
	report, err := n.part.Look(ctx)
	return n.report(report, true), err
}

func (n stored) collect(ctx context.Context, by audit.Actor, in api.GC) (api.Storage, error) {
	if in.DryRun {
		return n.show(ctx, by, api.Nothing{})
	}
	report, err := n.part.Collect(ctx, by)
	return n.report(report, false), err
}

func (n stored) report(r storage.Report, dry bool) api.Storage {
	out := api.Storage{Home: n.home, DryRun: dry, Notes: texts(r.Notes)}
	for _, row := range r.Rows {
		out.Kinds = append(out.Kinds, api.Stored{Kind: string(row.Kind), Keeps: row.Keeps, Count: row.Count, Bytes: row.Bytes,
			Gone: row.Gone, Freed: row.Freed})
		if row.Kind != storage.Refs { // their bytes are in the repositories
			out.Bytes += row.Bytes
		}
		out.Freed += row.Freed
	}
	return out
}
