package daemon

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sallyport/internal/base/git"
	"sallyport/internal/base/problem"
	"sallyport/internal/path/session"
	wt "sallyport/internal/path/workspace/workspacetest"
	"sallyport/internal/rule/config"
	"sallyport/internal/rule/policy"
	"sallyport/internal/rule/right"
	"sallyport/internal/who/person"
)

// The host reads the rules in a repository of its own, in which no person can correct anything.
func TestRulesThatDoNotLoadNameThePersonsOwnFile(t *testing.T) {
	secrets, err := newSecretRules(nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	book := rulebook{settings: config.Look(t.TempDir()), secrets: secrets}
	for _, c := range []struct{ name, file, text, next string }{
		{"a key that is not known", config.RepositoryFile, "sudo: yes\n", "${EDITOR:-vi} TOP/.sallyport.yaml && git -C TOP commit -m 'Correct .sallyport.yaml' .sallyport.yaml"},
		{"a link", config.RepositoryFile, "->elsewhere", "ls -ld TOP/.sallyport.yaml"},
		{"rules about secrets that are no TOML", gitleaksFile, "[[", "${EDITOR:-vi} TOP/.gitleaks.toml && git -C TOP commit -m 'Correct .gitleaks.toml' .gitleaks.toml"},
		{"a long list of what is no secret", gitleaksIgnore, strings.Repeat("#\n", gitleaksBytesMax), "${EDITOR:-vi} TOP/.gitleaksignore && git -C TOP commit -m 'Correct .gitleaksignore' .gitleaksignore"},
	} {
		t.Run(c.name, func(t *testing.T) {
			project, head := wt.Project(t, map[string]string{c.file: c.text})
			host := git.Dir{Path: filepath.Join(t.TempDir(), "host.git")}
			wt.Git(t, "/", "clone", "-q", "--bare", project.Top, host.Path)

			_, err := book.At(t.Context(), project, host, head)
			if err == nil {
				t.Fatal("the rules load")
			}

			if got, want := problem.Of(err).Next, strings.ReplaceAll(c.next, "TOP", project.Top); got != want {
				t.Errorf("%v\nnext: %s\nwant: %s", err, got, want)
			}
		})
	}
}

// Of a home's and a repository's words the stricter hold, and silence is no word (SV-007).
func TestARepositoryCanOnlyTightenHowAnAgentIsWatched(t *testing.T) {
	parse := func(text string) config.Supervision {
		t.Helper()
		s, err := config.ParseSallyport("s", []byte("interactive: "+text))
		if err != nil {
			t.Fatal(err)
		}
		return s.Interactive
	}
	usual := session.Supervision{
		Strategy: session.Direct, Poll: 2 * time.Second, Interval: 30 * time.Second, ChangesMax: 50, Apart: 5 * time.Second,
		Floor: policy.Warning, Promotion: session.Atomic, UpperBytesMax: 2048 << 20,
	}
	with := func(change func(*session.Supervision)) session.Supervision {
		s := usual
		change(&s)
		return s
	}
	strict := "{strategy: shadow_workspace, watchdog_poll_interval_ms: 100, checkpoint_interval_ms: 5000, max_uncommitted_changes: 1, validation_on_checkpoint: true, " +
		"revert_on_violation: true, violation_severity: critical, shadow_workspace: {enabled: true, promotion_strategy: atomic, cleanup_on_failure: true, max_shadow_size_mb: 1}}"
	lax := "{strategy: direct_worktree, watchdog_poll_interval_ms: 60000, checkpoint_interval_ms: 3600000, max_uncommitted_changes: 10000, validation_on_checkpoint: false, " +
		"revert_on_violation: false, violation_severity: info, shadow_workspace: {enabled: false, promotion_strategy: incremental, cleanup_on_failure: false, max_shadow_size_mb: 1048576}}"
	strictest := session.Supervision{
		Strategy: session.Shadow, Poll: 100 * time.Millisecond, Interval: 5 * time.Second, ChangesMax: 1, Apart: 5 * time.Second, RevertOnViolated: true,
		Floor: policy.Critical, Promotion: session.Atomic, UpperBytesMax: 1 << 20,
	}
	laxest := session.Supervision{
		Strategy: session.Direct, Poll: time.Minute, Interval: time.Hour, ChangesMax: 10000, Apart: 5 * time.Second, Unvalidated: true,
		Floor: policy.Info, Promotion: session.Incremental, KeepOnFailure: true, UpperBytesMax: 1 << 40,
	}
	for name, tc := range map[string]struct {
		home, repo string
		want       session.Supervision
	}{
		"silence":                       {"{}", "{}", usual},
		"a strict home":                 {strict, "{}", strictest},
		"a lax home":                    {lax, "{}", laxest},
		"a strict repository":           {"{}", strict, strictest},
		"a lax repository":              {"{}", lax, usual},
		"lax under strict":              {strict, lax, strictest},
		"strict under lax":              {lax, strict, strictest},
		"both lax":                      {lax, lax, laxest},
		"enabled selects the strategy":  {"{}", "{shadow_workspace: {enabled: true}}", with(func(s *session.Supervision) { s.Strategy = session.Shadow })},
		"enabled over the other word":   {"{strategy: direct_worktree, shadow_workspace: {enabled: true}}", "{}", with(func(s *session.Supervision) { s.Strategy = session.Shadow })},
		"less severe than the default":  {"{}", "{violation_severity: info}", usual},
		"a shorter interval":            {"{checkpoint_interval_ms: 60000}", "{checkpoint_interval_ms: 45000}", with(func(s *session.Supervision) { s.Interval = 45 * time.Second })},
		"incremental is not its to say": {"{}", "{shadow_workspace: {promotion_strategy: incremental}}", usual},
	} {
		if got := supervision(parse(tc.home), parse(tc.repo)); got != tc.want.Filled() { // of what neither can say the default holds
			t.Errorf("%s:\n got %+v\nwant %+v", name, got, tc.want)
		}
	}
}

// TestTheDoctorSaysWhoApprovesAndWhatNobodyCan holds SM-912: a policy that wants more people than the home knows is told with the file to change.
func TestTheDoctorSaysWhoApprovesAndWhatNobodyCan(t *testing.T) {
	owner := person.Owner{ID: "psn-0000ann0", Name: "ann"}
	for text, want := range map[string]struct {
		detail  string
		refused bool
	}{
		"":                           {},
		"approvals: {cool_down: 5m}": {"one person approves what a group asks for; a yes to a change of the host counts after 5m0s", false},
		"approvals: {people: 2}":     {"2 people approve what a group asks for. Nobody can approve what ann asks a group for: policy.yaml wants 2 people to approve it", true},
		"approvals: {self: refuse}":  {"one person approves what a group asks for; nobody approves what they asked for; a yes to a change of the host counts after 1m0s. Nobody can approve what ann", true},
		"approvals: {self: maybe}":   {},
		"marks: show":                {},
	} {
		home := t.TempDir()
		writeFile(t, filepath.Join(home, config.PolicyFile), []byte(text), 0o600)
		checks := checkApprovals(home, rulebook{settings: config.Look(home)}, owner, []right.Person{{ID: owner.ID, Held: []right.Held{{Role: right.Owner}}, Reachable: true}})
		if want.detail == "" {
			if len(checks) > 0 {
				t.Errorf("%q: %+v", text, checks)
			}
			continue
		}
		if len(checks) != 1 || !strings.HasPrefix(checks[0].Detail, want.detail) || checks[0].Refused != want.refused || checks[0].OK == want.refused || want.refused && checks[0].Fix != "${EDITOR:-vi} "+home+"/policy.yaml" {
			t.Errorf("%q: %+v", text, checks)
		}
	}
}
