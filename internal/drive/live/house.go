package live

import (
	"context"
	"slices"

	"sallyport/internal/base/problem"
	"sallyport/internal/path/session"
	"sallyport/internal/port/sandbox"
)

// House is what a home lets every sandbox see and use.
type House struct {
	Home     string // that no sandbox may see
	Limits   sandbox.Limits
	Shares   []string
	Profiles []string
}

// Environment is a sandbox with what the programs of a subject may see, and no tree or program yet; caches says that there is a folder
// for them.
func (h House) Environment(ctx context.Context, s Subject, way Way, caches bool) (sandbox.Spec, error) {
	shown := h.Surroundings(s, way, caches)
	for _, share := range shown.Shares {
		if sandbox.Below(share, h.Home) || sandbox.Below(h.Home, share) {
			return sandbox.Spec{}, problem.Errorf(problem.Refused, "sallyport run --help", "--share %q would show the agent sallyport's own home %s", share, h.Home)
		}
	}
	return session.Environment(ctx, shown)
}

// Surroundings are what the programs of a subject may see.
func (h House) Surroundings(s Subject, way Way, caches bool) session.Surroundings {
	limits := h.Limits
	limits.DiskBytes = s.DiskBytes
	if s.Timeout > 0 {
		limits.Timeout = s.Timeout
	}
	return session.Surroundings{
		Owner: s.Owner, Limits: limits,
		Path: s.Path, Home: s.Home, Top: s.Top,
		Shares:   slices.Concat(h.Shares, s.Shares),
		Profiles: slices.Concat(h.Profiles, s.Profiles),
		Way:      way, Caches: caches, SetUp: s.SetUp,
	}
}

// Toolchains tells one set of tools that a subject's programs may see from another; "" if there is none.
func (h House) Toolchains(s Subject) string { return h.Surroundings(s, Way{}, false).Toolchains() }
