package release_test

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"sallyport/internal/base/audit"
	"sallyport/internal/base/disk"
	"sallyport/internal/base/disk/disktest"
	"sallyport/internal/base/id"
	"sallyport/internal/base/image"
	programs "sallyport/internal/base/release"
	"sallyport/internal/drive/drivetest"
	"sallyport/internal/drive/release"
	"sallyport/internal/path/change"
	"sallyport/internal/path/proposal"
	"sallyport/internal/port/rehearsal"
	"sallyport/internal/port/sandbox"
	"sallyport/internal/port/tool"
)

// host is what runs, as a test plays it.
type host struct {
	dir   string
	home  string           // whose releases are kept
	taken programs.Release // what a person brings; the zero one: what runs
	fault error
	image string // that sandboxes start from now

	registries bool // builds may reach them
	builder    release.Builder
	bases      []string // that were asked for

	runner func(dir string) (sandbox.Tryout, error) // nil: every runner is that of now

	mu     sync.Mutex
	copied int // how often the state was
}

func newHost(t *testing.T) *host {
	dir := t.TempDir()
	disktest.Put(t, filepath.Join(dir, programs.Program), "what runs", 0o755)
	return &host{dir: dir, home: t.TempDir()}
}

func (h *host) Running() (string, programs.Release, error) {
	return h.dir, programs.Release{Build: "now", Schema: 7, Image: h.image}, nil
}

func (h *host) Releases() programs.Folder { return programs.In(h.home, disk.Ops{}) }

func (h *host) Take(context.Context, string, audit.Actor) (programs.Release, bool, error) {
	return h.taken, h.taken.Digest != "", nil
}

func (h *host) Registries() bool { return h.registries }

func (h *host) TryRunner(_ context.Context, dir string) (sandbox.Tryout, error) {
	if h.runner == nil {
		return sandbox.Tryout{Same: true}, nil
	}
	return h.runner(dir)
}

func (h *host) Images() image.Folder { return image.In(h.home, disk.Ops{}) }

func (h *host) Builder() release.Builder { return h.builder }

func (h *host) Bases(_ context.Context, names []string, _ string) error {
	h.bases = append(h.bases, names...)
	return nil
}

func (h *host) Copy(_ context.Context, to string, _ int) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.copied++
	if h.fault != nil {
		return h.fault
	}
	return os.WriteFile(to, []byte("a copy"), 0o600)
}

// stage is a home in which a rehearsal is played.
type stage struct {
	*drivetest.Assistants
	host   *host
	plays  func(n int) (rehearsal.Report, int) // the nth rehearsal, from 1, and its exit status
	makes  func(spec sandbox.Spec) int         // a build
	starts func(spec sandbox.Spec) int         // from an image

	mu    sync.Mutex
	specs []sandbox.Spec
	tried map[string]string // the program of each home, by where its state lies
	lies  bool              // a candidate does not do with the database what it says
	saw   []string          // what lay in the home that was rehearsed
}

// staged has a dev agent write a file of the home each time that it works, and rehearsals played.
func staged(h *drivetest.Home, path string, plays func(n int) (rehearsal.Report, int)) (*stage, *drivetest.Troupe) {
	return stagedMore(h, map[string]string{path: "changed\n"}, plays)
}

// stagedMore is staged, with more files.
func stagedMore(h *drivetest.Home, files map[string]string, plays func(n int) (rehearsal.Report, int)) (*stage, *drivetest.Troupe) {
	a, troupe := h.Assist(func(_ context.Context, s *drivetest.Scene, _ string) (string, error) {
		for path, text := range files {
			s.Write(path, text)
		}
		return "", nil
	})
	s := &stage{Assistants: a, host: newHost(h.T), plays: plays, tried: map[string]string{}}
	h.Parts.Candidates, h.Parts.Take, h.Parts.Settings.Rehearsals = s.host, s.host.Take, filepath.Join(h.Parts.Home, "state", "rehearsals")
	others := h.Cage.Program
	h.Cage.Program = func(spec sandbox.Spec, killed <-chan struct{}) int {
		if len(spec.Argv) > 2 && (strings.Contains(spec.Argv[2], "make build") || strings.Contains(spec.Argv[2], "buildah bud")) {
			return s.makes(spec)
		}
		if spec.Image != "" {
			if s.starts == nil {
				return 0
			}
			return s.starts(spec)
		}
		if len(spec.Argv) < 3 || spec.Argv[2] != "rehearse" {
			return others(spec, killed)
		}
		other := s.lies
		s.mu.Lock()
		s.specs = append(s.specs, spec)
		n := len(s.specs)
		for _, b := range spec.Own {
			cards, _ := filepath.Glob(filepath.Join(b.Source, "releases", "current", "release.json"))
			for _, card := range cards {
				raw, _ := os.ReadFile(card)
				other = other != strings.Contains(string(raw), `"schema": 8`)
			}
			at, _ := filepath.Glob(filepath.Join(b.Source, "releases", "current", programs.Program))
			for _, program := range at {
				raw, _ := os.ReadFile(program)
				s.tried[b.Source] = string(raw)
			}
		}
		for _, name := range []string{slices.Sorted(maps.Keys(files))[0], "groups/echo/runner/runner.yaml", "groups/echo/runner/prompts/system.md", "groups/other/AGENTS.md", "template/runner/runner.yaml"} {
			if _, err := os.Lstat(filepath.Join(spec.Tree.Dir, name)); err == nil {
				s.saw = append(s.saw, name)
			}
		}
		s.mu.Unlock()
		report, status := s.plays(n)
		if other && report.Failed == nil {
			report.Done = append(report.Done, rehearsal.Step{Name: rehearsal.Back})
		}
		_ = json.NewEncoder(spec.Stdout).Encode(report)
		return status
	}
	return s, troupe
}

