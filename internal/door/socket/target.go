package socket

import (
	"context"
	"time"

	"sallyport/internal/base/audit"
	"sallyport/internal/door/api"
	"sallyport/internal/rule/trust"
)

// Targets shows what restarts and probes a repository's code, and takes the owner's word on what a repository proposes;
// it checks who asks.
type Targets interface {
	// Target returns what is said of the repository that a folder lies in.
	Target(ctx context.Context, folder string) (trust.Words, error)
	// Trust lets what is proposed count if digest, or 12 or more of its first digits, names exactly these words.
	Trust(ctx context.Context, folder, digest string, by audit.Actor) (trust.Words, error)
	Distrust(ctx context.Context, folder string, by audit.Actor) error
}

// targets answers what restarts and probes a repository's code.
type targets struct{ part Targets }

func (n targets) show(ctx context.Context, _ audit.Actor, in api.InRepo) (out api.Target, err error) {
	folder, err := folderOf(in.Repo, targetHelp)
	if err != nil {
		return out, err
	}
	w, err := n.part.Target(ctx, folder)
	return targetOf(w), err
}

func (n targets) trust(ctx context.Context, by audit.Actor, in api.TrustTarget) (out api.Target, err error) {
	folder, err := folderOf(in.Repo, targetHelp)
	if err != nil {
		return out, err
	}
	w, err := n.part.Trust(ctx, folder, in.Digest, by)
	return targetOf(w), err
}

func (n targets) distrust(ctx context.Context, by audit.Actor, in api.InRepo) (out api.Nothing, err error) {
	folder, err := folderOf(in.Repo, targetHelp)
	if err != nil {
		return out, err
	}
	return out, n.part.Distrust(ctx, folder, by)
}

const targetHelp = "sallyport target show --help"

func targetOf(w trust.Words) api.Target {
	out := api.Target{Repo: text(w.Repository), Commit: w.Commit, Home: wordsOf(w.Home), Proposed: wordsOf(w.Proposed), Trusted: w.Trusted()}
	switch {
	case w.Home != nil:
		out.Counts = api.CountsHome
	case out.Trusted:
		out.Counts = api.CountsRepository
	}
	if w.Trust != nil {
		out.Trust = &api.Trust{Digest: w.Trust.Digest, By: api.Actor{Kind: "person", Name: text(w.Trust.By), UID: w.Trust.UID}, At: w.Trust.At}
	}
	return out
}

func wordsOf(t *trust.Target) *api.TargetWords {
	if t == nil {
		return nil
	}
	out := &api.TargetWords{Digest: t.Digest(), Restart: text(t.Restart), TrialMS: t.Trial.Milliseconds()}
	number := func(key string, said, filled time.Duration) int64 {
		if said == 0 {
			out.Defaults = append(out.Defaults, key)
		}
		return filled.Milliseconds()
	}
	full := t.Filled()
	if t.Restart != "" {
		out.RestartWithinMS = number("restart_within", t.Within, full.Within)
	}
	if p, f := t.Probe, full.Probe; !p.None() {
		out.Probe = &api.ProbeWords{
			Command: text(p.Command), HTTP: text(p.HTTP),
			HealthyMS: number("probe.healthy", p.Healthy, f.Healthy), WithinMS: number("probe.within", p.Within, f.Within),
			EveryMS: number("probe.every", p.Every, f.Every), TimeoutMS: number("probe.timeout", p.Timeout, f.Timeout),
		}
	}
	return out
}
