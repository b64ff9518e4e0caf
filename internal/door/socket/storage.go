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

func (s *Server) stored(ctx context.Context, _ audit.Actor, _ api.Nothing) (api.Storage, error) {
	report, err := s.Storage.Look(ctx)
	return s.storageOf(report, true), err
}

func (s *Server) gc(ctx context.Context, by audit.Actor, in api.GC) (api.Storage, error) {
	if in.DryRun {
		return s.stored(ctx, by, api.Nothing{})
	}
	report, err := s.Storage.Collect(ctx, by)
	return s.storageOf(report, false), err
}

func (s *Server) storageOf(r storage.Report, dry bool) api.Storage {
	out := api.Storage{Home: s.Home, DryRun: dry, Notes: texts(r.Notes)}
	for _, row := range r.Rows {
		out.Kinds = append(out.Kinds, api.Stored{Kind: string(row.Kind), Keeps: row.Keeps, Count: row.Count, Bytes: row.Bytes, Gone: row.Gone, Freed: row.Freed})
		if row.Kind != storage.Refs { // their bytes are in the repositories
			out.Bytes += row.Bytes
		}
		out.Freed += row.Freed
	}
	return out
}
