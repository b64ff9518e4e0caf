package socket

import (
	"context"
	"net/http"

	"sallyport/internal/base/audit"
	"sallyport/internal/base/problem"
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

func (s *Server) stored(r *http.Request) (any, error) {
	if s.Storage == nil {
		return nil, problem.Errorf(problem.Unavailable, "sallyport doctor", "this daemon measures no storage")
	}
	report, err := s.Storage.Look(r.Context())
	if err != nil {
		return nil, err
	}
	return s.storageOf(report, true), nil
}

func (s *Server) gc(r *http.Request) (any, error) {
	var in api.GC
	if err := read(r, &in); err != nil {
		return nil, err
	}
	if in.DryRun {
		return s.stored(r)
	}
	if s.Storage == nil {
		return nil, problem.Errorf(problem.Unavailable, "sallyport doctor", "this daemon removes nothing")
	}
	report, err := s.Storage.Collect(r.Context(), by(r))
	if err != nil {
		return nil, err
	}
	return s.storageOf(report, false), nil
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