func well() rehearsal.Report {
	return rehearsal.Report{Done: []rehearsal.Step{
		{Name: rehearsal.Start, Took: 3 * time.Second}, {Name: rehearsal.Answer, Took: 1004 * time.Millisecond}, {Name: rehearsal.End}, {Name: rehearsal.Again}, {Name: rehearsal.Last},
	}}
}

// TestAChangeOfTheHostIsRehearsedBeforeAnybodyIsAsked holds SM-913: on its files, on a copy of the state, without what is anybody's.
func TestAChangeOfTheHostIsRehearsedBeforeAnybodyIsAsked(t *testing.T) {
	drivetest.Bubble(t, func(t *testing.T, h *drivetest.Home) {
		s, _ := staged(h, "docs/page.md", func(int) (rehearsal.Report, int) { return well(), 0 })
		if err := os.MkdirAll(filepath.Join(h.Repo, "groups", "other"), 0o755); err != nil {
			t.Fatal(err)
		}
		disktest.Put(t, filepath.Join(h.Repo, "groups", "other", "AGENTS.md"), "private\n", 0o600)
		h.Git("add", "-A")
		h.Git("-c", "user.name=Ann", "-c", "user.email=ann@example.org", "commit", "-qm", "another group")
		c, _ := s.Begin()
		p := s.Show(c, s.Offer(c)).Proposal
		got := p.Card.Host
		if got == nil || got.Release != "" || got.Schema != 7 || got.Was != 7 || got.Quiet() || got.Migration != 3*time.Second || len(got.Rehearsed) != 5 || len(got.Not) == 0 {
			t.Fatalf("the card says %+v", got)
		}
		if err := proposal.Verify(*p); err != nil {
			t.Error(err)
		}
		if want := []string{"docs/page.md", "groups/echo/runner/runner.yaml", "groups/echo/runner/prompts/system.md", "template/runner/runner.yaml"}; !slices.Equal(s.saw, want) {
			t.Errorf("what was rehearsed has %q", s.saw)
		}
		spec := s.specs[0]
		if len(s.specs) != 1 || s.host.copied != 1 || spec.Tree.GitDir != "" || len(spec.Tree.Objects) > 0 || spec.Egress != "" || len(spec.Mounts) > 0 {
			t.Errorf("%d rehearsals, %d copies: %+v", len(s.specs), s.host.copied, spec)
		}
		if !slices.Contains(spec.Env, rehearsal.Variable+"=1") || !slices.ContainsFunc(spec.Own, func(b sandbox.Bind) bool { return b.Target == sandbox.RehearsalMark && !b.Writable }) {
			t.Errorf("nothing says there that it is a rehearsal: %q, %v", spec.Env, spec.Own)
		}
		if left, err := os.ReadDir(h.Parts.Settings.Rehearsals); err != nil || len(left) > 0 {
			t.Errorf("it left %v, %v", left, err)
		}
		about, _, _ := p.Tell("echo")
		for _, words := range []string{"rehearsed on a copy of the state without anybody's words", "the agent echo answers a message (1s)", "what a rehearsal does not show:"} {
			if !strings.Contains(about, words) {
				t.Errorf("the card in a conversation lacks %q:\n%s", words, about)
			}
		}
	})
}

// TestAChangeOfAGroupIsNotRehearsed holds that who changes itself alone waits for no rehearsal.
func TestAChangeOfAGroupIsNotRehearsed(t *testing.T) {
	drivetest.Bubble(t, func(t *testing.T, h *drivetest.Home) {
		s, _ := staged(h, "template/runner/prompts/system.md", func(int) (rehearsal.Report, int) { return well(), 0 })
		c, _ := s.Begin()
		if got := s.Show(c, s.Offer(c)).Proposal.Card.Host; got != nil || len(s.specs) > 0 {
			t.Errorf("%+v, after %d rehearsals", got, len(s.specs))
		}
	})
}

// planted is a token that a candidate prints.
const planted = "ghp_" + "9fK2mQx7LbR4vTz1WcN8sYd3HjP6gUe5AoXi"

