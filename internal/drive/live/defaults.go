package live

import (
	"context"
	"slices"

	"sallyport/internal/base/problem"
	"sallyport/internal/path/session"
	"sallyport/internal/port/sandbox"
)

// Defaults is what a home lets every sandbox see and use.
type Defaults struct {
	Home     string // that no sandbox may see
	Limits   sandbox.Limits
	Shares   []string
	Profiles []string
	Image    string // the root file system that the home's own sandboxes start from (sandbox.Spec.Image); "" = the machine's
}

// ImageFor is the image that the sandboxes of a subject start from: the home's, for what works for a group or on the home's own repository.
// Other repositories know nothing of it, and neither do builds and rehearsals of the host.
func (d Defaults) ImageFor(s Subject) string {
	if s.Group == "" && (s.Top == "" || s.Top != d.Home) {
		return ""
	}
	return d.Image
}

// Environment is a sandbox with what the programs of a subject may see, and no tree or program yet; caches says that there is a folder
// for them.
func (d Defaults) Environment(ctx context.Context, s Subject, way Way, caches bool) (sandbox.Spec, error) {
	return d.show(ctx, d.Surroundings(s, way, caches))
}

func (d Defaults) show(ctx context.Context, shown session.Surroundings) (sandbox.Spec, error) {
	for _, share := range shown.Shares {
		if sandbox.Below(share, d.Home) || sandbox.Below(d.Home, share) {
			return sandbox.Spec{}, problem.Errorf(problem.Refused, "sallyport run --help",
				"--share %q would show the agent sallyport's own home %s", share, d.Home)
		}
	}
	return session.Environment(ctx, shown)
}

// Surroundings are what the programs of a subject may see.
func (d Defaults) Surroundings(s Subject, way Way, caches bool) session.Surroundings {
	limits := d.Limits
	limits.DiskBytes = s.DiskBytes
	if s.Timeout > 0 {
		limits.Timeout = s.Timeout
	}
	return session.Surroundings{
		Owner: s.Owner, Limits: limits,
		Path: s.Path, Home: s.Home, Top: s.Top,
		Shares:   slices.Concat(d.Shares, s.Shares),
		Profiles: slices.Concat(d.Profiles, s.Profiles),
		Way:      way, Caches: caches, SetUp: s.SetUp, Image: d.ImageFor(s),
	}
}

// Toolchains tells one set of tools that a subject's programs may see from another; "" if there is none.
func (d Defaults) Toolchains(s Subject) string { return d.Surroundings(s, Way{}, false).Toolchains() }
