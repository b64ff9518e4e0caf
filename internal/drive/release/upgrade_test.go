package release_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sallyport/internal/base/disk/disktest"
	"sallyport/internal/base/git/gittest"
	"sallyport/internal/base/problem"
	programs "sallyport/internal/base/release"
	"sallyport/internal/drive/approve"
	"sallyport/internal/drive/drivetest"
	"sallyport/internal/drive/standing"
	"sallyport/internal/drive/view"
	"sallyport/internal/path/change"
	"sallyport/internal/path/request"
	"sallyport/internal/port/rehearsal"
	"sallyport/internal/port/sandbox"
)

// brings has a person bring another sallyport.
func (s *stage) brings(t *testing.T) {
	t.Helper()
	dir := t.TempDir()
	disktest.Put(t, filepath.Join(dir, programs.Program), "what comes", 0o755)
	var err error
	if s.host.taken, err = s.host.Releases().Put(dir, programs.Release{Build: "next", Schema: 8}); err != nil {
		t.Fatal(err)
	}
}

func upgrade(h *drivetest.Home) standing.Upgrade {
	return standing.Upgrade{By: h.By(), From: "/opt/next", Approve: request.Later, Account: "1000"}
}

// TestWhatACandidateSaysOfItsDatabaseIsHeldAgainstWhatItDoes: the card tells what going back costs by the schema, and it is no program's word.
func TestWhatACandidateSaysOfItsDatabaseIsHeldAgainstWhatItDoes(t *testing.T) {
	for why, brings := range map[string]bool{
		"it says that its database has the schema 8, and left it at 7, which is that of now":       true,
		"it says that its database has the schema 7, which is that of now, and made another of it": false,
	} {
		drivetest.Bubble(t, func(t *testing.T, h *drivetest.Home) {
			s, _ := staged(h, "docs/page.md", func(int) (rehearsal.Report, int) { return well(), 0 })
			s.lies = true
			s.Converse(drivetest.SwapChat)
			c, _ := s.Begin()
			if brings {
				s.brings(t)
				row, err := c.Groups.Upgrade(t.Context(), upgrade(h))
				if err != nil {
					t.Fatal(err)
				}
				if d := s.Is(c, row.ID, change.Failed); !strings.Contains(d.Change.Reason, why) {
					t.Errorf("it ends with %q", d.Change.Reason)
				}
				return
			}
			if d := s.Is(c, s.Propose(c), change.Working); len(d.Proposal.Card.Checks) != 1 || d.Proposal.Card.Checks[0].Why != why {
				t.Errorf("its card says %+v", d.Proposal.Card)
			}
		})
	}
}

// TestAnUpgradeIsAChangeOfTheHostWithoutAFile holds that what a person brings is rehearsed as any candidate is, that its card says so, and
// that nobody asks for a second one meanwhile.
func TestAnUpgradeIsAChangeOfTheHostWithoutAFile(t *testing.T) {
	drivetest.Bubble(t, func(t *testing.T, h *drivetest.Home) {
		s, _ := staged(h, "docs/page.md", func(int) (rehearsal.Report, int) { return well(), 0 })
		c, _ := s.Begin()
		if row, err := c.Groups.Upgrade(t.Context(), upgrade(h)); err != nil || row.ID != "" {
			t.Errorf("to what runs already: %+v, %v", row, err)
		}
		if _, err := c.Groups.Upgrade(t.Context(), standing.Upgrade{By: h.By(), From: "/opt/next", Group: "nobody", Approve: request.Later}); problem.KindOf(err) != problem.NotFound {
			t.Errorf("in a group that is none: %v", err)
		}
		s.brings(t)
		row, err := c.Groups.Upgrade(t.Context(), upgrade(h))
		if err != nil {
			t.Fatal(err)
		}
		d := s.Is(c, row.ID, change.AwaitingApproval)
		card := d.Proposal.Card
		if card.Host == nil || card.Host.Release != s.host.taken.Digest || card.Host.Schema != 8 || !card.Host.Quiet() || card.FilesTotal != 0 || card.Typed == "" || !card.Coded() || card.Subject != "" {
			t.Errorf("the card says %+v, %+v", card, card.Host)
		}
		about, _, _ := d.Proposal.Tell("echo")
		for _, words := range []string{"no file changes", "the host runs by release " + s.host.taken.Digest[:12] + " (build next), and its database goes from schema 7 to 8", "rollback may be lossy"} {
			if !strings.Contains(about, words) {
				t.Errorf("the card in a conversation lacks %q:\n%s", words, about)
			}
		}
		if _, err := c.Groups.Upgrade(t.Context(), upgrade(h)); problem.KindOf(err) != problem.Conflict {
			t.Errorf("a second one meanwhile: %v", err)
		}
		tried := ""
		for _, b := range s.specs[0].Own {
			if b.Target == filepath.Join(sandbox.Mountpoint, ".state") {
				tried = s.tried[b.Source]
			}
		}
		if tried != "what comes" {
			t.Errorf("what was rehearsed is %q", tried)
		}
	})
}