// TestACandidateThatFailsGoesBackToItsAgent holds SM-913: nobody is asked, and the agent hears the step and what was printed.
func TestACandidateThatFailsGoesBackToItsAgent(t *testing.T) {
	drivetest.Bubble(t, func(t *testing.T, h *drivetest.Home) {
		s, troupe := staged(h, "docs/page.md", func(n int) (rehearsal.Report, int) {
			if n > 1 {
				return well(), 0
			}
			return rehearsal.Report{Done: well().Done[:1], Failed: &rehearsal.Failure{Step: rehearsal.Answer, Why: "the agent echo did not say hello, but " + planted, Tail: "panic: in the answer\n" + planted}}, 0
		})
		s.Converse(drivetest.SwapChat)
		c, _ := s.Begin()
		chg := s.Propose(c)
		d := s.Is(c, chg, change.Working)
		if len(d.Proposal.Card.Checks) != 1 || d.Proposal.Card.Checks[0].OK || d.Proposal.Card.Host != nil {
			t.Errorf("its card says %+v", d.Proposal.Card)
		}
		if check := d.Proposal.Card.Checks[0]; strings.Contains(check.Why+check.Tail, planted) || !strings.Contains(check.Why, "[secret") || !strings.Contains(check.Tail, "[secret") {
			t.Errorf("a secret is kept: %+v", check)
		}
		told := troupe.Told()
		for _, words := range []string{"rehearsal of the host", "the agent echo answers a message: the agent echo did not say hello", "panic: in the answer"} {
			if last := told[len(told)-1]; !strings.Contains(last, words) || strings.Contains(last, planted) {
				t.Errorf("its agent does not hear %q, or hears a secret: %q", words, last)
			}
		}
		said := s.Said()
		want := "notice: Nobody is asked about " + string(chg) + " yet: the rehearsal of the host failed: the agent echo answers a message: the agent echo did not say hello, but [secret"
		if n := len(said); n != 2 || !strings.HasPrefix(said[1], want) || strings.Contains(said[1], planted) || !strings.HasSuffix(said[1], "; dev-greets hears why, goes on with it, and proposes it again") {
			t.Errorf("the conversation says %q", said)
		}
	})
}

// TestWhatIsNoFaultOfTheCandidateIsTriedAgain holds that a machine's fault sends nothing back, and asks nobody.
func TestWhatIsNoFaultOfTheCandidateIsTriedAgain(t *testing.T) {
	for name, spoil := range map[string]func(s *stage) (mend func()){
		"the state cannot be copied": func(s *stage) func() {
			s.host.fault = errors.New("no space")
			return func() { s.host.mu.Lock(); s.host.fault = nil; s.host.mu.Unlock() }
		},
		"the rehearser fails": func(s *stage) func() {
			s.plays = func(int) (rehearsal.Report, int) { return rehearsal.Report{}, rehearsal.StatusFault }
			return func() { s.plays = func(int) (rehearsal.Report, int) { return well(), 0 } }
		},
	} {
		t.Run(name, func(t *testing.T) {
			drivetest.Bubble(t, func(t *testing.T, h *drivetest.Home) {
				s, troupe := staged(h, "docs/page.md", func(int) (rehearsal.Report, int) { return well(), 0 })
				mend := spoil(s)
				s.Converse(drivetest.SwapChat)
				c, _ := s.Begin()
				chg := s.Propose(c)
				if st := s.Show(c, chg).Change.State; st == change.AwaitingApproval || st == change.Working || len(troupe.Told()) != 1 {
					t.Errorf("it is %s, and its agent was told %q", st, troupe.Told())
				}
				time.Sleep(time.Minute)
				begins := "notice: " + string(chg) + " changes the host. Before anybody is asked sallyport rehearses it; its card comes after that; next: sallyport change watch " + string(chg)
				if said := s.Said(); s.host.copied < 2 || drivetest.Count(said, begins) != 1 {
					t.Errorf("after %d tries the conversation says %q", s.host.copied, said)
				}
				mend()
			})
		})
	}
}

// TestWhoWatchesAChangeOfTheHostSeesWhatIsDone: until its card comes it may take minutes.
func TestWhoWatchesAChangeOfTheHostSeesWhatIsDone(t *testing.T) {
	for path, built := range map[string]string{"src/main.go": "build of the host", "image/Dockerfile": "build of image/Dockerfile"} {
		drivetest.Bubble(t, func(t *testing.T, h *drivetest.Home) {
			withSource(h, source)
			s, _ := staged(h, path, rehearsed)
			s.makes = func(spec sandbox.Spec) int { return compiles(t, spec, 7) }
			s.builds(t, nil)
			c, _ := s.Begin()
			row := s.Wished(c, id.NewChange(), "Greet people")
			watch := c.Feed.Subscribe(row.ID)
			time.Sleep(time.Minute)
			tree := string(s.Show(c, row.ID).Checkpoints[0].Tree)
			if _, err := s.Call(t.Context(), tool.RequestSwap, tool.Swap{PerFileSummaries: map[string]string{path: "x"}, OverallSummary: "x", CommitSHA: "0123456"}, tree); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Minute)
			var saw []string
			for _, n := range c.Feed.Next(t.Context(), watch) {
				if n.Kind == "check" {
					saw = append(saw, n.Text)
				}
			}
			if want := []string{built, "rehearsal of the host"}; !slices.Equal(saw, want) {
				t.Errorf("of a change of %s they see %q, not %q", path, saw, want)
			}
		})
	}
}
