package drivetest

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing/synctest"
	"time"

	"sallyport/internal/base/deadman"
	"sallyport/internal/base/disk/disktest"
	"sallyport/internal/base/git"
	"sallyport/internal/base/git/gittest"
	"sallyport/internal/base/id"
	"sallyport/internal/drive/control"
	"sallyport/internal/drive/ledger"
	"sallyport/internal/path/change"
	"sallyport/internal/path/request"
	"sallyport/internal/path/trial"
	"sallyport/internal/rule/trust"
)

// Service is a target that a test plays.
type Service struct {
	mu        sync.Mutex
	Words     trust.Target
	Unproven  string
	starts    []string      // what the page said at each restart
	Takes     time.Duration // a restart
	OnRestart func(page string) error
	Answers   func(page string) error
	page      string // path
	told      []ledger.Note
	Deaf      bool // a note reaches nobody
	Moved     time.Duration
	Boot      string
}

func (s *Service) Of(context.Context, git.Dir, git.Project, git.OID) (trust.Target, string, error) {
	return s.Words, s.Unproven, nil
}

func (s *Service) read() string {
	raw, err := os.ReadFile(s.page)
	if err != nil {
		return err.Error()
	}
	return string(raw)
}

func (s *Service) Restart(ctx context.Context, _ trust.Target, _ git.Project, _ id.Change) error {
	page := s.read()
	s.mu.Lock()
	s.starts = append(s.starts, page)
	restart := s.OnRestart
	s.mu.Unlock()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(s.Takes):
	}
	if restart == nil {
		return nil
	}
	return restart(page)
}

func (s *Service) Probe(ctx context.Context, t trust.Target, p git.Project) error {
	return s.Ask(ctx, t, p)
}

func (s *Service) Ask(context.Context, trust.Target, git.Project) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.Answers == nil {
		return nil
	}
	return s.Answers(s.read())
}

func (s *Service) Tell(_ context.Context, n ledger.Note) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.told = append(s.told, n)
	if s.Deaf {
		return errors.New("nobody is there")
	}
	return nil
}

func (s *Service) Clock() (deadman.Moment, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now().UTC()
	return deadman.Moment{Wall: now.Add(s.Moved), Boot: s.Boot, Up: now.Sub(time.Date(1999, 1, 1, 0, 0, 0, 0, time.UTC))}, nil
}

func (s *Service) Set(f func(*Service)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f(s)
}

func (s *Service) Started() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.starts)
}

func (s *Service) Heard(kind ledger.NoteKind) (texts []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, n := range s.told {
		if n.Kind == kind {
			texts = append(texts, n.Text)
		}
	}
	return texts
}

// Serve gives a home a target.
func (h *Home) Serve() *Service {
	s := &Service{
		Words: trust.Target{Restart: "restart it", Probe: trust.Probe{HTTP: "http://127.0.0.1:1/"}, Trial: 2 * time.Minute},
		page:  filepath.Join(h.Repo, "page.txt"), Boot: "first",
	}
	h.Parts.Targets, h.Parts.Teller, h.Parts.Clock = s, s, s.Clock
	h.Cage.Play = Writes("two\n")
	return s
}

// Land has a change approved, and waits until it moves no further without time passing.
func (h *Home) Land(c *control.Controller, length *time.Duration) id.Change {
	h.T.Helper()
	r, err := c.TakeRequest(gittest.Context(h.T), request.Request{By: h.By(), Text: "Change the page", Project: git.Project{Top: h.Repo},
		Agent: "played", Argv: []string{"true"}, Approve: request.Yes, Trial: length}, nil)
	if err != nil {
		h.T.Fatal(err)
	}
	synctest.Wait()
	return r.Change.ID
}

func (h *Home) Page() string {
	raw, err := os.ReadFile(filepath.Join(h.Repo, "page.txt"))
	if err != nil {
		h.T.Fatal(err)
	}
	return string(raw)
}

// Asked fails unless a change waits for a person, and returns its trial.
func (h *Home) Asked(c *control.Controller, chg id.Change) trial.Trial {
	h.T.Helper()
	d := h.Is(c, chg, change.InTrial)
	if d.Trial == nil || d.Trial.Handshake != trial.Message1Sent {
		h.T.Fatalf("its trial is %+v", d.Trial)
	}
	return *d.Trial
}

// GoneBack fails unless a change has gone back for a reason, with its files and one commit that says so.
func (h *Home) GoneBack(c *control.Controller, chg id.Change, reason string) {
	h.T.Helper()
	d := h.Is(c, chg, change.RolledBack)
	if h.Page() != "one\n" || h.Git("status", "--porcelain") != "" || h.Git("rev-parse", "HEAD^{tree}") != h.Git("rev-parse", "HEAD~2^{tree}") {
		h.T.Errorf("the page is %q, git says %q", h.Page(), h.Git("status", "--porcelain"))
	}
	want := "Revert \"Change the page\"\n\nThis reverts commit " + h.Git("rev-parse", "HEAD~1") + ".\n\n" + reason + "\n\nSallyport-Change: " + string(chg)
	if is := h.Git("log", "-1", "--format=%B"); !strings.HasPrefix(is, want) {
		h.T.Errorf("the commit says %q, not %q", is, want)
	}
	if d.Trial.Handshake != trial.RolledBack || !d.Trial.Restored || d.Trial.Reason != reason || d.Undoing == nil || d.Change.Reason != d.Trial.Said() {
		h.T.Errorf("the trial is %+v, the change says %q", d.Trial, d.Change.Reason)
	}
	if armed, disarmed := h.Keeper.Still(); len(armed) != 0 {
		h.T.Errorf("still armed: %v, disarmed %d", armed, disarmed)
	}
}

func (h *Home) Write(text string) {
	h.T.Helper()
	disktest.Put(h.T, filepath.Join(h.Repo, "page.txt"), text, 0o644)
}

// Tree is every file of the repository: mode and bytes, or where a link points.
func (h *Home) Tree() map[string]string {
	h.T.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(h.Repo, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			if d != nil && d.Name() == ".git" {
				return filepath.SkipDir
			}
			return err
		}
		name, _ := filepath.Rel(h.Repo, path)
		if d.Type() == os.ModeSymlink {
			to, err := os.Readlink(path)
			all[name] = "-> " + to
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		raw, err := os.ReadFile(path)
		all[name] = info.Mode().String() + " " + string(raw)
		return err
	})
	if err != nil {
		h.T.Fatal(err)
	}
	return all
}