// TestAnUpgradeThatChangedOnTheDiskIsNotTried holds that only what was brought is rehearsed.
func TestAnUpgradeThatChangedOnTheDiskIsNotTried(t *testing.T) {
	drivetest.Bubble(t, func(t *testing.T, h *drivetest.Home) {
		s, _ := staged(h, "docs/page.md", func(int) (rehearsal.Report, int) { return well(), 0 })
		c, _ := s.Begin()
		s.brings(t)
		at := filepath.Join(s.host.Releases().Dir, s.host.taken.Digest, programs.Program)
		if err := os.Chmod(at, 0o755); err != nil {
			t.Fatal(err)
		}
		disktest.Put(t, at, "what CAME", 0o755)
		row, err := c.Groups.Upgrade(t.Context(), upgrade(h))
		if err != nil {
			t.Fatal(err)
		}
		d := s.Is(c, row.ID, change.Failed)
		if len(s.specs) > 0 || !strings.Contains(d.Change.Reason, "changed since it was put there") {
			t.Errorf("after %d rehearsals it is said: %s", len(s.specs), d.Change.Reason)
		}
	})
}

// landsMoved has an offered change of the host approved after the branch has moved in a file, and returns what has become of it.
func (s *stage) landsMoved(t *testing.T, moves string) view.Detail {
	c, _ := s.Begin()
	chg := s.Offer(c)
	withSource(s.Home, map[string]string{moves: "moved\n"})
	time.Sleep(time.Minute)
	offered := s.Show(c, chg)
	if err := c.Approve(gittest.Context(t), offered.Approval.ID, offered.Proposal.Digest, s.By(), approve.Words{Marked: true, Typed: "CONFIRM HOST"}); err != nil {
		t.Fatal(err)
	}
	time.Sleep(time.Minute)
	return s.Show(c, chg)
}

