package daemon

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"sallyport/internal/base/git"
	"sallyport/internal/base/inert"
	"sallyport/internal/base/problem"
	"sallyport/internal/drive/grounds"
	"sallyport/internal/path/session"
	"sallyport/internal/port/agent"
	"sallyport/internal/rule/config"
	"sallyport/internal/rule/policy"
	"sallyport/internal/rule/right"
)

// rulebook joins the home's policy, as it counts now, with a repository's own rules, which are read as they stand at a commit.
type rulebook struct {
	home     string
	settings *config.Settings
	secrets  *secretRules
}

// At joins the home's rules with the repository's as they stand at a commit, the stricter of both.
func (r rulebook) At(ctx context.Context, project git.Project, host git.Dir, commit git.OID) (grounds.Judging, error) {
	s := standing{project.Top, host, commit}
	home, own := r.settings.Policy(), r.settings.Sallyport()
	rules := home.Judgement()
	repo, err := s.repository(ctx)
	if err != nil {
		return grounds.Judging{}, err
	}
	scanner, note, err := r.secrets.at(ctx, s, rules.TrustSecretRules)
	if err != nil {
		return grounds.Judging{}, err
	}
	checks := config.Strings(repo.Checks)
	if scan := own.Secrets.Command; scan != "" { // it blocks as any check does that fails or cannot run (CW-025)
		checks = append([]string{string(scan)}, checks...)
	}
	return grounds.Judging{
		Secrets:        scanner,
		SecretNote:     note,
		Rules:          policy.Merge(rules, repo.Judgement()),
		Approvals:      home.Approvals.Rules(),
		Checks:         checks,
		Setup:          config.Strings(repo.Setup),
		Profiles:       config.Strings(repo.Profiles),
		IncludeIgnored: config.Strings(repo.IncludeIgnored),
		Subject:        string(repo.Landing.Subject),
		Agent:          string(repo.Agent),
		Supervision:    supervision(own.Interactive, repo.Interactive),
	}, nil
}

// Approvals are what the home's policy says now of who approves what a group asks for.
func (r rulebook) Approvals() right.Rules { return r.settings.Policy().Approvals.Rules() }

// Decidable says why nothing is approved and nothing lands now.
func (r rulebook) Decidable() error { return r.settings.Decidable() }

// ruleFiles are read as rules from the top of a repository, wherever a change is based, and homeFiles from that of the home, where they lie.
var (
	ruleFiles = []string{config.RepositoryFile, gitleaksFile, gitleaksIgnore}
	homeFiles = []string{config.SallyportFile, config.PolicyFile}
)

// Load reads the rules that stand at a commit, if edits touch them. What does not load there would hold every later change.
func (r rulebook) Load(ctx context.Context, project git.Project, host git.Dir, commit git.OID, edits []git.Edit) ([]policy.Violation, error) {
	var found []policy.Violation
	names := ruleFiles
	if sameFolder(r.home, project.Top) {
		names = slices.Concat(ruleFiles, homeFiles)
	}
	for _, name := range names {
		if !slices.ContainsFunc(edits, func(e git.Edit) bool { return e.Path == name && !e.New.Absent() }) {
			continue
		}
		why := r.load(ctx, standing{project.Top, host, commit}, name)
		if why == nil {
			continue
		}
		if problem.KindOf(why) != problem.Refused { // it is not the file's fault
			return nil, why
		}
		found = append(found, policy.Violation{
			File: name, Constraint: policy.RulesLoad, Severity: policy.Error,
			Message:    "once it has landed, sallyport could not read it as rules: " + inert.Line(strings.Join(strings.Fields(problem.Of(why).Text), " ")),
			Suggestion: "correct it, or put it back as it is in the base",
		})
	}
	return found, nil
}

// load reads one file of rules as it stands at a commit.
func (r rulebook) load(ctx context.Context, s standing, name string) error {
	var err error
	switch name {
	case config.RepositoryFile:
		_, err = s.repository(ctx)
	case config.SallyportFile, config.PolicyFile:
		var text []byte
		if text, err = s.file(ctx, name, config.FileBytesMax); err == nil {
			err = config.Check(name, text)
		}
	default:
		_, _, err = r.secrets.at(ctx, s, nil)
	}
	return err
}

// standing are the files of a repository as they stand at a commit that the host's own repository holds.
type standing struct {
	top    string // the person's work tree: a file that cannot be used is corrected there
	host   git.Dir
	commit git.OID
}

// mend is a command by which a person corrects a file of rules. It counts once it is committed.
func (s standing) mend(name string) string {
	return "${EDITOR:-vi} " + inert.Path(filepath.Join(s.top, name)) + " && " +
		git.Dir{Path: s.top}.Command("commit -m 'Correct "+name+"' "+name)
}

// repository reads the repository's own .sallyport.yaml.
func (s standing) repository(ctx context.Context) (config.Repository, error) {
	text, err := s.file(ctx, config.RepositoryFile, config.FileBytesMax)
	if err != nil {
		return config.Repository{}, err
	}
	return config.ParseRepository(s.mend(config.RepositoryFile), text)
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

// file reads a small file, at most one byte more than bytesMax; nil if there is none.
func (s standing) file(ctx context.Context, name string, bytesMax int64) ([]byte, error) {
	found, err := s.host.Lookup(ctx, s.commit, []string{name})
	if err != nil || found[0].Absent() {
		return nil, err
	}
	if m := found[0].Mode; m != git.File && m != git.Executable {
		return nil, problem.Errorf(problem.Refused, "ls -ld "+inert.Path(filepath.Join(s.top, name)), "%s at %.12s is not an ordinary file", name, s.commit)
	}
	blob, err := s.host.Blob(ctx, found[0].OID)
	if err != nil {
		return nil, err
	}
	text, err := io.ReadAll(io.LimitReader(blob, bytesMax+1)) // one more byte and it is refused
	if closed := blob.Close(); err == nil {
		err = closed
	}
	if err != nil {
		return nil, fmt.Errorf("read %s at %.12s: %w", name, s.commit, err)
	}
	return text, nil
}
