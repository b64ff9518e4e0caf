package daemon

import (
	"context"
	"fmt"
	"io"
	"time"

	"sallyport/internal/agent"
	"sallyport/internal/change"
	"sallyport/internal/config"
	"sallyport/internal/git"
	"sallyport/internal/policy"
	"sallyport/internal/problem"
	"sallyport/internal/session"
)

// rulebook reads the home's policy and a repository's own rules, each time anew: what
// counts is what stands there now, or at the commit.
type rulebook struct {
	home    string
	secrets *secretRules
}

// At joins the home's rules with the repository's as they stand at a commit, the stricter of both.
func (r rulebook) At(ctx context.Context, host git.Dir, commit git.OID) (change.Judging, error) {
	home, err := config.LoadHome(r.home)
	if err != nil {
		return change.Judging{}, err
	}
	text, err := file(ctx, host, commit, config.RepositoryFile, config.FileBytesMax)
	if err != nil {
		return change.Judging{}, err
	}
	repo, err := config.ParseRepository(host.Command("show "+string(commit)+":"+config.RepositoryFile), text)
	if err != nil {
		return change.Judging{}, err
	}
	scanner, err := r.secrets.at(ctx, host, commit)
	if err != nil {
		return change.Judging{}, err
	}
	checks := config.Strings(repo.Checks)
	if own := home.Sallyport.Secrets.Command; own != "" { // it blocks as any check does that fails or cannot run (CW-025)
		checks = append([]string{string(own)}, checks...)
	}
	return change.Judging{
		Secrets:        scanner,
		Rules:          policy.Merge(home.Rules, repo.Judgement()),
		Checks:         checks,
		Profiles:       config.Strings(repo.Profiles),
		IncludeIgnored: config.Strings(repo.IncludeIgnored),
		Agent:          string(repo.Agent),
		Supervision:    supervision(home.Sallyport.Interactive, repo.Interactive),
	}, nil
}

// supervision joins how a home and a repository want an agent to be watched (SV-007): the home's
// word over the defaults, and the repository's, which strangers write, where it is stricter.
func supervision(home, repo config.Supervision) session.Supervision {
	s := session.Supervision{}.Filled()
	if home.Shadowed() || repo.Shadowed() {
		s.Strategy = session.Shadow
	}
	s.Poll = milliseconds(stricter(s.Poll.Milliseconds(), home.WatchdogPollIntervalMS, repo.WatchdogPollIntervalMS))
	s.Interval = milliseconds(stricter(s.Interval.Milliseconds(), home.CheckpointIntervalMS, repo.CheckpointIntervalMS))
	s.ChangesMax = int(stricter(int64(s.ChangesMax), home.MaxUncommittedChanges, repo.MaxUncommittedChanges))
	s.Unvalidated = !wanted(true, home.ValidationOnCheckpoint, repo.ValidationOnCheckpoint)
	s.RevertOnViolated = wanted(false, home.RevertOnViolation, repo.RevertOnViolation)
	if home.ViolationSeverity != "" {
		s.Floor = policy.Severity(home.ViolationSeverity)
	}
	if repo.ViolationSeverity != "" {
		s.Floor = policy.Worst([]policy.Violation{{Severity: s.Floor}, {Severity: policy.Severity(repo.ViolationSeverity)}})
	}
	if home.ShadowWorkspace.PromotionStrategy != "" && repo.ShadowWorkspace.PromotionStrategy != config.Promotion(session.Atomic) {
		s.Promotion = session.Promotion(home.ShadowWorkspace.PromotionStrategy)
	}
	s.KeepOnFailure = !wanted(true, home.ShadowWorkspace.CleanupOnFailure, repo.ShadowWorkspace.CleanupOnFailure)
	if p := home.PauseResumeProtocol; p != "" {
		s.Pause = agent.PauseProtocol(p)
	} else if p := repo.PauseResumeProtocol; p != "" {
		s.Pause = agent.PauseProtocol(p)
	}
	s.UpperBytesMax = stricter(s.UpperBytesMax>>20, home.ShadowWorkspace.MaxShadowSizeMB, repo.ShadowWorkspace.MaxShadowSizeMB) << 20
	return s
}

// stricter is the home's number, or usual where it says nothing, unless the repository's is less.
func stricter(usual int64, home, repo int) int64 {
	n := usual
	if home != 0 {
		n = int64(home)
	}
	if repo != 0 {
		n = min(n, int64(repo))
	}
	return n
}

// wanted is the home's word, or usual where it says nothing, unless the repository says true.
func wanted(usual bool, home, repo *bool) bool {
	if home != nil {
		usual = *home
	}
	return usual || repo != nil && *repo
}

func milliseconds(n int64) time.Duration { return time.Duration(n) * time.Millisecond }

// file reads a small file at a commit, at most one byte more than bytesMax; nil if there is none.
func file(ctx context.Context, host git.Dir, commit git.OID, name string, bytesMax int64) ([]byte, error) {
	found, err := host.Lookup(ctx, commit, []string{name})
	if err != nil || found[0].Absent() {
		return nil, err
	}
	if m := found[0].Mode; m != git.File && m != git.Executable {
		return nil, problem.Errorf(problem.Usage, host.Command("show "+string(commit)+" --stat"), "%s at %.12s is no ordinary file", name, commit)
	}
	blob, err := host.Blob(ctx, found[0].OID)
	if err != nil {
		return nil, err
	}
	text, err := io.ReadAll(io.LimitReader(blob, bytesMax+1)) // one more byte and it is refused
	if closed := blob.Close(); err == nil {
		err = closed
	}
	if err != nil {
		return nil, fmt.Errorf("read %s at %.12s: %w", name, commit, err)
	}
	return text, nil
}