// TestWhatAMovedBranchResultsInIsRehearsedBeforeItLands holds SM-913 where the branch has moved since a change of the host was approved: the
// result is tried as it would land, by the very release that was approved; and that release stands for no other source.
func TestWhatAMovedBranchResultsInIsRehearsedBeforeItLands(t *testing.T) {
	for name, tc := range map[string]struct {
		moves  string
		fails  bool // the rehearsal of the result
		tried  int
		state  change.State
		reason string
	}{
		"elsewhere":                {"docs/else.md", false, 2, change.InTrial, ""},
		"elsewhere, and it breaks": {"docs/else.md", true, 2, change.AwaitingApproval, "the agent echo answers a message: it is silent"},
		"in the source":            {"src/other.go", false, 1, change.AwaitingApproval, "the source of the host has moved on main"},
	} {
		t.Run(name, func(t *testing.T) {
			drivetest.Bubble(t, func(t *testing.T, h *drivetest.Home) {
				withSource(h, source)
				s, _ := staged(h, "src/main.go", func(n int) (rehearsal.Report, int) {
					if n > 1 && tc.fails {
						return rehearsal.Report{Failed: &rehearsal.Failure{Step: rehearsal.Answer, Why: "it is silent"}}, 0
					}
					return well(), 0
				})
				drivetest.Keep(h)
				builds := 0
				s.makes = func(spec sandbox.Spec) int { builds++; return compiles(t, spec, 7) }
				d := s.landsMoved(t, tc.moves)
				if builds != 1 || len(s.specs) != tc.tried || d.Change.State != tc.state || !strings.Contains(d.Change.Reason, tc.reason) {
					t.Errorf("after %d builds and %d rehearsals it is %s: %s", builds, len(s.specs), d.Change.State, d.Change.Reason)
				}
			})
		})
	}
}

// TestTheRunnerOfACandidateIsTriedFirst holds what a card, and whoever asked, is told of another sallyport-runner.
func TestTheRunnerOfACandidateIsTriedFirst(t *testing.T) {
	const launcher = "the new sallyport-runner builds no sandbox"
	for name, c := range map[string]struct {
		is         sandbox.Tryout
		tried, not string // words of the card; "" = no such
		fails      string // words of the reason
	}{
		"it does well":      {is: sandbox.Tryout{Tries: 31}, tried: "its sallyport-runner serves sandboxes", not: launcher},
		"it is that of now": {is: sandbox.Tryout{Same: true}, tried: "its sallyport-runner is the one of now, byte for byte"},
		"it speaks another language": {
			is: sandbox.Tryout{Untried: "it speaks version 8"}, not: "the new sallyport-runner is met in the trial: it speaks version 8",
		},
		"it fails": {
			is:    sandbox.Tryout{Failed: "it did not freeze a sandbox", Tail: "panic: what now"},
			fails: "nothing gets out, and it does as it is told: it did not freeze a sandbox",
		},
	} {
		t.Run(name, func(t *testing.T) {
			drivetest.Bubble(t, func(t *testing.T, h *drivetest.Home) {
				s, _ := staged(h, "docs/page.md", func(int) (rehearsal.Report, int) { return well(), 0 })
				a, _ := s.Begin()
				s.brings(t)
				s.host.runner = func(dir string) (sandbox.Tryout, error) {
					time.Sleep(2 * time.Second)
					if raw, err := os.ReadFile(filepath.Join(dir, programs.Program)); err != nil || string(raw) != "what comes" {
						t.Errorf("what is tried is %q, %v", raw, err)
					}
					return c.is, nil
				}
				row, err := a.Groups.Upgrade(t.Context(), upgrade(h))
				if err != nil {
					t.Fatal(err)
				}
				time.Sleep(3 * time.Second) // of the bubble
				if c.fails != "" {
					d := s.Is(a, row.ID, change.Failed)
					if len(s.specs) > 0 || !strings.Contains(d.Change.Reason, c.fails) {
						t.Errorf("after %d rehearsals it is said: %s", len(s.specs), d.Change.Reason)
					}
					return
				}
				got := s.Is(a, row.ID, change.AwaitingApproval).Proposal.Card.Host
				tried, not := strings.Join(got.Rehearsed, "\n"), strings.Join(got.Not, "\n")
				if c.tried == "" == strings.Contains(tried, "runner") || !strings.Contains(tried, c.tried) {
					t.Errorf("tried: %s", tried)
				}
				if c.not == "" == strings.Contains(not, "runner") || !strings.Contains(not, c.not) {
					t.Errorf("not tried: %s", not)
				}
				if name == "it does well" && !strings.HasSuffix(got.Rehearsed[0], "(2s)") {
					t.Errorf("how long it took is not said: %s", got.Rehearsed[0])
				}
			})
		})
	}
}
